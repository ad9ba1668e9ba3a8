#!/bin/sh
# Differential test of src/cedar against npm's cedar-wasm (see cedar_diff.mjs). Skipped (77) without node or without the module.
# arguments: our program, a folder where npm may install the module. CEDAR_DIFF_CASES and CEDAR_DIFF_SEED override the defaults.
set -u
here=$(dirname "$0")
module=$("$here/cedar_wasm.sh" "$2" 2>&1) || { echo "$module: skipped"; exit 77; }
# Without the optimiser of JavaScript, which saves nothing here (the time goes to WebAssembly) and has ended node 20 in the middle of a long run.
exec node --no-opt "$here/cedar_diff.mjs" "$1" "$module" "${CEDAR_DIFF_CASES:-5000}" "${CEDAR_DIFF_SEED:-1}"
