/* The source form of commands, for `declare -f`, `type` and `jobs`. Laid out as bash does it, so
 * that text produced here reads back as the same command. */
#include <string.h>

#include "shell/escape.h"
#include "shell/shell.h"
#include "base/ban.h"

struct up {
	struct buf *out;
	int indent;
	const struct sh_redir
	    *here[32]; /* here-documents whose bodies come at the end of the line */
	size_t nhere;
};

static void node(struct up *u, const struct sh_node *n);
static void word(struct up *u, const struct sh_word *w);
static void parts(struct up *u, const struct sh_part *p, bool dq);

static void indent(struct up *u)
{
	for (int i = 0; i < u->indent; i++)
		buf_put_c(u->out, "    ");
}

/* Text that stood for itself, as it must be written to do so again. */
static void quoted_text(struct up *u, sv t, bool dq)
{
	if (dq) {
		for (size_t i = 0; i < t.n; i++) {
			if (strchr("\"$`\\", t.p[i]) != NULL)
				buf_put_byte(u->out, '\\');
			buf_put_byte(u->out, (uint8_t)t.p[i]);
		}
		return;
	}
	sh_quote(u->out, t, true);
}

static void op_text(struct up *u, const struct sh_param *q)
{
	static const struct {
		enum sh_param_op op;
		const char *text;
	} t[] = { { SH_OP_MINUS, "-" }, { SH_OP_ASSIGN, "=" }, { SH_OP_ERROR, "?" },
		{ SH_OP_PLUS, "+" }, { SH_OP_PREFIX, "#" }, { SH_OP_PREFIX_LONG, "##" },
		{ SH_OP_SUFFIX, "%" }, { SH_OP_SUFFIX_LONG, "%%" }, { SH_OP_REPLACE, "/" },
		{ SH_OP_REPLACE_ALL, "//" }, { SH_OP_REPLACE_PREFIX, "/#" },
		{ SH_OP_REPLACE_SUFFIX, "/%" }, { SH_OP_SLICE, ":" }, { SH_OP_UPPER, "^" },
		{ SH_OP_UPPER_ALL, "^^" }, { SH_OP_LOWER, "," }, { SH_OP_LOWER_ALL, ",," },
		{ SH_OP_TOGGLE, "~" }, { SH_OP_TOGGLE_ALL, "~~" } };

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		if (t[i].op == q->op)
			buf_put_c(u->out, t[i].text);
	}
}

static void param(struct up *u, const struct sh_param *q)
{
	/* The text between the braces was kept as it was written. */
	if (q->text == q->name) {
		buf_putf(u->out, "$%s", q->name);
		return;
	}
	if (q->text != NULL) {
		buf_putf(u->out, "${%s}", q->text);
		return;
	}
	buf_putf(u->out, "${%s", q->name);
	op_text(u, q);
	buf_put_byte(u->out, '}');
}

static void inline_node(struct up *u, const struct sh_node *n)
{
	struct up v = { .out = u->out, .indent = u->indent };

	if (n != NULL)
		node(&v, n);
	for (size_t i = 0; i < v.nhere; i++) {
		buf_put_byte(u->out, '\n');
		parts(&v, v.here[i]->word->parts, true);
		buf_put_c(u->out, v.here[i]->delim);
		if (i + 1 == v.nhere)
			buf_put_byte(u->out, '\n');
	}
}

static void enclosed(struct up *u, const char *open, const struct sh_part *p, const char *close)
{
	buf_put_c(u->out, open);
	parts(u, p, true);
	buf_put_c(u->out, close);
}

static void substitution(struct up *u, const char *open, const struct sh_node *n)
{
	buf_put_c(u->out, open);
	inline_node(u, n);
	buf_put_byte(u->out, ')');
}

static void parts(struct up *u, const struct sh_part *p, bool dq)
{
	for (; p != NULL; p = p->next) {
		switch (p->kind) {
		case SH_PT_LIT:
			buf_put_sv(u->out, p->text);
			break;
		case SH_PT_QUOTED:
			quoted_text(u, p->text, dq);
			break;
		case SH_PT_DQUOTE:
			enclosed(u, "\"", p->sub, "\"");
			break;
		case SH_PT_PARAM:
			param(u, p->param);
			break;
		case SH_PT_CMD:
			substitution(u, "$(", p->cmd);
			break;
		case SH_PT_ARITH:
			enclosed(u, "$((", p->sub, "))");
			break;
		case SH_PT_PROC:
			substitution(u, p->out ? ">(" : "<(", p->cmd);
			break;
		}
	}
}

static void word(struct up *u, const struct sh_word *w)
{
	if (w == NULL)
		return;
	if (w->text != NULL)
		buf_put_c(u->out, w->text);
	else
		parts(u, w->parts, false);
}

static void words(struct up *u, const struct sh_word *w, const char *sep)
{
	for (bool first = true; w != NULL; w = w->next, first = false) {
		if (!first)
			buf_put_c(u->out, sep);
		word(u, w);
	}
}

