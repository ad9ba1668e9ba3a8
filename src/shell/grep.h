/* Private to cmd_grep.c, grep_match.c and grep_scan.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shell/command.h"
#include "shell/text.h"
#include "shell/text_re.h"

enum grep_kind { GREP_BASIC, GREP_EXTENDED, GREP_FIXED, GREP_PERL };
enum grep_list { GREP_LIST_NONE, GREP_LIST_MATCHING, GREP_LIST_OTHERS };
enum grep_binary { GREP_BINARY, GREP_TEXT, GREP_WITHOUT_MATCH };
enum grep_dirs { GREP_DIR_READ, GREP_DIR_SKIP, GREP_DIR_RECURSE };

/* A file name pattern of --include, --exclude, --exclude-dir. */
struct grep_glob {
	const char *text;
	bool include;
};

struct grep {
	struct sh_io *io;
	/* what to find */
	enum grep_kind kind;
	bool icase, words, lines, invert;
	bool utf8;
	struct buf patterns; /* one a line */
	bool have_patterns;
	struct text_re *re;
	size_t re_n;
	void *perl; /* compiled PCRE2 expression */
	/* where */
	enum grep_dirs dirs;
	bool follow_links; /* -R */
	struct grep_glob *globs, *dir_globs;
	size_t globs_n, globs_cap, dir_globs_n, dir_globs_cap;
	enum grep_binary binary;
	char delim;
	/* what to show */
	enum grep_list list;
	bool count, quiet, silent, only, numbers, offsets, color, null_name, line_buffered;
	bool with_name;
	int64_t max, before, after; /* before and after -1: no context was asked for */
	const char *label;
	/* state */
	bool matched, trouble;
};

/* grep_match.c */
/* Compile the patterns. 0, or 2 after a message. */
int grep_compile(struct grep *g);
void grep_free(struct grep *g);
/* The first match of any pattern in line at or after from: leftmost, then longest. */
bool grep_find(struct grep *g, sv line, size_t from, size_t *start, size_t *end);

/* grep_scan.c */
/* Search one open file and print as asked. name is what is shown. */
void grep_scan(struct grep *g, int fd, const char *name);
/* Is the command done, whatever files are left? */
bool grep_done(const struct grep *g);
