/* See gen.h. */
#include "gen.h"

#include "base/ban.h"

/* Fields of the logged and of the request's bag. */
static const struct {
	const char *path;
	char type; /* u string, v Long, d decimal in different spellings, b Bool, e entity */
} fields[] = { { "input.u", 'u' }, { "input.v", 'v' }, { "input.w", 'u' }, { "input.d", 'd' },
	{ "input.b", 'b' }, { "input.e", 'e' }, { "input.g.x", 'u' } };
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))
static const char *const actions[] = { "A", "B", "C" };
static const char *const kinds[] = { "request", "response", "error" };

const char *const gen_feature_names[GEN_NFEATURES] = { "formerly", "previous", "since",
	"negated since", "since of conditions", "since of the anchor's variable",
	"nested operators", "negation", "double negation", "exists", "tp join", "bound aggregate",
	"count", "count of since", "count of values", "count of pairs", "sum", "sum of distinct",
	"aggregate against request", "variable", "request value", "scope value", "wildcard",
	"refinement", "error event", "other namespace", "count_within", "sum_within",
	"count_distinct_within", "bind", "def temporal" };

#define MAX_VARS 8
struct var {
	char name[8];
	char type; /* as in fields, or t: Timepoint */
};
struct scope {
	struct var v[MAX_VARS];
	unsigned n;
	unsigned next;
	unsigned ops; /* temporal operators around */
};

uint32_t gen_int(struct gen *g, uint32_t n)
{
	g->s ^= g->s << 13;
	g->s ^= g->s >> 7;
	g->s ^= g->s << 17;
	return (uint32_t)((g->s * 0x2545f4914f6cdd1du >> 33) % n);
}

static bool one_in(struct gen *g, uint32_t n)
{
	return gen_int(g, n) == 0;
}

static void use(struct gen *g, enum gen_feature f)
{
	g->used |= UINT64_C(1) << f;
}

/* A temporal operator begins: the body is drawn with s->ops one higher. */
static void operator(struct gen *g, struct scope *s, enum gen_feature f)
{
	use(g, f);
	if (s->ops != 0)
		use(g, GEN_NESTED);
}

static void literal(struct gen *g, char type, struct buf *b)
{
	static const char *const decimals[] = { "decimal(\"1.0\")", "decimal(\"1.00\")",
		"decimal(\"2.5\")" };
	static const char *const entities[] = { "N::U::\"a\"", "N::U::\"b\"", "N::R::\"r\"" };

	if (type == 'v' && one_in(g, 60))
		buf_put_c(b, one_in(g, 2) ? "9223372036854775807" : "-9223372036854775808");
	else if (type == 'v')
		buf_putf(b, "%u", gen_int(g, 4));
	else if (type == 'd')
		buf_put_c(b, decimals[gen_int(g, 3)]);
	else if (type == 'b')
		buf_put_c(b, one_in(g, 2) ? "true" : "false");
	else if (type == 'e')
		buf_put_c(b, entities[gen_int(g, 3)]);
	else
		buf_putf(b, "\"%c\"", 'a' + (int)gen_int(g, 3));
}

static const struct var *pick(struct gen *g, const struct scope *s, char type)
{
	const struct var *found[MAX_VARS];
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->v[i].type == type)
			found[n++] = &s->v[i];
	}
	return n != 0 ? found[gen_int(g, n)] : NULL;
}

static void request(struct gen *g, char type, struct buf *b)
{
	static const char *const scopes[] = { "principal.id", "principal.tag", "resource.id",
		"resource.tag", "principal.type" };
	static const char *const strings[] = { "context.input.u", "context.input.u",
		"context.input.w", "context.input.g.x" };

	use(g, GEN_REQUEST);
	if (type == 'u' && one_in(g, 6)) {
		use(g, GEN_SCOPE);
		buf_put_c(b, scopes[gen_int(g, 5)]);
	} else if (type == 'u') {
		buf_put_c(b, strings[gen_int(g, 4)]);
	} else if (type == 'e' && one_in(g, 2)) {
		use(g, GEN_SCOPE);
		buf_put_c(b, one_in(g, 3) ? "resource" : "principal");
	} else if (type == 'v' && one_in(g, 8)) {
		use(g, GEN_SCOPE);
		buf_put_c(b, "principal.level");
	} else {
		buf_putf(b, "context.input.%c", type);
	}
}

