/* Definitions of macros, and expansion in Cedar expressions. The temporal half is macro_temporal.c.
 * See macro.h. */
#include "dogwood/macro.h"

#include "dogwood/macro_impl.h"
#include "dogwood/tparse.h"

#include "base/ban.h"

const char dw_default_macros[] =
    "def temporal count_within(?w, ?s) {\n"
    "    count for ($t: Timepoint). where (formerly within ?w (?s && tp($t)))\n"
    "};\n"
    "def temporal sum_within(?a, ?w, ?body) {\n"
    "    sum ?a for (?a: Long), ($t: Timepoint). where (formerly within ?w (?body && tp($t)))\n"
    "};\n"
    "def temporal count_distinct_within(?k, ?w, ?s) {\n"
    "    count for (?k: String). where (formerly within ?w ?s)\n"
    "};\n"
    "def temporal bind(?n, ?A, ?B) {\n"
    "    exists (?n: Long). (?A == ?n && ?B)\n"
    "};\n";

static const char *const reserved[] = { "decimal", "datetime", "duration", "ip", "let", "in",
	"where", "for", "sum", "count", "tp", "formerly", "previous", "since", "true", "false" };

const struct dw_macro *dw_macro_find(const struct dw_macros *m, sv name)
{
	uintptr_t at = (uintptr_t)smap_get(&m->index, cedar_syms_find(m->t, name), NULL);

	return at != 0 ? &m->v[at - 1] : NULL;
}

void dw_macros_fini(struct dw_macros *m)
{
	smap_fini(&m->index);
}

int dw_macro_param(const struct dw_macro *m, sv name)
{
	for (uint32_t i = 0; i < m->nparam; i++) {
		if (sv_eq(cedar_sv(m->param[i]), name))
			return (int)i;
	}
	return -1;
}

static bool is_macro_call(const struct cedar_expr *e)
{
	return e->kind == CEDAR_E_CALL && sv_find_sv(cedar_sv(e->name), SV("::")) < 0;
}

struct body_check {
	struct dw_macros *m;
	const struct dw_macro *def;
};

static int check_body(void *ctx, struct cedar_expr **node)
{
	const struct body_check *b = ctx;
	const struct cedar_expr *e = *node;
	struct cedar_diags *ds = b->m->ds;

	if (e->kind == CEDAR_E_PARAM && dw_macro_param(b->def, cedar_sv(e->name)) < 0) {
		(void)cedar_diag_add(ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "in `def cedar` body: `?" SV_FMT "` does not name a declared parameter",
		    SV_ARG(cedar_sv(e->name)));
		return -1;
	}
	if (is_macro_call(e)) {
		(void)cedar_diag_add(ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "in `def cedar` body: macro-in-macro is not supported");
		return -1;
	}
	if (e->kind == CEDAR_E_LEAF) {
		(void)cedar_diag_add(ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "in `def cedar` body: a `temporal { … }` block is not supported inside a cedar "
		    "macro; lift the block to "
		    "the call site instead");
		return -1;
	}
	return 0;
}

static bool parse_def(struct dw_macros *m, const struct cedar_def *d, struct dw_macro *out)
{
	struct body_check chk = { m, out };
	struct cedar_parse_opts o = { .dogwood = true, .params = true, .origin = d->at };
	struct dw_tparse tp = { m->t, m->a, m->ds, true };

	if (d->temporal)
		return dw_tparse(&tp, d->body, d->at, &out->body) &&
		       dw_macro_check_temporal(m, out);
	out->expr = cedar_parse_expr(m->t, m->a, d->body, &o, m->ds);
	return out->expr != NULL && cedar_expr_walk(&out->expr, check_body, &chk) == 0;
}

bool dw_macros_add(struct dw_macros *m, const struct cedar_source *src, bool library)
{
	bool ok = true;

	for (size_t i = 0; i < src->n_def; i++) {
		const struct cedar_def *d = &src->def[i];
		struct dw_macro x = { .name = cedar_sv(d->name),
			.temporal = d->temporal,
			.param = d->param,
			.nparam = d->n_param,
			.from_library = library };
		const struct dw_macro *old = dw_macro_find(m, x.name);

		for (size_t k = 0; k < sizeof(reserved) / sizeof(reserved[0]); k++) {
			if (!sv_eq(x.name, sv_c(reserved[k])))
				continue;
			(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &d->name_at, NULL,
			    "macro name `" SV_FMT
			    "` is reserved (built-in or keyword); pick a different name",
			    SV_ARG(x.name));
			ok = false;
		}
		if (old != NULL && old->from_library == library) {
			(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &d->name_at, NULL,
			    "duplicate macro definition `" SV_FMT "`", SV_ARG(x.name));
			ok = false;
			continue;
		}
		/* The policy source is added first: what the library says about its names does not
		 * count. */
		if (old != NULL)
			continue;
		if (d->faulty || !parse_def(m, d, &x)) {
			ok = false;
			x.faulty = true;
		}
		if (m->n == m->cap) {
			uint32_t cap = m->cap != 0 ? m->cap * 2 : 16;
			struct dw_macro *v = arena_grow(m->a, m->v, m->n, cap, sizeof(*v));

			if (v == NULL)
				return dw_macro_fail(m, &d->span, "the policy source is too large");
			m->v = v;
			m->cap = cap;
		}
		m->v[m->n++] = x;
		if (smap_add(&m->index, d->name, NULL, (void *)(uintptr_t)m->n) < 0)
			return dw_macro_fail(m, &d->span, "the policy source is too large");
	}
	return ok;
}

