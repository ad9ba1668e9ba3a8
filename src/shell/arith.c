/* Arithmetic (POSIX 2.6.4 with C's operators, and bash's **, base#n, array elements). 64-bit two's
 * complement that wraps. Input is an already expanded, hostile string; recursion is limited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

#define DEPTH_MAX 256

struct ar {
	struct shell *sh;
	const char *text; /* the whole expression, for messages */
	const char *p;
	bool bad;
	int skip;  /* > 0: an operand that is not evaluated */
	int depth; /* of recursion, variables' values included */
};

/* Something that can be assigned to. */
struct lval {
	bool is;
	char *name; /* owned */
	char *sub;  /* owned text of the subscript, or NULL */
};

static int64_t comma(struct ar *a);
static int64_t assignment(struct ar *a);

static int64_t fail(struct ar *a, const char *what)
{
	if (!a->bad) {
		a->bad = true;
		sh_msg(a->sh, "%s: %s (error token is \"%s\")", a->text, what, a->p);
	}
	return 0;
}

static void blanks(struct ar *a)
{
	while (*a->p == ' ' || *a->p == '\t' || *a->p == '\n' || *a->p == '\r')
		a->p++;
}

static bool is_op(struct ar *a, const char *op, const char *not_before)
{
	size_t n = strlen(op);

	blanks(a);
	if (strncmp(a->p, op, n) != 0 ||
	    (a->p[n] != '\0' && not_before != NULL && strchr(not_before, a->p[n]) != NULL))
		return false;
	a->p += n;
	return true;
}

static bool name_char(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (!first && c >= '0' && c <= '9');
}

static void lval_fini(struct lval *l)
{
	free(l->name);
	free(l->sub);
	*l = (struct lval){ 0 };
}

/* The value of a variable's text: an expression of its own. */
static int64_t text_value(struct ar *a, const char *text)
{
	struct ar b = { .sh = a->sh, .depth = a->depth + 1 };
	char *copy;
	int64_t v;

	if (text == NULL || text[strspn(text, " \t\n")] == '\0')
		return 0;
	if (b.depth > DEPTH_MAX)
		return fail(a, "expression recursion level exceeded");
	copy = sh_xstrdup(text);
	b.text = b.p = copy;
	v = comma(&b);
	blanks(&b);
	if (!b.bad && *b.p != '\0')
		(void)fail(&b, "syntax error in expression");
	a->bad = a->bad || b.bad;
	free(copy);
	return v;
}

/* Subscript text as a key for an associative array: quotes and expansions were done before. */
static const char *element(struct ar *a, const struct lval *l, int64_t *index, bool *assoc)
{
	struct sh_var *v = sh_var_find(a->sh, l->name);

	*assoc = v != NULL && (v->flags & SH_V_ASSOC) != 0;
	if (*assoc) {
		size_t n = strlen(l->sub);

		/* A["k"] and A['k'] in an expression name the element k. */
		if (n > 1 && (l->sub[0] == '\'' || l->sub[0] == '"') &&
		    l->sub[n - 1] == l->sub[0]) {
			memmove(l->sub, l->sub + 1, n - 2);
			l->sub[n - 2] = '\0';
		}
		return v != NULL ? sh_var_key(v, l->sub) : NULL;
	}
	*index = text_value(a, l->sub);
	if (v == NULL || a->bad)
		return NULL;
	*index = sh_var_from_end(v, *index);
	return sh_var_index(v, *index);
}

static int64_t lval_get(struct ar *a, const struct lval *l)
{
	const char *s;
	int64_t index;
	bool assoc;

	if (a->skip > 0)
		return 0;
	if (l->sub != NULL)
		s = element(a, l, &index, &assoc);
	else
		s = sh_var_get(a->sh, l->name);
	if (s == NULL && (a->sh->opts & SH_O_NOUNSET) != 0 && !a->bad) {
		a->bad = true;
		sh_error(a->sh, true, 1, "%s: unbound variable", l->name);
		return 0;
	}
	return text_value(a, s);
}

static void lval_set(struct ar *a, const struct lval *l, int64_t value)
{
	char text[32];
	int64_t index;
	bool assoc;
	int r;

	if (a->skip > 0 || a->bad)
		return;
	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	if (l->sub == NULL) {
		r = sh_var_set(a->sh, l->name, text);
	} else {
		(void)element(a, l, &index, &assoc);
		r = assoc ? sh_var_set_key(a->sh, l->name, l->sub, text, false)
		          : sh_var_set_index(a->sh, l->name, index, text, false);
	}
	if (r != 0)
		a->bad = true;
}

