/* Private to sed_run.c, sed_io.c and sed_subst.c: the state of a run and what its parts offer each
 * other. */
#pragma once

#include "shell/sed.h"

#define SED_BAD_INPUT 2 /* a file could not be read */
#define SED_PANIC     4 /* output failed */

struct sed_space {
	char *p;
	size_t n, cap;
	bool chomped; /* the line had its newline */
};

/* Text that a, r and R leave for the end of the cycle. */
struct sed_late {
	sv text;          /* a */
	const char *file; /* r */
	char *line;       /* R: ours to free */
	size_t line_n;
	bool line_ended;
};

struct sed_machine {
	struct sed *s;
	struct sh_io *io;
	/* input */
	char **names;
	struct sh_in in;
	int fd;
	bool open;
	const char *name;       /* of the current line */
	const char *next_name;  /* of the line that waits */
	struct sed_space ahead; /* one line is read in advance, to know the last */
	bool have_ahead;
	uint64_t line;
	/* state */
	struct sed_space pattern, hold, scratch;
	bool replaced, again; /* again: D starts the next cycle without reading */
	struct sed_re *last_re;
	struct sed_late *late;
	size_t late_n, late_cap;
	int quit; /* -1: no q yet; else its status */
	int status;
	bool failed;
	/* output */
	bool missing_newline;
	struct buf edited; /* -i: what the file will hold */
	bool editing;
};

/* Append to a space; false (and m->failed) when there is no room. */
bool sed_put(struct sed_machine *m, struct sed_space *t, const char *p, size_t n);
sv sed_view(const struct sed_space *t);
void sed_copy_space(struct sed_machine *m, struct sed_space *to, const struct sed_space *from);
void sed_swap_spaces(struct sed_space *a, struct sed_space *b);
/* Bytes of the output as they are: to standard output, or to the text of the file that is
 * edited. */
void sed_out_bytes(struct sed_machine *m, const char *p, size_t n);
/* A last line without newline gets it when something follows. */
void sed_out_missing(struct sed_machine *m);
void sed_out_flush(struct sed_machine *m);
/* Text that brings its own newline. */
void sed_out_text(struct sed_machine *m, sv text);
/* A line; newline false: the input had none, so far. */
void sed_out_line(struct sed_machine *m, sv text, bool newline);
void sed_out_pattern(struct sed_machine *m);
/* To a file of w; /dev/stdout is the output itself. */
void sed_write_file(struct sed_machine *m, struct sed_file *f, sv text, bool newline);
/* One more piece for the end of the cycle; NULL (and m->failed) without memory. */
struct sed_late *sed_add_late(struct sed_machine *m);
/* Print what waits for the end of the cycle. */
void sed_out_late(struct sed_machine *m);
void sed_read_late_line(struct sed_machine *m, struct sed_reader *r);
void sed_close_input(struct sed_machine *m);
/* The next file that can be opened. */
bool sed_open_next(struct sed_machine *m);
/* Read one line in advance; with -s and -i not over the end of a file. */
void sed_read_ahead(struct sed_machine *m);
bool sed_is_last(const struct sed_machine *m);
/* The next line into the pattern space (behind what is there, when `more`). False: there is
 * none. */
bool sed_read_pattern(struct sed_machine *m, bool more);
/* Search with an expression; the empty one means the one used last. */
bool sed_search(
    struct sed_machine *m, struct sed_re *re, sv text, size_t from, size_t *start, size_t *end);
void sed_substitute(struct sed_machine *m, struct sed_cmd *c);
void sed_transliterate(struct sed_machine *m, const struct sed_map *y);
/* The edited text replaces the content of the file. */
void sed_finish_edit(struct sed_machine *m, const char *name);
