/* Policies in Cedar's JSON form, read: expressions and single policies (sets: est_set.c).
 * Hostile text; the limits are those of jtree.h, and trees are bounded like parsed ones. */
#include "cedar/est_priv.h"

#include "base/ban.h"

void *est_fail(struct er *p, const struct jnode *j, const char *what)
{
	struct cedar_span at =
	    j != NULL ? cedar_places_span(&p->places, j->off, j->len) : (struct cedar_span){ 0 };

	cedar_diag_add(p->ds, CEDAR_ERROR, "parse", &at, NULL, "%s", what);
	return NULL;
}

cedar_sym est_intern(struct er *p, sv s)
{
	cedar_sym y = cedar_intern(p->t, s);

	return y != NULL ? y : est_fail(p, NULL, "out of memory");
}

static struct cedar_expr *node(struct er *p, const struct jnode *j, enum cedar_expr_kind k,
    struct cedar_expr *const *arg, size_t n)
{
	struct cedar_expr *e;
	size_t i;

	for (i = 0; i < n; i++)
		if (arg[i] == NULL)
			return NULL;
	e = cedar_expr_new(p->a, k, NULL, arg, n);
	return e != NULL
	           ? e
	           : est_fail(p, j, "the expression is nested too deeply, or there is no memory");
}

/* The member k of j, which has exactly n members. */
struct jnode *est_member(struct er *p, const struct jnode *j, const char *k)
{
	struct jnode *m = jtree_get(j, sv_c(k));

	if (m == NULL)
		est_fail(p, j, arena_printf(p->a, "missing field `%s`", k));
	return m;
}

bool est_only(struct er *p, const struct jnode *j, uint32_t n)
{
	if (j->kind == J_OBJ && j->n == n)
		return true;
	est_fail(p, j, "this object has unknown or missing fields");
	return false;
}

static cedar_sym path(struct er *p, const struct jnode *j)
{
	sv rest, part;
	bool more = true;

	if (j->kind != J_STR)
		return est_fail(p, j, "a name must be a string");
	for (rest = j->s; more;) {
		ptrdiff_t c = sv_find_sv(rest, SV("::"));

		more = c >= 0;
		part = more ? sv_sub(rest, 0, (size_t)c) : rest;
		if (more)
			rest = sv_sub(rest, (size_t)c + 2, SIZE_MAX);
		if (!cedar_is_ident(part) || cedar_is_reserved(part))
			return est_fail(p, j, "this is not the name of an entity type");
	}
	return est_intern(p, j->s);
}

bool est_uid(struct er *p, const struct jnode *j, struct cedar_uid *out)
{
	const struct jnode *in = jtree_get(j, SV("__entity")), *type, *id;

	if (in != NULL && est_only(p, j, 1))
		j = in;
	if (!est_only(p, j, 2) || (type = est_member(p, j, "type")) == NULL ||
	    (id = est_member(p, j, "id")) == NULL)
		return false;
	if (id->kind != J_STR)
		return est_fail(p, id, "an id must be a string") != NULL;
	out->type = path(p, type);
	out->id = est_intern(p, id->s);
	return out->type != NULL && out->id != NULL;
}

static struct cedar_expr *expr(struct er *p, const struct jnode *j);

static struct cedar_expr *lit(struct er *p, const struct jnode *j, struct cedar_value v)
{
	struct cedar_expr *e = node(p, j, CEDAR_E_LIT, NULL, 0);

	if (e != NULL)
		e->value = v;
	return e;
}

static struct cedar_expr *exprs(
    struct er *p, const struct jnode *j, enum cedar_expr_kind k, bool values);

static struct cedar_expr *value_expr(struct er *p, const struct jnode *j);

/* {"__extn": {"fn", "arg"|"args"}} as a call. */
static struct cedar_expr *extension(struct er *p, const struct jnode *j)
{
	const struct jnode *fn, *arg = jtree_get(j, SV("arg")), *args = jtree_get(j, SV("args"));
	struct cedar_expr *e, *a;
	enum cedar_ext x;

