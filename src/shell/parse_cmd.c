/* Commands: simple, compound, function definitions (POSIX 2.9), and bash's [[ ]], (( )), for
 * ((;;)), select. Input is hostile program text. */
#include "shell/parse_cmd.h"

#include <string.h>

#include "base/ban.h"

void sh_p_expect(struct sh_parser *p, const char *reserved)
{
	if (!sh_p_is(p, reserved)) {
		struct token *t = sh_p_peek(p, true);

		if (t->kind == TK_EOF)
			sh_p_fail(p, BOX_EPARSE, t->line, "expected '%s'", reserved);
		if (t->kind == TK_WORD && t->lit.p != NULL && t->lit.n < 64)
			sh_p_fail(p, BOX_EPARSE, t->line, "expected '%s', got '" SV_FMT "'",
			    reserved, SV_ARG(t->lit));
		sh_p_unexpected(p, t);
	}
	sh_p_take(p);
}

/* A list that must hold a command. */
static struct sh_node *body(struct sh_parser *p)
{
	struct sh_node *n = sh_p_list(p, false);

	if (n == NULL)
		sh_p_unexpected(p, sh_p_peek(p, true));
	return n;
}

/* --- redirections --- */

static bool redir_kind(enum sh_tok t, enum sh_redir_kind *kind)
{
	switch (t) {
	case TK_LESS:
		*kind = SH_RD_IN;
		return true;
	case TK_GREAT:
		*kind = SH_RD_OUT;
		return true;
	case TK_DGREAT:
		*kind = SH_RD_APPEND;
		return true;
	case TK_CLOBBER:
		*kind = SH_RD_CLOBBER;
		return true;
	case TK_LESS_GREAT:
		*kind = SH_RD_RDWR;
		return true;
	case TK_LESS_AMP:
		*kind = SH_RD_DUP_IN;
		return true;
	case TK_GREAT_AMP:
		*kind = SH_RD_DUP_OUT;
		return true;
	case TK_DLESS:
	case TK_DLESS_DASH:
	case TK_TLESS:
		*kind = SH_RD_HERE;
		return true;
	case TK_AMP_GREAT:
		*kind = SH_RD_BOTH;
		return true;
	case TK_AMP_DGREAT:
		*kind = SH_RD_BOTH_APPEND;
		return true;
	default:
		return false;
	}
}

/* A redirection at the cursor, or NULL. */
static struct sh_redir *redirection(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, true);
	struct sh_redir *r;
	enum sh_redir_kind kind;
	enum sh_tok op;
	int fd = -1;
	const char *var = NULL;

	if (t->kind == TK_IONUM) {
		fd = t->io_fd;
		var = t->io_var;
		sh_p_take(p);
		t = sh_p_peek(p, true);
	}
	op = t->kind;
	if (!redir_kind(op, &kind))
		return NULL;
	r = P_NEW(p, struct sh_redir);
	r->kind = kind;
	r->fd = fd;
	r->fd_var = var;
	r->line = t->line;
	sh_p_take(p);
	if (op == TK_DLESS || op == TK_DLESS_DASH) {
		r->strip_tabs = op == TK_DLESS_DASH;
		sh_p_read_delim(p, r);
		return r;
	}
	r->here_string = op == TK_TLESS;
	t = sh_p_peek(p, false);
	if (t->kind != TK_WORD)
		sh_p_fail(p, BOX_EPARSE, t->line, "expected filename after redirection");
	r->word = t->word;
	sh_p_take(p);
	return r;
}

static void redirections(struct sh_parser *p, struct sh_node *n)
{
	struct sh_redir **tail = &n->redirs, *r;

	while (*tail != NULL)
		tail = &(*tail)->next;
	while ((r = redirection(p)) != NULL) {
		*tail = r;
		tail = &r->next;
	}
}

/* --- simple commands and functions --- */

static bool declares(sv name)
{
	static const char *const names[] = { "declare", "typeset", "local", "export", "readonly",
		NULL };

	for (size_t i = 0; name.p != NULL && names[i] != NULL; i++) {
		if (sv_eq(name, sv_c(names[i])))
			return true;
	}
	return false;
}

static struct sh_node *function_body(struct sh_parser *p, const char *name, int line)
{
	struct sh_node *f = sh_p_node(p, SH_N_FUNC, line);
	struct sh_node *b;