static void assign(struct up *u, const struct sh_assign *as)
{
	buf_put_c(u->out, as->name);
	if (as->subscript != NULL) {
		buf_put_byte(u->out, '[');
		word(u, as->subscript);
		buf_put_byte(u->out, ']');
	}
	buf_put_c(u->out, as->append ? "+=" : "=");
	if (!as->is_array) {
		word(u, as->value);
		return;
	}
	buf_put_byte(u->out, '(');
	for (const struct sh_assign *e = as->elems; e != NULL; e = e->next) {
		if (e->subscript != NULL) {
			buf_put_byte(u->out, '[');
			word(u, e->subscript);
			buf_put_c(u->out, "]=");
		}
		word(u, e->value);
		if (e->next != NULL)
			buf_put_byte(u->out, ' ');
	}
	buf_put_byte(u->out, ')');
}

static void redirs(struct up *u, const struct sh_redir *r)
{
	static const char *const ops[] = { [SH_RD_IN] = "<",
		[SH_RD_OUT] = ">",
		[SH_RD_CLOBBER] = ">|",
		[SH_RD_APPEND] = ">>",
		[SH_RD_RDWR] = "<>",
		[SH_RD_DUP_IN] = "<&",
		[SH_RD_DUP_OUT] = ">&",
		[SH_RD_HERE] = "<<",
		[SH_RD_BOTH] = "&>",
		[SH_RD_BOTH_APPEND] = "&>>" };

	for (; r != NULL; r = r->next) {
		buf_put_byte(u->out, ' ');
		if (r->fd_var != NULL)
			buf_putf(u->out, "{%s}", r->fd_var);
		else if (r->fd >= 0)
			buf_putf(u->out, "%d", r->fd);
		if (r->here_string) {
			buf_put_c(u->out, "<<< ");
			word(u, r->word);
		} else if (r->kind == SH_RD_HERE) {
			buf_putf(u->out, r->here_quoted ? "<<'%s'" : "<<%s", r->delim);
			if (u->nhere < sizeof(u->here) / sizeof(u->here[0]))
				u->here[u->nhere++] = r;
		} else {
			buf_put_c(u->out, ops[r->kind]);
			if (r->kind != SH_RD_DUP_IN && r->kind != SH_RD_DUP_OUT)
				buf_put_byte(u->out, ' ');
			word(u, r->word);
		}
	}
}

/* The end of a command's line: waiting here-documents follow it. */
static void end_line(struct up *u, const char *sep)
{
	if (u->nhere == 0) {
		buf_put_c(u->out, sep);
		buf_put_byte(u->out, '\n');
		return;
	}
	buf_put_byte(u->out, '\n');
	for (size_t i = 0; i < u->nhere; i++) {
		const struct sh_redir *r = u->here[i];

		if (r->here_quoted)
			buf_put_sv(u->out, r->word->parts != NULL ? r->word->parts->text : SV(""));
		else
			parts(u, r->word->parts, true);
		buf_putf(u->out, "%s\n", r->delim);
	}
	u->nhere = 0;
}

/* A list, one command a line. */
static void block(struct up *u, const struct sh_node *n)
{
	u->indent++;
	if (n != NULL && n->kind == SH_N_SEQ) {
		for (const struct sh_node *k = n->kids; k != NULL; k = k->next) {
			indent(u);
			node(u, k);
			end_line(u, k->next != NULL && k->kind != SH_N_BG ? ";" : "");
		}
	} else if (n != NULL) {
		indent(u);
		node(u, n);
		end_line(u, "");
	}
	u->indent--;
}

static void if_node(struct up *u, const struct sh_node *n)
{
	buf_put_c(u->out, "if ");
	node(u, n->a);
	buf_put_c(u->out, "; then\n");
	block(u, n->b);
	if (n->c != NULL) {
		indent(u);
		buf_put_c(u->out, "else\n");
		block(u, n->c);
	}
	indent(u);
	buf_put_c(u->out, "fi");
}

/* A block between its opening and its closing word; bash puts that of `for` on a line of its
 * own. */
static void framed(struct up *u, const char *open, const struct sh_node *n, const char *close)
{
	buf_put_c(u->out, open);
	block(u, n);
	indent(u);
	buf_put_c(u->out, close);
}

static void do_line(struct up *u, const struct sh_node *n)
{
	indent(u);
	framed(u, "do\n", n, "done");
}

static void case_node(struct up *u, const struct sh_node *n)
{
	buf_put_c(u->out, "case ");
	word(u, n->word);
	buf_put_c(u->out, " in \n");
	u->indent++;
	for (const struct sh_case_item *it = n->items; it != NULL; it = it->next) {
		indent(u);
		words(u, it->patterns, " | ");
		buf_put_c(u->out, ")\n");
		block(u, it->body);
		indent(u);
		buf_put_c(u->out, it->end == ';' ? ";;\n" : it->end == '&' ? ";&\n" : ";;&\n");
	}
	u->indent--;
	indent(u);
	buf_put_c(u->out, "esac");
}

