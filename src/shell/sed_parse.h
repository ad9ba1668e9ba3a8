/* Private to sed_parse.c and sed_parse_s.c: the cursor over a script. */
#pragma once

#include "shell/sed.h"

#define SED_BLOCKS_MAX 256 /* { inside each other */

struct sed_parser {
	struct sed *s;
	const char *p, *begin, *end;
	size_t blocks[SED_BLOCKS_MAX]; /* indices of open { */
	size_t blocks_n;
	bool failed;
};

static inline int sed_peek(const struct sed_parser *p)
{
	return p->p < p->end ? (unsigned char)*p->p : -1;
}

static inline int sed_next(struct sed_parser *p)
{
	return p->p < p->end ? (unsigned char)*p->p++ : -1;
}

/* "-e expression #1, char 3: text" with the number of characters read; only the first is said.
 * Returns -1. */
int sed_fail(struct sed_parser *p, const char *text);
int sed_no_memory(struct sed_parser *p);
void sed_skip_blanks(struct sed_parser *p);
/* A copy in the command's arena, NUL behind it. .p NULL after a message. */
sv sed_keep(struct sed_parser *p, sv s);
/* What must stand behind a command without arguments. */
int sed_end_of_command(struct sed_parser *p);
uint64_t sed_read_number(struct sed_parser *p);
/* The text up to an unescaped delimiter (in a pattern a bracket expression protects it). An escaped
 * delimiter loses its backslash; in a pattern \n is a newline. -1 without a closing delimiter on
 * the line. */
int sed_read_delimited(struct sed_parser *p, int delim, bool pattern, struct buf *out);
/* The file of w, opened; NULL after a message. */
struct sed_file *sed_output_file(struct sed_parser *p);
/* sed_parse_s.c: behind the letter. */
int sed_parse_subst(struct sed_parser *p, struct sed_cmd *c);
int sed_parse_y(struct sed_parser *p, struct sed_cmd *c);
