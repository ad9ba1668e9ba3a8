/* Builtins about processes and signals: wait jobs kill trap, and fg bg disown in the form that
 * makes sense without a terminal. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shell/escape.h"
#include "shell/shell.h"
#include "base/ban.h"

/* --- jobs --- */

static struct sh_child *newest(struct shell *sh, int nth)
{
	struct sh_child *best = NULL;
	int below = INT32_MAX;

	while (nth-- > 0) {
		best = NULL;
		for (size_t i = 0; i < sh->nchildren; i++) {
			struct sh_child *c = &sh->children[i];

			if (c->job > 0 && c->job < below && (best == NULL || c->job > best->job))
				best = c;
		}
		if (best == NULL)
			return NULL;
		below = best->job;
	}
	return best;
}

/* %n, %%, %+, %-, %text, or a pid. NULL when it is no child of ours. */
static struct sh_child *job_of(struct shell *sh, const char *s)
{
	int64_t n;

	if (s[0] != '%') {
		if (!sv_to_i64(sv_c(s), 10, 1, INT32_MAX, &n))
			return NULL;
		return sh_child_find(sh, (pid_t)n);
	}
	s++;
	if (*s == '\0' || strcmp(s, "%") == 0 || strcmp(s, "+") == 0)
		return newest(sh, 1);
	if (strcmp(s, "-") == 0)
		return newest(sh, 2) != NULL ? newest(sh, 2) : newest(sh, 1);
	if (sv_to_i64(sv_c(s), 10, 1, INT32_MAX, &n)) {
		for (size_t i = 0; i < sh->nchildren; i++) {
			if (sh->children[i].job == n)
				return &sh->children[i];
		}
		return NULL;
	}
	for (size_t i = 0; i < sh->nchildren; i++) {
		const char *t = sh->children[i].text;

		if (t == NULL)
			continue;
		if (s[0] == '?' ? strstr(t, s + 1) != NULL : strncmp(t, s, strlen(s)) == 0)
			return &sh->children[i];
	}
	return NULL;
}

static int run_jobs(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool pids = false, running = false, l = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		pids = pids || strchr(argv[i], 'p') != NULL;
		running = running || strchr(argv[i], 'r') != NULL;
		l = l || strchr(argv[i], 'l') != NULL;
	}
	(void)sh_reap(sh);
	for (int id = 1; id <= SH_JOBS_MAX * 4; id++) {
		struct sh_child *c = NULL;
		char mark = ' ';

		for (size_t k = 0; k < sh->nchildren; k++) {
			if (sh->children[k].job == id)
				c = &sh->children[k];
		}
		if (c == NULL || (running && c->done))
			continue;
		if (c == newest(sh, 1))
			mark = '+';
		else if (c == newest(sh, 2))
			mark = '-';
		if (pids)
			shcmd_printf(io, "%d\n", (int)c->pid);
		else if (l)
			shcmd_printf(io, "[%d]%c %d %-24s%s%s\n", id, mark, (int)c->pid,
			    c->done ? c->status == 0 ? "Done" : "Exit" : "Running", c->text,
			    c->done ? "" : " &");
		else if (c->done && c->status != 0)
			shcmd_printf(io, "[%d]%c  Exit %-19d%s\n", id, mark, c->status, c->text);
		else
			shcmd_printf(io, "[%d]%c  %-24s%s%s\n", id, mark,
			    c->done ? "Done" : "Running", c->text, c->done ? "" : " &");
		if (c->done) {
			c->job = 0; /* told once; its status stays for wait */
		}
	}
	return 0;
}

const struct sh_cmd sh_cmd_jobs = { "jobs", NULL, SHCMD_BUILTIN, 2, run_jobs };

/* Wait until c->done, looking it up again each time as the table moves. Returns its status, or 128
 * + signal when a trapped signal came first. */
