/* Characters and tokens of the shell language (POSIX 2.3), aliases (2.3.1) and the reading of
 * here-documents (2.7.4). Input is hostile program text. */
#include <stdlib.h>
#include <string.h>

#include "shell/parse_int.h"
#include "base/ban.h"

/* --- characters --- */

static bool fill(struct sh_parser *p)
{
	size_t n = p->text.n;
	int r;

	if (p->at_end)
		return false;
	r = p->env.more != NULL ? p->env.more(p->env.arg, &p->text) : 0;
	if (r <= 0 || p->text.n == n)
		p->at_end = true;
	if (r < 0)
		sh_p_fail(p, BOX_ESYS, 0, "the program text cannot be read");
	if (!buf_ok(&p->text))
		sh_p_fail(p, BOX_ELIMIT, 0, "input too large");
	for (size_t i = 0; i < p->naliases; i++)
		p->alias[i].tail += p->text.n - n;
	return p->text.n > n;
}

int sh_p_raw(struct sh_parser *p, size_t ahead)
{
	while (p->pos + ahead >= p->text.n) {
		if (!fill(p))
			return -1;
	}
	return p->text.p[p->pos + ahead];
}

int sh_p_look(struct sh_parser *p, size_t ahead)
{
	size_t at = 0;

	for (;;) {
		int c = sh_p_raw(p, at);

		if (c == '\\' && sh_p_raw(p, at + 1) == '\n') {
			if (at == 0) {
				p->pos += 2;
				p->line++;
			} else {
				at += 2;
			}
			continue;
		}
		if (ahead == 0 || c < 0)
			return c;
		ahead--;
		at++;
	}
}

int sh_p_next_raw(struct sh_parser *p)
{
	int c = sh_p_raw(p, 0);

	if (c >= 0)
		p->pos++;
	if (c == '\n')
		p->line++;
	return c;
}

int sh_p_next(struct sh_parser *p)
{
	(void)sh_p_look(p, 0);
	return sh_p_next_raw(p);
}

bool sh_p_meta(int c)
{
	return c < 0 || c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '(' ||
	       c == ')' || c == '<' || c == '>' || c == '|';
}

void sh_p_skip_blanks(struct sh_parser *p)
{
	for (;;) {
		int c = sh_p_look(p, 0);

		if (c == ' ' || c == '\t')
			(void)sh_p_next(p);
		else
			return;
	}
}

static void skip_comment(struct sh_parser *p)
{
	int c;

	while ((c = sh_p_raw(p, 0)) >= 0 && c != '\n')
		p->pos++;
}

/* --- here-documents --- */

/* One line without its newline, appended to p->scratch. false at the end of the text with nothing
 * read. */
static bool here_line(struct sh_parser *p, bool join)
{
	bool any = false;
	int c;

	while ((c = sh_p_next_raw(p)) >= 0) {
		any = true;
		if (c == '\n')
			return true;
		if (c == '\\' && join) {
			int d = sh_p_raw(p, 0);

			if (d == '\n') {
				(void)sh_p_next_raw(p);
				continue;
			}
			buf_put_byte(&p->scratch, '\\');
			if (d < 0)
				return true;
			c = sh_p_next_raw(p);
		}
		buf_put_byte(&p->scratch, (uint8_t)c);
	}
	return any;
}

static void read_body(struct sh_parser *p, struct sh_redir *r)
{
	size_t mark = p->scratch.n, line_at;
	size_t dn = strlen(r->delim);
	int line = p->line;
	sv body;

	for (;;) {
		line_at = p->scratch.n;
		if (r->strip_tabs) {
			while (sh_p_raw(p, 0) == '\t')
				p->pos++;
		}
		if (!here_line(p, !r->here_quoted))
			break;
		if (p->scratch.n - line_at == dn &&
		    (dn == 0 || memcmp(p->scratch.p + line_at, r->delim, dn) == 0)) {
			p->scratch.n = line_at;
			break;
		}
		buf_put_byte(&p->scratch, '\n');
		if (!buf_ok(&p->scratch))
			sh_p_fail(p, BOX_ELIMIT, line, "here-document too large");
	}
	body = sv_c(sh_p_dup(p, sv_sub(buf_sv(&p->scratch), mark, p->scratch.n)));
	p->scratch.n = mark;
	if (r->here_quoted) {
		struct sh_part *part = P_NEW(p, struct sh_part);

		part->kind = SH_PT_QUOTED;
		part->text = body;
		r->word = sh_p_word_of(p, part, line);
	} else {
		r->word = sh_p_word_of(p, sh_p_sub_parts(p, body, W_HERE, line), line);
	}
}

void sh_p_read_bodies(struct sh_parser *p)
{
	while (p->here != NULL) {
		struct sh_redir *r = p->here;

		p->here = r->here_next;
		read_body(p, r);
	}
}

/* The delimiter word of << at the cursor: quote removal only (POSIX 2.7.4). Queues r for
 * sh_p_read_bodies. */
