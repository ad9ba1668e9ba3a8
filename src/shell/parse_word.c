/* Words: quoting (POSIX 2.2), expansions (2.6) and what bash adds ($'...', ${x/p/r}, arrays,
 * <(...), @(...)). Everything becomes parts; nothing is expanded here. Input is
 * hostile program text. */
#include <stdlib.h>
#include <string.h>

#include "shell/parse_int.h"
#include "shell/escape.h"
#include "base/ban.h"

/* The list being built. Literal text collects in p->scratch from `mark` and becomes a part when its
 * kind changes. */
struct acc {
	struct sh_parser *p;
	struct sh_part *head, **tail;
	size_t mark;
	enum sh_part_kind lit_kind;
};

static void flush(struct acc *a)
{
	struct sh_parser *p = a->p;

	if (!buf_ok(&p->scratch))
		sh_p_fail(p, BOX_ELIMIT, p->line, "word too large");
	if (p->scratch.n > a->mark) {
		struct sh_part *part = P_NEW(p, struct sh_part);

		part->kind = a->lit_kind;
		part->text = arena_dup(p->a, sv_sub(buf_sv(&p->scratch), a->mark, p->scratch.n));
		if (part->text.p == NULL)
			sh_p_fail(p, BOX_ELIMIT, p->line, "word too large");
		*a->tail = part;
		a->tail = &part->next;
		p->scratch.n = a->mark;
	}
}

static void add_part(struct acc *a, struct sh_part *part)
{
	flush(a);
	*a->tail = part;
	while (*a->tail != NULL)
		a->tail = &(*a->tail)->next;
}

static void add_char(struct acc *a, enum sh_part_kind kind, int c)
{
	if (kind != a->lit_kind) {
		flush(a);
		a->lit_kind = kind;
	}
	buf_put_byte(&a->p->scratch, (uint8_t)c);
}

struct sh_part *sh_p_part(struct sh_parser *p, enum sh_part_kind kind)
{
	struct sh_part *part = P_NEW(p, struct sh_part);

	part->kind = kind;
	return part;
}

/* An empty quoted part: '' and "" make a field. */
static struct sh_part *empty_quoted(struct sh_parser *p)
{
	struct sh_part *part = sh_p_part(p, SH_PT_QUOTED);

	part->text = SV("");
	return part;
}

static void single_quoted(struct acc *a)
{
	struct sh_parser *p = a->p;
	int c, line = p->line;
	bool any = false;

	while ((c = sh_p_next_raw(p)) != '\'') {
		if (c < 0)
			sh_p_fail(p, BOX_EPARSE, line, "unterminated single quote");
		add_char(a, SH_PT_QUOTED, c);
		any = true;
	}
	if (!any)
		add_part(a, empty_quoted(p));
}

/* $'...': the opening is consumed. */
static void ansi_quoted(struct acc *a)
{
	struct sh_parser *p = a->p;
	int c, line = p->line;
	AUTO_BUF raw = buf_with(SH_INPUT_MAX);
	AUTO_BUF out = buf_with(SH_INPUT_MAX);

	while ((c = sh_p_raw(p, 0)) != '\'' && c >= 0) {
		(void)sh_p_next_raw(p);
		buf_put_byte(&raw, (uint8_t)c);
		if (c == '\\' && sh_p_raw(p, 0) >= 0)
			buf_put_byte(&raw, (uint8_t)sh_p_next_raw(p));
	}
	if (c >= 0) {
		(void)sh_p_next_raw(p);
		sh_unescape(&out, buf_sv(&raw), SH_ESC_ANSI_C);
	}
	if (c >= 0 && buf_ok(&out)) {
		for (size_t i = 0; i < out.n; i++)
			add_char(a, SH_PT_QUOTED, out.p[i]);
	}
	if (c < 0 || !buf_ok(&raw) || !buf_ok(&out)) {
		/* The error leaves by longjmp, past the clean-ups. */
		buf_fini(&raw);
		buf_fini(&out);
		if (c < 0)
			sh_p_fail(p, BOX_EPARSE, line, "unterminated single quote");
		sh_p_fail(p, BOX_ELIMIT, line, "word too large");
	}
	if (out.n == 0)
		add_part(a, empty_quoted(p));
}

