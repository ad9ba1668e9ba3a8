/* Private to the sed_*.c files: a sed script as a vector of commands, and the machine that runs it.
 * POSIX sed with GNU's extensions, without `e`: it would run commands that nobody typed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shell/command.h"
#include "shell/text.h"
#include "shell/text_re.h"

struct sed_re {
	struct text_re re;
	bool empty; /* //: the expression that was used last */
};

enum sed_addr_kind {
	SED_ADDR_NONE,
	SED_ADDR_LINE, /* n */
	SED_ADDR_STEP, /* n~m */
	SED_ADDR_LAST, /* $ */
	SED_ADDR_RE,   /* /re/ */
	SED_ADDR_ZERO, /* 0,/re/ */
	SED_ADDR_PLUS, /* ,+n */
	SED_ADDR_MULT  /* ,~n */
};
struct sed_addr {
	enum sed_addr_kind kind;
	uint64_t n, m;
	struct sed_re *re;
};

/* A piece of a replacement: text, then a group, then a change of case. */
enum sed_case {
	SED_CASE_KEEP,
	SED_CASE_UPPER,
	SED_CASE_LOWER,
	SED_CASE_END,
	SED_CASE_UPPER_ONE,
	SED_CASE_LOWER_ONE
};
struct sed_piece {
	sv text;
	int group; /* -1: none */
	enum sed_case change;
};

/* A file of w, W, or s///w. */
struct sed_file {
	const char *name;
	int fd; /* -1 for the box's own stdout and stderr */
	struct sh_out own, *out;
	bool missing_newline;
	struct sed_file *next;
};

/* A file of R: read line by line over the whole run. */
struct sed_reader {
	const char *name;
	int fd;
	struct sh_in in;
	bool opened;
	struct sed_reader *next;
};

struct sed_subst {
	struct sed_re re;
	struct sed_piece *pieces;
	size_t pieces_n, pieces_cap;
	bool global, print;
	uint64_t number; /* replace from the n-th match on */
	struct sed_file *w;
};

struct sed_map {
	bool bytes_only;
	unsigned char byte[256];
	sv *from, *to; /* characters, when UTF-8 is in use */
	size_t n;
};

struct sed_cmd {
	struct sed_addr a1, a2;
	bool negate, active; /* active: inside the range */
	uint64_t range_end;
	char c;
	size_t jump;    /* }, b, t, T: index of the command to go on with */
	sv text;        /* a, i, c; label; r file */
	int64_t number; /* q, Q, l: argument, -1 without */
	struct sed_subst *s;
	struct sed_map *y;
	struct sed_file *w;
	struct sed_reader *r;
};

/* Where a piece of the script came from, for messages. */
struct sed_source {
	size_t from;      /* offset in the script */
	const char *file; /* -f; NULL for -e */
	int number;       /* of the -e */
};

struct sed {
	struct sh_io *io;
	bool quiet, extended, separate, in_place, unbuffered, utf8, sandbox;
	const char *suffix; /* of -i; NULL: no backup */
	int64_t line_len;   /* of l */
	char delim;
	/* the script */
	struct buf script;
	struct sed_source *sources;
	size_t sources_n, sources_cap;
	struct sed_cmd *cmds;
	size_t cmds_n, cmds_cap;
	struct sed_file *files;
	struct sed_reader *readers;
};

/* sed_regex.c */
/* Compile the text between delimiters (escapes of sed turned into what the engine takes). NULL or
 * why not. */
const char *sed_compile(struct sed *s, struct sed_re *re, sv text, bool icase, bool multi);
/* One of \a \f \r \t \v \cX \dNNN \oNNN \xHH at *p (behind the backslash): the byte, and *p behind
 * it. -1: it is none of them. */
int sed_escape(const char **p, const char *end);

/* sed_parse.c */
/* Turn the script into commands. 0, or 1 after a message. */
int sed_parse(struct sed *s);
void sed_free(struct sed *s);

/* sed_run.c */
/* Run over the files. The exit status. */
int sed_run(struct sed *s, char **names);
