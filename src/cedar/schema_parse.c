/* Schemas in human syntax: text to declarations. Spec 3.5. Hostile text: nesting is counted,
 * every loop takes a token. */
#include "cedar/parse.h"
#include "cedar/schema.h"
#include "cedar/schema_priv.h"
#include "cedar/smap.h"

#include "base/ban.h"

struct sp {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	struct cedar_lex lex;
	struct cedar_tok cur;
	struct cedar_schema_src *out;
	struct schema_caps caps;
	unsigned depth;
	bool dead;
};

static void advance(struct sp *p)
{
	p->cur = cedar_lex_next(&p->lex);
}

static bool is(const struct sp *p, const char *text)
{
	return (p->cur.kind == CEDAR_T_PUNCT || p->cur.kind == CEDAR_T_IDENT) &&
	       sv_eq(p->cur.text, sv_c(text));
}

static bool eat(struct sp *p, const char *text)
{
	if (p->dead || !is(p, text))
		return false;
	advance(p);
	return true;
}

static void *error(struct sp *p, const struct cedar_span *at, const char *what)
{
	if (!p->dead)
		cedar_diag_add(p->ds, CEDAR_ERROR, "schema", at, NULL, "%s", what);
	p->dead = true;
	return NULL;
}

static void *unexpected(struct sp *p, const char *expected)
{
	static const sv words[] = { SV_INIT("entity"), SV_INIT("action"), SV_INIT("type"),
		SV_INIT("namespace"), SV_INIT("appliesTo"), SV_INIT("principal"),
		SV_INIT("resource"), SV_INIT("context"), SV_INIT("enum"), SV_INIT("tags") };
	sv near = p->cur.kind == CEDAR_T_IDENT
	              ? cedar_nearest(p->cur.text, words, sizeof(words) / sizeof(words[0]))
	              : (sv){ NULL, 0 };
	size_t n = p->ds->n;
	const char *hint;

	if (!p->dead)
		cedar_tok_unexpected(p->ds, &p->cur, expected);
	if (p->ds->n > n && p->ds->d[n].hint.n == 0 && near.n != 0 && !sv_eq(near, p->cur.text)) {
		hint = arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
		p->ds->d[n].hint = sv_c(hint);
	}
	p->dead = true;
	return NULL;
}

static void *nomem(struct sp *p)
{
	return error(p, &p->cur.span, "out of memory");
}

static bool need(struct sp *p, const char *text)
{
	static const char *const quoted[] = { ";", "`;`", ":", "`:`", "{", "`{`", "}", "`}`", "[",
		"`[`", "]", "`]`", ">", "`>`", "=", "`=`", ")", "`)`" };
	size_t i;

	if (eat(p, text))
		return true;
	for (i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i += 2)
		if (strcmp(quoted[i], text) == 0)
			return unexpected(p, quoted[i + 1]) != NULL;
	return unexpected(p, NULL) != NULL;
}

/* A word that is no reserved one. __cedar may start a path but not be declared. */
static cedar_sym ident(struct sp *p, bool declared)
{
	cedar_sym s;

	if (p->cur.kind != CEDAR_T_IDENT)
		return unexpected(p, "identifier");
	if (cedar_is_reserved(p->cur.text) && (declared || !sv_eq(p->cur.text, SV("__cedar")))) {
		if (!p->dead)
			cedar_diag_add(p->ds, CEDAR_ERROR, "schema", &p->cur.span, NULL,
			    "this identifier is reserved and cannot be used: `" SV_FMT "`",
			    SV_ARG(p->cur.text));
		p->dead = true;
		return NULL;
	}
	s = cedar_intern(p->t, p->cur.text);
	if (s == NULL)
		return nomem(p);
	advance(p);
	return s;
}

static cedar_sym string(struct sp *p)
{
	cedar_sym s;

	if (p->cur.kind != CEDAR_T_STRING)
		return unexpected(p, "string");
	s = cedar_tok_string(p->t, p->a, &p->cur, p->ds);
	if (s == NULL)
		p->dead = true;
	advance(p);
	return s;
}

/* ident | string */
static cedar_sym name(struct sp *p)
{
	return p->cur.kind == CEDAR_T_STRING ? string(p) : ident(p, false);
}

