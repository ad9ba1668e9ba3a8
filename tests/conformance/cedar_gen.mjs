// Cases for the differential test, drawn by a seed: a model of a schema, its text in either syntax, policies, templates and links,
// entities, requests. Every production says what it used (use), so that cedar_diff.mjs can hold the coverage against a table.
// Values and strings near the edges of what is legal are drawn on purpose; so are ill-typed expressions and broken schemas.

// ---- random ---------------------------------------------------------------------------------------------------------
let state = 1;
export const seed = (s) => { state = s >>> 0; };
export const seedNow = () => state;
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
const times = (n, f) => Array.from({ length: n }, f);
const uniq = (v) => [...new Set(v)];

// A string literal of Cedar: now and then with escapes where none are needed.
function q(s) {
  return '"' + [...s].map((c) => {
    if (c === '"' || c === '\\') return '\\' + c;
    if (c === '\n') return '\\n';
    if (c === '\0') return '\\0';
    const n = c.codePointAt(0);
    if (chance(2)) return n < 128 && chance(50) ? '\\x' + n.toString(16).padStart(2, '0') : `\\u{${n.toString(16)}}`;
    return c;
  }).join('') + '"';
}
const plainName = (n) => /^[A-Za-z_]\w*$/.test(n) && !['if', 'in', 'has', 'like', 'true', 'false', 'then', 'else', 'is', '__cedar'].includes(n);

let used = new Set();
function use(what) {
  used.add(what);
}

// ---- schemas --------------------------------------------------------------------------------------------------------
const ATTRS = ['a', 'b', 'c', 'name', 'x y', 'owner', 'n', 'if', 'ip', 'when', ''];
const IDS = ['u', 'v', '', 'a"b', 'line\n', 'é', 'x', '\\'];
const EXT = ['decimal', 'ipaddr', 'datetime', 'duration'];
const LONG = { k: 'Long' }, STRING = { k: 'String' }, BOOL = { k: 'Bool' };

function genType(m, depth) {
  const r = rnd(depth > 0 ? 14 : 11);
  if (r < 2) return LONG;
  if (r < 4) return STRING;
  if (r < 5) return BOOL;
  if (r < 7) return { k: pick(EXT) };
  if (r < 10 && m.types.length) return { k: 'entity', t: pick(m.types) };
  if (r < 11) return m.commons.length ? { k: 'common', t: pick(m.commons) } : LONG;
  if (r < 13) return { k: 'Set', e: genType(m, depth - 1) };
  return genRecord(m, depth - 1);
}
function genRecord(m, depth) {
  return { k: 'Record', attrs: uniq(some(ATTRS, 4)).map((n) => ({ n, opt: chance(30), t: genType(m, depth) })) };
}
function real(t) {
  while (t.k === 'common') t = t.t.type;
  return t;
}
const full = (ns, n) => (ns ? ns + '::' : '') + n;
function genModel() {
  const m = { types: [], commons: [], actions: [], spaces: pick([[''], ['N'], ['', 'N'], ['N', 'M::K']]) };
  const entity = (ns, base) => m.types.push({ ns, base, name: full(ns, base), parents: [], attrs: { k: 'Record', attrs: [] }, tags: null, ids: null });
  for (const base of ['User', 'Group', 'Doc', 'Color'].slice(0, 2 + rnd(3))) entity(pick(m.spaces), base);
  if (chance(8)) { // the same name in two namespaces: fine, or a shadowing that is refused
    const t = pick(m.types), ns = pick(m.spaces);
    if (ns !== t.ns) entity(ns, t.base);
  }
  for (const base of ['T1', 'T2'].slice(0, rnd(3))) {
    const ns = pick(m.spaces);
    m.commons.push({ ns, base, name: full(ns, base), type: genType({ types: m.types, commons: m.commons.slice() }, 2) });
    use('common type');
  }
  for (const t of m.types) {
    if (t.base === 'Color') {
      t.ids = ['red', 'green'];
      use('enumerated type');
      continue;
    }
    t.parents = uniq(some(m.types.filter((x) => !x.ids || chance(20)), 2));
    t.attrs = genRecord(m, 2);
    if (chance(55)) {
      t.tags = genType(m, 1);
      use('tags');
    }
  }
  const n = 1 + rnd(4);
  for (let i = 0; i < n; i++) {
    const ns = pick(m.spaces);
    const a = { ns, id: pick(['view', 'edit', 'do it', 'all']) + i, parents: [], p: [], r: [], ctx: { k: 'Record', attrs: [] } };
    a.name = full(ns, 'Action') + '::' + q(a.id);
    a.parents = uniq(some(m.actions, 2));
    if (a.parents.length) use('action group');
    if (!chance(15)) {
      a.p = uniq([pick(m.types), ...some(m.types, 1)]);
      a.r = uniq([pick(m.types), ...some(m.types, 1)]);
      const rec = m.commons.filter((c) => real(c.type).k === 'Record');
      a.ctx = rec.length && chance(30) ? { k: 'common', t: pick(rec) } : genRecord(m, 3);
    }
    m.actions.push(a);
  }
  if (m.spaces.some((s) => s)) use('namespace');
  return m;
}

