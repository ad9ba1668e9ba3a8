/* The client of box-files: one request frame out, answer frames in. See client.h. box-files is
 * more trusted than we are, but its answers are still read with bounds: a malformed one is
 * FILES_BROKEN. */
#include "files/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/ipc.h"
#include "files/client_int.h"
#include "files/proto.h"
#include "base/ban.h"

#define LISTING_MAX ((size_t)256 << 20)

struct files *files_new(int fd)
{
	struct files *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->fd = fd;
	f->msg = (struct ipc_msg)IPC_MSG_INIT;
	f->body = buf_with(IPC_BODY_MAX);
	f->text = buf_with(IPC_BODY_MAX);
	f->path = buf_with(FILES_PATH_MAX * 2);
	f->err = (struct files_err){ .text = "" };
	return f;
}

void files_free(struct files *f)
{
	if (f == NULL)
		return;
	fd_drop(&f->fd);
	ipc_msg_fini(&f->msg);
	buf_fini(&f->body);
	buf_fini(&f->text);
	buf_fini(&f->path);
	free(f);
}

const struct files_err *files_error(const struct files *f)
{
	return &f->err;
}

void files_on_wait(struct files *f, int (*wait)(void *arg, int fd), void *arg)
{
	f->wait = wait;
	f->wait_arg = arg;
}

int files_fork(struct files *f, int *child_fd, int *server_fd, struct box_err *err)
{
	int sp[2];

	(void)f; /* the channel is new; only the monitor knows that they belong together */
	if (ipc_pair(sp, err) != 0)
		return -1;
	*child_fd = sp[0];
	*server_fd = sp[1];
	return 0;
}

int files_fail_sys(struct files *f, int e)
{
	f->err = (struct files_err){ FILES_ERRNO, e, NULL, box_strerror(e) };
	return -1;
}

int files_fail_broken(struct files *f, const char *text)
{
	fd_drop(&f->fd);
	f->err = (struct files_err){ FILES_BROKEN, EIO, NULL, text };
	return -1;
}

int files_read_fail(struct files *f, struct rd *b, struct files_err *e, size_t *index)
{
	uint8_t why = rd_u8(b);
	uint32_t sys = rd_u32(b);
	sv path, text;

	*index = rd_u16(b);
	path = rd_str(b, FILES_PATH_MAX);
	text = rd_str(b, IPC_BODY_MAX);
	if (!rd_done(b) || why < FILES_ERRNO || why > FILES_FLOOR || sys > 4095)
		return -1;
	buf_clear(&f->path);
	buf_clear(&f->text);
	buf_put_sv(&f->path, path);
	buf_put_sv(&f->text, text);
	*e = (struct files_err){ (enum files_why)why, (int)sys,
		path.n != 0 ? buf_cstr(&f->path) : NULL, buf_cstr(&f->text) };
	return e->text != NULL ? 0 : -1;
}

void files_begin(struct files *f)
{
	f->slow = false;
	buf_clear(&f->body);
}

int files_put_path(struct files *f, const char *path)
{
	size_t n = strlen(path);

	if (n == 0)
		return files_fail_sys(f, ENOENT);
	if (n >= FILES_PATH_MAX)
		return files_fail_sys(f, ENAMETOOLONG);
	buf_put_str(&f->body, (sv){ path, n });
	return 0;
}

int files_send(struct files *f, uint16_t type)
{
	struct box_err err;

	if (f->fd < 0)
		return files_fail_broken(f, "the file service is gone");
	if (!buf_ok(&f->body))
		return files_fail_sys(f, E2BIG);
	if (ipc_send(f->fd, type, ++f->id, &f->body, NULL, 0, &err) != 0)
		return files_fail_broken(f, "the file service is gone");
	return 0;
}

