/* Trees to code. Constants are folded; `&&` and `||` become forward jumps. See prog.h. */
#include "cedar/prog.h"

#include <stdlib.h>

#include "base/ban.h"

struct comp {
	struct cedar_prog *g;
	const struct cedar_uid *slot; /* of ?principal, ?resource; may be NULL */
	struct cedar_diags *ds;
	uint32_t depth; /* of the stack, here */
	bool failed;
};

void cedar_prog_fini(struct cedar_prog *g)
{
	free(g->code);
	free(g->k);
	free(g->p);
	g->code = NULL;
	g->k = NULL;
	g->p = NULL;
}

static void fail(
    struct comp *c, const struct cedar_span *at, const char *before, sv name, const char *after)
{
	cedar_diag_add(
	    c->ds, CEDAR_ERROR, "parse", at, NULL, "%s" SV_FMT "%s", before, SV_ARG(name), after);
	c->failed = true;
}

static void nomem(struct comp *c)
{
	if (!c->failed)
		cedar_diag_add(c->ds, CEDAR_ERROR, "limit", NULL, NULL,
		    "out of memory while compiling policies");
	c->failed = true;
}

static bool room(void **v, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap != 0 ? *cap * 2 : 64;
	void *q;

	if (n < *cap)
		return true;
	if (want > UINT32_MAX / 2)
		return false;
	q = reallocarray(*v, want, size);
	if (q == NULL)
		return false;
	*v = q;
	*cap = want;
	return true;
}

/* Append an instruction; effect is what it does to the height of the stack. Its position is
 * returned. */
static uint32_t emit(struct comp *c, enum cedar_op op, uint32_t a, uint32_t b, int effect)
{
	struct cedar_prog *g = c->g;

	if (!room((void **)&g->code, g->n_code, &g->cap_code, sizeof(*g->code))) {
		nomem(c);
		return 0;
	}
	g->code[g->n_code] = (struct cedar_insn){ .op = (uint16_t)op, .a = a, .b = b };
	c->depth = (uint32_t)((int64_t)c->depth + effect);
	if (c->depth > g->max_stack)
		g->max_stack = c->depth;
	return (uint32_t)g->n_code++;
}

static void land(struct comp *c, uint32_t jump)
{
	if (!c->failed)
		c->g->code[jump].b = (uint32_t)c->g->n_code;
}

static uint32_t konst(struct comp *c, struct cedar_value v)
{
	struct cedar_prog *g = c->g;

	if (!room((void **)&g->k, g->n_k, &g->cap_k, sizeof(*g->k))) {
		nomem(c);
		return 0;
	}
	g->k[g->n_k] = v;
	return (uint32_t)g->n_k++;
}

static uint32_t ptr(struct comp *c, const void *p)
{
	struct cedar_prog *g = c->g;

	if (p == NULL || !room((void **)&g->p, g->n_p, &g->cap_p, sizeof(*g->p))) {
		nomem(c);
		return 0;
	}
	g->p[g->n_p] = p;
	return (uint32_t)g->n_p++;
}

/* A constructor on a constant string. 1 folded, 0 not of this form, -1 it always fails (*err
 * says why). */
static int fold_ext(
    struct arena *a, const struct cedar_expr *e, struct cedar_value *out, struct box_err *err)
{
	if (e->kind != CEDAR_E_EXT || cedar_ext_is_method(e->ext) || e->n_arg != 1 ||
	    e->arg[0]->kind != CEDAR_E_LIT || e->arg[0]->value.kind != CEDAR_STRING)
		return 0;
	return cedar_ext_call(a, e->ext, &e->arg[0]->value, 1, out, err) == 0 ? 1 : -1;
}