// Human syntax.
const attrName = (n) => (plainName(n) ? n : q(n));
const note = () => (chance(3) ? pick(['@doc("x") ', '@note ', '@doc("a\\n")\n']) : chance(2) ? '// comment { "\n' : '');
function typeText(t, ns) {
  switch (t.k) {
    case 'Set': return `Set<${typeText(t.e, ns)}>`;
    case 'Record': return '{' + t.attrs.map((a) => `${note()}${attrName(a.n)}${a.opt ? '?' : ''}: ${typeText(a.t, ns)}`).join(', ') + (t.attrs.length && chance(10) ? ',' : '') + '}';
    case 'entity':
    case 'common': return t.t.ns === ns && chance(70) ? t.t.base : t.t.name;
    default: return chance(10) ? '__cedar::' + t.k : t.k;
  }
}
const list = (v) => (v.length === 1 && chance(50) ? v[0] : `[${v.join(', ')}]`);
function schemaText(m) {
  let out = '';
  for (const ns of m.spaces) {
    let body = '';
    const rel = (t) => (t.ns === ns && chance(60) ? t.base : t.name);
    for (const c of m.commons.filter((x) => x.ns === ns)) body += `${note()}type ${c.base} = ${typeText(c.type, ns)};\n`;
    for (const t of m.types.filter((x) => x.ns === ns)) {
      if (t.ids) body += `${note()}entity ${t.base} enum [${t.ids.map(q).join(', ')}];\n`;
      else
        body += `${note()}entity ${t.base}${chance(2) ? ', More' : ''}${t.parents.length ? ` in ${list(t.parents.map(rel))}` : ''}` +
          `${chance(50) ? ' =' : ''} ${typeText(t.attrs, ns)}${t.tags ? ` tags ${typeText(t.tags, ns)}` : ''};\n`;
    }
    for (const a of m.actions.filter((x) => x.ns === ns)) {
      const up = a.parents.map((p) => (p.ns === ns && chance(60) ? (chance(50) ? q(p.id) : `Action::${q(p.id)}`) : p.name));
      body += `${note()}action ${plainName(a.id) && chance(50) ? a.id : q(a.id)}${chance(2) ? ', "more"' : ''}${up.length ? ` in ${list(up)}` : ''}`;
      if (a.p.length)
        body += ` appliesTo { principal: ${list(a.p.map(rel))}, resource: ${list(a.r.map(rel))}${
          a.ctx.k === 'Record' && !a.ctx.attrs.length && chance(50) ? '' : `, context: ${typeText(a.ctx, ns)}`}${chance(10) ? ',' : ''} }`;
      if (chance(2)) body += ' attributes {}';
      body += ';\n';
    }
    out += ns ? `${note()}namespace ${ns} {\n${body}}\n` : body;
  }
  if (chance(4))
    out += pick(['entity User;', 'type Long = String;', 'type T9 = T9;', 'entity Z in [Nope];', 'action "q" in ["nope"];', 'entity Action;', 'type Set = Long;',
      'action "z" appliesTo { principal: [], resource: [] };', '}', 'namespace N {}', 'entity Z tags Nope;', 'entity Z {a: Long, a: Long};', 'entity Z enum [];',
      'type T8 = {a: T7}; type T7 = Set<T8>;', 'entity Z enum ["a", "a"];', 'action "s" in ["s"];', 'action "s" in ["t"]; action "t" in ["s"];', 'type Z = Z::Z;',
      'entity Z {a?: Set<>};', 'entity __cedar;', 'namespace __cedar { entity Z; }', 'entity in;', 'type Bool = Long;', 'entity Long;', 'entity Z in Action;',
      'action "x" appliesTo { principal: Nope, resource: Nope };', 'action "x" appliesTo { principal: User };', 'action "x" appliesTo { context: Long };', 'entity Z = Long;',
      '@a @a entity Z;', '@a("\\q") entity Z;', 'entity A1, A1;', 'action "y", "y";', 'type decimal = Long; entity Z {a: decimal};', 'entity ipaddr; entity Z {a: ipaddr};']);
  return out;
}

// JSON syntax, in the spellings that it allows.
function typeJson(t, ns) {
  const name = (x) => (x.ns === ns && chance(60) ? x.base : x.name);
  switch (t.k) {
    case 'Set': return { type: 'Set', element: typeJson(t.e, ns) };
    case 'Record': return recordJson(t, ns);
    case 'entity': return { type: pick(['Entity', 'Entity', 'EntityOrCommon']), name: name(t.t) };
    case 'common': return chance(60) ? { type: name(t.t) } : { type: 'EntityOrCommon', name: name(t.t) };
    case 'Bool':
    case 'Long':
    case 'String': return chance(85) ? { type: t.k === 'Bool' ? 'Boolean' : t.k } : { type: 'EntityOrCommon', name: pick(['', '__cedar::']) + t.k };
    default: return chance(85) ? { type: 'Extension', name: t.k } : { type: 'EntityOrCommon', name: pick(['', '__cedar::']) + t.k };
  }
}
function recordJson(t, ns) {
  const attributes = {};
  for (const a of t.attrs) attributes[a.n] = { ...typeJson(a.t, ns), ...(a.opt ? { required: false } : chance(20) ? { required: true } : {}) };
  return { type: 'Record', attributes, ...(chance(5) ? { additionalAttributes: false } : {}) };
}
function schemaJson(m) {
  const out = {};
  const ann = () => (chance(4) ? { annotations: { doc: 'x', note: '' } } : {});
  for (const ns of m.spaces) {
    const rel = (t) => (t.ns === ns && chance(60) ? t.base : t.name);
    const d = { entityTypes: {}, actions: {} };
    const common = m.commons.filter((x) => x.ns === ns);
    if (common.length || chance(20)) d.commonTypes = Object.fromEntries(common.map((c) => [c.base, { ...typeJson(c.type, ns), ...ann() }]));
    for (const t of m.types.filter((x) => x.ns === ns))
      d.entityTypes[t.base] = t.ids ? { enum: t.ids, ...ann() } : {
        ...(t.parents.length || chance(20) ? { memberOfTypes: t.parents.map(rel) } : {}),
        ...(t.attrs.attrs.length || chance(30) ? { shape: recordJson(t.attrs, ns) } : {}),
        ...(t.tags ? { tags: typeJson(t.tags, ns) } : {}), ...ann(),
      };
    for (const a of m.actions.filter((x) => x.ns === ns)) {
      d.actions[a.id] = ann();
      if (a.parents.length || chance(20))
        d.actions[a.id].memberOf = a.parents.map((p) => ({ id: p.id, ...(p.ns === ns && chance(60) ? {} : { type: full(p.ns, 'Action') }) }));
      if (a.p.length)
        d.actions[a.id].appliesTo = { principalTypes: a.p.map(rel), resourceTypes: a.r.map(rel), ...(a.ctx.k === 'Record' && !a.ctx.attrs.length && chance(50) ? {} : { context: typeJson(a.ctx, ns) }) };
      else if (chance(20)) d.actions[a.id].appliesTo = { principalTypes: [], resourceTypes: [] };
    }
    out[ns] = d;
  }
  if (chance(4)) {
    const d = out[m.spaces[0]];
    pick([
      () => { d.entityTypes.Z = { memberOfTypes: ['Nope'] }; }, () => { d.entityTypes.Z = { shape: { type: 'Long' } }; }, () => { d.entityTypes.Z = { enum: [] }; },
      () => { d.entityTypes.Z = { tags: { type: 'Nope' } }; }, () => { d.entityTypes.Z = { shape: { type: 'Record', attributes: {}, additionalAttributes: true } }; },
      () => { d.entityTypes.Z = { enum: ['a'], memberOfTypes: [] }; }, () => { d.entityTypes.Action = {}; }, () => { d.entityTypes['A b'] = {}; }, () => { d.other = {}; },
      () => { delete d.actions; }, () => { d.actions.s = { memberOf: [{ id: 's' }] }; }, () => { d.actions.s = { memberOf: [{ id: 'nope' }] }; },
      () => { d.actions.s = { appliesTo: { principalTypes: ['Nope'], resourceTypes: [] } }; }, () => { d.actions.s = { appliesTo: { principalTypes: [] } }; },
      () => { d.commonTypes = { ...d.commonTypes, Long: { type: 'String' } }; }, () => { d.commonTypes = { ...d.commonTypes, T9: { type: 'T9' } }; },
      () => { d.commonTypes = { ...d.commonTypes, T9: { type: 'Record' } }; }, () => { d.commonTypes = { ...d.commonTypes, T9: { type: 'Set' } }; },
      () => { d.commonTypes = { ...d.commonTypes, T9: { type: 'Extension', name: 'nope' } }; }, () => { d.entityTypes.Z = { shape: { type: 'Record', attributes: { a: { type: 'Long', required: 1 } } } }; },
      () => { d.entityTypes.Z = { shape: { type: 'Record', attributes: { a: { type: 'Long', extra: 1 } } } }; }, () => { d.actions.s = { attributes: { a: 1 } }; }, () => { out['a b'] = { entityTypes: {}, actions: {} }; },
      () => { out.__cedar = { entityTypes: {}, actions: {} }; }, () => { d.commonTypes = { ...d.commonTypes, Z: { type: 'Entity', name: 'Long' } }; },
    ])();
  }
  return out;
}