	sh_p_newlines(p);
	f->name = name;
	b = sh_p_command(p);
	if (b->kind == SH_N_SIMPLE || b->kind == SH_N_FUNC)
		sh_p_fail(p, BOX_EPARSE, line, "expected a compound command as body of '%s'", name);
	f->a = b;
	return f;
}

static struct sh_node *simple(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, true);
	struct sh_node *n = sh_p_node(p, SH_N_SIMPLE, t->line);
	struct sh_assign **as = &n->assigns;
	struct sh_redir **rd = &n->redirs, *r;
	struct sh_word **wt = &n->words;
	bool chain = true, decl = false, prefix = false;

	for (;;) {
		bool first = n->words == NULL;

		t = sh_p_peek(p, first || decl);
		if (t->kind == TK_WORD) {
			if (!first)
				chain = sh_p_alias_chain(p);
			if ((first || chain) && t->assign == NULL && sh_p_alias(p))
				continue;
			t = &p->tok;
			if (first && t->assign != NULL) {
				*as = t->assign;
				as = &t->assign->next;
			} else {
				if (first || prefix) {
					decl = declares(t->lit);
					prefix =
					    t->lit.p != NULL && (sv_eq(t->lit, SV("command")) ||
					                            sv_eq(t->lit, SV("builtin")));
				}
				*wt = t->word;
				wt = &t->word->next;
			}
			sh_p_take(p);
			continue;
		}
		if (t->kind == TK_LPAREN && n->words != NULL && n->words->next == NULL &&
		    n->assigns == NULL && n->redirs == NULL) {
			struct sh_part *q = n->words->parts;
			const char *name;

			if (q == NULL || q->kind != SH_PT_LIT || q->next != NULL)
				sh_p_unexpected(p, t);
			name = sh_p_dup(p, q->text);
			sh_p_take(p);
			t = sh_p_peek(p, true);
			if (t->kind != TK_RPAREN)
				sh_p_unexpected(p, t);
			sh_p_take(p);
			return function_body(p, name, n->line);
		}
		r = redirection(p);
		if (r == NULL)
			break;
		*rd = r;
		rd = &r->next;
	}
	if (n->words == NULL && n->assigns == NULL && n->redirs == NULL)
		sh_p_unexpected(p, sh_p_peek(p, true));
	return n;
}

/* --- compound commands --- */

static struct sh_node *if_command(struct sh_parser *p)
{
	struct sh_node *n = sh_p_node(p, SH_N_IF, p->tok.line);

	sh_p_take(p); /* if or elif */
	n->a = body(p);
	sh_p_expect(p, "then");
	n->b = body(p);
	if (sh_p_is(p, "elif")) {
		sh_p_enter(p);
		n->c = if_command(p);
		sh_p_leave(p);
		return n;
	}
	if (sh_p_is(p, "else")) {
		sh_p_take(p);
		n->c = body(p);
	}
	sh_p_expect(p, "fi");
	return n;
}

static struct sh_node *while_command(struct sh_parser *p, enum sh_node_kind kind)
{
	struct sh_node *n = sh_p_node(p, kind, p->tok.line);

	sh_p_take(p);
	n->a = body(p);
	sh_p_expect(p, "do");
	n->b = body(p);
	sh_p_expect(p, "done");
	return n;
}

/* `do list done`, or bash's `{ list }`. */
static struct sh_node *do_group(struct sh_parser *p)
{
	struct sh_node *n;

	if (sh_p_is(p, "{")) {
		sh_p_take(p);
		n = body(p);
		sh_p_expect(p, "}");
		return n;
	}
	sh_p_expect(p, "do");
	n = body(p);
	sh_p_expect(p, "done");
	return n;
}

static struct sh_word *arith_word(struct sh_parser *p, enum sh_wmode mode)
{
	int line = p->line;
	struct sh_part *part = P_NEW(p, struct sh_part);

	part->kind = SH_PT_ARITH;
	part->sub = sh_p_parts(p, mode);
	return sh_p_word_of(p, part, line);
}

static void must(struct sh_parser *p, int c)
{
	if (sh_p_look(p, 0) != c)
		sh_p_fail(p, BOX_EPARSE, p->line, "expected '%s'", c == ';' ? ";" : "))");
	(void)sh_p_next(p);
}

