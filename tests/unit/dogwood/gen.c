/* See gen.h. */
#include "gen.h"

#include "base/ban.h"

/* Fields: input.u and input.w strings (few values), input.v integers, input.d decimals in different
 * spellings. */
static const char *const fields[] = { "input.u", "input.v", "input.w", "input.d" };
static const char *const actions[] = { "A", "B", "C" };
static const char *const kinds[] = { "request", "response" };

#define MAX_VARS 8
struct var {
	char name[8];
	char type; /* u string, v Long, d decimal, t Timepoint */
};
struct scope {
	struct var v[MAX_VARS];
	unsigned n;
	unsigned next;
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

static char field_type(unsigned f)
{
	return f == 1 ? 'v' : f == 3 ? 'd' : 'u';
}

static void literal(struct gen *g, char type, struct buf *b)
{
	static const char *const decimals[] = { "decimal(\"1.0\")", "decimal(\"1.00\")",
		"decimal(\"2.5\")" };

	if (type == 'v')
		buf_putf(b, "%u", gen_int(g, 4));
	else if (type == 'd')
		buf_put_c(b, decimals[gen_int(g, 3)]);
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
	if (type == 'v')
		buf_put_c(b, "context.input.v");
	else if (type == 'd')
		buf_put_c(b, "context.input.d");
	else
		buf_put_c(b, one_in(g, 6)   ? "principal.id"
		             : one_in(g, 3) ? "context.input.w"
		                            : "context.input.u");
}

/* A predicate. must: a variable that it has to bind, or NULL. */
static void pred(struct gen *g, const struct scope *s, const struct var *must, struct buf *b)
{
	unsigned used = 0, n = gen_int(g, 3) + (must != NULL);
	const struct var *v;

	buf_putf(
	    b, "N::Action::\"%s\"::%s{", actions[gen_int(g, 3)], kinds[gen_int(g, 5) < 3 ? 0 : 1]);
	for (unsigned i = 0; i < n; i++) {
		unsigned f = gen_int(g, 4);

		if (must != NULL && i == 0)
			f = must->type == 'v' ? 1 : must->type == 'd' ? 3 : gen_int(g, 2) * 2;
		if ((used & 1u << f) != 0)
			continue;
		buf_putf(b, "%s%s: ", used != 0 ? ", " : " ", fields[f]);
		used |= 1u << f;
		v = pick(g, s, field_type(f));
		if (must != NULL && i == 0)
			buf_put_c(b, must->name);
		else if (v != NULL && one_in(g, 3))
			buf_put_c(b, v->name);
		else if (one_in(g, 5))
			buf_put_c(b, "*");
		else if (gen_int(g, 5) < 3)
			request(g, field_type(f), b);
		else
			literal(g, field_type(f), b);
	}
	buf_put_c(b, " }");
}

static void window(struct gen *g, struct buf *b)
{
	buf_putf(b, "within %us ", 1 + gen_int(g, one_in(g, 3) ? 40 : 12));
}

static void term(struct gen *g, const struct scope *s, char type, struct buf *b)
{
	const struct var *v = pick(g, s, type);

	if (v != NULL && one_in(g, 2))
		buf_put_c(b, v->name);
	else if (one_in(g, 2))
		request(g, type, b);
	else
		literal(g, type, b);
}

static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=" };

static void compare(struct gen *g, const struct scope *s, struct buf *b)
{
	char type = "vvvud"[gen_int(g, 5)];

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
	                     : "String";
}

/* Something that binds *v: a predicate, perhaps under an operator. */
static void binding(
    struct gen *g, struct scope *s, const struct var *v, unsigned depth, struct buf *b)
{
	switch (gen_int(g, depth != 0 ? 6 : 1)) {
	case 1:
	case 2:
		buf_put_c(b, "formerly ");
		window(g, b);
		pred(g, s, v, b);
		return;
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
		return;
	case 4:
		buf_put_c(b, "(!");
		pred(g, s, NULL, b);
		buf_put_c(b, " since ");
		window(g, b);
		pred(g, s, v, b);
		buf_put_c(b, ")");
		return;
	case 5:
		buf_put_c(b, "previous ");
		window(g, b);
		pred(g, s, v, b);
		return;
	default:
		pred(g, s, v, b);
		return;
	}
}

/* An aggregate, as it stands in parentheses. */
static void aggregate(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	unsigned n = s->n, shape = gen_int(g, 7);
	struct scope save = *s;
	struct var *v, *t;

	if (s->n + 2 > MAX_VARS)
		shape = 0;
	buf_put_c(b, "(");
	if (shape <= 2) {
		buf_put_c(b, "count for (t9: Timepoint). where (");
		if (shape == 2) {
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
	} else if (shape <= 4) {
		v = declare(s, "uvd"[gen_int(g, 3)]);
		buf_putf(b, "count for (%s: %s). where (", v->name, type_name(v->type));
		binding(g, s, v, depth, b);
		buf_put_c(b, ")");
	} else if (shape == 5) {
		v = declare(s, 'v');
		buf_putf(b, "sum %s for (%s: Long), (t8: Timepoint). where (formerly ", v->name,
		    v->name);
		window(g, b);
		buf_put_c(b, "(");
		pred(g, s, v, b);
		buf_put_c(b, " && tp(t8)))");
	} else {
		v = declare(s, 'v');
		s->n++;
		t = declare(s, 'u');
		s->n--;
		buf_putf(b, "sum %s for (%s: Long)", v->name, v->name);
		if (one_in(g, 2)) {
			buf_putf(b, ", (%s: String). where (formerly ", t->name);
			window(g, b);
			buf_putf(b, "N::Action::\"%s\"::request{ input.v: %s, input.u: %s })",
			    actions[gen_int(g, 3)], v->name, t->name);
		} else {
			buf_put_c(b, ". where (");
			binding(g, s, v, depth, b);
			buf_put_c(b, ")");
		}
	}
	buf_put_c(b, ")");
	*s = save;
	s->n = n;
}

static void exists(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	struct var *v = declare(s, "uuvd"[gen_int(g, 4)]);
	unsigned more = gen_int(g, 3);

	if (s->n == MAX_VARS) {
		pred(g, s, NULL, b);
		return;
	}
	if (one_in(g, 4)) {
		v->type = 'v';
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

static void cond(struct gen *g, struct scope *s, unsigned depth, struct buf *b)
{
	unsigned k = gen_int(g, depth != 0 ? 14 : 3);

	switch (k) {
	case 0:
		compare(g, s, b);
		return;
	case 1:
		buf_put_c(b, "!");
		pred(g, s, NULL, b);
		return;
	case 2:
		pred(g, s, NULL, b);
		return;
	case 3:
	case 4:
		buf_put_c(b, one_in(g, 4) ? "!(formerly " : "(formerly ");
		window(g, b);
		if (one_in(g, 3)) {
			buf_put_c(b, "(");
			pred(g, s, NULL, b);
			buf_put_c(b, " && ");
			cond(g, s, depth - 1, b);
			buf_put_c(b, "))");
			return;
		}
		pred(g, s, NULL, b);
		buf_put_c(b, ")");
		return;
	case 5:
		buf_put_c(b, "(formerly ");
		window(g, b);
		buf_put_c(b, "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, "))");
		return;
	case 6:
		buf_put_c(b, "(previous ");
		window(g, b);
		buf_put_c(b, "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, "))");
		return;
	case 7:
		buf_put_c(b, "(!");
		pred(g, s, NULL, b);
		buf_put_c(b, " since ");
		window(g, b);
		pred(g, s, NULL, b);
		buf_put_c(b, ")");
		return;
	case 8:
		buf_put_c(b, "(");
		pred(g, s, NULL, b);
		buf_put_c(b, " since ");
		window(g, b);
		pred(g, s, NULL, b);
		buf_put_c(b, ")");
		return;
	case 9:
		buf_put_c(b, "((");
		cond(g, s, depth - 1, b);
		buf_put_c(b, ") since ");
		window(g, b);
		buf_put_c(b, "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, "))");
		return;
	case 10:
		exists(g, s, depth, b);
		return;
	case 11:
	case 12:
		aggregate(g, s, depth, b);
		buf_putf(b, " %s ", ops[gen_int(g, 6)]);
		if (one_in(g, 4))
			buf_put_c(b, "context.input.v");
		else
			buf_putf(b, "%u", gen_int(g, 4));
		return;
	default:
		buf_put_c(b, one_in(g, 4) ? "!(" : "(");
		cond(g, s, depth - 1, b);
		buf_put_c(b, " && ");
		cond(g, s, depth - 1, b);
		buf_put_c(b, ")");
		return;
	}
}

void gen_policy(struct gen *g, unsigned rules, struct buf *out)
{
	for (unsigned i = 0; i < rules; i++) {
		struct scope s = { 0 };

		buf_putf(out, "@id(\"r%u\")\n%s (principal, action, resource) when temporal { ", i,
		    one_in(g, 2) ? "permit" : "forbid");
		cond(g, &s, 1 + gen_int(g, 3), out);
		buf_put_c(out, " };\n");
	}
}

static struct dw_val a_field(struct gen *g, unsigned f)
{
	static const char *const strings[] = { "a", "b", "c" }, *const decimals[] = { "1.0", "1.00",
		"2.5" };