static cedar_sym join(struct sp *p, cedar_sym a, cedar_sym b)
{
	cedar_sym s = schema_join(p->t, p->a, a, b);

	return s != NULL ? s : nomem(p);
}

/* ident { :: ident }; with id, a last part in quotes is allowed and goes there. */
static cedar_sym path(struct sp *p, cedar_sym *id)
{
	cedar_sym s = ident(p, false), part;

	while (s != NULL && eat(p, "::")) {
		if (id != NULL && p->cur.kind == CEDAR_T_STRING) {
			*id = string(p);
			return *id != NULL ? s : NULL;
		}
		part = ident(p, false);
		s = part != NULL ? join(p, s, part) : NULL;
	}
	return s;
}

static bool annotations(struct sp *p, struct cedar_annotation **out, uint32_t *n_out)
{
	struct cedar_annotation *v = NULL;
	size_t n = 0, cap = 0, i;

	while (is(p, "@")) {
		struct cedar_span at = p->cur.span;

		v = schema_room(p->a, v, n, &cap, sizeof(*v));
		if (v == NULL)
			return nomem(p) != NULL;
		advance(p);
		if (p->cur.kind != CEDAR_T_IDENT)
			return unexpected(p, "identifier") != NULL;
		v[n].key = cedar_intern(p->t, p->cur.text);
		v[n].value = cedar_intern(p->t, SV(""));
		v[n].span = at;
		advance(p);
		if (eat(p, "(")) {
			v[n].value = string(p);
			v[n].has_value = true;
			if (v[n].value == NULL || !need(p, ")"))
				return false;
		}
		if (v[n].key == NULL || v[n].value == NULL)
			return nomem(p) != NULL;
		for (i = 0; i < n; i++)
			if (v[i].key == v[n].key)
				return error(p, &at, "duplicate annotation") != NULL;
		if (++n > 1024)
			return error(p, &at, "a declaration has more than 1024 annotations") !=
			       NULL;
	}
	*out = v;
	*n_out = (uint32_t)n;
	return true;
}

static struct cedar_sty *type(struct sp *p);

static struct cedar_sty *sty(struct sp *p, enum cedar_sty_kind k, const struct cedar_span *at)
{
	struct cedar_sty *s = ARENA_NEW(p->a, struct cedar_sty);

	if (s == NULL)
		return nomem(p);
	s->kind = k;
	s->span = *at;
	return s;
}

/* Where an attribute goes: at the end (n), or over an earlier one of its name. SIZE_MAX without
 * memory. */
static size_t attr_place(struct smap *seen, cedar_sym name, size_t n)
{
	uintptr_t have = (uintptr_t)smap_get(seen, name, NULL);

	if (have != 0)
		return have - 1;
	/* The map holds the place as a number; it is never followed. */
	return smap_add(seen, name, NULL, (void *)(n + 1)) < 0 ? SIZE_MAX : n;
}

/* { attrs }; the current token is the brace. */
static struct cedar_sty *record(struct sp *p)
{
	struct cedar_sty *s = sty(p, CEDAR_STY_RECORD, &p->cur.span);
	struct cedar_sattr *v = NULL;
	size_t n = 0, cap = 0, same;
	AUTO_SMAP seen = { 0 };

	if (s == NULL || !need(p, "{"))
		return NULL;
	while (!is(p, "}")) {
		struct cedar_sattr at = { .required = true };
		struct cedar_span where;

		if (!annotations(p, &at.ann, &at.n_ann))
			return NULL;
		where = p->cur.span;
		at.name = name(p);
		if (at.name == NULL)
			return NULL;
		at.required = !eat(p, "?");
		if (!need(p, ":"))
			return NULL;
		at.type = type(p);
		if (at.type == NULL)
			return NULL;
		v = schema_room(p->a, v, n, &cap, sizeof(*v));
		if (v == NULL)
			return nomem(p);
		same = attr_place(&seen, at.name, n);
		if (same == SIZE_MAX)
			return nomem(p);
		v[same] = at;
		if (same == n)
			n++;
		else
			cedar_diag_add(p->ds, CEDAR_WARNING, "schema", &where, NULL,
			    "attribute `" SV_FMT "` is declared twice; the last declaration holds",
			    SV_ARG(cedar_sv(at.name)));
		if (!eat(p, ","))
			break;
	}
	if (!need(p, "}"))
		return NULL;
	s->attr = v;
	s->n_attr = (uint32_t)n;
	return s;
}