void sh_p_read_delim(struct sh_parser *p, struct sh_redir *r)
{
	size_t mark = p->scratch.n;
	struct sh_redir **tail;
	int c, line = p->line;
	bool any = false;

	sh_p_skip_blanks(p);
	while (!sh_p_meta(c = sh_p_look(p, 0))) {
		any = true;
		(void)sh_p_next(p);
		if (c == '$' && (sh_p_raw(p, 0) == '\'' || sh_p_raw(p, 0) == '"'))
			continue;
		if (c == '\\') {
			r->here_quoted = true;
			c = sh_p_next_raw(p);
			if (c >= 0)
				buf_put_byte(&p->scratch, (uint8_t)c);
		} else if (c == '\'' || c == '"') {
			int d;

			r->here_quoted = true;
			while ((d = sh_p_next_raw(p)) != c) {
				if (d < 0)
					sh_p_fail(p, BOX_EPARSE, line, "unterminated %s quote",
					    c == '"' ? "double" : "single");
				if (c == '"' && d == '\\' &&
				    (sh_p_raw(p, 0) == '"' || sh_p_raw(p, 0) == '\\' ||
				        sh_p_raw(p, 0) == '$' || sh_p_raw(p, 0) == '`'))
					d = sh_p_next_raw(p);
				buf_put_byte(&p->scratch, (uint8_t)d);
			}
		} else {
			buf_put_byte(&p->scratch, (uint8_t)c);
		}
	}
	if (!any)
		sh_p_fail(p, BOX_EPARSE, line, "expected a delimiter after '<<'");
	r->delim = sh_p_dup(p, sv_sub(buf_sv(&p->scratch), mark, p->scratch.n));
	p->scratch.n = mark;
	for (tail = &p->here; *tail != NULL; tail = &(*tail)->here_next)
		;
	*tail = r;
}

/* --- tokens --- */

static enum sh_tok op_less(struct sh_parser *p)
{
	int c = sh_p_look(p, 0);

	if (c == '<') {
		(void)sh_p_next(p);
		if (sh_p_look(p, 0) == '-') {
			(void)sh_p_next(p);
			return TK_DLESS_DASH;
		}
		if (sh_p_look(p, 0) == '<') {
			(void)sh_p_next(p);
			return TK_TLESS;
		}
		return TK_DLESS;
	}
	if (c == '&' || c == '>') {
		(void)sh_p_next(p);
		return c == '&' ? TK_LESS_AMP : TK_LESS_GREAT;
	}
	return TK_LESS;
}

static enum sh_tok op_great(struct sh_parser *p)
{
	int c = sh_p_look(p, 0);

	if (c != '>' && c != '&' && c != '|')
		return TK_GREAT;
	(void)sh_p_next(p);
	return c == '>' ? TK_DGREAT : c == '&' ? TK_GREAT_AMP : TK_CLOBBER;
}

static enum sh_tok op_semi(struct sh_parser *p)
{
	if (sh_p_look(p, 0) == ';') {
		(void)sh_p_next(p);
		if (sh_p_look(p, 0) == '&') {
			(void)sh_p_next(p);
			return TK_DSEMI_AMP;
		}
		return TK_DSEMI;
	}
	if (sh_p_look(p, 0) == '&') {
		(void)sh_p_next(p);
		return TK_SEMI_AMP;
	}
	return TK_SEMI;
}

static enum sh_tok op_amp(struct sh_parser *p)
{
	if (sh_p_look(p, 0) == '&') {
		(void)sh_p_next(p);
		return TK_AND;
	}
	if (sh_p_look(p, 0) == '>') {
		(void)sh_p_next(p);
		if (sh_p_look(p, 0) == '>') {
			(void)sh_p_next(p);
			return TK_AMP_DGREAT;
		}
		return TK_AMP_GREAT;
	}
	return TK_AMP;
}

static enum sh_tok op_pipe(struct sh_parser *p)
{
	int c = sh_p_look(p, 0);

	if (c != '|' && c != '&')
		return TK_PIPE;
	(void)sh_p_next(p);
	return c == '|' ? TK_OR : TK_PIPE_AMP;
}