	if (f == 1)
		return dw_int(gen_int(g, 4));
	if (f == 3)
		return dw_decimal(sv_c(decimals[gen_int(g, 3)]));
	return dw_str(sv_c(strings[gen_int(g, 3)]));
}

static struct dw_val bag(struct gen *g, struct arena *a, struct dw_rec *outer)
{
	static const char *const names[] = { "u", "v", "w", "d" };
	struct dw_rec in = dw_rec_in(a);

	for (unsigned f = 0; f < 4; f++) {
		if (!one_in(g, 12))
			dw_rec_add(&in, sv_c(names[f]), a_field(g, f));
	}
	dw_rec_add(outer, SV("input"), dw_rec_val(&in));
	return dw_rec_val(outer);
}

struct dw_event *gen_trace(struct gen *g, struct arena *a, size_t n, bool back, bool pins)
{
	static const char *const who[] = { "a", "b" };
	struct dw_event *v = ARENA_VEC(a, struct dw_event, n);
	int64_t ts = 100;

	for (size_t i = 0; v != NULL && i < n; i++) {
		struct dw_rec logged = dw_rec_in(a), ctx = dw_rec_in(a);
		const char *p = who[pins ? gen_int(g, 2) : 0];

		ts += gen_int(g, one_in(g, 10) ? 30 : 5);
		if (back && one_in(g, 6))
			ts -= gen_int(g, 12);
		v[i].ns = SV("N::Action");
		v[i].id = sv_c(actions[gen_int(g, 3)]);
		v[i].kind = sv_c(kinds[gen_int(g, 5) < 3 ? 0 : 1]);
		v[i].ts = ts;
		v[i].principal = (struct dw_uid){ SV("N::U"), sv_c(p) };
		v[i].resource = (struct dw_uid){ SV("N::R"), SV("r") };
		if (pins)
			dw_rec_add(&logged, SV("callerPrincipal"), dw_ent(SV("N::U"), sv_c(p)));
		v[i].logged = bag(g, a, &logged);
		v[i].context = one_in(g, 3) ? v[i].logged : bag(g, a, &ctx);
	}
	return v;
}
