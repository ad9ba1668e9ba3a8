/* Sources: definitions, policies, scopes. See parse.h; spec 2, 2.1, 2.3. */
#include "cedar/advice.h"
#include "cedar/parse_priv.h"

#include <stdio.h>

#include "base/ban.h"

void p_advance(struct parser *p)
{
	if (p->cur.kind != CEDAR_T_END)
		p->end = p->cur.span.off + p->cur.span.len;
	p->cur = p->ahead;
	p->ahead = cedar_lex_next(&p->lex);
}

static bool tok_is(const struct cedar_tok *t, const char *text)
{
	return (t->kind == CEDAR_T_PUNCT || t->kind == CEDAR_T_IDENT) && sv_eq(t->text, sv_c(text));
}

bool p_is(const struct parser *p, const char *text)
{
	return tok_is(&p->cur, text);
}

bool p_ahead_is(const struct parser *p, const char *text)
{
	return tok_is(&p->ahead, text);
}

bool p_eat(struct parser *p, const char *text)
{
	if (p->dead || !p_is(p, text))
		return false;
	p_advance(p);
	return true;
}

void *p_unexpected(struct parser *p, const char *expected)
{
	if (!p->dead)
		cedar_tok_unexpected(p->ds, &p->cur, expected);
	p->dead = true;
	return NULL;
}

bool p_need(struct parser *p, const char *text)
{
	size_t before = p->ds->n;

	if (p_eat(p, text))
		return true;
	/* The reference names only what it has a name for, and punctuation has none. */
	p_unexpected(p, NULL);
	if (p->ds->n > before && p->ds->d[before].hint.n == 0)
		p->ds->d[before].hint = sv_c(arena_printf(p->a, "`%s` is missing before it", text));
	return false;
}

void p_error(struct parser *p, const struct cedar_span *at, const char *hint, const char *fmt, ...)
{
	char text[512], *big = NULL;
	va_list ap;
	int n;

	if (p->dead)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(text)) {
		big = arena_alloc(p->a, (size_t)n + 1, 1);
		if (big != NULL) {
			va_start(ap, fmt);
			(void)vsnprintf(big, (size_t)n + 1, fmt, ap); /* measured just above */
			va_end(ap);
		}
	}
	cedar_diag_add(p->ds, CEDAR_ERROR, "parse", at, hint, "%s", big != NULL ? big : text);
}

void *p_fail(struct parser *p, const char *why)
{
	p_error(p, &p->cur.span, NULL, "%s", why);
	p->dead = true;
	return NULL;
}

struct cedar_span p_since(const struct parser *p, struct cedar_span from)
{
	from.len = p->end > from.off ? p->end - from.off : 0;
	return from;
}

sv p_text(const struct parser *p, struct cedar_span at)
{
	return sv_sub(p->lex.src, at.off - p->lex.base_off, at.len);
}

void *p_room(struct parser *p, void *v, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap != 0 ? *cap * 2 : 4;

	if (n < *cap)
		return v;
	v = arena_grow(p->a, v, n, want, size);
	if (v == NULL)
		return p_fail(p, "out of memory");
	*cap = want;
	return v;
}

cedar_sym p_name(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	cedar_sym s;
	sv text;
	size_t i, n = 0;
	char *q;

	for (;;) {
		if (p->cur.kind != CEDAR_T_IDENT)
			return p_unexpected(p, "identifier");
		if (cedar_is_reserved(p->cur.text))
			p_error(p, &p->cur.span, NULL,
			    "this identifier is reserved and cannot be used: `" SV_FMT "`",
			    SV_ARG(p->cur.text));
		p_advance(p);
		if (!p_is(p, "::") || p->ahead.kind != CEDAR_T_IDENT)
			break;
		p_advance(p);
	}
	text = p_text(p, p_since(p, from));
	/* Without the blanks and comments between the parts. */
	if (sv_find(text, ' ') >= 0 || sv_find(text, '/') >= 0 || sv_has_ctl(text) ||
	    !sv_is_utf8(text)) {
		struct cedar_lex l;
		struct cedar_tok t;

		q = arena_alloc(p->a, text.n + 1, 1);
		if (q == NULL)
			return p_fail(p, "out of memory");
		cedar_lex_init(&l, text, (struct cedar_span){ 0 });
		for (t = cedar_lex_next(&l); t.kind != CEDAR_T_END; t = cedar_lex_next(&l))
			for (i = 0; i < t.text.n; i++)
				q[n++] = t.text.p[i];
		text = (sv){ q, n };
	}
	s = cedar_intern(p->t, text);
	return s != NULL ? s : p_fail(p, "out of memory");
}

