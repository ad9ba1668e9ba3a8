/* A monitor for tests. See fake.h. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "base/ban.h"

static const char *const op_name[] = { "?", "read_content", "read_metadata", "enumerate",
	"read_link", "change_dir", "exec", "write_content", "create_dir", "set_permissions",
	"symlink", "remove_file", "remove_dir", "rename" };

static void note(struct fake *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct fake *k, const char *fmt, ...)
{
	char line[FILES_PATH_MAX * 2];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&k->lock);
	buf_putf(&k->log, "%s\n", line);
	pthread_mutex_unlock(&k->lock);
}

#define SYNC ".sync-of-the-log"

static void answer(struct fake *k, struct ipc_msg *m)
{
	bool sync = false;
	AUTO_BUF b = buf_with(65536);
	uint16_t n, refused = UINT16_MAX;
	char path[FILES_PATH_MAX] = "";
	struct box_err err;

	(void)rd_u32(&m->body); /* session */
	n = rd_u16(&m->body);
	for (uint16_t i = 0; i < n; i++) {
		enum mon_fs_op op = (enum mon_fs_op)rd_u8(&m->body);
		sv p = rd_str(&m->body, MON_PATH_MAX);

		sync = n == 1 && sv_ends(p, SV("/" SYNC));
		if (sync)
			k->sync_ticket = k->tickets;
		else
			note(k, "%s " SV_FMT, op_name[op], SV_ARG(p));
		if (refused == UINT16_MAX && !sync && k->permit != NULL &&
		    !k->permit(k->arg, op, p)) {
			refused = i;
			(void)snprintf(path, sizeof(path), SV_FMT, SV_ARG(p));
		}
	}
	assert_true(rd_done(&m->body));
	if (k->between != NULL && !sync)
		k->between(k->arg);
	if (refused == UINT16_MAX) {
		buf_put_byte(&b, 1);
		buf_put_u64(&b, k->tickets);
		k->tickets += n;
	} else {
		AUTO_BUF text = buf_with(8192);

		note(k, "refused");
		buf_put_byte(&b, 0);
		buf_put_u16(&b, refused);
		buf_putf(&text,
		    "policy denied this operation on '%s' [default-deny]: No permit policy matched "
		    "this request.",
		    path);
		buf_put_str(&b, buf_sv(&text));
	}
	if (ipc_send(k->mon_fd, MON_VERDICT, m->id, &b, NULL, 0, &err) != 0)
		note(k, "send: %s", err.msg);
}

static void *monitor_main(void *arg)
{
	struct fake *k = arg;
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;

	while (ipc_recv(k->mon_fd, &m, &err) == 1) {
		uint64_t ticket;

		switch (m.type) {
		case MON_ASK_FS:
			answer(k, &m);
			break;
		case MON_DONE_FS:
			ticket = rd_u64(&m.body);
			if (ticket == k->sync_ticket)
				break;
			note(k, "done %u", rd_u8(&m.body));
			assert_true(rd_done(&m.body) && ticket < k->tickets);
			break;
		case MON_FLOOR: {
			(void)rd_u64(&m.body);
			(void)rd_u16(&m.body);
			uint8_t op = rd_u8(&m.body);
			sv p = rd_str(&m.body, MON_PATH_MAX), why = rd_str(&m.body, MON_REASON_MAX);
			note(
			    k, "floor %s " SV_FMT ": " SV_FMT, op_name[op], SV_ARG(p), SV_ARG(why));
			assert_true(rd_done(&m.body));
			break;
		}
		case MON_ABANDON:
			(void)rd_u64(&m.body);
			note(k, "abandon %u", rd_u16(&m.body));
			break;
		default:
			note(k, "frame %u", m.type);
		}
	}
	return NULL;
}

static void *server_main(void *arg)
{
	struct fake *k = arg;

	k->srv_ret = srv_run(&k->srv, &k->srv_err);
	return NULL;
}