// ---- values ---------------------------------------------------------------------------------------------------------
const FN = { decimal: 'decimal', ipaddr: 'ip', datetime: 'datetime', duration: 'duration' };
const GOOD = {
  decimal: ['0.0', '1.5', '-0.25', '922337203685477.5807', '-922337203685477.5808', '1.50', '0.0001'],
  ipaddr: ['10.0.0.1', '10.0.0.0/8', '127.0.0.1', '::1', 'ff02::1', '2001:db8::/32', '224.0.0.5/3', '127.0.0.1/7', '0.0.0.0/0', '::/0', '::ffff:0:1', '239.255.255.255', 'ff00::/8', '::1/127', '10.1.2.3/8'],
  datetime: ['2024-01-01', '1969-12-31T23:59:59Z', '2024-02-29T12:30:00.250+0130', '0000-01-01', '9999-12-31T23:59:59.999Z', '1970-01-01T00:00:00-2359', '1600-02-29', '1969-12-31T23:59:59.999Z'],
  duration: ['1h', '-1d2h', '5ms', '90s', '0ms', '1d1h1m1s1ms', '-1ms', '9223372036854775807ms', '-9223372036854775808ms', '106751991167d', '-1d23h59m59s999ms'],
};
const BAD = {
  decimal: ['1', '1.00000', 'x', '', '922337203685477.5808', '+1.0', '1.', '.5', '1.0e1', ' 1.0', '--1.0'],
  ipaddr: ['10.0.0', '1.2.3.4/33', '::ffff:1.2.3.4', '', '01.2.3.4', '1.2.3.4/08', '::/129', ':::', '1.2.3.4/', 'fe80::1%eth0', '1.2.3.256', 'g::', '1:2:3:4:5:6:7:8:9', '1.2.3.4/+1'],
  datetime: ['2024-13-01', '2024-1-1', '2024-01-01T25:00:00Z', '2023-02-29', '1900-02-29', '2024-01-01T00:00:00', '2024-01-01T00:00Z', '2024-01-01T00:00:00.1Z', '2024-01-01T00:00:00+2400', '2024-01-01T00:00:60Z', '-2024-01-01', '10000-01-01', '2024-01-01t00:00:00Z', '2024-01-01T00:00:00+0060', '2024-00-01', '2024-04-31'],
  duration: ['', '1s1h', '1x', '-', '1h1h', '+1h', '1.5h', '9223372036854775808ms', '106751991168d', ' 1h', '1 h', '1', 'h'],
};
const digits = () => times(1 + rnd(chance(15) ? 16 : 3), () => rnd(10)).join('');
const RANDOM = {
  decimal: () => `${pick(['', '', '-', '+'])}${digits()}.${digits()}`,
  ipaddr: () => {
    const tail = chance(50) ? '' : '/' + pick([0, 1, 3, 4, 7, 8, 9, 24, 31, 32, 33, 64, 127, 128, 129, '08', '']);
    if (chance(50)) return times(chance(95) ? 4 : 3 + rnd(3), () => pick([0, 1, 10, 127, 128, 223, 224, 239, 240, 255, 256, '00'])).join('.') + tail;
    const g = times(1 + rnd(8), () => pick(['0', '1', 'ff00', 'FF02', 'fe80', '0001', '00001', 'abcd']));
    if (chance(70)) g.splice(rnd(g.length + 1), 0, '');
    return g.join(':').replace(/^:/, '::').replace(/:$/, '::').replace(/:::+/, '::') + tail;
  },
  datetime: () => {
    const two = (max) => String(rnd(chance(4) ? 100 : max)).padStart(2, '0');
    const date = `${pick(['0000', '0004', '1600', '1900', '1969', '1970', '2000', '2024', '9999'])}-${two(13)}-${two(32)}`;
    if (chance(30)) return date;
    return `${date}T${two(24)}:${two(60)}:${two(60)}${pick(['', '.000', '.999', '.5', '.123'])}${pick(['Z', 'Z', '+' + two(25) + two(61), '-' + two(25) + two(61), ''])}`;
  },
  duration: () => pick(['', '-']) + ['d', 'h', 'm', 's', 'ms'].filter(() => chance(50)).map((u) => digits() + u).join(''),
};
const extString = (k) => (chance(60) ? pick(GOOD[k]) : chance(60) ? RANDOM[k]() : pick(BAD[k]));
const LONGS = ['0', '1', '-1', '7', '42', '3037000500', '9223372036854775807', '-9223372036854775808', '-9223372036854775807'];
const LETTERS = ['a', 'b', '*', 'é', '😀', '\\', '"', 'x'];
const STRS = ['', 'a', 'ab', 'abc', 'a*b', 'é', 'x y', '10.0.0.1', '1.5', '1h', '2024-01-01', 'line\n', 'k', 'l', '😀'];
const str = () => (chance(75) ? pick(STRS) : times(rnd(6), () => pick(LETTERS)).join(''));
const pattern = () => '"' + (chance(40) ? pick(['*', 'a*', '*b', 'a*b*c', '', 'abc', '*é*', '**', 'a\\*b', '\\u{61}*', '*\\x62'])
  : times(rnd(6), () => pick(['a', 'b', '*', '*', '\\*', 'é', '😀', '\\"', '\\\\'])).join('')) + '"';

