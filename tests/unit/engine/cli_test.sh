#!/bin/sh
# The verbs of dogwood that need no server: output and exit statuses.
set -eu
dogwood=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
expect() {
	want=$1 part=$2
	shift 2
	rc=0
	out=$("$@" 2>&1) || rc=$?
	[ "$rc" = "$want" ] || { echo "FAIL: $*: status $rc, not $want: $out" >&2; exit 1; }
	case $out in *"$part"*) ;; *) echo "FAIL: $*: no '$part' in: $out" >&2; exit 1 ;; esac
}
cat >schema <<'X'
namespace App {
  entity User; entity Doc;
  action "login", "read" appliesTo { principal: [User], resource: [Doc], context: { input: { user: String } } };
}
X
cat >policy <<'X'
@id("in") @description("after a login")
permit (principal, action == App::Action::"read", resource)
when temporal { formerly within 1h App::Action::"login"::response{ input.user: context.input.user } };
X
cat >trace <<'X'
@10 scope(principal: App::User::"a", resource: App::Doc::"d") request_context(input: {user: "a"}) App::Action::"read"::request(input: {user: "a"}, callerPrincipal: App::User::"a")
@20 scope(principal: App::User::"a", resource: App::Doc::"d") App::Action::"login"::response(input: {user: "a"}, callerPrincipal: App::User::"a")
@30 scope(principal: App::User::"a", resource: App::Doc::"d") request_context(input: {user: "a"}) App::Action::"read"::request(input: {user: "a"}, callerPrincipal: App::User::"a")
@3621 scope(principal: App::User::"a", resource: App::Doc::"d") request_context(input: {user: "a"}) App::Action::"read"::request(input: {user: "a"}, callerPrincipal: App::User::"a")
X
sed 's/input.user: context/input.usr: context/' policy >wrong
scope="-p App::User::\"a\" -r App::Doc::\"d\""

