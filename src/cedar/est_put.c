/* Policies in Cedar's JSON form, written. See json.h. */
#include "cedar/json.h"

#include <inttypes.h>

#include "base/ban.h"

struct out {
	struct buf *b;
	const struct cedar_print *how;
};

static void put(struct out *o, const struct cedar_expr *e);

static const char *const op_name[] = {
	[CEDAR_E_EQ] = "==",
	[CEDAR_E_NE] = "!=",
	[CEDAR_E_LT] = "<",
	[CEDAR_E_LE] = "<=",
	[CEDAR_E_GT] = ">",
	[CEDAR_E_GE] = ">=",
	[CEDAR_E_IN] = "in",
	[CEDAR_E_ADD] = "+",
	[CEDAR_E_SUB] = "-",
	[CEDAR_E_MUL] = "*",
	[CEDAR_E_AND] = "&&",
	[CEDAR_E_OR] = "||",
	[CEDAR_E_CONTAINS] = "contains",
	[CEDAR_E_CONTAINS_ALL] = "containsAll",
	[CEDAR_E_CONTAINS_ANY] = "containsAny",
	[CEDAR_E_GET_TAG] = "getTag",
	[CEDAR_E_HAS_TAG] = "hasTag",
	[CEDAR_E_NOT] = "!",
	[CEDAR_E_NEG] = "neg",
	[CEDAR_E_IS_EMPTY] = "isEmpty",
};

static const char *const var_name[] = { "principal", "action", "resource", "context" };

static void put_uid(struct buf *b, struct cedar_uid u)
{
	buf_put_sv(b, SV("{\"type\": "));
	buf_put_json(b, cedar_sv(u.type));
	buf_put_sv(b, SV(", \"id\": "));
	buf_put_json(b, cedar_sv(u.id));
	buf_put_byte(b, '}');
}

/* Chains are nested to the left: ((a && b) && c). */
/* a && b && c is (a && b) && c. No recursion: such a chain may be long. */
static void put_binary(struct out *o, const struct cedar_expr *e, uint32_t n)
{
	uint32_t i;

	for (i = 1; i < n && !o->b->bad; i++)
		buf_putf(o->b, "{\"%s\": {\"left\": ", op_name[e->kind]);
	put(o, e->arg[0]);
	for (i = 1; i < n && !o->b->bad; i++) {
		buf_put_sv(o->b, SV(", \"right\": "));
		put(o, e->arg[i]);
		buf_put_sv(o->b, SV("}}"));
	}
}

static void put_list(struct out *o, const struct cedar_expr *e)
{
	uint32_t i;

	buf_put_byte(o->b, '[');
	for (i = 0; i < e->n_arg; i++) {
		if (i > 0)
			buf_put_sv(o->b, SV(", "));
		put(o, e->arg[i]);
	}
	buf_put_byte(o->b, ']');
}

static void put_attr(
    struct out *o, const char *op, const struct cedar_expr *left, const cedar_sym *path, uint32_t n)
{
	buf_putf(o->b, "{\"%s\": {\"left\": ", op);
	if (n > 1)
		put_attr(o, ".", left, path, n - 1);
	else
		put(o, left);
	buf_put_sv(o->b, SV(", \"attr\": "));
	buf_put_json(o->b, cedar_sv(path[n - 1]));
	buf_put_sv(o->b, SV("}}"));
}

/* e has a.b is (e has a) && (e.a has b). */
static void put_has(struct out *o, const struct cedar_expr *e, uint32_t n)
{
	if (n == 1) {
		put_attr(o, "has", e->arg[0], e->path, 1);
		return;
	}
	buf_put_sv(o->b, SV("{\"&&\": {\"left\": "));
	put_has(o, e, n - 1);
	buf_put_sv(o->b, SV(", \"right\": "));
	put_attr(o, "has", e->arg[0], e->path, n);
	buf_put_sv(o->b, SV("}}"));
}

static void put_like(struct out *o, const struct cedar_expr *e)
{
	bool first = true;
	uint32_t i;

	buf_put_sv(o->b, SV("{\"like\": {\"left\": "));
	put(o, e->arg[0]);
	buf_put_sv(o->b, SV(", \"pattern\": ["));
	for (i = 0; i < e->pattern.n; i++) {
		if (i > 0) {
			buf_put_c(o->b, first ? "\"Wildcard\"" : ", \"Wildcard\"");
			first = false;
		}
		if (e->pattern.run[i].n == 0)
			continue;
		buf_put_c(o->b, first ? "{\"Literal\": " : ", {\"Literal\": ");
		first = false;
		buf_put_json(o->b, e->pattern.run[i]);
		buf_put_byte(o->b, '}');
	}
	buf_put_sv(o->b, SV("]}}"));
}