	if (!est_only(p, j, 2) || (fn = est_member(p, j, "fn")) == NULL)
		return NULL;
	if (fn->kind != J_STR || !cedar_ext_find(fn->s, &x))
		return est_fail(p, fn, "there is no extension function of this name");
	if (args != NULL) {
		e = exprs(p, args, CEDAR_E_EXT, true);
	} else {
		a = arg != NULL ? value_expr(p, arg) : est_fail(p, j, "missing field `arg`");
		e = node(p, j, CEDAR_E_EXT, &a, 1);
	}
	if (e != NULL)
		e->ext = x;
	return e;
}

static struct cedar_expr *record(struct er *p, const struct jnode *j, bool values)
{
	struct cedar_expr **v, *e;
	cedar_sym *k;
	uint32_t i;

	if (j->kind != J_OBJ)
		return est_fail(p, j, "a record must be an object");
	v = ARENA_VEC(p->a, struct cedar_expr *, j->n);
	k = ARENA_VEC(p->a, cedar_sym, j->n);
	if (v == NULL || k == NULL)
		return est_fail(p, j, "out of memory");
	for (i = 0; i < j->n; i++) {
		k[i] = est_intern(p, j->key[i]);
		v[i] = values ? value_expr(p, j->item[i]) : expr(p, j->item[i]);
		if (k[i] == NULL || v[i] == NULL)
			return NULL;
	}
	e = node(p, j, CEDAR_E_RECORD, v, j->n);
	if (e != NULL) {
		e->path = k;
		e->n_path = j->n;
	}
	return e;
}

/* A constant: {"Value": …}. */
static struct cedar_expr *value_expr(struct er *p, const struct jnode *j)
{
	struct cedar_uid u;
	cedar_sym s;

	switch (j->kind) {
	case J_NULL:
	case J_REAL:
		return est_fail(p, j, "this is no value of Cedar");
	case J_BOOL:
		return lit(p, j, cedar_bool(j->b));
	case J_INT:
		return lit(p, j, cedar_long(j->i));
	case J_STR:
		s = est_intern(p, j->s);
		return s != NULL ? lit(p, j, cedar_string(s)) : NULL;
	case J_ARR:
		return exprs(p, j, CEDAR_E_SET, true);
	case J_OBJ:
		break;
	}
	if (jtree_get(j, SV("__entity")) != NULL)
		return est_uid(p, j, &u) ? lit(p, j, cedar_entity(u)) : NULL;
	if (jtree_get(j, SV("__extn")) != NULL)
		return est_only(p, j, 1) ? extension(p, j->item[0]) : NULL;
	return record(p, j, true);
}

static struct cedar_expr *exprs(
    struct er *p, const struct jnode *j, enum cedar_expr_kind k, bool values)
{
	struct cedar_expr **v;
	uint32_t i;

	if (j->kind != J_ARR)
		return est_fail(p, j, "a list of expressions must be an array");
	v = ARENA_VEC(p->a, struct cedar_expr *, j->n);
	if (v == NULL)
		return est_fail(p, j, "out of memory");
	for (i = 0; i < j->n; i++) {
		v[i] = values ? value_expr(p, j->item[i]) : expr(p, j->item[i]);
		if (v[i] == NULL)
			return NULL;
	}
	return node(p, j, k, v, j->n);
}

static const struct {
	const char *name;
	enum cedar_expr_kind kind;
} binary[] = {
	{ "==", CEDAR_E_EQ },
	{ "!=", CEDAR_E_NE },
	{ "<", CEDAR_E_LT },
	{ "<=", CEDAR_E_LE },
	{ ">", CEDAR_E_GT },
	{ ">=", CEDAR_E_GE },
	{ "in", CEDAR_E_IN },
	{ "&&", CEDAR_E_AND },
	{ "||", CEDAR_E_OR },
	{ "+", CEDAR_E_ADD },
	{ "-", CEDAR_E_SUB },
	{ "*", CEDAR_E_MUL },
	{ "contains", CEDAR_E_CONTAINS },
	{ "containsAll", CEDAR_E_CONTAINS_ALL },
	{ "containsAny", CEDAR_E_CONTAINS_ANY },
	{ "getTag", CEDAR_E_GET_TAG },
	{ "hasTag", CEDAR_E_HAS_TAG },
}, unary[] = { { "!", CEDAR_E_NOT }, { "neg", CEDAR_E_NEG }, { "isEmpty", CEDAR_E_IS_EMPTY } };