static void double_quoted(struct acc *a)
{
	struct sh_parser *p = a->p;
	struct sh_part *part = sh_p_part(p, SH_PT_DQUOTE);

	flush(a);
	part->sub = sh_p_parts(p, W_DQ);
	add_part(a, part);
}

/* --- substitutions --- */

/* Try $((...)) with the cursor behind "$((". NULL, with the cursor put back, when it does not end
 * in "))" and so is a command substitution holding a subshell (POSIX 2.6.3). */
static struct sh_part *try_arith(struct sh_parser *p)
{
	size_t pos = p->pos;
	int line = p->line;
	struct sh_redir *here = p->here, *last = here;
	struct sh_part *part = sh_p_part(p, SH_PT_ARITH);

	while (last != NULL && last->here_next != NULL)
		last = last->here_next;
	part->sub = sh_p_parts(p, W_ARITH);
	if (sh_p_look(p, 0) == ')' && sh_p_look(p, 1) == ')') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		return part;
	}
	if (sh_p_look(p, 0) < 0)
		sh_p_fail(p, BOX_EPARSE, line, "unterminated $(())");
	/* The here-documents that wait are those that waited before the attempt. */
	if (last != NULL)
		last->here_next = NULL;
	p->here = here;
	p->pos = pos;
	p->line = line;
	return NULL;
}

static struct sh_part *backquoted(struct sh_parser *p, bool dq)
{
	struct sh_part *part = sh_p_part(p, SH_PT_CMD);
	size_t mark = p->scratch.n;
	int c, line = p->line;
	sv text;

	while ((c = sh_p_next_raw(p)) != '`') {
		if (c < 0)
			sh_p_fail(p, BOX_EPARSE, line, "unterminated backtick");
		if (c == '\\') {
			int d = sh_p_raw(p, 0);

			if (d == '$' || d == '`' || d == '\\' || (dq && d == '"'))
				c = sh_p_next_raw(p);
		}
		buf_put_byte(&p->scratch, (uint8_t)c);
	}
	if (!buf_ok(&p->scratch))
		sh_p_fail(p, BOX_ELIMIT, line, "word too large");
	text = sv_c(sh_p_dup(p, sv_sub(buf_sv(&p->scratch), mark, p->scratch.n)));
	p->scratch.n = mark;
	part->cmd = sh_p_sub_text(p, text, line);
	return part;
}

/* Something that begins with $; the cursor is on it. Unquoted or quoted literal text goes to `a`
 * itself. */
static void dollar(struct acc *a, bool dq, enum sh_part_kind lit)
{
	struct sh_parser *p = a->p;
	int c = sh_p_look(p, 1);
	struct sh_part *part;
	const char *name;

	if (c == '(') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		flush(a);
		if (sh_p_look(p, 0) == '(') {
			(void)sh_p_next(p);
			part = try_arith(p);
			if (part != NULL) {
				add_part(a, part);
				return;
			}
			p->pos--;
		}
		part = sh_p_part(p, SH_PT_CMD);
		part->cmd = sh_p_substitution(p);
		add_part(a, part);
		return;
	}
	if (c == '{') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		flush(a);
		add_part(a, sh_p_braced_param(p, dq));
		return;
	}
	if (c == '[') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		flush(a);
		part = sh_p_part(p, SH_PT_ARITH);
		part->sub = sh_p_parts(p, W_ARITH_BRACKET);
		add_part(a, part);
		return;
	}
	if (!dq && c == '\'') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		ansi_quoted(a);
		return;
	}
	(void)sh_p_next(p);
	if (!dq && c == '"')
		return; /* $"...": no translation */
	name = sh_p_param_name(p, false);
	if (name == NULL) {
		add_char(a, lit, '$');
		return;
	}
	part = sh_p_part(p, SH_PT_PARAM);
	part->param = P_NEW(p, struct sh_param);
	part->param->name = name;
	part->param->text = name;
	part->param->line = p->line;
	add_part(a, part);
}

/* --- runs of parts --- */