function entityId(t) {
  return t.ids ? (chance(92) ? pick(t.ids) : 'blue') : pick(IDS);
}
// typed: in the short forms that only a schema can tell apart.
function genValue(t, depth, loose, typed) {
  if (loose && chance(4)) t = pick([LONG, STRING, BOOL, { k: 'Set', e: LONG }, { k: 'Record', attrs: [] }]);
  t = real(t);
  const again = (x) => genValue(x, depth - 1, loose, typed);
  switch (t.k) {
    case 'Long': return Number(pick(['0', '1', '-1', '7', '42', '9007199254740991', '-9007199254740991']));
    case 'String': return str();
    case 'Bool': return chance(50);
    case 'Set': return times(rnd(3), () => again(t.e));
    case 'entity': {
      const u = { type: t.t.name, id: entityId(t.t) };
      return typed && chance(60) ? u : { __entity: u };
    }
    case 'Record': {
      const o = {};
      for (const a of t.attrs) if (!(a.opt && chance(50)) && !(loose && chance(3))) o[a.n] = again(a.t);
      if (loose && chance(3)) o.extra = 1;
      return o;
    }
    default: {
      const arg = loose && chance(5) ? extString(t.k) : pick(GOOD[t.k]);
      return typed && chance(60) ? (chance(60) ? arg : { fn: FN[t.k], arg }) : { __extn: { fn: FN[t.k], arg } };
    }
  }
}
function genEntities(m, typed) {
  const seen = new Map();
  for (let i = rnd(8); i > 0; i--) {
    const t = pick(m.types);
    const uid = { type: t.name, id: entityId(t) };
    seen.set(t.name + '\0' + uid.id, { t, uid });
  }
  const all = [...seen.values()];
  const out = all.map((e, i) => {
    // To later ones only, but for a cycle now and then, which is refused.
    const near = chance(1) ? all : all.slice(i + 1);
    const parents = uniq(some(near.filter((x) => e.t.parents.includes(x.t) || chance(4)), 3)).map((x) => x.uid);
    if (parents.length) use('entity parents');
    return {
      uid: chance(90) ? e.uid : { __entity: e.uid },
      attrs: e.t.ids ? {} : genValue(e.t.attrs, 3, chance(15), typed),
      parents,
      ...(e.t.tags && chance(75) ? { tags: Object.fromEntries(some(['k', 'l', 'a', ''], 3).map((k) => [k, genValue(e.t.tags, 2, chance(8), typed)])) }
        : chance(1) ? { tags: { k: 1 } } : {}),
    };
  });
  // The actions of the schema may be listed again, all of them (what is not listed is no ancestor there), as they are in it.
  if (chance(6)) {
    const up = (x) => ({ type: full(x.ns, 'Action'), id: x.id }), odd = chance(30) ? pick(m.actions) : null;
    for (const a of m.actions)
      out.push({ uid: up(a), attrs: a === odd && chance(30) ? { a: 1 } : {}, parents: (a === odd ? some(m.actions, 2) : a.parents).map(up) });
    use('action listed');
  }
  if (out.length && chance(1)) out.push(out[0]);
  if (chance(1)) out.push({ uid: { type: 'Nope', id: 'a' }, attrs: {}, parents: [] });
  return out;
}
function genRequests(m, typed) {
  return times(3, () => {
    const a = pick(m.actions);
    const p = a.p.length && chance(94) ? pick(a.p) : pick(m.types), r = a.r.length && chance(94) ? pick(a.r) : pick(m.types);
    return {
      principal: { type: p.name, id: entityId(p) },
      action: { type: full(a.ns, 'Action'), id: chance(98) ? a.id : 'nope' },
      resource: { type: chance(99) ? r.name : 'Nope', id: entityId(r) },
      context: genValue(a.ctx, 3, chance(12), typed),
    };
  });
}

