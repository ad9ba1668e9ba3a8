/* parse_int: what the files of the parser share. Errors leave by longjmp to sh_parse_next (or
 * another entry function), inside the parser only; everything allocated is reachable from struct
 * sh_parser. */
#pragma once

#include <setjmp.h>

#include "shell/parse.h"

enum sh_tok {
	TK_EOF,
	TK_NEWLINE,
	TK_WORD,
	TK_IONUM, /* digits or {name} in front of < or > */
	TK_SEMI,
	TK_AMP,
	TK_PIPE,
	TK_LPAREN,
	TK_RPAREN,
	TK_DSEMI,     /* ;; */
	TK_SEMI_AMP,  /* ;& */
	TK_DSEMI_AMP, /* ;;& */
	TK_AND,
	TK_OR,
	TK_PIPE_AMP, /* |& */
	TK_LESS,
	TK_GREAT,
	TK_DLESS,
	TK_DLESS_DASH,
	TK_TLESS,
	TK_DGREAT,
	TK_LESS_AMP,
	TK_GREAT_AMP,
	TK_LESS_GREAT,
	TK_CLOBBER,
	TK_AMP_GREAT,
	TK_AMP_DGREAT
};

struct token {
	enum sh_tok kind;
	size_t start; /* offset in the text */
	int line;
	struct sh_word *word;     /* TK_WORD */
	struct sh_assign *assign; /* the word is an assignment */
	sv lit;                   /* the word is this unquoted text alone; else .p is NULL */
	int io_fd;                /* TK_IONUM */
	const char *io_var;
};

/* How a run of word parts ends and what is special in it. */
enum sh_wmode {
	W_WORD,  /* unquoted; ends at a blank or an operator */
	W_BRACE, /* inside ${x op ...} outside double quotes, and in its patterns: ends at } */
	W_BRACE_SLASH,   /* the same, ends at / too */
	W_BRACE_DQ,      /* inside "${x op ...}": ends at } */
	W_DQ,            /* ends at " */
	W_HERE,          /* here-document: ends at the end of the text */
	W_ARITH,         /* expression: ends at the unmatched ) */
	W_ARITH_SEMI,    /* in for ((: ends at ; or the unmatched ) */
	W_ARITH_BRACKET, /* $[...]: ends at ] */
	W_SLICE,         /* ${x:...}: ends at : or } */
	W_SUBSCRIPT,     /* ends at the unmatched ] */
	W_REGEX,         /* right side of =~: ends at a blank outside parentheses */
	W_EXTGLOB        /* inside @(...): ends at the unmatched ) */
};

struct sh_active_alias {
	char *name;
	size_t tail; /* bytes behind the alias text */
	bool chain;  /* its value ends in a blank */
};
#define SH_ALIAS_NEST 32

struct sh_parser {
	struct buf text;
	size_t pos;
	int line;
	bool at_end; /* env.more has no more */
	struct sh_parse_env env;
	char *file;
	bool multi_line; /* messages name the line */

	struct arena *a;
	struct buf scratch;
	int depth;
	struct token tok;
	bool have_tok;
	bool decl;             /* arguments of declare and the like: assignments are recognised */
	bool in_cond;          /* inside [[ ]]: !( is a pattern */
	struct sh_redir *here; /* here-documents whose bodies come after the next newline */
	struct sh_active_alias alias[SH_ALIAS_NEST];
	size_t naliases;

	jmp_buf on_error;
	struct box_err *err;
};

_Noreturn void sh_p_fail(struct sh_parser *p, enum box_code code, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void *sh_p_alloc(struct sh_parser *p, size_t n, size_t size);
#define P_NEW(p, T) ((T *)sh_p_alloc((p), 1, sizeof(T)))
char *sh_p_dup(struct sh_parser *p, sv s);
void sh_p_enter(struct sh_parser *p);
static inline void sh_p_leave(struct sh_parser *p)
{
	p->depth--;
}

/* Characters. sh_p_raw sees bytes as they are; sh_p_look removes backslash-newline. -1 at the end
 * of the text. */
int sh_p_raw(struct sh_parser *p, size_t ahead);
int sh_p_look(struct sh_parser *p, size_t ahead);
int sh_p_next(struct sh_parser *p);     /* consume one, continuation lines removed */
int sh_p_next_raw(struct sh_parser *p); /* consume one byte */
bool sh_p_meta(int c);                  /* ends an unquoted word */

/* parse_word.c */
struct sh_part *sh_p_parts(struct sh_parser *p, enum sh_wmode mode);
struct sh_word *sh_p_word_of(struct sh_parser *p, struct sh_part *parts, int line);
/* A word at the cursor; fills tok->word, tok->lit and, if wanted, tok->assign. */
void sh_p_lex_word(struct sh_parser *p, struct token *t, bool assign_ok);
struct sh_assign *sh_p_elements(struct sh_parser *p);
struct sh_part *sh_p_part(struct sh_parser *p, enum sh_part_kind kind);

/* parse_param.c */
bool sh_p_name_start(int c);
bool sh_p_digit(int c);
/* A name, number or special parameter at the cursor; NULL when there is none. */
const char *sh_p_param_name(struct sh_parser *p, bool braces);
/* The cursor is behind "${". */
struct sh_part *sh_p_braced_param(struct sh_parser *p, bool dq);

/* parse_tok.c */
struct token *sh_p_peek(struct sh_parser *p, bool assign_ok);
void sh_p_take(struct sh_parser *p);
bool sh_p_is(struct sh_parser *p, const char *reserved);
/* Replace the peeked word by its alias; true when it did (peek again). */
bool sh_p_alias(struct sh_parser *p);
/* Did an alias that ended in a blank end just before the peeked word? */
bool sh_p_alias_chain(struct sh_parser *p);
void sh_p_read_delim(struct sh_parser *p, struct sh_redir *r);
/* Read the bodies of the here-documents that wait, from the cursor on: at each newline and at the
 * end of every text, so that none is left without a body. */
void sh_p_read_bodies(struct sh_parser *p);
void sh_p_skip_blanks(struct sh_parser *p);

/* parse.c */
struct sh_node *sh_p_list(struct sh_parser *p, bool one_line);
/* Commands up to ')' for $(...), the opening already consumed. */
struct sh_node *sh_p_substitution(struct sh_parser *p);
/* Parse another text into the same arena (backquotes). */
struct sh_node *sh_p_sub_text(struct sh_parser *p, sv text, int line);
/* Parse another text as parts. */
struct sh_part *sh_p_sub_parts(struct sh_parser *p, sv text, enum sh_wmode mode, int line);
