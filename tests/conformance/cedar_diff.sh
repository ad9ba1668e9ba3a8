#!/bin/sh
# Differential test of src/cedar against npm's cedar-wasm (see cedar_diff.mjs). Skipped (77) without node or without the module.
# arguments: our program, a folder where npm may install the module. CEDAR_DIFF_CASES and CEDAR_DIFF_SEED override the defaults.
set -u
version=4.11.2
program=$1
store=$2
here=$(dirname "$0")
command -v node >/dev/null 2>&1 || { echo "no node: skipped"; exit 77; }
module=$store/node_modules/@cedar-policy/cedar-wasm
if [ ! -d "$module" ]; then
	command -v npm >/dev/null 2>&1 || { echo "no npm: skipped"; exit 77; }
	mkdir -p "$store" || exit 77
	npm install --no-save --no-audit --no-fund --prefix "$store" "@cedar-policy/cedar-wasm@$version" >/dev/null 2>&1 ||
		{ echo "the module cannot be installed: skipped"; exit 77; }
fi
exec node "$here/cedar_diff.mjs" "$program" "$module" "${CEDAR_DIFF_CASES:-5000}" "${CEDAR_DIFF_SEED:-1}"
