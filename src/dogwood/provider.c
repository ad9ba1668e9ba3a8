/* Declarations of providers, and their calls in policies. See provider.h. The declarations are the
 * operator's; the policies are checked against them like against a schema. */
#include "dogwood/provider.h"

#include <stdlib.h>

#include "cedar/jtree.h"
#include "cedar/validate.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

/* ---- declarations ------------------------------------------------------------------------ */

struct decl {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	sv text;
	bool bad;
};

static void *refuse(struct decl *d, const struct jnode *at, const char *hint, const char *text)
{
	struct cedar_span span = { 0 };

	if (at != NULL)
		span = cedar_span_at(d->text, at->off, at->len);
	if (!d->bad || d->ds->errors == 0)
		(void)cedar_diag_add(d->ds, CEDAR_ERROR, "provider", at != NULL ? &span : NULL,
		    hint, "%s",
		    text != NULL ? text : "the declarations of providers are too large");
	d->bad = true;
	return NULL;
}

static const struct cedar_type *plain(sv name)
{
	static const struct cedar_type string = { .kind = CEDAR_TY_STRING },
	                               number = { .kind = CEDAR_TY_LONG },
	                               boolean = { .kind = CEDAR_TY_BOOL },
	                               decimal = { .kind = CEDAR_TY_DECIMAL };

	if (sv_eq(name, SV("integer")) || sv_eq(name, SV("long")))
		return &number;
	if (sv_eq(name, SV("bool")) || sv_eq(name, SV("boolean")))
		return &boolean;
	if (sv_eq(name, SV("decimal")))
		return &decimal;
	return &string; /* also what is not known (spec 10) */
}

static const struct cedar_type *type(struct decl *d, const struct jnode *j, unsigned depth);

static int by_name(const void *x, const void *y)
{
	const struct cedar_attr *p = x, *q = y;

	return sv_cmp(cedar_sv(p->name), cedar_sv(q->name));
}

static const struct cedar_type *record(struct decl *d, const struct jnode *j, unsigned depth)
{
	const struct jnode *fields = jtree_get(j, SV("fields")),
	                   *need = jtree_get(j, SV("required"));
	struct cedar_type *ty = ARENA_NEW(d->a, struct cedar_type);
	struct cedar_attr *v;

	if (fields == NULL || fields->kind != J_OBJ)
		return refuse(d, j, NULL, "a record type wants `fields`, an object of types");
	v = ARENA_VEC(d->a, struct cedar_attr, fields->n);
	if (ty == NULL || v == NULL)
		return refuse(d, NULL, NULL, NULL);
	for (uint32_t i = 0; i < fields->n; i++) {
		v[i].name = cedar_intern(d->t, fields->key[i]);
		v[i].type = type(d, fields->item[i], depth + 1);
		if (v[i].name == NULL || v[i].type == NULL)
			return refuse(d, fields->item[i], NULL, NULL);
		for (uint32_t k = 0; need != NULL && need->kind == J_ARR && k < need->n; k++)
			if (need->item[k]->kind == J_STR && sv_eq(need->item[k]->s, fields->key[i]))
				v[i].required = true;
	}
	if (fields->n > 1)
		qsort(v, fields->n, sizeof(*v), by_name);
	*ty = (struct cedar_type){ .kind = CEDAR_TY_RECORD, .attr = v, .n_attr = fields->n };
	return ty;
}

static const struct cedar_type *type(struct decl *d, const struct jnode *j, unsigned depth)
{
	const struct jnode *name = jtree_get(j, SV("type"));
	struct cedar_type *ty;

	if (depth > DW_PROVIDER_DEPTH)
		return refuse(d, j, NULL, "a type of a provider is nested deeper than 16");
	if (name == NULL || name->kind != J_STR)
		return refuse(d, j, NULL,
		    "a type is an object with `type`: string, integer, boolean, decimal, set or "
		    "record");
	if (sv_eq(name->s, SV("record")))
		return record(d, j, depth);
	if (!sv_eq(name->s, SV("set")))
		return plain(name->s);
	ty = ARENA_NEW(d->a, struct cedar_type);
	if (ty == NULL)
		return refuse(d, NULL, NULL, NULL);
	ty->kind = CEDAR_TY_SET;
	if (jtree_get(j, SV("items")) == NULL)
		return refuse(d, j, NULL, "a set type wants `items`, the type of its members");
	ty->elem = type(d, jtree_get(j, SV("items")), depth + 1);
	return ty->elem != NULL ? ty : NULL;
}

