#!/bin/bash
# `box run -- /bin/true` against `bwrap --unshare-all … true`, one after the other in the same loop, and what the trusted processes of a box weigh.
# usage: start.sh BUILD [ROUNDS]
set -eu
build=$1
rounds=${2:-40}
home=$(getent passwd "$(id -u)" | cut -d: -f6)
dir=$(mktemp -d "$home/.boxwood-bench-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/w"
cat >"$dir/box.toml" <<T
name = "bench"
box_dir = "$dir/state"
policy = "policy.dw"
[agent]
command = ["/bin/true"]
workspace = "$dir/w"
T
echo 'permit (principal, action == Box::Action::"shell:exec", resource);' >"$dir/policy.dw"
box=$build/bin/box

"$box" run --config "$dir/box.toml" 2>/dev/null # creates the box: not part of the measurement
python3 - "$box" "$dir/box.toml" "$rounds" <<'P'
import statistics
import subprocess
import sys
import time

box, config, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
commands = {
    "box run -- /bin/true": [box, "run", "--config", config],
    "bwrap --unshare-all true": ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
                                 "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true"],
}
times = {k: [] for k in commands}
for i in range(rounds + 3):
    for name, argv in commands.items():
        begin = time.perf_counter()
        subprocess.run(argv, stderr=subprocess.DEVNULL, check=True)
        if i >= 3:
            times[name].append((time.perf_counter() - begin) * 1000)
for name, v in times.items():
    print(f"{name:28} median {statistics.median(v):7.2f} ms   best {min(v):7.2f} ms   of {len(v)}")
a, b = (statistics.median(v) for v in times.values())
print(f"ratio {a / b:.2f} (budget: 3.00)")
P

# Resident memory of everything trusted: an idle box with one shell in reserve, and the same after a request through the gateway.
sed -i 's|command = .*|command = ["/bin/sleep", "30"]|' "$dir/box.toml"
"$box" run --config "$dir/box.toml" 2>/dev/null &
pid=$!
sleep 1
python3 - "$pid" <<'P'
import os
import sys

def tree(root):
    parents = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/stat") as f:
                parents[int(p)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found, grew = [root], True
    while grew:
        more = [c for c, p in parents.items() if p in found and c not in found]
        grew = bool(more)
        found += more
    return found

total = 0
for p in tree(int(sys.argv[1])):
    try:
        with open(f"/proc/{p}/comm") as f:
            name = f.read().strip()
        with open(f"/proc/{p}/smaps_rollup") as f:
            pss = next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    except OSError:
        continue
    if name.startswith("box"):
        total += pss
        print(f"  {name:16} {pss / 1024:6.1f} MB (proportional)")
print(f"trusted processes together {total / 1024:.1f} MB (budget: 20, at most 25)")
P
kill -TERM "$pid"
wait "$pid" 2>/dev/null || true
