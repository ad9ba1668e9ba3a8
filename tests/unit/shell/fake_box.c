/* A box for tests. See fake_box.h. */
#include "fake_box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "files/proto.h"
#include "files/server.h"
#include "base/ban.h"

#define CHANS_MAX  1024
#define TOOLS_MAX  256
#define SPAWNS_MAX 4096

struct tool {
	int pidfd;
	pid_t pid;
	uint32_t id;
	int chan; /* fd of the channel that started it */
};

struct st {
	struct fake_box *b;
	int files;           /* monitor's end to box-files */
	int chan[CHANS_MAX]; /* shells; [0] is the first process */
	size_t nchan;
	struct tool tool[TOOLS_MAX];
	size_t ntool;
	uint32_t next_tool;
	uint64_t ticket;
	char *spawn[SPAWNS_MAX]; /* path by ticket % SPAWNS_MAX */
	int status;
	bool exited;
};

static const char *const op_name[] = { "?", "read_content", "read_metadata", "enumerate",
	"read_link", "change_dir", "exec", "write_content", "create_dir", "set_permissions",
	"symlink", "remove_file", "remove_dir", "rename" };

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "fake_box: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void note(struct st *s, const char *a, const char *c, const char *d)
{
	if (s->b->log != NULL)
		buf_putf(s->b->log, "%s%s%s\n", a, c, d);
}

static void deny(int fd, uint32_t id, uint16_t index, const char *target)
{
	AUTO_BUF b = buf_with(65536);
	AUTO_BUF text = buf_with(8192);
	struct box_err err;

	buf_putf(&text, "policy denied this operation on '%s' [policy: test].", target);
	buf_put_byte(&b, 0);
	buf_put_u16(&b, index);
	buf_put_str(&b, buf_sv(&text));
	(void)ipc_send(fd, MON_VERDICT, id, &b, NULL, 0, &err);
}

static void permit(struct st *s, int fd, uint32_t id, uint32_t n)
{
	AUTO_BUF b = buf_with(64);
	struct box_err err;

	buf_put_byte(&b, 1);
	buf_put_u64(&b, s->ticket);
	s->ticket += n;
	(void)ipc_send(fd, MON_VERDICT, id, &b, NULL, 0, &err);
}

/* --- box-files --- */

static void ask_fs(struct st *s, struct ipc_msg *m)
{
	uint16_t n, refused = UINT16_MAX;
	char where[FILES_PATH_MAX] = "";

	(void)rd_u32(&m->body);
	n = rd_u16(&m->body);
	for (uint16_t i = 0; i < n; i++) {
		enum mon_fs_op op = (enum mon_fs_op)rd_u8(&m->body);
		sv p = rd_str(&m->body, MON_PATH_MAX);
		char path[FILES_PATH_MAX];
		bool ok;

		(void)snprintf(path, sizeof(path), SV_FMT, SV_ARG(p));
		ok = refused != UINT16_MAX || s->b->permit_fs == NULL ||
		     s->b->permit_fs(s->b->arg, op, path);
		if (refused == UINT16_MAX && s->b->log != NULL)
			buf_putf(s->b->log, "%s%s %s\n", ok ? "" : "deny ", op_name[op], path);
		if (!ok) {
			refused = i;
			(void)snprintf(where, sizeof(where), "%s", path);
		}
	}
	if (refused == UINT16_MAX)
		permit(s, s->files, m->id, n);
	else
		deny(s->files, m->id, refused, where);
}

/* Every folder of the machine is a root, but for the kernel's own. */
static void put_roots(struct buf *b)
{
	AUTO_BUF list = buf_with(65536);
	DIR *d = opendir("/");
	uint16_t n = 0;

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300];

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || strcmp(e->d_name, "proc") == 0 ||
		    strcmp(e->d_name, "sys") == 0 || strcmp(e->d_name, "dev") == 0 ||
		    strcmp(e->d_name, "tmp") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "/%s", e->d_name);
		buf_put_byte(&list, FILES_ROOT_WRITE);
		buf_put_str(&list, sv_c(path));
		n++;
	}
	if (d != NULL)
		(void)closedir(d);
	buf_put_u16(b, n);
	buf_put_sv(b, buf_sv(&list));
}

