#!/bin/sh
# Print the folder of npm's cedar-wasm, installed below the folder given when it is not there yet. Exit 77, with the reason on standard
# error, when there is no node, no npm, or no way to get it.
set -u
version=4.11.2
store=$1
command -v node >/dev/null 2>&1 || { echo "no node" >&2; exit 77; }
module=$store/node_modules/@cedar-policy/cedar-wasm
if [ ! -d "$module" ]; then
	command -v npm >/dev/null 2>&1 || { echo "no npm" >&2; exit 77; }
	mkdir -p "$store" || exit 77
	npm install --no-save --no-audit --no-fund --prefix "$store" "@cedar-policy/cedar-wasm@$version" >/dev/null 2>&1 ||
		{ echo "cedar-wasm cannot be installed" >&2; exit 77; }
fi
echo "$module"