static struct sh_node *arith_for(struct sh_parser *p, int line)
{
	struct sh_node *n = sh_p_node(p, SH_N_ARITH_FOR, line);

	/* The cursor is behind "((". */
	n->e1 = arith_word(p, W_ARITH_SEMI);
	must(p, ';');
	n->e2 = arith_word(p, W_ARITH_SEMI);
	must(p, ';');
	n->e3 = arith_word(p, W_ARITH_SEMI);
	must(p, ')');
	must(p, ')');
	if (sh_p_peek(p, true)->kind == TK_SEMI)
		sh_p_take(p);
	sh_p_newlines(p);
	n->a = do_group(p);
	return n;
}

static struct sh_node *for_command(struct sh_parser *p, enum sh_node_kind kind)
{
	int line = p->tok.line;
	struct sh_node *n;
	struct token *t;
	struct sh_word **tail;

	sh_p_take(p);
	sh_p_skip_blanks(p);
	if (kind == SH_N_FOR && sh_p_look(p, 0) == '(' && sh_p_look(p, 1) == '(') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		return arith_for(p, line);
	}
	n = sh_p_node(p, kind, line);
	t = sh_p_peek(p, false);
	if (t->kind != TK_WORD || t->lit.p == NULL || !sh_is_name(t->lit))
		sh_p_unexpected(p, t);
	n->name = sh_p_dup(p, t->lit);
	sh_p_take(p);
	if (sh_p_peek(p, true)->kind == TK_SEMI) {
		sh_p_take(p);
		sh_p_newlines(p);
		n->a = do_group(p);
		return n;
	}
	sh_p_newlines(p);
	if (sh_p_is(p, "in")) {
		n->has_in = true;
		sh_p_take(p);
		for (tail = &n->word; (t = sh_p_peek(p, false))->kind == TK_WORD; sh_p_take(p)) {
			*tail = t->word;
			tail = &t->word->next;
		}
		if (t->kind != TK_SEMI && t->kind != TK_NEWLINE)
			sh_p_unexpected(p, t);
		sh_p_take(p);
		sh_p_newlines(p);
	}
	n->a = do_group(p);
	return n;
}

static struct sh_case_item *case_item(struct sh_parser *p)
{
	struct sh_case_item *it = P_NEW(p, struct sh_case_item);
	struct sh_word **tail = &it->patterns;
	struct token *t = sh_p_peek(p, false);

	if (t->kind == TK_LPAREN) {
		sh_p_take(p);
		t = sh_p_peek(p, false);
	}
	for (;;) {
		if (t->kind != TK_WORD)
			sh_p_unexpected(p, t);
		*tail = t->word;
		tail = &t->word->next;
		sh_p_take(p);
		t = sh_p_peek(p, false);
		if (t->kind == TK_RPAREN)
			break;
		if (t->kind != TK_PIPE)
			sh_p_unexpected(p, t);
		sh_p_take(p);
		t = sh_p_peek(p, false);
	}
	sh_p_take(p);
	it->body = sh_p_list(p, false);
	t = sh_p_peek(p, true);
	it->end = t->kind == TK_DSEMI ? ';' : t->kind == TK_SEMI_AMP ? '&' : '+';
	if (t->kind == TK_DSEMI || t->kind == TK_SEMI_AMP || t->kind == TK_DSEMI_AMP)
		sh_p_take(p);
	else if (!sh_p_is(p, "esac"))
		sh_p_unexpected(p, t);
	else
		it->end = ';';
	sh_p_newlines(p);
	return it;
}

static struct sh_node *case_command(struct sh_parser *p)
{
	struct sh_node *n = sh_p_node(p, SH_N_CASE, p->tok.line);
	struct sh_case_item **tail = &n->items;
	struct token *t;

	sh_p_take(p);
	t = sh_p_peek(p, false);
	if (t->kind != TK_WORD)
		sh_p_unexpected(p, t);
	n->word = t->word;
	sh_p_take(p);
	sh_p_newlines(p);
	sh_p_expect(p, "in");
	/* The word behind `in` must not be looked up as an alias, but may be an assignment-like
	 * pattern: it is read with assign_ok = false. */
	while (sh_p_peek(p, false)->kind == TK_NEWLINE)
		sh_p_take(p);
	while (!sh_p_is(p, "esac")) {
		if (p->tok.kind == TK_WORD && p->tok.assign != NULL) {
			p->pos = p->tok.start;
			sh_p_take(p);
		}
		*tail = case_item(p);
		tail = &(*tail)->next;
	}
	sh_p_take(p);
	return n;
}

