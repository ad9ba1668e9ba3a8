/* launch_drive: run one process of a box.toml in its sandbox without a monitor: no policy, no
 * gateway. For tests/escape and for looking at a plan by hand.
 *
 *   launch_drive --launcher PATH --config FILE [--tool LABEL] [--explain] [--tty] [--alias IMAGE]
 * [--broker SOCKET] [--path PATH] [--home DIR] [--times N] [-- ARGS]
 *
 * Accepts connections on the sandbox's proxy listener and answers each with "pong". Exit status as
 * a shell's: 128 + n for a signal; 125 when the sandbox could not be made. */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/config.h"
#include "contain/contain.h"
#include "contain/spec.h"
#include "launch/launch.h"
#include "base/ban.h"

struct drive {
	const char *launcher, *config, *tool, *alias, *broker, *path, *home;
	bool explain, tty;
	int times;
	char **args;
};

static int usage(void)
{
	(void)fprintf(
	    stderr, "usage: launch_drive --launcher PATH --config FILE [options] [-- ARGS]\n");
	return 2;
}

static int parse(int argc, char **argv, struct drive *d)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];

		if (strcmp(a, "--") == 0) {
			d->args = argv + i + 1;
			return 0;
		}
		if (strcmp(a, "--explain") == 0)
			d->explain = true;
		else if (strcmp(a, "--tty") == 0)
			d->tty = true;
		else if (i + 1 == argc)
			return -1;
		else if (strcmp(a, "--launcher") == 0)
			d->launcher = argv[++i];
		else if (strcmp(a, "--config") == 0)
			d->config = argv[++i];
		else if (strcmp(a, "--tool") == 0)
			d->tool = argv[++i];
		else if (strcmp(a, "--alias") == 0)
			d->alias = argv[++i];
		else if (strcmp(a, "--broker") == 0)
			d->broker = argv[++i];
		else if (strcmp(a, "--path") == 0)
			d->path = argv[++i];
		else if (strcmp(a, "--home") == 0)
			d->home = argv[++i];
		else if (strcmp(a, "--times") == 0)
			d->times = atoi(argv[++i]);
		else
			return -1;
	}
	return 0;
}

/* Stand-in for the gateway: a child that answers until it is killed. */
static pid_t serve(int listener)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		int c;

		(void)poll(&p, 1, -1);
		c = accept(listener, NULL, NULL);
		if (c < 0)
			continue;
		(void)!write(c, "pong\n", 5);
		(void)close(c);
	}
}

static int run_once(const struct drive *d, const struct sandbox_spec *s, struct box_err *err)
{
	static const int stdio[3] = { 0, 1, 2 };
	struct launch_child c = LAUNCH_CHILD_INIT;
	pid_t server = -1;
	int status = 125 << 8, r;

	if (launch_start(d->launcher, s, stdio, &c, err) < 0)
		return -1;
	for (;;) {
		struct launch_event ev;

		r = launch_recv(&c, &ev, err);
		if (r <= 0)
			break;
		if (ev.type == LAUNCH_LISTENER) {
			server = serve(ev.listener);
			(void)close(ev.listener);
		} else if (ev.type == LAUNCH_FAILED) {
			(void)fprintf(stderr, "launch_drive: failed (stage %d): %s\n",
			    (int)ev.stage, ev.text);
			break;
		} else if (ev.type == LAUNCH_STOPPED) {
			(void)launch_signal(&c, SIGCONT, NULL);
		} else if (ev.type == LAUNCH_EXITED) {
			status = ev.status;
			break;
		}
	}
	launch_end(&c);
	if (server > 0) {
		(void)kill(server, SIGKILL);
		(void)waitpid(server, NULL, 0);
	}
	return r < 0 ? -1 : status;
}

static const struct plan_process *find(const struct plan *p, const char *tool)
{
	if (tool == NULL)
		return p->agent;
	for (size_t i = 0; i < p->tools_n; i++)
		if (sv_eq(p->tools[i].label, sv_c(tool)))
			return &p->tools[i];
	return NULL;
}

