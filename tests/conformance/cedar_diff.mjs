// Differential test: cases drawn by a seeded generator (cedar_gen.mjs), our answers (cedar_diff.c) against those of npm's
// @cedar-policy/cedar-wasm. usage: node cedar_diff.mjs OUR_PROGRAM WASM_MODULE_DIR CASES [SEED]
// Compared: is the schema accepted; do policies, templates and links; strict validation of each policy, with "policy is impossible";
// do entities and request conform; decision, determining policies, erring policies, with and without the schema; all of it again from
// the other side's translations (schema into the other syntax, policies into JSON); our JSON of each policy against theirs; what they
// make of our JSON of the schema. At the end the coverage is held against a table (1000 cases or more): an operator that was not met
// often enough with a value, with an error, in a valid and in an invalid policy fails the run.
// CEDAR_DIFF_KEEP=FILE appends the cases that differ.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { appendFileSync } from 'node:fs';
import { genCase, seed, seedNow, OPS, TOTAL } from './cedar_gen.mjs';

const [program, wasmDir, casesArg, seedArg] = process.argv.slice(2);
const wasm = createRequire(import.meta.url)(wasmDir + '/nodejs/cedar_wasm.js');
const cases = Number(casesArg || 1000);
seed(Number(seedArg || 1));

// ---- the other side -------------------------------------------------------------------------------------------------
// JavaScript's numbers round a large Long on the way: such a translation says nothing.
function exact(j) {
  if (typeof j === 'number') return Number.isSafeInteger(j);
  return typeof j !== 'object' || j === null || Object.values(j).every(exact);
}
const ok = (r) => r.type === 'success';

// Schema and policies; translations go into the case, for both sides.
function translate(c, out, round) {
  out.sets = { staticPolicies: c.policies, templates: Object.fromEntries(c.templates.map((t) => [t.id, t.text])), templateLinks: c.links };
  out.schema = ok(wasm.preparseSchema('s', c.schema));
  out.policies = ok(wasm.preparsePolicySet('p', out.sets));
  if (!out.schema || !out.policies) return;
  if (round % 4 === 0) c.translate = true;
  const human = typeof c.schema === 'string';
  out.actions = human && round % 2 ? null : human ? wasm.schemaToJson(c.schema) : { type: 'success', json: c.schema };
  if (round % 2) return;
  const text = human ? out.actions : wasm.schemaToText(c.schema);
  const parts = wasm.policySetTextToParts(c.policies);
  if (!ok(text) || !ok(parts)) return;
  const statics = parts.policies.map((p) => wasm.policyToJson(p)), templates = c.templates.map((t) => [t.id, wasm.templateToJson(t.text)]);
  if (![...statics, ...templates.map((t) => t[1])].every(ok)) throw new Error('no JSON of ' + c.policies);
  out.est = statics.map((p) => p.json);
  if (!exact(out.est) || !exact(templates)) return;
  c.other = {
    schema: human ? text.json : text.text,
    policies: { staticPolicies: Object.fromEntries(out.est.map((p, i) => ['policy' + i, p])), templates: Object.fromEntries(templates.map(([id, t]) => [id, t.json])), templateLinks: c.links },
  };
}
// The action groups of the schema as entities, for decisions without a schema.
function actionEntities(json) {
  const out = [];
  for (const [ns, d] of Object.entries(json))
    for (const [id, a] of Object.entries(d.actions)) {
      const own = (ns ? ns + '::' : '') + 'Action';
      // A bare `Action` means the one of this namespace where there is such an action.
      const type = (p) => (!p.type || (p.type === 'Action' && d.actions[p.id]) ? own : p.type);
      out.push({ uid: { type: own, id }, attrs: {}, parents: (a.memberOf || []).map((p) => ({ type: type(p), id: p.id })) });
    }
  return out;
}
function judge(c, out) {
  out.verdicts = {};
  out.why = [];
  if (out.schema && out.policies) {
    const v = wasm.validate({ schema: c.schema, policies: out.sets });
    if (!ok(v)) throw new Error(JSON.stringify(v));
    const mark = (id, i) => ((out.verdicts[id] ??= [0, 0])[i] = 1);
    for (const e of v.validationErrors) mark(e.policyId, 0);
    for (const e of v.validationWarnings) if (e.error.message.includes('policy is impossible')) mark(e.policyId, 1);
    out.valid = v.validationErrors.length === 0;
    out.why = v.validationErrors.map((e) => e.error.message);
  }
  const actions = out.schema && out.actions && ok(out.actions) ? actionEntities(out.actions.json) : null;
  out.answers = c.requests.map((r) => {
    const a = {};
    if (!out.policies) return a;
    const get = (res) => (ok(res)
      ? { decision: res.response.decision, reason: res.response.diagnostics.reason.slice().sort(), errors: res.response.diagnostics.errors.map((e) => e.policyId).sort() }
      : { failed: res.errors.map((e) => e.message).join('; ') });
    const call = { ...r, preparsedPolicySetId: 'p' };
    // Short forms of values mean nothing without a schema; action groups are only known where the schema was translated.
    if (!c.typed && (actions || !out.schema)) a.plain = get(wasm.statefulIsAuthorized({ ...call, entities: [...c.entities, ...(actions || [])], validateRequest: false }));
    if (out.schema) a.strict = get(wasm.statefulIsAuthorized({ ...call, entities: c.entities, preparsedSchemaName: 's', validateRequest: true }));
    return a;
  });
}