/* ((: an arithmetic command, or NULL with the cursor put back behind the first parenthesis. */
static struct sh_node *arith_command(struct sh_parser *p, int line)
{
	size_t pos = p->pos;
	int at_line = p->line;
	struct sh_node *n;
	struct sh_word *e;

	(void)sh_p_next(p);
	e = arith_word(p, W_ARITH);
	if (sh_p_look(p, 0) == ')' && sh_p_look(p, 1) == ')') {
		(void)sh_p_next(p);
		(void)sh_p_next(p);
		n = sh_p_node(p, SH_N_ARITH, line);
		n->e1 = e;
		return n;
	}
	p->pos = pos;
	p->line = at_line;
	return NULL;
}

static struct sh_node *paren_command(struct sh_parser *p)
{
	int line = p->tok.line;
	struct sh_node *n;

	if (sh_p_raw(p, 0) == '(') {
		p->have_tok = false;
		n = arith_command(p, line);
		if (n != NULL)
			return n;
	}
	sh_p_take(p);
	n = sh_p_node(p, SH_N_SUBSHELL, line);
	n->a = body(p);
	if (sh_p_peek(p, true)->kind != TK_RPAREN) {
		if (p->tok.kind == TK_EOF)
			sh_p_fail(p, BOX_EPARSE, line, "Opened parentheses without closing");
		sh_p_unexpected(p, &p->tok);
	}
	sh_p_take(p);
	return n;
}

static struct sh_node *function_keyword(struct sh_parser *p)
{
	int line = p->tok.line;
	struct token *t;
	const char *name;

	sh_p_take(p);
	t = sh_p_peek(p, false);
	if (t->kind != TK_WORD || t->lit.p == NULL)
		sh_p_unexpected(p, t);
	name = sh_p_dup(p, t->lit);
	sh_p_take(p);
	if (sh_p_peek(p, true)->kind == TK_LPAREN && sh_p_look(p, 0) == ')') {
		sh_p_take(p);
		(void)sh_p_next(p);
	}
	return function_body(p, name, line);
}

/* --- choice --- */

static struct sh_node *compound(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, true);
	struct sh_node *n;

	if (t->kind == TK_LPAREN)
		return paren_command(p);
	if (t->kind != TK_WORD || t->lit.p == NULL)
		return NULL;
	if (sh_p_is(p, "{")) {
		n = sh_p_node(p, SH_N_GROUP, t->line);
		sh_p_take(p);
		n->a = body(p);
		sh_p_expect(p, "}");
		return n;
	}
	if (sh_p_is(p, "if"))
		return if_command(p);
	if (sh_p_is(p, "while"))
		return while_command(p, SH_N_WHILE);
	if (sh_p_is(p, "until"))
		return while_command(p, SH_N_UNTIL);
	if (sh_p_is(p, "for"))
		return for_command(p, SH_N_FOR);
	if (sh_p_is(p, "select"))
		return for_command(p, SH_N_SELECT);
	if (sh_p_is(p, "case"))
		return case_command(p);
	if (sh_p_is(p, "[["))
		return sh_p_cond_command(p);
	if (sh_p_is(p, "function"))
		return function_keyword(p);
	return NULL;
}

struct sh_node *sh_p_command(struct sh_parser *p)
{
	static const char *const never[] = { "then", "else", "elif", "fi", "do", "done", "esac",
		"}", NULL };
	struct sh_node *n;

	sh_p_enter(p);
	while (sh_p_peek(p, true)->kind == TK_WORD && p->tok.assign == NULL && sh_p_alias(p))
		;
	for (size_t i = 0; p->tok.kind == TK_WORD && never[i] != NULL; i++) {
		if (sh_p_is(p, never[i]))
			sh_p_unexpected(p, &p->tok);
	}
	n = compound(p);
	if (n != NULL) {
		if (n->kind != SH_N_FUNC)
			redirections(p, n);
	} else {
		n = simple(p);
	}
	sh_p_leave(p);
	return n;
}
