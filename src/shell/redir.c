/* Redirections (POSIX 2.7). Three steps: expand every target; open the files, all of them decided
 * before the first is created or truncated; put the descriptors in place. A pipeline opens those of
 * all its stages together. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/shell.h"
#include "base/ban.h"

#define REDIRS_MAX 256

int sh_fd_high(int fd)
{
	int high;

	if (fd < 0)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, SH_FD_USER_MAX);
	if (high < 0 && errno == EINVAL)
		high = fcntl(fd, F_DUPFD_CLOEXEC, 10); /* a very small RLIMIT_NOFILE */
	(void)close(fd);
	return high;
}

int sh_fd_replace(int fd, int from, struct sh_redir_saved **saved)
{
	if (saved != NULL) {
		struct sh_redir_saved *s = sh_xalloc(1, sizeof(*s));

		s->fd = fd;
		s->saved = fcntl(fd, F_DUPFD_CLOEXEC, SH_FD_USER_MAX);
		s->next = *saved;
		*saved = s;
	}
	if (from < 0) {
		(void)close(fd);
		return 0;
	}
	if (from == fd)
		return fd_set_cloexec(fd, false);
	return dup2(from, fd) < 0 ? -1 : 0;
}

void sh_redirect_undo(struct sh_redir_saved *s)
{
	while (s != NULL) {
		struct sh_redir_saved *next = s->next;

		if (s->saved >= 0) {
			(void)dup2(s->saved, s->fd); /* both are valid: it cannot fail */
			(void)close(s->saved);
		} else {
			(void)close(s->fd);
		}
		free(s);
		s = next;
	}
}

void sh_redirect_keep(struct sh_redir_saved *s)
{
	while (s != NULL) {
		struct sh_redir_saved *next = s->next;

		if (s->saved >= 0)
			(void)close(s->saved);
		free(s);
		s = next;
	}
}

int sh_text_fd(struct shell *sh, sv text)
{
	int fd = memfd_create("here", MFD_CLOEXEC);

	if (fd >= 0 && (fd_write_full(fd, text.p, text.n) != 0 || lseek(fd, 0, SEEK_SET) != 0))
		fd_drop(&fd);
	if (fd < 0)
		sh_msg(sh, "here-document: %s", box_strerror(errno));
	return fd;
}

/* --- expansion of the targets --- */

struct opening {
	struct shell *sh;
	struct arena *a;
	struct files_open_req req[REDIRS_MAX];
	const char *shown[REDIRS_MAX];
	struct sh_ready *slot[REDIRS_MAX];
	bool noclobber[REDIRS_MAX];
	size_t n;
	struct sh_ready *head, **tail;
};

static struct sh_ready *add(struct opening *o, size_t group, int fd, int from, bool owned)
{
	struct sh_ready *r = sh_aalloc(o->a, 1, sizeof(*r));

	*r = (struct sh_ready){ .group = group, .fd = fd, .from = from, .owned = owned };
	*o->tail = r;
	o->tail = &r->next;
	return r;
}

static int open_flags(enum sh_redir_kind k)
{
	switch (k) {
	case SH_RD_IN:
		return O_RDONLY;
	case SH_RD_APPEND:
	case SH_RD_BOTH_APPEND:
		return O_WRONLY | O_CREAT | O_APPEND;
	case SH_RD_RDWR:
		return O_RDWR | O_CREAT;
	case SH_RD_OUT:
	case SH_RD_CLOBBER:
	case SH_RD_BOTH:
	case SH_RD_DUP_IN:
	case SH_RD_DUP_OUT:
	case SH_RD_HERE:
		break;
	}
	return O_WRONLY | O_CREAT | O_TRUNC;
}

static int add_file(
    struct opening *o, const struct sh_redir *r, size_t group, int fd, const char *name)
{
	struct shell *sh = o->sh;
	bool both =
	    r->kind == SH_RD_BOTH || r->kind == SH_RD_BOTH_APPEND || r->kind == SH_RD_DUP_OUT;
	struct sh_ready *slot;
	int e = 0, special = sh_open_special(sh, name, &e);

	if (special == -1) {
		sh_msg(sh, "%s: %s", name, box_strerror(e));
		return -1;
	}
	slot = add(o, group, fd, special >= 0 ? special : -1, special >= 0);
	slot->both = both;
	slot->fd_var = r->fd_var;
	if (special >= 0)
		return 0;
	if (o->n == REDIRS_MAX) {
		sh_msg(sh, "too many redirections");
		return -1;
	}
	o->shown[o->n] = name;
	o->slot[o->n] = slot;
	o->noclobber[o->n] =
	    (sh->opts & SH_O_NOCLOBBER) != 0 &&
	    (r->kind == SH_RD_OUT || r->kind == SH_RD_BOTH || r->kind == SH_RD_DUP_OUT);
	o->req[o->n].path = sh_path(sh, o->a, name);
	if (o->req[o->n].path == NULL) {
		sh_msg(sh, "%s: %s", name, box_strerror(ENAMETOOLONG));
		return -1;
	}
	o->req[o->n].flags = open_flags(r->kind) | (o->noclobber[o->n] ? O_EXCL : 0);
	o->req[o->n].mode = 0666 & ~sh->umask;
	o->n++;
	return 0;
}