bool cedar_fold(struct arena *a, const struct cedar_expr *e, struct cedar_value *out)
{
	struct cedar_value *v;
	struct cedar_field *f;
	uint32_t i;

	switch (e->kind) {
	case CEDAR_E_LIT:
		*out = e->value;
		return true;
	case CEDAR_E_EXT:
		return fold_ext(a, e, out, NULL) > 0;
	case CEDAR_E_SET:
		v = ARENA_VEC(a, struct cedar_value, e->n_arg);
		if (v == NULL)
			return false;
		for (i = 0; i < e->n_arg; i++)
			if (!cedar_fold(a, e->arg[i], &v[i]))
				return false;
		return cedar_set_make(a, v, e->n_arg, out) == 0;
	case CEDAR_E_RECORD:
		f = ARENA_VEC(a, struct cedar_field, e->n_arg);
		if (f == NULL)
			return false;
		for (i = 0; i < e->n_arg; i++) {
			f[i].key = e->path[i];
			if (!cedar_fold(a, e->arg[i], &f[i].v))
				return false;
		}
		return cedar_record_make(a, f, e->n_arg, out, NULL) == 0;
	default:
		return false;
	}
}

/* Does e, when it does not fail, always give a Bool? */
static bool gives_bool(const struct cedar_expr *e)
{
	switch (e->kind) {
	case CEDAR_E_LIT:
		return e->value.kind == CEDAR_BOOL;
	case CEDAR_E_AND:
	case CEDAR_E_OR:
	case CEDAR_E_NOT:
	case CEDAR_E_EQ:
	case CEDAR_E_NE:
	case CEDAR_E_LT:
	case CEDAR_E_LE:
	case CEDAR_E_GT:
	case CEDAR_E_GE:
	case CEDAR_E_IN:
	case CEDAR_E_CONTAINS:
	case CEDAR_E_CONTAINS_ALL:
	case CEDAR_E_CONTAINS_ANY:
	case CEDAR_E_IS_EMPTY:
	case CEDAR_E_HAS_TAG:
	case CEDAR_E_HAS:
	case CEDAR_E_LIKE:
	case CEDAR_E_IS:
		return true;
	default:
		return false;
	}
}

static void gen(struct comp *c, const struct cedar_expr *e);

static void gen_chain(struct comp *c, const struct cedar_expr *e, enum cedar_op jump)
{
	uint32_t i, *at;

	at = calloc(e->n_arg, sizeof(*at));
	if (at == NULL) {
		nomem(c);
		return;
	}
	for (i = 0; i < e->n_arg; i++) {
		gen(c, e->arg[i]);
		if (i + 1 < e->n_arg)
			at[i] = emit(c, jump, 0, 0, -1);
		else if (!gives_bool(e->arg[i]))
			emit(c, OP_BOOL, 0, 0, 0);
	}
	for (i = 0; i + 1 < e->n_arg; i++)
		land(c, at[i]);
	free(at);
}

static void gen_has(struct comp *c, const struct cedar_expr *e)
{
	uint32_t i, *at = calloc(e->n_path, sizeof(*at));

	if (at == NULL) {
		nomem(c);
		return;
	}
	gen(c, e->arg[0]);
	for (i = 0; i + 1 < e->n_path; i++)
		at[i] = emit(c, OP_HAS_GET, ptr(c, e->path[i]), 0, 0);
	emit(c, OP_HAS, ptr(c, e->path[i]), 0, 0);
	for (i = 0; i + 1 < e->n_path; i++)
		land(c, at[i]);
	free(at);
}

static void gen_if(struct comp *c, const struct cedar_expr *e)
{
	uint32_t j, k;

	gen(c, e->arg[0]);
	j = emit(c, OP_JIF, 0, 0, -1);
	gen(c, e->arg[1]);
	k = emit(c, OP_JMP, 0, 0, 0);
	c->depth--; /* one branch only leaves its value */
	land(c, j);
	gen(c, e->arg[2]);
	land(c, k);
}

static void gen_is(struct comp *c, const struct cedar_expr *e)
{
	uint32_t j;

	gen(c, e->arg[0]);
	if (e->n_arg == 1) {
		emit(c, OP_IS, ptr(c, e->name), 0, 0);
		return;
	}
	j = emit(c, OP_IS_IN, ptr(c, e->name), 0, 0);
	gen(c, e->arg[1]);
	emit(c, OP_IN, 0, 0, -1);
	land(c, j);
}

