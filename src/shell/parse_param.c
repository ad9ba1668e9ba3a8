/* ${...}: names, subscripts and operators (POSIX 2.6.2 and bash's). Input is hostile program text.
 */
#include <string.h>

#include "shell/parse_int.h"
#include "base/ban.h"

bool sh_p_name_start(int c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool sh_p_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool special_param(int c)
{
	return c == '@' || c == '*' || c == '#' || c == '?' || c == '-' || c == '$' || c == '!';
}

/* A name, number or special parameter at the cursor; NULL when there is none. */
const char *sh_p_param_name(struct sh_parser *p, bool braces)
{
	size_t mark = p->scratch.n;
	int c = sh_p_look(p, 0);
	const char *name;

	if (sh_p_name_start(c)) {
		while (sh_p_name_start(c) || sh_p_digit(c)) {
			buf_put_byte(&p->scratch, (uint8_t)sh_p_next(p));
			c = sh_p_look(p, 0);
		}
	} else if (sh_p_digit(c)) {
		do {
			buf_put_byte(&p->scratch, (uint8_t)sh_p_next(p));
			c = sh_p_look(p, 0);
		} while (braces && sh_p_digit(c));
	} else if (special_param(c)) {
		buf_put_byte(&p->scratch, (uint8_t)sh_p_next(p));
	} else {
		return NULL;
	}
	name = sh_p_dup(p, sv_sub(buf_sv(&p->scratch), mark, p->scratch.n));
	p->scratch.n = mark;
	return name;
}

static void subscript(struct sh_parser *p, struct sh_param *q)
{
	int c = sh_p_look(p, 1);

	if ((c == '@' || c == '*') && sh_p_look(p, 2) == ']') {
		(void)sh_p_next(p);
		q->subscript_all = (char)sh_p_next(p);
		(void)sh_p_next(p);
		return;
	}
	(void)sh_p_next(p);
	q->subscript = sh_p_word_of(p, sh_p_parts(p, W_SUBSCRIPT), p->line);
}

static struct sh_word *word_until(struct sh_parser *p, enum sh_wmode mode)
{
	int line = p->line;

	return sh_p_word_of(p, sh_p_parts(p, mode), line);
}

static void replace_op(struct sh_parser *p, struct sh_param *q)
{
	int c = sh_p_look(p, 0);

	q->op = SH_OP_REPLACE;
	if (c == '/' || c == '#' || c == '%') {
		(void)sh_p_next(p);
		q->op = c == '/'   ? SH_OP_REPLACE_ALL
		        : c == '#' ? SH_OP_REPLACE_PREFIX
		                   : SH_OP_REPLACE_SUFFIX;
	}
	q->arg = word_until(p, W_BRACE_SLASH);
	if (sh_p_look(p, 0) == '/') {
		(void)sh_p_next(p);
		q->arg2 = word_until(p, W_BRACE);
	}
}

static void case_op(
    struct sh_parser *p, struct sh_param *q, int c, enum sh_param_op one, enum sh_param_op all)
{
	q->op = one;
	if (sh_p_look(p, 0) == c) {
		(void)sh_p_next(p);
		q->op = all;
	}
	q->arg = word_until(p, W_BRACE);
	if (q->arg->parts == NULL)
		q->arg = NULL;
}

/* The operator behind the name, up to (not including) the closing brace. false: not an operator. */
static bool param_operator(struct sh_parser *p, struct sh_param *q, bool dq)
{
	int c = sh_p_look(p, 0);

	if (c == ':') {
		int d = sh_p_look(p, 1);

		(void)sh_p_next(p);
		if (d != '-' && d != '=' && d != '?' && d != '+') {
			q->op = SH_OP_SLICE;
			q->arg = word_until(p, W_SLICE);
			if (sh_p_look(p, 0) == ':') {
				(void)sh_p_next(p);
				q->arg2 = word_until(p, W_SLICE);
			}
			return true;
		}
		q->colon = true;
		c = d;
	}
	switch (c) {
	case '-':
	case '=':
	case '?':
	case '+':
		q->op = c == '-'   ? SH_OP_MINUS
		        : c == '=' ? SH_OP_ASSIGN
		        : c == '?' ? SH_OP_ERROR
		                   : SH_OP_PLUS;
		(void)sh_p_next(p);
		q->arg = word_until(p, dq ? W_BRACE_DQ : W_BRACE);
		return true;
	case '#':
	case '%':
		(void)sh_p_next(p);
		q->op = c == '#' ? SH_OP_PREFIX : SH_OP_SUFFIX;
		if (sh_p_look(p, 0) == c) {
			(void)sh_p_next(p);
			q->op = c == '#' ? SH_OP_PREFIX_LONG : SH_OP_SUFFIX_LONG;
		}
		q->arg = word_until(p, W_BRACE);
		return true;
	case '/':
		(void)sh_p_next(p);
		replace_op(p, q);
		return true;
	case '^':
		(void)sh_p_next(p);
		case_op(p, q, c, SH_OP_UPPER, SH_OP_UPPER_ALL);
		return true;
	case ',':
		(void)sh_p_next(p);
		case_op(p, q, c, SH_OP_LOWER, SH_OP_LOWER_ALL);
		return true;
	case '~':
		(void)sh_p_next(p);
		case_op(p, q, c, SH_OP_TOGGLE, SH_OP_TOGGLE_ALL);
		return true;
	case '@':
		(void)sh_p_next(p);
		q->op = SH_OP_AT;
		c = sh_p_look(p, 0);
		if (!sh_p_name_start(c))
			return false;
		q->letter = (char)sh_p_next(p);
		return true;
	default:
		return false;
	}
}

/* Is `#` here the length operator: ${#name}, ${#name[...]}, ${#?}? The cursor is on '#'. */
static bool is_length(struct sh_parser *p)
{
	int c = sh_p_look(p, 1);

	if (sh_p_name_start(c) || sh_p_digit(c))
		return true;
	return special_param(c) && sh_p_look(p, 2) == '}';
}

static bool is_indirect(struct sh_parser *p)
{
	int c = sh_p_look(p, 1);

	return sh_p_name_start(c) || sh_p_digit(c) ||
	       ((c == '#' || c == '@' || c == '*' || c == '?' || c == '$' || c == '!') &&
	           sh_p_look(p, 2) == '}');
}

static void indirect_tail(struct sh_parser *p, struct sh_param *q)
{
	int c = sh_p_look(p, 0);

	q->indirect = true;
	if ((c == '*' || c == '@') && sh_p_look(p, 1) == '}') {
		q->op = SH_OP_NAMES;
		q->letter = (char)sh_p_next(p);
		q->indirect = false;
	} else if (c == '[') {
		subscript(p, q);
		if (q->subscript_all != 0 && sh_p_look(p, 0) == '}') {
			q->op = SH_OP_KEYS;
			q->indirect = false;
		}
	}
}

/* The cursor is behind "${". */
struct sh_part *sh_p_braced_param(struct sh_parser *p, bool dq)
{
	struct sh_part *part = sh_p_part(p, SH_PT_PARAM);
	struct sh_param *q = P_NEW(p, struct sh_param);
	size_t start = p->pos;
	int line = p->line, c;
	bool ok = true;

	part->param = q;
	q->line = line;
	c = sh_p_look(p, 0);
	if (c == '#' && is_length(p)) {
		(void)sh_p_next(p);
		q->op = SH_OP_LENGTH;
	} else if (c == '!' && is_indirect(p)) {
		(void)sh_p_next(p);
		q->indirect = true;
	}
	q->name = sh_p_param_name(p, true);
	if (q->name == NULL) {
		ok = false;
	} else if (q->indirect) {
		indirect_tail(p, q);
	} else if (sh_p_look(p, 0) == '[' && sh_p_name_start((unsigned char)q->name[0])) {
		subscript(p, q);
	}
	if (ok && sh_p_look(p, 0) != '}')
		ok = q->op == SH_OP_NONE && param_operator(p, q, dq);
	if (!ok || sh_p_look(p, 0) != '}') {
		(void)sh_p_parts(p, dq ? W_BRACE_DQ : W_BRACE);
		q->op = SH_OP_BAD;
	}
	if (sh_p_look(p, 0) != '}')
		sh_p_fail(p, BOX_EPARSE, line, "unterminated ${}");
	q->text = sh_p_dup(p, (sv){ (char *)p->text.p + start, p->pos - start });
	(void)sh_p_next(p);
	return part;
}