static bool all_digits(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n != 0 && n < 9 && s[n] == '\0';
}

/* [N]<&word, [N]>&word */
static int add_dup(struct opening *o, const struct sh_redir *r, size_t group, int fd, char *word)
{
	struct shell *sh = o->sh;
	size_t n = strlen(word);
	struct sh_ready *rd;
	bool move = n > 1 && word[n - 1] == '-';
	int from;

	if (strcmp(word, "-") == 0) {
		rd = add(o, group, fd, -1, false);
		rd->fd_var = r->fd_var;
		return 0;
	}
	if (move)
		word[n - 1] = '\0';
	if (!all_digits(word)) {
		if (r->kind == SH_RD_DUP_OUT && r->fd < 0 && r->fd_var == NULL && !move)
			return add_file(o, r, group, 1, word);
		sh_msg(sh, "%s: ambiguous redirect", word);
		return -1;
	}
	from = (int)strtol(word, NULL, 10);
	/* Whether it is open is known only when the ones before it are in place. */
	if (from >= SH_FD_USER_MAX) {
		sh_msg(sh, "%s: %s", word, box_strerror(EBADF));
		return -1;
	}
	rd = add(o, group, fd, from, false);
	rd->fd_var = r->fd_var;
	if (move)
		(void)add(o, group, from, -1, false);
	return 0;
}

/* The word of a file redirection: one field (POSIX: no splitting; bash refuses several). */
static char *target(struct opening *o, const struct sh_redir *r)
{
	struct sh_args args = { 0 };
	struct sh_word w = *r->word;

	w.next = NULL;
	if (sh_expand_words(o->sh, o->a, &w, &args) != 0)
		return NULL;
	if (args.n != 1) {
		char *s = sh_expand_str(o->sh, o->a, r->word, SH_X_STRING);

		if (s != NULL)
			sh_msg(o->sh, "%s: ambiguous redirect", s);
		return NULL;
	}
	return args.v[0];
}

static int add_one(struct opening *o, const struct sh_redir *r, size_t group)
{
	struct shell *sh = o->sh;
	bool input = r->kind == SH_RD_IN || r->kind == SH_RD_RDWR || r->kind == SH_RD_DUP_IN ||
	             r->kind == SH_RD_HERE;
	int fd = r->fd >= 0 ? r->fd : input ? 0 : 1;
	char *word;

	if (fd >= SH_FD_USER_MAX) {
		sh_msg(sh, "%d: %s", fd, box_strerror(EBADF));
		return -1;
	}
	if (r->kind == SH_RD_HERE) {
		struct sh_ready *rd;
		size_t n;
		int from;

		word = sh_expand_str(sh, o->a, r->word, SH_X_STRING);
		if (word == NULL)
			return -1;
		n = strlen(word);
		if (r->here_string) {
			char *parts[] = { word, sh_adup(o->a, SV("\n")) };

			word = sh_join(sh, o->a, parts, 2, "");
			n++;
		}
		from = sh_text_fd(sh, (sv){ word, n });
		if (from < 0)
			return -1;
		rd = add(o, group, fd, sh_fd_high(from), true);
		rd->fd_var = r->fd_var;
		return 0;
	}
	word = target(o, r);
	if (word == NULL)
		return -1;
	if (r->kind == SH_RD_DUP_IN || r->kind == SH_RD_DUP_OUT)
		return add_dup(o, r, group, fd, word);
	return add_file(o, r, group, fd, word);
}

/* --- opening --- */

/* `set -C`: an existing file that is not a regular one may be written after all. */
static bool relax_noclobber(struct opening *o, size_t bad)
{
	struct files_stat st;

	if (!o->noclobber[bad] || (o->req[bad].flags & O_EXCL) == 0 ||
	    files_error(o->sh->files)->why != FILES_ERRNO ||
	    files_error(o->sh->files)->sys != EEXIST)
		return false;
	if (files_stat(o->sh->files, o->req[bad].path, true, &st) != 0 || S_ISREG(st.mode)) {
		sh_msg(o->sh, "%s: cannot overwrite existing file", o->shown[bad]);
		o->shown[bad] = NULL;
		return false;
	}
	o->req[bad].flags &= ~(O_EXCL | O_CREAT);
	return true;
}

