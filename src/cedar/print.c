/* Trees as Cedar text. Parentheses where precedence needs them and nowhere else, so the text
 * parses back to the same tree. */
#include "cedar/ast.h"

#include "base/ban.h"

enum level { L_IF, L_OR, L_AND, L_REL, L_ADD, L_MUL, L_UNARY, L_MEMBER };

struct out {
	struct buf *b;
	const struct cedar_print *how;
	bool lower; /* `!=`, `>`, `>=` by way of `!`, as Cedar's core language has them */
};

static void put(struct out *o, const struct cedar_expr *e, enum level need);

static enum level level_of(const struct out *o, const struct cedar_expr *e)
{
	switch (e->kind) {
	case CEDAR_E_IF:
		return L_IF;
	case CEDAR_E_OR:
		return L_OR;
	case CEDAR_E_AND:
		return L_AND;
	case CEDAR_E_NE:
	case CEDAR_E_GT:
	case CEDAR_E_GE:
		return o->lower ? L_UNARY : L_REL;
	case CEDAR_E_EQ:
	case CEDAR_E_LT:
	case CEDAR_E_LE:
	case CEDAR_E_IN:
	case CEDAR_E_HAS:
	case CEDAR_E_LIKE:
	case CEDAR_E_IS:
		return L_REL;
	case CEDAR_E_ADD:
	case CEDAR_E_SUB:
		return L_ADD;
	case CEDAR_E_MUL:
		return L_MUL;
	case CEDAR_E_NOT:
	case CEDAR_E_NEG:
		return L_UNARY;
	case CEDAR_E_LIT:
		return e->value.kind == CEDAR_LONG && e->value.i < 0 ? L_UNARY : L_MEMBER;
	default:
		return L_MEMBER;
	}
}

static const char *op_text(enum cedar_expr_kind k)
{
	switch (k) {
	case CEDAR_E_EQ:
		return " == ";
	case CEDAR_E_NE:
		return " != ";
	case CEDAR_E_LT:
		return " < ";
	case CEDAR_E_LE:
		return " <= ";
	case CEDAR_E_GT:
		return " > ";
	case CEDAR_E_GE:
		return " >= ";
	case CEDAR_E_IN:
		return " in ";
	case CEDAR_E_ADD:
		return " + ";
	case CEDAR_E_SUB:
		return " - ";
	default:
		return " * ";
	}
}

static const char *method_name(enum cedar_expr_kind k)
{
	switch (k) {
	case CEDAR_E_CONTAINS:
		return "contains";
	case CEDAR_E_CONTAINS_ALL:
		return "containsAll";
	case CEDAR_E_CONTAINS_ANY:
		return "containsAny";
	case CEDAR_E_GET_TAG:
		return "getTag";
	case CEDAR_E_HAS_TAG:
		return "hasTag";
	default:
		return "isEmpty";
	}
}

static const char *var_name(enum cedar_var v)
{
	switch (v) {
	case CEDAR_PRINCIPAL:
		return "principal";
	case CEDAR_ACTION:
		return "action";
	case CEDAR_RESOURCE:
		return "resource";
	case CEDAR_CONTEXT:
		return "context";
	}
	return "?";
}

/* name(args), the first `skip` arguments left out. */
static void put_call(struct out *o, sv name, const struct cedar_expr *e, uint32_t skip)
{
	uint32_t i;

	buf_put_sv(o->b, name);
	buf_put_byte(o->b, '(');
	for (i = skip; i < e->n_arg; i++) {
		if (i > skip)
			buf_put_sv(o->b, SV(", "));
		put(o, e->arg[i], L_IF);
	}
	buf_put_byte(o->b, ')');
}

static void put_method(struct out *o, sv name, const struct cedar_expr *e)
{
	put(o, e->arg[0], L_MEMBER);
	buf_put_byte(o->b, '.');
	put_call(o, name, e, 1);
}

static bool plain_name(cedar_sym s)
{
	return cedar_is_ident(cedar_sv(s)) && !cedar_is_reserved(cedar_sv(s));
}

