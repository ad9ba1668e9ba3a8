/* One provider call of a decision: its arguments from the request, and the host's answer. See
 * provider.h. What the host returns is checked like input: its code may be wrong. */
#include "dogwood/provider.h"

#include "base/ban.h"

static const struct dw_val *member(const struct dw_val *v, sv name)
{
	return v != NULL && v->tag == DW_OBJECT ? dw_get(v, name) : NULL;
}

/* `principal.a.b`, of the entity data that came with the event. */
static const struct dw_val *of_entity(
    const struct dw_event *e, const struct dw_uid *u, const struct dw_provider_arg *x)
{
	const struct dw_val *v = NULL;

	for (size_t i = 0; i < e->nents && v == NULL; i++)
		if (sv_eq(e->ents[i].uid.type, u->type) && sv_eq(e->ents[i].uid.id, u->id))
			v = &e->ents[i].attrs;
	for (size_t i = 0; i < x->n; i++)
		v = member(v, cedar_sv(x->path[i]));
	return v;
}

static int resolve(const struct dw_provider_arg *x, const struct dw_event *e, struct arena *a,
    struct dw_val *out, struct box_err *err)
{
	const struct dw_uid *u = x->root == CEDAR_PRINCIPAL ? &e->principal : &e->resource;
	const struct dw_val *v = &e->context;
	struct dw_val *items;

	switch (x->kind) {
	case DW_PARG_LIT:
		*out = x->lit;
		return 0;
	case DW_PARG_SET:
		items = ARENA_VEC(a, struct dw_val, x->n);
		if (items == NULL)
			return box_nomem(err, "the arguments of a provider");
		for (size_t i = 0; i < x->n; i++) {
			if (resolve(&x->item[i], e, a, &items[i], err) < 0)
				return -1;
		}
		*out = (struct dw_val){ .tag = DW_ARRAY, .u.arr = { items, x->n } };
		return 0;
	case DW_PARG_PATH:
		break;
	}
	if (x->root != CEDAR_CONTEXT && x->n == 0) {
		*out = (struct dw_val){ .tag = DW_ENTITY, .u.ent = *u };
		return 0;
	}
	if (x->root == CEDAR_CONTEXT) {
		for (size_t i = 0; i < x->n; i++)
			v = member(v, cedar_sv(x->path[i]));
	} else {
		v = of_entity(e, u, x);
	}
	if (v == NULL) /* spec 10 */
		v = member(&e->context, cedar_sv(x->path[x->n - 1]));
	*out = v != NULL ? *v : (struct dw_val){ .tag = DW_NULL };
	return 0;
}

static bool fits(const struct dw_val *v, const struct cedar_type *ty, unsigned depth);

static bool record_fits(const struct dw_val *v, const struct cedar_type *ty, unsigned depth)
{
	size_t seen = 0;

	for (uint32_t i = 0; i < ty->n_attr; i++) {
		const struct dw_val *m = member(v, cedar_sv(ty->attr[i].name));

		if (m == NULL ? ty->attr[i].required : !fits(m, ty->attr[i].type, depth + 1))
			return false;
		seen += m != NULL;
	}
	return seen == v->u.obj.n;
}

/* Is v of the declared type? */
static bool fits(const struct dw_val *v, const struct cedar_type *ty, unsigned depth)
{
	if (depth > 2 * DW_PROVIDER_DEPTH)
		return false;
	switch (ty->kind) {
	case CEDAR_TY_STRING:
		return v->tag == DW_STRING;
	case CEDAR_TY_LONG:
		return v->tag == DW_INT;
	case CEDAR_TY_BOOL:
		return v->tag == DW_BOOL;
	case CEDAR_TY_DECIMAL:
		return v->tag == DW_DECIMAL;
	case CEDAR_TY_SET:
		if (v->tag != DW_ARRAY)
			return false;
		for (size_t i = 0; i < v->u.arr.n; i++) {
			if (!fits(&v->u.arr.v[i], ty->elem, depth + 1))
				return false;
		}
		return true;
	case CEDAR_TY_RECORD:
		return v->tag == DW_OBJECT && record_fits(v, ty, depth);
	default:
		return false; /* nothing else is declared */
	}
}

static int step_args(const struct dw_provider_step *s, const struct dw_event *e, struct arena *a,
    struct dw_provider_part *out, struct box_err *err)
{
	struct dw_val *v = ARENA_VEC(a, struct dw_val, s->sig->nargs);

	if (v == NULL)
		return box_nomem(err, "the arguments of a provider");
	for (size_t i = 0; i < s->sig->nargs; i++) {
		if (resolve(&s->arg[i], e, a, &v[i], err) < 0)
			return -1;
		if (v[i].tag != DW_NULL && !fits(&v[i], s->sig->arg[i], 0))
			return box_fail(err, BOX_EPARSE, 0,
			    "argument %zu of `" SV_FMT "` is not of its declared type", i + 1,
			    SV_ARG(s->sig->name));
	}
	*out = (struct dw_provider_part){ s->sig->name, v, s->sig->nargs };
	return 0;
}

int dw_provider_ask(const struct dw_provider_leaf *l, const struct dw_event *e, dw_provider_fn fn,
    void *fn_arg, struct arena *a, struct dw_val *out, struct box_err *err)
{
	struct dw_provider_part part[DW_PROVIDER_STEPS];

	if (fn == NULL)
		return box_fail(err, BOX_ECONFIG, 0,
		    "provider " SV_FMT ": the host provides nothing", SV_ARG(l->step[0].sig->name));
	for (size_t i = 0; i < l->nsteps; i++) {
		if (step_args(&l->step[i], e, a, &part[i], err) < 0)
			return box_wrap(err, "provider " SV_FMT, SV_ARG(l->step[0].sig->name));
	}
	*out = (struct dw_val){ .tag = DW_NULL };
	if (fn(fn_arg, part, l->nsteps, a, out, err) < 0)
		return box_wrap(err, "provider " SV_FMT, SV_ARG(l->step[0].sig->name));
	/* JSON has one kind of number, and a decimal may look like an integer or a text. */
	if (l->step[l->nsteps - 1].sig->out->kind == CEDAR_TY_DECIMAL && out->tag == DW_STRING)
		out->tag = DW_DECIMAL;
	if (!fits(out, l->step[l->nsteps - 1].sig->out, 0))
		return box_fail(err, BOX_EPARSE, 0,
		    "provider " SV_FMT ": the answer is not of the declared type",
		    SV_ARG(l->step[0].sig->name));
	return 0;
}
