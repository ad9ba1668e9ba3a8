/* A store that was damaged, or changed by somebody who can compute check sums: the files of a good
 * one (two log segments, a snapshot, the mark), some of their bytes replaced, then, as the input
 * says, the chain of hashes made right again. It opens or is refused with a reason; what opens goes
 * on, closes, and opens again with all of its records; `dogwood log` and `dogwood fsck` end.
 *
 * Input: u8 of bits (1 mend the chain, 2 mend the snapshot's sum, 4 fsck with --cut, 8 and 16 look
 * into the log, 32 fsck); then any number of { u8 file, u8 what, u24 place, u8 value }. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "dogwood-cmd/cmd.h"
#include "engine/engine.h"
#include "engine/scan.h"
#include "engine/snapshot.h"

#include "base/ban.h"

#define CHECK(x)  ((x) ? (void)0 : abort())
#define FILES_MAX 8
#define SNAP_HEAD 16 /* magic, version, check sum */

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

/* What the programs say is of no interest here. */
int cmd_error(const char *fmt, ...)
{
	(void)fmt;
	return CMD_USAGE;
}

int cmd_failed(const struct box_err *err)
{
	CHECK(err->code != BOX_OK && err->msg[0] != '\0');
	return CMD_REFUSED;
}

int cmd_usage(const struct cmd *self, int opt)
{
	(void)self;
	(void)opt;
	return CMD_USAGE;
}

int cmd_print(const struct buf *b)
{
	return buf_ok(b) ? CMD_OK : CMD_USAGE;
}

struct file {
	char name[32];
	struct buf bytes;
};

static struct {
	char path[32];
	int64_t now;
	struct file good[FILES_MAX];
	size_t n;
} world = { .path = "/dev/shm/store-fuzz-XXXXXX", .now = 1 };

static int64_t now_of(void *arg)
{
	(void)arg;
	return world.now += 1000;
}

static dogwood_engine *open_store(struct dogwood_error *err)
{
	struct dogwood_options o;
	dogwood_engine *e = NULL;

	dogwood_options_init(&o);
	o.path = world.path;
	o.now_ns = now_of;
	o.max_future_skew_ns = INT64_MAX;
	o.segment_bytes = 64 * 1024;
	o.snapshot_events = 0;
	o.token_events = 4;
	return dogwood_engine_open(&o, &e, err) == 0 ? e : NULL;
}

static int submit(dogwood_engine *e, int i, size_t fill, struct dogwood_error *err)
{
	static char text[16384];
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	char token[16];
	int r;

	CHECK(ev != NULL && v != NULL && fill <= sizeof(text));
	(void)snprintf(token, sizeof(token), "t%d", i);
	memset(text, 'x', sizeof(text));
	dogwood_event_action(ev, dogwood_cstr("N::Action::\"A\""), dogwood_cstr("request"));
	dogwood_event_principal(ev, dogwood_cstr("N::U::\"u\""));
	dogwood_event_resource(ev, dogwood_cstr("N::R::\"r\""));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.u", (dogwood_str){ text, fill });
	r = dogwood_submit(e, ev, dogwood_cstr(i % 2 != 0 ? token : ""), v, err);
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return r;
}