static void put_attr(struct out *o, cedar_sym name)
{
	if (plain_name(name)) {
		buf_put_byte(o->b, '.');
		buf_put_sv(o->b, cedar_sv(name));
	} else {
		buf_put_byte(o->b, '[');
		cedar_put_quoted(o->b, cedar_sv(name));
		buf_put_byte(o->b, ']');
	}
}

/* A path whose steps are not all plain names has no syntax of its own and is written as what it
 * stands for. */
static void put_has(struct out *o, const struct cedar_expr *e)
{
	bool plain = true;
	uint32_t i, j;

	for (i = 0; i < e->n_path; i++)
		plain = plain && plain_name(e->path[i]);
	if (plain || e->n_path == 1) {
		put(o, e->arg[0], L_ADD);
		buf_put_sv(o->b, SV(" has "));
		for (i = 0; plain && i < e->n_path; i++) {
			if (i > 0)
				buf_put_byte(o->b, '.');
			buf_put_sv(o->b, cedar_sv(e->path[i]));
		}
		if (!plain)
			cedar_put_quoted(o->b, cedar_sv(e->path[0]));
		return;
	}
	buf_put_byte(o->b, '(');
	for (i = 0; i < e->n_path; i++) {
		if (i > 0)
			buf_put_sv(o->b, SV(" && "));
		put(o, e->arg[0], L_MEMBER);
		for (j = 0; j < i; j++)
			put_attr(o, e->path[j]);
		buf_put_sv(o->b, SV(" has "));
		cedar_put_quoted(o->b, cedar_sv(e->path[i]));
	}
	buf_put_byte(o->b, ')');
}

static void put_like(struct out *o, const struct cedar_expr *e)
{
	uint32_t i;

	put(o, e->arg[0], L_ADD);
	buf_put_sv(o->b, SV(" like \""));
	for (i = 0; i < e->pattern.n; i++) {
		sv rest = e->pattern.run[i], head;
		bool star = true;

		if (i > 0)
			buf_put_byte(o->b, '*');
		while (star) {
			star = sv_cut(rest, '*', &head, &rest);
			cedar_put_escaped(o->b, head);
			if (star)
				buf_put_sv(o->b, SV("\\*"));
		}
	}
	buf_put_byte(o->b, '"');
}

static void put_binary(struct out *o, const struct cedar_expr *e)
{
	enum cedar_expr_kind k = e->kind;
	bool additive = k == CEDAR_E_ADD || k == CEDAR_E_SUB;
	enum level l = additive ? L_ADD : k == CEDAR_E_MUL ? L_MUL : L_ADD, r;

	if (o->lower && (k == CEDAR_E_NE || k == CEDAR_E_GT || k == CEDAR_E_GE)) {
		buf_put_sv(o->b, SV("!("));
		put(o, e->arg[0], L_ADD);
		buf_put_c(o->b, k == CEDAR_E_NE ? " == " : k == CEDAR_E_GT ? " <= " : " < ");
		put(o, e->arg[1], L_ADD);
		buf_put_byte(o->b, ')');
		return;
	}
	/* Sums and products group to the left; relations not at all. */
	r = additive ? L_MUL : k == CEDAR_E_MUL ? L_UNARY : L_ADD;
	put(o, e->arg[0], l);
	buf_put_c(o->b, op_text(k));
	put(o, e->arg[1], r);
}

static void put_unary(struct out *o, const struct cedar_expr *e)
{
	const struct cedar_expr *x = e;
	size_t n = 0;
	bool literal;

	/* Four in a row are the most there may be. */
	while (x->kind == e->kind && n < 4) {
		buf_put_byte(o->b, e->kind == CEDAR_E_NOT ? '!' : '-');
		x = x->arg[0];
		n++;
	}
	/* -5 would be read as a literal, not as the negation of one. */
	literal = e->kind == CEDAR_E_NEG && x->kind == CEDAR_E_LIT && x->value.kind == CEDAR_LONG;
	if (literal) {
		buf_put_byte(o->b, '(');
		put(o, x, L_IF);
		buf_put_byte(o->b, ')');
	} else {
		put(o, x, L_MEMBER);
	}
}

