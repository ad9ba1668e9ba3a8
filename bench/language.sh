#!/bin/sh
# The policy language: stateless decisions, parsing and validating beside npm's cedar-wasm where there is node, then temporal decisions.
# usage: language.sh BUILD
set -u
build=$(cd "$1" && pwd) || exit 1
here=$(dirname "$0")
if module=$("$here/../tests/conformance/cedar_wasm.sh" "$build/tests/conformance/npm" 2>&1); then
	node "$here/cedar_bench.mjs" "$build/bench/cedar_bench" "$module"
else
	echo "($module: nothing stands beside ours)"
	"$build/bench/cedar_bench"
fi
"$build/bench/dogwood_bench"