// ---- expressions ----------------------------------------------------------------------------------------------------
// Of a wanted type, from paths that have it where there are any; now and then of another type. Each has a precedence, so that
// parentheses can be left out where the grammar allows it: 0 if, 1 ||, 2 &&, 3 relation, 4 +, 5 *, 6 unary, 7 member.
let sloppy = false; // this policy: no more parentheses than needed, and sometimes fewer
const at = (prec, e) => (e.p >= prec && (sloppy || e.p === 7) ? e.s : sloppy && chance(1) ? e.s : `(${e.s})`);
const member = (s) => ({ s, p: 7 });
function paths(env, want) {
  const out = [];
  const go = (text, t, depth, guards, ops) => {
    t = real(t);
    if (want(t)) out.push({ text, guards, ops });
    const rec = t.k === 'Record' ? t : t.k === 'entity' ? t.t.attrs : null;
    if (rec && depth > 0)
      for (const a of rec.attrs) {
        const dot = plainName(a.n) && chance(80);
        go(dot ? `${text}.${a.n}` : `${text}[${q(a.n)}]`, a.t, depth - 1,
          a.opt ? [...guards, `${text} has ${plainName(a.n) ? a.n : q(a.n)}`] : guards, [...ops, dot ? '.' : '[]']);
      }
  };
  go('principal', { k: 'entity', t: env.p }, 2, [], []);
  go('resource', { k: 'entity', t: env.r }, 2, [], []);
  go('context', env.a.ctx, 3, [], []);
  return out;
}
const uidText = (t) => `${t.name}::${q(entityId(t))}`;
function call(k, s) {
  use(FN[k]);
  return `${FN[k]}(${q(s)})`;
}
function lit(env, t) {
  t = real(t);
  switch (t.k) {
    case 'Long': {
      const n = pick(LONGS);
      return n[0] === '-' ? { s: n, p: 6 } : member(n);
    }
    case 'String': return member(q(str()));
    case 'Bool': return member(pick(['true', 'false']));
    case 'entity': return member(uidText(t.t));
    case 'Set': use('set literal'); return member(`[${times((chance(95) ? 1 : 0) + rnd(3), () => lit(env, t.e).s).join(', ')}${chance(2) ? ',' : ''}]`);
    case 'Record': use('record literal'); return member(`{${t.attrs.map((a) => `${chance(70) || !plainName(a.n) ? q(a.n) : a.n}: ${lit(env, a.t).s}`).join(', ')}}`);
    default: return member(call(t.k, chance(92) ? pick(GOOD[t.k]) : extString(t.k)));
  }
}
const same = (a, b) => a.k === b.k && (a.k !== 'entity' || a.t === b.t) && (a.k !== 'Set' || same(real(a.e), real(b.e))) && a.k !== 'Record';
const anyType = (env) => pick([LONG, STRING, BOOL, { k: 'entity', t: pick(env.m.types) }, { k: 'entity', t: env.p }, { k: pick(EXT) }, { k: 'Set', e: LONG }, { k: 'Set', e: STRING },
  { k: 'Set', e: { k: pick(EXT) } }, { k: 'Record', attrs: [{ n: pick(ATTRS), opt: false, t: pick([LONG, STRING]) }] }]);
const ent = (env) => ({ k: 'entity', t: pick([env.p, env.r, pick(env.m.types)]) });
const method = (x, name, ...args) => {
  use(name);
  return member(`${at(7, x)}.${name}(${args.map((a) => a.s).join(', ')})`);
};
const binary = (l, op, r, p) => {
  use(op);
  return { s: `${at(op === '&&' || op === '||' || p > 3 ? p : p + 1, l)} ${op} ${at(p + 1, r)}`, p };
};
function cond(env, depth, f) {
  use('if');
  return { s: `if ${boolExpr(env, depth - 1).s} then ${f().s} else ${f().s}`, p: 0 };
}
function expr(env, t, depth) {
  if (chance(2)) t = anyType(env);
  t = real(t);
  if (chance(60)) {
    const ps = paths(env, (x) => same(x, t));
    if (ps.length) {
      const p = pick(ps);
      env.guards.push(...p.guards);
      for (const o of p.ops) use(o);
      return member(p.text);
    }
  }
  if (depth <= 0) return t.k === 'Bool' ? boolExpr(env, 0) : lit(env, t);
  const e = (x) => expr(env, x, depth - 1);
  if (chance(6)) return cond(env, depth, () => e(t));
  if (chance(6)) {
    const tagged = env.m.types.filter((x) => x.tags && same(real(x.tags), t));
    if (tagged.length) {
      const x = e({ k: 'entity', t: pick(tagged) }), k = chance(70) ? member(q(pick(['k', 'l', 'a']))) : e(STRING);
      if (chance(80)) {
        use('hasTag');
        env.guards.push(`${at(7, x)}.hasTag(${k.s})`);
      }
      return method(x, 'getTag', k);
    }
  }
  if (chance(3)) {
    use('record literal');
    const dot = chance(60);
    use(dot ? '.' : '[]');
    return member(`{a: ${e(t).s}, ${q('x y')}: ${e(anyType(env)).s}}${dot ? '.a' : '["a"]'}`);
  }
  switch (t.k) {
    case 'Bool': return boolExpr(env, depth);
    case 'Long':
      return pick([
        () => lit(env, t), () => binary(e(t), pick(['+', '-']), e(t), 4), () => binary(e(t), '*', e(t), 5),
        () => { use('neg'); return { s: `${pick(['-', '-', '--'])}${at(7, chance(50) ? lit(env, t) : e(t))}`, p: 6 }; },
        () => method(e({ k: 'duration' }), pick(['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'])),
      ])();
    case 'datetime': return pick([() => lit(env, t), () => method(e(t), 'toDate'), () => method(e(t), 'offset', e({ k: 'duration' }))])();
    case 'duration': return pick([() => lit(env, t), () => method(e({ k: 'datetime' }), 'toTime'), () => method(e({ k: 'datetime' }), 'durationSince', e({ k: 'datetime' }))])();
    case 'Set': use('set literal'); return member(`[${times((chance(96) ? 1 : 0) + rnd(3), () => e(t.e).s).join(', ')}]`);
    case 'Record': use('record literal'); return member(`{${t.attrs.map((a) => `${q(a.n)}: ${e(a.t).s}`).join(', ')}}`);
    default:
      if (EXT.includes(t.k) && chance(6)) {
        use(FN[t.k]);
        return member(`${FN[t.k]}(${e(STRING).s})`);
      }
      return lit(env, t);
  }
}
const hasPath = () => pick(['a', 'b', 'name', '"x y"', 'owner.name', 'a.b.c', 'owner.owner', 'zz', '"if"', '""', 'b.a', 'when']);
function atom(env, depth) {
  const e = (t) => expr(env, t, depth - 1);
  const t = anyType(env), act = () => pick(env.m.actions).name;
  return pick([
    () => binary(e(t), pick(['==', '!=']), chance(94) ? e(t) : e(anyType(env)), 3),
    () => { const o = pick([LONG, LONG, { k: 'datetime' }, { k: 'duration' }]); return binary(e(o), pick(['<', '<=', '>', '>=']), e(o), 3); },
    () => binary(e(ent(env)), 'in', e(ent(env)), 3),
    () => { use('in set'); return binary(e(ent(env)), 'in', member(`[${times(rnd(4), () => e(ent(env)).s).join(', ')}]`), 3); },
    () => { use('in set'); return binary(e(ent(env)), 'in', e({ k: 'Set', e: ent(env) }), 3); },
    () => ({ s: pick([() => `action in ${act()}`, () => `action ${pick(['==', '!='])} ${act()}`, () => `action in [${act()}, ${act()}]`, () => `${act()} in action`, () => `action is ${full(pick(env.m.spaces), 'Action')}`])(), p: 3 }),
    () => { use('is'); return { s: `${at(4, e(ent(env)))} is ${pick(env.m.types).name}`, p: 3 }; },
    () => { use('is in'); return { s: `${at(4, e(ent(env)))} is ${pick(env.m.types).name} in ${at(4, chance(80) ? e(ent(env)) : e({ k: 'Set', e: ent(env) }))}`, p: 3 }; },
    () => { const p = hasPath(); use(p.includes('.') ? 'has path' : 'has'); return { s: `${at(4, chance(60) ? member(pick(['principal', 'resource', 'context'])) : e(chance(85) ? ent(env) : t))} has ${p}`, p: 3 }; },
    () => { use('like'); return { s: `${at(4, e(STRING))} like ${pattern()}`, p: 3 }; },
    () => method(e({ k: 'Set', e: t }), 'contains', e(t)),
    () => method(e({ k: 'Set', e: t }), pick(['containsAll', 'containsAny']), e({ k: 'Set', e: t })),
    () => method(e({ k: 'Set', e: t }), 'isEmpty'),
    () => method(e({ k: 'decimal' }), pick(['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual']), e({ k: 'decimal' })),
    () => method(e({ k: 'ipaddr' }), pick(['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'])),
    () => method(e({ k: 'ipaddr' }), 'isInRange', e({ k: 'ipaddr' })),
    () => method(e(ent(env)), 'hasTag', chance(70) ? member(q(pick(['k', 'l']))) : e(STRING)),
    () => e(BOOL),
    () => member(pick(['true', 'false'])),
    () => binary(e(t), pick(['<', '<=', '>', '>=']), e(t), 3),
    () => {
      const tagged = env.m.types.filter((y) => y.tags && real(y.tags).k !== 'Record');
      if (!tagged.length) return e(BOOL);
      const y = pick(tagged), x = e({ k: 'entity', t: y }), k = chance(80) ? member(q(pick(['k', 'l', 'a']))) : e(STRING);
      return { s: `${method(x, 'hasTag', k).s} && ${binary(method(x, 'getTag', k), '==', e(y.tags), 3).s}`, p: 2 };
    },
  ])();
}
// A guard as it should be, as it proves nothing, or in a form that still proves it.
function guard(env, g) {
  const b = () => pick(['true', 'false', 'context has a', 'principal has name', 'resource has owner', 'principal == resource']);
  if (chance(78)) return g;
  use('roundabout guard');
  return '(' + pick([
    () => `${g} || ${b()}`, () => `${b()} || ${g}`, () => `${g} || ${g}`, () => `!(!(${g}))`, () => `!(${g})`, () => `${g} && ${b()}`, () => `${b()} && ${g}`,
    () => `if ${g} then ${b()} else ${b()}`, () => `if ${b()} then ${g} else ${b()}`, () => `if ${b()} then ${g} else ${g}`, () => `if ${g} then ${b()} else ${g}`, () => `if ${g} then true else false`, () => `if ${b()} then ${b()} else ${g}`,
    () => `(${g} && ${b()}) || (${b()} && ${g})`, () => `(${g}) == true`,
  ])() + ')';
}
function guarded(env, f) {
  const save = env.guards;
  env.guards = [];
  let e = f();
  if (chance(88))
    for (const g of uniq(env.guards).reverse()) {
      use('&&');
      use(g.includes('hasTag') ? 'hasTag' : 'has');
      e = chance(4) ? { s: `if ${guard(env, g)} then ${e.s} else ${pick(['true', 'false'])}`, p: 0 } : { s: `${guard(env, g)} && ${at(3, e)}`, p: 2 };
    }
  env.guards = save;
  return e;
}
function boolExpr(env, depth) {
  if (depth <= 0) return chance(70) ? member(pick(['true', 'false'])) : (use('has'), { s: 'context has a', p: 3 });
  const b = () => boolExpr(env, depth - 1);
  switch (rnd(9)) {
    case 0: return binary(b(), '&&', b(), 2);
    case 1: return binary(b(), '||', b(), 1);
    case 2: use('!'); return { s: pick(['!', '!', '!!']) + at(7, b()), p: 6 };
    case 3: return cond(env, depth, b);
    default: return guarded(env, () => atom(env, depth));
  }
}