static bool signature(
    struct decl *d, sv name, const struct jnode *j, bool method, struct dw_provider_sig *out)
{
	const struct jnode *args = jtree_get(j, SV("argumentTypes")),
	                   *in = jtree_get(j, SV("inputType")),
	                   *more = jtree_get(j, SV("availableMethods"));
	const struct cedar_type **v;
	struct dw_provider_sig *m;

	*out = (struct dw_provider_sig){ .name = name };
	if (args != NULL && args->kind != J_ARR)
		return refuse(d, args, NULL, "`argumentTypes` is a list of types") != NULL;
	out->nargs = args != NULL ? args->n : 0;
	v = ARENA_VEC(d->a, const struct cedar_type *, out->nargs);
	if (v == NULL)
		return refuse(d, NULL, NULL, NULL) != NULL;
	for (size_t i = 0; i < out->nargs; i++) {
		v[i] = type(d, args->item[i], 0);
		if (v[i] == NULL)
			return false;
	}
	out->arg = v;
	if (jtree_get(j, SV("outputType")) == NULL)
		return refuse(d, j, NULL, "`outputType` is missing") != NULL;
	out->out = type(d, jtree_get(j, SV("outputType")), 0);
	out->in = in != NULL ? type(d, in, 0) : NULL;
	if (out->out == NULL || (in != NULL && out->in == NULL))
		return false;
	if (more == NULL || method)
		return true;
	if (more->kind != J_OBJ)
		return refuse(d, more, NULL, "`availableMethods` is an object") != NULL;
	m = ARENA_VEC(d->a, struct dw_provider_sig, more->n);
	if (m == NULL)
		return refuse(d, NULL, NULL, NULL) != NULL;
	for (uint32_t i = 0; i < more->n; i++) {
		if (!signature(d, more->key[i], more->item[i], true, &m[i]))
			return false;
	}
	out->method = m;
	out->nmethods = more->n;
	return true;
}

/* Ns::Fn: two segments or more, identifiers all. */
static bool is_provider_name(sv s)
{
	size_t parts = 0;

	for (;;) {
		ptrdiff_t i = sv_find_sv(s, SV("::"));
		sv part = i < 0 ? s : sv_sub(s, 0, (size_t)i);

		if (!cedar_is_ident(part))
			return false;
		parts++;
		if (i < 0)
			return parts >= 2;
		s = sv_sub(s, (size_t)i + 2, SIZE_MAX);
	}
}

struct dw_providers *dw_providers_parse(
    struct cedar_syms *t, struct arena *a, sv text, struct cedar_diags *ds)
{
	struct decl d = { t, a, ds, text, false };
	struct dw_providers *out = ARENA_NEW(a, struct dw_providers);
	struct dw_provider_sig *v;
	struct box_err err = { 0 };
	const struct jnode *j, *list;

	if (text.n > DW_PROVIDER_JSON_MAX)
		return refuse(
		    &d, NULL, NULL, "the declarations of providers are larger than 4 MiB");
	j = jtree_parse(a, text, &err);
	if (j == NULL)
		return refuse(&d, NULL, NULL, arena_printf(a, "%s", err.msg));
	list = jtree_get(j, SV("availableProviders"));
	if (list == NULL || list->kind != J_OBJ)
		return refuse(&d, j, NULL,
		    "declarations of providers are an object with `availableProviders`");
	v = ARENA_VEC(a, struct dw_provider_sig, list->n);
	if (out == NULL || v == NULL)
		return refuse(&d, NULL, NULL, NULL);
	for (uint32_t i = 0; i < list->n; i++) {
		if (!is_provider_name(list->key[i]))
			return refuse(&d, list->item[i], "such as `Scan::secrets`",
			    arena_printf(
			        a, "`" SV_FMT "` is no name of a provider", SV_ARG(list->key[i])));
		if (!signature(&d, list->key[i], list->item[i], false, &v[i]))
			return NULL;
	}
	*out = (struct dw_providers){ v, list->n };
	return out;
}

/* ---- calls ------------------------------------------------------------------------------- */

static int fail(
    struct dw_provider_fold *f, const struct cedar_span *at, const char *hint, const char *text)
{
	(void)cedar_diag_add(f->ds, CEDAR_ERROR, "provider", at, hint, "%s",
	    text != NULL ? text : "the policy source is too large");
	return -1;
}
#define FAIL(f, at, hint, ...) fail((f), (at), (hint), arena_printf((f)->a, __VA_ARGS__))

