/* Reader of event schemas. Derivation is derive.c. See eschema.h. */
#include "dogwood/eschema.h"

#include <stdlib.h>

#include "dogwood/eschema_impl.h"

#include "base/ban.h"

const char dw_default_events[] = "decision event <A>::request {\n"
                                 "    ...inputs(A),\n"
                                 "    pin callerPrincipal: principalType(A) = principal,\n"
                                 "    callerResource: resourceType(A),\n"
                                 "    requestId: String,\n"
                                 "    sessionId: String,\n"
                                 "}\n"
                                 "event <A>::response {\n"
                                 "    ...inputs(A),\n"
                                 "    ...outputs(A),\n"
                                 "    pin callerPrincipal: principalType(A) = principal,\n"
                                 "    callerResource: resourceType(A),\n"
                                 "    requestId: String,\n"
                                 "    sessionId: String,\n"
                                 "}\n"
                                 "event <A>::error {\n"
                                 "    ...inputs(A),\n"
                                 "    pin callerPrincipal: principalType(A) = principal,\n"
                                 "    callerResource: resourceType(A),\n"
                                 "    requestId: String,\n"
                                 "    sessionId: String,\n"
                                 "}\n";

const char dw_unpinned_events[] = "decision event <A>::request {\n"
                                  "    ...inputs(A),\n"
                                  "    callerPrincipal: principalType(A),\n"
                                  "    callerResource: resourceType(A),\n"
                                  "    requestId: String,\n"
                                  "    sessionId: String,\n"
                                  "}\n"
                                  "event <A>::response {\n"
                                  "    ...inputs(A),\n"
                                  "    ...outputs(A),\n"
                                  "    callerPrincipal: principalType(A),\n"
                                  "    callerResource: resourceType(A),\n"
                                  "    requestId: String,\n"
                                  "    sessionId: String,\n"
                                  "}\n"
                                  "event <A>::error {\n"
                                  "    ...inputs(A),\n"
                                  "    callerPrincipal: principalType(A),\n"
                                  "    callerResource: resourceType(A),\n"
                                  "    requestId: String,\n"
                                  "    sessionId: String,\n"
                                  "}\n";

struct ps {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	struct cedar_lex lex;
	struct cedar_tok tok;
	sv binder; /* A of the present event */
	unsigned depth;
	size_t nodes;
};

static void next(struct ps *p)
{
	p->tok = cedar_lex_next(&p->lex);
}

static bool is_punct(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_PUNCT && sv_eq(p->tok.text, sv_c(s));
}

static bool is_word(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_IDENT && sv_eq(p->tok.text, sv_c(s));
}

static bool fail(struct ps *p, struct cedar_span at, const char *text)
{
	(void)cedar_diag_add(p->ds, CEDAR_ERROR, "event-schema", &at, NULL, "%s",
	    text != NULL ? text : "the event schema is too large");
	return false;
}
#define FAIL(p, at, ...) fail((p), (at), arena_printf((p)->a, __VA_ARGS__))

static bool syntax(struct ps *p, const char *expected)
{
	if (p->tok.kind == CEDAR_T_END)
		return FAIL(p, p->tok.span,
		    "event schema parse error: unexpected end of input, expected %s", expected);
	return FAIL(p, p->tok.span,
	    "event schema parse error: unexpected token `" SV_FMT "`, expected %s",
	    SV_ARG(p->tok.text), expected);
}

static bool want(struct ps *p, const char *punct)
{
	const char *what = arena_printf(p->a, "`%s`", punct);

	if (!is_punct(p, punct))
		return syntax(p, what != NULL ? what : punct);
	next(p);
	return true;
}

static bool ident(struct ps *p, sv *out, const char *what)
{
	if (p->tok.kind != CEDAR_T_IDENT)
		return syntax(p, what);
	*out = p->tok.text;
	next(p);
	return true;
}

static void *push(struct ps *p, void *vec, uint32_t *n, size_t size)
{
	if ((*n & (*n - 1)) == 0) {
		void *v = arena_grow(p->a, vec, *n, *n == 0 ? 1 : (size_t)*n * 2, size);

		if (v == NULL) {
			fail(p, p->tok.span, NULL);
			return NULL;
		}
		vec = v;
	}
	++*n;
	return vec;
}

static bool selector_of(sv s, enum dw_es_sel *out)
{
	static const char *const names[] = { "inputs", "outputs", "principalType", "resourceType" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sv_eq(s, sv_c(names[i]))) {
			*out = (enum dw_es_sel)i;
			return true;
		}
	}
	return false;
}

/* Behind a selector's name: "(" A ")" */
static bool selector_arg(struct ps *p, const char *where)
{
	struct cedar_span at;
	sv arg = { NULL, 0 };

	if (!want(p, "("))
		return false;
	at = p->tok.span;
	if (!ident(p, &arg, "action binder"))
		return false;
	if (!sv_eq(arg, p->binder))
		return FAIL(p, at,
		    "%s: selector argument `" SV_FMT
		    "` does not name the declared action binder `" SV_FMT "` (write `" SV_FMT "`)",
		    where, SV_ARG(arg), SV_ARG(p->binder), SV_ARG(p->binder));
	return want(p, ")");
}

