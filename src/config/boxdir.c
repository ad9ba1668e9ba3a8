/* The box directory. See boxdir.h. */
#include "config/boxdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/toml.h"
#include "config/path.h"
#include "base/ban.h"

#define RECORD         "box.toml"
#define RECORD_PENDING "box.toml.pending"
#define MARKER         "configured"
#define POLICY_COPY    "policy.dw"
#define RECORD_MAX     65536
#define POLICY_MAX     ((size_t)4 << 20)

/* Folders of the box besides private/. */
static const char *const folders[] = { "bin", "run", "trust", "tmp" };

static int fail_unsafe(const struct boxdir *b, struct box_err *err, const char *why)
{
	return box_fail(err, BOX_ECONFIG, 0, "unsafe box directory %s: %s", b->path.p, why);
}

static int fail_no_record(const struct boxdir *b, struct box_err *err)
{
	return fail_unsafe(b, err, "it is not empty and contains no valid private record");
}

/* Owned by this user, mode exactly 0700 (or the mode of a first start in progress). */
static int check_folder(const struct boxdir *b, int fd, bool allow_staging, struct box_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return box_fail(err, BOX_ESYS, errno, "examine box directory %s", b->path.p);
	if (st.st_uid != geteuid())
		return fail_unsafe(b, err, "it is not owned by the current user");
	if ((st.st_mode & 07777) != 0700 && !(allow_staging && (st.st_mode & 07777) == 01700))
		return fail_unsafe(b, err, "its mode is not 0700");
	return 0;
}