static int start_files(struct st *s, pid_t *pid)
{
	AUTO_BUF b = buf_with(65536);
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;
	int sp[2], tmp;

	if (ipc_pair(sp, &err) != 0)
		die(err.msg);
	tmp = open(s->b->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmp < 0)
		die(s->b->tmp);
	buf_put_str(&b, sv_c("/nonexistent-home"));
	put_roots(&b);
	buf_put_u16(&b, 0);
	buf_put_u16(&b, 0);
	if (ipc_send(sp[0], MON_START, 0, &b, &tmp, 1, &err) != 0)
		die(err.msg);
	(void)close(tmp);
	*pid = fork();
	if (*pid == 0) {
		struct srv *srv = calloc(1, sizeof(*srv));

		(void)close(sp[0]);
		(void)umask(0);
		if (srv == NULL)
			die("memory");
		if (srv_start(srv, sp[1], &err) != 0 || srv_run(srv, &err) != 0) {
			(void)fprintf(stderr, "fake_box: box-files: %s\n", err.msg);
			_exit(98);
		}
		_exit(0);
	}
	(void)close(sp[1]);
	if (ipc_recv(sp[0], &m, &err) != 1 || m.type != MON_HELLO)
		die("no HELLO from box-files");
	return sp[0];
}

static void new_client(struct st *s, int fd)
{
	AUTO_BUF b = buf_with(16);
	struct box_err err;

	buf_put_u32(&b, 7);
	(void)ipc_send(s->files, MON_CLIENT, 0, &b, &fd, 1, &err);
}

/* --- the shell --- */

static void ask_command(struct st *s, int fd, struct ipc_msg *m, bool spawn)
{
	AUTO_ARENA a = { 0 };
	const char *command = sh_adup(&a, rd_str(&m->body, MON_TEXT_MAX));
	const char *program = sh_adup(&a, rd_str(&m->body, MON_TEXT_MAX));
	const char *path = "";
	uint32_t n = rd_u32(&m->body);
	bool ok;

	for (uint32_t i = 0; i < n && !m->body.bad; i++) {
		(void)rd_u8(&m->body);
		(void)rd_str(&m->body, MON_TEXT_MAX);
	}
	(void)rd_str(&m->body, MON_PATH_MAX); /* cwd */
	if (spawn)
		path = sh_adup(&a, rd_str(&m->body, MON_PATH_MAX));
	if (!rd_done(&m->body))
		die("a malformed command");
	ok = s->b->permit_exec == NULL ||
	     s->b->permit_exec(s->b->arg, spawn, spawn ? path : program, command);
	if (s->b->log != NULL)
		buf_putf(s->b->log, "%s%s %s | %s\n", ok ? "" : "deny ", spawn ? "spawn" : "exec",
		    spawn ? path : program, command);
	if (!ok) {
		deny(fd, m->id, 0, spawn ? path : program);
		return;
	}
	if (spawn) {
		free(s->spawn[s->ticket % SPAWNS_MAX]);
		s->spawn[s->ticket % SPAWNS_MAX] = strdup(path);
	}
	permit(s, fd, m->id, 1);
}

static void refuse_tool(int fd, uint32_t id, const char *text)
{
	AUTO_BUF b = buf_with(4096);
	struct box_err err;

	buf_put_str(&b, sv_c(text));
	(void)ipc_send(fd, MON_TOOL_REFUSED, id, &b, NULL, 0, &err);
}