// ---- coverage -------------------------------------------------------------------------------------------------------
const FEATURES = ['common type', 'enumerated type', 'tags', 'action group', 'namespace', 'entity parents', 'schema in JSON', 'schema in text', 'template', 'link', 'annotation', 'forbid', 'unless',
  'slot ==', 'slot in', 'slot is in', 'roundabout guard', 'action listed'];
const OUTCOMES = ['schema accepted', 'schema refused', 'policies accepted', 'policies refused', 'all valid', 'not all valid', 'impossible policy', 'request conforms', 'request does not conform',
  'entities unreadable', 'allow', 'deny', 'erring policy', 'link decides', 'short forms conform', 'translated', 'JSON compared', 'schema sent back'];
const op = Object.fromEntries(OPS.map((o) => [o, { value: 0, yes: 0, error: 0, valid: 0, invalid: 0 }]));
const seen = Object.fromEntries([...FEATURES, ...OUTCOMES].map((f) => [f, 0]));
function count(c, meta, t, ours) {
  for (const f of meta.marks) if (f in seen) seen[f]++;
  for (const p of [...meta.policies, ...meta.templates]) for (const f of p.used) if (f in seen && !meta.marks.has(f)) seen[f]++;
  seen[t.schema ? 'schema accepted' : 'schema refused']++;
  seen[t.policies ? 'policies accepted' : 'policies refused']++;
  if (t.valid !== undefined) {
    seen[t.valid ? 'all valid' : 'not all valid']++;
    meta.policies.forEach((p, i) => { for (const o of p.used) if (o in op) op[o][t.verdicts['policy' + i]?.[0] ? 'invalid' : 'valid']++; });
    if (Object.values(t.verdicts).some((v) => v[1])) seen['impossible policy']++;
  }
  if (!ours.entities) seen['entities unreadable']++;
  for (const b of t.answers) {
    const r = b.plain && !b.plain.failed ? b.plain : b.strict && !b.strict.failed ? b.strict : null;
    if (b.strict) seen[b.strict.failed ? 'request does not conform' : 'request conforms']++;
    if (c.typed && b.strict && !b.strict.failed) seen['short forms conform']++;
    if (!r) continue;
    seen[r.decision]++;
    if (r.errors.length) seen['erring policy']++;
    if (r.reason.some((id) => id.startsWith('link'))) seen['link decides']++;
    meta.policies.forEach((p, i) => {
      if (!p.op) return;
      const id = 'policy' + i;
      if (r.errors.includes(id)) op[p.op].error++;
      else op[p.op].value++;
      if (r.reason.includes(id)) op[p.op].yes++;
    });
  }
}
// For 5000 cases: 100 values, 100 errors, 50 policies that pass validation with it and 50 that do not.
function coverage() {
  const floor = Math.floor(cases / 50), gaps = [];
  console.log('operation            value  (true)  error   in valid  in invalid policies');
  for (const o of OPS) {
    const n = op[o];
    console.log(o.padEnd(18), ...[n.value, n.yes, n.error, n.valid, n.invalid].map((x) => String(x).padStart(7)));
    if (n.value < floor || n.yes < floor / 10) gaps.push(o + ': values');
    if (TOTAL.has(o) ? n.error > 0 : n.error < floor) gaps.push(o + ': errors');
    if (n.valid < floor / 2 || n.invalid < floor / 2) gaps.push(o + ': validation');
  }
  for (const f in seen) {
    console.log(f.padEnd(26), seen[f]);
    if (seen[f] < floor / 2) gaps.push(f);
  }
  return gaps;
}