expect 0 'replay' "$dogwood" --help
expect 1 'no verb' "$dogwood" nothing
expect 1 'did you mean `check`' "$dogwood" chek
expect 0 'Usage: dogwood format' "$dogwood" help format
# Every verb explains itself with an example, within 100 columns, and is in the manual.
for verb in $("$dogwood" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^forbid$\|^permit$\|^when$'); do
	expect 0 'Example' "$dogwood" "$verb" --help
	"$dogwood" "$verb" --help | grep -q '^.\{101\}' && { echo "FAIL: $verb --help is too wide" >&2; exit 1; }
	grep -q "[ \"]$verb\b" "$here/../../../docs/dogwood.1" || { echo "FAIL: $verb is not in the manual" >&2; exit 1; }
done
expect 0 'Usage: dogwood check' "$dogwood" check --help
expect 0 'OK' "$dogwood" check -s schema policy
expect 0 'OK' "$dogwood" check -s schema - <policy
expect 2 'wrong:3:' "$dogwood" check -s schema wrong
expect 2 '"ok":false' "$dogwood" check --json -s schema wrong
expect 1 'reading nowhere' "$dogwood" check nowhere
expect 1 'no policy file' "$dogwood" check
expect 0 '@30 (time point 1): ALLOW  [rules: 0]' "$dogwood" replay -s schema -t trace policy
expect 0 '@3621 (time point 2): DENY' "$dogwood" replay -s schema -t trace policy
expect 0 '[rules: in]' "$dogwood" replay -n -s schema -t trace policy
expect 0 '"index":1,"timestamp":30,"verdict":"allow","determining_rules":[0]' "$dogwood" replay -j -s schema -t trace policy
expect 2 'line 1:' "$dogwood" replay -s schema -t policy policy
# shellcheck disable=SC2086
expect 3 'no permit matched' "$dogwood" authorize -s schema $scope -a 'App::Action::"read"' -i '{"user":"a"}' policy
# shellcheck disable=SC2086
expect 0 'after a login' "$dogwood" authorize -s schema $scope -a 'App::Action::"read"' -i '{"user":"a"}' -t trace -@ 3000 policy
# shellcheck disable=SC2086
expect 3 '"permit":false' "$dogwood" authorize -j -s schema $scope -a 'App::Action::"read"' -i '{"user":"b"}' -t trace policy
# shellcheck disable=SC2086
expect 2 'does not declare' "$dogwood" authorize -s schema $scope -a 'App::Action::"x"' policy
printf '// why\npermit(principal,action,resource)when{true};\n' >ugly
cp ugly ugly2
chmod 640 ugly2
ln -s ugly2 link
expect 0 'when { true };' "$dogwood" format ugly
expect 0 '// why' "$dogwood" format - <ugly
expect 1 'ugly' "$dogwood" format --check ugly
expect 0 '' "$dogwood" format --write link
cmp -s ugly ugly2 && { echo "FAIL: format --write changed nothing" >&2; exit 1; }
[ -L link ] && [ "$(stat -c %a ugly2)" = 640 ] || { echo "FAIL: format --write: link or mode" >&2; exit 1; }
expect 0 '' "$dogwood" format --check ugly2 link
expect 1 'give one of them' "$dogwood" format --check --write ugly
expect 1 'reading nowhere' "$dogwood" format nowhere ugly2
printf 'permit(principal,action,resource) when { temporal { formerly } };\n' >broken
cp broken broken2
expect 2 'broken:1:' "$dogwood" format --write broken
cmp broken broken2
expect 0 '"op": "All"' "$dogwood" translate ugly
"$dogwood" translate ugly >ugly.json
expect 0 'permit (principal, action, resource)' "$dogwood" translate - <ugly.json
expect 2 'policy:3:6: error: the JSON form of policies has no place for a temporal block' "$dogwood" translate policy
echo 'def cedar f() { 1 }; permit (principal) when { f() == 1 } when guardrails { A::b() };' >more
expect 2 'more:1:11: error: the JSON form of policies has no place for a macro definition' "$dogwood" translate more
expect 2 'more:1:48: error: the JSON form of policies has no place for a call' "$dogwood" translate more
expect 2 'more:1:59: error: the JSON form of policies has no place for guardrails' "$dogwood" translate more
echo '{"staticPolicies":{"x":{"effect":"permit","principal":{"op":"All"},"action":{"op":"All"},"resource":{"op":"All"},"conditions":[]}},"templates":{"t":{"effect":"forbid","principal":{"op":"==","slot":"?principal"},"action":{"op":"All"},"resource":{"op":"All"},"conditions":[]}}}' >set.json
expect 0 'principal == ?principal' "$dogwood" translate set.json
expect 0 '2 ids of the JSON are not kept' "$dogwood" translate set.json
sed 's/}$/,"templateLinks":[{"templateId":"t","newId":"l","values":{"?principal":{"type":"A","id":"b"}}}]}/' set.json >linked.json
expect 2 '`l` is one of the template `t`' "$dogwood" translate linked.json
expect 2 'broken.json:' "$dogwood" translate "$(echo '{"effect":' >broken.json; echo broken.json)"
expect 1 'wants `text` or `json`' "$dogwood" translate --to xml ugly
expect 0 '"entityTypes"' "$dogwood" schema schema
"$dogwood" schema schema >schema.json
expect 0 'entity User;' "$dogwood" schema schema.json
expect 0 'entity User;' "$dogwood" schema --to human schema
echo 'entity A in [B]; entity Long;' >unresolved
expect 2 'unresolved:1:' "$dogwood" schema unresolved
echo 'entity A in [B];' >fragment
expect 2 '`B`' "$dogwood" schema fragment
expect 0 '"B"' "$dogwood" schema --fragment fragment
echo '{"result":{"tools":[{"name":"find","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"f":{"type":"null"}},"required":["q"]}}]}}' >tools.json
expect 0 'action "find" appliesTo { principal: [Agent]' "$dogwood" schema --from-mcp --name my-server tools.json
expect 0 'namespace my_server' "$dogwood" schema -M -n my-server tools.json
expect 0 '1 field is left out' "$dogwood" schema -M -n my-server tools.json
expect 0 '"CallTool"' "$dogwood" schema -M -T default --to json tools.json
expect 1 'wants --name' "$dogwood" schema -M tools.json
expect 1 'go with --from-mcp' "$dogwood" schema -o schema
expect 2 'tools/list' "$dogwood" schema -M -n s schema
cat >template <<'X'
namespace Acme {
  @mcp_principal("User") entity Person;
  @mcp_resource("Gateway") entity Door;
  @mcp_context("system") type Clock = { now: datetime };
  @mcp_action("CallTool") action "Use";
}
X
expect 0 'principal: [Person]' "$dogwood" schema -M -T template tools.json
expect 0 'system: Clock' "$dogwood" schema -M -T template tools.json
sed 's/"find"/"Use"/' tools.json >clash.json
expect 2 'declared twice' "$dogwood" schema -M -T template clash.json
sed 's/@mcp_action("CallTool")//' template >unmarked
expect 2 'no action has @mcp_action' "$dogwood" schema -M -T unmarked tools.json
echo '{"availableProviders":{"Scan::it":{"argumentTypes":[{"type":"string"}],"outputType":{"type":"boolean"}}}}' >prov.json
echo 'permit (principal, action, resource) when { Scan::it(context.input.user) };' >asking
echo '{"Scan::it(\"a\")":true,"Scan::it(\"down\")":{"__error":"scanner is down"},"Scan::it":false}' >answers.json
expect 2 'not enabled' "$dogwood" check -s schema asking
expect 0 'OK' "$dogwood" check -s schema -P prov.json asking
expect 0 '// providers.policy_0_p_0 = Scan::it(context.input.user)' "$dogwood" expand -s schema -P prov.json asking
ask() {
	want=$1 part=$2 user=$3
	shift 3
	# shellcheck disable=SC2086
	expect "$want" "$part" "$dogwood" authorize -s schema -P prov.json $scope -a 'App::Action::"read"' -i "{\"user\":\"$user\"}" "$@" asking
}
ask 0 'a permit matched' a -A answers.json
ask 3 'no permit matched' b -A answers.json
ask 3 'fault: provider Scan::it: scanner is down' down -A answers.json
ask 3 'the host provides nothing' a
echo '{}' >none.json
ask 3 'none.json has no answer for `Scan::it("a")`, nor for `Scan::it` with any arguments' a -A none.json
ask 2 'answers are an object' a -A "$(echo '[]' >list.json; echo list.json)"
expect 0 '@10 (time point 0): ALLOW  [rules: 0]' "$dogwood" replay -s schema -P prov.json -A answers.json -t trace asking
expect 0 'error: provider Scan::it: the host provides nothing' "$dogwood" replay -s schema -P prov.json -t trace asking
expect 0 'permit' "$dogwood" expand -s schema policy
expect 0 'class:' "$dogwood" explain -s schema policy
expect 1 'holds no log' "$dogwood" log .
expect 1 'No such file' "$dogwood" log nowhere
expect 1 'No such file' "$dogwood" fsck nowhere

# Findings for people and for editors, as they were when somebody last read them.
cp "$here"/findings/* .
for name in five places slips; do
	for form in txt json; do
		if [ $form = txt ]; then
			"$dogwood" check -s actions.cedarschema $name.dw 2>got && exit 1
		else
			"$dogwood" check -j -s actions.cedarschema $name.dw >flat && exit 1
			python3 -m json.tool --no-ensure-ascii flat got
		fi
		diff -u $name.$form got || { echo "FAIL: findings/$name.$form" >&2; exit 1; }
	done
done

# Colour on a terminal only, and not where it is not wanted.
on_terminal() {
	python3 - "$dogwood" check -s actions.cedarschema five.dw <<'X'
import os, pty, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 65536)
    out += data
    return b""
pty.spawn(sys.argv[1:], read, lambda fd: b"")
sys.exit(0 if b"\033[" in out else 1 if b"did you mean" in out else 2)
X
}
(unset NO_COLOR; TERM=xterm on_terminal) </dev/null || { echo "FAIL: no colour on a terminal" >&2; exit 1; }
rc=0; NO_COLOR=1 TERM=xterm on_terminal || rc=$?
[ $rc = 1 ] || { echo "FAIL: NO_COLOR" >&2; exit 1; }
rc=0; (unset NO_COLOR; TERM=dumb on_terminal) || rc=$?
[ $rc = 1 ] || { echo "FAIL: TERM=dumb" >&2; exit 1; }
echo ok