static int digit_value(char c, int base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'Z')
		return base <= 36 ? c - 'A' + 10 : c - 'A' + 36;
	if (c == '@')
		return 62;
	if (c == '_')
		return 63;
	return -1;
}

static int64_t number(struct ar *a)
{
	uint64_t v = 0;
	int base = 10, d;

	if (a->p[0] == '0' && (a->p[1] == 'x' || a->p[1] == 'X')) {
		base = 16;
		a->p += 2;
	} else if (a->p[0] == '0') {
		base = 8;
	}
	for (; (d = digit_value(*a->p, base)) >= 0 || *a->p == '#'; a->p++) {
		if (*a->p == '#') {
			if (base != 10 || v < 2 || v > 64 || digit_value(a->p[1], (int)v) < 0)
				return fail(a, "invalid number");
			base = (int)v;
			v = 0;
			continue;
		}
		if (d >= base)
			return fail(a, "value too great for base");
		v = v * (uint64_t)base + (uint64_t)d;
	}
	return (int64_t)v;
}

/* name or name[subscript]; the subscript's text ends at the matching bracket. */
static bool name(struct ar *a, struct lval *l)
{
	const char *q = a->p;
	int depth = 0;

	if (!name_char(*q, true))
		return false;
	while (name_char(*q, false))
		q++;
	l->name = sh_xdup((sv){ a->p, (size_t)(q - a->p) });
	l->is = true;
	a->p = q;
	if (*q != '[')
		return true;
	for (; *q != '\0'; q++) {
		if (*q == '[')
			depth++;
		else if (*q == ']' && --depth == 0)
			break;
	}
	if (*q == '\0') {
		(void)fail(a, "bad array subscript");
		return true;
	}
	l->sub = sh_xdup((sv){ a->p + 1, (size_t)(q - a->p - 1) });
	a->p = q + 1;
	return true;
}

static int64_t primary(struct ar *a, struct lval *l)
{
	int64_t v;

	blanks(a);
	if (*a->p == '(') {
		a->p++;
		v = comma(a);
		blanks(a);
		if (*a->p != ')')
			return fail(a, "missing `)'");
		a->p++;
		return v;
	}
	if (*a->p >= '0' && *a->p <= '9')
		return number(a);
	if (name(a, l))
		return a->bad ? 0 : lval_get(a, l);
	return fail(a, "syntax error: operand expected");
}

static int64_t postfix(struct ar *a, struct lval *l)
{
	int64_t v = primary(a, l);

	if (!l->is || a->bad)
		return v;
	if (is_op(a, "++", NULL)) {
		lval_set(a, l, (int64_t)((uint64_t)v + 1));
		l->is = false;
	} else if (is_op(a, "--", NULL)) {
		lval_set(a, l, (int64_t)((uint64_t)v - 1));
		l->is = false;
	}
	return v;
}

static int64_t unary(struct ar *a, struct lval *l)
{
	int64_t v;

	if (a->bad)
		return 0;
	if (++a->depth > DEPTH_MAX) {
		a->depth--;
		return fail(a, "expression recursion level exceeded");
	}
	blanks(a);
	if ((a->p[0] == '+' && a->p[1] == '+') || (a->p[0] == '-' && a->p[1] == '-')) {
		const char *at = a->p;
		struct lval m = { 0 };
		char op = a->p[0];

		a->p += 2;
		blanks(a);
		if (name_char(*a->p, true)) {
			v = primary(a, &m);
			v = (int64_t)((uint64_t)v + (op == '+' ? 1u : (uint64_t)-1));
			lval_set(a, &m, v);
			lval_fini(&m);
			a->depth--;
			return v;
		}
		a->p = at;
	}
	if (strchr("+-!~", *a->p) != NULL && *a->p != '\0') {
		char op = *a->p++;
		struct lval m = { 0 };

		v = unary(a, &m);
		lval_fini(&m);
		switch (op) {
		case '-':
			v = (int64_t) - (uint64_t)v;
			break;
		case '!':
			v = v == 0;
			break;
		case '~':
			v = ~v;
			break;
		default:
			break;
		}
	} else {
		v = postfix(a, l);
	}
	a->depth--;
	return v;
}

