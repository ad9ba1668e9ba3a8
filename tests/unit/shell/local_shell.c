/* The shell as a program of its own, without a box: for conformance suites, which want something
 * they can start like any other shell. Everything is permitted. Not installed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_box.h"
#include "shell/proto.h"
#include "base/fd.h"
#include "base/ban.h"

extern char **environ;

static void report(void *arg, int status)
{
	unsigned char c = (unsigned char)status;
	ssize_t r = write(*(int *)arg, &c, 1);

	(void)r; /* the reader knows by the end of the pipe */
	(void)close(*(int *)arg);
	for (int i = 0; i < 3; i++)
		(void)close(i); /* who reads our output must see its end */
}

int main(int argc, char **argv)
{
	struct shell *opts = sh_xalloc(1, sizeof(*opts));
	const char *name = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
	char cwd[PATH_MAX];
	struct sh_invocation v;
	int p[2], r;
	unsigned char c;

	(void)setlocale(LC_ALL, "C.UTF-8");
	r = sh_invocation(opts, argc, argv, &v);
	if (r != 0 || getcwd(cwd, sizeof(cwd)) == NULL || pipe2(p, O_CLOEXEC) != 0) {
		free(opts);
		return r != 0 ? r : 1;
	}
	if (fork() == 0) {
		struct fake_box b = { .start = { .name = name,
			                  .text = sv_c(v.text),
			                  .script_fd = -1,
			                  .zero = v.zero,
			                  .params = v.params,
			                  .cwd = cwd,
			                  .workspace = "/",
			                  .home = getenv("HOME") != NULL ? getenv("HOME") : "/",
			                  .operator_home = "/nonexistent-home",
			                  .path = getenv("PATH") != NULL ? getenv("PATH")
			                                                 : "/usr/bin:/bin",
			                  .env = environ },
			.fds = { 0, 1, 2 },
			.tmp = "/tmp",
			.on_exit = report,
			.arg = &p[1] };
		int status;

		(void)close(p[0]);
		b.start.initial_opts = opts->opts;
		if (v.read_stdin)
			b.start.flags |= SHELL_F_STDIN;
		if (v.script != NULL) {
			b.start.script_fd = open(v.script, O_RDONLY | O_CLOEXEC);
			if (b.start.script_fd < 0) {
				(void)fprintf(
				    stderr, "strands-shell: %s: %s\n", v.script, strerror(errno));
				status = errno == ENOENT ? 127 : 126;
				report(&p[1], status);
				_exit(0);
			}
			b.start.script_fd = sh_fd_high(b.start.script_fd);
		}
		p[1] = sh_fd_high(p[1]);
		(void)signal(SIGPIPE, SIG_IGN);
		status = fake_box_run(&b);
		if (fcntl(p[1], F_GETFD) >= 0)
			report(&p[1], status);
		_exit(0);
	}
	free(opts); /* only its options were wanted, and the child has them */
	(void)close(p[1]);
	while ((r = (int)read(p[0], &c, 1)) < 0 && errno == EINTR)
		;
	return r == 1 ? c : 125;
}