static void put_chain(struct out *o, const struct cedar_expr *e)
{
	uint32_t i;

	for (i = 0; i < e->n_arg; i++) {
		if (i > 0)
			buf_put_c(o->b, e->kind == CEDAR_E_AND ? " && " : " || ");
		put(o, e->arg[i], e->kind == CEDAR_E_AND ? L_REL : L_AND);
	}
}

static void put_leaf(struct out *o, const struct cedar_leaf *l)
{
	if (o->how != NULL && o->how->leaf != NULL) {
		o->how->leaf(o->how->ctx, o->b, l);
		return;
	}
	buf_put_sv(o->b, SV("temporal {"));
	buf_put_sv(o->b, l->text);
	buf_put_byte(o->b, '}');
}

static void put_bare(struct out *o, const struct cedar_expr *e)
{
	uint32_t i;

	switch (e->kind) {
	case CEDAR_E_LIT:
		cedar_put_value(o->b, &e->value);
		break;
	case CEDAR_E_VAR:
		buf_put_c(o->b, var_name(e->var));
		break;
	case CEDAR_E_SLOT:
		buf_put_byte(o->b, '?');
		buf_put_c(o->b, var_name(e->var));
		break;
	case CEDAR_E_PARAM:
		buf_put_byte(o->b, '?');
		buf_put_sv(o->b, cedar_sv(e->name));
		break;
	case CEDAR_E_IF:
		buf_put_sv(o->b, SV("if "));
		put(o, e->arg[0], L_IF);
		buf_put_sv(o->b, SV(" then "));
		put(o, e->arg[1], L_IF);
		buf_put_sv(o->b, SV(" else "));
		put(o, e->arg[2], L_IF);
		break;
	case CEDAR_E_AND:
	case CEDAR_E_OR:
		put_chain(o, e);
		break;
	case CEDAR_E_NOT:
	case CEDAR_E_NEG:
		put_unary(o, e);
		break;
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
		put_binary(o, e);
		break;
	case CEDAR_E_CONTAINS:
	case CEDAR_E_CONTAINS_ALL:
	case CEDAR_E_CONTAINS_ANY:
	case CEDAR_E_GET_TAG:
	case CEDAR_E_HAS_TAG:
	case CEDAR_E_IS_EMPTY:
		put_method(o, sv_c(method_name(e->kind)), e);
		break;
	case CEDAR_E_GET:
		put(o, e->arg[0], L_MEMBER);
		put_attr(o, e->name);
		break;
	case CEDAR_E_HAS:
		put_has(o, e);
		break;
	case CEDAR_E_LIKE:
		put_like(o, e);
		break;
	case CEDAR_E_IS:
		put(o, e->arg[0], L_ADD);
		buf_put_sv(o->b, SV(" is "));
		buf_put_sv(o->b, cedar_sv(e->name));
		if (e->n_arg == 2) {
			buf_put_sv(o->b, SV(" in "));
			put(o, e->arg[1], L_ADD);
		}
		break;
	case CEDAR_E_SET:
		buf_put_byte(o->b, '[');
		for (i = 0; i < e->n_arg; i++) {
			if (i > 0)
				buf_put_sv(o->b, SV(", "));
			put(o, e->arg[i], L_IF);
		}
		buf_put_byte(o->b, ']');
		break;
	case CEDAR_E_RECORD:
		buf_put_byte(o->b, '{');
		for (i = 0; i < e->n_arg; i++) {
			if (i > 0)
				buf_put_sv(o->b, SV(", "));
			cedar_put_quoted(o->b, cedar_sv(e->path[i]));
			buf_put_sv(o->b, SV(": "));
			put(o, e->arg[i], L_IF);
		}
		buf_put_byte(o->b, '}');
		break;
	case CEDAR_E_EXT:
		if (cedar_ext_is_method(e->ext))
			put_method(o, sv_c(cedar_ext_name(e->ext)), e);
		else
			put_call(o, sv_c(cedar_ext_name(e->ext)), e, 0);
		break;
	case CEDAR_E_LEAF:
		put_leaf(o, e->leaf);
		break;
	case CEDAR_E_CALL:
		put_call(o, cedar_sv(e->name), e, 0);
		break;
	case CEDAR_E_METHOD:
		put_method(o, cedar_sv(e->name), e);
		break;
	}
}