static int64_t operand(struct ar *a)
{
	struct lval l = { 0 };
	int64_t v = unary(a, &l);

	lval_fini(&l);
	return v;
}

static int64_t power(struct ar *a, int64_t base, int64_t e)
{
	uint64_t r = 1, b = (uint64_t)base;

	if (e < 0)
		return fail(a, "exponent less than 0");
	for (; e != 0; e >>= 1) {
		if ((e & 1) != 0)
			r *= b;
		b *= b;
	}
	return (int64_t)r;
}

/* Right-associative. first is the value to the left. */
static int64_t exponent(struct ar *a, int64_t first)
{
	int64_t e;

	if (!is_op(a, "**", "="))
		return first;
	if (++a->depth > DEPTH_MAX) {
		a->depth--;
		return fail(a, "expression recursion level exceeded");
	}
	e = exponent(a, operand(a));
	a->depth--;
	return a->skip > 0 || a->bad ? 0 : power(a, first, e);
}

static int64_t divide(struct ar *a, int64_t x, int64_t y, bool rem)
{
	if (a->skip > 0 || a->bad)
		return 0;
	if (y == 0)
		return fail(a, "division by 0");
	if (y == -1)
		return rem ? 0 : (int64_t) - (uint64_t)x;
	return rem ? x % y : x / y;
}

/* Binary operators by precedence. level 0 is |, 1 ^, 2 &, 3 == !=, 4 relations, 5 shifts, 6 sums, 7
 * products. */
static int64_t binary(struct ar *a, int level, int64_t first)
{
	int64_t x = level == 7 ? exponent(a, first) : binary(a, level + 1, first), y;

#define NEXT() (level == 7 ? exponent(a, operand(a)) : binary(a, level + 1, operand(a)))
	for (;;) {
		if (a->bad)
			return 0;
		switch (level) {
		case 0:
			if (!is_op(a, "|", "|="))
				return x;
			x |= NEXT();
			break;
		case 1:
			if (!is_op(a, "^", "="))
				return x;
			x ^= NEXT();
			break;
		case 2:
			if (!is_op(a, "&", "&="))
				return x;
			x &= NEXT();
			break;
		case 3:
			if (is_op(a, "==", NULL)) {
				y = NEXT();
				x = x == y;
			} else if (is_op(a, "!=", NULL)) {
				y = NEXT();
				x = x != y;
			} else {
				return x;
			}
			break;
		case 4:
			if (is_op(a, "<=", NULL)) {
				y = NEXT();
				x = x <= y;
			} else if (is_op(a, ">=", NULL)) {
				y = NEXT();
				x = x >= y;
			} else if (is_op(a, "<", "<")) {
				y = NEXT();
				x = x < y;
			} else if (is_op(a, ">", ">")) {
				y = NEXT();
				x = x > y;
			} else {
				return x;
			}
			break;
		case 5:
			if (is_op(a, "<<", "=")) {
				y = NEXT();
				x = (int64_t)((uint64_t)x << ((uint64_t)y & 63));
			} else if (is_op(a, ">>", "=")) {
				y = NEXT();
				x = x >> ((uint64_t)y & 63);
			} else {
				return x;
			}
			break;
		case 6:
			if (is_op(a, "+", "=")) {
				y = NEXT();
				x = (int64_t)((uint64_t)x + (uint64_t)y);
			} else if (is_op(a, "-", "=")) {
				y = NEXT();
				x = (int64_t)((uint64_t)x - (uint64_t)y);
			} else {
				return x;
			}
			break;
		default:
			if (is_op(a, "*", "*=")) {
				y = NEXT();
				x = (int64_t)((uint64_t)x * (uint64_t)y);
			} else if (is_op(a, "/", "=")) {
				x = divide(a, x, NEXT(), false);
			} else if (is_op(a, "%", "=")) {
				x = divide(a, x, NEXT(), true);
			} else {
				return x;
			}
			break;
		}
	}
#undef NEXT
}

static int64_t logical_and(struct ar *a, int64_t first)
{
	int64_t x = binary(a, 0, first);

	while (!a->bad && is_op(a, "&&", NULL)) {
		int64_t y;

		a->skip += x == 0;
		y = binary(a, 0, operand(a));
		a->skip -= x == 0;
		x = x != 0 && y != 0;
	}
	return x;
}

