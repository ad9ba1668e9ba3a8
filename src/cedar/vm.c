/* The machine: one loop over fixed instructions. Errors are Cedar's texts. See prog.h; spec 3.2. */
#include "cedar/prog.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/ban.h"

/* "long", …, and for an entity its type. */
static const char *kind_of(const struct cedar_value *v, char *text, size_t n)
{
	if (v->kind != CEDAR_ENTITY)
		return cedar_kind_name(v->kind);
	(void)snprintf(text, n, "(entity of type `" SV_FMT "`)", SV_ARG(cedar_sv(v->uid.type)));
	return text;
}

static int type_error(struct cedar_vm *m, const char *want, const struct cedar_value *v)
{
	char text[300];

	return box_fail(&m->err, BOX_EPARSE, 0, "type error: expected %s, got %s", want,
	    kind_of(v, text, sizeof(text)));
}

#define ANY_ENTITY "(entity of type `any_entity_type`)"

static int no_memory(struct cedar_vm *m)
{
	m->fatal = true;
	return box_fail(&m->err, BOX_ELIMIT, 0, "the evaluation needs more memory than is allowed");
}

static const char *uid_text(struct cedar_vm *m, struct cedar_uid u)
{
	AUTO_BUF b = buf_with(700);
	const char *s;

	cedar_put_uid(&b, u);
	s = buf_ok(&b)
	        ? arena_printf(m->a, SV_FMT, SV_ARG(buf_sv(&b)))
	        : arena_printf(m->a, SV_FMT "::\"…\"", SV_ARG(sv_sub(cedar_sv(u.type), 0, 300)));
	return s != NULL ? s : "…";
}

static int no_entity(struct cedar_vm *m, struct cedar_uid u)
{
	return box_fail(&m->err, BOX_EPARSE, 0, "entity `%s` does not exist", uid_text(m, u));
}

static int get(struct cedar_vm *m, struct cedar_value *v, cedar_sym k)
{
	const struct cedar_entity_data *e;
	const struct cedar_value *r;

	if (v->kind == CEDAR_RECORD) {
		r = cedar_record_get(v->rec, k);
		if (r == NULL)
			return box_fail(&m->err, BOX_EPARSE, 0,
			    "record does not have the attribute `" SV_FMT "`", SV_ARG(cedar_sv(k)));
		*v = *r;
		return 0;
	}
	if (v->kind != CEDAR_ENTITY)
		return type_error(m, "one of [record, " ANY_ENTITY "]", v);
	e = cedar_entities_find(m->rq->entities, v->uid);
	if (e == NULL)
		return no_entity(m, v->uid);
	r = e->attrs != NULL ? cedar_record_get(e->attrs, k) : NULL;
	if (r == NULL)
		return box_fail(&m->err, BOX_EPARSE, 0,
		    "`%s` does not have the attribute `" SV_FMT "`", uid_text(m, v->uid),
		    SV_ARG(cedar_sv(k)));
	*v = *r;
	return 0;
}

/* v has k: *r is the value, or NULL. */
static int has(
    struct cedar_vm *m, const struct cedar_value *v, cedar_sym k, const struct cedar_value **r)
{
	const struct cedar_entity_data *e;

	if (v->kind == CEDAR_RECORD) {
		*r = cedar_record_get(v->rec, k);
		return 0;
	}
	if (v->kind != CEDAR_ENTITY)
		return type_error(m, "one of [record, " ANY_ENTITY "]", v);
	e = cedar_entities_find(m->rq->entities, v->uid);
	*r = e != NULL && e->attrs != NULL ? cedar_record_get(e->attrs, k) : NULL;
	return 0;
}

static int compare(
    struct cedar_vm *m, enum cedar_op op, struct cedar_value *x, const struct cedar_value *y)
{
	bool ordered =
	    x->kind == CEDAR_LONG || x->kind == CEDAR_DATETIME || x->kind == CEDAR_DURATION;

	if (x->kind != y->kind || !ordered) {
		if (ordered)
			return type_error(m, cedar_kind_name(x->kind), y);
		if (y->kind == CEDAR_LONG || y->kind == CEDAR_DATETIME || y->kind == CEDAR_DURATION)
			return type_error(m, cedar_kind_name(y->kind), x);
		return type_error(m, "one of [datetime, duration, long]", x);
	}
	switch (op) {
	case OP_LT:
		*x = cedar_bool(x->i < y->i);
		break;
	case OP_LE:
		*x = cedar_bool(x->i <= y->i);
		break;
	case OP_GT:
		*x = cedar_bool(x->i > y->i);
		break;
	default:
		*x = cedar_bool(x->i >= y->i);
	}
	return 0;
}

static int arith(
    struct cedar_vm *m, enum cedar_op op, struct cedar_value *x, const struct cedar_value *y)
{
	const char *what;
	bool over;
	int64_t r;

