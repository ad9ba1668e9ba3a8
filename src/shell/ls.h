/* ls: the options and the items, shared by cmd_ls.c (what to list) and ls_print.c (order and
 * form). */
#pragma once

#include "shell/fileutil.h"

enum form { ONE, LONG, COLUMNS, ACROSS, COMMAS };
enum order { BY_NAME, BY_TIME, BY_SIZE, BY_EXT, BY_VERSION, UNSORTED };
enum mark { MARK_NONE, MARK_SLASH, MARK_TYPE, MARK_ALL };
enum hidden { HIDDEN_NOT, HIDDEN_ALMOST, HIDDEN_ALL };

struct item {
	const char *name;   /* as printed */
	const char *path;   /* absolute */
	const char *link;   /* what a link says; NULL */
	uint32_t link_mode; /* of what it leads to, for marks; 0: unknown */
	bool has_stat;
	struct files_stat st;
	char user[64], group[64], size[32], blocks[24];
};

struct ls {
	struct sh_io *io;
	enum form form;
	enum order order;
	enum mark mark;
	enum hidden hidden;
	bool dir_itself, human, si, inode, blocks, reverse, recursive, dirs_first, numeric;
	bool no_owner, no_group, follow_all, follow_args, quote, backups;
	bool order_set;
	char time;         /* m, a, c */
	const char *style; /* strftime format; NULL: the traditional two */
	uint64_t unit;
	size_t width;
	const char *ignore[64];
	size_t ignore_n;
	int status;
	bool header, printed;
};

/* Must the metadata of entries be decided; or at least their type be known? */
bool ls_needs_stat(const struct ls *l);
bool ls_needs_type(const struct ls *l);
/* What -L, links and marks need beyond the entry's own metadata; texts go into arena a. */
void ls_look_further(struct ls *l, struct arena *a, struct item *i);
/* The columns of the long form, as text. */
void ls_fill_columns(struct ls *l, struct item *i);
void ls_sort_items(struct ls *l, struct item *v, size_t n);
void ls_put_items(struct ls *l, const struct item *v, size_t n);