bool p_block(struct parser *p, sv *body, struct cedar_span *at)
{
	struct cedar_span open = p->ahead.span;

	if (!cedar_lex_block(&p->lex, body, at)) {
		p_error(p, &open, "close it with `}`", "unexpected end of input");
		p->dead = true;
	}
	p->end = (uint32_t)(p->lex.base_off + p->lex.at);
	p->cur = cedar_lex_next(&p->lex);
	p->ahead = cedar_lex_next(&p->lex);
	return !p->dead;
}

/* ---- policies and definitions -------------------------------------------------------------- */

static bool annotations(struct parser *p, struct cedar_policy *pol)
{
	size_t cap = 0, n = 0, i;

	while (p_is(p, "@")) {
		struct cedar_annotation *a;
		struct cedar_span from = p->cur.span;

		pol->ann = p_room(p, pol->ann, n, &cap, sizeof(*pol->ann));
		if (pol->ann == NULL)
			return false;
		a = &pol->ann[n];
		p_advance(p);
		if (p->cur.kind != CEDAR_T_IDENT)
			return p_unexpected(p, "identifier");
		a->key = cedar_intern(p->t, p->cur.text);
		a->value = cedar_intern(p->t, SV(""));
		p_advance(p);
		if (p_eat(p, "(")) {
			struct cedar_tok t = p->cur;

			if (t.kind != CEDAR_T_STRING)
				return p_unexpected(p, NULL);
			a->value = cedar_tok_string(p->t, p->a, &t, p->ds);
			a->has_value = true;
			p_advance(p);
			if (!p_need(p, ")"))
				return false;
		}
		if (a->key == NULL)
			return p_fail(p, "out of memory");
		if (a->value == NULL)
			a->value = a->key; /* told already; go on */
		a->span = p_since(p, from);
		for (i = 0; i < n; i++)
			if (pol->ann[i].key == a->key) {
				p_error(p, &a->span, NULL, "duplicate annotation: @" SV_FMT,
				    SV_ARG(cedar_sv(a->key)));
				break;
			}
		pol->n_ann = (uint32_t)++n;
		if (n > 1024)
			return p_fail(p, "a policy has more than 1024 annotations");
	}
	return true;
}

static const char *condition_hint(struct parser *p, sv word)
{
	static const sv words[] = { SV_INIT("when"), SV_INIT("unless") };
	const char *hint = cedar_advice(CEDAR_AT_KEYWORD, word);
	sv near = cedar_nearest(word, words, 2);

	if (hint == NULL && near.n != 0)
		hint = arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	return hint;
}

static bool conditions(struct parser *p, struct cedar_policy *pol)
{
	size_t cap = 0, n = 0;

	while (p->cur.kind == CEDAR_T_IDENT) {
		struct cedar_cond *c;
		struct cedar_span from = p->cur.span;
		bool when = p_is(p, "when"), unless = p_is(p, "unless");

		if (!when && !unless) {
			p_error(p, &from,
			    p_is(p, "permit") || p_is(p, "forbid") || p_is(p, "def")
			        ? "the policy before it ends with `;`"
			        : condition_hint(p, p->cur.text),
			    "condition keyword must be `when` or `unless`, found `" SV_FMT "`",
			    SV_ARG(p->cur.text));
			if (!p_ahead_is(p, "{")) {
				p->dead = true;
				return false;
			}
		}
		pol->cond = p_room(p, pol->cond, n, &cap, sizeof(*pol->cond));
		if (pol->cond == NULL)
			return false;
		c = &pol->cond[n];
		c->unless = unless;
		p_advance(p);
		if (p->o->dogwood && p_is(p, "temporal") && p_ahead_is(p, "{")) {
			c->e = p_leaf(p);
		} else {
			if (p->o->dogwood && p_is(p, "guardrails") && p_ahead_is(p, "{")) {
				c->guardrails = true;
				p_advance(p);
			}
			if (!p_need(p, "{"))
				return false;
			c->e = p_expr(p);
			if (c->e != NULL && !p_need(p, "}"))
				return false;
		}
		if (c->e == NULL)
			return false;
		c->span = p_since(p, from);
		pol->n_cond = (uint32_t)++n;
	}
	return true;
}