	if (x->kind != CEDAR_LONG)
		return type_error(m, "long", x);
	if (y->kind != CEDAR_LONG)
		return type_error(m, "long", y);
	switch (op) {
	case OP_ADD:
		over = __builtin_add_overflow(x->i, y->i, &r);
		what = "add";
		break;
	case OP_SUB:
		over = __builtin_sub_overflow(x->i, y->i, &r);
		what = "subtract";
		break;
	default:
		over = __builtin_mul_overflow(x->i, y->i, &r);
		what = "multiply";
	}
	if (over)
		return box_fail(&m->err, BOX_EPARSE, 0,
		    "integer overflow while attempting to %s the values `%" PRId64 "` and `%" PRId64
		    "`",
		    what, x->i, y->i);
	x->i = r;
	return 0;
}

static int in(struct cedar_vm *m, struct cedar_value *x, const struct cedar_value *y)
{
	bool found = false;
	uint32_t i;

	if (x->kind != CEDAR_ENTITY)
		return type_error(m, ANY_ENTITY, x);
	if (y->kind == CEDAR_ENTITY) {
		*x = cedar_bool(cedar_entities_in_hierarchy(m->rq->entities, x->uid, y->uid));
		return 0;
	}
	if (y->kind != CEDAR_SET)
		return type_error(m, "one of [set, " ANY_ENTITY "]", y);
	/* All members are looked at before any is used. */
	for (i = 0; i < y->set->n; i++)
		if (y->set->v[i].kind != CEDAR_ENTITY)
			return type_error(m, ANY_ENTITY, &y->set->v[i]);
	for (i = 0; i < y->set->n && !found; i++)
		found = cedar_entities_in_hierarchy(m->rq->entities, x->uid, y->set->v[i].uid);
	*x = cedar_bool(found);
	return 0;
}

static int set_op(
    struct cedar_vm *m, enum cedar_op op, struct cedar_value *x, const struct cedar_value *y)
{
	if (x->kind != CEDAR_SET)
		return type_error(m, "set", x);
	if (op == OP_CONTAINS) {
		*x = cedar_bool(cedar_set_has(x->set, y));
		return 0;
	}
	if (y->kind != CEDAR_SET)
		return type_error(m, "set", y);
	*x = cedar_bool(op == OP_CONTAINS_ALL ? cedar_set_has_all(x->set, y->set)
	                                      : cedar_set_has_any(x->set, y->set));
	return 0;
}

static int tag(
    struct cedar_vm *m, enum cedar_op op, struct cedar_value *x, const struct cedar_value *y)
{
	const struct cedar_entity_data *e;
	const struct cedar_value *r;

	if (x->kind != CEDAR_ENTITY)
		return type_error(m, ANY_ENTITY, x);
	if (y->kind != CEDAR_STRING)
		return type_error(m, "string", y);
	e = cedar_entities_find(m->rq->entities, x->uid);
	r = e != NULL && e->tags != NULL ? cedar_record_get(e->tags, y->s) : NULL;
	if (op == OP_HAS_TAG) {
		*x = cedar_bool(r != NULL);
		return 0;
	}
	if (e == NULL)
		return no_entity(m, x->uid);
	if (r == NULL)
		return box_fail(&m->err, BOX_EPARSE, 0, "`%s` does not have the tag `" SV_FMT "`",
		    uid_text(m, x->uid), SV_ARG(cedar_sv(y->s)));
	*x = *r;
	return 0;
}

static int build(struct cedar_vm *m, const struct cedar_insn *i, struct cedar_value *v)
{
	struct cedar_value *s;
	struct cedar_field *f;
	const cedar_sym *key;
	uint32_t k;

	if (i->op == OP_SET) {
		s = ARENA_VEC(m->a, struct cedar_value, i->b);
		if (s == NULL)
			return no_memory(m);
		if (i->b != 0)
			memcpy(s, v, i->b * sizeof(*s));
		return cedar_set_make(m->a, s, i->b, v) < 0 ? no_memory(m) : 0;
	}
	f = ARENA_VEC(m->a, struct cedar_field, i->b);
	if (f == NULL)
		return no_memory(m);
	key = i->b != 0 ? m->g->p[i->a] : NULL;
	for (k = 0; k < i->b; k++)
		f[k] = (struct cedar_field){ key[k], v[k] };
	return cedar_record_make(m->a, f, i->b, v, NULL) < 0 ? no_memory(m) : 0;
}

static void push_var(const struct cedar_request *rq, uint32_t var, struct cedar_value *out)
{
	static const struct cedar_record empty = { 0, NULL };

	switch ((enum cedar_var)var) {
	case CEDAR_PRINCIPAL:
		*out = cedar_entity(rq->principal);
		break;
	case CEDAR_ACTION:
		*out = cedar_entity(rq->action);
		break;
	case CEDAR_RESOURCE:
		*out = cedar_entity(rq->resource);
		break;
	case CEDAR_CONTEXT:
		*out = (struct cedar_value){ .kind = CEDAR_RECORD,
			.rec = rq->context != NULL ? rq->context : &empty };
		break;
	}
}

static int leaf(struct cedar_vm *m, const struct cedar_leaf *l, struct cedar_value *out)
{
	if (m->rq->leaf == NULL)
		return box_fail(
		    &m->err, BOX_EPARSE, 0, "the host gave no value for a temporal condition");
	return m->rq->leaf(m->rq->leaf_ctx, l, out, &m->err);
}