static void put(struct out *o, const struct cedar_expr *e, enum level need)
{
	bool paren = level_of(o, e) < need;

	/* Some forms write an operand more than once: a full buffer must end that. */
	if (o->b->bad)
		return;
	if (paren)
		buf_put_byte(o->b, '(');
	put_bare(o, e);
	if (paren)
		buf_put_byte(o->b, ')');
}

void cedar_put_expr(struct buf *b, const struct cedar_expr *e, const struct cedar_print *how)
{
	struct out o = { b, how, false };

	put(&o, e, L_IF);
}

static void put_scope(struct buf *b, const struct cedar_scope *s, const char *var)
{
	uint32_t i;

	buf_put_c(b, var);
	if (s->op == CEDAR_S_IS || s->op == CEDAR_S_IS_IN) {
		buf_put_sv(b, SV(" is "));
		buf_put_sv(b, cedar_sv(s->type));
	}
	switch (s->op) {
	case CEDAR_S_ANY:
	case CEDAR_S_IS:
		return;
	case CEDAR_S_EQ:
		buf_put_sv(b, SV(" == "));
		break;
	case CEDAR_S_IN:
	case CEDAR_S_IS_IN:
		buf_put_sv(b, SV(" in "));
		break;
	case CEDAR_S_IN_SET:
		buf_put_sv(b, SV(" in ["));
		for (i = 0; i < s->n_set; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			cedar_put_uid(b, s->set[i]);
		}
		buf_put_byte(b, ']');
		return;
	}
	if (s->slot)
		buf_putf(b, "?%s", var);
	else
		cedar_put_uid(b, s->uid);
}

void cedar_put_policy(
    struct buf *b, const struct cedar_policy *p, bool fold, const struct cedar_print *how)
{
	struct out o = { b, how, fold };
	uint32_t i;

	for (i = 0; i < p->n_ann; i++) {
		buf_put_byte(b, '@');
		buf_put_sv(b, cedar_sv(p->ann[i].key));
		if (fold || p->ann[i].has_value) {
			buf_put_byte(b, '(');
			cedar_put_quoted(b, cedar_sv(p->ann[i].value));
			buf_put_byte(b, ')');
		}
		buf_put_byte(b, '\n');
	}
	buf_put_c(b, p->effect == CEDAR_PERMIT ? "permit(\n  " : "forbid(\n  ");
	put_scope(b, &p->principal, "principal");
	buf_put_sv(b, SV(",\n  "));
	put_scope(b, &p->action, "action");
	buf_put_sv(b, SV(",\n  "));
	put_scope(b, &p->resource, "resource");
	buf_put_sv(b, SV("\n)"));
	if (fold) {
		buf_put_sv(b, SV(" when {\n  "));
		for (i = 0; i < p->n_cond; i++) {
			if (i > 0)
				buf_put_sv(b, SV(" && "));
			if (p->cond[i].unless)
				buf_put_sv(b, SV("!("));
			put(&o, p->cond[i].e, p->cond[i].unless || p->n_cond == 1 ? L_IF : L_AND);
			if (p->cond[i].unless)
				buf_put_byte(b, ')');
		}
		if (p->n_cond == 0)
			buf_put_sv(b, SV("true"));
		buf_put_sv(b, SV("\n}"));
	}
	for (i = 0; !fold && i < p->n_cond; i++) {
		buf_put_c(b, p->cond[i].unless ? " unless " : " when ");
		if (p->cond[i].e->kind == CEDAR_E_LEAF && (how == NULL || how->leaf == NULL)) {
			put(&o, p->cond[i].e, L_IF);
			continue;
		}
		if (p->cond[i].guardrails)
			buf_put_sv(b, SV("guardrails "));
		buf_put_sv(b, SV("{\n  "));
		put(&o, p->cond[i].e, L_IF);
		buf_put_sv(b, SV("\n}"));
	}
	buf_put_sv(b, SV(";\n"));
}