static bool policy(struct parser *p, struct cedar_policy *pol)
{
	struct cedar_span from = p->cur.span;

	if (!annotations(p, pol))
		return false;
	if (p->cur.kind != CEDAR_T_IDENT)
		return p_unexpected(p, NULL);
	if (p_is(p, "forbid")) {
		pol->effect = CEDAR_FORBID;
	} else if (!p_is(p, "permit")) {
		static const sv words[] = { SV_INIT("permit"), SV_INIT("forbid") };
		sv near = cedar_nearest(p->cur.text, words, 2);
		const char *hint = cedar_advice(CEDAR_AT_EFFECT, p->cur.text);

		if (hint == NULL && near.n != 0)
			hint = arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
		p_error(p, &p->cur.span, hint,
		    "policy effect must be `permit` or `forbid`, found `" SV_FMT "`",
		    SV_ARG(p->cur.text));
		if (!p_ahead_is(p, "(")) {
			p->dead = true;
			return false;
		}
	}
	p_advance(p);
	if (!p_need(p, "(") || !p_scope(p, pol) || !conditions(p, pol))
		return false;
	if (p->cur.kind == CEDAR_T_END) {
		p_error(p, &p->cur.span, NULL,
		    "unexpected end of input; expected `;` to end the policy, or `when`/`unless` "
		    "to add a "
		    "condition");
		p->dead = true;
		return false;
	}
	if (!p_need(p, ";"))
		return false;
	pol->span = p_since(p, from);
	return true;
}

static bool def(struct parser *p, struct cedar_def *d)
{
	struct cedar_span from = p->cur.span;
	cedar_sym *param = NULL;
	size_t cap = 0, n = 0;

	p_advance(p);
	d->temporal = p_is(p, "temporal");
	if (!d->temporal && !p_is(p, "cedar"))
		return p_unexpected(p, "'cedar' or 'temporal'");
	p_advance(p);
	if (p->cur.kind != CEDAR_T_IDENT)
		return p_unexpected(p, "identifier");
	d->name = cedar_intern(p->t, p->cur.text);
	d->name_at = p->cur.span;
	p_advance(p);
	if (d->name == NULL)
		return p_fail(p, "out of memory");
	if (!p_need(p, "("))
		return false;
	while (!p_is(p, ")")) {
		if (p->cur.kind != CEDAR_T_SIGIL || p->cur.text.p[0] != '?')
			return p_unexpected(p, NULL);
		param = p_room(p, param, n, &cap, sizeof(*param));
		if (param == NULL)
			return false;
		param[n] = cedar_intern(p->t, sv_sub(p->cur.text, 1, SIZE_MAX));
		if (param[n] == NULL)
			return p_fail(p, "out of memory");
		n++;
		p_advance(p);
		if (!p_eat(p, ","))
			break;
	}
	d->param = param;
	d->n_param = (uint32_t)n;
	if (!p_is(p, ")") || !p_ahead_is(p, "{")) {
		if (p_is(p, ")"))
			p_advance(p);
		return p_unexpected(p, NULL);
	}
	/* The lexer stands right behind the brace. */
	if (!p_block(p, &d->body, &d->at) || !p_need(p, ";"))
		return false;
	d->span = p_since(p, from);
	return true;
}