int cedar_vm_run(struct cedar_vm *m, uint32_t start, struct cedar_value *out)
{
	const struct cedar_insn *code = m->g->code, *i = &code[start];
	const void *const *p = m->g->p;
	const struct cedar_value *r = NULL;
	struct cedar_value *top = m->stack - 1;
	int bad = 0;

	for (;; i++) {
		switch ((enum cedar_op)i->op) {
		case OP_CONST:
			*++top = m->g->k[i->a];
			continue;
		case OP_VAR:
			push_var(m->rq, i->a, ++top);
			continue;
		case OP_LEAF:
			bad = leaf(m, p[i->a], ++top);
			break;
		case OP_GET:
			bad = get(m, top, p[i->a]);
			break;
		case OP_HAS:
			bad = has(m, top, p[i->a], &r);
			if (bad == 0)
				*top = cedar_bool(r != NULL);
			break;
		case OP_HAS_GET:
			bad = has(m, top, p[i->a], &r);
			if (bad != 0)
				break;
			if (r != NULL) {
				*top = *r;
			} else {
				*top = cedar_bool(false);
				i = &code[i->b] - 1;
			}
			continue;
		case OP_JFALSE:
		case OP_JTRUE:
			if (top->kind != CEDAR_BOOL) {
				bad = type_error(m, "bool", top);
				break;
			}
			if (top->b == (i->op == OP_JTRUE))
				i = &code[i->b] - 1;
			else
				top--;
			continue;
		case OP_JIF:
			if (top->kind != CEDAR_BOOL) {
				bad = type_error(m, "bool", top);
				break;
			}
			if (!(top--)->b)
				i = &code[i->b] - 1;
			continue;
		case OP_JMP:
			i = &code[i->b] - 1;
			continue;
		case OP_BOOL:
		case OP_NOT:
			if (top->kind != CEDAR_BOOL)
				bad = type_error(m, "bool", top);
			else if (i->op == OP_NOT)
				top->b = !top->b;
			break;
		case OP_NEG:
			if (top->kind != CEDAR_LONG)
				bad = type_error(m, "long", top);
			else if (__builtin_sub_overflow((int64_t)0, top->i, &top->i))
				bad = box_fail(&m->err, BOX_EPARSE, 0,
				    "integer overflow while attempting to negate the value "
				    "`%" PRId64 "`",
				    INT64_MIN);
			break;
		case OP_EQ:
		case OP_NE:
			top--;
			*top = cedar_bool(cedar_value_eq(&top[0], &top[1]) == (i->op == OP_EQ));
			continue;
		case OP_LT:
		case OP_LE:
		case OP_GT:
		case OP_GE:
			top--;
			bad = compare(m, (enum cedar_op)i->op, &top[0], &top[1]);
			break;
		case OP_IN:
			top--;
			bad = in(m, &top[0], &top[1]);
			break;
		case OP_ADD:
		case OP_SUB:
		case OP_MUL:
			top--;
			bad = arith(m, (enum cedar_op)i->op, &top[0], &top[1]);
			break;
		case OP_CONTAINS:
		case OP_CONTAINS_ALL:
		case OP_CONTAINS_ANY:
			top--;
			bad = set_op(m, (enum cedar_op)i->op, &top[0], &top[1]);
			break;
		case OP_IS_EMPTY:
			if (top->kind != CEDAR_SET)
				bad = type_error(m, "set", top);
			else
				*top = cedar_bool(top->set->n == 0);
			break;
		case OP_GET_TAG:
		case OP_HAS_TAG:
			top--;
			bad = tag(m, (enum cedar_op)i->op, &top[0], &top[1]);
			break;
		case OP_LIKE:
			if (top->kind != CEDAR_STRING)
				bad = type_error(m, "string", top);
			else
				*top = cedar_bool(cedar_like(p[i->a], cedar_sv(top->s)));
			break;
		case OP_IS:
			if (top->kind != CEDAR_ENTITY)
				bad = type_error(m, ANY_ENTITY, top);
			else
				*top = cedar_bool(cedar_str_eq(top->uid.type, p[i->a]));
			break;
		case OP_IS_IN:
			if (top->kind != CEDAR_ENTITY) {
				bad = type_error(m, ANY_ENTITY, top);
				break;
			}
			if (!cedar_str_eq(top->uid.type, p[i->a])) {
				*top = cedar_bool(false);
				i = &code[i->b] - 1;
			}
			continue;
		case OP_SET:
		case OP_RECORD:
			top = top + 1 - i->b;
			bad = build(m, i, top);
			break;
		case OP_EXT: {
			struct cedar_value v;

			top = top + 1 - i->a;
			bad = cedar_ext_call(m->a, (enum cedar_ext)i->x, top, i->a, &v, &m->err);
			if (bad == 0)
				*top = v;
			else if (m->err.code == BOX_ENOMEM)
				m->fatal = true;
			break;
		}
		case OP_FAIL:
			return box_fail(&m->err, BOX_EPARSE, 0, "%s", (const char *)p[i->a]);
		case OP_END:
			*out = *top;
			return 0;
		}
		if (bad != 0)
			return -1;
	}
}
