/* find: the expression, as cmd_find.c walks and find_parse.c builds it. */
#pragma once

#include <regex.h>

#include "shell/fileutil.h"

#define FIND_EXPR_MAX  5000 /* terms of one expression */
#define FIND_NEST_MAX  200  /* parentheses and negations */
#define FIND_BATCH_MAX 4000 /* names of one -exec … + */
#define FIND_BYTES_MAX ((size_t)90 * 1024)

enum find_kind {
	FIND_AND,
	FIND_OR,
	FIND_COMMA,
	FIND_NOT,
	FIND_TRUE,
	FIND_FALSE,
	FIND_NAME,  /* text, icase; the last name */
	FIND_PATH,  /* text, icase; the whole path */
	FIND_LNAME, /* text, icase; the text of a link */
	FIND_REGEX,
	FIND_TYPE,  /* types: bit mask over DT_*; follow: -xtype */
	FIND_SIZE,  /* number in units */
	FIND_TIME,  /* number of days or minutes since; which: m a c */
	FIND_NEWER, /* which: m a c, than ts */
	FIND_EMPTY,
	FIND_PERM, /* cmp: '=', '-' all of, '/' any of */
	FIND_UID,
	FIND_GID,
	FIND_LINKS,
	FIND_INUM,
	FIND_SAME, /* dev, ino */
	FIND_ACCESS,
	FIND_PRUNE,
	FIND_QUIT,
	FIND_PRINT, /* end: '\n' or NUL */
	FIND_PRINTF,
	FIND_LS,
	FIND_DELETE,
	FIND_EXEC
};

struct find_expr {
	enum find_kind kind;
	struct find_expr *a, *b;
	const char *text;
	bool icase, follow;
	char which, cmp, end; /* cmp of numbers: '+', '-', '=' */
	uint64_t number, unit;
	uint32_t mode, types;
	struct timespec ts;
	uint64_t dev, ino;
	regex_t re; /* FIND_REGEX: freed by find_free */
	/* FIND_EXEC */
	char **argv;
	int argc;
	bool plus, in_dir, ask;
	const char **batch;
	size_t batch_n, batch_bytes;
	const char *batch_dir;
	struct arena batch_arena;
	struct find_expr *next; /* all of one parse */
};

struct find {
	struct sh_io *io;
	struct find_expr *all, *top;
	int64_t min_depth, max_depth;
	bool depth_first, one_fs, follow, follow_args;
	bool needs_stat, has_action, quit;
	struct timespec now;
	uint64_t dev; /* of the starting point */
	int status;
};

/* Read options, starting points and the expression. Starting points are argv[*first .. *first +
 * *n). 0, or the status to return. */
int find_parse(struct find *f, int argc, char **argv, int *first, int *n);
void find_free(struct find *f);

/* One object of the walk. */
struct find_node {
	const char *path;  /* as shown */
	const char *abs;   /* for box-files */
	const char *start; /* the starting point it lies below */
	sv name;           /* its last name */
	int64_t depth;
	uint8_t type; /* DT_* */
	bool has_stat, prune;
	struct files_stat st;
};
/* -printf and -ls (find_print.c). */
void find_printf(struct find *f, const struct find_node *v, const char *format);
void find_ls(struct find *f, const struct find_node *v);
/* The metadata of v, fetched when it is not there yet. false: it cannot be had, and that was
 * said. */
bool find_stat(struct find *f, struct find_node *v);
