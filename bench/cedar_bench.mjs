// Decisions of src/cedar beside those of npm's @cedar-policy/cedar-wasm, in one run.
// usage: node cedar_bench.mjs OUR_PROGRAM WASM_MODULE_DIR
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [program, wasmDir] = process.argv.slice(2);
const wasm = createRequire(import.meta.url)(wasmDir + '/nodejs/cedar_wasm.js');
const run = (args) => execFileSync(program, args, { maxBuffer: 1 << 28 }).toString().trim().split('\n').map((l) => JSON.parse(l));
const ours = run([]);
run(['--cases']).forEach((c, i) => {
  wasm.preparseSchema('s' + i, c.schema);
  wasm.preparsePolicySet('p' + i, { staticPolicies: c.policies });
  const call = { ...c.request, preparsedSchemaName: 's' + i, preparsedPolicySetId: 'p' + i, entities: [], validateRequest: false };
  const rounds = c.n >= 1000 ? 20 : 500;
  for (let k = 0; k < 3; k++) {
    const a = wasm.statefulIsAuthorized(call);
    if (a.type !== 'success' || a.response.decision !== 'allow') throw new Error(JSON.stringify(a));
  }
  const t0 = process.hrtime.bigint();
  for (let k = 0; k < rounds; k++) wasm.statefulIsAuthorized(call);
  const ns = Number(process.hrtime.bigint() - t0) / rounds;
  const o = ours[i];
  console.log(`${o.shape.padEnd(9)} ${String(o.policies).padStart(6)} policies: ${(o.decision_ns / 1e3).toFixed(2)} µs, wasm ${(ns / 1e3).toFixed(1)} µs, ratio ${(ns / o.decision_ns).toFixed(0)}; parse ${o.parse_mb_s} MB/s, validate ${o.validate_mb_s} MB/s`);
});
