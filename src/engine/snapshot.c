/* Snapshot files. See snapshot.h. */
#include "engine/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/scan.h"

#include "base/ban.h"

#define SNAP_MAX ((size_t)1 << 30)
#define SNAP_TMP "snap.tmp"

static void snap_name(uint64_t offset, char out[WAL_NAME_MAX])
{
	(void)snprintf(out, WAL_NAME_MAX, "snap-%016" PRIx64, offset);
}

static int newest_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

int eng_snap_list(int dir, uint64_t v[ENG_SNAPS_MAX], size_t *n, struct box_err *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = errno;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	*n = 0;
	if (d == NULL) {
		e = fd < 0 ? e : errno;
		fd_drop(&fd);
		return box_fail(err, BOX_ESYS, e, "list the store");
	}
	while (*n < ENG_SNAPS_MAX && (de = readdir(d)) != NULL) {
		sv s = sv_c(de->d_name);

		if (sv_starts(s, SV("snap-")) && s.n == 21 &&
		    sv_to_u64(sv_sub(s, 5, 16), 16, UINT64_MAX, &v[*n]))
			++*n;
	}
	(void)closedir(d);
	qsort(v, *n, sizeof(*v), newest_first);
	return 0;
}

static int read_file(int dir, const char *name, struct buf *out, struct box_err *err)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	uint8_t *p;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", name);
	if (st.st_size < 0 || (uint64_t)st.st_size > SNAP_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "larger than a snapshot can be");
	p = buf_room(out, (size_t)st.st_size);
	if (p == NULL)
		return box_nomem(err, "a snapshot");
	got = fd_read_full(fd, p, (size_t)st.st_size);
	if (got < 0)
		return box_fail(err, BOX_ESYS, errno, "read %s", name);
	out->n = (size_t)got;
	return 0;
}

int eng_snap_load_at(int dir, uint64_t offset, struct eng_state *s, struct eng_set *like,
    uint8_t id[WAL_ID], struct box_err *err)
{
	AUTO_BUF b = buf_with(SNAP_MAX + 1);
	size_t tokens = s->tokens.max;
	char name[WAL_NAME_MAX];

	snap_name(offset, name);
	if (read_file(dir, name, &b, err) < 0)
		return box_wrap(err, "%s", name);
	if (eng_state_load(s, buf_sv(&b), like, id, err) == 0 && s->next == offset)
		return 0;
	if (s->next != offset && s->mon != NULL)
		(void)box_fail(err, BOX_ECORRUPT, 0, "the file has another snapshot's name");
	eng_state_fini(s);
	eng_state_init(s, tokens);
	return box_wrap(err, "%s", name);
}

int eng_snap_load(
    int dir, struct eng_state *s, struct eng_set *like, struct eng_snap *out, struct box_err *err)
{
	uint64_t v[ENG_SNAPS_MAX];
	struct box_err why;
	size_t n;

	*out = (struct eng_snap){ 0 };
	if (eng_snap_list(dir, v, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (eng_snap_load_at(dir, v[i], s, like, out->id, &why) == 0) {
			out->found = true;
			out->offset = v[i];
			out->older = i + 1 < n ? v[i + 1] : 0;
			return 0;
		}
		if (why.code == BOX_ENOMEM) {
			*err = why;
			return -1;
		}
		if (out->passed_over[0] == '\0')
			(void)snprintf(out->passed_over, sizeof(out->passed_over), "%.*s",
			    (int)sizeof(out->passed_over) - 1, why.msg);
	}
	return 0;
}

static int write_file(
    int dir, const struct eng_io *io, const struct buf *b, uint64_t offset, struct box_err *err)
{
	char name[WAL_NAME_MAX];
	AUTO_FD fd = -1;

	snap_name(offset, name);
	if (unlinkat(dir, SNAP_TMP, 0) < 0 && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno, "remove " SNAP_TMP);
	fd = io->open(io->arg, dir, SNAP_TMP, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0 || io->write(io->arg, fd, b->p, b->n, 0) < 0 || io->sync(io->arg, fd) < 0 ||
	    io->rename(io->arg, dir, SNAP_TMP, name) < 0 || io->sync_dir(io->arg, dir) < 0)
		return box_fail(err, BOX_ESYS, errno, "write the snapshot %s", name);
	return 0;
}

/* Keep the two newest. */
static int drop_old(int dir, const struct eng_io *io, struct eng_snap *out, struct box_err *err)
{
	uint64_t v[ENG_SNAPS_MAX];
	char name[WAL_NAME_MAX];
	size_t n;

	if (eng_snap_list(dir, v, &n, err) < 0)
		return -1;
	out->older = n > 1 ? v[1] : 0;
	for (size_t i = 2; i < n; i++) {
		snap_name(v[i], name);
		if (io->unlink(io->arg, dir, name) < 0 && errno != ENOENT)
			return box_fail(err, BOX_ESYS, errno, "remove %s", name);
	}
	return 0;
}

int eng_snap_drop_after(int dir, const struct eng_io *io, uint64_t n, struct box_err *err)
{
	uint64_t v[ENG_SNAPS_MAX];
	char name[WAL_NAME_MAX];
	size_t count;

	if (eng_snap_list(dir, v, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && v[i] > n; i++) {
		snap_name(v[i], name);
		if (io->unlink(io->arg, dir, name) < 0)
			return box_fail(err, BOX_ESYS, errno, "remove %s", name);
	}
	return 0;
}

/* Replay that stops at an offset. */
struct upto {
	struct eng_state *s;
	uint64_t upto;
};

static int replay_upto(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct upto *u = arg;

	return r->offset >= u->upto ? 0 : eng_state_replay(u->s, r, err);
}

int eng_snap_make(int dir, const struct eng_io *io, uint64_t upto, size_t max_tokens,
    struct eng_set *like, struct eng_snap *out, struct box_err *err)
{
	struct eng_state s;
	struct upto u = { &s, upto };
	struct wal_end end;
	AUTO_BUF b = buf_with(SNAP_MAX);
	int rc = -1;

	eng_state_init(&s, max_tokens);
	if (eng_snap_load(dir, &s, like, out, err) < 0)
		goto out;
	if (out->found && out->offset >= upto) {
		rc = 0;
		goto out;
	}
	if (wal_scan(dir, s.next, WAL_SCAN_LIVE, replay_upto, &u, &end, err) < 0)
		goto out;
	if (s.next != upto) {
		(void)box_fail(err, BOX_ECORRUPT, 0,
		    "the log files end at record %" PRIu64 ", %" PRIu64 " were written", s.next,
		    upto);
		goto out;
	}
	if (s.set == NULL) {
		rc = 0;
		goto out;
	}
	eng_state_save(&s, end.id, &b);
	if (!buf_ok(&b)) {
		(void)box_fail(err, BOX_ELIMIT, 0, "the snapshot is larger than 1 GiB");
		goto out;
	}
	if (write_file(dir, io, &b, upto, err) < 0 || drop_old(dir, io, out, err) < 0)
		goto out;
	out->found = true;
	out->offset = upto;
	rc = 0;
out:
	eng_state_fini(&s);
	return rc;
}