static bool fields(struct ps *p, bool top, struct dw_es_item **out, uint32_t *n);

static bool field_type(struct ps *p, struct dw_es_item *f)
{
	struct cedar_span at = p->tok.span;
	enum dw_es_sel sel;
	sv name = { NULL, 0 }, part = { NULL, 0 };
	const char *s;

	if (is_punct(p, "{")) {
		if (++p->depth > DW_ES_DEPTH)
			return FAIL(p, at,
			    "event schema parse error: records nested deeper than %d", DW_ES_DEPTH);
		next(p);
		f->is = DW_ES_GROUP;
		if (!fields(p, false, &f->sub, &f->nsub))
			return false;
		p->depth--;
		return true;
	}
	if (!ident(p, &name, "type"))
		return false;
	if (is_punct(p, "(") && selector_of(name, &sel)) {
		if (sel == DW_ES_INPUTS || sel == DW_ES_OUTPUTS)
			return FAIL(p, at,
			    "selector `" SV_FMT "` cannot be used as a field type (it yields a "
			    "field record, not a type); spread it with `...` "
			    "instead",
			    SV_ARG(name));
		f->is = DW_ES_SELECTED;
		f->sel = sel;
		return selector_arg(p, "in field type");
	}
	while (is_punct(p, "::")) {
		next(p);
		if (!ident(p, &part, "identifier"))
			return false;
		s = arena_printf(p->a, SV_FMT "::" SV_FMT, SV_ARG(name), SV_ARG(part));
		if (s == NULL)
			return fail(p, at, NULL);
		name = sv_c(s);
	}
	f->is = DW_ES_NAMED;
	f->type = name;
	return true;
}

/* ( "principal" | "resource" ) { "." ident } | "context" "." ident { "." ident } */
static bool pin_value(struct ps *p, struct dw_term **out)
{
	struct dw_term *t = ARENA_NEW(p->a, struct dw_term);
	sv root, *v = NULL, step = { NULL, 0 };

	if (t == NULL)
		return fail(p, p->tok.span, NULL);
	t->at = p->tok.span;
	if (!is_word(p, "principal") && !is_word(p, "resource") && !is_word(p, "context"))
		return syntax(p, "`principal`, `resource` or `context.<...>`");
	root = p->tok.text;
	t->kind = root.p[0] == 'p'   ? DW_TERM_PRINCIPAL
	          : root.p[0] == 'r' ? DW_TERM_RESOURCE
	                             : DW_TERM_CONTEXT;
	next(p);
	while (is_punct(p, ".")) {
		next(p);
		if (!ident(p, &step, "attribute name"))
			return false;
		v = push(p, v, &t->path.n, sizeof(*v));
		if (v == NULL)
			return false;
		v[t->path.n - 1] = step;
	}
	t->path.v = v;
	if (t->kind == DW_TERM_CONTEXT && t->path.n == 0)
		return syntax(p, "`.`");
	*out = t;
	return true;
}

static bool spread(struct ps *p, struct dw_es_item *f)
{
	struct cedar_span at;
	sv name = { NULL, 0 };

	for (int i = 0; i < 3; i++) {
		if (!want(p, "."))
			return false;
	}
	at = p->tok.span;
	if (!ident(p, &name, "selector"))
		return false;
	if (!selector_of(name, &f->sel))
		return FAIL(p, at,
		    "event schema parse error: unexpected token `" SV_FMT
		    "`, expected inputs or outputs",
		    SV_ARG(name));
	if (f->sel == DW_ES_PRINCIPAL || f->sel == DW_ES_RESOURCE)
		return FAIL(p, at,
		    "selector `" SV_FMT "` cannot be spread (it yields entity types, not a field "
		    "record); use it as a field type instead",
		    SV_ARG(name));
	f->is = DW_ES_SPREAD;
	f->name = f->sel == DW_ES_INPUTS ? SV("input") : SV("output");
	return selector_arg(p, "in spread");
}

static bool one_field(struct ps *p, bool top, struct dw_es_item *f)
{
	struct cedar_lex ahead = p->lex;
	struct cedar_tok t2 = cedar_lex_next(&ahead);

	f->at = p->tok.span;
	if (top && is_word(p, "pin") && t2.kind == CEDAR_T_IDENT) {
		f->pin = true;
		next(p);
	}
	if (!ident(p, &f->name, "field name") || !want(p, ":") || !field_type(p, f))
		return false;
	if (is_punct(p, "=")) {
		if (!f->pin)
			return FAIL(p, f->at,
			    "field `" SV_FMT "` has a `= context.<...>` value but is not marked "
			    "`pin`; write `pin " SV_FMT ": …` or drop the value",
			    SV_ARG(f->name), SV_ARG(f->name));
		next(p);
		if (!pin_value(p, &f->value))
			return false;
	}
	if (f->pin && f->is == DW_ES_GROUP)
		return FAIL(p, f->at,
		    "field `" SV_FMT
		    "` is a record group and cannot be pinned; pin a leaf field inside it instead",
		    SV_ARG(f->name));
	if (f->pin && f->value == NULL)
		return FAIL(p, f->at,
		    "pinned field `" SV_FMT "` is missing its pin value; write `pin " SV_FMT
		    ": <type> = context.<...>`",
		    SV_ARG(f->name), SV_ARG(f->name));
	return true;
}