/* {name} or digits in front of a redirection operator. */
static bool io_number(struct sh_parser *p, struct token *t)
{
	size_t n = 0;
	int c;

	if (sh_p_look(p, 0) == '{') {
		while ((c = sh_p_raw(p, n + 1)) == '_' || (c >= '0' && c <= '9') ||
		       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
			n++;
		if (n == 0 || c != '}' || (sh_p_raw(p, n + 2) != '<' && sh_p_raw(p, n + 2) != '>'))
			return false;
		t->io_var = sh_p_dup(p, (sv){ (char *)p->text.p + p->pos + 1, n });
		if (!sh_is_name(sv_c(t->io_var)))
			return false;
		p->pos += n + 2;
		t->io_fd = -1;
		return true;
	}
	t->io_fd = 0;
	while ((c = sh_p_look(p, n)) >= '0' && c <= '9') {
		if (n > 7)
			return false;
		t->io_fd = t->io_fd * 10 + (c - '0');
		n++;
	}
	if (n == 0 || (c != '<' && c != '>'))
		return false;
	while (n-- > 0)
		(void)sh_p_next(p);
	return true;
}

static void lex(struct sh_parser *p, struct token *t, bool assign_ok)
{
	int c;

	*t = (struct token){ .io_fd = -1 };
	sh_p_skip_blanks(p);
	if (sh_p_look(p, 0) == '#')
		skip_comment(p);
	t->start = p->pos;
	t->line = p->line;
	c = sh_p_look(p, 0);
	t->start = p->pos;
	if (c < 0) {
		sh_p_read_bodies(p);
		t->kind = TK_EOF;
		return;
	}
	if ((c == '<' || c == '>') && sh_p_look(p, 1) == '(') {
		t->kind = TK_WORD;
		sh_p_lex_word(p, t, false);
		return;
	}
	if (!sh_p_meta(c)) {
		if (((c >= '0' && c <= '9') || c == '{') && io_number(p, t)) {
			t->kind = TK_IONUM;
			return;
		}
		t->kind = TK_WORD;
		sh_p_lex_word(p, t, assign_ok);
		return;
	}
	(void)sh_p_next(p);
	switch (c) {
	case '\n':
		t->kind = TK_NEWLINE;
		sh_p_read_bodies(p);
		break;
	case ';':
		t->kind = op_semi(p);
		break;
	case '&':
		t->kind = op_amp(p);
		break;
	case '|':
		t->kind = op_pipe(p);
		break;
	case '(':
		t->kind = TK_LPAREN;
		break;
	case ')':
		t->kind = TK_RPAREN;
		break;
	case '<':
		t->kind = op_less(p);
		break;
	default:
		t->kind = op_great(p);
		break;
	}
}

struct token *sh_p_peek(struct sh_parser *p, bool assign_ok)
{
	if (!p->have_tok) {
		lex(p, &p->tok, assign_ok);
		p->have_tok = true;
	}
	return &p->tok;
}

void sh_p_take(struct sh_parser *p)
{
	p->have_tok = false;
}

bool sh_p_is(struct sh_parser *p, const char *reserved)
{
	struct token *t = sh_p_peek(p, true);

	return t->kind == TK_WORD && t->lit.p != NULL && sv_eq(t->lit, sv_c(reserved));
}

/* --- aliases --- */

static void drop_alias(struct sh_parser *p, size_t i)
{
	free(p->alias[i].name);
	memmove(&p->alias[i], &p->alias[i + 1], (p->naliases - i - 1) * sizeof(p->alias[0]));
	p->naliases--;
}

/* Forget aliases whose text has been read. true: one of them ended in a blank, so this word is
 * looked up even though it is not in command position. */
static bool settle_aliases(struct sh_parser *p, size_t at)
{
	bool chain = false;

	for (size_t i = 0; i < p->naliases;) {
		if (p->text.n - at <= p->alias[i].tail) {
			chain = chain || p->alias[i].chain;
			drop_alias(p, i);
		} else {
			i++;
		}
	}
	return chain;
}

bool sh_p_alias(struct sh_parser *p)
{
	const char *value;
	size_t vn, tail;
	AUTO_BUF t = buf_with(p->text.max);
	char *name;

	(void)settle_aliases(p, p->tok.start);
	if (p->env.alias == NULL || p->tok.lit.p == NULL || p->naliases == SH_ALIAS_NEST)
		return false;
	for (size_t i = 0; i < p->naliases; i++) {
		if (sv_eq(sv_c(p->alias[i].name), p->tok.lit))
			return false;
	}
	name = sh_p_dup(p, p->tok.lit);
	value = p->env.alias(p->env.arg, name);
	if (value == NULL)
		return false;
	vn = strlen(value);
	tail = p->text.n - p->pos;
	/* The text from the word on becomes value + rest; what stands before is not needed again
	 * except for line counts. */
	buf_put(&t, p->text.p, p->tok.start);
	buf_put(&t, value, vn);
	buf_put(&t, p->text.p + p->pos, tail);
	if (!buf_ok(&t))
		sh_p_fail(p, BOX_ELIMIT, p->line, "input too large");
	name = strdup(name);
	if (name == NULL)
		sh_p_fail(p, BOX_ENOMEM, 0, "out of memory");
	buf_fini(&p->text);
	p->text = t;
	t = buf_with(0);
	p->pos = p->tok.start;
	p->alias[p->naliases++] = (struct sh_active_alias){
		.name = name,
		.tail = tail,
		.chain = vn != 0 && (value[vn - 1] == ' ' || value[vn - 1] == '\t'),
	};
	p->have_tok = false;
	return true;
}

bool sh_p_alias_chain(struct sh_parser *p)
{
	return settle_aliases(p, p->tok.start);
}