/* A field of a type, among those that are not used yet; NFIELDS: there is none. */
static unsigned field_of(struct gen *g, char type, unsigned used)
{
	unsigned at = gen_int(g, NFIELDS), i, f;

	for (i = 0; i < NFIELDS; i++) {
		f = (at + i) % (unsigned)NFIELDS;
		if (fields[f].type == type && (used & 1u << f) == 0)
			return f;
	}
	return NFIELDS;
}

/* A predicate. must: a variable that it has to bind, or NULL. not: fields that it leaves alone. */
static void pred_but(
    struct gen *g, const struct scope *s, const struct var *must, unsigned not, struct buf *b)
{
	unsigned used = not, n = gen_int(g, 3) + (must != NULL), k = gen_int(g, 6);
	bool other = one_in(g, 20);
	const struct var *v;

	if (other)
		use(g, GEN_OTHER);
	if (k == 5)
		use(g, GEN_ERROR);
	buf_putf(b, "%s::Action::\"%s\"::%s{", other ? "M" : "N", actions[gen_int(g, 3)],
	    kinds[k < 3   ? 0
	          : k < 5 ? 1
	                  : 2]);
	for (unsigned i = 0; i < n; i++) {
		unsigned f = gen_int(g, NFIELDS);
		bool first = used == not ;

		if (must != NULL && i == 0)
			f = field_of(g, must->type, used);
		if (f >= NFIELDS || (used & 1u << f) != 0)
			continue;
		if (one_in(g, 12)) {
			use(g, GEN_REFINE);
			buf_put_c(b, " }{ ");
		} else {
			buf_put_c(b, first ? " " : ", ");
		}
		buf_putf(b, "%s: ", fields[f].path);
		used |= 1u << f;
		v = pick(g, s, fields[f].type);
		if (must != NULL && i == 0) {
			buf_put_c(b, must->name);
		} else if (v != NULL && one_in(g, 3)) {
			use(g, GEN_VAR);
			buf_put_c(b, v->name);
		} else if (one_in(g, 5)) {
			use(g, GEN_WILD);
			buf_put_c(b, one_in(g, 2) ? "*" : "_");
		} else if (gen_int(g, 5) < 3) {
			request(g, fields[f].type, b);
		} else {
			literal(g, fields[f].type, b);
		}
	}
	buf_put_c(b, " }");
}

static void pred(struct gen *g, const struct scope *s, const struct var *must, struct buf *b)
{
	pred_but(g, s, must, 0, b);
}

/* A predicate that speaks of a variable which is bound elsewhere. */
static void pred_of(struct gen *g, const struct scope *s, const struct var *v, struct buf *b)
{
	use(g, GEN_VAR);
	pred(g, s, v, b);
}

static unsigned width(struct gen *g)
{
	return 1 + gen_int(g, one_in(g, 3) ? 40 : 12);
}

static void window(struct gen *g, struct buf *b)
{
	/* A minute now and then: units differ. */
	if (one_in(g, 40))
		buf_put_c(b, "within 1m ");
	else
		buf_putf(b, "within %us ", width(g));
}

static void term(struct gen *g, const struct scope *s, char type, struct buf *b)
{
	const struct var *v = pick(g, s, type);

	if (v != NULL && one_in(g, 2)) {
		use(g, GEN_VAR);
		buf_put_c(b, v->name);
	} else if (one_in(g, 2)) {
		request(g, type, b);
	} else {
		literal(g, type, b);
	}
}