static void start_tool(struct st *s, int fd, struct ipc_msg *m)
{
	AUTO_ARENA a = { 0 };
	AUTO_BUF b = buf_with(16);
	struct box_err err;
	uint64_t ticket = rd_u64(&m->body);
	char *cwd = sh_adup(&a, rd_str(&m->body, MON_PATH_MAX)), *path, **argv, **env;
	uint32_t argc = rd_u32(&m->body), envc;
	struct tool *t = &s->tool[s->ntool];

	argv = sh_aalloc(&a, argc + 1, sizeof(char *));
	for (uint32_t i = 0; i < argc; i++)
		argv[i] = sh_adup(&a, rd_str(&m->body, IPC_BODY_MAX));
	envc = rd_u32(&m->body);
	env = sh_aalloc(&a, envc + 1, sizeof(char *));
	for (uint32_t i = 0; i < envc; i++)
		env[i] = sh_adup(&a, rd_str(&m->body, IPC_BODY_MAX));
	path = s->spawn[ticket % SPAWNS_MAX];
	if (!rd_done(&m->body) || m->nfds != 3 || path == NULL || s->ntool == TOOLS_MAX ||
	    s->b->no_tools) {
		refuse_tool(fd, m->id, "no tool runs this");
		return;
	}
	t->pid = fork();
	if (t->pid == 0) {
		sigset_t none;

		for (int i = 0; i < 3; i++)
			(void)dup2(m->fds[i], i);
		fd_close_from(3);
		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)signal(SIGPIPE, SIG_DFL);
		if (chdir(cwd) == 0)
			(void)execve(path, argv, env);
		(void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(126);
	}
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	(void)fd_set_cloexec(t->pidfd, true);
	t->id = ++s->next_tool;
	t->chan = fd;
	s->ntool++;
	buf_put_u32(&b, t->id);
	(void)ipc_send(fd, MON_TOOL_STARTED, m->id, &b, NULL, 0, &err);
}

static void tool_ended(struct st *s, size_t i)
{
	AUTO_BUF b = buf_with(16);
	struct box_err err;
	int w = 0;

	(void)waitpid(s->tool[i].pid, &w, 0);
	(void)close(s->tool[i].pidfd);
	buf_put_u32(&b, s->tool[i].id);
	buf_put_u32(&b, (uint32_t)w);
	if (s->tool[i].chan >= 0)
		(void)ipc_send(s->tool[i].chan, MON_TOOL_EXITED, 0, &b, NULL, 0, &err);
	s->tool[i] = s->tool[--s->ntool];
}

static void drop_chan(struct st *s, size_t i)
{
	for (size_t k = 0; k < s->ntool; k++) {
		if (s->tool[k].chan == s->chan[i]) {
			(void)kill(s->tool[k].pid, SIGKILL);
			s->tool[k].chan = -1;
		}
	}
	(void)close(s->chan[i]);
	s->chan[i] = s->chan[--s->nchan];
}

/* One frame of a shell. false: the channel ended. */
static bool frame(struct st *s, int fd)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;
	uint32_t tool;
	int sig;

	if (ipc_recv(fd, &m, &err) != 1)
		return false;
	switch (m.type) {
	case MON_ASK_EXEC:
		ask_command(s, fd, &m, false);
		break;
	case MON_ASK_SPAWN:
		ask_command(s, fd, &m, true);
		break;
	case MON_DONE_EXEC:
	case MON_HELLO:
		break;
	case MON_START_TOOL:
		start_tool(s, fd, &m);
		break;
	case MON_SIGNAL_TOOL:
		tool = rd_u32(&m.body);
		sig = rd_u8(&m.body);
		for (size_t i = 0; i < s->ntool; i++) {
			if (s->tool[i].id == tool)
				(void)kill(s->tool[i].pid, sig);
		}
		break;
	case MON_FORK:
		if (m.nfds != 2 || s->nchan == CHANS_MAX)
			return false;
		s->chan[s->nchan++] = ipc_msg_take_fd(&m, 0);
		new_client(s, m.fds[1]);
		break;
	case MON_EXIT:
		s->status = (int)rd_u32(&m.body);
		s->exited = true;
		if (s->b->on_exit != NULL)
			s->b->on_exit(s->b->arg, s->status);
		break;
	default:
		note(s, "unexpected frame", "", "");
		return false;
	}
	return true;
}