static struct cedar_expr *binary_expr(struct er *p, const struct jnode *j, enum cedar_expr_kind k)
{
	struct jnode *l, *r;
	struct cedar_expr *v[2];

	if (!est_only(p, j, 2) || (l = est_member(p, j, "left")) == NULL ||
	    (r = est_member(p, j, "right")) == NULL)
		return NULL;
	v[0] = expr(p, l);
	v[1] = v[0] != NULL ? expr(p, r) : NULL;
	return node(p, j, k, v, 2);
}

static struct cedar_expr *variable(struct er *p, const struct jnode *j)
{
	static const char *const names[] = { "principal", "action", "resource", "context" };
	struct cedar_expr *e;
	int i;

	for (i = 0; i < 4 && j->kind == J_STR; i++)
		if (sv_eq(j->s, sv_c(names[i]))) {
			e = node(p, j, CEDAR_E_VAR, NULL, 0);
			if (e != NULL)
				e->var = (enum cedar_var)i;
			return e;
		}
	return est_fail(p, j, "the variables are principal, action, resource, context");
}

/* `attr`: a string, or for `has` also a list of them, which is a path. */
static bool attr_path(
    struct er *p, const struct jnode *a, bool many, const cedar_sym **out, uint32_t *n)
{
	const struct jnode *const one[] = { a };
	const struct jnode *const *v = one;
	cedar_sym *path_v;
	uint32_t i;

	*n = 1;
	if (many && a->kind == J_ARR && a->n != 0) {
		v = (const struct jnode *const *)a->item;
		*n = a->n;
	}
	path_v = ARENA_VEC(p->a, cedar_sym, *n);
	if (path_v == NULL)
		return est_fail(p, a, "out of memory") != NULL;
	for (i = 0; i < *n; i++) {
		if (v[i]->kind != J_STR)
			return est_fail(p, v[i], "`attr` must be a string") != NULL;
		path_v[i] = est_intern(p, v[i]->s);
		if (path_v[i] == NULL)
			return false;
	}
	*out = path_v;
	return true;
}

static struct cedar_expr *attribute(struct er *p, const struct jnode *j, enum cedar_expr_kind k)
{
	const cedar_sym *path_v;
	struct jnode *l, *a;
	struct cedar_expr *e;
	uint32_t n;

	if (!est_only(p, j, 2) || (l = est_member(p, j, "left")) == NULL ||
	    (a = est_member(p, j, "attr")) == NULL ||
	    !attr_path(p, a, k == CEDAR_E_HAS, &path_v, &n))
		return NULL;
	e = expr(p, l);
	e = node(p, j, k, &e, 1);
	if (e == NULL)
		return NULL;
	if (k == CEDAR_E_GET) {
		e->name = path_v[0];
	} else {
		e->path = path_v;
		e->n_path = n;
	}
	return e;
}

/* "pattern": ["Wildcard", {"Literal": "text"}, …] */
static bool pattern(struct er *p, const struct jnode *j, struct cedar_pattern *out)
{
	size_t bytes = 0;
	uint32_t i, n = 0;
	char *text;
	sv *run;

	if (j->kind != J_ARR)
		return est_fail(p, j, "`pattern` must be an array") != NULL;
	for (i = 0; i < j->n; i++)
		bytes += j->item[i]->len;
	run = ARENA_VEC(p->a, sv, (size_t)j->n + 1);
	text = arena_alloc(p->a, bytes + 1, 1);
	if (run == NULL || text == NULL)
		return est_fail(p, j, "out of memory") != NULL;
	run[0] = (sv){ text, 0 };
	for (i = 0; i < j->n; i++) {
		const struct jnode *l = jtree_get(j->item[i], SV("Literal"));

		if (j->item[i]->kind == J_STR && sv_eq(j->item[i]->s, SV("Wildcard"))) {
			run[++n] = (sv){ text, 0 };
			continue;
		}
		if (l == NULL || l->kind != J_STR || j->item[i]->n != 1)
			return est_fail(p, j->item[i],
			           "a part of a pattern is \"Wildcard\" or {\"Literal\": text}") !=
			       NULL;
		/* Literals of one run stand one behind the other: no text is longer than its
		 * JSON. */
		if (l->s.n != 0)
			memcpy(text, l->s.p, l->s.n);
		text += l->s.n;
		run[n].n += l->s.n;
	}
	*out = (struct cedar_pattern){ n + 1, run };
	return true;
}