// ---- comparing ------------------------------------------------------------------------------------------------------
const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
const lines = createInterface({ input: child.stdout });
const waiting = [];
let last = null;
lines.on('line', (l) => waiting.shift()(l));
child.on('exit', (status, signal) => {
  if (!waiting.length) return;
  console.log(`our side ended (${signal || status}) on ${last}`);
  process.exit(1);
});
const ask = (c) => new Promise((done) => { waiting.push(done); last = JSON.stringify(c); child.stdin.write(last + '\n'); });
const ids = (v) => (v || []).slice().sort().join();
// A text of JSON for comparing: sorted keys; an annotation without value is an empty one; a pattern's letters come one by one there.
function canon(j) {
  if (Array.isArray(j)) return '[' + j.flatMap((x) => (x?.Literal ? [...x.Literal].map((l) => ({ Literal: l })) : [x])).map(canon).join() + ']';
  if (j === null) return '""';
  if (typeof j !== 'object') return JSON.stringify(j);
  return '{' + Object.keys(j).sort().filter((k) => !(k === 'annotations' && !Object.keys(j[k]).length)).map((k) => JSON.stringify(k) + ':' + canon(j[k])).join() + '}';
}
function compare(c, t, both, say0) {
  both.forEach((o, k) => {
    const say = (what, a, b) => say0(`${k ? 'translated: ' : ''}${what}: ours ${JSON.stringify(a)}, theirs ${JSON.stringify(b)}`);
    if (o.schema !== t.schema) say('schema', o.schema, t.schema);
    if (o.policies !== t.policies) say('policies', o.policies, t.policies);
    if (!o.again) say('again', false, true);
    if (t.schema && t.policies) {
      if (o.valid !== t.valid) say('valid', o.valid, t.valid);
      for (const [id, [error, never]] of Object.entries(o.verdicts)) {
        const [error2, never2] = t.verdicts[id] || [0, 0], l = c.links.find((x) => x.newId === id);
        // Of a link they check the scope alone, its conditions with the template. Beside an error the warning is worth nothing.
        const same = l ? error === error2 || t.verdicts[l.templateId]?.[0] : error === error2 && (error || never === never2);
        if (id && !same) say('verdict of ' + id, o.verdicts[id], t.verdicts[id] || [0, 0]);
      }
    }
    if (!o.entities) t.answers.forEach((b, n) => { if (b.strict && !b.strict.failed) say('entities', o.why, 'conform ' + n); });
    if (!o.schema || !o.policies) return;
    o.answers.forEach((a, n) => {
      const { plain, strict } = t.answers[n];
      // Not even readable with the schema's types: then it must not conform there either.
      if (a.bad && !strict.failed) say('conform ' + n, a.bad, true);
      if (a.bad) return;
      if (a.conform !== !strict.failed) say('conform ' + n, [a.conform, a.why], strict);
      for (const [name, b] of [['request', plain], ['strict request', strict]])
        if (b && !b.failed && (a.decision !== b.decision || ids(a.reason) !== ids(b.reason) || ids(a.errors) !== ids(b.errors))) say(`${name} ${n}`, a, b);
    });
  });
  if (both.length > 1) seen.translated++;
  if (both[0].est && t.est) {
    seen['JSON compared']++;
    both[0].est.forEach((e, i) => { if (exact(t.est[i]) && canon(e) !== canon(t.est[i])) say0(`JSON of policy${i}: ours ${canon(e)}, theirs ${canon(t.est[i])}`); });
  }
  if (both[0].schema_json && t.schema && t.policies) {
    seen['schema sent back']++;
    const v = wasm.validate({ schema: both[0].schema_json, policies: t.sets });
    if (!ok(v) || (v.validationErrors.length === 0) !== t.valid) say0(`our JSON of the schema: ${JSON.stringify(v)}; ${JSON.stringify(both[0].schema_json)}`);
  }
}

let bad = 0, done = 0;
for (; done < cases && bad < 20; done++) {
  const start = seedNow(), { c, meta } = genCase(), t = {}, diff = [];
  translate(c, t, done);
  const answer = ask(c);
  judge(c, t);
  const both = JSON.parse(await answer);
  compare(c, t, both, (what) => diff.push(what));
  count(c, meta, t, both[0]);
  if (diff.length) {
    bad++;
    console.log(`case ${done} (seed ${start}):\n  ${diff.join('\n  ')}\n--- schema\n${typeof c.schema === 'string' ? c.schema : JSON.stringify(c.schema)}\n--- policies\n${c.policies}`);
    console.log('--- templates', JSON.stringify(c.templates), JSON.stringify(c.links), '\n--- ours', JSON.stringify(both.map((o) => o.why)), '\n--- theirs', JSON.stringify(t.why));
    console.log('--- entities', JSON.stringify(c.entities), '\n--- requests', JSON.stringify(c.requests));
    if (process.env.CEDAR_DIFF_KEEP) appendFileSync(process.env.CEDAR_DIFF_KEEP, JSON.stringify(c) + '\n');
  }
}
child.stdin.end();
const gaps = coverage();
if (cases >= 1000 && gaps.length) console.log('not covered well enough: ' + gaps.join(', '));
console.log(`${done} cases, ${bad} differences`);
process.exit(bad || (cases >= 1000 && gaps.length) ? 1 : 0);