static void serve(struct st *s, int64_t end)
{
	struct clock mono = clock_mono();

	while (s->nchan != 0) {
		struct pollfd p[1 + CHANS_MAX + TOOLS_MAX];
		size_t n = 0, nchan = s->nchan, ntool = s->ntool;
		AUTO_IPC_MSG m = IPC_MSG_INIT;
		struct box_err err;
		int wait = -1, chan[CHANS_MAX];

		p[n++] = (struct pollfd){ .fd = s->files, .events = POLLIN };
		for (size_t i = 0; i < nchan; i++) {
			chan[i] = s->chan[i];
			p[n++] = (struct pollfd){ .fd = s->chan[i], .events = POLLIN };
		}
		for (size_t i = 0; i < ntool; i++)
			p[n++] = (struct pollfd){ .fd = s->tool[i].pidfd, .events = POLLIN };
		if (end != 0) {
			int64_t left = end - clock_now(&mono);

			if (left <= 0)
				return;
			wait = (int)(left / NS_PER_MS) + 1;
		}
		if (poll(p, n, wait) < 0 && errno != EINTR)
			die("poll");
		for (size_t i = ntool; i-- > 0;) {
			if (p[1 + nchan + i].revents != 0)
				tool_ended(s, i);
		}
		if (p[0].revents != 0) {
			if (ipc_recv(s->files, &m, &err) != 1)
				die("box-files is gone");
			if (m.type == MON_ASK_FS)
				ask_fs(s, &m);
		}
		for (size_t i = 0; i < nchan; i++) {
			if (p[1 + i].revents == 0 || frame(s, chan[i]))
				continue;
			for (size_t k = 0; k < s->nchan; k++) {
				if (s->chan[k] == chan[i]) {
					drop_chan(s, k);
					break;
				}
			}
		}
	}
}

static int64_t fixed_now(void *arg)
{
	return *(int64_t *)arg;
}

static _Noreturn void shell(struct fake_box *b, int mon, int files)
{
	int devnull = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setpgid(0, 0);
	for (int i = 0; i < 3; i++) {
		int fd = fcntl(b->fds[i], F_DUPFD_CLOEXEC, 300);

		if (fd < 0)
			die("dup");
		b->fds[i] = fd;
	}
	for (int i = 0; i < 3; i++) {
		(void)dup2(b->fds[i], i);
		(void)close(b->fds[i]);
	}
	(void)umask(0);
	if (b->now_ns != 0)
		b->start.wall = (struct clock){ fixed_now, &b->now_ns };
	mon = sh_fd_high(mon);
	files = sh_fd_high(files);
	devnull = sh_fd_high(devnull);
	/* What the test had open is not the command's. */
	(void)close_range(3, SH_FD_USER_MAX - 1, 0);
	sh_shell_run(sh_shell_new(mon, files, devnull, &b->start), &b->start);
}

int fake_box_run(struct fake_box *b)
{
	struct st *s = calloc(1, sizeof(*s));
	struct clock mono = clock_mono();
	struct box_err err;
	pid_t files_pid, pid;
	int mon[2], client[2], w, status;
	mode_t mask = umask(0);

	if (s == NULL)
		die("memory");
	if (b->start.wall.now_ns == NULL)
		b->start.wall = clock_wall();
	b->start.mono = mono;
	s->b = b;
	s->status = -1;
	s->ticket = 1;
	s->files = start_files(s, &files_pid);
	if (ipc_pair(mon, &err) != 0 || ipc_pair(client, &err) != 0)
		die(err.msg);
	new_client(s, client[1]);
	(void)close(client[1]);
	pid = fork();
	if (pid == 0) {
		(void)close(mon[0]);
		(void)close(s->files);
		shell(b, mon[1], client[0]);
	}
	(void)close(mon[1]);
	(void)close(client[0]);
	s->chan[s->nchan++] = mon[0];
	serve(s, b->timeout_ns != 0 ? clock_now(&mono) + b->timeout_ns : 0);
	if (s->nchan != 0)
		(void)kill(-pid, SIGKILL);
	while (s->nchan != 0)
		drop_chan(s, 0);
	(void)waitpid(pid, &w, 0);
	status = s->exited ? s->status : WIFSIGNALED(w) ? 128 + WTERMSIG(w) : -1;
	for (size_t i = 0; i < s->ntool; i++)
		(void)waitpid(s->tool[i].pid, NULL, 0);
	(void)close(s->files);
	(void)waitpid(files_pid, NULL, 0);
	for (size_t i = 0; i < SPAWNS_MAX; i++)
		free(s->spawn[i]);
	free(s);
	(void)umask(mask);
	return status;
}
