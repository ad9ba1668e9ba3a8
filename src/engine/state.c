/* What the records of a log add up to. See state.h.
 *
 * Snapshot file, big-endian: magic "DWSNAP\r\n", u32 version, u32 CRC-32C of all that follows,
 * store id, u64 next offset, i64 newest stamp, str policy change (change.h), u32 n tokens { str
 * token, str verdict, u64 offset, i64 stamp, u8 judged by this set }, monitors (dwm_save) to the
 * end. */
#include "engine/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rd.h"
#include "engine/change.h"
#include "engine/codec.h"

#include "base/ban.h"

#define SNAP_MAGIC   SV("DWSNAP\r\n")
#define SNAP_VERSION 1
#define SNAP_HEAD    16 /* magic, version, check sum */
#define ARENA_BYTES  ((size_t)64 << 20)

void eng_state_init(struct eng_state *s, size_t max_tokens)
{
	*s = (struct eng_state){ .last_ts = -1, .arena = { .limit = ARENA_BYTES } };
	eng_tokens_init(&s->tokens, max_tokens);
}

void eng_state_fini(struct eng_state *s)
{
	eng_tokens_fini(&s->tokens);
	if (s->mon != NULL)
		dwm_free(s->mon);
	eng_set_unref(s->set);
	arena_free(&s->arena);
	s->mon = NULL;
	s->set = NULL;
}

/* Each old rule at most once: two rules cannot go on with one history. */
static int check_map(
    const struct eng_state *s, const struct eng_set *set, const int32_t *map, struct box_err *err)
{
	bool *used = calloc(s->set->n + 1, sizeof(*used));
	bool ok = true;

	if (used == NULL)
		return box_nomem(err, "a policy change");
	for (size_t i = 0; i < set->n && ok; i++) {
		if (map[i] < 0)
			continue;
		ok = (size_t)map[i] < s->set->n && !used[map[i]];
		if (ok)
			used[map[i]] = true;
	}
	free(used);
	return ok ? 0
	          : box_fail(
	                err, BOX_ECORRUPT, 0, "a policy change continues a rule that is not there");
}

int eng_state_adopt(struct eng_state *s, struct eng_set *set, const int32_t *map, unsigned *kept,
    struct box_err *err)
{
	struct dwm *mon;

	if (kept != NULL)
		*kept = 0;
	if (s->set == NULL || map == NULL) {
		mon = dwm_new(set->set, DWM_MONOTONE, err);
	} else {
		if (check_map(s, set, map, err) < 0)
			return -1;
		mon = dwm_transfer(s->mon, set->set, map, err);
		if (mon != NULL && kept != NULL)
			*kept = (unsigned)dwm_retained(s->mon, set->set, map);
	}
	if (mon == NULL)
		return -1;
	if (s->mon != NULL)
		dwm_free(s->mon);
	eng_set_unref(s->set);
	s->mon = mon;
	s->set = set;
	return 0;
}

static int replay_event(struct eng_state *s, const struct wal_rec *r, struct box_err *err)
{
	struct dw_event ev;
	sv token, verdict;

	if (s->set == NULL)
		return box_fail(err, BOX_ECORRUPT, 0, "an event stands before any policy set");
	arena_reset(&s->arena);
	if (eng_event_lean(r->body, &s->arena, &ev, &token, &verdict, err) < 0)
		return -1;
	if (ev.ts != r->ts)
		return box_fail(
		    err, BOX_ECORRUPT, 0, "the event has another stamp than its record");
	if (dwm_step(s->mon, &ev, err) < 0)
		return -1;
	s->events++;
	if (token.n == 0)
		return 0;
	return eng_tokens_add(&s->tokens, token, verdict, s->set, r->offset, r->ts, err);
}

static int replay_install(struct eng_state *s, const struct wal_rec *r, struct box_err *err)
{
	struct eng_set *set;
	int32_t *map;

	if (eng_change_get(r->body, &set, &map, err) < 0)
		return -1;
	if (eng_state_adopt(s, set, map, NULL, err) < 0) {
		eng_set_unref(set);
		return -1;
	}
	return 0;
}

int eng_state_replay(void *state, const struct wal_rec *r, struct box_err *err)
{
	struct eng_state *s = state;
	int64_t last, now;
	int rc;

	if (r->offset != s->next)
		rc = box_fail(err, BOX_ECORRUPT, 0, "record %" PRIu64 " is missing", s->next);
	else if (r->ts <= s->last_ts)
		rc = box_fail(err, BOX_ECORRUPT, 0, "timestamps are not in durable order");
	else if (r->kind == WAL_EVENT)
		rc = replay_event(s, r, err);
	else if (r->kind == WAL_INSTALL)
		rc = replay_install(s, r, err);
	else if (r->kind == WAL_CLOCK)
		rc = eng_clock_get(r->body, &last, &now, err);
	else
		rc = box_fail(err, BOX_ECORRUPT, 0, "a record of unknown kind %u", r->kind);
	if (rc < 0)
		return box_wrap(err, "replay of record %" PRIu64, r->offset);
	s->last_ts = r->ts;
	s->next = r->offset + 1;
	return 0;
}