static void cond(struct up *u, const struct sh_cond *c)
{
	switch (c->kind) {
	case SH_C_AND:
	case SH_C_OR:
		cond(u, c->a);
		buf_put_c(u->out, c->kind == SH_C_AND ? " && " : " || ");
		cond(u, c->b);
		break;
	case SH_C_NOT:
		buf_put_c(u->out, "! ");
		cond(u, c->a);
		break;
	case SH_C_UNARY:
		buf_putf(u->out, "%s ", c->op);
		word(u, c->right);
		break;
	case SH_C_BINARY:
		word(u, c->left);
		buf_putf(u->out, " %s ", c->op);
		word(u, c->right);
		break;
	case SH_C_WORD:
		buf_put_c(u->out, "-n ");
		word(u, c->right);
		break;
	}
}

static void arith_text(struct up *u, const struct sh_word *w)
{
	if (w != NULL && w->parts != NULL)
		parts(u, w->parts->sub, true);
}

static void simple(struct up *u, const struct sh_node *n)
{
	bool any = false;

	for (const struct sh_assign *as = n->assigns; as != NULL; as = as->next) {
		if (any)
			buf_put_byte(u->out, ' ');
		assign(u, as);
		any = true;
	}
	if (any && n->words != NULL)
		buf_put_byte(u->out, ' ');
	words(u, n->words, " ");
}

static void node(struct up *u, const struct sh_node *n)
{
	switch (n->kind) {
	case SH_N_SIMPLE:
		simple(u, n);
		break;
	case SH_N_PIPE:
		for (const struct sh_node *k = n->kids; k != NULL; k = k->next) {
			node(u, k);
			if (k->next != NULL)
				buf_put_c(u->out, k->pipe_both ? " |& " : " | ");
		}
		break;
	case SH_N_NOT:
		buf_put_c(u->out, "! ");
		node(u, n->a);
		break;
	case SH_N_AND:
	case SH_N_OR:
		node(u, n->a);
		buf_put_c(u->out, n->kind == SH_N_AND ? " && " : " || ");
		node(u, n->b);
		break;
	case SH_N_SEQ:
		for (const struct sh_node *k = n->kids; k != NULL; k = k->next) {
			node(u, k);
			if (k->next != NULL)
				buf_put_c(u->out, k->kind == SH_N_BG ? " " : "; ");
		}
		break;
	case SH_N_BG:
		node(u, n->a);
		buf_put_c(u->out, " &");
		break;
	case SH_N_GROUP:
		framed(u, "{ \n", n->a, "}");
		break;
	case SH_N_SUBSHELL:
		buf_put_c(u->out, "( ");
		node(u, n->a);
		buf_put_c(u->out, " )");
		break;
	case SH_N_IF:
		if_node(u, n);
		break;
	case SH_N_WHILE:
	case SH_N_UNTIL:
		buf_put_c(u->out, n->kind == SH_N_WHILE ? "while " : "until ");
		node(u, n->a);
		framed(u, "; do\n", n->b, "done");
		break;
	case SH_N_FOR:
	case SH_N_SELECT:
		buf_putf(u->out, "%s %s", n->kind == SH_N_FOR ? "for" : "select", n->name);
		if (n->has_in) {
			buf_put_c(u->out, " in ");
			words(u, n->word, " ");
		}
		buf_put_c(u->out, ";\n");
		do_line(u, n->a);
		break;
	case SH_N_ARITH_FOR:
		buf_put_c(u->out, "for ((");
		arith_text(u, n->e1);
		buf_put_c(u->out, "; ");
		arith_text(u, n->e2);
		buf_put_c(u->out, "; ");
		arith_text(u, n->e3);
		buf_put_c(u->out, "))\n");
		do_line(u, n->a);
		break;
	case SH_N_CASE:
		case_node(u, n);
		break;
	case SH_N_FUNC:
		buf_putf(u->out, "function %s () \n", n->name);
		indent(u);
		node(u, n->a);
		break;
	case SH_N_COND:
		buf_put_c(u->out, "[[ ");
		cond(u, n->cond);
		buf_put_c(u->out, " ]]");
		break;
	case SH_N_ARITH:
		buf_put_c(u->out, "((");
		arith_text(u, n->e1);
		buf_put_c(u->out, "))");
		break;
	case SH_N_TIME:
		buf_put_c(u->out, n->posix_time ? "time -p " : "time ");
		if (n->a != NULL)
			node(u, n->a);
		break;
	}
	redirs(u, n->redirs);
}

void sh_unparse(struct buf *out, const struct sh_node *n)
{
	struct up u = { .out = out };

	node(&u, n);
}

void sh_func_print(struct buf *out, const struct sh_func *f)
{
	struct up u = { .out = out };

	if (f == NULL)
		return;
	buf_putf(out, "%s () \n", f->name);
	if (f->body->kind == SH_N_GROUP) {
		node(&u, f->body);
	} else {
		buf_put_c(out, "{ \n");
		block(&u, f->body);
		buf_put_c(out, "}");
	}
	end_line(&u, "");
}