static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=" };

static void compare(struct gen *g, const struct scope *s, struct buf *b)
{
	char type = "vvvudbe"[gen_int(g, 7)];

	term(g, s, type, b);
	buf_putf(b, " %s ", ops[gen_int(g, type == 'v' ? 6 : 2)]);
	term(g, s, type, b);
}

static void cond(struct gen *g, struct scope *s, unsigned depth, struct buf *b);

static struct var *declare(struct scope *s, char type)
{
	/* Callers leave room; a full scope would only reuse its last name. */
	struct var *v = &s->v[s->n < MAX_VARS ? s->n : MAX_VARS - 1];

	v->name[0] = type;
	v->name[1] = (char)('0' + s->next / 10 % 10);
	v->name[2] = (char)('0' + s->next++ % 10);
	v->name[3] = '\0';
	v->type = type;
	return v;
}

static const char *type_name(char type)
{
	return type == 'v'   ? "Long"
	       : type == 'd' ? "decimal"
	       : type == 't' ? "Timepoint"
	       : type == 'b' ? "Bool"
	       : type == 'e' ? "N::U"
	                     : "String";
}

/* Something that binds *v: a predicate, perhaps under an operator. */
static void binding(
    struct gen *g, struct scope *s, const struct var *v, unsigned depth, struct buf *b)
{
	unsigned k = gen_int(g, depth != 0 ? 6 : 1);

	if (k == 0) {
		pred(g, s, v, b);
		return;
	}
	operator(g, s, k == 4 ? GEN_SINCE_NOT : k == 5 ? GEN_PREVIOUS : GEN_FORMERLY);
	s->ops++;
	switch (k) {
	case 1:
	case 2:
		buf_put_c(b, "formerly ");
		window(g, b);
		pred(g, s, v, b);
		break;
	case 3:
		buf_put_c(b, "formerly ");
		window(g, b);
		buf_put_c(b, "(");
		pred(g, s, v, b);
		buf_put_c(b, " && ");
		s->n++;
		cond(g, s, depth - 1, b);
		s->n--;
		buf_put_c(b, ")");
		break;
	case 4:
		/* The left side may use what the anchor binds. */
		if (one_in(g, 2)) {
			use(g, GEN_SINCE_BOUND);
			s->n++;
			if (one_in(g, 3)) {
				buf_put_c(b, "((");
				cond(g, s, depth - 1, b);
				buf_put_c(b, ")");
			} else {
				buf_put_c(b, one_in(g, 4) ? "(" : "(!");
				pred_of(g, s, v, b);
			}
			s->n--;
		} else {
			buf_put_c(b, "(!");
			pred(g, s, NULL, b);
		}
		buf_put_c(b, " since ");
		window(g, b);
		pred(g, s, v, b);
		buf_put_c(b, ")");
		break;
	default:
		buf_put_c(b, "previous ");
		window(g, b);
		pred(g, s, v, b);
		break;
	}
	s->ops--;
}

/* "formerly within W (P && tp(name))", behind what a macro or an aggregate begins with. */
static void events_of(
    struct gen *g, struct scope *s, const struct var *must, const char *tp, struct buf *b)
{
	operator(g, s, GEN_FORMERLY);
	buf_put_c(b, "formerly ");
	window(g, b);
	buf_put_c(b, "(");
	pred(g, s, must, b);
	buf_putf(b, " && tp(%s))", tp);
}

