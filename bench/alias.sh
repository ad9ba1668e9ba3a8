#!/bin/bash
# `sh -c 'echo hi > f'` through the alias (parsed, decided, durable) against the host's `dash -c`, one after the other in the same loop, and what part of it the
# agent's own fork and exec are (`/bin/true`). Budget: 2 ms.
# usage: alias.sh BUILD [ROUNDS]
set -eu
build=$1
rounds=${2:-300}
[ -x /usr/bin/python3 ] && [ -x /usr/bin/dash ] || {
	echo "alias.sh: needs /usr/bin/python3 and /usr/bin/dash" >&2
	exit 0
}
home=$(getent passwd "$(id -u)" | cut -d: -f6)
dir=$(mktemp -d "$home/.boxwood-bench-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/w"
# The agent is python3 with dash beside it, both under its own fork: what differs is who runs the line.
cat >"$dir/box.toml" <<T
name = "bench"
box_dir = "$dir/state"
policy = "policy.dw"
[agent]
command = ["/usr/bin/python3", "-I", "-c"]
workspace = "$dir/w"
[agent.filesystem]
read = ["/usr/lib"]
write = ["$dir/w"]
exec = ["/usr/bin/dash", "/usr/bin/true"]
T
echo 'permit (principal, action, resource);' >"$dir/policy.dw"
"$build/bin/box" run --config "$dir/box.toml" -- "$(cat <<'P'
import os
import statistics
import sys
import time

rounds = int(sys.argv[1])
alias = [p + "/sh" for p in os.environ["PATH"].split(":") if os.path.exists(p + "/sh")][0]
commands = {
    "alias, echo hi > f": [alias, "-c", "echo hi > f"],
    "dash, echo hi > f": ["/usr/bin/dash", "-c", "echo hi > f"],
    "alias, no decision": [alias, "-c", ""],
    "true": ["/usr/bin/true"],
}
times = {k: [] for k in commands}
for i in range(rounds + 10):
    for name, argv in commands.items():
        begin = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            sys.exit(f"{name}: status {status}")
        if i >= 10:
            times[name].append((time.perf_counter() - begin) * 1000)
for name, v in times.items():
    print(f"{name:22} median {statistics.median(v):6.3f} ms   best {min(v):6.3f} ms   of {len(v)}")
a, b = statistics.median(times["alias, echo hi > f"]), statistics.median(times["dash, echo hi > f"])
print(f"ratio to dash {a / b:.2f}; alias {a:.2f} ms (budget: 2.00 ms)")
P
)" "$rounds" 2>"$dir/err" || {
	cat "$dir/err" >&2
	exit 1
}
