/* Calls in expressions: functions, methods, their arities, and names that nearly are one. Spec
 * 2.2, 2.3. */
#include "cedar/advice.h"
#include "cedar/parse_priv.h"

#include "base/ban.h"

/* ---- calls --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum cedar_expr_kind kind;
	unsigned args;
} core_methods[] = {
	{ "contains", CEDAR_E_CONTAINS, 1 },
	{ "containsAll", CEDAR_E_CONTAINS_ALL, 1 },
	{ "containsAny", CEDAR_E_CONTAINS_ANY, 1 },
	{ "getTag", CEDAR_E_GET_TAG, 1 },
	{ "hasTag", CEDAR_E_HAS_TAG, 1 },
	{ "isEmpty", CEDAR_E_IS_EMPTY, 0 },
};
#define N_CORE (sizeof(core_methods) / sizeof(core_methods[0]))

static size_t core_find(sv name)
{
	size_t i;

	for (i = 0; i < N_CORE; i++)
		if (sv_eq(name, sv_c(core_methods[i].name)))
			break;
	return i;
}

static void arity(struct parser *p, const struct cedar_span *at, sv name, unsigned want, size_t got)
{
	if (want == 0)
		p_error(
		    p, at, NULL, "`" SV_FMT "` takes no arguments, but got %zu", SV_ARG(name), got);
	else
		p_error(p, at, NULL, "`" SV_FMT "` takes exactly one argument, but got %zu",
		    SV_ARG(name), got);
}

/* How many arguments a function or method of an extension takes, the receiver not counted. */
static unsigned ext_args(enum cedar_ext x)
{
	switch (x) {
	case CEDAR_X_IS_IPV4:
	case CEDAR_X_IS_IPV6:
	case CEDAR_X_IS_LOOPBACK:
	case CEDAR_X_IS_MULTICAST:
	case CEDAR_X_TO_DATE:
	case CEDAR_X_TO_TIME:
	case CEDAR_X_TO_MILLISECONDS:
	case CEDAR_X_TO_SECONDS:
	case CEDAR_X_TO_MINUTES:
	case CEDAR_X_TO_HOURS:
	case CEDAR_X_TO_DAYS:
		return 0;
	default:
		return 1;
	}
}

static sv nearest(sv word, bool method)
{
	sv names[CEDAR_X_COUNT + N_CORE];
	size_t i, n = 0;

	for (i = 0; i < CEDAR_X_COUNT; i++)
		if (cedar_ext_is_method((enum cedar_ext)i) == method)
			names[n++] = sv_c(cedar_ext_name((enum cedar_ext)i));
	for (i = 0; method && i < N_CORE; i++)
		names[n++] = sv_c(core_methods[i].name);
	return cedar_nearest(word, names, n);
}

sv cedar_near_method(sv word)
{
	return nearest(word, true);
}

static const char *suggest(struct parser *p, sv word, bool method)
{
	const char *hint = method ? cedar_advice(CEDAR_AT_METHOD, word) : NULL;
	sv near = nearest(word, method);

	if (hint == NULL && near.n != 0)
		hint = arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	return hint;
}

/* name(args): the current token is the parenthesis. */
struct cedar_expr *p_function(struct parser *p, struct cedar_span from, cedar_sym name)
{
	sv n = cedar_sv(name);
	struct cedar_span at = p_since(p, from);
	struct cedar_expr **arg = NULL, *e;
	size_t n_arg;
	enum cedar_ext x;

	p_advance(p);
	if (p_list(p, ")", &arg, &n_arg) < 0)
		return NULL;
	if (cedar_ext_find(n, &x) && !cedar_ext_is_method(x)) {
		if (p->o->dogwood && n_arg != 1)
			arity(p, &at, n, 1, n_arg);
		e = p_node(p, CEDAR_E_EXT, from, arg, n_arg);
		if (e != NULL)
			e->ext = x;
		return e;
	}
	if (core_find(n) < N_CORE || cedar_ext_find(n, &x)) {
		p_error(p, &at, NULL,
		    "`" SV_FMT "` is a method, not a function; write `e." SV_FMT "(…)`", SV_ARG(n),
		    SV_ARG(n));
		return p->poison;
	}
	if (!p->o->dogwood) {
		p_error(p, &at, suggest(p, n, false), "`" SV_FMT "` is not a valid function",
		    SV_ARG(n));
		return p->poison;
	}
	e = p_node(p, CEDAR_E_CALL, from, arg, n_arg);
	if (e != NULL)
		e->name = name;
	return e;
}

/* recv.name(args): the current token is the parenthesis. */
struct cedar_expr *p_method(struct parser *p, struct cedar_span from, struct cedar_expr *recv,
    cedar_sym name, struct cedar_span name_at)
{
	struct cedar_expr **arg = NULL, **all, *e;
	sv n = cedar_sv(name);
	size_t n_arg, core = core_find(n), i;
	enum cedar_ext x;

	p_advance(p);
	if (p_list(p, ")", &arg, &n_arg) < 0)
		return NULL;
	if (core < N_CORE) {
		if (n_arg != core_methods[core].args) {
			arity(p, &name_at, n, core_methods[core].args, n_arg);
			return p->poison;
		}
		return n_arg == 0 ? p_node1(p, core_methods[core].kind, from, recv)
		                  : p_node2(p, core_methods[core].kind, from, recv, arg[0]);
	}
	all = ARENA_VEC(p->a, struct cedar_expr *, n_arg + 1);
	if (all == NULL)
		return p_fail(p, "out of memory");
	all[0] = recv;
	for (i = 0; i < n_arg; i++)
		all[i + 1] = arg[i];
	if (cedar_ext_find(n, &x)) {
		if (!cedar_ext_is_method(x)) {
			p_error(p, &name_at, NULL,
			    "`" SV_FMT "` is a function, not a method; write `" SV_FMT "(…)`",
			    SV_ARG(n), SV_ARG(n));
			return p->poison;
		}
		if (p->o->dogwood && n_arg != ext_args(x)) {
			arity(p, &name_at, n, ext_args(x), n_arg);
			return p->poison;
		}
		e = p_node(p, CEDAR_E_EXT, from, all, n_arg + 1);
		if (e != NULL)
			e->ext = x;
		return e;
	}
	if (!p->o->dogwood) {
		p_error(p, &name_at, suggest(p, n, true), "unknown method `" SV_FMT "`", SV_ARG(n));
		return p->poison;
	}
	e = p_node(p, CEDAR_E_METHOD, from, all, n_arg + 1);
	if (e != NULL)
		e->name = name;
	return e;
}