static void count_of_timepoints(
    struct gen *g, struct scope *s, unsigned depth, bool since, struct buf *b)
{
	use(g, since ? GEN_COUNT_SINCE : GEN_COUNT);
	operator(g, s, since ? GEN_SINCE : GEN_FORMERLY);
	s->ops++;
	buf_put_c(b, "count for (t9: Timepoint). where (");
	if (since) {
		buf_put_c(b, one_in(g, 2) ? "!" : "");
		pred(g, s, NULL, b);
		buf_put_c(b, " since ");
	} else {
		buf_put_c(b, "formerly ");
	}
	window(g, b);
	buf_put_c(b, "(");
	pred(g, s, NULL, b);
	buf_put_c(b, " && tp(t9)");
	if (one_in(g, 4)) {
		buf_put_c(b, " && ");
		cond(g, s, depth > 1 ? 1 : 0, b);
	}
	buf_put_c(b, "))");
	s->ops--;
}

/* The calls of the default library, or what they stand for. */
static void macro_aggregate(struct gen *g, struct scope *s, unsigned shape, struct buf *b)
{
	unsigned w = width(g);
	const struct var *v;

	if (shape == 0) {
		use(g, GEN_M_COUNT);
		if (g->expand)
			buf_putf(b, "count for (tm: Timepoint). where (formerly within %us (", w);
		else
			buf_putf(b, "count_within(%us, ", w);
		pred(g, s, NULL, b);
		buf_put_c(b, g->expand ? " && tp(tm)))" : ")");
		return;
	}
	v = declare(s, shape == 1 ? 'v' : 'u');
	use(g, shape == 1 ? GEN_M_SUM : GEN_M_DISTINCT);
	if (!g->expand)
		buf_putf(b, "%s(%s, %us, ", shape == 1 ? "sum_within" : "count_distinct_within",
		    v->name, w);
	else if (shape == 1)
		buf_putf(b, "sum %s for (%s: Long), (tm: Timepoint). where (formerly within %us (",
		    v->name, v->name, w);
	else
		buf_putf(b, "count for (%s: String). where (formerly within %us ", v->name, w);
	pred(g, s, v, b);
	buf_put_c(b, !g->expand ? ")" : shape == 1 ? " && tp(tm)))" : ")");
}

/* An aggregate, as it stands in parentheses. */
static void aggregate(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	unsigned n = s->n, shape = gen_int(g, 10);
	struct scope save = *s;
	struct var *v, *t;

	if (s->n + 2 > MAX_VARS)
		shape = 0;
	buf_put_c(b, "(");
	if (shape <= 2) {
		count_of_timepoints(g, s, depth, shape == 2, b);
	} else if (shape <= 4) {
		v = declare(s, "uvdbe"[gen_int(g, 5)]);
		use(g, GEN_DISTINCT);
		buf_putf(b, "count for (%s: %s). where (", v->name, type_name(v->type));
		binding(g, s, v, depth, b);
		buf_put_c(b, ")");
	} else if (shape == 5) {
		v = declare(s, 'v');
		use(g, GEN_SUM);
		buf_putf(b, "sum %s for (%s: Long), (t8: Timepoint). where (", v->name, v->name);
		events_of(g, s, v, "t8", b);
		buf_put_c(b, ")");
	} else if (shape == 6) {
		v = declare(s, 'v');
		s->n++;
		t = declare(s, 'u');
		s->n--;
		use(g, GEN_SUM_SET);
		buf_putf(b, "sum %s for (%s: Long)", v->name, v->name);
		if (one_in(g, 2)) {
			operator(g, s, GEN_FORMERLY);
			buf_putf(b, ", (%s: String). where (formerly ", t->name);
			window(g, b);
			buf_putf(b, "N::Action::\"%s\"::request{ input.v: %s, input.u: %s })",
			    actions[gen_int(g, 3)], v->name, t->name);
		} else {
			buf_put_c(b, ". where (");
			binding(g, s, v, depth, b);
			buf_put_c(b, ")");
		}
	} else if (shape == 7) {
		operator(g, s, GEN_FORMERLY);
		use(g, GEN_PAIRS);
		buf_put_c(b, "count for (p1: String), (p2: Long). where (formerly ");
		window(g, b);
		buf_putf(b, "N::Action::\"%s\"::%s{ input.v: p2, input.%c: p1 })",
		    actions[gen_int(g, 3)], kinds[gen_int(g, 3)], one_in(g, 2) ? 'u' : 'w');
	} else {
		macro_aggregate(g, s, one_in(g, 3) ? 0 : 1 + gen_int(g, 2), b);
	}
	buf_put_c(b, ")");
	*s = save;
	s->n = n;
}