static int open_folder_at(int dirfd, const char *name)
{
	return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder itself: made when absent, never its parent. */
static int open_top(struct boxdir *b, struct box_err *err)
{
	bool made = false;

	if (b->path.n + strlen("/run/box.sock") > BOXDIR_SOCK_PATH_MAX)
		return fail_unsafe(b, err, "its broker socket path exceeds the platform limit");
	if (mkdir(b->path.p, 0700) == 0)
		made = true;
	else if (errno == ENOENT || errno == ENOTDIR)
		return box_fail(err, BOX_ECONFIG, 0,
		    "the box directory's parent does not exist: " SV_FMT "; create it first",
		    SV_ARG(path_parent(b->path)));
	else if (errno != EEXIST)
		return box_fail(err, BOX_ESYS, errno, "create box directory %s", b->path.p);
	b->fd = open_folder_at(AT_FDCWD, b->path.p);
	if (b->fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return box_fail(err, BOX_ECONFIG, 0, "box path is not a directory: %s", b->path.p);
	if (b->fd < 0)
		return box_fail(err, BOX_ESYS, errno, "open box directory %s", b->path.p);
	if (made && fchmod(b->fd, 0700) != 0) /* whatever the umask took away */
		return box_fail(
		    err, BOX_ESYS, errno, "set the mode of box directory %s", b->path.p);
	if (check_folder(b, b->fd, false, err) != 0)
		return -1;
	if (flock(b->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return box_fail(err, BOX_EDENIED, 0,
		    "another box operation is in progress for this box; retry shortly");
	return box_fail(err, BOX_ESYS, errno, "lock box directory %s", b->path.p);
}

/* 1: nothing in it, 0: something, -1. */
static int is_empty(const struct boxdir *b, struct box_err *err)
{
	int fd = open_folder_at(b->fd, "."), empty = 1;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (d == NULL) {
		fd_drop(&fd);
		return box_fail(err, BOX_ESYS, errno, "list box directory %s", b->path.p);
	}
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			empty = 0;
	(void)closedir(d); /* read only */
	return empty;
}

/* Remove a tree of our own making, links never followed. Depth is bounded by what we make. */
static int remove_tree(int dirfd, const char *name, int depth)
{
	int fd = open_folder_at(dirfd, name);
	DIR *d;
	struct dirent *e;
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : unlinkat(dirfd, name, 0);
	d = depth < 16 ? fdopendir(fd) : NULL;
	if (d == NULL) {
		fd_drop(&fd);
		return -1;
	}
	while (r == 0 && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = unlinkat(fd, e->d_name, 0) == 0 ? 0
			                                    : remove_tree(fd, e->d_name, depth + 1);
	(void)closedir(d); /* read only */
	return r == 0 ? unlinkat(dirfd, name, AT_REMOVEDIR) : -1;
}

/* A first start was killed before its record was committed: nothing was decided, so it begins
 * again. */
static int clear_staging(struct boxdir *b, struct box_err *err)
{
	bool bad = remove_tree(b->fd, "private", 0) != 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		bad = remove_tree(b->fd, folders[i], 0) != 0 || bad;
	if (bad || is_empty(b, err) != 1)
		return fail_no_record(b, err);
	return 0;
}

static int make_folder(
    const struct boxdir *b, int dirfd, const char *name, mode_t mode, struct box_err *err)
{
	if (mkdirat(dirfd, name, mode) != 0)
		return box_fail(
		    err, BOX_ESYS, errno, "create %s in box directory %s", name, b->path.p);
	AUTO_FD fd = open_folder_at(dirfd, name);

	if (fd < 0 || fchmod(fd, mode) != 0)
		return box_fail(
		    err, BOX_ESYS, errno, "open %s in box directory %s", name, b->path.p);
	return 0;
}

static int make_tree(struct boxdir *b, struct box_err *err)
{
	uint64_t r;

	b->fresh = true;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return box_fail(err, BOX_ESYS, errno, "make a box id");
	(void)snprintf(b->id, sizeof(b->id), "box-%016" PRIx64, r); /* exactly BOXDIR_ID_LEN */
	/* 01700 marks the first start; private/ comes first, so that a kill at any point leaves
	 * it. */
	if (make_folder(b, b->fd, "private", 01700, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (make_folder(b, b->fd, folders[i], 0700, err) != 0)
			return -1;
	b->private_fd = open_folder_at(b->fd, "private");
	if (b->private_fd < 0)
		return box_fail(
		    err, BOX_ESYS, errno, "open private in box directory %s", b->path.p);
	return make_folder(b, b->private_fd, "telemetry", 0700, err);
}

static int verify_child(const struct boxdir *b, int dirfd, const char *name, struct box_err *err)
{
	AUTO_FD fd = open_folder_at(dirfd, name);
	char why[128];

	if (fd < 0) {
		(void)snprintf(why, sizeof(why),
		    "`%s` is %s; delete the whole folder to start again", name,
		    errno == ENOENT ? "missing" : "not a directory"); /* names are short */
		return fail_unsafe(b, err, why);
	}
	return check_folder(b, fd, false, err);
}

/* A small file of private/, without following a link. 1: read, 0: absent, -1. */
static int read_private(const struct boxdir *b, const char *name, size_t max, struct buf *out,
    struct stat *st, struct box_err *err)
{
	AUTO_FD fd = openat(b->private_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? 0
		                       : box_fail(err, BOX_ESYS, errno, "open private/%s", name);
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) || st->st_uid != geteuid())
		return fail_no_record(b, err);
	out->max = max;
	return fd_read_all(fd, out, name, err) == 0 ? 1 : -1;
}

/* The marker binds the record to its inode: "DEV INO\n", two lines while an update is under way. */
static bool marker_binds(sv marker, const struct stat *record)
{
	char line[64];
	sv head, rest = marker;
	int n = snprintf(
	    line, sizeof(line), "%ju %ju", (uintmax_t)record->st_dev, (uintmax_t)record->st_ino);

	while (rest.n != 0) {
		(void)sv_cut(rest, '\n', &head, &rest); /* the last line may lack its newline */
		if (sv_eq(head, (sv){ line, (size_t)n }))
			return true;
	}
	return false;
}

static bool is_box_id(sv s)
{
	if (s.n != BOXDIR_ID_LEN || !sv_starts(s, SV("box-")))
		return false;
	for (size_t i = 4; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

static int read_record(struct boxdir *b, struct box_err *err)
{
	AUTO_BUF text = buf_with(RECORD_MAX);
	AUTO_BUF marker = buf_with(RECORD_MAX);
	AUTO_ARENA a = { .limit = (size_t)1 << 20 };
	const struct toml *root, *version, *id;
	struct stat st, mst;
	int r = read_private(b, RECORD, RECORD_MAX, &text, &st, err);

	if (r > 0)
		r = read_private(b, MARKER, RECORD_MAX, &marker, &mst, err);
	if (r < 0)
		return -1;
	if (r == 0 || !marker_binds(buf_sv(&marker), &st))
		return fail_no_record(b, err);
	if (toml_parse(&a, buf_sv(&text), &root, err) != 0)
		return fail_no_record(b, err);
	version = toml_get(root, SV("version"));
	if (version == NULL || version->kind != TOML_INT)
		return fail_no_record(b, err);
	if (version->i != BOXDIR_VERSION)
		return box_fail(err, BOX_ECONFIG, 0,
		    "box record is version %lld, but this build understands %d; use the build that "
		    "made the box, or "
		    "delete the box directory to start again",
		    (long long)version->i, BOXDIR_VERSION);
	id = toml_get(root, SV("box_id"));
	if (id == NULL || id->kind != TOML_STRING || !is_box_id(id->text)) {
		AUTO_BUF shown = buf_with(4096);

		if (id != NULL && id->kind == TOML_STRING)
			buf_put_escaped(&shown, sv_sub(id->text, 0, 64));
		return box_fail(err, BOX_ECONFIG, 0,
		    "box record identity \"" SV_FMT
		    "\" is invalid; delete the box directory to start again",
		    SV_ARG(buf_sv(&shown)));
	}
	memcpy(b->id, id->text.p, BOXDIR_ID_LEN);
	b->id[BOXDIR_ID_LEN] = '\0';
	return 0;
}

static int verify_tree(struct boxdir *b, struct box_err *err)
{
	struct stat st;

	b->private_fd = open_folder_at(b->fd, "private");
	if (b->private_fd < 0)
		return fail_no_record(b, err);
	if (check_folder(b, b->private_fd, true, err) != 0 || fstat(b->private_fd, &st) != 0)
		return -1;
	if ((st.st_mode & S_ISVTX) != 0) {
		fd_drop(&b->private_fd);
		return clear_staging(b, err) == 0 ? make_tree(b, err) : -1;
	}
	if (read_record(b, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		/* tmp holds nothing that outlives a run. */
		if (strcmp(folders[i], "tmp") == 0 &&
		    faccessat(b->fd, "tmp", F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
		    make_folder(b, b->fd, "tmp", 0700, err) != 0)
			return -1;
		if (verify_child(b, b->fd, folders[i], err) != 0)
			return -1;
	}
	return verify_child(b, b->private_fd, "telemetry", err);
}

static int take_run_lock(struct boxdir *b, struct box_err *err)
{
	b->lock_fd =
	    openat(b->private_fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->lock_fd < 0 || fchmod(b->lock_fd, 0600) != 0)
		return box_fail(err, BOX_ESYS, errno, "open private/.lock in %s", b->path.p);
	if (flock(b->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return box_fail(err, BOX_EDENIED, 0,
		    "box %s is already running, and one run owns a box at a time; wait for that "
		    "run to exit, or start "
		    "a configuration with a different `box_dir`",
		    b->id);
	return box_fail(err, BOX_ESYS, errno, "lock private/.lock in %s", b->path.p);
}

int boxdir_check(const struct plan *p, struct box_err *err)
{
	struct boxdir b = BOXDIR_INIT;
	AUTO_BUF parent = buf_with(PATH_MAX);
	AUTO_FD fd = -1;
	struct stat st;

	b.path = p->box_dir;
	if (b.path.n + strlen("/run/box.sock") > BOXDIR_SOCK_PATH_MAX)
		return fail_unsafe(&b, err, "its broker socket path exceeds the platform limit");
	fd = open_folder_at(AT_FDCWD, b.path.p);
	if (fd >= 0)
		return check_folder(&b, fd, false, err);
	if (errno != ENOENT)
		return box_fail(err, BOX_ECONFIG, 0, "box path is not a directory: %s", b.path.p);
	buf_put_sv(&parent, path_parent(b.path));
	if (buf_ok(&parent) && stat(buf_cstr(&parent), &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return box_fail(err, BOX_ECONFIG, 0,
	    "the box directory's parent does not exist: " SV_FMT "; create it first",
	    SV_ARG(path_parent(b.path)));
}

int boxdir_open(const struct plan *p, struct boxdir *b, struct box_err *err)
{
	int r;

	*b = (struct boxdir)BOXDIR_INIT;
	b->path = p->box_dir;
	r = open_top(b, err);
	if (r == 0)
		r = is_empty(b, err);
	if (r >= 0)
		r = r == 1 ? make_tree(b, err) : verify_tree(b, err);
	if (r == 0)
		r = take_run_lock(b, err);
	if (r != 0)
		boxdir_close(b);
	return r;
}

void boxdir_close(struct boxdir *b)
{
	fd_drop(&b->lock_fd);
	fd_drop(&b->private_fd);
	fd_drop(&b->fd);
}

/* Bytes of a history: a file's size, or the sum over the files of a folder. -1 with errno. */
static int history_size(int private_fd, const char *name, uint64_t *bytes)
{
	struct stat st;
	struct dirent *e;
	DIR *d;
	int fd;

	*bytes = 0;
	if (fstatat(private_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	if (!S_ISDIR(st.st_mode)) {
		*bytes = (uint64_t)st.st_size;
		return 0;
	}
	fd = open_folder_at(private_fd, name);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (d == NULL) {
		fd_drop(&fd);
		return -1;
	}
	while ((e = readdir(d)) != NULL)
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			*bytes += (uint64_t)st.st_size;
	(void)closedir(d); /* read only */
	return 0;
}

int boxdir_check_history(const struct boxdir *b, const char *name, struct box_err *err)
{
	const char *again = "Wipe the box directory to start again.";
	uint64_t bytes = 0;
	bool there = history_size(b->private_fd, name, &bytes) == 0;

	if (!there && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno,
		    "policy staging failed: examine the history %s/private/%s", b->path.p, name);
	if (b->fresh && bytes != 0)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "policy staging failed: the box record is not committed, but the history "
		    "%s/private/%s holds %ju "
		    "bytes. %s",
		    b->path.p, name, (uintmax_t)bytes, again);
	if (!b->fresh && !there)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "policy staging failed: the box record is committed, but the history "
		    "%s/private/%s is absent. %s",
		    b->path.p, name, again);
	if (!b->fresh && bytes == 0)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "policy staging failed: the box record is committed, but the history "
		    "%s/private/%s is empty. %s",
		    b->path.p, name, again);
	return 0;
}

/* Write name by way of tmp: new content or old, never half. st: identity of the new file. */
static int write_private(const struct boxdir *b, const char *name, const char *tmp, mode_t mode,
    sv content, struct stat *st, struct box_err *err)
{
	AUTO_FD fd = -1;

	(void)unlinkat(b->private_fd, tmp, 0); /* left by a run that was killed; absent is fine */
	fd = openat(b->private_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) != 0 || fd_write_full(fd, content.p, content.n) != 0 ||
	    fsync(fd) != 0 || fstat(fd, st) != 0)
		return box_fail(err, BOX_ESYS, errno, "write private/%s in %s", tmp, b->path.p);
	if (name != NULL && renameat(b->private_fd, tmp, b->private_fd, name) != 0)
		return box_fail(err, BOX_ESYS, errno, "write private/%s in %s", name, b->path.p);
	return 0;
}

static int write_marker(
    const struct boxdir *b, const struct stat *old, const struct stat *now, struct box_err *err)
{
	AUTO_BUF text = buf_with(256);
	struct stat st;

	buf_putf(&text, "%ju %ju\n", (uintmax_t)now->st_dev, (uintmax_t)now->st_ino);
	if (old != NULL)
		buf_putf(&text, "%ju %ju\n", (uintmax_t)old->st_dev, (uintmax_t)old->st_ino);
	if (!buf_ok(&text))
		return box_nomem(err, "the box record");
	if (write_private(b, MARKER, "configured.pending", 0600, buf_sv(&text), &st, err) != 0)
		return -1;
	return fsync(b->private_fd) == 0
	           ? 0
	           : box_fail(err, BOX_ESYS, errno, "sync private in %s", b->path.p);
}

static int put_record(
    const struct boxdir *b, const struct plan *p, struct buf *out, struct box_err *err)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (EVP_Digest(p->config_text.p, p->config_text.n, md, &n, EVP_sha256(), NULL) != 1)
		return box_fail(err, BOX_ESYS, 0, "hash the configuration");
	buf_putf(out, "version = %d\nbox_id = \"%s\"\n", BOXDIR_VERSION, b->id);
	/* A TOML basic string takes JSON's escapes. */
	buf_put_c(out, "name = ");
	buf_put_json(out, p->name);
	buf_put_c(out, "\nconfig = ");
	buf_put_json(out, p->config_path);
	buf_put_c(out, "\nconfig_sha256 = \"");
	for (unsigned int i = 0; i < n; i++)
		buf_putf(out, "%02x", md[i]);
	buf_put_c(out, "\"\n");
	return buf_ok(out) ? 0 : box_nomem(err, "the box record");
}

/* Is the stored file the same bytes? */
static bool is_stored(const struct boxdir *b, const char *name, size_t max, sv want)
{
	AUTO_BUF have = buf_with(max);
	struct stat st;

	return read_private(b, name, max, &have, &st, NULL) == 1 && sv_eq(buf_sv(&have), want);
}

static int store_record(struct boxdir *b, sv record, struct box_err *err)
{
	struct stat old, now;
	bool had = fstatat(b->private_fd, RECORD, &old, AT_SYMLINK_NOFOLLOW) == 0;

	/* The marker names both inodes while the rename happens, so that a kill in between leaves a
	 * bound record. */
	if (write_private(b, NULL, RECORD_PENDING, 0600, record, &now, err) != 0 ||
	    write_marker(b, had ? &old : NULL, &now, err) != 0)
		return -1;
	if (renameat(b->private_fd, RECORD_PENDING, b->private_fd, RECORD) != 0 ||
	    fsync(b->private_fd) != 0)
		return box_fail(err, BOX_ESYS, errno, "write private/%s in %s", RECORD, b->path.p);
	return had ? write_marker(b, NULL, &now, err) : 0;
}

int boxdir_commit(struct boxdir *b, const struct plan *p, sv policy, enum boxdir_change *change,
    struct box_err *err)
{
	AUTO_BUF record = buf_with(RECORD_MAX);
	bool same_policy, same_record;
	struct stat st;

	if (put_record(b, p, &record, err) != 0)
		return -1;
	same_policy = !b->fresh && is_stored(b, POLICY_COPY, POLICY_MAX, policy);
	same_record = !b->fresh && is_stored(b, RECORD, RECORD_MAX, buf_sv(&record));
	if (!same_policy &&
	    write_private(b, POLICY_COPY, "policy.dw.pending", 0400, policy, &st, err) != 0)
		return -1;
	if (!same_record && store_record(b, buf_sv(&record), err) != 0)
		return -1;
	if (fsync(b->private_fd) != 0 || fchmod(b->private_fd, 0700) != 0 || fsync(b->fd) != 0)
		return box_fail(err, BOX_ESYS, errno, "sync box directory %s", b->path.p);
	*change = b->fresh                     ? BOXDIR_CREATED
	          : same_policy && same_record ? BOXDIR_SAME
	                                       : BOXDIR_UPDATED;
	b->fresh = false;
	if (flock(b->fd, LOCK_UN) != 0)
		return box_fail(err, BOX_ESYS, errno, "unlock box directory %s", b->path.p);
	return 0;
}