bool dw_macro_fail(struct dw_macros *m, const struct cedar_span *at, const char *text)
{
	(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", at, NULL, "%s", text);
	return false;
}

bool dw_macro_count(struct dw_macros *m, const struct cedar_span *at)
{
	if (m->nodes++ < DW_MACRO_NODES)
		return true;
	return dw_macro_fail(m, at, "the expansion of the macros of this rule is too large");
}

/* A copy of body with its parameters replaced by copies of args. */
static struct cedar_expr *substitute(struct dw_macros *m, const struct dw_macro *def,
    const struct cedar_expr *body, struct cedar_expr *const *args, struct cedar_span at)
{
	struct cedar_expr *e, **v = NULL;

	if (body->kind == CEDAR_E_PARAM) {
		int i = dw_macro_param(def, cedar_sv(body->name));

		/* Arguments were expanded before; they are counted again for each use. */
		body = args[i];
		def = NULL;
		at = body->span;
	}
	if (!dw_macro_count(m, &at))
		return NULL;
	if (body->n_arg != 0) {
		v = ARENA_VEC(m->a, struct cedar_expr *, body->n_arg);
		if (v == NULL) {
			dw_macro_fail(m, &at, "the policy source is too large");
			return NULL;
		}
	}
	for (uint32_t i = 0; i < body->n_arg; i++) {
		if (def == NULL) {
			struct dw_macro none = { 0 };

			v[i] = substitute(m, &none, body->arg[i], NULL, body->arg[i]->span);
		} else {
			v[i] = substitute(m, def, body->arg[i], args, at);
		}
		if (v[i] == NULL)
			return NULL;
	}
	/* A new node, so that its depth is computed and checked; then everything that is not the
	 * tree is copied. */
	e = cedar_expr_new(m->a, body->kind, &at, v, body->n_arg);
	if (e == NULL) {
		dw_macro_fail(
		    m, &at, "the expansion of the macros of this rule is nested too deeply");
		return NULL;
	}
	{
		uint16_t depth = e->depth;
		struct cedar_expr **arg = e->arg;

		*e = *body;
		e->depth = depth;
		e->arg = arg;
		e->span = at;
		e->paren = e->paren || body->n_arg != 0;
	}
	return e;
}

static int expand_node(void *ctx, struct cedar_expr **node)
{
	struct dw_macros *m = ctx;
	struct cedar_expr *e = *node;
	const struct dw_macro *def;
	sv name;

	if (e->kind == CEDAR_E_PARAM) {
		(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "stray macro parameter reference `?" SV_FMT "` outside a macro body",
		    SV_ARG(cedar_sv(e->name)));
		return -1;
	}
	if (!is_macro_call(e))
		return 0;
	name = cedar_sv(e->name);
	def = dw_macro_find(m, name);
	if (def == NULL) {
		sv near = dw_macro_nearest(m, name);

		(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &e->span,
		    near.n != 0 ? near.p : NULL,
		    "unknown function or macro `" SV_FMT
		    "` (not a Cedar built-in and not a declared macro)",
		    SV_ARG(name));
		return -1;
	}
	if (def->faulty)
		return -1;
	if (def->temporal) {
		(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "macro `" SV_FMT
		    "` is a temporal macro and cannot be called in a cedar expression position",
		    SV_ARG(name));
		return -1;
	}
	if (def->nparam != e->n_arg) {
		(void)cedar_diag_add(m->ds, CEDAR_ERROR, "macro", &e->span, NULL,
		    "macro `" SV_FMT "` expects %u argument(s), got %u", SV_ARG(name), def->nparam,
		    e->n_arg);
		return -1;
	}
	e = substitute(m, def, def->expr, e->arg, e->span);
	if (e == NULL)
		return -1;
	e->paren = true;
	*node = e;
	return 0;
}

bool dw_macros_cedar(struct dw_macros *m, struct cedar_expr **e)
{
	return cedar_expr_walk(e, expand_node, m) == 0;
}

sv dw_macro_nearest(const struct dw_macros *m, sv word)
{
	sv names[512], near;
	const char *hint;
	uint32_t n = m->n < 512 ? m->n : 512;

	if (m->ds->n >= CEDAR_DIAGS_MAX)
		return (sv){ NULL, 0 }; /* nobody will see it */
	for (uint32_t i = 0; i < n; i++)
		names[i] = m->v[i].name;
	near = cedar_nearest(word, names, n);
	if (near.n == 0)
		return (sv){ NULL, 0 };
	hint = arena_printf(m->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	return sv_c(hint);
}