// ---- probes ---------------------------------------------------------------------------------------------------------
// One operation on literals and variables that cannot fail by themselves: whether it gave a value or an error is the operation's own.
const ENT = { k: 'ent' }, REC = { k: 'rec' }, SET = { k: 'set' }, ENTS = { k: 'ents' };
const dec = { k: 'decimal' }, ipa = { k: 'ipaddr' }, dt = { k: 'datetime' }, du = { k: 'duration' };
const PROBES = [
  ['==', ['any', 'any'], BOOL, (a, b) => `${a} == ${b}`, 'total'], ['!=', ['any', 'any'], BOOL, (a, b) => `${a} != ${b}`, 'total'],
  ...['<', '<=', '>', '>='].flatMap((o) => [LONG, dt, du].map((t) => [o, [t, t], BOOL, (a, b) => `${a} ${o} ${b}`])),
  ...['+', '-', '*'].map((o) => [o, [LONG, LONG], LONG, (a, b) => `${a} ${o} ${b}`]), ['neg', [LONG], LONG, (a) => `-${a}`], ['!', [BOOL], BOOL, (a) => `!${a}`],
  ['&&', [BOOL, BOOL], BOOL, (a, b) => `${a} && ${b}`], ['||', [BOOL, BOOL], BOOL, (a, b) => `${a} || ${b}`], ['if', [BOOL, LONG, LONG], LONG, (a, b, c) => `if ${a} then ${b} else ${c}`],
  ['in', [ENT, ENT], BOOL, (a, b) => `${a} in ${b}`], ['in set', [ENT, ENTS], BOOL, (a, b) => `${a} in ${b}`],
  ['is', [ENT], BOOL, (a, m) => `${a} is ${m}`], ['is in', [ENT, ENT], BOOL, (a, b, m) => `${a} is ${m} in ${b}`],
  ['has', [REC], BOOL, (a) => `${a} has ${pick(['a', '"x y"', '"if"', 'b', 'zz'])}`], ['has path', [REC], BOOL, (a) => `${a} has ${pick(['a.b', 'c.a', 'c.c', 'b.a.c', 'zz.a'])}`],
  ['.', [REC], 'any', (a) => `${a}.${pick(['a', 'b', 'c', 'zz'])}`], ['[]', [REC], 'any', (a) => `${a}[${pick(['"x y"', '"a"', '"if"', '""'])}]`], ['like', [STRING], BOOL, (a) => `${a} like ${pattern()}`],
  ['set literal', ['any', 'any'], SET, (a, b) => `[${a}, ${b}]`, 'total'], ['record literal', ['any', 'any'], REC, (a, b) => `{a: ${a}, "x y": ${b}}`, 'total'],
  ['contains', [SET, 'any'], BOOL, (a, b) => `${a}.contains(${b})`], ['containsAll', [SET, SET], BOOL, (a, b) => `${a}.containsAll(${b})`],
  ['containsAny', [SET, SET], BOOL, (a, b) => `${a}.containsAny(${b})`], ['isEmpty', [SET], BOOL, (a) => `${a}.isEmpty()`],
  ['hasTag', [ENT, STRING], BOOL, (a, b) => `${a}.hasTag(${b})`], ['getTag', [ENT, STRING], 'any', (a, b) => `${a}.getTag(${b})`],
  ...EXT.map((k) => [FN[k], [STRING], { k }, (a) => `${FN[k]}(${a})`, k]),
  ...['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual'].map((n) => [n, [dec, dec], BOOL, (a, b) => `${a}.${n}(${b})`]),
  ...['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'].map((n) => [n, [ipa], BOOL, (a) => `${a}.${n}()`]), ['isInRange', [ipa, ipa], BOOL, (a, b) => `${a}.isInRange(${b})`],
  ['offset', [dt, du], dt, (a, b) => `${a}.offset(${b})`], ['durationSince', [dt, dt], du, (a, b) => `${a}.durationSince(${b})`],
  ['toDate', [dt], dt, (a) => `${a}.toDate()`], ['toTime', [dt], du, (a) => `${a}.toTime()`],
  ...['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'].map((n) => [n, [du], LONG, (a) => `${a}.${n}()`]),
];
export const OPS = uniq(PROBES.map((p) => p[0]));
export const TOTAL = new Set(PROBES.filter((p) => p[4] === 'total').map((p) => p[0]));
function probeLit(env, t) {
  if (t === 'any') t = pick([LONG, STRING, BOOL, ENT, REC, SET, dec, ipa, dt, du]);
  const scalar = () => probeLit(env, pick([LONG, STRING, BOOL, ENT, { k: pick(EXT) }]));
  switch (t.k) {
    case 'ent': {
      if (chance(40)) return pick(['principal', 'resource', 'action']);
      if (!env.known.length || chance(40)) return uidText(pick(env.m.types));
      const u = pick(env.known);
      return `${u.type}::${q(u.id)}`;
    }
    case 'ents': return chance(90) ? `[${times(rnd(4), () => probeLit(env, ENT)).join(', ')}]` : `[${probeLit(env, ENT)}, ${scalar()}]`;
    case 'rec': return chance(30) ? pick(['context', 'principal', 'resource']) : `{${['a', '"x y"', '"if"', 'c', 'b'].filter(() => chance(70)).map((k) => `${k}: ${k === 'c' ? '{a: 1, "c": "x"}' : scalar()}`).join(', ')}}`;
    case 'set': return `[${times(rnd(4), () => (chance(50) ? pick(['1', '"a"', 'ip("::1")']) : probeLit(env, chance(90) ? env.one : 'any'))).join(', ')}]`;
    default: {
      const s = EXT.includes(t.k) ? `${FN[t.k]}(${q(pick(GOOD[t.k]))})` : lit(env, t).s;
      const other = EXT.includes(t.k) ? `${FN[t.k]}(${q(pick(GOOD[t.k]))})` : s;
      return s[0] === '-' || chance(30) ? `(if context has "never there" then ${other} else ${s})` : s;
    }
  }
}
// Now and then an argument of another type.
function probe(env) {
  const name = pick(OPS), [, sig, out, f, kind] = pick(PROBES.filter((p) => p[0] === name));
  env.one = pick([LONG, STRING, BOOL, ENT, { k: pick(EXT) }]);
  const wrong = sig.filter((t) => t !== 'any').length > 1 ? 18 : 28;
  const args = sig.map((t) => (t !== 'any' && chance(wrong) ? probeLit(env, 'any') : EXT.includes(kind) && chance(85) ? q(extString(kind)) : probeLit(env, t)));
  if (name.endsWith('Tag') && env.tagged.length && chance(70)) {
    const e = pick(env.tagged);
    args[0] = `${e.uid.type}::${q(e.uid.id)}`;
    args[1] = q(pick(Object.keys(e.tags)));
  }
  if (name === 'contains' && chance(40)) args[1] = pick(['1', '"a"', 'ip("::1")']);
  if (kind === 'total' && chance(40)) args[1] = args[0];
  used = new Set([name]);
  if (name === 'is in' && chance(30)) args[1] = args[0];
  const type = /^[A-Za-z_][\w:]*::"/.test(args[0]) && chance(60) ? args[0].slice(0, args[0].lastIndexOf('::"')) : pick(env.m.types).name;
  let s = `(${f(...args, type)})`;
  if (out !== BOOL)
    s = out.k === 'Long' && chance(60) ? `${s} ${pick(['<', '>=', '=='])} ${pick(LONGS)}` : chance(50) ? `${s} == ${s}` : `${s} == ${probeLit(env, out)}`;
  return { op: name, text: `permit(principal, action, resource) when { ${s} };` };
}

