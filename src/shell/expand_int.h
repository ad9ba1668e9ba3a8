/* expand_int: what the files of expansion share. The result of a word is bytes with a flag byte
 * each; splitting, pathname expansion and quote removal look at the flags. */
#pragma once

#include "shell/shell.h"

enum xflag {
	XF_QUOTED = 1, /* stands for itself */
	XF_SPLIT = 2,  /* came from an unquoted expansion: IFS characters split here */
	XF_BREAK = 4,  /* no character: a field ends here ("$@") */
	XF_EMPTY = 8   /* no character: something quoted was here, so the field exists */
};

struct xb {
	char *p;
	uint8_t *f;
	size_t n, cap;
};

struct xp {
	struct shell *sh;
	struct arena *a;
	struct xb out;
	bool fields; /* the result will be split into fields ($@ and $* make breaks) */
	bool in_arg; /* inside an unquoted ${x-word}: literal text may be split */
	bool tilde_assign;
	bool at_empty; /* a "$@" without parameters was expanded in these double quotes */
	bool bad;
};

void sh_x_put(struct xp *x, const char *p, size_t n, uint8_t flags);
void sh_x_mark(struct xp *x, uint8_t flag);
void sh_x_parts(struct xp *x, const struct sh_part *parts, bool quoted, bool word_start);
void sh_x_fini(struct xp *x);
/* A text value that came from an expansion. */
void sh_x_value(struct xp *x, const char *s, bool quoted);
/* Values as $@ (sep '@') or $* (sep '*'). */
void sh_x_list(struct xp *x, char *const *v, size_t n, char sep, bool quoted);
/* param.c */
void sh_x_param(struct xp *x, const struct sh_param *q, bool quoted);
/* param_op.c: results are in the arena. */
char *sh_x_recase(struct xp *x, const char *s, enum sh_param_op op, const char *pat);
char *sh_x_replace(
    struct xp *x, const char *s, enum sh_param_op op, const char *pat, const char *rep);
bool sh_x_slice(struct xp *x, const char *s, int64_t off, bool has_len, int64_t len, char **out);
char *sh_x_strip(struct xp *x, const char *s, enum sh_param_op op, const char *pat);
char *sh_x_transform(struct xp *x, const struct sh_param *q, const char *s);
/* A word as pattern text (quoted specials escaped), in the arena; NULL after an error. */
char *sh_x_pattern(struct xp *x, const struct sh_word *w);
char *sh_x_string(struct xp *x, const struct sh_word *w);
/* Fields of a word list, unsplit single result of parts (subst.c). */
char *sh_x_command(struct xp *x, const struct sh_node *cmd, size_t *n);
int sh_x_process(struct xp *x, const struct sh_part *part);