static void install(dogwood_engine *e)
{
	static const char policy[] =
	    "permit (principal, action, resource);\n"
	    "forbid (principal, action, resource) when temporal { (count for (t: Timepoint). where "
	    "(formerly within 1h (N::Action::\"A\"::request{ input.u: context.input.u } && "
	    "tp(t)))) > 3 };\n";
	struct dogwood_source src = { dogwood_cstr("p"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src, .n_policies = 1 };

	set.event_schema = (struct dogwood_source){ dogwood_cstr("e"),
		dogwood_cstr("decision event <A>::request { ...inputs(A) }") };
	CHECK(dogwood_engine_install(e, &set, NULL, NULL, NULL) == 0);
}

static void empty(void)
{
	DIR *d = opendir(world.path);
	struct dirent *de;

	CHECK(d != NULL);
	while ((de = readdir(d)) != NULL)
		if (de->d_name[0] != '.')
			(void)unlinkat(dirfd(d), de->d_name, 0);
	(void)closedir(d);
}

static void clean_up(void)
{
	empty();
	(void)rmdir(world.path);
}

/* The good store, read into memory; in the order of names, so that numbers mean the same. */
static void remember(void)
{
	struct dirent **v;
	int n = scandir(world.path, &v, NULL, alphasort);
	char path[96];

	for (int i = 0; i < n; i++) {
		struct file *f = &world.good[world.n];

		if (v[i]->d_name[0] != '.' && strlen(v[i]->d_name) < sizeof(f->name) &&
		    strcmp(v[i]->d_name, "lock") != 0) {
			CHECK(++world.n < FILES_MAX);
			(void)snprintf(f->name, sizeof(f->name), "%.31s", v[i]->d_name);
			(void)snprintf(path, sizeof(path), "%s/%s", world.path, f->name);
			f->bytes = buf_with(1 << 20);
			CHECK(fd_read_file(path, 1 << 20, &f->bytes, NULL) == 0);
		}
		free(v[i]);
	}
	free(v);
}

static void begin(void)
{
	struct dogwood_error err;
	dogwood_engine *e;

	CHECK(mkdtemp(world.path) != NULL && atexit(clean_up) == 0);
	(void)freopen("/dev/null", "w", stdout); /* fsck prints there */
	e = open_store(&err);
	CHECK(e != NULL);
	install(e);
	for (int i = 0; i < 14; i++) {
		CHECK(submit(e, i, i % 3 == 0 ? 12000 : (size_t)i, &err) == 0);
		if (i == 4 || i == 8)
			CHECK(dogwood_engine_checkpoint(e, &err) == 0);
	}
	CHECK(dogwood_engine_close(e, &err) == 0);
	remember();
}

/* Give every record of a segment the hash of the one before it and its check sum. */
static void mend(struct buf *b, struct wal_hasher *h, uint8_t chain[WAL_HASH], bool first)
{
	struct wal_seg seg;
	struct wal_rec r;
	const char *why;
	uint32_t seed;

	if (b->n < WAL_SEG_HDR)
		return;
	memcpy(seg.id, b->p + 16, WAL_ID);
	seg.first = 0;
	for (size_t i = 0; i < 8; i++)
		seg.first = seg.first << 8 | b->p[32 + i];
	seg.size = b->n;
	memcpy(seg.prev, first ? b->p + 48 : chain, WAL_HASH);
	wal_seg_put(b->p, &seg);
	CHECK(wal_seg_get(sv_sub(buf_sv(b), 0, WAL_SEG_HDR), &seg, &why) == 0);
	seed = wal_seed(seg.id);
	memcpy(chain, seg.prev, WAL_HASH);
	for (size_t at = WAL_SEG_HDR; at + WAL_REC_HDR < b->n;) {
		AUTO_BUF again = buf_with(1 << 20);
		uint32_t len = (uint32_t)b->p[at] << 24 | (uint32_t)b->p[at + 1] << 16 |
		               (uint32_t)b->p[at + 2] << 8 | b->p[at + 3];

		if (len == 0 || len > b->n || at + wal_rec_size(len) > b->n)
			return;
		wal_rec_view(sv_sub(buf_sv(b), at, wal_rec_size(len)), &r);
		r.prev = chain;
		wal_rec_put(&again, seed, &r);
		CHECK(buf_ok(&again) && again.n == wal_rec_size(len));
		memcpy(b->p + at, again.p, again.n);
		CHECK(wal_hash(h, buf_sv(&again), chain) == 0);
		at += again.n;
	}
}

static void mend_snapshot(struct buf *b)
{
	uint32_t crc;

	if (b->n <= SNAP_HEAD)
		return;
	crc = crc32c(0, sv_sub(buf_sv(b), SNAP_HEAD, b->n));
	for (size_t i = 0; i < 4; i++)
		b->p[SNAP_HEAD - 4 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

/* One piece of damage. */
static void damage(struct file *f, uint8_t what, size_t place, uint8_t value)
{
	struct buf *b = &f->bytes;
	size_t at = b->n != 0 ? place % b->n : 0;

	switch (what % 8) {
	case 0:
		b->n = at;
		break;
	case 1:
		if (b->n != 0)
			memset(b->p + at, 0, b->n - at);
		break;
	case 2:
		f->name[0] = '\0';
		break;
	case 3: /* another number */
		if (strlen(f->name) > 5)
			f->name[strlen(f->name) - 1] = "0123456789abcdef"[value % 16];
		break;
	default:
		if (b->n != 0)
			b->p[at] = value;
	}
}

static void write_store(const struct file *v)
{
	char path[96];

	empty();
	for (size_t i = 0; i < world.n; i++) {
		AUTO_FD fd = -1;

		if (v[i].name[0] == '\0')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", world.path, v[i].name);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		CHECK(fd >= 0 && fd_write_full(fd, v[i].bytes.p, v[i].bytes.n) == 0);
	}
}

static int tool(const struct cmd *c, const char *option, const char *value)
{
	char name[] = "dogwood", *argv[5] = { name, NULL };
	int argc = 1, r;

	optind = 0; /* from the beginning, says getopt_long(3) */
	if (option != NULL)
		argv[argc++] = (char *)option;
	if (value != NULL)
		argv[argc++] = (char *)value;
	argv[argc++] = world.path;
	r = c->run(c, argc, argv);
	CHECK(r == CMD_OK || r == CMD_USAGE || r == CMD_REFUSED);
	return r;
}

/* What opens goes on, and is there again at the next open. */
static void use(bool whole)
{
	struct dogwood_status st = { .size = sizeof(st) }, again = { .size = sizeof(again) };
	struct dogwood_error err = { 0 };
	dogwood_engine *e = open_store(&err);
	int r;

	if (e == NULL) {
		CHECK(err.code != DOGWOOD_OK && err.msg[0] != '\0' && !whole);
		return;
	}
	r = submit(e, 99, 20, &err);
	CHECK(dogwood_engine_status(e, &st, NULL) == 0);
	if (r == 0)
		CHECK(dogwood_engine_checkpoint(e, &err) == 0);
	CHECK(dogwood_engine_close(e, &err) == 0);
	e = open_store(&err);
	if (st.last_ts_ns == INT64_MAX) {
		(void)dogwood_engine_close(e, NULL); /* the end of time: it need not open */
		return;
	}
	CHECK(e != NULL && dogwood_engine_status(e, &again, NULL) == 0);
	CHECK(again.next_offset == st.next_offset && again.rules == st.rules);
	CHECK(dogwood_engine_close(e, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct file v[FILES_MAX] = { 0 };
	struct rd in = rd_of(d, n);
	uint8_t how = rd_u8(&in), chain[WAL_HASH] = { 0 };
	struct wal_hasher h;
	bool first = true, whole;

	if (world.n == 0)
		begin();
	for (size_t i = 0; i < world.n; i++) {
		v[i] = world.good[i];
		v[i].bytes = buf_with(1 << 20);
		buf_put_sv(&v[i].bytes, buf_sv(&world.good[i].bytes));
	}
	for (int i = 0; i < 32 && rd_left(&in) >= 6; i++) {
		struct file *f = &v[rd_u8(&in) % world.n];
		uint8_t what = rd_u8(&in), high = rd_u8(&in);
		size_t place = (size_t)high << 16 | rd_u16(&in);

		damage(f, what, place, rd_u8(&in));
	}
	CHECK(wal_hasher_init(&h, NULL) == 0);
	for (size_t i = 0; i < world.n; i++) {
		if (strncmp(v[i].name, "log-", 4) == 0 && (how & 1) != 0) {
			mend(&v[i].bytes, &h, chain, first);
			first = false;
		}
		if (strncmp(v[i].name, "snap-", 5) == 0 && (how & 2) != 0)
			mend_snapshot(&v[i].bytes);
	}
	wal_hasher_fini(&h);
	write_store(v);
	if ((how & 16) != 0)
		(void)tool(&cmd_log, (how & 8) != 0 ? "-j" : NULL, NULL);
	whole = (how & 32) != 0 && tool(&cmd_fsck, NULL, NULL) == CMD_OK;
	if ((how & 4) != 0 && tool(&cmd_fsck, "-c", "9") == CMD_OK)
		whole = true;
	use(whole);
	for (size_t i = 0; i < world.n; i++)
		buf_fini(&v[i].bytes);
	return 0;
}