static struct cedar_expr *like(struct er *p, const struct jnode *j)
{
	struct jnode *l, *a;
	struct cedar_pattern pat;
	struct cedar_expr *e;

	if (!est_only(p, j, 2) || (l = est_member(p, j, "left")) == NULL ||
	    (a = est_member(p, j, "pattern")) == NULL || !pattern(p, a, &pat))
		return NULL;
	e = expr(p, l);
	e = node(p, j, CEDAR_E_LIKE, &e, 1);
	if (e != NULL)
		e->pattern = pat;
	return e;
}

static struct cedar_expr *is(struct er *p, const struct jnode *j)
{
	struct jnode *l, *ty, *in = jtree_get(j, SV("in"));
	struct cedar_expr *v[2], *e;
	cedar_sym name;

	if (!est_only(p, j, in != NULL ? 3 : 2) || (l = est_member(p, j, "left")) == NULL ||
	    (ty = est_member(p, j, "entity_type")) == NULL || (name = path(p, ty)) == NULL)
		return NULL;
	v[0] = expr(p, l);
	v[1] = v[0] != NULL && in != NULL ? expr(p, in) : NULL;
	e = node(p, j, CEDAR_E_IS, v, in != NULL ? 2 : 1);
	if (e != NULL)
		e->name = name;
	return e;
}

static struct cedar_expr *conditional(struct er *p, const struct jnode *j)
{
	static const char *const part[] = { "if", "then", "else" };
	struct cedar_expr *v[3];
	struct jnode *m;
	int i;

	if (!est_only(p, j, 3))
		return NULL;
	for (i = 0; i < 3; i++) {
		m = est_member(p, j, part[i]);
		v[i] = m != NULL ? expr(p, m) : NULL;
		if (v[i] == NULL)
			return NULL;
	}
	return node(p, j, CEDAR_E_IF, v, 3);
}

static struct cedar_expr *expr(struct er *p, const struct jnode *j)
{
	struct cedar_expr *e;
	struct jnode *in, *arg;
	enum cedar_ext x;
	size_t i;
	sv k;

	if (j->kind != J_OBJ || j->n != 1)
		return est_fail(p, j, "an expression is an object with one key, its operator");
	k = j->key[0];
	in = j->item[0];
	if (sv_eq(k, SV("Value")))
		return value_expr(p, in);
	if (sv_eq(k, SV("Var")))
		return variable(p, in);
	if (sv_eq(k, SV("Set")))
		return exprs(p, in, CEDAR_E_SET, false);
	if (sv_eq(k, SV("Record")))
		return record(p, in, false);
	if (sv_eq(k, SV(".")))
		return attribute(p, in, CEDAR_E_GET);
	if (sv_eq(k, SV("has")))
		return attribute(p, in, CEDAR_E_HAS);
	if (sv_eq(k, SV("like")))
		return like(p, in);
	if (sv_eq(k, SV("is")))
		return is(p, in);
	if (sv_eq(k, SV("if-then-else")))
		return conditional(p, in);
	if (sv_eq(k, SV("Slot")))
		return est_fail(p, in, "template slots stand in the scope only");
	for (i = 0; i < sizeof(binary) / sizeof(binary[0]); i++)
		if (sv_eq(k, sv_c(binary[i].name)))
			return binary_expr(p, in, binary[i].kind);
	for (i = 0; i < sizeof(unary) / sizeof(unary[0]); i++)
		if (sv_eq(k, sv_c(unary[i].name))) {
			if (!est_only(p, in, 1) || (arg = est_member(p, in, "arg")) == NULL)
				return NULL;
			e = expr(p, arg);
			return node(p, j, unary[i].kind, &e, 1);
		}
	if (!cedar_ext_find(k, &x))
		return est_fail(p, j,
		    arena_printf(p->a, "`" SV_FMT "` is no operator or function of Cedar",
		        SV_ARG(sv_sub(k, 0, 200))));
	e = exprs(p, in, CEDAR_E_EXT, false);
	if (e != NULL && e->n_arg == 0 && cedar_ext_is_method(x))
		return est_fail(p, in, "a method needs its receiver as first argument");
	if (e != NULL)
		e->ext = x;
	return e;
}