static void put_record(struct out *o, const struct cedar_expr *e)
{
	uint32_t i;

	buf_put_sv(o->b, SV("{\"Record\": {"));
	for (i = 0; i < e->n_arg; i++) {
		if (i > 0)
			buf_put_sv(o->b, SV(", "));
		buf_put_json(o->b, cedar_sv(e->path[i]));
		buf_put_sv(o->b, SV(": "));
		put(o, e->arg[i]);
	}
	buf_put_sv(o->b, SV("}}"));
}

static void put_is(struct out *o, const struct cedar_expr *e)
{
	buf_put_sv(o->b, SV("{\"is\": {\"left\": "));
	put(o, e->arg[0]);
	buf_put_sv(o->b, SV(", \"entity_type\": "));
	buf_put_json(o->b, cedar_sv(e->name));
	if (e->n_arg == 2) {
		buf_put_sv(o->b, SV(", \"in\": "));
		put(o, e->arg[1]);
	}
	buf_put_sv(o->b, SV("}}"));
}

static void put_leaf(struct out *o, const struct cedar_leaf *l)
{
	if (o->how != NULL && o->how->leaf_json != NULL)
		o->how->leaf_json(o->how->ctx, o->b, l);
	else
		o->b->bad = true; /* Cedar has no form for it */
}

static void put(struct out *o, const struct cedar_expr *e)
{
	/* A path of `has` writes its operand more than once: a full buffer must end that. */
	if (o->b->bad)
		return;
	switch (e->kind) {
	case CEDAR_E_LIT:
		buf_put_sv(o->b, SV("{\"Value\": "));
		cedar_put_value_json(o->b, &e->value);
		buf_put_byte(o->b, '}');
		break;
	case CEDAR_E_VAR:
		buf_putf(o->b, "{\"Var\": \"%s\"}", var_name[e->var]);
		break;
	case CEDAR_E_SLOT:
		buf_putf(o->b, "{\"Slot\": \"?%s\"}", var_name[e->var]);
		break;
	case CEDAR_E_IF:
		buf_put_sv(o->b, SV("{\"if-then-else\": {\"if\": "));
		put(o, e->arg[0]);
		buf_put_sv(o->b, SV(", \"then\": "));
		put(o, e->arg[1]);
		buf_put_sv(o->b, SV(", \"else\": "));
		put(o, e->arg[2]);
		buf_put_sv(o->b, SV("}}"));
		break;
	case CEDAR_E_AND:
	case CEDAR_E_OR:
	case CEDAR_E_EQ:
	case CEDAR_E_NE:
	case CEDAR_E_LT:
	case CEDAR_E_LE:
	case CEDAR_E_GT:
	case CEDAR_E_GE:
	case CEDAR_E_IN:
	case CEDAR_E_ADD:
	case CEDAR_E_SUB:
	case CEDAR_E_MUL:
	case CEDAR_E_CONTAINS:
	case CEDAR_E_CONTAINS_ALL:
	case CEDAR_E_CONTAINS_ANY:
	case CEDAR_E_GET_TAG:
	case CEDAR_E_HAS_TAG:
		put_binary(o, e, e->n_arg);
		break;
	case CEDAR_E_NOT:
	case CEDAR_E_NEG:
	case CEDAR_E_IS_EMPTY:
		buf_putf(o->b, "{\"%s\": {\"arg\": ", op_name[e->kind]);
		put(o, e->arg[0]);
		buf_put_sv(o->b, SV("}}"));
		break;
	case CEDAR_E_GET:
		put_attr(o, ".", e->arg[0], &e->name, 1);
		break;
	case CEDAR_E_HAS:
		put_has(o, e, e->n_path);
		break;
	case CEDAR_E_LIKE:
		put_like(o, e);
		break;
	case CEDAR_E_IS:
		put_is(o, e);
		break;
	case CEDAR_E_SET:
		buf_put_sv(o->b, SV("{\"Set\": "));
		put_list(o, e);
		buf_put_byte(o->b, '}');
		break;
	case CEDAR_E_RECORD:
		put_record(o, e);
		break;
	case CEDAR_E_EXT:
		buf_putf(o->b, "{\"%s\": ", cedar_ext_name(e->ext));
		put_list(o, e);
		buf_put_byte(o->b, '}');
		break;
	case CEDAR_E_LEAF:
		put_leaf(o, e->leaf);
		break;
	case CEDAR_E_PARAM:
	case CEDAR_E_CALL:
	case CEDAR_E_METHOD:
		o->b->bad = true; /* macros are expanded before */
		break;
	}
}