static bool path(
    struct dw_provider_fold *f, const struct cedar_expr *e, struct dw_provider_arg *out)
{
	const struct cedar_expr *root = e;
	cedar_sym *v;
	size_t n = 0;

	for (; root->kind == CEDAR_E_GET; root = root->arg[0])
		n++;
	if (root->kind != CEDAR_E_VAR || root->var == CEDAR_ACTION ||
	    (root->var == CEDAR_CONTEXT && n == 0))
		return false;
	v = ARENA_VEC(f->a, cedar_sym, n);
	if (v == NULL)
		return false;
	*out =
	    (struct dw_provider_arg){ .kind = DW_PARG_PATH, .root = root->var, .path = v, .n = n };
	for (; e->kind == CEDAR_E_GET; e = e->arg[0])
		v[--n] = e->name;
	return true;
}

static bool literal(const struct cedar_expr *e, struct dw_val *out)
{
	if (e->kind == CEDAR_E_EXT && e->ext == CEDAR_X_DECIMAL && e->n_arg == 1 &&
	    e->arg[0]->kind == CEDAR_E_LIT && e->arg[0]->value.kind == CEDAR_STRING) {
		*out = dw_decimal(cedar_sv(e->arg[0]->value.s));
		return true;
	}
	if (e->kind != CEDAR_E_LIT)
		return false;
	switch (e->value.kind) {
	case CEDAR_BOOL:
		*out = dw_bool(e->value.b);
		return true;
	case CEDAR_LONG:
		*out = dw_int(e->value.i);
		return true;
	case CEDAR_STRING:
		*out = dw_str(cedar_sv(e->value.s));
		return true;
	default:
		return false;
	}
}

static bool argument(struct dw_provider_fold *f, const struct cedar_expr *e, unsigned depth,
    struct dw_provider_arg *out)
{
	struct dw_provider_arg *v;

	if (literal(e, &out->lit)) {
		out->kind = DW_PARG_LIT;
		return true;
	}
	if (e->kind != CEDAR_E_SET)
		return path(f, e, out);
	v = ARENA_VEC(f->a, struct dw_provider_arg, e->n_arg);
	if (v == NULL || depth > DW_PROVIDER_DEPTH)
		return false;
	for (uint32_t i = 0; i < e->n_arg; i++) {
		if (!argument(f, e->arg[i], depth + 1, &v[i]))
			return false;
	}
	*out = (struct dw_provider_arg){ .kind = DW_PARG_SET, .item = v, .n = e->n_arg };
	return true;
}

static const char *type_text(struct dw_provider_fold *f, const struct cedar_type *ty)
{
	AUTO_BUF b = buf_with(65536);
	sv s;

	cedar_put_type(&b, ty);
	s = arena_dup(f->a, buf_sv(&b));
	return s.p != NULL ? s.p : "…";
}

/* A type that an argument certainly has, or NULL when only the decision will tell. */
static const struct cedar_type *static_type(
    struct dw_provider_fold *f, const struct dw_provider_arg *x, const struct cedar_action *act)
{
	const struct cedar_type *ty = NULL;
	const struct cedar_attr *m;

	if (x->kind == DW_PARG_LIT)
		return plain(x->lit.tag == DW_INT       ? SV("long")
		             : x->lit.tag == DW_BOOL    ? SV("bool")
		             : x->lit.tag == DW_DECIMAL ? SV("decimal")
		                                        : SV("string"));
	if (x->kind != DW_PARG_PATH || x->root != CEDAR_CONTEXT || act == NULL)
		return NULL;
	ty = act->context;
	for (size_t i = 0; i < x->n; i++) {
		if (ty == NULL || ty->kind != CEDAR_TY_RECORD)
			return NULL;
		m = cedar_type_attr(ty, x->path[i]);
		ty = m != NULL ? m->type : NULL;
	}
	(void)f;
	return ty;
}