int files_next(struct files *f)
{
	struct box_err err;
	size_t index;

	do {
		if (f->slow && f->wait != NULL && f->wait(f->wait_arg, f->fd) != 0)
			return files_fail_sys(f, EINTR);
		if (ipc_recv(f->fd, &f->msg, &err) != 1)
			return files_fail_broken(f, "the file service is gone");
		f->slow = f->slow || f->msg.type == FILES_WAIT;
		/* An answer to a call that was given up may still come. */
	} while (f->msg.type == FILES_WAIT || (int32_t)(f->msg.id - f->id) < 0);
	if (f->msg.id != f->id)
		return files_fail_broken(f, "the file service answered another request");
	if (f->msg.type == FILES_FAIL) {
		if (files_read_fail(f, &f->msg.body, &f->err, &index) != 0)
			return files_fail_broken(f, "a malformed answer of the file service");
		f->bad = index;
		return -1;
	}
	return f->msg.type;
}

/* Send and wait for FILES_DONE with n descriptors. */
static int call(struct files *f, uint16_t type, size_t nfds)
{
	int t;

	if (files_send(f, type) != 0 || (t = files_next(f)) < 0)
		return -1;
	if (t != FILES_DONE || f->msg.nfds != nfds)
		return files_fail_broken(f, "a malformed answer of the file service");
	return 0;
}

static int answer_str(struct files *f, struct buf *out)
{
	sv s = rd_str(&f->msg.body, FILES_PATH_MAX);

	if (!rd_done(&f->msg.body))
		return files_fail_broken(f, "a malformed answer of the file service");
	buf_put_sv(out, s);
	return buf_ok(out) ? 0 : files_fail_sys(f, ENOMEM);
}

static struct timespec read_time(struct rd *b)
{
	struct timespec t;

	t.tv_sec = (time_t)rd_u64(b);
	t.tv_nsec = (long)rd_u32(b);
	return t;
}

static void read_stat(struct rd *b, struct files_stat *st)
{
	st->mode = rd_u32(b);
	st->size = rd_u64(b);
	st->ino = rd_u64(b);
	st->dev = rd_u64(b);
	st->nlink = rd_u64(b);
	st->blocks = rd_u64(b);
	st->rdev = rd_u64(b);
	st->uid = rd_u32(b);
	st->gid = rd_u32(b);
	st->blksize = rd_u32(b);
	st->atime = read_time(b);
	st->mtime = read_time(b);
	st->ctime = read_time(b);
}

/* open(2) of a FIFO waits for a writer; ours returned at once. poll says when there was one
 * (POLLHUP only after a writer came and went). A signal ends the wait: the first read then
 * decides. */
static int wait_for_writer(struct files *f, int fd, int flags)
{
	struct stat st;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if ((flags & (O_ACCMODE | O_NONBLOCK)) != O_RDONLY || fstat(fd, &st) != 0 ||
	    !S_ISFIFO(st.st_mode))
		return 0;
	if (f->wait != NULL)
		return f->wait(f->wait_arg, fd);
	(void)poll(&p, 1, -1);
	return 0;
}

static void drop_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fd_drop(&fds[i]);
}

int files_open_all(
    struct files *f, const struct files_open_req *req, size_t n, int *fds, size_t *bad)
{
	size_t got = 0;
	int t;

	*bad = 0;
	for (size_t i = 0; i < n; i++)
		fds[i] = -1;
	if (n == 0)
		return 0;
	if (n > FILES_OPEN_MAX)
		return files_fail_sys(f, E2BIG);
	files_begin(f);
	buf_put_u16(&f->body, (uint16_t)n);
	for (size_t i = 0; i < n; i++) {
		buf_put_u32(&f->body, (uint32_t)(req[i].flags & ~O_CLOEXEC));
		buf_put_u32(&f->body, (uint32_t)req[i].mode);
		*bad = i;
		if (files_put_path(f, req[i].path) != 0)
			return -1;
	}
	*bad = 0;
	if (files_send(f, FILES_OPEN) != 0)
		return -1;
	do {
		t = files_next(f);
		if (t < 0) {
			*bad = f->bad < n ? f->bad : 0;
			drop_all(fds, n);
			return -1;
		}
		for (size_t i = 0; i < f->msg.nfds && got < n; i++)
			fds[got++] = ipc_msg_take_fd(&f->msg, i);
	} while (t == FILES_FDS && got < n);
	if (t != FILES_DONE || got != n) {
		drop_all(fds, n);
		return files_fail_broken(f, "a malformed answer of the file service");
	}
	for (size_t i = 0; i < n; i++) {
		if (wait_for_writer(f, fds[i], req[i].flags) != 0) {
			drop_all(fds, n);
			return files_fail_sys(f, EINTR);
		}
	}
	return 0;
}

