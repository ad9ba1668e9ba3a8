/* Trees: making nodes, copying, walking; the table of extension functions. See ast.h. */
#include "cedar/ast.h"

#include "base/ban.h"

static const struct {
	const char *name;
	bool method;
} ext_table[CEDAR_X_COUNT] = {
	[CEDAR_X_DECIMAL] = { "decimal", false },
	[CEDAR_X_LESS_THAN] = { "lessThan", true },
	[CEDAR_X_LESS_THAN_OR_EQUAL] = { "lessThanOrEqual", true },
	[CEDAR_X_GREATER_THAN] = { "greaterThan", true },
	[CEDAR_X_GREATER_THAN_OR_EQUAL] = { "greaterThanOrEqual", true },
	[CEDAR_X_IP] = { "ip", false },
	[CEDAR_X_IS_IPV4] = { "isIpv4", true },
	[CEDAR_X_IS_IPV6] = { "isIpv6", true },
	[CEDAR_X_IS_LOOPBACK] = { "isLoopback", true },
	[CEDAR_X_IS_MULTICAST] = { "isMulticast", true },
	[CEDAR_X_IS_IN_RANGE] = { "isInRange", true },
	[CEDAR_X_DATETIME] = { "datetime", false },
	[CEDAR_X_OFFSET] = { "offset", true },
	[CEDAR_X_DURATION_SINCE] = { "durationSince", true },
	[CEDAR_X_TO_DATE] = { "toDate", true },
	[CEDAR_X_TO_TIME] = { "toTime", true },
	[CEDAR_X_DURATION] = { "duration", false },
	[CEDAR_X_TO_MILLISECONDS] = { "toMilliseconds", true },
	[CEDAR_X_TO_SECONDS] = { "toSeconds", true },
	[CEDAR_X_TO_MINUTES] = { "toMinutes", true },
	[CEDAR_X_TO_HOURS] = { "toHours", true },
	[CEDAR_X_TO_DAYS] = { "toDays", true },
};

const char *cedar_ext_name(enum cedar_ext x)
{
	return x < CEDAR_X_COUNT ? ext_table[x].name : "?";
}

bool cedar_ext_is_method(enum cedar_ext x)
{
	return x < CEDAR_X_COUNT && ext_table[x].method;
}

bool cedar_ext_find(sv name, enum cedar_ext *out)
{
	size_t i;

	for (i = 0; i < CEDAR_X_COUNT; i++)
		if (sv_eq(name, sv_c(ext_table[i].name))) {
			*out = (enum cedar_ext)i;
			return true;
		}
	return false;
}

cedar_sym cedar_policy_annotation(const struct cedar_policy *p, sv key)
{
	uint32_t i;

	for (i = 0; i < p->n_ann; i++)
		if (sv_eq(cedar_sv(p->ann[i].key), key))
			return p->ann[i].value;
	return NULL;
}

struct cedar_expr *cedar_expr_new(struct arena *a, enum cedar_expr_kind k,
    const struct cedar_span *at, struct cedar_expr *const *arg, size_t n)
{
	struct cedar_expr *e;
	uint16_t depth = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (arg[i] == NULL)
			return NULL;
		if (arg[i]->depth > depth)
			depth = arg[i]->depth;
	}
	if (depth >= CEDAR_MAX_DEPTH || n > CEDAR_MAX_NODES)
		return NULL;
	e = ARENA_NEW(a, struct cedar_expr);
	if (e == NULL)
		return NULL;
	e->kind = k;
	e->depth = (uint16_t)(depth + 1);
	if (at != NULL)
		e->span = *at;
	e->n_arg = (uint32_t)n;
	if (n != 0) {
		e->arg = ARENA_VEC(a, struct cedar_expr *, n);
		if (e->arg == NULL)
			return NULL;
		memcpy(e->arg, arg, n * sizeof(struct cedar_expr *));
	}
	return e;
}

struct cedar_expr *cedar_expr_get(struct arena *a, struct cedar_expr *e, cedar_sym name)
{
	struct cedar_expr *g;

	if (e == NULL || name == NULL)
		return NULL;
	g = cedar_expr_new(a, CEDAR_E_GET, &e->span, &e, 1);
	if (g != NULL)
		g->name = name;
	return g;
}

struct cedar_expr *cedar_expr_copy(struct arena *a, const struct cedar_expr *e)
{
	struct cedar_expr *c = ARENA_NEW(a, struct cedar_expr);
	uint32_t i;

	if (c == NULL)
		return NULL;
	*c = *e;
	if (e->n_arg != 0) {
		c->arg = ARENA_VEC(a, struct cedar_expr *, e->n_arg);
		if (c->arg == NULL)
			return NULL;
		for (i = 0; i < e->n_arg; i++) {
			c->arg[i] = cedar_expr_copy(a, e->arg[i]);
			if (c->arg[i] == NULL)
				return NULL;
		}
	}
	if (e->kind == CEDAR_E_LEAF) {
		c->leaf = ARENA_NEW(a, struct cedar_leaf);
		if (c->leaf == NULL)
			return NULL;
		*c->leaf = *e->leaf;
	}
	return c;
}

int cedar_expr_walk(struct cedar_expr **e, int (*f)(void *ctx, struct cedar_expr **node), void *ctx)
{
	uint32_t i;
	int r;

	for (i = 0; i < (*e)->n_arg; i++) {
		r = cedar_expr_walk(&(*e)->arg[i], f, ctx);
		if (r != 0)
			return r;
	}
	return f(ctx, e);
}