static bool mode_quoted(enum sh_wmode m)
{
	return m == W_DQ || m == W_HERE || m == W_ARITH || m == W_ARITH_SEMI ||
	       m == W_ARITH_BRACKET || m == W_SLICE || m == W_BRACE_DQ;
}

/* A backslash, already consumed. */
static void backslash(struct acc *a, enum sh_wmode mode)
{
	struct sh_parser *p = a->p;
	int c = sh_p_raw(p, 0);

	if (c < 0) {
		add_char(a, mode_quoted(mode) ? SH_PT_QUOTED : SH_PT_LIT, '\\');
		return;
	}
	if (mode_quoted(mode)) {
		bool esc = c == '$' || c == '`' || c == '\\' || (c == '"' && mode != W_HERE) ||
		           (c == '}' && mode == W_BRACE_DQ);

		add_char(a, SH_PT_QUOTED, '\\');
		if (esc) {
			p->scratch.n--;
			add_char(a, SH_PT_QUOTED, sh_p_next_raw(p));
		}
		return;
	}
	add_char(a, SH_PT_QUOTED, sh_p_next_raw(p));
}

struct run {
	enum sh_wmode mode;
	int parens, brackets, braces, questions;
};

/* Does the run end in front of c? Counts brackets on the way. */
static bool ends(struct run *r, struct sh_parser *p, int c)
{
	switch (r->mode) {
	case W_WORD:
		return sh_p_meta(c);
	case W_BRACE:
	case W_BRACE_DQ:
		return c == '}';
	case W_BRACE_SLASH:
		return c == '}' || c == '/';
	case W_DQ:
		return c == '"';
	case W_HERE:
		return false;
	case W_ARITH:
	case W_ARITH_SEMI:
		if (c == '(')
			r->parens++;
		if (c == ')' && r->parens-- == 0)
			return true;
		return r->mode == W_ARITH_SEMI && c == ';' && r->parens == 0;
	case W_ARITH_BRACKET:
	case W_SUBSCRIPT:
		if (c == '[')
			r->brackets++;
		return c == ']' && r->brackets-- == 0;
	case W_SLICE:
		if (c == '(')
			r->parens++;
		if (c == ')' && r->parens > 0)
			r->parens--;
		if (c == '?')
			r->questions++;
		if (c == ':' && r->parens == 0 && r->questions-- <= 0)
			return true;
		return c == '}';
	case W_REGEX:
		if (c == '(')
			r->parens++;
		if (c == ')' && r->parens-- == 0)
			return true;
		return r->parens == 0 && (c == ' ' || c == '\t' || c == '\n');
	case W_EXTGLOB:
		if (c == '(')
			r->parens++;
		return c == ')' && r->parens-- == 0;
	}
	(void)p;
	return true;
}

/* Does the parenthesis behind the cursor close before the word must end? "${x##*([}" has none that
 * does. */
static bool closes(struct sh_parser *p, bool in_braces)
{
	int depth = 0;

	for (size_t i = 1; i < 4096; i++) {
		int c = sh_p_raw(p, i);

		if (c < 0 || c == '\n' || (in_braces && c == '}'))
			return false;
		if (c == '\\')
			i++;
		else if (c == '(')
			depth++;
		else if (c == ')' && --depth == 0)
			return true;
	}
	return false;
}

static bool extglob_here(struct sh_parser *p, enum sh_wmode mode, int c)
{
	if (mode != W_WORD && mode != W_BRACE && mode != W_BRACE_SLASH && mode != W_EXTGLOB)
		return false;
	if (c != '?' && c != '*' && c != '+' && c != '@' && c != '!')
		return false;
	if (sh_p_look(p, 1) != '(' || (c == '!' && !p->env.extglob && !p->in_cond))
		return false;
	return closes(p, mode == W_BRACE || mode == W_BRACE_SLASH);
}

static void extglob(struct acc *a)
{
	struct sh_parser *p = a->p;
	int line = p->line;

	add_char(a, SH_PT_LIT, sh_p_next(p));
	add_char(a, SH_PT_LIT, sh_p_next(p));
	flush(a);
	add_part(a, sh_p_parts(p, W_EXTGLOB));
	if (sh_p_look(p, 0) != ')')
		sh_p_fail(p, BOX_EPARSE, line, "expected ')'");
	add_char(a, SH_PT_LIT, sh_p_next(p));
}