int files_open(struct files *f, const char *path, int flags, mode_t mode)
{
	struct files_open_req r = { path, flags, mode };
	size_t bad;
	int fd;

	return files_open_all(f, &r, 1, &fd, &bad) == 0 ? fd : -1;
}

int files_stat(struct files *f, const char *path, bool follow, struct files_stat *st)
{
	files_begin(f);
	buf_put_byte(&f->body, follow);
	if (files_put_path(f, path) != 0 || call(f, FILES_STAT, 0) != 0)
		return -1;
	read_stat(&f->msg.body, st);
	return rd_done(&f->msg.body)
	           ? 0
	           : files_fail_broken(f, "a malformed answer of the file service");
}

int files_access(struct files *f, const char *path, int mode)
{
	files_begin(f);
	buf_put_byte(&f->body, (uint8_t)mode);
	return files_put_path(f, path) != 0 ? -1 : call(f, FILES_ACCESS, 0);
}

/* --- listing --- */

struct item {
	struct item *next;
	const char *name;
	struct files_stat *st;
	uint8_t type;
};

static int read_entries(struct files *f, struct arena *a, struct item ***tail)
{
	uint16_t n = rd_u16(&f->msg.body);

	for (uint16_t i = 0; i < n; i++) {
		struct item *it = ARENA_NEW(a, struct item);
		uint8_t type = rd_u8(&f->msg.body);
		sv name = rd_str(&f->msg.body, 255);
		bool has_stat = rd_u8(&f->msg.body) != 0;

		if (it == NULL || (it->name = arena_dup(a, name).p) == NULL)
			return files_fail_sys(f, ENOMEM);
		it->type = type;
		if (has_stat) {
			it->st = ARENA_NEW(a, struct files_stat);
			if (it->st == NULL)
				return files_fail_sys(f, ENOMEM);
			read_stat(&f->msg.body, it->st);
		}
		if (f->msg.body.bad || name.n == 0 || memchr(name.p, 0, name.n) != NULL ||
		    memchr(name.p, '/', name.n) != NULL)
			break;
		**tail = it;
		*tail = &it->next;
	}
	return rd_done(&f->msg.body)
	           ? 0
	           : files_fail_broken(f, "a malformed answer of the file service");
}

int files_list(struct files *f, const char *path, bool stat_entries,
    void (*on)(void *arg, const struct files_entry *e, const struct files_stat *st), void *arg)
{
	AUTO_ARENA a = { .limit = LISTING_MAX };
	struct item *head = NULL, **tail = &head;
	bool full = false;
	int t;

	files_begin(f);
	buf_put_byte(&f->body, stat_entries);
	if (files_put_path(f, path) != 0 || files_send(f, FILES_LIST) != 0)
		return -1;
	/* Everything is read even when it does not fit, so that the next answer is the next
	 * one's. */
	while ((t = files_next(f)) == FILES_ENTRIES) {
		if (!full && read_entries(f, &a, &tail) != 0) {
			if (f->err.why == FILES_BROKEN)
				return -1;
			full = true;
		}
	}
	if (t < 0)
		return -1;
	if (t != FILES_DONE)
		return files_fail_broken(f, "a malformed answer of the file service");
	if (full)
		return files_fail_sys(f, ENOMEM);
	for (const struct item *it = head; it != NULL; it = it->next) {
		const struct files_entry e = { it->name, it->type };

		on(arg, &e, it->st);
	}
	return 0;
}

/* --- the small ones --- */

static int path_to_str(struct files *f, uint16_t type, const char *path, struct buf *out)
{
	if (files_put_path(f, path) != 0 || call(f, type, 0) != 0)
		return -1;
	return answer_str(f, out);
}