static int drive(const struct drive *d, struct plan *p, struct box_err *err)
{
	static const char *const names[] = { "sh", "bash", "zsh" };
	struct sandbox_spec spec = { 0 };
	struct contain_placeholders ph = { 0 };
	struct sandbox_extra x = { 0 };
	const struct plan_process *proc;
	char cwd[4096], tmp[4096], path[8192];
	const char *operator_path = d->path != NULL ? d->path : "/usr/local/bin:/usr/bin:/bin";
	struct passwd *pw = getpwuid(getuid());
	const struct config_input in = { .config_path = d->config,
		.start_dir = getcwd(cwd, sizeof(cwd)),
		.home = d->home != NULL ? d->home
		        : pw != NULL    ? pw->pw_dir
		                        : "/",
		.path_var = operator_path,
		.args = d->args,
		.uid = getuid(),
		.gid = getgid() };
	int r;

	if (config_load(&in, p, err) < 0)
		return -1;
	(void)snprintf(tmp, sizeof(tmp), "%s", p->box_dir.p);
	(void)mkdir(tmp, 0700);
	(void)snprintf(tmp, sizeof(tmp), "%s/tmp", p->box_dir.p);
	(void)mkdir(tmp, 0700);
	if (config_judge(p, err) < 0 || contain_placeholders_make(p, &ph, err) < 0)
		return -1;
	proc = find(p, d->tool);
	if (proc == NULL)
		return box_fail(err, BOX_ECONFIG, 0, "no such table");
	(void)snprintf(path, sizeof(path), "%s/bin:%s", p->box_dir.p, operator_path);
	struct plan_var env[64] = { { SV("HOME"), p->home },
		{ SV("PATH"), d->alias != NULL ? sv_c(path) : sv_c(operator_path) },
		{ SV("USER"), SV(SANDBOX_USER) } };
	size_t env_n = 3;

	for (size_t i = 0; i < proc->env_n && env_n < 64; i++)
		env[env_n++] = proc->env[i];
	x.box_dir = p->box_dir.p;
	x.tmp_dir = tmp;
	x.alias_image = d->alias;
	x.alias_names = names;
	x.alias_names_n = d->alias != NULL ? 3 : 0;
	x.broker_socket = d->broker;
	x.env = env;
	x.env_n = env_n;
	x.tty = d->tty;
	if (proc->kind == PLAN_TOOL) { /* the shell would pass the whole vector */
		const char *argv[256];

		for (size_t i = 0; i < proc->command_n && x.argv_n < 128; i++)
			argv[x.argv_n++] = proc->command[i].p;
		for (char **a = d->args; a != NULL && *a != NULL && x.argv_n < 256; a++)
			argv[x.argv_n++] = *a;
		x.argv = argv;
		if (proc->workspace.n == 0 && p->agent != NULL)
			x.cwd = p->agent->workspace.p;
		r = sandbox_spec_build(p, proc, &x, &spec, err);
	} else {
		r = sandbox_spec_build(p, proc, &x, &spec, err);
	}
	if (r == 0 && d->explain) {
		AUTO_BUF b = buf_with(1 << 20);

		sandbox_spec_print(&spec, &b);
		(void)!write(1, b.p, b.n);
	} else if (r == 0) {
		for (int i = 0; i < d->times && r >= 0; i++)
			r = run_once(d, &spec, err);
	}
	sandbox_spec_fini(&spec);
	contain_placeholders_remove(&ph);
	return r;
}

int main(int argc, char **argv)
{
	struct drive d = { .times = 1 };
	struct plan p = { 0 };
	struct box_err err = { 0 };
	int r;

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the monitor */
	if (parse(argc, argv, &d) < 0 || d.launcher == NULL || d.config == NULL)
		return usage();
	r = drive(&d, &p, &err);
	if (r < 0)
		(void)fprintf(stderr, "launch_drive: %s\n", err.msg);
	plan_fini(&p);
	return r < 0 ? 125 : WIFSIGNALED(r) ? 128 + WTERMSIG(r) : WEXITSTATUS(r);
}