static int open_files(struct opening *o, size_t *bad)
{
	int fds[REDIRS_MAX];
	int r;

	if (o->n == 0)
		return 0;
	do {
		*bad = 0;
		if (o->n == 1) {
			fds[0] = files_open(
			    o->sh->files, o->req[0].path, o->req[0].flags, o->req[0].mode);
			r = fds[0] < 0 ? -1 : 0;
		} else {
			r = files_open_all(o->sh->files, o->req, o->n, fds, bad);
		}
	} while (r != 0 && *bad < o->n && relax_noclobber(o, *bad));
	if (r != 0) {
		const char *shown = o->shown[*bad < o->n ? *bad : 0];

		if (shown != NULL && sh_files_msg(o->sh, shown, files_error(o->sh->files)) == 125) {
			o->sh->status = 125;
			o->sh->flow = SH_FLOW_EXIT;
		}
		return -1;
	}
	for (size_t i = 0; i < o->n; i++) {
		o->slot[i]->from = sh_fd_high(fds[i]);
		o->slot[i]->owned = true;
	}
	return 0;
}

void sh_close_redirs(struct sh_ready *r)
{
	for (; r != NULL; r = r->next) {
		if (r->owned && r->from >= 0)
			(void)close(r->from);
		r->owned = false;
		r->from = -1;
	}
}

int sh_open_redirs(struct shell *sh, struct arena *a, const struct sh_redir *const *lists, size_t n,
    struct sh_ready **out, size_t *bad)
{
	struct opening *o = sh_aalloc(a, 1, sizeof(*o));
	size_t at;

	o->sh = sh;
	o->a = a;
	o->tail = &o->head;
	*out = NULL;
	for (size_t i = 0; i < n; i++) {
		for (const struct sh_redir *r = lists[i]; r != NULL; r = r->next) {
			if (add_one(o, r, i) != 0) {
				*bad = i;
				sh_close_redirs(o->head);
				return -1;
			}
		}
	}
	if (open_files(o, &at) != 0) {
		*bad = at < o->n ? o->slot[at]->group : 0;
		sh_close_redirs(o->head);
		return -1;
	}
	*out = o->head;
	return 0;
}

/* {name}>file: a descriptor of 10 or more, kept open. */
static int apply_var(struct shell *sh, const struct sh_ready *r)
{
	char text[16];
	int fd;

	if (r->from < 0) {
		const char *v = sh_var_get(sh, r->fd_var);

		if (v == NULL || !all_digits(v) || strtol(v, NULL, 10) >= SH_FD_USER_MAX) {
			sh_msg(sh, "%s: %s", r->fd_var, box_strerror(EBADF));
			return -1;
		}
		(void)close((int)strtol(v, NULL, 10));
		return 0;
	}
	fd = fcntl(r->from, F_DUPFD, 10);
	if (fd < 0 || fd >= SH_FD_USER_MAX) {
		fd_drop(&fd);
		sh_msg(sh, "%s: %s", r->fd_var, box_strerror(EMFILE));
		return -1;
	}
	(void)snprintf(text, sizeof(text), "%d", fd);
	return sh_var_set(sh, r->fd_var, text);
}

int sh_apply_redirs(
    struct shell *sh, const struct sh_ready *r, size_t group, struct sh_redir_saved **saved)
{
	for (; r != NULL; r = r->next) {
		if (r->group != group)
			continue;
		if (r->fd_var != NULL) {
			if (apply_var(sh, r) != 0)
				return -1;
			continue;
		}
		if (r->from >= 0 && !r->owned && fcntl(r->from, F_GETFD) < 0) {
			sh_msg(sh, "%d: %s", r->from, box_strerror(EBADF));
			return -1;
		}
		if (sh_fd_replace(r->fd, r->from, saved) != 0 ||
		    (r->both && sh_fd_replace(2, r->fd, saved) != 0)) {
			sh_msg(sh, "%d: %s", r->fd, box_strerror(errno));
			return -1;
		}
	}
	return 0;
}

int sh_redirect(struct shell *sh, const struct sh_redir *r, struct sh_redir_saved **saved)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_ready *ready;
	size_t bad;
	int rc;

	*saved = NULL;
	if (r == NULL)
		return 0;
	(void)sh_out_flush(&sh->out);
	if (sh_open_redirs(sh, &a, &r, 1, &ready, &bad) != 0)
		return -1;
	rc = sh_apply_redirs(sh, ready, 0, saved);
	sh_close_redirs(ready);
	if (rc != 0) {
		sh_redirect_undo(*saved);
		*saved = NULL;
	}
	return rc;
}