static void gen_args(struct comp *c, const struct cedar_expr *e)
{
	uint32_t i;

	for (i = 0; i < e->n_arg; i++)
		gen(c, e->arg[i]);
}

static void gen_op(struct comp *c, const struct cedar_expr *e, enum cedar_op op)
{
	gen_args(c, e);
	emit(c, op, 0, 0, 1 - (int)e->n_arg);
}

static void gen_slot(struct comp *c, const struct cedar_expr *e)
{
	size_t i = e->var == CEDAR_PRINCIPAL ? 0 : 1;

	if (c->slot == NULL || c->slot[i].type == NULL)
		fail(c, &e->span, "template slot `?", i == 0 ? SV("principal") : SV("resource"),
		    "` was not linked");
	else
		emit(c, OP_CONST, konst(c, cedar_entity(c->slot[i])), 0, 1);
}

static void gen_ext(struct comp *c, const struct cedar_expr *e)
{
	struct cedar_value v;
	struct box_err err = { 0 };
	uint32_t at;

	switch (fold_ext(c->g->a, e, &v, &err)) {
	case 1:
		emit(c, OP_CONST, konst(c, v), 0, 1);
		return;
	case -1:
		/* It fails when it is reached, not before. */
		emit(c, OP_FAIL, ptr(c, arena_printf(c->g->a, "%s", err.msg)), 0, 1);
		return;
	default:
		gen_args(c, e);
		at = emit(c, OP_EXT, e->n_arg, 0, 1 - (int)e->n_arg);
		if (!c->failed)
			c->g->code[at].x = (uint16_t)e->ext;
	}
}

static void gen_build(struct comp *c, const struct cedar_expr *e)
{
	struct cedar_value v;

	if (cedar_fold(c->g->a, e, &v)) {
		emit(c, OP_CONST, konst(c, v), 0, 1);
		return;
	}
	gen_args(c, e);
	emit(c, e->kind == CEDAR_E_SET ? OP_SET : OP_RECORD,
	    e->kind == CEDAR_E_SET || e->n_arg == 0 ? 0 : ptr(c, e->path), e->n_arg,
	    1 - (int)e->n_arg);
}