static struct cedar_sty *type(struct sp *p)
{
	struct cedar_span at = p->cur.span;
	struct cedar_sty *s = NULL;

	if (++p->depth > CEDAR_SCHEMA_MAX_DEPTH)
		return error(p, &at, "the type is nested deeper than 64 levels");
	if (is(p, "{")) {
		s = record(p);
	} else {
		cedar_sym n = path(p, NULL);

		if (n == NULL)
			return NULL;
		if (sv_eq(cedar_sv(n), SV("Set")) && is(p, "<")) {
			advance(p);
			s = sty(p, CEDAR_STY_SET, &at);
			if (s == NULL)
				return NULL;
			s->elem = type(p);
			if (s->elem == NULL || !need(p, ">"))
				return NULL;
		} else {
			s = sty(p, CEDAR_STY_NAME, &at);
			if (s != NULL) {
				s->name = n;
				s->span.len = (uint32_t)n->n;
			}
		}
	}
	p->depth--;
	return s;
}

/* path | "[" [ path {, path} ] "]" */
static bool types(struct sp *p, const cedar_sym **out, uint32_t *n_out)
{
	cedar_sym *v = NULL;
	size_t n = 0, cap = 0;
	bool many = eat(p, "[");

	while (!many || !is(p, "]")) {
		v = schema_room(p->a, v, n, &cap, sizeof(*v));
		if (v == NULL)
			return nomem(p) != NULL;
		v[n] = path(p, NULL);
		if (v[n] == NULL)
			return false;
		n++;
		if (!many || !eat(p, ","))
			break;
		if (is(p, "]"))
			return unexpected(p, "identifier") != NULL;
	}
	if (many && !need(p, "]"))
		return false;
	*out = v;
	*n_out = (uint32_t)n;
	return true;
}

static bool names(
    struct sp *p, bool strings, cedar_sym **out, struct cedar_span **at, size_t *n_out)
{
	cedar_sym *v = NULL;
	struct cedar_span *w = NULL;
	size_t n = 0, cap_v = 0, cap_w = 0;

	do {
		v = schema_room(p->a, v, n, &cap_v, sizeof(*v));
		w = schema_room(p->a, w, n, &cap_w, sizeof(*w));
		if (v == NULL || w == NULL)
			return nomem(p) != NULL;
		w[n] = p->cur.span;
		v[n] = strings ? name(p) : ident(p, true);
		if (v[n] == NULL)
			return false;
		n++;
	} while (eat(p, ","));
	*out = v;
	*at = w;
	*n_out = n;
	return true;
}

static bool entity(struct sp *p, struct cedar_snamespace *ns, struct cedar_sentity e)
{
	struct cedar_span *at;
	cedar_sym *v;
	size_t n, i, m = 0, cap = 0;

	if (!names(p, false, &v, &at, &n))
		return false;
	if (eat(p, "enum")) {
		cedar_sym *id = NULL;

		if (!need(p, "["))
			return false;
		do {
			id = schema_room(p->a, id, m, &cap, sizeof(*id));
			if (id == NULL)
				return nomem(p) != NULL;
			id[m] = string(p);
			if (id[m] == NULL)
				return false;
			m++;
		} while (eat(p, ","));
		if (!need(p, "]"))
			return false;
		e.enum_id = id;
		e.n_enum = (uint32_t)m;
	} else {
		if (eat(p, "in") && !types(p, &e.parent, &e.n_parent))
			return false;
		if (is(p, "=") || is(p, "{")) {
			eat(p, "=");
			if (!is(p, "{"))
				return unexpected(p, "`{`") != NULL;
			e.shape = record(p);
			if (e.shape == NULL)
				return false;
		}
		if (eat(p, "tags")) {
			e.tags = type(p);
			if (e.tags == NULL)
				return false;
		}
	}
	if (!need(p, ";"))
		return false;
	for (i = 0; i < n; i++) {
		e.name = v[i];
		e.span = at[i];
		if (schema_add_entity(p->a, ns, &e) < 0)
			return nomem(p) != NULL;
	}
	return true;
}

