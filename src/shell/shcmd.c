/* What command.h promises to in-process commands: output, messages, files, nested commands. */
#include "shell/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/pattern.h"
#include "shell/shell.h"
#include "base/ban.h"

#define OUT_CAP 32768
#define IN_CAP  65536

/* --- writers --- */

void sh_out_init(struct sh_out *o, int fd)
{
	*o = (struct sh_out){ .fd = fd };
}

int sh_out_flush(struct sh_out *o)
{
	if (o->n != 0 && o->err == 0 && fd_write_full(o->fd, o->p, o->n) != 0)
		o->err = errno;
	o->n = 0;
	return o->err == 0 ? 0 : -1;
}

void sh_out_put(struct sh_out *o, const void *p, size_t n)
{
	if (o->err != 0 || n == 0)
		return;
	if (o->p == NULL) {
		o->p = malloc(OUT_CAP);
		o->cap = o->p != NULL ? OUT_CAP : 0;
	}
	if (n >= o->cap - o->n)
		(void)sh_out_flush(o);
	if (n >= o->cap) {
		if (o->err == 0 && fd_write_full(o->fd, p, n) != 0)
			o->err = errno;
		return;
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

int sh_out_fini(struct sh_out *o)
{
	int e;

	(void)sh_out_flush(o);
	e = o->err;
	free(o->p);
	*o = (struct sh_out){ .fd = o->fd };
	return e;
}

void shcmd_put(struct sh_io *io, const void *p, size_t n)
{
	sh_out_put(io->out, p, n);
}

void shcmd_puts(struct sh_io *io, const char *s)
{
	sh_out_put(io->out, s, strlen(s));
}

void shcmd_putc(struct sh_io *io, char c)
{
	sh_out_put(io->out, &c, 1);
}

void shcmd_printf(struct sh_io *io, const char *fmt, ...)
{
	char small[512], *big = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(small)) {
		va_start(ap, fmt);
		n = vasprintf(&big, fmt, ap);
		va_end(ap);
		if (n < 0)
			sh_no_memory();
	}
	if (n > 0)
		sh_out_put(io->out, big != NULL ? big : small, (size_t)n);
	free(big);
}

int shcmd_flush(struct sh_io *io)
{
	return sh_out_flush(io->out);
}

bool shcmd_out_dead(const struct sh_io *io)
{
	return io->out->err != 0;
}

/* --- messages --- */

__attribute__((format(printf, 3, 0))) static void vmessage(
    struct sh_io *io, const char *prefix, const char *fmt, va_list ap)
{
	AUTO_BUF b = buf_with(65536);
	char *text;
	int n = vasprintf(&text, fmt, ap);

	if (n < 0)
		sh_no_memory();
	buf_put_c(&b, prefix);
	for (int i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			buf_putf(&b, "\\x%02x", c);
		else
			buf_put_byte(&b, c);
	}
	free(text);
	buf_put_byte(&b, '\n');
	sh_out_put(io->err, b.p, b.n);
	(void)sh_out_flush(io->err);
	io->err->err = 0; /* a closed descriptor 2 is nobody's error */
}

static const char *prefix_of(struct sh_io *io)
{
	const char *p = (io->cmd->flags & SHCMD_BUILTIN) == 0
	                    ? arena_printf(io->arena, "%s: ", io->name)
	                    : arena_printf(io->arena, "strands-shell: %s: ", io->name);

	return p != NULL ? p : "strands-shell: ";
}

int shcmd_err(struct sh_io *io, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(io, prefix_of(io), fmt, ap);
	va_end(ap);
	return 1;
}

static int line(struct sh_io *io, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int line(struct sh_io *io, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(io, "strands-shell: ", fmt, ap);
	va_end(ap);
	return 1;
}

int shcmd_files_err(struct sh_io *io, const char *arg, const struct files_err *e)
{
	switch (e->why) {
	case FILES_BROKEN:
		(void)line(io, "effect interception failed: %s", e->text);
		return 125;
	case FILES_DENIED:
	case FILES_FLOOR:
		return line(io, "%s: %s", io->name, e->text);
	case FILES_ERRNO:
	case FILES_OK:
		break;
	}
	if (arg == NULL)
		return shcmd_err(io, "%s", e->text);
	return shcmd_err(io, "%s: %s", arg, e->text);
}

int shcmd_open_err(struct sh_io *io, const char *arg)
{
	return shcmd_files_err(io, arg, &io->last);
}

static void keep_error(struct sh_io *io)
{
	const struct files_err *e = files_error(io->files);

	io->last = *e;
	io->last.text = sh_adup(io->arena, sv_c(e->text));
	io->last.path = e->path != NULL ? sh_adup(io->arena, sv_c(e->path)) : NULL;
}

static int fail_errno(struct sh_io *io, int sys)
{
	io->last = (struct files_err){ FILES_ERRNO, sys, NULL, box_strerror(sys) };
	return -1;
}

/* --- files --- */

const char *shcmd_path(struct sh_io *io, const char *arg)
{
	size_t n = strlen(io->cwd), m = strlen(arg);
	char *s;

	if (m > SHCMD_PATH_MAX || (arg[0] != '/' && n + m + 2 > SHCMD_PATH_MAX)) {
		(void)fail_errno(io, ENAMETOOLONG);
		return NULL;
	}
	if (arg[0] == '/' || m == 0)
		return sh_adup(io->arena, sv_c(arg));
	s = sh_aalloc(io->arena, n + m + 2, 1);
	memcpy(s, io->cwd, n);
	if (n == 0 || s[n - 1] != '/')
		s[n++] = '/';
	memcpy(s + n, arg, m);
	return s;
}

int shcmd_open_special(struct sh_io *io, const char *arg)
{
	int e = EBADF, fd = sh_open_special(io->sh, arg, &e);

	return fd == -1 ? fail_errno(io, e) : fd;
}

int shcmd_open_read(struct sh_io *io, const char *arg)
{
	const char *path;
	struct stat st;
	int fd;

	if (strcmp(arg, "-") == 0) {
		fd = fcntl(0, F_DUPFD_CLOEXEC, 10);
		return fd < 0 ? fail_errno(io, errno) : fd;
	}
	fd = shcmd_open_special(io, arg);
	if (fd != -2)
		return fd;
	path = shcmd_path(io, arg);
	if (path == NULL)
		return -1;
	fd = files_open(io->files, path, O_RDONLY, 0);
	if (fd < 0) {
		keep_error(io);
		return -1;
	}
	if (fd < 3) {
		int up = fcntl(fd, F_DUPFD_CLOEXEC, 10);

		(void)close(fd);
		fd = up;
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)close(fd);
		return fail_errno(io, EISDIR);
	}
	return fd;
}

int shcmd_open_write(struct sh_io *io, const char *arg, int flags)
{
	const char *path;
	int fd = shcmd_open_special(io, arg);

	if (fd != -2)
		return fd;
	path = shcmd_path(io, arg);
	if (path == NULL)
		return -1;
	if ((flags & O_ACCMODE) == O_RDONLY)
		flags |= O_WRONLY;
	fd = files_open(io->files, path, flags, 0666 & ~io->umask);
	if (fd < 0) {
		keep_error(io);
		return -1;
	}
	if (fd < 3) {
		int up = fcntl(fd, F_DUPFD_CLOEXEC, 10);

		(void)close(fd);
		fd = up;
	}
	return fd;
}

ssize_t shcmd_read(struct sh_io *io, int fd, void *p, size_t n)
{
	for (;;) {
		ssize_t r;

		if (shcmd_interrupted(io)) {
			errno = EINTR;
			return -1;
		}
		/* Only the first process learns of signals by the channel, so it alone must watch
		 * it. */
		if (io->sh->first) {
			struct pollfd q = { .fd = fd, .events = POLLIN };
			bool ready = poll(&q, 1, 0) != 0;

			while (!ready) {
				if (sh_wait_event(io->sh, fd, POLLIN, -1, &ready) < 0) {
					if (shcmd_interrupted(io) || io->sh->mon_broken ||
					    io->sh->traps_break) {
						errno = EINTR;
						return -1;
					}
					sh_signals_defer(io->sh);
				}
			}
			sh_signals_restore(io->sh);
		}
		r = read(fd, p, n);
		if (r >= 0 || errno != EINTR)
			return r;
		if (io->sh->traps_break && sh_signal_pending())
			return -1;
	}
}

void shcmd_in_init(struct sh_in *in, struct sh_io *io, int fd)
{
	*in = (struct sh_in){ .io = io, .fd = fd };
}

void shcmd_in_fini(struct sh_in *in)
{
	if (in->n > in->pos)
		(void)lseek(in->fd, -(off_t)(in->n - in->pos), SEEK_CUR); /* a pipe cannot */
	free(in->p);
	*in = (struct sh_in){ .fd = in->fd };
}

/* More bytes behind what is there. 1, 0 at the end, -1. */
static int fill(struct sh_in *in)
{
	ssize_t r;

	if (in->eof)
		return in->err != 0 ? -1 : 0;
	if (in->pos != 0) {
		memmove(in->p, in->p + in->pos, in->n - in->pos);
		in->n -= in->pos;
		in->pos = 0;
	}
	if (in->n == in->cap) {
		size_t cap = in->cap != 0 ? in->cap * 2 : IN_CAP;

		if (cap > SHCMD_LINE_MAX) {
			in->eof = true;
			in->err = EFBIG;
			return -1;
		}
		in->p = sh_xrealloc(in->p, cap, 1);
		in->cap = cap;
	}
	r = shcmd_read(in->io, in->fd, in->p + in->n, in->cap - in->n);
	if (r <= 0) {
		in->eof = true;
		in->err = r < 0 ? errno : 0;
		return r < 0 ? -1 : 0;
	}
	in->n += (size_t)r;
	return 1;
}

int shcmd_getline(struct sh_in *in, char delim, sv *out)
{
	size_t seen = in->pos;

	if (shcmd_out_dead(in->io))
		return 0;
	for (;;) {
		char *nl = in->n > seen ? memchr(in->p + seen, delim, in->n - seen) : NULL;
		size_t off;
		int r;

		if (nl != NULL) {
			*out = (sv){ in->p + in->pos, (size_t)(nl - in->p) + 1 - in->pos };
			in->pos += out->n;
			return 1;
		}
		off = in->n - in->pos;
		r = fill(in);
		seen = in->pos + off;
		if (r > 0)
			continue;
		if (r < 0)
			return -1;
		if (in->n == in->pos)
			return 0;
		*out = (sv){ in->p + in->pos, in->n - in->pos };
		in->pos = in->n;
		return 1;
	}
}

int shcmd_getchunk(struct sh_in *in, sv *chunk)
{
	if (in->pos == in->n) {
		int r;

		in->pos = in->n = 0;
		r = fill(in);
		if (r <= 0)
			return r;
	}
	*chunk = (sv){ in->p + in->pos, in->n - in->pos };
	in->pos = in->n;
	return 1;
}

/* --- the rest --- */

const char *shcmd_env(struct sh_io *io, const char *name)
{
	struct sh_var *v = sh_var_find(io->sh, name);

	return v != NULL && (v->flags & SH_V_EXPORT) != 0 ? v->value : NULL;
}

char **shcmd_env_all(struct sh_io *io)
{
	struct sh_vec v = { 0 };
	char **out;

	sh_vars_environ(io->sh, &v);
	out = sh_aalloc(io->arena, v.n + 1, sizeof(char *));
	for (size_t i = 0; i < v.n; i++)
		out[i] = sh_adup(io->arena, sv_c(v.v[i]));
	sh_vec_fini(&v);
	return out;
}

/* The environment of a nested command: everything exported now is hidden, the given variables are
 * exported in its place. */
static void push_env(struct shell *sh, char *const *env)
{
	size_t n;
	struct sh_var **v = sh_vars_sorted(sh, &n);

	sh_scope_push(sh, false);
	for (size_t i = 0; i < n; i++) {
		if ((v[i]->flags & SH_V_EXPORT) != 0 && (v[i]->flags & SH_V_READONLY) == 0) {
			struct sh_var *l = sh_var_local(sh, v[i]->name, false);

			if (l != NULL)
				l->flags &= ~(unsigned)SH_V_EXPORT;
		}
	}
	free(v);
	for (size_t i = 0; env[i] != NULL; i++) {
		const char *eq = strchr(env[i], '=');
		char *name;

		if (eq == NULL)
			continue;
		name = sh_xdup((sv){ env[i], (size_t)(eq - env[i]) });
		if (sh_var_local(sh, name, false) != NULL && sh_var_set(sh, name, eq + 1) == 0)
			(void)sh_var_declare(sh, name, SH_V_EXPORT);
		free(name);
	}
}

int shcmd_run(struct sh_io *io, char **argv, const struct shcmd_run_opts *o)
{
	struct shell *sh = io->sh;
	struct sh_redir_saved *saved = NULL;
	char *cwd = sh->cwd;
	int argc = 0, r;

	while (argv[argc] != NULL)
		argc++;
	(void)sh_out_flush(io->out);
	if (o != NULL && o->in >= 0 && sh_fd_replace(0, o->in, &saved) != 0)
		return 126;
	if (o != NULL && o->cwd != NULL)
		sh->cwd = sh_xstrdup(o->cwd);
	if (o != NULL && o->env != NULL)
		push_env(sh, o->env);
	r = sh_run_argv(sh, argc, argv, NULL,
	    o != NULL && o->no_builtins ? SH_RUN_NO_BUILTINS | SH_RUN_NO_FUNCS : 0);
	if (o != NULL && o->env != NULL)
		sh_scope_pop(sh);
	if (o != NULL && o->cwd != NULL) {
		free(sh->cwd);
		sh->cwd = cwd;
	}
	sh_redirect_undo(saved);
	return r;
}

bool shcmd_interrupted(struct sh_io *io)
{
	sh_mon_glance(io->sh);
	return sh_signal_fatal(io->sh) != 0;
}

int shcmd_sleep(struct sh_io *io, int64_t ns)
{
	struct shell *sh = io->sh;
	int64_t end = clock_now(&io->mono) + ns;

	for (;;) {
		int64_t left = end - clock_now(&io->mono);
		int r;

		if (left <= 0)
			break;
		r = sh_wait_event(sh, -1, 0, left, NULL);
		if (r > 0)
			break;
		if (r < 0) {
			if (shcmd_interrupted(io) || sh->mon_broken)
				return -1;
			sh_signals_defer(sh);
		}
	}
	sh_signals_restore(sh);
	return 0;
}

void *shcmd_alloc(struct sh_io *io, size_t n, size_t size)
{
	void *p = arena_alloc(io->arena, n, size);

	if (p == NULL)
		(void)shcmd_err(io, "out of memory");
	return p;
}

bool shcmd_match(const char *pattern, const char *str, bool icase)
{
	return sh_pat_match(sv_c(pattern), sv_c(str), icase ? SH_PAT_NOCASE : 0u);
}

bool shcmd_number(const char *s, int64_t min, int64_t max, int64_t *out)
{
	if (s[0] == '+' && s[1] >= '0' && s[1] <= '9')
		s++;
	return sv_to_i64(sv_c(s), 10, min, max, out);
}

/* --- running --- */

/* What became of standard output; changes the status of a command that could not write. */
static int settle(struct shell *sh, struct sh_io *io, int status)
{
	int e;

	(void)sh_out_flush(&sh->out);
	e = sh->out.err;
	sh->out.err = 0;
	if (e == 0)
		return status;
	if (e == EPIPE && !(sh->trap[SIGPIPE] != NULL && sh->trap[SIGPIPE][0] == '\0')) {
		/* A program of its own would have died of SIGPIPE; a builtin takes the shell with
		 * it. */
		if ((io->cmd->flags & SHCMD_BUILTIN) != 0 && sh->trap[SIGPIPE] == NULL) {
			sh->status = 128 + SIGPIPE;
			sh->flow = SH_FLOW_EXIT;
		}
		return 128 + SIGPIPE;
	}
	(void)shcmd_err(io, "write error: %s", box_strerror(e));
	return status != 0 ? status : 1;
}

int sh_call_cmd(struct shell *sh, const struct sh_cmd *c, int argc, char **argv)
{
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	struct sh_io *outer = sh->io;
	struct sh_io io = { .name = argv[0],
		.out = &sh->out,
		.err = &sh->err,
		.in = 0,
		.files = sh->files,
		.arena = &a,
		.cwd = sh->cwd,
		.umask = sh->umask,
		.wall = sh->wall,
		.mono = sh->mono,
		.cmd = c,
		.sh = sh };
	char **copy = sh_aalloc(&a, (size_t)argc + 1, sizeof(char *));
	int r;

	/* Commands may change their arguments; the caller's are still needed ($_, nested words). */
	for (int i = 0; i < argc; i++)
		copy[i] = sh_adup(&a, sv_c(argv[i]));
	if (fcntl(0, F_GETFD) < 0)
		io.in = -1;
	sh->io = &io;
	r = c->run(&io, argc, copy);
	r = settle(sh, &io, r);
	sh->io = outer;
	if ((c->flags & SHCMD_UTILITY) != 0 && sh_signal_fatal(sh) != 0)
		r = 128 + sh_signal_fatal(sh);
	return r;
}
