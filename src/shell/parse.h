/* parse: program text to trees. The text is hostile: depth, length and memory are limited, and no
 * byte of it is ever executed here. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "shell/ast.h"

#define SH_INPUT_MAX   ((size_t)16 << 20)  /* one script */
#define SH_PARSE_MEM   ((size_t)128 << 20) /* trees of one complete command */
#define SH_PARSE_DEPTH 250                 /* nesting of commands, words and substitutions */

struct sh_parser;

/* What the parser asks of the shell. All may be NULL. */
struct sh_parse_env {
	void *arg;
	/* The value of an alias, or NULL; borrowed until the next call. */
	const char *(*alias)(void *arg, const char *name);
	/* More program text: append at least a byte to b (best: one line) and return 1; 0 at the
	 * end, -1 on an error. */
	int (*more)(void *arg, struct buf *b);
	bool extglob; /* !(...) is a pattern, not a negated subshell */
};

/* A parser over text (copied). file is used in messages ("" for none) and copied. NULL without
 * memory. */
struct sh_parser *sh_parser_new(sv text, const char *file, const struct sh_parse_env *env);
void sh_parser_free(struct sh_parser *p);
/* The environment may change between commands (shopt, alias). */
struct sh_parse_env *sh_parser_env(struct sh_parser *p);
/* The next complete command (a list up to a newline). 1: *out is a new tree (may be empty); 0: end
 * of text; -1: BOX_EPARSE with "FILE: line N: what" or "what", or BOX_ELIMIT, BOX_ENOMEM. After -1
 * only sh_parser_free may follow. */
int sh_parse_next(struct sh_parser *p, struct sh_tree **out, struct box_err *err);
/* Parse a word as if in double quotes (PS4, ENV, arithmetic in builtins): *out lives in a. */
int sh_parse_dquoted(struct arena *a, sv text, struct sh_word **out, struct box_err *err);
/* Parse the inside of "name" or "name[subscript]" (for read, unset, printf -v, ...): *subscript is
 * NULL without one. -1 when it is no name. */
int sh_parse_lvalue(
    struct arena *a, const char *text, const char **name, struct sh_word **subscript);
/* Parse `( elements )` of an array for declare: elements only, without the parentheses. */
int sh_parse_elements(struct arena *a, sv text, struct sh_assign **out, struct box_err *err);
/* Is it a name (POSIX 3.231)? */
bool sh_is_name(sv s);