static bool parents(struct sp *p, struct cedar_saction *a)
{
	struct cedar_saction_ref *v = NULL;
	bool many = eat(p, "[");
	size_t n = 0, cap = 0;

	do {
		struct cedar_saction_ref r = { NULL, NULL };

		if (p->cur.kind == CEDAR_T_STRING) {
			r.id = string(p);
		} else {
			cedar_sym s = path(p, &r.id);

			if (s != NULL && r.id != NULL)
				r.type = s;
			else if (s != NULL && sv_find(cedar_sv(s), ':') >= 0)
				return unexpected(p, "string") != NULL;
			else
				r.id = s;
		}
		if (r.id == NULL)
			return false;
		v = schema_room(p->a, v, n, &cap, sizeof(*v));
		if (v == NULL)
			return nomem(p) != NULL;
		v[n++] = r;
	} while (many && eat(p, ","));
	if (many && !need(p, "]"))
		return false;
	a->parent = v;
	a->n_parent = (uint32_t)n;
	return true;
}

static bool applies_to(struct sp *p, struct cedar_saction *a, const struct cedar_span *name_at)
{
	bool have[3] = { false }, first = true;

	a->applies = true;
	if (!need(p, "{"))
		return false;
	while (first || !is(p, "}")) {
		struct cedar_span at = p->cur.span;
		int k = is(p, "principal") ? 0 : is(p, "resource") ? 1 : is(p, "context") ? 2 : -1;

		first = false;
		if (k < 0)
			return unexpected(p, "`principal`, `resource` or `context`") != NULL;
		if (have[k])
			return error(p, &at, "duplicate declaration in `appliesTo`") != NULL;
		have[k] = true;
		advance(p);
		if (!need(p, ":"))
			return false;
		if (k == 2) {
			a->context = NULL;
			if (is(p, "{")) {
				a->context = record(p);
			} else {
				cedar_sym n = path(p, NULL);

				if (n == NULL)
					return false;
				/* Only a common type can be meant. */
				a->context = sty(p, CEDAR_STY_COMMON, &at);
				if (a->context != NULL)
					a->context->name = n;
			}
			if (a->context == NULL)
				return false;
		} else if (!(k == 0 ? types(p, &a->principal, &a->n_principal)
		                    : types(p, &a->resource, &a->n_resource))) {
			return false;
		} else if ((k == 0 ? a->n_principal : a->n_resource) == 0) {
			return error(p, &at,
			           "an action must apply to at least one principal and resource "
			           "type; to apply "
			           "it to nothing leave out `appliesTo`") != NULL;
		}
		if (!eat(p, ","))
			break;
	}
	if (!need(p, "}"))
		return false;
	if (!have[0])
		return error(p, name_at, "missing `principal` in `appliesTo`") != NULL;
	if (!have[1])
		return error(p, name_at, "missing `resource` in `appliesTo`") != NULL;
	return true;
}

static bool action(struct sp *p, struct cedar_snamespace *ns, struct cedar_saction a)
{
	struct cedar_span *at;
	cedar_sym *v;
	size_t n, i;

	if (!names(p, true, &v, &at, &n))
		return false;
	if (eat(p, "in") && !parents(p, &a))
		return false;
	if (eat(p, "appliesTo") && !applies_to(p, &a, &at[0]))
		return false;
	if (eat(p, "attributes") && (!need(p, "{") || !need(p, "}")))
		return false;
	if (!need(p, ";"))
		return false;
	for (i = 0; i < n; i++) {
		a.id = v[i];
		a.span = at[i];
		/* Each action gets a context of its own, since hosts add attributes to it. */
		if (i > 0 && a.context != NULL) {
			a.context = schema_sty_copy(p->a, a.context);
			if (a.context == NULL)
				return nomem(p) != NULL;
		}
		if (schema_add_action(p->a, ns, &a) < 0)
			return nomem(p) != NULL;
	}
	return true;
}