// ---- policies -------------------------------------------------------------------------------------------------------
function scopeText(m, v, t, slot) {
  const E = () => uidText(chance(70) ? t : pick(m.types));
  if (slot) {
    const s = '?' + v;
    return pick([() => (use('slot =='), `${v} == ${s}`), () => (use('slot in'), `${v} in ${s}`), () => (use('slot is in'), `${v} is ${t.name} in ${s}`)])();
  }
  return pick([v, v, v, `${v} == ${E()}`, `${v} in ${E()}`, `${v} is ${t.name}`, `${v} is ${t.name} in ${E()}`]);
}
const ODD = [' when { 1 +', ' when { foo(1) }', ' when { context.x == "\\q" }', ' when {}', ' when { a::b }', ' when { 1 < 2 < 3 }', ' when { !!!!!true }', ' when { -----1 == 1 }', ' when { [1][0] }',
  ' when { {a:1,a:2}.a == 1 }', ' when { isIpv4(ip("::1")) }', ' when { "1.0".decimal() == 1 }', ' when { decimal() == 1 }', ' when { ip("::1", 2) == 1 }', ' when { ip("::1").isIpv4(1) }',
  ' when { [1].contains() }', ' when { [1].isEmpty(1) }', ' when { principal.getTag() }', ' when { 9223372036854775808 == 1 }', ' when { -9223372036854775808 == 1 }', ' when { - 9223372036854775808 == 1 }',
  ' when { --9223372036854775808 == 1 }', ' when { 1 = 1 }', ' when { 1 / 2 == 1 }', ' when { principal has a.if }', ' when { principal has "a".b }', ' when { principal has a["b"] }', ' when { principal is "U" }',
  ' when { principal in resource in resource }', ' when { ?principal == principal }', ' when { "a" like 1 }', ' when { "a" like principal }', ' when { ip("::1").nope() }', ' when { principal.if == 1 }',
  ' when { {if: 1}.if == 1 }', ' when { {"if": 1}["if"] == 1 }', ' when { (((true))) }', ' when { principal.a.contains }', ' when { action.a == 1 }', ' when { !-1 == 1 }', ' when { -!true }',
  ' when { if true then 1 else 2 == 2 }', ' when { true || if true then true else false }', ' when { 1 + if true then 1 else 2 == 2 }', ' when { principal == User::{a: 1} }', ' when { User::"a".b == 1 }',
  ' when { "\\u{110000}" == "" }', ' when { "\\u{d800}" == "" }', ' when { "\\x80" == "" }', ' when { "a\nb" == "" }', ' when { principal has if }', ' when { true } when { true, }', ' unless { } ',
  ' when { principal.a::b }', ' when { __cedar::T::"a" == 1 }', ' when { principal is __cedar::T }', ' when { context["a" ] == 1 } ', ' when { context[a] == 1 }', ' when { 01 == 1 }', ' when { 1a == 1 }',
  ' when { decimal("1.0") < decimal("2.0") }', ' when { offset(datetime("2024-01-01"), duration("1h")) == 1 }', ' when { [] == [] }', ' when { [].isEmpty() }', ' when { principal in [] }', ' when { [[], [1]].contains([]) }'];
