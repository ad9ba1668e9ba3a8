/* dogwood fsck: is a store whole? Everything that opening checks, and what it does not: that
 * snapshots agree with the log byte for byte, and that each stored verdict is the one its
 * history gives. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "dogwood-cmd/cmd.h"
#include "engine/codec.h"
#include "engine/repair.h"
#include "engine/snapshot.h"
#include "engine/wal.h"

#include "base/ban.h"

static const char help_text[] =
    "Usage: dogwood fsck [OPTIONS] STORE\n\n"
    "Check a store that is not in use: every record, the chain of hashes, the snapshots against\n"
    "the log, and every stored verdict against the history before it.\n\n"
    "  -q, --quick         only what opening the store checks\n"
    "  -c, --cut N         give up record N and all after it. Acknowledged history is lost:\n"
    "                      rules that count it will count less. Make a copy first\n\n"
    "Examples:\n"
    "  dogwood fsck ~/boxes/oncall/private/history\n"
    "  dogwood fsck --cut 4711 ~/boxes/oncall/private/history\n\n"
    "Exit status: 0 whole (a torn, never acknowledged end is no damage), 2 damaged, 1 in use\n"
    "or unreadable.\n";

static const struct option options[] = { { "quick", no_argument, NULL, 'q' },
	{ "cut", required_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 } };

struct fsck {
	int dir;
	bool quick;
	struct eng_state s;
	struct dw_scratch *scratch;
	uint64_t snaps[ENG_SNAPS_MAX]; /* newest first */
	size_t nsnaps;
	uint64_t events, verdicts;
	uint8_t id[WAL_ID];
};

/* The snapshot at the present offset must be what the log adds up to. */
static int compare(struct fsck *f, struct box_err *err)
{
	AUTO_BUF a = buf_with((size_t)1 << 30);
	AUTO_BUF b = buf_with((size_t)1 << 30);
	struct eng_state other;
	uint8_t id[WAL_ID];

	for (size_t i = 0; i < f->nsnaps; i++) {
		if (f->snaps[i] != f->s.next || f->s.set == NULL)
			continue;
		eng_state_init(&other, f->s.tokens.max);
		if (eng_snap_load_at(f->dir, f->snaps[i], &other, f->s.set, id, err) < 0)
			return -1;
		/* How many tokens the store remembers is its user's choice. */
		eng_tokens_keep(&f->s.tokens, eng_tokens_count(&other.tokens));
		eng_state_save(&other, id, &a);
		eng_state_save(&f->s, id, &b);
		eng_state_fini(&other);
		if (!buf_ok(&a) || !buf_ok(&b))
			return box_nomem(err, "snapshots to compare");
		if (!sv_eq(buf_sv(&a), buf_sv(&b)))
			return box_fail(err, BOX_ECORRUPT, 0,
			    "the snapshot at record %" PRIu64 " is not what the log adds up to",
			    f->s.next);
	}
	return 0;
}

static int judge(struct fsck *f, const struct wal_rec *r, struct box_err *err)
{
	AUTO_ARENA a = { .limit = (size_t)64 << 20 };
	struct dw_decision d = { 0 };
	struct eng_stored s;
	struct dw_event e;
	size_t n;
	bool same;

	if (eng_event_get(r->body, &a, &e, NULL, &s, err) < 0)
		return -1;
	f->events++;
	if (s.cause == DOGWOOD_RECORDED)
		return 0;
	/* What the host said then is not known. */
	if (dw_set_has_providers(f->s.set->set))
		return 0;
	if (dw_decide(f->scratch, f->s.set->set, f->s.mon, &e, &d, err) < 0)
		return -1;
	f->verdicts++;
	/* A denial for want of memory is right, and not to be had again. */
	if (s.cause == DOGWOOD_FAULT && sv_eq(s.fault, SV(ENG_FAULT_NOMEM)))
		return 0;
	n = d.nrules < ENG_RULES_MAX ? d.nrules : ENG_RULES_MAX;
	same = s.cause == eng_cause_of(&d) && s.nrules == n;
	for (size_t i = 0; same && i < s.nrules; i++)
		same = s.rules[i] == d.rules[i];
	if (same)
		return 0;
	return box_fail(err, BOX_ECORRUPT, 0,
	    "record %" PRIu64 ": the stored verdict (%s) is not the one its history gives (%s)",
	    r->offset, eng_cause_name(s.cause), eng_cause_name(eng_cause_of(&d)));
}

static int on_record(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct fsck *f = arg;

	if (f->quick) {
		f->events += r->kind == WAL_EVENT;
		return 0;
	}
	if (eng_state_replay(&f->s, r, err) < 0)
		return -1;
	if (r->kind == WAL_EVENT && judge(f, r, err) < 0)
		return -1;
	return compare(f, err);
}