static void gen(struct comp *c, const struct cedar_expr *e)
{
	if (c->failed)
		return;
	switch (e->kind) {
	case CEDAR_E_LIT:
		emit(c, OP_CONST, konst(c, e->value), 0, 1);
		break;
	case CEDAR_E_VAR:
		emit(c, OP_VAR, (uint32_t)e->var, 0, 1);
		break;
	case CEDAR_E_SLOT:
		gen_slot(c, e);
		break;
	case CEDAR_E_PARAM:
		fail(c, &e->span, "stray macro parameter reference `?", cedar_sv(e->name),
		    "` outside a macro body");
		break;
	case CEDAR_E_CALL:
		fail(c, &e->span, "unknown function or macro `", cedar_sv(e->name),
		    "` (not a Cedar built-in and not a declared macro)");
		break;
	case CEDAR_E_METHOD:
		fail(c, &e->span, "unknown method `", cedar_sv(e->name), "`");
		break;
	case CEDAR_E_IF:
		gen_if(c, e);
		break;
	case CEDAR_E_AND:
		gen_chain(c, e, OP_JFALSE);
		break;
	case CEDAR_E_OR:
		gen_chain(c, e, OP_JTRUE);
		break;
	case CEDAR_E_NOT:
		gen_op(c, e, OP_NOT);
		break;
	case CEDAR_E_NEG:
		gen_op(c, e, OP_NEG);
		break;
	case CEDAR_E_EQ:
		gen_op(c, e, OP_EQ);
		break;
	case CEDAR_E_NE:
		gen_op(c, e, OP_NE);
		break;
	case CEDAR_E_LT:
		gen_op(c, e, OP_LT);
		break;
	case CEDAR_E_LE:
		gen_op(c, e, OP_LE);
		break;
	case CEDAR_E_GT:
		gen_op(c, e, OP_GT);
		break;
	case CEDAR_E_GE:
		gen_op(c, e, OP_GE);
		break;
	case CEDAR_E_IN:
		gen_op(c, e, OP_IN);
		break;
	case CEDAR_E_ADD:
		gen_op(c, e, OP_ADD);
		break;
	case CEDAR_E_SUB:
		gen_op(c, e, OP_SUB);
		break;
	case CEDAR_E_MUL:
		gen_op(c, e, OP_MUL);
		break;
	case CEDAR_E_CONTAINS:
		gen_op(c, e, OP_CONTAINS);
		break;
	case CEDAR_E_CONTAINS_ALL:
		gen_op(c, e, OP_CONTAINS_ALL);
		break;
	case CEDAR_E_CONTAINS_ANY:
		gen_op(c, e, OP_CONTAINS_ANY);
		break;
	case CEDAR_E_GET_TAG:
		gen_op(c, e, OP_GET_TAG);
		break;
	case CEDAR_E_HAS_TAG:
		gen_op(c, e, OP_HAS_TAG);
		break;
	case CEDAR_E_IS_EMPTY:
		gen_op(c, e, OP_IS_EMPTY);
		break;
	case CEDAR_E_GET:
		gen(c, e->arg[0]);
		emit(c, OP_GET, ptr(c, e->name), 0, 0);
		break;
	case CEDAR_E_HAS:
		gen_has(c, e);
		break;
	case CEDAR_E_LIKE:
		gen(c, e->arg[0]);
		emit(c, OP_LIKE, ptr(c, &e->pattern), 0, 0);
		break;
	case CEDAR_E_IS:
		gen_is(c, e);
		break;
	case CEDAR_E_SET:
	case CEDAR_E_RECORD:
		gen_build(c, e);
		break;
	case CEDAR_E_EXT:
		gen_ext(c, e);
		break;
	case CEDAR_E_LEAF:
		emit(c, OP_LEAF, ptr(c, e->leaf), 0, 1);
		break;
	}
}

int cedar_compile_expr(struct cedar_prog *g, const struct cedar_expr *e,
    const struct cedar_uid *slot, struct cedar_diags *ds, uint32_t *start)
{
	struct comp c = { .g = g, .slot = slot, .ds = ds };

	*start = (uint32_t)g->n_code;
	gen(&c, e);
	emit(&c, OP_END, 0, 0, -1);
	return c.failed ? -1 : 0;
}

int cedar_compile_conds(struct cedar_prog *g, const struct cedar_policy *pol,
    const struct cedar_uid *slot, struct cedar_diags *ds, uint32_t *start)
{
	struct comp c = { .g = g, .slot = slot, .ds = ds };
	uint32_t i, *at = calloc(pol->n_cond + 1, sizeof(*at));

	*start = (uint32_t)g->n_code;
	if (at == NULL) {
		nomem(&c);
		return -1;
	}
	for (i = 0; i < pol->n_cond; i++) {
		const struct cedar_cond *k = &pol->cond[i];

		gen(&c, k->e);
		if (k->unless)
			emit(&c, OP_NOT, 0, 0, 0);
		if (i + 1 < pol->n_cond)
			at[i] = emit(&c, OP_JFALSE, 0, 0, -1);
		else if (!k->unless && !gives_bool(k->e))
			emit(&c, OP_BOOL, 0, 0, 0);
	}
	for (i = 0; i + 1 < pol->n_cond; i++)
		land(&c, at[i]);
	free(at);
	if (pol->n_cond == 0)
		emit(&c, OP_CONST, konst(&c, cedar_bool(true)), 0, 1);
	emit(&c, OP_END, 0, 0, -1);
	return c.failed ? -1 : 0;
}
