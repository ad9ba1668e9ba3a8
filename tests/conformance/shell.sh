#!/bin/sh
# The language score against bash stays above a floor: oils' cases, POSIX core and bash profile. argument: the local-shell program of the unit tests. Skipped (77)
# without bash or Python.
set -u
shell=$1
here=$(dirname "$0")
posix_floor=92 bash_floor=77
command -v bash >/dev/null 2>&1 || { echo "no bash: skipped"; exit 77; }
command -v python3 >/dev/null 2>&1 || { echo "no python3: skipped"; exit 77; }
out=$("$here/shell_score.py" --shell "$shell" --suite oils --no-cache --jobs 2) || exit 1
printf '%s\n' "$out"
printf '%s\n' "$out" | awk -v p=$posix_floor -v b=$bash_floor '
	$1 == "oils" && $2 == "posix" { seen++; if ($6 + 0 < p) bad = 1 }
	$1 == "oils" && $2 == "bash" { seen++; if ($6 + 0 < b) bad = 1 }
	END { if (seen != 2) { print "no score was printed"; exit 1 } exit bad }'