static int wait_for(struct sh_io *io, pid_t pid, bool *interrupted)
{
	struct shell *sh = io->sh;

	for (;;) {
		struct sh_child *c = sh_child_find(sh, pid);

		if (c == NULL)
			return 127;
		if (c->done) {
			int s = c->status;

			sh_child_forget(sh, pid);
			return s;
		}
		if (sh->mon_broken)
			return 125;
		sh->traps_break = true;
		if (sh_wait_event(sh, -1, 0, -1, NULL) < 0 && sh_signal_pending()) {
			int sig = sh_signal_first();

			sh->traps_break = false;
			*interrupted = true;
			return 128 + sig;
		}
		sh->traps_break = false;
	}
}

static int wait_any(struct sh_io *io, bool *interrupted, const char *var)
{
	struct shell *sh = io->sh;

	for (;;) {
		bool any = false;

		for (size_t i = 0; i < sh->nchildren; i++) {
			struct sh_child *c = &sh->children[i];

			if (!c->background)
				continue;
			any = true;
			if (c->done) {
				int s = c->status;
				char text[16];

				(void)snprintf(text, sizeof(text), "%d", (int)c->pid);
				sh_child_forget(sh, c->pid);
				if (var != NULL && sh_var_set(sh, var, text) != 0)
					return 1;
				return s;
			}
		}
		if (!any)
			return 127;
		if (sh->mon_broken)
			return 125;
		if (sh_wait_event(sh, -1, 0, -1, NULL) < 0 && sh_signal_pending()) {
			*interrupted = true;
			return 128 + sh_signal_first();
		}
	}
}

static int run_wait(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool interrupted = false, next = false;
	const char *var = NULL;
	int r = 0, i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "-n") == 0) {
			next = true;
		} else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc) {
			var = argv[++i];
		} else if (strcmp(argv[i], "-f") != 0) {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
	}
	if (next)
		return wait_any(io, &interrupted, var);
	if (i == argc) {
		while (!interrupted) {
			pid_t pid = 0;

			for (size_t k = 0; k < sh->nchildren && pid == 0; k++) {
				if (sh->children[k].background)
					pid = sh->children[k].pid;
			}
			if (pid == 0)
				break;
			r = wait_for(io, pid, &interrupted);
		}
		return interrupted ? r : 0;
	}
	for (; i < argc && !interrupted; i++) {
		struct sh_child *c = job_of(sh, argv[i]);
		int64_t n;

		if (c == NULL) {
			if (argv[i][0] == '%')
				(void)shcmd_err(io, "%s: no such job", argv[i]);
			else if (!shcmd_number(argv[i], 0, INT32_MAX, &n))
				(void)shcmd_err(io, "`%s': not a pid or valid job spec", argv[i]);
			else
				(void)shcmd_err(io, "pid %s is not a child of this shell", argv[i]);
			r = argv[i][0] != '%' && !shcmd_number(argv[i], 0, INT32_MAX, &n) ? 1 : 127;
			continue;
		}
		r = wait_for(io, c->pid, &interrupted);
	}
	return r;
}

const struct sh_cmd sh_cmd_wait = { "wait", NULL, SHCMD_BUILTIN, 2, run_wait };

/* fg: wait for a job. bg and disown have nothing to do without job control. */
static int run_fg(struct sh_io *io, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return shcmd_err(io, "no job control");
}

const struct sh_cmd sh_cmd_fg = { "fg", NULL, SHCMD_BUILTIN, 1, run_fg };
const struct sh_cmd sh_cmd_bg = { "bg", NULL, SHCMD_BUILTIN, 1, run_fg };

static int run_disown(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;

	if (argc < 2) {
		struct sh_child *c = newest(sh, 1);

		if (c == NULL)
			return shcmd_err(io, "current: no such job");
		c->job = 0;
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		struct sh_child *c = argv[i][0] == '-' ? NULL : job_of(sh, argv[i]);

		if (strcmp(argv[i], "-a") == 0) {
			for (size_t k = 0; k < sh->nchildren; k++)
				sh->children[k].job = 0;
		} else if (c != NULL) {
			c->job = 0;
		} else if (argv[i][0] != '-') {
			return shcmd_err(io, "%s: no such job", argv[i]);
		}
	}
	return 0;
}

