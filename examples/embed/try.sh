#!/bin/sh
# Four runs in an empty folder: three posts go, the fourth does not.
set -eu
program=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
got=$(for i in 1 2 3 4; do "$program"; done)
want=$(printf 'posted\nposted\nposted\nrefused: three posts in ten minutes')
[ "$got" = "$want" ] || { printf 'got:\n%s\n' "$got"; exit 1; }