static int64_t logical_or(struct ar *a, int64_t first)
{
	int64_t x = logical_and(a, first);

	while (!a->bad && is_op(a, "||", NULL)) {
		int64_t y;

		a->skip += x != 0;
		y = logical_and(a, operand(a));
		a->skip -= x != 0;
		x = x != 0 || y != 0;
	}
	return x;
}

static int64_t conditional(struct ar *a, int64_t first)
{
	int64_t c = logical_or(a, first), x, y;

	if (a->bad || !is_op(a, "?", NULL))
		return c;
	a->skip += c == 0;
	x = comma(a);
	a->skip -= c == 0;
	if (!is_op(a, ":", NULL))
		return fail(a, "`:' expected for conditional expression");
	a->skip += c != 0;
	y = assignment(a);
	a->skip -= c != 0;
	return c != 0 ? x : y;
}

static int64_t compute(struct ar *a, char op, int64_t x, int64_t y)
{
	switch (op) {
	case '+':
		return (int64_t)((uint64_t)x + (uint64_t)y);
	case '-':
		return (int64_t)((uint64_t)x - (uint64_t)y);
	case '*':
		return (int64_t)((uint64_t)x * (uint64_t)y);
	case '/':
		return divide(a, x, y, false);
	case '%':
		return divide(a, x, y, true);
	case '&':
		return x & y;
	case '|':
		return x | y;
	case '^':
		return x ^ y;
	case '<':
		return (int64_t)((uint64_t)x << ((uint64_t)y & 63));
	default:
		return x >> ((uint64_t)y & 63);
	}
}

/* The assignment operator at the cursor: '=' or the letter of op=; 0: none. */
static char assign_op(struct ar *a)
{
	blanks(a);
	if (a->p[0] == '=' && a->p[1] != '=') {
		a->p++;
		return '=';
	}
	if (a->p[0] != '\0' && strchr("+-*/%&|^", a->p[0]) != NULL && a->p[1] == '=') {
		a->p += 2;
		return a->p[-2];
	}
	if ((a->p[0] == '<' || a->p[0] == '>') && a->p[1] == a->p[0] && a->p[2] == '=') {
		a->p += 3;
		return a->p[-3];
	}
	return 0;
}

static int64_t assignment(struct ar *a)
{
	struct lval l = { 0 };
	const char *start;
	int64_t v = 0;
	char op;

	if (a->bad)
		return 0;
	if (++a->depth > DEPTH_MAX) {
		a->depth--;
		return fail(a, "expression recursion level exceeded");
	}
	blanks(a);
	start = a->p;
	if (name(a, &l) && !a->bad && (op = assign_op(a)) != 0) {
		int64_t old = op == '=' ? 0 : lval_get(a, &l);

		v = assignment(a);
		if (op != '=')
			v = compute(a, op, old, v);
		lval_set(a, &l, v);
	} else if (!a->bad) {
		struct lval m = { 0 };

		a->p = start;
		v = unary(a, &m);
		v = conditional(a, v);
		lval_fini(&m);
		if (!a->bad && assign_op(a) != 0)
			(void)fail(a, "attempted assignment to non-variable");
	}
	lval_fini(&l);
	a->depth--;
	return v;
}

static int64_t comma(struct ar *a)
{
	int64_t v = assignment(a);

	while (!a->bad && is_op(a, ",", NULL))
		v = assignment(a);
	return v;
}

int sh_arith(struct shell *sh, const char *text, int64_t *out)
{
	struct ar a = { .sh = sh };
	char *copy;

	*out = 0;
	if (text[strspn(text, " \t\n\r")] == '\0')
		return 0;
	/* The text may be a variable's value, and the expression may assign to that variable. */
	copy = sh_xstrdup(text);
	a.text = a.p = copy;
	*out = comma(&a);
	blanks(&a);
	if (!a.bad && *a.p != '\0')
		(void)fail(&a, "syntax error in expression");
	free(copy);
	return a.bad ? -1 : 0;
}

int sh_arith_word(struct shell *sh, const struct sh_word *w, int64_t *out)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_word inner = { 0 };
	char *text;

	*out = 0;
	if (w != NULL && w->parts != NULL && w->parts->kind == SH_PT_ARITH) {
		inner.parts = w->parts->sub;
		w = &inner;
	}
	text = sh_expand_str(sh, &a, w, SH_X_STRING);
	return text != NULL ? sh_arith(sh, text, out) : -1;
}