static int start(struct parser *p, struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_parse_opts *o, struct cedar_diags *ds)
{
	static const struct cedar_parse_opts plain = { 0 };

	*p = (struct parser){ .t = t, .a = a, .ds = ds, .o = o != NULL ? o : &plain };
	if (text.n > CEDAR_MAX_SOURCE) {
		p_fail(p, "the source is larger than 16 MiB");
		return -1;
	}
	if (!sv_is_utf8(text)) {
		p_fail(p, "the source is not UTF-8 text");
		return -1;
	}
	p->poison = ARENA_NEW(a, struct cedar_expr);
	if (p->poison == NULL) {
		p_fail(p, "out of memory");
		return -1;
	}
	p->poison->depth = 1;
	cedar_lex_init(&p->lex, text, p->o->origin);
	p->end = p->lex.base_off;
	p_advance(p);
	p_advance(p);
	return 0;
}

/* Is the current token the first one on its line? */
static bool begins_line(const struct parser *p)
{
	size_t i = p->cur.span.off - p->lex.base_off;

	while (i > 0 && (p->lex.src.p[i - 1] == ' ' || p->lex.src.p[i - 1] == '\t'))
		i--;
	return i == 0 || p->lex.src.p[i - 1] == '\n';
}

/* Does a new statement begin here, though no `;` ended the one before? */
static bool begins_statement(const struct parser *p)
{
	if ((p_is(p, "permit") || p_is(p, "forbid")) && p_ahead_is(p, "("))
		return true;
	return begins_line(p) && ((p_is(p, "@") && p->ahead.kind == CEDAR_T_IDENT) ||
	                             (p->o->dogwood && p_is(p, "def") &&
	                                 (p_ahead_is(p, "cedar") || p_ahead_is(p, "temporal"))));
}

static void recover(struct parser *p)
{
	while (p->cur.kind != CEDAR_T_END && !p_is(p, ";") && !begins_statement(p))
		p_advance(p);
	if (p_is(p, ";"))
		p_advance(p);
	p->dead = false;
	p->slots = false;
	p->depth = 0;
}

int cedar_parse(struct cedar_syms *t, struct arena *a, sv text, const struct cedar_parse_opts *o,
    struct cedar_source *out, struct cedar_diags *ds)
{
	size_t cap_p = 0, cap_d = 0, seen = 0, before = ds->errors;
	struct parser p;

	*out = (struct cedar_source){ .text = text };
	if (start(&p, t, a, text, o, ds) < 0)
		return -1;
	while (p.cur.kind != CEDAR_T_END) {
		if (p.o->dogwood && p_is(&p, "def")) {
			struct cedar_def d = { 0 };

			if (!def(&p, &d)) {
				recover(&p);
				d.faulty = true;
			}
			if (d.name == NULL)
				continue;
			out->def = p_room(&p, out->def, out->n_def, &cap_d, sizeof(d));
			if (out->def == NULL)
				return -1;
			out->def[out->n_def++] = d;
		} else {
			struct cedar_policy pol = { .ordinal = (uint32_t)seen };
			size_t errors = ds->errors;
			char id[64];

			p.pol = &pol;
			(void)snprintf(id, sizeof(id), "%s%zu",
			    p.o->id_prefix != NULL ? p.o->id_prefix : "policy", seen++);
			pol.id = cedar_intern(t, sv_c(id));
			if (seen > CEDAR_MAX_POLICIES || pol.id == NULL) {
				p_fail(&p, "too many policies");
				return -1;
			}
			if (!policy(&p, &pol)) {
				recover(&p);
				continue;
			}
			out->policy = p_room(&p, out->policy, out->n_policy, &cap_p, sizeof(pol));
			if (out->policy == NULL)
				return -1;
			pol.faulty = ds->errors != errors;
			out->policy[out->n_policy++] = pol;
		}
	}
	return ds->errors == before ? 0 : -1;
}

struct cedar_expr *cedar_parse_expr(struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_parse_opts *o, struct cedar_diags *ds)
{
	size_t before = ds->errors;
	struct cedar_expr *e;
	struct parser p;

	if (start(&p, t, a, text, o, ds) < 0)
		return NULL;
	p.slots = true;
	e = p_expr(&p);
	if (e != NULL && p.cur.kind != CEDAR_T_END)
		p_unexpected(&p, NULL);
	return ds->errors == before ? e : NULL;
}