static void put_root(struct buf *b, const char *path, uint8_t bits)
{
	buf_put_byte(b, bits);
	buf_put_str(b, sv_c(path));
}

static void put_prot(struct buf *b, enum files_protect kind, const char *dir, const char *name)
{
	char path[512];
	struct stat st = { 0 };

	(void)snprintf(path, sizeof(path), "%s%s%s", dir, name[0] != '\0' ? "/" : "", name);
	(void)stat(path, &st); /* absent objects are protected by path */
	buf_put_byte(b, (uint8_t)kind);
	buf_put_str(b, sv_c(path));
	buf_put_u64(b, st.st_ino != 0 ? st.st_dev : 0);
	buf_put_u64(b, st.st_ino);
}

static void send_start(struct fake *k)
{
	AUTO_BUF b = buf_with(65536);
	struct box_err err;
	char allow[256], ro[256], tmp_path[256];
	AUTO_FD tmp = -1;

	(void)snprintf(tmp_path, sizeof(tmp_path), "%s/tmp", k->box);
	tmp = open(tmp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tmp >= 0);
	(void)snprintf(allow, sizeof(allow), "%s/.aws/config", k->home);
	(void)snprintf(ro, sizeof(ro), "%s/granted", k->dir);
	buf_put_str(&b, sv_c(k->home));
	buf_put_u16(&b, 3);
	put_root(&b, k->home, FILES_ROOT_WRITE);
	put_root(&b, k->ws, FILES_ROOT_WRITE);
	put_root(&b, ro, 0);
	buf_put_u16(&b, 6);
	put_prot(&b, FILES_PROT_BOX, k->box, "");
	put_prot(&b, FILES_PROT_AUTHORITY, k->ws, "cfg/box.toml");
	put_prot(&b, FILES_PROT_AUTHORITY, k->ws, "cfg/policy.dw");
	put_prot(&b, FILES_PROT_CREDENTIAL, k->home, ".ssh");
	put_prot(&b, FILES_PROT_CREDENTIAL, k->home, ".aws");
	put_prot(&b, FILES_PROT_DENY, k->ws, "denied");
	buf_put_u16(&b, 1);
	buf_put_str(&b, sv_c(allow));
	int fd = tmp;
	assert_int_equal(ipc_send(k->mon_fd, MON_START, 0, &b, &fd, 1, &err), 0);
}

static int setup_in(void **state, const char *base)
{
	struct fake *k = calloc(1, sizeof(*k));
	char template[64], path[256];
	struct box_err err;
	int sp[2];
	AUTO_IPC_MSG m = IPC_MSG_INIT;

	assert_non_null(k);
	(void)umask(0);
	(void)snprintf(template, sizeof(template), "%s/files-test-XXXXXX", base);
	assert_non_null(mkdtemp(template));
	(void)snprintf(k->dir, sizeof(k->dir), "%s", template);
	(void)snprintf(k->home, sizeof(k->home), "%s/home", k->dir);
	(void)snprintf(k->ws, sizeof(k->ws), "%s/home/ws", k->dir);
	(void)snprintf(k->outside, sizeof(k->outside), "%s/outside", k->dir);
	(void)snprintf(k->box, sizeof(k->box), "%s/home/.box", k->dir);
	static const char *const folders[] = { "home", "home/ws", "home/ws/cfg", "home/.box",
		"home/.box/tmp", "home/.ssh", "home/.aws", "outside", "granted" };
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", k->dir, folders[i]);
		fake_mkdir(path);
	}
	static const char *const files[][2] = { { "home/ws/cfg/box.toml", "authority" },
		{ "home/ws/cfg/policy.dw", "policy" }, { "home/.box/state", "trusted" },
		{ "home/.ssh/id", "key" }, { "home/.aws/config", "region" },
		{ "home/.aws/credentials", "secret" }, { "outside/f", "outside" },
		{ "granted/g", "granted" } };
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", k->dir, files[i][0]);
		fake_write(path, files[i][1]);
	}
	k->sync_ticket = UINT64_MAX;
	pthread_mutex_init(&k->lock, NULL);
	k->log = buf_with((size_t)64 << 20);
	assert_int_equal(ipc_pair(sp, &err), 0);
	k->mon_fd = sp[0];
	send_start(k);
	if (srv_start(&k->srv, sp[1], &err) != 0)
		fail_msg("start: %s", err.msg);
	assert_int_equal(ipc_recv(k->mon_fd, &m, &err), 1);
	assert_int_equal(m.type, MON_HELLO);
	assert_int_equal(pthread_create(&k->monitor, NULL, monitor_main, k), 0);
	assert_int_equal(pthread_create(&k->server, NULL, server_main, k), 0);
	k->f = fake_client(k);
	*state = k;
	return 0;
}