static void proc_subst(struct acc *a)
{
	struct sh_parser *p = a->p;
	struct sh_part *part = sh_p_part(p, SH_PT_PROC);

	part->out = sh_p_next(p) == '>';
	(void)sh_p_next(p);
	flush(a);
	part->cmd = sh_p_substitution(p);
	add_part(a, part);
}

/* One element that begins with c in front of the cursor. */
static void step(struct acc *a, enum sh_wmode mode, int c)
{
	struct sh_parser *p = a->p;
	bool quoted = mode_quoted(mode);
	enum sh_part_kind lit = quoted ? SH_PT_QUOTED : SH_PT_LIT;

	switch (c) {
	case '\\':
		(void)sh_p_next_raw(p);
		backslash(a, mode);
		return;
	case '$':
		dollar(a, quoted, lit);
		return;
	case '`':
		(void)sh_p_next(p);
		flush(a);
		add_part(a, backquoted(p, mode == W_DQ || mode == W_BRACE_DQ));
		return;
	case '\'':
		if (quoted)
			break;
		(void)sh_p_next(p);
		single_quoted(a);
		return;
	case '"':
		if (mode == W_HERE)
			break;
		(void)sh_p_next(p);
		double_quoted(a);
		return;
	case '<':
	case '>':
		if ((mode == W_WORD || mode == W_BRACE) && sh_p_look(p, 1) == '(') {
			proc_subst(a);
			return;
		}
		break;
	default:
		break;
	}
	if (extglob_here(p, mode, c)) {
		extglob(a);
		return;
	}
	add_char(a, lit, sh_p_next(p));
}

struct sh_part *sh_p_parts(struct sh_parser *p, enum sh_wmode mode)
{
	struct acc a = { .p = p, .mark = p->scratch.n, .lit_kind = SH_PT_LIT };
	struct run r = { .mode = mode };
	int line = p->line, c;

	a.tail = &a.head;
	sh_p_enter(p);
	for (;;) {
		c = sh_p_look(p, 0);
		if (c < 0)
			break;
		if (mode == W_WORD && (c == '<' || c == '>') && sh_p_look(p, 1) == '(') {
			step(&a, mode, c);
			continue;
		}
		if (ends(&r, p, c))
			break;
		step(&a, mode, c);
	}
	flush(&a);
	sh_p_leave(p);
	if (c < 0 && mode == W_DQ)
		sh_p_fail(p, BOX_EPARSE, line, "unterminated double quote");
	if (c < 0 && (mode == W_SUBSCRIPT || mode == W_ARITH_BRACKET))
		sh_p_fail(p, BOX_EPARSE, line, "expected ']'");
	if (mode == W_DQ || mode == W_SUBSCRIPT || mode == W_ARITH_BRACKET)
		(void)sh_p_next(p);
	return a.head;
}

/* --- words --- */

struct sh_word *sh_p_word_of(struct sh_parser *p, struct sh_part *parts, int line)
{
	struct sh_word *w = P_NEW(p, struct sh_word);
	bool open = false;

	w->parts = parts;
	w->line = line;
	for (struct sh_part *q = parts; q != NULL; q = q->next) {
		if (q->kind != SH_PT_LIT)
			continue;
		for (size_t i = 0; i < q->text.n; i++) {
			char c = q->text.p[i];

			open = open || c == '{';
			if (open && (c == ',' ||
			                (c == '.' && i + 1 < q->text.n && q->text.p[i + 1] == '.')))
				w->braces = true;
		}
	}
	return w;
}

/* name[subscript] in front of = or +=: parses the subscript, or puts the cursor back and returns
 * NULL. */
static struct sh_word *assign_subscript(struct sh_parser *p)
{
	size_t pos = p->pos;
	int line = p->line, c;
	struct sh_word *w;