const struct sh_cmd sh_cmd_disown = { "disown", NULL, SHCMD_BUILTIN, 1, run_disown };

/* --- kill --- */

static void list_signals(struct sh_io *io)
{
	for (int s = 1; s < 32; s++) {
		if (sh_signal_name(s) != NULL)
			shcmd_printf(
			    io, "%2d) SIG%s%s", s, sh_signal_name(s), s % 5 == 0 ? "\n" : "\t");
	}
	shcmd_putc(io, '\n');
}

static int list_of(struct sh_io *io, int argc, char **argv, int i)
{
	int r = 0;

	for (; i < argc; i++) {
		int64_t n;
		int s;

		if (shcmd_number(argv[i], 0, 255, &n)) {
			const char *name = sh_signal_name((int)(n > 128 ? n - 128 : n));

			if (name != NULL)
				shcmd_printf(io, "%s\n", name);
			else
				r = shcmd_err(io, "%s: invalid signal specification", argv[i]);
		} else if ((s = sh_signal_number(argv[i])) >= 0) {
			shcmd_printf(io, "%d\n", s);
		} else {
			r = shcmd_err(io, "%s: invalid signal specification", argv[i]);
		}
	}
	return r;
}

/* The worker has a process namespace of its own, so a process number reaches nothing else; -1,
 * which would reach all of it, and 1, the reaper, are refused. */
static int signal_one(struct sh_io *io, const char *target, int sig)
{
	struct shell *sh = io->sh;
	struct sh_child *c = job_of(sh, target);
	int64_t n = 0;

	if (c != NULL) {
		if (c->done || kill(c->pid, sig) != 0)
			return shcmd_err(io, "(%d) - %s", (int)c->pid, box_strerror(ESRCH));
		return 0;
	}
	if (target[0] == '%')
		return shcmd_err(io, "%s: no such job", target);
	if (!shcmd_number(target, INT32_MIN, INT32_MAX, &n))
		return shcmd_err(io, "%s: arguments must be process or job IDs", target);
	if (n == -1 || n == 1)
		return shcmd_err(io, "(%lld) - %s", (long long)n, box_strerror(EPERM));
	if (kill((pid_t)(n == -sh->pid ? 0 : n), sig) != 0)
		return shcmd_err(io, "(%lld) - %s", (long long)n, box_strerror(errno));
	return 0;
}

static int run_kill(struct sh_io *io, int argc, char **argv)
{
	int sig = SIGTERM, i = 1, r = 0;

	if (argc < 2) {
		(void)shcmd_err(
		    io, "usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ...");
		return 2;
	}
	if (strcmp(argv[1], "-l") == 0 || strcmp(argv[1], "-L") == 0) {
		if (argc > 2)
			return list_of(io, argc, argv, 2);
		list_signals(io);
		return 0;
	}
	if (argv[1][0] == '-' && strcmp(argv[1], "--") != 0) {
		const char *name = argv[1] + 1;

		i = 2;
		if (strcmp(argv[1], "-s") == 0 || strcmp(argv[1], "-n") == 0) {
			if (argc < 3)
				return shcmd_err(
				    io, "-%c: option requires an argument", argv[1][1]);
			name = argv[2];
			i = 3;
		}
		sig = sh_signal_number(name);
		if (sig < 0)
			return shcmd_err(io, "%s: invalid signal specification", name);
	}
	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (i == argc) {
		(void)shcmd_err(
		    io, "usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ...");
		return 2;
	}
	(void)shcmd_flush(io);
	for (; i < argc; i++) {
		if (signal_one(io, argv[i], sig) != 0)
			r = 1;
	}
	return r;
}

