#!/bin/sh
# dogwood serve and its clients, end to end: install, decide, remember across a restart, refuse, count.
set -eu
dogwood=$1
dir=$(mktemp -d)
pid=
cleanup() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
fail() {
	echo "FAIL: $*" >&2
	exit 1
}
# expect STATUS FRAGMENT COMMAND...
expect() {
	want=$1 part=$2
	shift 2
	rc=0
	out=$("$@" 2>&1) || rc=$?
	[ "$rc" = "$want" ] || fail "$*: status $rc, not $want: $out"
	case $out in *"$part"*) ;; *) fail "$*: no '$part' in: $out" ;; esac
}
start() {
	"$dogwood" serve -n 0 "$dir/d" 2>"$dir/log" &
	pid=$!
	for i in $(seq 300); do
		"$dogwood" ping -D "$dir/d" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	fail "the server does not answer: $(cat "$dir/log")"
}
stop() {
	kill "$pid"
	wait "$pid" || fail "the server ended badly: $(cat "$dir/log")"
	pid=
}
post() {
	"$dogwood" submit -D "$dir/d" -p 'App::User::"ann"' -r 'App::Service::"chat"' "$@"
}
in='{"input":{"text":"hi"}}'

cat >"$dir/schema" <<'X'
namespace App {
  entity User; entity Service;
  action "post" appliesTo { principal: [User], resource: [Service],
    context: { input: { text: String }, output?: { ok: Bool } } };
}
X
cat >"$dir/policy" <<'X'
permit (principal, action == App::Action::"post", resource);
@id("limit") forbid (principal, action == App::Action::"post", resource)
when temporal {
  (count for (t: Timepoint). where (formerly within 10m
    (App::Action::"post"::response{ output.ok: true } && tp(t)))) >= 2
};
X
echo '@id("x") forbid (principal, action, resource) when { context.input.text == "bad" };' >"$dir/extra"

start
[ "$(stat -c %a "$dir/d/store" "$dir/d/control.sock" "$dir/d/run/dogwood.sock" | tr '\n' ' ')" = '700 700 666 ' ] || fail modes
expect 2 'no policy set installed' post 'App::Action::"post"' request
expect 0 '"rule_count":2' "$dogwood" policy -D "$dir/d" install -s "$dir/schema" "$dir/policy"
expect 0 '"allowed":true' post -c "$in" -l "$in" -k t1 'App::Action::"post"' request
expect 0 '"status":"recorded"' post -l '{"input":{"text":"hi"},"output":{"ok":true}}' 'App::Action::"post"' response
expect 0 '"status":"recorded"' post -l '{"input":{"text":"hi"},"output":{"ok":true}}' 'App::Action::"post"' response
expect 3 '"allowed":false,"reason":["SP' post -c "$in" -l "$in" 'App::Action::"post"' request
# The first answer again.
expect 0 '"allowed":true' post -c "$in" -l "$in" -k t1 'App::Action::"post"' request
expect 2 'unknown field' "$dogwood" submit -D "$dir/d" -k x -l '{},"extra":1' 'App::Action::"post"' request
expect 0 '"minted":["SP' "$dogwood" policy -D "$dir/d" add "$dir/extra"
expect 2 'rejected: ' "$dogwood" policy -D "$dir/d" add "$dir/schema"
expect 0 '"log_offset":6' "$dogwood" status -D "$dir/d"
expect 0 '"up_to_offset":6' "$dogwood" checkpoint -D "$dir/d"
expect 1 'in use' "$dogwood" fsck "$dir/d/store"
expect 0 'limit' "$dogwood" log "$dir/d/store"
stop
[ ! -e "$dir/d/control.sock" ] || fail 'the socket stays behind'
expect 0 OK "$dogwood" fsck "$dir/d/store"

start
expect 3 '"allowed":false' post -c "$in" -l "$in" 'App::Action::"post"' request
id=$("$dogwood" policy -D "$dir/d" list | sed 's/.*"id":"\(SP[0-9A-Za-z]*\)".*/\1/')
expect 0 'context.input.text' "$dogwood" policy -D "$dir/d" get "$id"
expect 0 batched "$dogwood" policy -D "$dir/d" reset-all
expect 0 '"allowed":true' post -c "$in" -l "$in" 'App::Action::"post"' request
expect 3 '"allowed":false' post -c '{"input":{"text":"bad"}}' -l "$in" 'App::Action::"post"' request
expect 0 batched "$dogwood" policy -D "$dir/d" delete "$id"
expect 2 'no such policy' "$dogwood" policy -D "$dir/d" delete "$id"
# Many at once: all are recorded.
for i in 1 2 3 4 5 6 7 8; do
	(for k in 1 2 3 4 5; do post -l "$in" 'App::Action::"post"' response >/dev/null || echo lost >>"$dir/lost"; done) &
	waits="${waits-} $!"
done
wait $waits
[ ! -e "$dir/lost" ] || fail 'a submit was lost'
# A frame that is none, and one that is too long.
expect 0 'malformed request' python3 - "$dir/d/run/dogwood.sock" <<'X'
import socket, struct, sys
for frame in (struct.pack('>I', 3) + b'{x}', struct.pack('>I', 1 << 25)):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(frame)
    n = struct.unpack('>I', s.recv(4))[0]
    print(s.recv(n).decode())
    assert s.recv(1) == b''
X
stop
expect 0 OK "$dogwood" fsck "$dir/d/store"
# The same snapshot, said to be another store's, with the right check sum: fsck says what an open would.
python3 - "$dir/d/store" <<'X'
import glob, sys
with open(sorted(glob.glob(sys.argv[1] + '/log-*'))[0], 'rb') as f:
    ident = f.read(32)[16:]
path = sorted(glob.glob(sys.argv[1] + '/snap-*'))[-1]
with open(path, 'rb') as f:
    b = bytearray(f.read())
b[b.index(ident)] ^= 1
crc = 0xffffffff  # CRC-32C
for byte in b[16:]:
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
b[12:16] = (crc ^ 0xffffffff).to_bytes(4, 'big')
with open(path, 'wb') as f:
    f.write(b)
X
expect 2 'belongs to another store' "$dogwood" fsck "$dir/d/store"
expect 2 'belongs to another store' "$dogwood" fsck -q "$dir/d/store"
echo ok