static void exists(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	struct var *v = declare(s, "uuvdbe"[gen_int(g, 6)]);
	unsigned more = gen_int(g, 3);

	if (s->n == MAX_VARS) {
		pred(g, s, NULL, b);
		return;
	}
	use(g, GEN_EXISTS);
	if (one_in(g, 4)) {
		v->type = 'v';
		use(g, GEN_BIND_AGG);
		buf_putf(b, "(exists (%s: Long). (", v->name);
		aggregate(g, s, depth, b);
		buf_putf(b, " == %s", v->name);
	} else {
		buf_putf(b, "(exists (%s: %s). (", v->name, type_name(v->type));
		binding(g, s, v, depth, b);
	}
	s->n++;
	for (unsigned i = 0; i < more; i++) {
		buf_put_c(b, " && ");
		cond(g, s, depth - 1, b);
	}
	s->n--;
	buf_put_c(b, "))");
}

/* Two patterns at one timepoint. */
static void same_timepoint(struct gen *g, struct scope *s, struct buf *b)
{
	bool not = one_in(g, 4);

	use(g, GEN_TP_JOIN);
	buf_put_c(b, "(exists (t7: Timepoint). (");
	events_of(g, s, NULL, "t7", b);
	buf_put_c(b, " && ");
	if (not )
		buf_put_c(b, "!(");
	operator(g, s, GEN_FORMERLY);
	buf_put_c(b, "formerly ");
	window(g, b);
	buf_put_c(b, "(");
	pred(g, s, NULL, b);
	buf_put_c(b, not ? " && tp(t7)))))" : " && tp(t7))))");
}

/* Macros of the policy's own and `bind`. */
static void macro_cond(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	unsigned w = width(g), k = s->n + 1 < MAX_VARS ? gen_int(g, 4) : gen_int(g, 3);
	struct var *v;

	use(g, k == 3 ? GEN_M_BIND : GEN_M_OWN);
	switch (k) {
	case 0:
		buf_put_c(b, g->expand ? "(formerly " : "(seen(");
		if (g->expand)
			buf_putf(b, "within %us ", w);
		pred(g, s, NULL, b);
		if (!g->expand)
			buf_putf(b, ", %us)", w);
		buf_put_c(b, ")");
		return;
	case 1:
		if (g->expand)
			buf_putf(b, "(exists (tk: Timepoint). (formerly within %us (", w);
		else
			buf_put_c(b, "(twice(");
		pred(g, s, NULL, b);
		if (g->expand)
			buf_putf(b, " && tp(tk)) && formerly within %us (", w);
		else
			buf_put_c(b, ", ");
		pred(g, s, NULL, b);
		if (g->expand)
			buf_put_c(b, " && tp(tk))))");
		else
			buf_putf(b, ", %us))", w);
		return;
	case 2:
		buf_put_c(b, g->expand ? "(" : "(narrow(");
		pred_but(g, s, NULL, 1u << 2, b);
		buf_put_c(b, g->expand ? "{ input.w: " : ", ");
		request(g, 'u', b);
		buf_put_c(b, g->expand ? " })" : "))");
		return;
	default:
		v = declare(s, 'v');
		if (g->expand)
			buf_putf(b, "(exists (%s: Long). (", v->name);
		else
			buf_putf(b, "(bind(%s, ", v->name);
		aggregate(g, s, depth, b);
		if (g->expand)
			buf_putf(b, " == %s && ", v->name);
		else
			buf_put_c(b, ", ");
		s->n++;
		buf_putf(b, "%s %s ", v->name, ops[gen_int(g, 6)]);
		term(g, s, 'v', b);
		s->n--;
		buf_put_c(b, "))");
		return;
	}
}