function policyText(m, template) {
  const usable = m.actions.filter((a) => a.p.length);
  const a = usable.length ? pick(usable) : pick(m.actions);
  const env = { m, a, p: a.p.length ? pick(a.p) : pick(m.types), r: a.r.length ? pick(a.r) : pick(m.types), guards: [] };
  sloppy = chance(60);
  used = new Set();
  const act = pick([`action == ${a.name}`, `action == ${a.name}`, `action in ${a.name}`, `action in [${a.name}${chance(50) ? ', ' + pick(m.actions).name : ''}]`, 'action']);
  const slots = template ? pick([[1, 0], [0, 1], [1, 1]]) : [0, 0];
  let s = chance(15) ? pick(['@id("x") ', '@a @b("") ', '@if("y")\n', '@doc("\\u{e9}") // @\n', '@a("1") @a("2") ']) : '';
  if (s) use('annotation');
  const forbid = chance(30);
  if (forbid) use('forbid');
  s += `${forbid ? 'forbid' : 'permit'}(${scopeText(m, 'principal', env.p, slots[0])}, ${act}, ${scopeText(m, 'resource', env.r, slots[1])})`;
  for (let i = rnd(3); i > 0; i--) {
    const when = chance(80);
    if (!when) use('unless');
    s += `\n  ${when ? 'when' : 'unless'} { ${(chance(60) ? guarded(env, () => atom(env, 3)) : boolExpr(env, 3)).s} }`;
  }
  if (chance(2)) s += pick(ODD);
  return { text: s + ';', used, slots };
}
function genLinks(m, templates, requests) {
  return templates.flatMap((t, i) => times(1 + rnd(3), (_, k) => {
    const values = {};
    const put = (want, slot) => {
      if (!chance(want ? 98 : 1)) return;
      const x = pick(m.types);
      values[slot] = chance(75) ? pick(requests)[slot.slice(1)] : { type: x.name, id: entityId(x) };
    };
    put(t.slots[0], '?principal');
    put(t.slots[1], '?resource');
    return { templateId: chance(99) ? t.id : 'nope', newId: chance(99) ? `link${i}_${k}` : 'policy0', values };
  }));
}

// {schema, policies, templates, links, entities, requests, typed}: what both sides see. meta: what the case is about.
export function genCase() {
  const marks = new Set();
  used = marks;
  const m = genModel(), json = chance(40), typed = chance(15), kind = rnd(100);
  const schema = json ? schemaJson(m) : schemaText(m);
  use(json ? 'schema in JSON' : 'schema in text');
  const entities = genEntities(m, typed), requests = genRequests(m, typed);
  let list, templates = [];
  if (kind < 40) {
    const uids = entities.map((e) => e.uid.__entity || e.uid).filter((u) => u.type !== 'Nope');
    const env = { m, guards: [], known: uids, tagged: entities.filter((e) => !e.uid.__entity && e.tags && Object.keys(e.tags).length) };
    list = times(10, () => { const p = probe(env); return { text: p.text, used, op: p.op }; });
  } else {
    list = times(1 + rnd(4), () => policyText(m, false));
    if (kind < 62) templates = times(1 + rnd(2), (_, i) => ({ ...policyText(m, chance(98)), id: 'template' + i }));
  }
  const links = genLinks(m, templates, requests);
  if (templates.length) marks.add('template');
  if (links.length) marks.add('link');
  return {
    c: { schema, policies: list.map((p) => p.text).join('\n'), templates: templates.map((t) => ({ id: t.id, text: t.text })), links, entities, requests, typed },
    meta: { marks, policies: list, templates },
  };
}