static void put_scope(struct buf *b, const struct cedar_scope *s, const char *var)
{
	uint32_t i;

	switch (s->op) {
	case CEDAR_S_ANY:
		buf_put_sv(b, SV("{\"op\": \"All\"}"));
		return;
	case CEDAR_S_EQ:
		buf_put_sv(b, SV("{\"op\": \"==\", "));
		break;
	case CEDAR_S_IN:
		buf_put_sv(b, SV("{\"op\": \"in\", "));
		break;
	case CEDAR_S_IS:
	case CEDAR_S_IS_IN:
		buf_put_sv(b, SV("{\"op\": \"is\", \"entity_type\": "));
		buf_put_json(b, cedar_sv(s->type));
		if (s->op == CEDAR_S_IS) {
			buf_put_byte(b, '}');
			return;
		}
		buf_put_sv(b, SV(", \"in\": {"));
		break;
	case CEDAR_S_IN_SET:
		/* A list of one is written as Cedar writes it: no list. */
		if (s->n_set == 1) {
			buf_put_sv(b, SV("{\"op\": \"in\", \"entity\": "));
			put_uid(b, s->set[0]);
			buf_put_byte(b, '}');
			return;
		}
		buf_put_sv(b, SV("{\"op\": \"in\", \"entities\": ["));
		for (i = 0; i < s->n_set; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			put_uid(b, s->set[i]);
		}
		buf_put_sv(b, SV("]}"));
		return;
	}
	if (s->slot) {
		buf_putf(b, "\"slot\": \"?%s\"", var);
	} else {
		buf_put_sv(b, SV("\"entity\": "));
		put_uid(b, s->uid);
	}
	buf_put_c(b, s->op == CEDAR_S_IS_IN ? "}}" : "}");
}

void cedar_put_policy_json(
    struct buf *b, const struct cedar_policy *p, const struct cedar_print *how)
{
	struct out o = { b, how };
	uint32_t i;

	buf_putf(b, "{\"effect\": \"%s\", \"principal\": ",
	    p->effect == CEDAR_PERMIT ? "permit" : "forbid");
	put_scope(b, &p->principal, "principal");
	buf_put_sv(b, SV(", \"action\": "));
	put_scope(b, &p->action, "action");
	buf_put_sv(b, SV(", \"resource\": "));
	put_scope(b, &p->resource, "resource");
	buf_put_sv(b, SV(", \"conditions\": ["));
	for (i = 0; i < p->n_cond; i++) {
		buf_putf(b, "%s{\"kind\": \"%s\", \"body\": ", i > 0 ? ", " : "",
		    p->cond[i].unless ? "unless" : "when");
		put(&o, p->cond[i].e);
		buf_put_byte(b, '}');
	}
	buf_put_byte(b, ']');
	for (i = 0; i < p->n_ann; i++) {
		buf_put_c(b, i == 0 ? ", \"annotations\": {" : ", ");
		buf_put_json(b, cedar_sv(p->ann[i].key));
		buf_put_sv(b, SV(": "));
		buf_put_json(b, cedar_sv(p->ann[i].value));
	}
	buf_put_c(b, p->n_ann != 0 ? "}}" : "}");
}

void cedar_put_source_json(
    struct buf *b, const struct cedar_source *src, const struct cedar_print *how)
{
	bool templates, first;
	size_t i;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		buf_put_c(b, pass == 0 ? "{\"staticPolicies\": {" : "}, \"templates\": {");
		first = true;
		for (i = 0; i < src->n_policy; i++) {
			templates = cedar_policy_is_template(&src->policy[i]);
			if (templates != (pass == 1))
				continue;
			buf_put_c(b, first ? "\n  " : ",\n  ");
			first = false;
			buf_put_json(b, cedar_sv(src->policy[i].id));
			buf_put_sv(b, SV(": "));
			cedar_put_policy_json(b, &src->policy[i], how);
		}
		if (!first)
			buf_put_byte(b, '\n');
	}
	buf_put_sv(b, SV("}, \"templateLinks\": []}\n"));
}