	(void)sh_p_next(p);
	/* A pattern like a[0-9]* must not swallow the rest of the text looking for its bracket. */
	for (size_t i = 0; (c = sh_p_look(p, i)) != ']'; i++) {
		if (c < 0 || c == '\n') {
			p->pos = pos;
			p->line = line;
			return NULL;
		}
	}
	w = sh_p_word_of(p, sh_p_parts(p, W_SUBSCRIPT), line);
	c = sh_p_look(p, 0);
	if (c == '=' || (c == '+' && sh_p_look(p, 1) == '='))
		return w;
	p->pos = pos;
	p->line = line;
	return NULL;
}

/* An assignment at the cursor, or NULL with the cursor unmoved. */
static struct sh_assign *try_assign(struct sh_parser *p)
{
	size_t pos = p->pos, n = 0;
	int line = p->line, c;
	struct sh_assign *as;
	struct sh_word *sub = NULL;
	const char *name;
	bool append = false;

	while (sh_p_name_start(c = sh_p_look(p, n)) || (n != 0 && sh_p_digit(c)))
		n++;
	if (n == 0 || (c != '=' && c != '[' && !(c == '+' && sh_p_look(p, n + 1) == '=')))
		return NULL;
	name = sh_p_param_name(p, false);
	if (name == NULL)
		return NULL;
	if (c == '[' && (sub = assign_subscript(p)) == NULL) {
		p->pos = pos;
		p->line = line;
		return NULL;
	}
	if (sh_p_look(p, 0) == '+') {
		append = true;
		(void)sh_p_next(p);
	}
	(void)sh_p_next(p);
	as = P_NEW(p, struct sh_assign);
	as->name = name;
	as->subscript = sub;
	as->append = append;
	if (sh_p_look(p, 0) == '(' && sub == NULL) {
		(void)sh_p_next(p);
		as->is_array = true;
		as->elems = sh_p_elements(p);
	} else {
		as->value = sh_p_word_of(p, sh_p_parts(p, W_WORD), line);
		if (as->value->parts == NULL)
			as->value = NULL;
	}
	return as;
}

/* Elements of name=( ... ) up to and including the closing parenthesis. */
struct sh_assign *sh_p_elements(struct sh_parser *p)
{
	struct sh_assign *head = NULL, **tail = &head;
	int line = p->line;

	for (;;) {
		struct sh_assign *e;
		int c = sh_p_look(p, 0);

		if (c == ' ' || c == '\t' || c == '\n') {
			(void)sh_p_next(p);
			continue;
		}
		if (c == '#') {
			while ((c = sh_p_raw(p, 0)) >= 0 && c != '\n')
				(void)sh_p_next_raw(p);
			continue;
		}
		if (c == ')') {
			(void)sh_p_next(p);
			return head;
		}
		if (c < 0)
			sh_p_fail(p, BOX_EPARSE, line, "expected ')'");
		e = P_NEW(p, struct sh_assign);
		if (c == '[') {
			e->subscript = assign_subscript(p);
			if (e->subscript != NULL) {
				e->append = sh_p_next(p) == '+';
				if (e->append)
					(void)sh_p_next(p);
			}
		}
		if (e->subscript == NULL && sh_p_meta(c) &&
		    !((c == '<' || c == '>') && sh_p_look(p, 1) == '('))
			sh_p_fail(p, BOX_EPARSE, p->line, "unexpected '%c' in an array", c);
		e->value = sh_p_word_of(p, sh_p_parts(p, W_WORD), p->line);
		*tail = e;
		tail = &e->next;
	}
}

void sh_p_lex_word(struct sh_parser *p, struct token *t, bool assign_ok)
{
	size_t start = p->pos;
	int line = p->line;

	if (assign_ok) {
		t->assign = try_assign(p);
		if (t->assign != NULL) {
			t->word = P_NEW(p, struct sh_word);
			t->word->line = line;
			t->word->assign = t->assign;
			t->word->text =
			    arena_dup(p->a, (sv){ (char *)p->text.p + start, p->pos - start }).p;
			return;
		}
	}
	t->word = sh_p_word_of(p, sh_p_parts(p, W_WORD), line);
	if (t->word->parts != NULL && t->word->parts->next == NULL &&
	    t->word->parts->kind == SH_PT_LIT)
		t->lit = t->word->parts->text;
}
