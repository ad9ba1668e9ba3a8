// Differential test: cases drawn by a seeded generator, our answers (cedar_diff.c) against those of npm's @cedar-policy/cedar-wasm.
// usage: node cedar_diff.mjs OUR_PROGRAM WASM_MODULE_DIR CASES [SEED]
// Compared: is the schema accepted, do the policies parse, does strict validation pass, do entities and request conform, decision,
// determining policies, erring policies; and all of it again from the other side's JSON translations.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { appendFileSync } from 'node:fs';

const [program, wasmDir, casesArg, seedArg] = process.argv.slice(2);
const wasm = createRequire(import.meta.url)(wasmDir + '/nodejs/cedar_wasm.js');
const cases = Number(casesArg || 1000);
let state = Number(seedArg || 1) >>> 0;

// ---- random ---------------------------------------------------------------------------------------------------------
function rnd(n) {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = (v) => v[rnd(v.length)];
const chance = (p) => rnd(100) < p;
const some = (v, max) => (v.length ? Array.from({ length: rnd(max + 1) }, () => pick(v)) : []);
const uniq = (v) => [...new Set(v)];
const q = (s) => JSON.stringify(s).replace(/\\u([0-9a-f]{4})/g, '\\u{$1}').replace(/\\[bf]/g, 'x');

// ---- schemas --------------------------------------------------------------------------------------------------------
const ATTRS = ['a', 'b', 'c', 'name', 'x y', 'owner', 'n', 'if', 'ip', 'when'];
const IDS = ['u', 'v', '', 'a"b', 'line\n', 'é', 'x'];

function genType(m, depth) {
  const r = rnd(depth > 0 ? 13 : 10);
  if (r < 2) return { k: 'Long' };
  if (r < 4) return { k: 'String' };
  if (r < 5) return { k: 'Bool' };
  if (r < 6) return { k: pick(['decimal', 'ipaddr', 'datetime', 'duration']) };
  if (r < 9 && m.types.length) return { k: 'entity', t: pick(m.types) };
  if (r < 10) return m.commons.length ? { k: 'common', t: pick(m.commons) } : { k: 'Long' };
  if (r < 11) return { k: 'Set', e: genType(m, depth - 1) };
  return genRecord(m, depth - 1);
}
function genRecord(m, depth) {
  return { k: 'Record', attrs: uniq(some(ATTRS, 4)).map((n) => ({ n, opt: chance(30), t: genType(m, depth) })) };
}
function real(t) {
  while (t.k === 'common') t = t.t.type;
  return t;
}
const attrName = (n) => (/^[A-Za-z_]\w*$/.test(n) && n !== 'if' ? n : q(n));
function typeText(t, ns) {
  switch (t.k) {
    case 'Set': return `Set<${typeText(t.e, ns)}>`;
    case 'Record': return '{' + t.attrs.map((a) => `${attrName(a.n)}${a.opt ? '?' : ''}: ${typeText(a.t, ns)}`).join(', ') + '}';
    case 'entity': return t.t.ns === ns && chance(70) ? t.t.base : t.t.name;
    case 'common': return t.t.ns === ns && chance(70) ? t.t.base : t.t.name;
    default: return chance(10) ? '__cedar::' + t.k : t.k;
  }
}
function genModel() {
  const m = { types: [], commons: [], actions: [], spaces: pick([[''], ['N'], ['', 'N'], ['N', 'M::K']]) };
  const full = (ns, n) => (ns ? ns + '::' : '') + n;
  for (const base of ['User', 'Group', 'Doc', 'Color'].slice(0, 2 + rnd(3))) {
    const ns = pick(m.spaces);
    m.types.push({ ns, base, name: full(ns, base), parents: [], attrs: { k: 'Record', attrs: [] }, tags: null, ids: null });
  }
  for (const base of ['T1', 'T2'].slice(0, rnd(3))) {
    const ns = pick(m.spaces);
    m.commons.push({ ns, base, name: full(ns, base), type: genType({ types: m.types, commons: m.commons.slice() }, 2) });
  }
  for (const t of m.types) {
    if (t.base === 'Color') {
      t.ids = ['red', 'green'];
      continue;
    }
    t.parents = uniq(some(m.types.filter((x) => !x.ids || chance(20)), 2));
    t.attrs = genRecord(m, 2);
    if (chance(40)) t.tags = genType(m, 1);
  }
  const n = 1 + rnd(4);
  for (let i = 0; i < n; i++) {
    const ns = pick(m.spaces);
    const a = { ns, id: pick(['view', 'edit', 'do it', 'all']) + i, parents: [], p: [], r: [], ctx: { k: 'Record', attrs: [] } };
    a.name = full(ns, 'Action') + '::' + q(a.id);
    a.parents = uniq(some(m.actions, 2));
    if (!chance(15)) {
      a.p = uniq([pick(m.types), ...some(m.types, 1)]);
      a.r = uniq([pick(m.types), ...some(m.types, 1)]);
      const rec = m.commons.filter((c) => real(c.type).k === 'Record');
      a.ctx = rec.length && chance(30) ? { k: 'common', t: pick(rec) } : genRecord(m, 3);
    }
    m.actions.push(a);
  }
  return m;
}
function schemaText(m) {
  let out = '';
  for (const ns of m.spaces) {
    let body = '';
    for (const c of m.commons.filter((x) => x.ns === ns)) body += `type ${c.base} = ${typeText(c.type, ns)};\n`;
    for (const t of m.types.filter((x) => x.ns === ns)) {
      if (t.ids) body += `entity ${t.base} enum [${t.ids.map(q).join(', ')}];\n`;
      else
        body += `entity ${t.base}${t.parents.length ? ` in [${t.parents.map((p) => p.name).join(', ')}]` : ''}` +
          `${chance(50) ? ' =' : ''} ${typeText(t.attrs, ns)}${t.tags ? ` tags ${typeText(t.tags, ns)}` : ''};\n`;
    }
    for (const a of m.actions.filter((x) => x.ns === ns)) {
      body += `action ${q(a.id)}${a.parents.length ? ` in [${a.parents.map((p) => p.name).join(', ')}]` : ''}`;
      if (a.p.length)
        body += ` appliesTo { principal: [${a.p.map((t) => t.name)}], resource: [${a.r.map((t) => t.name)}], context: ${typeText(a.ctx, ns)} }`;
      body += ';\n';
    }
    out += ns ? `namespace ${ns} {\n${body}}\n` : body;
  }
  if (chance(4)) out += pick(['entity User;', 'type Long = String;', 'type T9 = T9;', 'entity Z in [Nope];', 'action "q" in ["nope"];', 'entity Action;', 'type Set = Long;', 'action "z" appliesTo { principal: [], resource: [] };', '}']);
  return out;
}

// ---- values ---------------------------------------------------------------------------------------------------------
const DEC = ['0.0', '1.5', '-0.25', '922337203685477.5807'];
const IPS = ['10.0.0.1', '10.0.0.0/8', '127.0.0.1', '::1', 'ff02::1', '2001:db8::/32', '224.0.0.5/3'];
const DTS = ['2024-01-01', '1969-12-31T23:59:59Z', '2024-02-29T12:30:00.250+0130', '0000-01-01'];
const DUR = ['1h', '-1d2h', '5ms', '90s', '0ms', '1d1h1m1s1ms'];
const LONGS = ['0', '1', '-1', '7', '9223372036854775807', '-9223372036854775808'];
const STRS = ['', 'a', 'ab', 'abc', 'a*b', 'é', 'x y', '10.0.0.1', 'line\n'];
const BAD = { decimal: ['1', '1.00000', 'x'], ipaddr: ['10.0.0', '1.2.3.4/33', '::ffff:1.2.3.4'], datetime: ['2024-13-01', '2024-1-1', '2024-01-01T25:00:00Z'], duration: ['', '1s1h', '1x'] };
const GOOD = { decimal: DEC, ipaddr: IPS, datetime: DTS, duration: DUR };
const FN = { decimal: 'decimal', ipaddr: 'ip', datetime: 'datetime', duration: 'duration' };

function entityId(t) {
  return t.ids ? (chance(92) ? pick(t.ids) : 'blue') : pick(IDS);
}
function genValue(t, depth, loose) {
  if (loose && chance(4)) t = pick([{ k: 'Long' }, { k: 'String' }, { k: 'Bool' }, { k: 'Set', e: { k: 'Long' } }]);
  t = real(t);
  switch (t.k) {
    case 'Long': return Number(pick(['0', '1', '-1', '7', '42']));
    case 'String': return pick(STRS);
    case 'Bool': return chance(50);
    case 'Set': return Array.from({ length: rnd(3) }, () => genValue(t.e, depth - 1, loose));
    case 'entity': return { __entity: { type: t.t.name, id: entityId(t.t) } };
    case 'Record': {
      const o = {};
      for (const a of t.attrs) if (!(a.opt && chance(50)) && !(loose && chance(3))) o[a.n] = genValue(a.t, depth - 1, loose);
      if (loose && chance(3)) o.extra = 1;
      return o;
    }
    default: return { __extn: { fn: FN[t.k], arg: pick(GOOD[t.k]) } };
  }
}
function genEntities(m) {
  const seen = new Map();
  for (let i = rnd(7); i > 0; i--) {
    const t = pick(m.types);
    const uid = { type: t.name, id: entityId(t) };
    seen.set(t.name + '\0' + uid.id, { t, uid });
  }
  const all = [...seen.values()];
  return all.map((e, i) => ({
    uid: e.uid,
    attrs: e.t.ids ? {} : genValue(e.t.attrs, 3, chance(20)),
    // only to later ones: no cycles
    parents: uniq(some(all.slice(i + 1).filter((x) => e.t.parents.includes(x.t) || chance(5)), 2)).map((x) => x.uid),
    ...(e.t.tags && chance(70) ? { tags: Object.fromEntries(some(['k', 'l', 'a'], 2).map((k) => [k, genValue(e.t.tags, 2, false)])) } : {}),
  }));
}
function genRequests(m) {
  return Array.from({ length: 3 }, () => {
    const a = pick(m.actions);
    const p = a.p.length && chance(93) ? pick(a.p) : pick(m.types), r = a.r.length && chance(93) ? pick(a.r) : pick(m.types);
    return {
      principal: { type: p.name, id: entityId(p) },
      action: { type: a.name.slice(0, a.name.indexOf('::"')), id: a.id },
      resource: { type: r.name, id: entityId(r) },
      context: genValue(a.ctx, 3, chance(15)),
    };
  });
}

// ---- policies -------------------------------------------------------------------------------------------------------
// Expressions of a wanted type, from paths that have it where there are any; now and then of another type.
function paths(env, want) {
  const out = [];
  const go = (text, t, depth, guards) => {
    t = real(t);
    if (want(t)) out.push({ text, guards });
    const rec = t.k === 'Record' ? t : t.k === 'entity' ? t.t.attrs : null;
    if (rec && depth > 0)
      for (const a of rec.attrs) {
        const plain = /^[A-Za-z_]\w*$/.test(a.n) && a.n !== 'if';
        go(plain && chance(85) ? `${text}.${a.n}` : `${text}[${q(a.n)}]`, a.t, depth - 1,
          a.opt ? [...guards, `${text} has ${plain ? a.n : q(a.n)}`] : guards);
      }
  };
  go('principal', { k: 'entity', t: env.p }, 2, []);
  go('resource', { k: 'entity', t: env.r }, 2, []);
  go('context', env.a.ctx, 3, []);
  return out;
}
function lit(env, t) {
  t = real(t);
  switch (t.k) {
    case 'Long': return pick(LONGS);
    case 'String': return q(pick(STRS));
    case 'Bool': return pick(['true', 'false']);
    case 'entity': return `${t.t.name}::${q(entityId(t.t))}`;
    case 'Set': return `[${Array.from({ length: (chance(95) ? 1 : 0) + rnd(3) }, () => lit(env, t.e)).join(', ')}]`;
    case 'Record': return `{${t.attrs.map((a) => `${q(a.n)}: ${lit(env, a.t)}`).join(', ')}}`;
    default: return `${FN[t.k]}(${q(chance(95) ? pick(GOOD[t.k]) : pick(BAD[t.k]))})`;
  }
}
const same = (a, b) => a.k === b.k && (a.k !== 'entity' || a.t === b.t) && (a.k !== 'Set' || same(real(a.e), real(b.e))) && a.k !== 'Record';
function expr(env, t, depth) {
  if (chance(2)) t = pick([{ k: 'Long' }, { k: 'String' }, { k: 'Bool' }, { k: 'entity', t: pick(env.m.types) }]);
  t = real(t);
  if (chance(60)) {
    const ps = paths(env, (x) => same(x, t));
    if (ps.length) {
      const p = pick(ps);
      for (const g of p.guards) env.guards.push(g);
      return p.text;
    }
  }
  if (depth <= 0) return t.k === 'Bool' ? boolExpr(env, 0) : lit(env, t);
  if (chance(6)) return `(if ${boolExpr(env, depth - 1)} then ${expr(env, t, depth - 1)} else ${expr(env, t, depth - 1)})`;
  if (chance(5)) {
    const tagged = env.m.types.filter((x) => x.tags && same(real(x.tags), t));
    if (tagged.length) {
      const e = expr(env, { k: 'entity', t: pick(tagged) }, depth - 1), k = q(pick(['k', 'l', 'a']));
      if (chance(80)) env.guards.push(`${e}.hasTag(${k})`);
      return `${e}.getTag(${k})`;
    }
  }
  switch (t.k) {
    case 'Bool': return boolExpr(env, depth);
    case 'Long': {
      const l = () => expr(env, t, depth - 1);
      return pick([
        () => lit(env, t), () => `(${l()} ${pick(['+', '-', '*'])} ${l()})`, () => `-${pick(['3', '(1)', '(-1)', 'context.n'])}`,
        () => `${expr(env, { k: 'duration' }, depth - 1)}.${pick(['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'])}()`,
      ])();
    }
    case 'datetime': return pick([() => lit(env, t), () => `${expr(env, t, depth - 1)}.toDate()`, () => `${expr(env, t, depth - 1)}.offset(${expr(env, { k: 'duration' }, depth - 1)})`])();
    case 'duration': return pick([() => lit(env, t), () => `${expr(env, { k: 'datetime' }, depth - 1)}.toTime()`, () => `${expr(env, { k: 'datetime' }, depth - 1)}.durationSince(${expr(env, { k: 'datetime' }, depth - 1)})`])();
    case 'Set': return `[${Array.from({ length: (chance(96) ? 1 : 0) + rnd(3) }, () => expr(env, t.e, depth - 1)).join(', ')}]`;
    case 'Record': return `{${t.attrs.map((a) => `${q(a.n)}: ${expr(env, a.t, depth - 1)}`).join(', ')}}`;
    default: return lit(env, t);
  }
}
const ANY = (env) => pick([{ k: 'Long' }, { k: 'String' }, { k: 'Bool' }, { k: 'entity', t: pick(env.m.types) }, { k: 'entity', t: env.p }, { k: pick(['decimal', 'ipaddr', 'datetime', 'duration']) }, { k: 'Set', e: { k: 'Long' } }, { k: 'Set', e: { k: 'String' } }]);
const ent = (env) => ({ k: 'entity', t: pick([env.p, env.r, pick(env.m.types)]) });
function atom(env, depth) {
  const e = (t) => expr(env, t, depth - 1);
  const t = ANY(env);
  return pick([
    () => `${e(t)} ${pick(['==', '!='])} ${chance(94) ? e(t) : e(ANY(env))}`,
    () => { const o = pick([{ k: 'Long' }, { k: 'Long' }, { k: 'datetime' }, { k: 'duration' }]); return `${e(o)} ${pick(['<', '<=', '>', '>='])} ${e(o)}`; },
    () => `${e(ent(env))} in ${e(ent(env))}`,
    () => `${e(ent(env))} in [${e(ent(env))}, ${lit(env, ent(env))}]`,
    () => `action in ${pick(env.m.actions).name}`,
    () => `action ${pick(['==', '!='])} ${pick(env.m.actions).name}`,
    () => `action in [${pick(env.m.actions).name}, ${pick(env.m.actions).name}]`,
    () => `${e(ent(env))} is ${pick(env.m.types).name}`,
    () => `${e(ent(env))} is ${pick(env.m.types).name} in ${e(ent(env))}`,
    () => `${pick(['principal', 'resource', 'context'])} has ${pick(['a', 'b', 'name', '"x y"', 'owner.name', 'a.b.c', 'zz', '"if"'])}`,
    () => `${e({ k: 'String' })} like ${q(pick(['*', 'a*', '*b', 'a*b*c', '', 'abc'])).replace('ab', pick(['ab', 'a\\*b', 'ab']))}`,
    () => `${e({ k: 'Set', e: { k: 'Long' } })}.contains(${e({ k: 'Long' })})`,
    () => `${e({ k: 'Set', e: { k: 'String' } })}.${pick(['containsAll', 'containsAny'])}(${e({ k: 'Set', e: { k: 'String' } })})`,
    () => `${e({ k: 'Set', e: ent(env) })}.contains(${e(ent(env))})`,
    () => `${e({ k: 'Set', e: { k: 'Long' } })}.isEmpty()`,
    () => `${e({ k: 'decimal' })}.${pick(['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual'])}(${e({ k: 'decimal' })})`,
    () => `${e({ k: 'ipaddr' })}.${pick(['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'])}()`,
    () => `${e({ k: 'ipaddr' })}.isInRange(${e({ k: 'ipaddr' })})`,
    () => `${e(ent(env))}.hasTag(${q(pick(['k', 'l']))})`,
    () => e({ k: 'Bool' }),
    () => pick(['true', 'false']),
  ])();
}
function guarded(env, f) {
  const save = env.guards;
  env.guards = [];
  let s = f();
  if (chance(85)) for (const g of uniq(env.guards).reverse()) s = `${g} && ${s}`;
  env.guards = save;
  return s;
}
function boolExpr(env, depth) {
  if (depth <= 0) return pick(['true', 'false', 'context has a']);
  switch (rnd(8)) {
    case 0: return `(${boolExpr(env, depth - 1)} && ${boolExpr(env, depth - 1)})`;
    case 1: return `(${boolExpr(env, depth - 1)} || ${boolExpr(env, depth - 1)})`;
    case 2: return `!(${boolExpr(env, depth - 1)})`;
    case 3: return `(if ${boolExpr(env, depth - 1)} then ${boolExpr(env, depth - 1)} else ${boolExpr(env, depth - 1)})`;
    default: return `(${guarded(env, () => atom(env, depth))})`;
  }
}
function scopeText(m, v, t) {
  const E = () => { const x = chance(70) ? t : pick(m.types); return `${x.name}::${q(entityId(x))}`; };
  return pick([v, v, v, `${v} == ${E()}`, `${v} in ${E()}`, `${v} is ${t.name}`, `${v} is ${t.name} in ${E()}`]);
}
function policyText(m) {
  const usable = m.actions.filter((a) => a.p.length);
  const a = usable.length ? pick(usable) : pick(m.actions);
  const env = { m, a, p: a.p.length ? pick(a.p) : pick(m.types), r: a.r.length ? pick(a.r) : pick(m.types), guards: [] };
  const act = pick([`action == ${a.name}`, `action == ${a.name}`, `action in ${a.name}`, `action in [${a.name}${chance(50) ? ', ' + pick(m.actions).name : ''}]`, 'action']);
  let s = `${chance(20) ? '@id("x") ' : ''}${chance(70) ? 'permit' : 'forbid'}(${scopeText(m, 'principal', env.p)}, ${act}, ${scopeText(m, 'resource', env.r)})`;
  for (let i = rnd(3); i > 0; i--) s += `\n  ${chance(80) ? 'when' : 'unless'} { ${chance(60) ? guarded(env, () => atom(env, 3)) : boolExpr(env, 3)} }`;
  if (chance(1)) s += pick([' when { 1 +', ' when { foo(1) }', ' when { context.x == "\\q" }', ' when {}', ' when { a::b }', ' when { 1 < 2 < 3 }', ' when { !!!!!true }', ' when { [1][0] }', ' when { {a:1,a:2}.a == 1 }']);
  return s + ';';
}
function genCase() {
  const m = genModel();
  const policies = Array.from({ length: 1 + rnd(4) }, () => policyText(m)).join('\n');
  return { schema: schemaText(m), policies, entities: genEntities(m), requests: genRequests(m) };
}

// ---- the other side -------------------------------------------------------------------------------------------------
function theirs(c) {
  const out = { answers: [] };
  out.schema = wasm.checkParseSchema(c.schema).type === 'success';
  out.policies = wasm.checkParsePolicySet({ staticPolicies: c.policies }).type === 'success';
  out.why = [];
  if (out.schema && out.policies) {
    const v = wasm.validate({ schema: c.schema, policies: { staticPolicies: c.policies } });
    out.valid = v.type === 'success' && v.validationErrors.length === 0;
    out.why = v.type === 'success' ? v.validationErrors.map((e) => e.error.message) : v.errors.map((e) => e.message);
    const sj = wasm.schemaToJson(c.schema);
    if (sj.type === 'success') c.schema_json = sj.json;
    const parts = wasm.policySetTextToParts(c.policies);
    if (parts.type === 'success') {
      const st = {};
      let good = true;
      parts.policies.forEach((p, i) => {
        const j = wasm.policyToJson(p);
        if (j.type === 'success' && exact(j.json)) st['policy' + i] = j.json;
        else good = false;
      });
      if (good) c.policies_json = { staticPolicies: st };
    }
  }
  for (const r of c.requests) {
    const a = {};
    if (out.policies) {
      const call = { ...r, policies: { staticPolicies: c.policies }, entities: out.schema ? [...c.entities, ...actionEntities(c)] : c.entities };
      const plain = wasm.isAuthorized(call);
      if (plain.type === 'success') {
        a.decision = plain.response.decision;
        a.reason = plain.response.diagnostics.reason.slice().sort();
        a.errors = plain.response.diagnostics.errors.map((e) => e.policyId).sort();
      } else a.failed = plain.errors.map((e) => e.message);
      if (out.schema) {
        const strict = wasm.isAuthorized({ ...call, entities: c.entities, schema: c.schema, validateRequest: true });
        a.conform = strict.type === 'success';
        a.why = strict.type === 'success' ? '' : strict.errors.map((e) => e.message).join('; ');
      }
    }
    out.answers.push(a);
  }
  return out;
}
// JavaScript's numbers round a large Long on the way: such a translation says nothing.
function exact(j) {
  if (typeof j === 'number') return Number.isSafeInteger(j);
  return typeof j !== 'object' || j === null || Object.values(j).every(exact);
}
// The action groups of the schema as entities, for decisions without a schema.
function actionEntities(c) {
  if (!c.schema_json) return [];
  const out = [];
  for (const [ns, d] of Object.entries(c.schema_json))
    for (const [id, a] of Object.entries(d.actions))
      out.push({
        uid: { type: (ns ? ns + '::' : '') + 'Action', id }, attrs: {},
        parents: (a.memberOf || []).map((p) => ({ type: p.type || (ns ? ns + '::' : '') + 'Action', id: p.id })),
      });
  return out;
}

// ---- comparing ------------------------------------------------------------------------------------------------------
const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
const lines = createInterface({ input: child.stdout });
const waiting = [];
lines.on('line', (l) => waiting.shift()(JSON.parse(l)));
const ask = (c) => new Promise((ok) => { waiting.push(ok); child.stdin.write(JSON.stringify(c) + '\n'); });
const ids = (v) => (v || []).slice().sort().join();

let bad = 0;
const count = { schema: 0, policies: 0, valid: 0, allow: 0, errors: 0, conform: 0, json: 0 };
for (let i = 0; i < cases && bad < 20; i++) {
  const start = state;
  const c = genCase();
  const t = theirs(c);
  const both = await ask(c);
  const diff = [];
  both.forEach((o, k) => {
    const say = (what, a, b) => diff.push(`${k ? 'json: ' : ''}${what}: ours ${JSON.stringify(a)}, theirs ${JSON.stringify(b)}`);
    if (o.schema !== t.schema) say('schema', o.schema, t.schema);
    if (o.policies !== t.policies) say('policies', o.policies, t.policies);
    if (!o.again) say('again', false, true);
    if (t.schema && t.policies && o.valid !== t.valid) say('valid', o.valid, t.valid);
    if (o.schema && o.policies && o.entities)
      o.answers.forEach((a, n) => {
        const b = t.answers[n];
        if (b.failed) return;
        if (a.bad) {
          // Not even readable with the schema's types: then it must not conform there either.
          if (b.conform) say('conform ' + n, a.bad, true);
          return;
        }
        if (a.decision !== b.decision || ids(a.reason) !== ids(b.reason) || ids(a.errors) !== ids(b.errors)) say('request ' + n, a, b);
        if (a.conform !== b.conform) say('conform ' + n, [a.conform, a.why], [b.conform, b.why]);
        if (k === 0 && a.decision === 'allow') count.allow++;
        if (k === 0 && a.errors.length) count.errors++;
        if (k === 0 && a.conform) count.conform++;
      });
    if (k) count.json++;
  });
  if (t.schema) count.schema++;
  if (t.policies) count.policies++;
  if (t.valid) count.valid++;
  if (diff.length) {
    bad++;
    console.log(`case ${i} (seed ${start}):\n  ${diff.join('\n  ')}\n--- schema\n${c.schema}--- policies\n${c.policies}`);
    console.log('--- ours', JSON.stringify(both.map((o) => o.why)), '\n--- theirs', JSON.stringify(t.why));
    console.log('--- entities', JSON.stringify(c.entities), '\n--- requests', JSON.stringify(c.requests));
    if (process.env.CEDAR_DIFF_KEEP) appendFileSync(process.env.CEDAR_DIFF_KEEP, JSON.stringify(c) + '\n');
  }
}
child.stdin.end();
console.log(`${cases} cases, ${bad} differences; of the cases ${JSON.stringify(count)}`);
process.exit(bad ? 1 : 0);