const struct sh_cmd sh_cmd_kill = { "kill", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 2, run_kill };

/* --- trap --- */

static char **pseudo(struct shell *sh, const char *name)
{
	if (strcasecmp(name, "ERR") == 0)
		return &sh->trap_err;
	if (strcasecmp(name, "DEBUG") == 0)
		return &sh->trap_debug;
	if (strcasecmp(name, "RETURN") == 0)
		return &sh->trap_return;
	return NULL;
}

static void show_trap(struct sh_io *io, const char *action, const char *prefix, const char *name)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);

	if (action == NULL)
		return;
	buf_put_c(&b, "trap -- '");
	for (const char *p = action; *p != '\0'; p++) {
		if (*p == '\'')
			buf_put_c(&b, "'\\''");
		else
			buf_put_byte(&b, (uint8_t)*p);
	}
	buf_putf(&b, "' %s%s\n", prefix, name);
	shcmd_put(io, b.p, b.n);
}

static void show_signal(struct sh_io *io, int s)
{
	show_trap(io, io->sh->trap[s], s == 0 ? "" : "SIG",
	    sh_signal_name(s) != NULL ? sh_signal_name(s) : "?");
}

static int show(struct sh_io *io, int argc, char **argv, int i)
{
	struct shell *sh = io->sh;

	if (i == argc) {
		for (int s = 0; s < SH_NSIG; s++) {
			if (sh->ignored_at_start[s] && sh->trap[s] == NULL && s != 0)
				show_trap(io, "", "SIG",
				    sh_signal_name(s) != NULL ? sh_signal_name(s) : "?");
			show_signal(io, s);
		}
		show_trap(io, sh->trap_debug, "", "DEBUG");
		show_trap(io, sh->trap_err, "", "ERR");
		show_trap(io, sh->trap_return, "", "RETURN");
		return 0;
	}
	for (; i < argc; i++) {
		char **p = pseudo(sh, argv[i]);
		int s = sh_signal_number(argv[i]);

		if (p != NULL)
			show_trap(io, *p, "", argv[i]);
		else if (s >= 0)
			show_signal(io, s);
		else
			return shcmd_err(io, "%s: invalid signal specification", argv[i]);
	}
	return 0;
}

static int run_trap(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	const char *action;
	int i = 1, r = 0;

	if (argc > 1 && (strcmp(argv[1], "-l") == 0)) {
		list_signals(io);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "-p") == 0)
		return show(io, argc, argv, 2);
	if (argc > 1 && strcmp(argv[1], "--") == 0)
		i++;
	else if (argc > 1 && argv[1][0] == '-' && argv[1][1] != '\0') {
		(void)shcmd_err(io, "%s: invalid option", argv[1]);
		return 2;
	}
	if (i == argc)
		return show(io, argc, argv, i);
	action = argv[i];
	if (argc - i == 1 ||
	    (action[0] >= '0' && action[0] <= '9' && sh_signal_number(action) >= 0)) {
		/* one operand, or a number first: reset all of them */
		if (argc - i == 1 && sh_signal_number(action) < 0 && pseudo(sh, action) == NULL) {
			(void)shcmd_err(io, "usage: trap [-lp] [[arg] signal_spec ...]");
			return 2;
		}
		action = NULL;
	} else {
		i++;
		if (strcmp(action, "-") == 0)
			action = NULL;
	}
	for (; i < argc; i++) {
		char **p = pseudo(sh, argv[i]);
		int s = sh_signal_number(argv[i]);

		if (p != NULL) {
			free(*p);
			*p = action != NULL ? sh_xstrdup(action) : NULL;
		} else if (s < 0 || sh_trap_set(sh, s, action) != 0) {
			r = shcmd_err(io, "%s: invalid signal specification", argv[i]);
		}
	}
	return r;
}

const struct sh_cmd sh_cmd_trap = { "trap", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 2, run_trap };