/* ---- policies ------------------------------------------------------------------------------ */

/* {"entity": …} or {"slot": "?principal"} of j. */
static bool entity_or_slot(struct er *p, const struct jnode *j, int which, struct cedar_scope *s)
{
	static const char *const slot[] = { "?principal", NULL, "?resource" };
	const struct jnode *e = jtree_get(j, SV("entity")), *k = jtree_get(j, SV("slot"));

	if (e != NULL && k == NULL)
		return est_uid(p, e, &s->uid);
	if (k == NULL || e != NULL || k->kind != J_STR || slot[which] == NULL ||
	    !sv_eq(k->s, sv_c(slot[which])))
		return est_fail(p, j, "an entity or the slot of this variable must stand here") !=
		       NULL;
	s->slot = true;
	p->pol->has_slot[which / 2] = true;
	return true;
}

static bool is_action(struct cedar_uid u)
{
	return sv_eq(cedar_sv(u.type), SV("Action")) || sv_ends(cedar_sv(u.type), SV("::Action"));
}

static bool action_list(struct er *p, const struct jnode *j, struct cedar_scope *s)
{
	struct cedar_uid *v;
	uint32_t i;

	if (j->kind != J_ARR)
		return est_fail(p, j, "`entities` must be an array") != NULL;
	v = ARENA_VEC(p->a, struct cedar_uid, j->n);
	if (v == NULL)
		return est_fail(p, j, "out of memory") != NULL;
	for (i = 0; i < j->n; i++) {
		if (!est_uid(p, j->item[i], &v[i]))
			return false;
		if (!is_action(v[i]))
			return est_fail(p, j->item[i], "the type of an action is `Action`") != NULL;
	}
	s->op = CEDAR_S_IN_SET;
	s->set = v;
	s->n_set = j->n;
	return true;
}

/* which: 0 principal, 1 action, 2 resource */
static bool scope(struct er *p, const struct jnode *j, int which, struct cedar_scope *s)
{
	const struct jnode *op, *in, *ty;

	if (j->kind != J_OBJ || (op = est_member(p, j, "op")) == NULL)
		return est_fail(p, j, "a scope must be an object with `op`") != NULL;
	if (op->kind != J_STR)
		return est_fail(p, op, "`op` must be a string") != NULL;
	if (sv_eq(op->s, SV("All")))
		return est_only(p, j, 1);
	if (sv_eq(op->s, SV("is")) && which != 1) {
		in = jtree_get(j, SV("in"));
		s->op = in != NULL ? CEDAR_S_IS_IN : CEDAR_S_IS;
		if (!est_only(p, j, in != NULL ? 3 : 2) ||
		    (ty = est_member(p, j, "entity_type")) == NULL ||
		    (s->type = path(p, ty)) == NULL)
			return false;
		return in == NULL || (est_only(p, in, 1) && entity_or_slot(p, in, which, s));
	}
	if (!sv_eq(op->s, SV("==")) && !sv_eq(op->s, SV("in")))
		return est_fail(p, op, "`op` must be All, ==, in or is") != NULL;
	s->op = sv_eq(op->s, SV("==")) ? CEDAR_S_EQ : CEDAR_S_IN;
	if (!est_only(p, j, 2))
		return false;
	in = jtree_get(j, SV("entities"));
	if (which == 1 && s->op == CEDAR_S_IN && in != NULL)
		return action_list(p, in, s);
	if (!entity_or_slot(p, j, which, s))
		return false;
	if (which == 1 && !is_action(s->uid))
		return est_fail(p, j, "the type of an action is `Action`") != NULL;
	return true;
}