int files_readlink(struct files *f, const char *path, struct buf *out)
{
	files_begin(f);
	return path_to_str(f, FILES_READLINK, path, out);
}

int files_realpath(struct files *f, const char *path, bool must_exist, struct buf *out)
{
	files_begin(f);
	buf_put_byte(&f->body, must_exist);
	return path_to_str(f, FILES_REALPATH, path, out);
}

int files_chdir(struct files *f, const char *path, struct buf *out)
{
	files_begin(f);
	return path_to_str(f, FILES_CHDIR, path, out);
}

static int mode_path(struct files *f, uint16_t type, mode_t mode, const char *path)
{
	files_begin(f);
	buf_put_u32(&f->body, (uint32_t)mode);
	return files_put_path(f, path) != 0 ? -1 : call(f, type, 0);
}

int files_mkdir(struct files *f, const char *path, mode_t mode)
{
	return mode_path(f, FILES_MKDIR, mode, path);
}

int files_chmod(struct files *f, const char *path, mode_t mode)
{
	return mode_path(f, FILES_CHMOD, mode, path);
}

int files_utimes(struct files *f, const char *path, const struct timespec ts[2], bool follow)
{
	files_begin(f);
	buf_put_byte(&f->body, follow);
	for (int i = 0; i < 2; i++) {
		buf_put_u64(&f->body, (uint64_t)ts[i].tv_sec);
		buf_put_u32(&f->body, (uint32_t)ts[i].tv_nsec);
	}
	return files_put_path(f, path) != 0 ? -1 : call(f, FILES_UTIMES, 0);
}

int files_unlink(struct files *f, const char *path)
{
	files_begin(f);
	return files_put_path(f, path) != 0 ? -1 : call(f, FILES_UNLINK, 0);
}

int files_rmdir(struct files *f, const char *path)
{
	files_begin(f);
	return files_put_path(f, path) != 0 ? -1 : call(f, FILES_RMDIR, 0);
}

static int two_paths(struct files *f, uint16_t type, const char *a, const char *b)
{
	return files_put_path(f, a) != 0 || files_put_path(f, b) != 0 ? -1 : call(f, type, 0);
}

int files_rename(struct files *f, const char *from, const char *to, bool no_replace)
{
	files_begin(f);
	buf_put_byte(&f->body, no_replace);
	return two_paths(f, FILES_RENAME, from, to);
}

static int link_call(struct files *f, uint16_t type, bool replace, const char *a, const char *b)
{
	files_begin(f);
	buf_put_byte(&f->body, replace);
	return two_paths(f, type, a, b);
}

int files_symlink(struct files *f, const char *target, const char *path)
{
	return link_call(f, FILES_SYMLINK, false, target, path);
}

int files_symlink_over(struct files *f, const char *target, const char *path)
{
	return link_call(f, FILES_SYMLINK, true, target, path);
}

int files_link(struct files *f, const char *from, const char *to)
{
	return link_call(f, FILES_LINK, false, from, to);
}

int files_link_over(struct files *f, const char *from, const char *to)
{
	return link_call(f, FILES_LINK, true, from, to);
}

int files_mktemp(struct files *f, const char *template_path, bool dir, int *fd, struct buf *out)
{
	*fd = -1;
	files_begin(f);
	buf_put_byte(&f->body, dir);
	if (files_put_path(f, template_path) != 0 || call(f, FILES_MKTEMP, dir ? 0 : 1) != 0)
		return -1;
	if (answer_str(f, out) != 0)
		return -1;
	*fd = ipc_msg_take_fd(&f->msg, 0);
	return 0;
}

int files_locate(struct files *f, const char *name, const char *path_var, struct buf *out)
{
	files_begin(f);
	if (files_put_path(f, name) != 0)
		return -1;
	buf_put_str(&f->body, sv_c(path_var));
	if (call(f, FILES_LOCATE, 0) != 0)
		return -1;
	return answer_str(f, out);
}