/* Behind "{", up to and including "}". */
static bool fields(struct ps *p, bool top, struct dw_es_item **out, uint32_t *n)
{
	struct dw_es_item *v = NULL;

	*n = 0;
	while (!is_punct(p, "}")) {
		if (++p->nodes > DW_ES_NODES)
			return FAIL(p, p->tok.span, "event schema parse error: more than %d fields",
			    DW_ES_NODES);
		v = push(p, v, n, sizeof(*v));
		if (v == NULL)
			return false;
		if (top && is_punct(p, ".")) {
			if (!spread(p, &v[*n - 1]))
				return false;
		} else if (!one_field(p, top, &v[*n - 1])) {
			return false;
		}
		if (!is_punct(p, ","))
			break;
		next(p);
	}
	*out = v;
	return want(p, "}");
}

static bool event(struct ps *p, struct dw_es_event *e)
{
	e->at = p->tok.span;
	if (is_word(p, "decision")) {
		e->decision = true;
		next(p);
	}
	if (!is_word(p, "event"))
		return syntax(p, e->decision ? "`event`" : "`event`, `decision event` or the end");
	next(p);
	return want(p, "<") && ident(p, &p->binder, "action binder") && want(p, ">") &&
	       want(p, "::") && ident(p, &e->kind, "event kind") && want(p, "{") &&
	       fields(p, true, &e->items, &e->nitems);
}

static bool max_window(struct ps *p, struct dw_eschema *s)
{
	struct cedar_span at = p->tok.span;
	struct dw_window w = { 0 };
	const char *text;
	sv amount;

	next(p);
	if (!want(p, "="))
		return false;
	if (p->tok.kind != CEDAR_T_INT)
		return syntax(p, "integer");
	amount = p->tok.text;
	w.too_large = !sv_to_u64(amount, 10, UINT64_MAX, &w.amount);
	next(p);
	if (p->tok.kind != CEDAR_T_IDENT || p->tok.text.n != 1 ||
	    strchr("smhd", p->tok.text.p[0]) == NULL)
		return syntax(p, "time unit ('s', 'm', 'h', or 'd')");
	w.unit = p->tok.text.p[0];
	next(p);
	s->max_window = dw_window_seconds(&w);
	if (w.too_large || s->max_window == INT64_MAX)
		return FAIL(
		    p, at, "max_window amount `" SV_FMT "` is out of range", SV_ARG(amount));
	if (s->max_window == 0)
		return FAIL(p, at,
		    "max_window must be greater than zero; a zero cap would refuse every temporal "
		    "condition");
	text = arena_printf(p->a, SV_FMT "%c", SV_ARG(amount), w.unit);
	if (text == NULL)
		return fail(p, at, NULL);
	s->max_window_text = sv_c(text);
	return true;
}

struct dw_eschema *dw_eschema_load(struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_schema *schema, struct cedar_diags *ds)
{
	struct ps p = { .t = t, .a = a, .ds = ds };
	struct dw_eschema *s = ARENA_NEW(a, struct dw_eschema);
	struct dw_es_event *v = NULL;
	struct cedar_span start = { 0 };
	uint32_t n = 0;

	if (sv_starts(text, SV("\xef\xbb\xbf")))
		text = sv_sub(text, 3, text.n);
	cedar_lex_init(&p.lex, text, start);
	next(&p);
	if (s == NULL) {
		fail(&p, p.tok.span, NULL);
		return NULL;
	}
	s->max_window = DW_ES_WINDOW;
	s->max_window_text = SV("24h");
	if (is_word(&p, "max_window") && !max_window(&p, s))
		return NULL;
	while (p.tok.kind != CEDAR_T_END) {
		v = push(&p, v, &n, sizeof(*v));
		if (v == NULL || !event(&p, &v[n - 1]))
			return NULL;
		for (uint32_t i = 0; i + 1 < n; i++) {
			if (sv_eq(v[i].kind, v[n - 1].kind)) {
				FAIL(&p, v[n - 1].at,
				    "event kind `" SV_FMT "` is declared more than once",
				    SV_ARG(v[i].kind));
				return NULL;
			}
		}
	}
	if (n == 0) {
		FAIL(&p, p.tok.span, "event schema parse error: the schema declares no event");
		return NULL;
	}
	return dw_eschema_derive(a, v, n, schema, s, ds) ? s : NULL;
}