static bool annotations(struct er *p, const struct jnode *j)
{
	struct cedar_policy *pol = p->pol;
	uint32_t i;

	if (j == NULL)
		return true;
	if (j->kind != J_OBJ)
		return est_fail(p, j, "`annotations` must be an object") != NULL;
	pol->ann = ARENA_VEC(p->a, struct cedar_annotation, j->n);
	if (pol->ann == NULL)
		return est_fail(p, j, "out of memory") != NULL;
	for (i = 0; i < j->n; i++) {
		bool null = j->item[i]->kind == J_NULL;

		if ((j->item[i]->kind != J_STR && !null) || !cedar_is_ident(j->key[i]))
			return est_fail(p, j->item[i], "an annotation is a name with a string") !=
			       NULL;
		pol->ann[i].key = est_intern(p, j->key[i]);
		pol->ann[i].value = est_intern(p, null ? SV("") : j->item[i]->s);
		pol->ann[i].has_value = !null;
		if (pol->ann[i].key == NULL || pol->ann[i].value == NULL)
			return false;
	}
	pol->n_ann = j->n;
	return true;
}

static bool conditions(struct er *p, const struct jnode *j)
{
	struct cedar_policy *pol = p->pol;
	uint32_t i;

	if (j->kind != J_ARR)
		return est_fail(p, j, "`conditions` must be an array") != NULL;
	pol->cond = ARENA_VEC(p->a, struct cedar_cond, j->n);
	if (pol->cond == NULL)
		return est_fail(p, j, "out of memory") != NULL;
	for (i = 0; i < j->n; i++) {
		const struct jnode *kind, *body;

		if (!est_only(p, j->item[i], 2) ||
		    (kind = est_member(p, j->item[i], "kind")) == NULL ||
		    (body = est_member(p, j->item[i], "body")) == NULL)
			return false;
		if (kind->kind != J_STR ||
		    (!sv_eq(kind->s, SV("when")) && !sv_eq(kind->s, SV("unless"))))
			return est_fail(p, kind, "`kind` must be when or unless") != NULL;
		pol->cond[i].unless = sv_eq(kind->s, SV("unless"));
		pol->cond[i].e = expr(p, body);
		if (pol->cond[i].e == NULL)
			return false;
	}
	pol->n_cond = j->n;
	return true;
}

bool est_policy(struct er *p, const struct jnode *j, sv id, struct cedar_policy *out)
{
	const struct jnode *eff, *m[3], *c, *ann = jtree_get(j, SV("annotations"));
	static const char *const part[] = { "principal", "action", "resource" };
	struct cedar_scope *s[] = { &out->principal, &out->action, &out->resource };
	int i;

	*out = (struct cedar_policy){ .id = est_intern(p, id) };
	p->pol = out;
	if (out->id == NULL || !est_only(p, j, ann != NULL ? 6 : 5) ||
	    (eff = est_member(p, j, "effect")) == NULL)
		return false;
	if (eff->kind != J_STR || (!sv_eq(eff->s, SV("permit")) && !sv_eq(eff->s, SV("forbid"))))
		return est_fail(p, eff, "policy effect must be `permit` or `forbid`") != NULL;
	out->effect = sv_eq(eff->s, SV("forbid")) ? CEDAR_FORBID : CEDAR_PERMIT;
	out->span = cedar_places_span(&p->places, j->off, j->len);
	for (i = 0; i < 3; i++) {
		m[i] = est_member(p, j, part[i]);
		if (m[i] == NULL || !scope(p, m[i], i, s[i]))
			return false;
	}
	c = est_member(p, j, "conditions");
	return c != NULL && conditions(p, c) && annotations(p, ann);
}

struct jnode *est_start(struct er *p)
{
	struct box_err err = { 0 };
	struct jnode *j = jtree_parse(p->a, p->places.source, &err);

	if (j == NULL)
		cedar_diag_add(p->ds, CEDAR_ERROR, "parse", NULL, NULL, "%s", err.msg);
	return j;
}

struct cedar_policy *cedar_json_policy(
    struct cedar_syms *t, struct arena *a, sv text, sv id, struct cedar_diags *ds)
{
	struct er p = { t, a, ds, cedar_places_of(a, text), NULL };
	struct cedar_policy *out = ARENA_NEW(a, struct cedar_policy);
	struct jnode *j = est_start(&p);

	if (out == NULL)
		return est_fail(&p, NULL, "out of memory");
	return j != NULL && est_policy(&p, j, id, out) ? out : NULL;
}
