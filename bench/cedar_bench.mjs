// The rows of cedar_bench.c with npm's @cedar-policy/cedar-wasm beside them, in one run.
// usage: node cedar_bench.mjs OUR_PROGRAM WASM_MODULE_DIR
// Decisions: both sides get the request as JSON and have the policies ready; entities are none. Parsing: both read the same text.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [program, wasmDir] = process.argv.slice(2);
const wasm = createRequire(import.meta.url)(wasmDir + '/nodejs/cedar_wasm.js');
const run = (args) => execFileSync(program, args, { maxBuffer: 1 << 28 }).toString().trim().split('\n').map((l) => JSON.parse(l));

// The best time of one call in nanoseconds, as in cedar_bench.c.
function best(f) {
  let least = Infinity, rounds = 1;
  f();
  for (let k = 0; k < 7;) {
    const t0 = process.hrtime.bigint();
    for (let i = 0; i < rounds; i++) f();
    const ns = Number(process.hrtime.bigint() - t0);
    if (ns < 60e6) {
      rounds *= 2;
      continue;
    }
    least = Math.min(least, ns / rounds);
    k++;
  }
  return least;
}
function must(r, ok = true) {
  if (r.type !== 'success' || !ok) throw new Error(JSON.stringify(r).slice(0, 300));
}
function theirs(c) {
  const bytes = Buffer.byteLength(c.text), rate = (f) => bytes * 1e3 / best(f);
  switch (c.kind) {
    case 'decide': {
      must(wasm.preparseSchema('s', c.schema));
      must(wasm.preparsePolicySet('p', { staticPolicies: c.text }));
      const call = { ...c.request, preparsedSchemaName: 's', preparsedPolicySetId: 'p', entities: [], validateRequest: false };
      return best(() => { const a = wasm.statefulIsAuthorized(call); must(a, a.response?.decision === 'allow'); });
    }
    case 'parse': return rate(() => must(wasm.checkParsePolicySet({ staticPolicies: c.text })));
    case 'validate': return rate(() => { const a = wasm.validate({ schema: c.schema, policies: { staticPolicies: c.text } }); must(a, a.validationErrors?.length === 0); });
    case 'schema': return rate(() => must(wasm.checkParseSchema(c.text)));
    default: {
      const json = JSON.parse(c.text); // given to it as an object, so the reading of the text is not in its time
      return rate(() => must(wasm.checkParseSchema(json)));
    }
  }
}
const ours = run(['--json']), cases = run(['--cases']);
// WebAssembly is compiled well only after it has run for a while.
for (const end = Date.now() + 3000; Date.now() < end;) {
  must(wasm.preparseSchema('s', cases[0].schema));
  must(wasm.preparsePolicySet('p', { staticPolicies: cases[0].text }));
  for (let i = 0; i < 200; i++) wasm.statefulIsAuthorized({ ...cases[0].request, preparsedSchemaName: 's', preparsedPolicySetId: 'p', entities: [], validateRequest: false });
}
console.log(`${'stateless'.padEnd(40)} ${'number'.padStart(8)} ${'ours'.padStart(14)} ${'cedar-wasm'.padStart(14)} ${'ratio'.padStart(8)}`);
cases.forEach((c, i) => {
  const o = ours[i], t = theirs(c), decision = c.kind === 'decide';
  const show = (x) => (decision ? `${(x / 1e3).toFixed(2)} µs` : `${x.toFixed(1)} MB/s`).padStart(14);
  const note = decision ? `  (request built before: ${(o.built / 1e3).toFixed(2)} µs; ${o.met} met)` : '';
  console.log(`${o.what.padEnd(40)} ${String(o.n).padStart(8)} ${show(o.ours)} ${show(t)} ${(decision ? t / o.ours : o.ours / t).toFixed(1).padStart(8)}${note}`);
});
console.log('(cedar-wasm is WebAssembly in node: a native build of the same code would be some times faster)');