static bool same_type(const struct cedar_type *want, const struct cedar_type *got)
{
	bool wb = want->kind == CEDAR_TY_TRUE || want->kind == CEDAR_TY_FALSE ||
	          want->kind == CEDAR_TY_BOOL,
	     gb = got->kind == CEDAR_TY_TRUE || got->kind == CEDAR_TY_FALSE ||
	          got->kind == CEDAR_TY_BOOL;

	if (wb || gb)
		return wb && gb;
	if (want->kind != got->kind)
		return false;
	if (want->kind == CEDAR_TY_SET && want->elem != NULL && got->elem != NULL)
		return same_type(want->elem, got->elem);
	return true; /* the members of records are looked at when there is a value */
}

static int check_type(struct dw_provider_fold *f, const struct cedar_span *at, sv name,
    const struct cedar_type *want, const struct dw_provider_arg *x)
{
	const struct cedar_policy *p = &f->s->src.policy[f->rule];
	const struct cedar_action **acts = NULL;
	const struct cedar_type *got = static_type(f, x, NULL);
	size_t n = 0;

	if (x->kind == DW_PARG_SET) {
		if (want->kind != CEDAR_TY_SET)
			return FAIL(f, at, NULL,
			    "provider `" SV_FMT
			    "`: argument of type `Set` does not match the declared `%s`",
			    SV_ARG(name), type_text(f, want));
		for (size_t i = 0; i < x->n; i++) {
			if (check_type(f, at, name, want->elem, &x->item[i]) < 0)
				return -1;
		}
		return 0;
	}
	if (got == NULL && f->s->schema != NULL &&
	    cedar_policy_actions(f->s->schema, p, f->a, &acts, &n) < 0)
		return fail(f, at, NULL, NULL);
	for (size_t i = 0; i < (got != NULL ? 1 : n); i++) {
		const struct cedar_type *ty = got != NULL ? got : static_type(f, x, acts[i]);

		if (ty != NULL && !same_type(want, ty))
			return FAIL(f, at, NULL,
			    "provider `" SV_FMT
			    "`: argument of type `%s` does not match the declared `%s`",
			    SV_ARG(name), type_text(f, ty), type_text(f, want));
	}
	return 0;
}

/* One step: what is called, and the arguments as written from arg[from] on. */
static int add_step(struct dw_provider_fold *f, struct dw_provider_leaf *l,
    const struct dw_provider_sig *sig, const struct cedar_expr *e, uint32_t from, const char *what)
{
	size_t got = e->n_arg - from;
	struct dw_provider_arg *v = ARENA_VEC(f->a, struct dw_provider_arg, got);
	AUTO_BUF text = buf_with(DW_SOURCE_MAX);

	if (got != sig->nargs)
		return FAIL(f, &e->span, NULL,
		    "%s `" SV_FMT "` expects %zu argument(s) but got %zu", what, SV_ARG(sig->name),
		    sig->nargs, got);
	if (l->nsteps == DW_PROVIDER_STEPS)
		return fail(f, &e->span, NULL, "more than 32 methods behind a provider");
	if (v == NULL)
		return fail(f, &e->span, NULL, NULL);
	buf_put_sv(&text, l->text);
	buf_put_c(&text, l->nsteps != 0 ? "." : "");
	buf_put_sv(&text, sig->name);
	buf_put_byte(&text, '(');
	for (size_t i = 0; i < got; i++) {
		const struct cedar_expr *x = e->arg[from + i];

		if (!argument(f, x, 0, &v[i]))
			return FAIL(f, &x->span, NULL,
			    "provider `" SV_FMT
			    "`: an argument is a literal, a path that begins with `context.`, "
			    "`principal` or `resource`, or a set of these",
			    SV_ARG(sig->name));
		if (check_type(f, &x->span, sig->name, sig->arg[i], &v[i]) < 0)
			return -1;
		buf_put_c(&text, i != 0 ? ", " : "");
		cedar_put_expr(&text, x, NULL);
	}
	buf_put_byte(&text, ')');
	l->text = arena_dup(f->a, buf_sv(&text));
	if (!buf_ok(&text) || l->text.p == NULL)
		return fail(f, &e->span, NULL, NULL);
	l->step[l->nsteps++] = (struct dw_provider_step){ sig, v };
	return 0;
}

static const struct dw_provider_sig *find(const struct dw_provider_sig *v, size_t n, sv name)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(v[i].name, name))
			return &v[i];
	return NULL;
}

static const char *meant(
    struct dw_provider_fold *f, const struct dw_provider_sig *v, size_t n, sv name)
{
	sv names[256], near;
	size_t i;