static void put32_at(struct buf *b, size_t at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b->p[at + (size_t)i] = (uint8_t)(v >> (24 - 8 * i));
}

void eng_state_save(const struct eng_state *s, const uint8_t id[WAL_ID], struct buf *out)
{
	size_t at;

	buf_put_sv(out, SNAP_MAGIC);
	buf_put_u32(out, SNAP_VERSION);
	buf_put_u32(out, 0);
	buf_put(out, id, WAL_ID);
	buf_put_u64(out, s->next);
	buf_put_u64(out, (uint64_t)s->last_ts);
	at = out->n;
	buf_put_u32(out, 0);
	eng_change_put(out, s->set, NULL);
	if (buf_ok(out))
		put32_at(out, at, (uint32_t)(out->n - at - 4));
	buf_put_u32(out, (uint32_t)eng_tokens_count(&s->tokens));
	for (size_t i = 0; i < eng_tokens_room(&s->tokens); i++) {
		const struct eng_token *k = eng_tokens_at(&s->tokens, i);

		if (k == NULL)
			continue;
		buf_put_str(out, (sv){ k->text, k->ntoken });
		buf_put_str(out, (sv){ k->text + k->ntoken, k->nverdict });
		buf_put_u64(out, k->offset);
		buf_put_u64(out, (uint64_t)k->ts);
		buf_put_byte(out, k->set == s->set);
	}
	dwm_save(s->mon, out);
	if (buf_ok(out))
		put32_at(out, 12, crc32c(0, sv_sub(buf_sv(out), SNAP_HEAD, SIZE_MAX)));
}

static int load_tokens(struct eng_state *s, struct rd *r, struct box_err *err)
{
	for (uint32_t n = rd_u32(r); n != 0 && !r->bad; n--) {
		sv token = rd_str(r, DOGWOOD_TOKEN_MAX), verdict = rd_str(r, DOGWOOD_EVENT_MAX);
		uint64_t offset = rd_u64(r);
		int64_t ts = (int64_t)rd_u64(r);
		bool ours = rd_u8(r) != 0;

		if (!r->bad && eng_tokens_find(&s->tokens, token) == NULL &&
		    eng_tokens_add(
		        &s->tokens, token, verdict, ours ? s->set : NULL, offset, ts, err) < 0)
			return -1;
	}
	return 0;
}

static int load_set(struct eng_state *s, sv body, struct eng_set *like, struct box_err *err)
{
	AUTO_BUF same = buf_with(WAL_BODY_MAX);
	int32_t *map;

	if (like != NULL) {
		eng_change_put(&same, like, NULL);
		if (buf_ok(&same) && sv_eq(buf_sv(&same), body)) {
			s->set = eng_set_ref(like);
			return 0;
		}
	}
	return eng_change_get(body, &s->set, &map, err);
}

int eng_state_load(
    struct eng_state *s, sv bytes, struct eng_set *like, uint8_t id[WAL_ID], struct box_err *err)
{
	struct rd r = rd_of(bytes.p, bytes.n);
	sv magic = rd_bytes(&r, SNAP_MAGIC.n), store, body;
	uint32_t version = rd_u32(&r), crc = rd_u32(&r);

	if (r.bad || !sv_eq(magic, SNAP_MAGIC))
		return box_fail(err, BOX_ECORRUPT, 0, "not a snapshot");
	if (version != SNAP_VERSION)
		return box_fail(err, BOX_ECORRUPT, 0, "written by another version of the format");
	if (crc != crc32c(0, sv_sub(bytes, SNAP_HEAD, SIZE_MAX)))
		return box_fail(err, BOX_ECORRUPT, 0, "the check sum is wrong");
	store = rd_bytes(&r, WAL_ID);
	s->next = rd_u64(&r);
	s->last_ts = (int64_t)rd_u64(&r);
	body = rd_str(&r, WAL_BODY_MAX);
	if (r.bad)
		return box_fail(err, BOX_ECORRUPT, 0, "cut short");
	memcpy(id, store.p, WAL_ID);
	if (load_set(s, body, like, err) < 0 || load_tokens(s, &r, err) < 0)
		return -1;
	s->mon = dwm_load(s->set->set, &r, err);
	if (s->mon == NULL)
		return -1;
	if (!rd_done(&r))
		return box_fail(err, BOX_ECORRUPT, 0, "something follows the monitors");
	if (dwm_last_ts(s->mon) > s->last_ts)
		return box_fail(
		    err, BOX_ECORRUPT, 0, "its stamp is older than restored engine state");
	return 0;
}
