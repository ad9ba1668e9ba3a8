/* Command substitution (POSIX 2.6.3) and process substitution: forked subshells at the other end of
 * a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/expand_int.h"
#include "base/ban.h"

/* Everything from fd, up to the limit; NULs are dropped, as in other shells. */
static char *slurp(struct xp *x, int fd, size_t *out_n)
{
	char *p = NULL;
	size_t n = 0, cap = 0;

	for (;;) {
		ssize_t r;

		if (cap - n < 4096) {
			cap = cap != 0 ? cap * 2 : 8192;
			p = sh_xrealloc(p, cap + 1, 1);
		}
		r = read(fd, p + n, cap - n);
		if (r < 0 && errno == EINTR) {
			if (sh_signal_fatal(x->sh) != 0)
				break;
			continue;
		}
		if (r <= 0)
			break;
		n += (size_t)r;
		if (n > SH_EXPAND_MAX) {
			sh_error(x->sh, false, 1, "output size limit exceeded");
			x->bad = true;
			break;
		}
	}
	if (p == NULL)
		p = sh_xalloc(1, 1);
	if (n != 0 && memchr(p, '\0', n) != NULL) {
		size_t k = 0;

		for (size_t i = 0; i < n; i++) {
			if (p[i] != '\0')
				p[k++] = p[i];
		}
		n = k;
	}
	*out_n = n;
	return p;
}

/* `$(< file)`: the file's content without a command. */
static const struct sh_redir *just_input(const struct sh_node *c)
{
	if (c == NULL || c->kind != SH_N_SIMPLE || c->words != NULL || c->assigns != NULL ||
	    c->redirs == NULL || c->redirs->next != NULL || c->redirs->kind != SH_RD_IN ||
	    c->redirs->fd > 0)
		return NULL;
	return c->redirs;
}

_Noreturn static void run_child(struct shell *sh, const struct sh_node *cmd)
{
	sh->in_subst = true;
	if ((sh->opts & SH_O_POSIX) == 0 && (sh->shopts & SH_S_INHERIT_ERREXIT) == 0)
		sh->opts &= ~(unsigned)SH_O_ERREXIT;
	sh->loops = 0;
	(void)sh_eval(sh, cmd);
	sh_leave_subshell(sh);
}

char *sh_x_command(struct xp *x, const struct sh_node *cmd, size_t *n)
{
	struct shell *sh = x->sh;
	const struct sh_redir *in = just_input(cmd);
	struct sh_redir_saved *saved = NULL;
	struct sh_member m = { 0 };
	int p[2];
	char *s;

	*n = 0;
	if (in != NULL) {
		if (sh_redirect(sh, in, &saved) != 0) {
			sh->last_subst = 1;
			return sh_xalloc(1, 1);
		}
		s = slurp(x, 0, n);
		sh_redirect_undo(saved);
		sh->last_subst = 0;
		goto strip;
	}
	if (cmd == NULL) {
		sh->last_subst = 0;
		return NULL;
	}
	if (pipe2(p, O_CLOEXEC) != 0) {
		sh_error(sh, false, 1, "cannot make a pipe: %s", box_strerror(errno));
		x->bad = true;
		return NULL;
	}
	m.pid = sh_fork(sh, false);
	if (m.pid == 0) {
		(void)close(p[0]);
		if (sh_fd_replace(1, p[1], NULL) != 0)
			_exit(1);
		if (p[1] != 1)
			(void)close(p[1]);
		run_child(sh, cmd);
	}
	(void)close(p[1]);
	if (m.pid < 0) {
		(void)close(p[0]);
		x->bad = true;
		return NULL;
	}
	s = slurp(x, p[0], n);
	(void)close(p[0]);
	sh->last_subst = sh_wait_member(sh, &m);
	sh->status = sh->last_subst;
strip:
	while (*n != 0 && s[*n - 1] == '\n')
		(*n)--;
	s[*n] = '\0';
	return s;
}

int sh_x_process(struct xp *x, const struct sh_part *part)
{
	struct shell *sh = x->sh;
	char name[32];
	int p[2], mine, theirs;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) != 0) {
		sh_error(sh, false, 1, "cannot make a pipe: %s", box_strerror(errno));
		return -1;
	}
	mine = part->out ? p[1] : p[0];
	theirs = part->out ? p[0] : p[1];
	pid = sh_fork(sh, true);
	if (pid == 0) {
		(void)close(mine);
		if (sh_fd_replace(part->out ? 0 : 1, theirs, NULL) != 0)
			_exit(1);
		(void)close(theirs);
		sh->loops = 0;
		if (part->cmd != NULL)
			(void)sh_eval(sh, part->cmd);
		sh_leave_subshell(sh);
	}
	(void)close(theirs);
	if (pid < 0) {
		(void)close(mine);
		return -1;
	}
	/* Scripts name it by /dev/fd/N, so it must lie in their range; it is closed when the
	 * command has ended. */
	theirs = 63;
	while (theirs > 9 && fcntl(theirs, F_GETFD) >= 0)
		theirs--;
	if (theirs == 9 || dup3(mine, theirs, O_CLOEXEC) < 0)
		theirs = -1;
	(void)close(mine);
	if (theirs < 0 || sh->nprocs == sizeof(sh->procs) / sizeof(sh->procs[0])) {
		fd_drop(&theirs);
		sh_error(sh, false, 1, "too many process substitutions");
		return -1;
	}
	sh->proc_pids[sh->nprocs] = part->out ? pid : 0;
	sh->procs[sh->nprocs++] = theirs;
	sh->last_bg = pid;
	(void)snprintf(name, sizeof(name), "/dev/fd/%d", theirs);
	sh_x_put(x, name, strlen(name), XF_QUOTED);
	return 0;
}