/* "OP within W (body)" */
static void unary(struct gen *g, struct scope *s, bool previous, unsigned depth, struct buf *b)
{
	operator(g, s, previous ? GEN_PREVIOUS : GEN_FORMERLY);
	s->ops++;
	buf_put_c(b, previous ? "(previous " : "(formerly ");
	window(g, b);
	buf_put_c(b, "(");
	cond(g, s, depth - 1, b);
	buf_put_c(b, "))");
	s->ops--;
}

static void since(struct gen *g, struct scope *s, unsigned shape, unsigned depth, struct buf *b)
{
	operator(g, s, shape == 0 ? GEN_SINCE_NOT : shape == 1 ? GEN_SINCE : GEN_SINCE_COND);
	s->ops++;
	buf_put_c(b, shape == 0 ? "(!" : shape == 1 ? "(" : "((");
	if (shape == 2)
		cond(g, s, depth - 1, b);
	else
		pred(g, s, NULL, b);
	buf_put_c(b, shape == 2 ? ") since " : " since ");
	window(g, b);
	if (shape == 2) {
		buf_put_c(b, "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, ")");
	} else {
		pred(g, s, NULL, b);
	}
	buf_put_c(b, ")");
	s->ops--;
}

static void once(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	bool not = one_in(g, 4);

	operator(g, s, GEN_FORMERLY);
	if (not )
		use(g, GEN_NOT);
	s->ops++;
	buf_put_c(b, not ? "!(formerly " : "(formerly ");
	window(g, b);
	if (one_in(g, 3)) {
		buf_put_c(b, "(");
		pred(g, s, NULL, b);
		buf_put_c(b, " && ");
		cond(g, s, depth - 1, b);
		buf_put_c(b, ")");
	} else {
		pred(g, s, NULL, b);
	}
	buf_put_c(b, ")");
	s->ops--;
}

static void cond(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	unsigned k = gen_int(g, depth != 0 ? 18 : 3);

	switch (k) {
	case 0:
		compare(g, s, b);
		return;
	case 1:
		if (one_in(g, 4)) {
			use(g, GEN_NOT_NOT);
			buf_put_c(b, "!");
		}
		buf_put_c(b, "!");
		pred(g, s, NULL, b);
		return;
	case 2:
		pred(g, s, NULL, b);
		return;
	case 3:
	case 4:
		once(g, s, depth, b);
		return;
	case 5:
	case 6:
		unary(g, s, k == 6, depth, b);
		return;
	case 7:
	case 8:
	case 9:
		since(g, s, k - 7, depth, b);
		return;
	case 10:
		exists(g, s, depth, b);
		return;
	case 11:
	case 12:
		aggregate(g, s, depth, b);
		buf_putf(b, " %s ", ops[gen_int(g, 6)]);
		if (one_in(g, 4)) {
			use(g, GEN_AGG_REQUEST);
			buf_put_c(b, "context.input.v");
		} else {
			buf_putf(b, "%u", gen_int(g, 4));
		}
		return;
	case 13:
		same_timepoint(g, s, b);
		return;
	case 14:
		macro_cond(g, s, depth, b);
		return;
	default:
		if (one_in(g, 4)) {
			use(g, GEN_NOT);
			buf_put_c(b, "!");
		}
		buf_put_c(b, "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, " && ");
		cond(g, s, depth - 1, b);
		buf_put_c(b, ")");
		return;
	}
}

void gen_leaf(struct gen *g, uint64_t *used, struct buf *out)
{
	struct scope s = { 0 };

	g->used = 0;
	buf_put_c(out, "temporal { ");
	cond(g, &s, 1 + gen_int(g, 3), out);
	buf_put_c(out, " }");
	*used = g->used;
}
