#!/bin/sh
# Every policy and schema of the conformance data through `dogwood translate` and `dogwood schema`: text, JSON, text, JSON.
# Both JSON texts are the same, and so is the text after a second round. usage: translate.sh DOGWOOD FOLDER
set -eu
dogwood=$1 data=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
policies=0 schemas=0

round() {
	verb=$1 text=$2 file=$3
	"$dogwood" "$verb" --to json "$file" >"$dir/1.json" &&
		"$dogwood" "$verb" --to "$text" "$dir/1.json" >"$dir/2" 2>"$dir/notes" &&
		"$dogwood" "$verb" --to json "$dir/2" >"$dir/2.json" &&
		"$dogwood" "$verb" --to "$text" "$dir/2.json" >"$dir/3" 2>"$dir/notes" &&
		cmp "$dir/1.json" "$dir/2.json" && cmp "$dir/2" "$dir/3" && cat "$dir/1.json" >>"$dir/all.json" || {
		echo "FAIL: $verb $file" >&2
		cat "$dir/notes" >&2
		exit 1
	}
}

for file in "$data"/cedar/*/*.cedar "$data"/cedar/*/*/*.cedar; do
	[ -f "$file" ] || continue
	round translate text "$file"
	policies=$((policies + 1))
done
for file in "$data"/cedar/*/*.cedarschema "$data"/cedar/*/*/*.cedarschema "$data"/dogwood/*/*.cedarschema; do
	[ -f "$file" ] || continue
	round schema human "$file"
	schemas=$((schemas + 1))
done
# Another reader takes them, duplicate keys refused.
python3 - "$dir/all.json" <<'X'
import json, sys
def once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
text, reader = open(sys.argv[1], encoding="utf-8").read().strip(), json.JSONDecoder(object_pairs_hook=once)
while text:
    text = text[reader.raw_decode(text)[1]:].lstrip()
X
echo "translated: $policies policy files, $schemas schemas"
[ "$policies" -ge 180 ] && [ "$schemas" -ge 170 ]