	for (i = 0; i < n && i < 256; i++)
		names[i] = v[i].name;
	near = cedar_nearest(name, names, i);
	return near.n != 0 ? arena_printf(f->a, "did you mean `" SV_FMT "`?", SV_ARG(near)) : NULL;
}

static int fold_call(struct dw_provider_fold *f, struct cedar_expr **node)
{
	struct cedar_expr *e = *node;
	sv name = cedar_sv(e->name);
	const struct dw_provider_sig *sig = find(f->declared->v, f->declared->n, name);
	struct cedar_leaf *leaf = ARENA_NEW(f->a, struct cedar_leaf);
	struct dw_provider_leaf *l = ARENA_NEW(f->a, struct dw_provider_leaf);
	struct cedar_expr *x = cedar_expr_new(f->a, CEDAR_E_LEAF, &e->span, NULL, 0);
	const char *field =
	    arena_printf(f->a, "policy_%u_p_%u", f->s->src.policy[f->rule].ordinal, *f->count);

	if (sig == NULL)
		return FAIL(f, &e->span, meant(f, f->declared->v, f->declared->n, name),
		    "provider `" SV_FMT "` is not present in the provider declarations",
		    SV_ARG(name));
	if (leaf == NULL || l == NULL || x == NULL || field == NULL)
		return fail(f, &e->span, NULL, NULL);
	if (add_step(f, l, sig, e, 0, "provider") < 0)
		return -1;
	++*f->count;
	l->field = sv_c(field);
	*leaf = (struct cedar_leaf){ .ordinal = UINT32_MAX, /* no temporal one */
		.is_provider = true,
		.text = l->text,
		.at = e->span,
		.host = l,
		.type = sig->out };
	x->leaf = leaf;
	*node = x;
	return 0;
}

static int fold_method(struct dw_provider_fold *f, struct cedar_expr **node)
{
	struct cedar_expr *e = *node, *on = e->arg[0];
	struct dw_provider_leaf *l;
	const struct dw_provider_sig *call, *sig;
	sv name = cedar_sv(e->name);

	if (on->kind != CEDAR_E_LEAF || !on->leaf->is_provider)
		return FAIL(f, &e->span, "methods of a provider come first, then attributes",
		    "method `" SV_FMT "` is not called on a provider", SV_ARG(name));
	l = on->leaf->host;
	call = l->step[0].sig;
	sig = find(call->method, call->nmethods, name);
	if (sig == NULL)
		return FAIL(f, &e->span, meant(f, call->method, call->nmethods, name),
		    "provider `" SV_FMT "` declares no method `" SV_FMT "`", SV_ARG(call->name),
		    SV_ARG(name));
	if (sig->in != NULL && !same_type(sig->in, l->step[l->nsteps - 1].sig->out))
		return FAIL(f, &e->span, NULL,
		    "method `" SV_FMT "` is called on `%s` but is declared for `%s`", SV_ARG(name),
		    type_text(f, l->step[l->nsteps - 1].sig->out), type_text(f, sig->in));
	if (add_step(f, l, sig, e, 1, "method") < 0)
		return -1;
	on->leaf->type = sig->out;
	on->leaf->text = l->text;
	*node = on;
	return 0;
}

int dw_provider_fold(struct dw_provider_fold *f, struct cedar_expr **node)
{
	if ((*node)->kind == CEDAR_E_CALL)
		return fold_call(f, node);
	return (*node)->kind == CEDAR_E_METHOD ? fold_method(f, node) : 0;
}

struct numbering {
	struct dw_set *s;
	struct smap *seen;
};

static int number_node(void *ctx, struct cedar_expr **node)
{
	struct numbering *n = ctx;
	struct dw_provider_leaf *l;
	uintptr_t at;
	cedar_sym key;

	if ((*node)->kind != CEDAR_E_LEAF || !(*node)->leaf->is_provider)
		return 0;
	l = (*node)->leaf->host;
	key = cedar_intern(n->s->syms, l->text);
	if (key == NULL)
		return -1;
	at = (uintptr_t)smap_get(n->seen, key, NULL);
	if (at == 0) {
		at = ++n->s->nprovided;
		if (smap_add(n->seen, key, NULL, (void *)at) < 0)
			return -1;
	}
	l->id = (uint32_t)at - 1;
	return 0;
}

int dw_provider_number(struct dw_set *s, struct smap *seen, struct cedar_expr **node)
{
	struct numbering n = { s, seen };

	return cedar_expr_walk(node, number_node, &n);
}