int fake_setup(void **state)
{
	return setup_in(state, "/var/tmp");
}

int fake_setup_tmp(void **state)
{
	return setup_in(state, "/tmp");
}

int fake_teardown(void **state)
{
	struct fake *k = *state;
	char cmd[512];
	struct box_err err;

	files_free(k->f);
	assert_int_equal(ipc_send(k->mon_fd, MON_STOP, 0, NULL, NULL, 0, &err), 0);
	pthread_join(k->server, NULL);
	if (k->srv_ret != 0)
		fail_msg("server: %s", k->srv_err.msg);
	srv_fini(&k->srv);
	pthread_join(k->monitor, NULL);
	fd_drop(&k->mon_fd);
	buf_fini(&k->log);
	pthread_mutex_destroy(&k->lock);
	(void)snprintf(cmd, sizeof(cmd), "chmod -R u+rwx %s; rm -rf %s", k->dir, k->dir);
	assert_int_equal(system(cmd), 0);
	free(k);
	return 0;
}

int fake_channel(struct fake *k)
{
	AUTO_BUF b = buf_with(16);
	struct box_err err;
	int sp[2];

	assert_int_equal(ipc_pair(sp, &err), 0);
	buf_put_u32(&b, 7);
	assert_int_equal(ipc_send(k->mon_fd, MON_CLIENT, 0, &b, &sp[1], 1, &err), 0);
	fd_drop(&sp[1]);
	return sp[0];
}

struct files *fake_client(struct fake *k)
{
	struct files *f = files_new(fake_channel(k));

	assert_non_null(f);
	return f;
}

/* Everything the server said before this came back has been read by the monitor: frames come in
 * order. */
static void sync_log(struct fake *k)
{
	struct files_stat st;

	(void)files_stat(k->f, fake_path(k, SYNC), false, &st); /* absent; only the order matters */
}

const char *fake_log(struct fake *k)
{
	static char copy[1 << 20];

	sync_log(k);
	pthread_mutex_lock(&k->lock);
	(void)snprintf(copy, sizeof(copy), SV_FMT, SV_ARG(buf_sv(&k->log)));
	buf_clear(&k->log);
	pthread_mutex_unlock(&k->lock);
	return copy;
}

size_t fake_count(struct fake *k, const char *text)
{
	size_t n = 0;

	sync_log(k);
	pthread_mutex_lock(&k->lock);
	sv rest = buf_sv(&k->log);
	for (ptrdiff_t at; (at = sv_find_sv(rest, sv_c(text))) >= 0; n++)
		rest = sv_sub(rest, (size_t)at + 1, rest.n);
	pthread_mutex_unlock(&k->lock);
	return n;
}

const char *fake_path(struct fake *k, const char *rest)
{
	static char out[16][FILES_PATH_MAX * 2];
	static int turn;

	turn = (turn + 1) % 16;
	(void)snprintf(out[turn], sizeof(out[turn]), "%s/%s", k->ws, rest);
	return out[turn];
}

void fake_write(const char *path, const char *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

void fake_mkdir(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

void fake_symlink(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
}

const char *fake_read(const char *path)
{
	static char text[65536];
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = fd_read_full(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

bool fake_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}
