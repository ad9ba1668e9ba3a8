/* Cutting a damaged store. See repair.h. */
#include "engine/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/snapshot.h"

#include "base/ban.h"

struct find {
	uint64_t n;
	uint64_t pos;   /* of record n in its segment: the sum of the sizes before it */
	uint64_t first; /* of the segment that is being read */
	const uint64_t *seg;
	size_t nseg;
	bool found;
};

static int on_record(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct find *f = arg;

	if (r->offset == f->n)
		return box_fail(err, BOX_OK, 0, "found"); /* stops the scan */
	for (size_t i = 0; i < f->nseg; i++)
		if (f->seg[i] == r->offset) {
			f->first = r->offset;
			f->pos = WAL_SEG_HDR;
		}
	f->pos += r->whole.n;
	f->found = r->offset + 1 == f->n;
	return 0;
}

/* Zeros from pos to the end of the segment that begins with record `first`. */
static int blank(
    int dir, const struct eng_io *io, uint64_t first, uint64_t pos, struct box_err *err)
{
	static const uint8_t zero[65536];
	char name[WAL_NAME_MAX];
	struct stat st;
	AUTO_FD fd = -1;

	wal_seg_name(first, name);
	fd = io->open(io->arg, dir, name, O_RDWR | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", name);
	while (pos < (uint64_t)st.st_size) {
		size_t n = (uint64_t)st.st_size - pos < sizeof(zero)
		               ? (size_t)((uint64_t)st.st_size - pos)
		               : sizeof(zero);

		if (io->write(io->arg, fd, zero, n, (off_t)pos) < 0)
			return box_fail(err, BOX_ESYS, errno, "write %s", name);
		pos += n;
	}
	if (io->sync(io->arg, fd) < 0)
		return box_fail(err, BOX_ESYS, errno, "sync %s", name);
	return 0;
}

static int drop(int dir, const struct eng_io *io, const char *name, struct box_err *err)
{
	if (io->unlink(io->arg, dir, name) < 0 && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno, "remove %s", name);
	return 0;
}

int eng_cut(int dir, const struct eng_io *io, uint64_t n, struct box_err *err)
{
	struct find f = { .n = n, .pos = WAL_SEG_HDR };
	struct wal_end end;
	struct box_err stop = { 0 };
	char name[WAL_NAME_MAX];
	uint64_t *seg = NULL;
	int rc = -1;

	if (wal_seg_list(dir, &seg, &f.nseg, err) < 0)
		return -1;
	f.seg = seg;
	if (f.nseg == 0 || n <= seg[0]) {
		(void)box_fail(err, BOX_ECONFIG, 0, "the log has no record before %" PRIu64, n);
		goto out;
	}
	/* Damage at n is why we are here: only what is before it must be good. */
	if (wal_scan(dir, seg[0], WAL_SCAN_OPEN, on_record, &f, &end, &stop) == 0 && !f.found) {
		(void)box_fail(err, BOX_ECONFIG, 0, "the log ends at record %" PRIu64, end.next);
		goto out;
	}
	if (!f.found) {
		*err = stop;
		goto out;
	}
	/* Newest first, so that an interruption leaves a log without gaps. */
	for (size_t i = f.nseg; i-- > 0;) {
		if (seg[i] < n)
			break;
		wal_seg_name(seg[i], name);
		if (drop(dir, io, name, err) < 0)
			goto out;
	}
	if (eng_snap_drop_after(dir, io, n, err) < 0 || drop(dir, io, WAL_MARK, err) < 0 ||
	    blank(dir, io, f.first, f.pos, err) < 0)
		goto out;
	if (io->sync_dir(io->arg, dir) < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "sync the store");
		goto out;
	}
	rc = 0;
out:
	free(seg);
	return rc;
}