static bool common(struct sp *p, struct cedar_snamespace *ns, struct cedar_scommon c)
{
	c.span = p->cur.span;
	c.name = ident(p, true);
	if (c.name == NULL)
		return false;
	if (!need(p, "="))
		return false;
	c.type = type(p);
	if (c.type == NULL || !need(p, ";"))
		return false;
	return schema_add_common(p->a, ns, &c) == 0 || nomem(p) != NULL;
}

/* The namespace of this name, made if need be. The vector of namespaces moves when it grows, so
 * nobody keeps a pointer across. */
static struct cedar_snamespace *namespace_of(struct sp *p, cedar_sym n)
{
	struct cedar_snamespace *ns = schema_namespace(p->a, p->out, &p->caps, n);

	return ns != NULL ? ns : nomem(p);
}

static bool decl(struct sp *p, cedar_sym in, struct cedar_annotation *ann, uint32_t n_ann)
{
	struct cedar_snamespace *ns = namespace_of(p, in);

	if (ns == NULL)
		return false;
	p->depth = 0;
	if (eat(p, "entity"))
		return entity(p, ns, (struct cedar_sentity){ .ann = ann, .n_ann = n_ann });
	if (eat(p, "action"))
		return action(p, ns, (struct cedar_saction){ .ann = ann, .n_ann = n_ann });
	if (eat(p, "type"))
		return common(p, ns, (struct cedar_scommon){ .ann = ann, .n_ann = n_ann });
	return unexpected(p, "`entity`, `action`, `type` or `namespace`") != NULL;
}

static void recover(struct sp *p)
{
	while (p->cur.kind != CEDAR_T_END && !is(p, ";"))
		advance(p);
	advance(p);
	p->dead = false;
}

static bool open_namespace(
    struct sp *p, cedar_sym *in, struct cedar_annotation *ann, uint32_t n_ann)
{
	struct cedar_span at = p->cur.span;
	struct cedar_snamespace *ns;
	cedar_sym n = path(p, NULL);
	uint32_t i;

	if (n == NULL || !need(p, "{"))
		return false;
	if (sv_starts(cedar_sv(n), SV("__cedar")) && (n->n == 7 || n->p[7] == ':'))
		return error(p, &at, "the namespace `__cedar` is reserved") != NULL;
	for (i = 0; i < p->out->n_ns; i++)
		if (p->out->ns[i].name == n)
			return error(p, &at, "this namespace is declared twice") != NULL;
	ns = namespace_of(p, n);
	if (ns == NULL)
		return false;
	ns->ann = ann;
	ns->n_ann = n_ann;
	*in = n;
	return true;
}

int cedar_schema_parse(struct cedar_syms *t, struct arena *a, sv text, struct cedar_schema_src *out,
    struct cedar_diags *ds)
{
	size_t before = ds->errors;
	struct sp p = { .t = t, .a = a, .ds = ds, .out = out };
	cedar_sym none = cedar_intern(t, SV("")), in = none;

	*out = (struct cedar_schema_src){ 0 };
	if (sv_starts(text, SV("\xef\xbb\xbf")))
		text = sv_sub(text, 3, SIZE_MAX);
	cedar_lex_init(&p.lex, text, (struct cedar_span){ 0 });
	if (text.n > CEDAR_SCHEMA_MAX)
		error(&p, &p.cur.span, "the schema is larger than 16 MiB");
	else if (!sv_is_utf8(text))
		error(&p, &p.cur.span, "the schema is not UTF-8 text");
	else if (none == NULL)
		nomem(&p);
	if (p.dead)
		return -1;
	advance(&p);
	while (p.cur.kind != CEDAR_T_END) {
		struct cedar_annotation *ann = NULL;
		uint32_t n_ann = 0;
		bool good = annotations(&p, &ann, &n_ann);

		if (good && in != none && is(&p, "}") && n_ann == 0) {
			advance(&p);
			in = none;
			continue;
		}
		if (good && in == none && is(&p, "namespace")) {
			advance(&p);
			good = open_namespace(&p, &in, ann, n_ann);
		} else if (good) {
			good = decl(&p, in, ann, n_ann);
		}
		if (!good)
			recover(&p);
	}
	if (in != none)
		unexpected(&p, "`}`");
	return ds->errors == before ? 0 : -1;
}