/* Where to begin: at the first record, or at the oldest snapshot when the beginning was dropped. */
static int begin(struct fsck *f, uint64_t *from, struct box_err *err)
{
	uint64_t *seg = NULL;
	size_t n;

	*from = 0;
	if (wal_seg_list(f->dir, &seg, &n, err) < 0)
		return -1;
	if (n == 0) {
		free(seg);
		return box_fail(err, BOX_ECONFIG, 0, "the folder holds no log");
	}
	*from = seg[0];
	free(seg);
	if (eng_snap_list(f->dir, f->snaps, &f->nsnaps, err) < 0)
		return -1;
	if (*from == 0 || f->quick)
		return 0;
	for (size_t i = f->nsnaps; i-- > 0;)
		if (f->snaps[i] >= *from) {
			*from = f->snaps[i];
			return eng_snap_load_at(f->dir, *from, &f->s, NULL, f->id, err);
		}
	return box_fail(err, BOX_ECORRUPT, 0,
	    "no usable snapshot and the log is pruned to offset %" PRIu64, *from);
}

/* A store does not open with another's snapshot. Unusable ones were judged before, or are passed
 * over at an open. */
static int owners(const struct fsck *f, const uint8_t store[WAL_ID], struct box_err *err)
{
	for (size_t i = 0; i < f->nsnaps; i++) {
		struct eng_state s;
		uint8_t id[WAL_ID];
		bool foreign;

		eng_state_init(&s, f->s.tokens.max);
		foreign = eng_snap_load_at(f->dir, f->snaps[i], &s, NULL, id, err) == 0 &&
		          memcmp(id, store, WAL_ID) != 0;
		eng_state_fini(&s);
		if (foreign)
			return box_fail(err, BOX_ECORRUPT, 0,
			    "the snapshot at record %" PRIu64 " belongs to another store",
			    f->snaps[i]);
	}
	return 0;
}

static int check(struct fsck *f, struct box_err *err)
{
	struct wal_end end;
	uint64_t from;

	if (begin(f, &from, err) < 0)
		return -1;
	/* The records before the oldest snapshot are checked as bytes. */
	if (!f->quick && from != 0 && f->s.set != NULL) {
		struct fsck bytes = { .quick = true };

		if (wal_scan(f->dir, 0, WAL_SCAN_LIVE, on_record, &bytes, &end, err) < 0)
			return -1;
	}
	if (wal_scan(f->dir, from, WAL_SCAN_OPEN, on_record, f, &end, err) < 0 ||
	    owners(f, end.id, err) < 0)
		return -1;
	printf("records %" PRIu64 " .. %" PRIu64 " in %u files, %" PRIu64 " acknowledged\n",
	    end.base, end.next, end.segments, end.durable);
	if (end.tail)
		printf("a torn end of %" PRIu64
		       " bytes, never acknowledged, will be cut at the next "
		       "open\n",
		    end.torn);
	printf("%zu snapshots, %" PRIu64 " events read, %" PRIu64 " verdicts judged again\n",
	    f->nsnaps, f->events, f->verdicts);
	return 0;
}

static int with_lock(struct wal *w, bool quick, const uint64_t *cut)
{
	struct fsck f = { .dir = wal_dir(w), .quick = quick };
	struct eng_io io = eng_io_system();
	struct box_err err = { 0 };
	int rc = CMD_OK;

	if (cut != NULL) {
		if (eng_cut(f.dir, &io, *cut, &err) < 0)
			return cmd_failed(&err);
		printf("record %" PRIu64 " and all after it are gone\n", *cut);
	}
	eng_state_init(&f.s, 65536);
	f.scratch = dw_scratch_new(&err);
	if (f.scratch == NULL || check(&f, &err) < 0)
		rc = cmd_failed(&err);
	else
		printf("OK\n");
	dw_scratch_free(f.scratch);
	eng_state_fini(&f.s);
	return rc;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	struct wal_conf c = { .seg_bytes = WAL_SEG_MIN, .io = eng_io_system() };
	struct box_err err = { 0 };
	bool quick = false, cutting = false;
	uint64_t cut = 0;
	struct wal *w;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "hqc:", options, NULL)) != -1) {
		if (opt == 'q')
			quick = true;
		else if (opt != 'c')
			return cmd_usage(self, opt);
		else if (!sv_to_u64(sv_c(optarg), 10, UINT64_MAX, &cut))
			return cmd_error("--cut wants the number of a record, not `%s`", optarg);
		else
			cutting = true;
	}
	if (optind + 1 != argc)
		return cmd_error("one store is needed; try `dogwood fsck --help`");
	c.path = argv[optind];
	if (access(c.path, F_OK) < 0)
		return cmd_error("%s: %s", c.path, box_strerror(errno));
	if (wal_open(&c, &w, &err) < 0)
		return cmd_failed(&err);
	rc = with_lock(w, quick, cutting ? &cut : NULL);
	wal_close(w);
	return rc;
}

const struct cmd cmd_fsck = { "fsck", "check a store, or cut a damaged one", help_text, run };
