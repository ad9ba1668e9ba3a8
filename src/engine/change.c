/* Policy changes. See change.h. */
#include "engine/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/rd.h"

#include "base/ban.h"

#define CHANGE_VERSION 1
#define ENTRY_MIN      (4 + 8 + 8 + 8 + 4) /* bytes of an entry at least */

int eng_token_mint(char out[ENG_POLICY_TOKEN + 1], struct box_err *err)
{
	static const char digit[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	unsigned __int128 v;

	if (getrandom(&v, sizeof(v), 0) != (ssize_t)sizeof(v))
		return box_fail(err, BOX_ESYS, errno, "choose a policy token");
	out[0] = 'S';
	out[1] = 'P';
	/* 62 to the power of 22 is more than 2 to the power of 128. */
	for (size_t i = 2; i < ENG_POLICY_TOKEN; i++) {
		out[i] = digit[(size_t)(v % 62)];
		v /= 62;
	}
	out[ENG_POLICY_TOKEN] = '\0';
	return 0;
}

ptrdiff_t eng_entry_find(const struct eng_set *s, sv token)
{
	for (size_t i = 0; i < s->n; i++)
		if (sv_eq(sv_c(s->entries[i].token), token))
			return (ptrdiff_t)i;
	return -1;
}

int eng_entries_follow(struct eng_set *now, const struct eng_set *old, const int32_t *map,
    int64_t ts, struct box_err *err)
{
	now->entries = ARENA_VEC(&now->a, struct eng_entry, now->n);
	if (now->entries == NULL)
		return box_nomem(err, "a policy set");
	now->next_ordinal = old != NULL ? old->next_ordinal : 0;
	for (size_t i = 0; i < now->n; i++) {
		struct eng_entry *e = &now->entries[i];

		if (old != NULL && map != NULL && map[i] >= 0) {
			const struct dw_rule *was = dw_set_rule(old->set, (size_t)map[i]);

			*e = old->entries[map[i]];
			if (!sv_eq(was->statement, dw_set_rule(now->set, i)->statement))
				e->updated = ts;
			continue;
		}
		if (now->next_ordinal == UINT64_MAX)
			return box_fail(err, BOX_ELIMIT, 0, "policy ordinal space exhausted");
		*e = (struct eng_entry){
			.ordinal = now->next_ordinal++, .created = ts, .updated = ts
		};
		if (eng_token_mint(e->token, err) < 0)
			return -1;
	}
	return 0;
}

void eng_change_put(struct buf *b, const struct eng_set *s, const int32_t *map)
{
	buf_put_byte(b, CHANGE_VERSION);
	buf_put_str(b, buf_sv(&s->body));
	buf_put_u64(b, s->next_ordinal);
	buf_put_u32(b, (uint32_t)s->n);
	for (size_t i = 0; i < s->n; i++) {
		buf_put_str(b, sv_c(s->entries[i].token));
		buf_put_u64(b, s->entries[i].ordinal);
		buf_put_u64(b, (uint64_t)s->entries[i].created);
		buf_put_u64(b, (uint64_t)s->entries[i].updated);
		buf_put_u32(b, map != NULL && map[i] >= 0 ? (uint32_t)map[i] + 1 : 0);
	}
}

static int damaged(struct box_err *err)
{
	return box_fail(
	    err, BOX_ECORRUPT, 0, "a policy change does not have the form it must have");
}

static int get_head(struct rd *r, sv *sources, struct box_err *err)
{
	uint8_t version = rd_u8(r);

	*sources = rd_str(r, ENG_SOURCES_BYTES);
	return r->bad || version != CHANGE_VERSION ? damaged(err) : 0;
}

int eng_change_sources(sv body, sv *out, struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);

	return get_head(&r, out, err);
}

static int get_entries(struct rd *r, struct eng_set *s, int32_t **map, struct box_err *err)
{
	uint32_t n;

	s->next_ordinal = rd_u64(r);
	n = rd_u32(r);
	if (r->bad || n != s->n || n > rd_left(r) / ENTRY_MIN)
		return damaged(err);
	s->entries = ARENA_VEC(&s->a, struct eng_entry, n);
	*map = ARENA_VEC(&s->a, int32_t, n);
	if (s->entries == NULL || *map == NULL)
		return box_nomem(err, "a policy set");
	for (uint32_t i = 0; i < n; i++) {
		struct eng_entry *e = &s->entries[i];
		sv token = rd_str(r, ENG_POLICY_TOKEN);
		uint32_t from;

		if (token.n != ENG_POLICY_TOKEN)
			return damaged(err);
		memcpy(e->token, token.p, token.n);
		e->ordinal = rd_u64(r);
		e->created = (int64_t)rd_u64(r);
		e->updated = (int64_t)rd_u64(r);
		from = rd_u32(r);
		if (r->bad || from > INT32_MAX || e->ordinal >= s->next_ordinal)
			return damaged(err);
		(*map)[i] = (int32_t)from - 1;
	}
	return rd_done(r) ? 0 : damaged(err);
}

int eng_change_get(sv body, struct eng_set **out, int32_t **map, struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);
	struct eng_set *s;
	sv sources;

	if (get_head(&r, &sources, err) < 0 || eng_set_decode(sources, &s, err) < 0)
		return -1;
	if (get_entries(&r, s, map, err) < 0) {
		eng_set_unref(s);
		return -1;
	}
	*out = s;
	return 0;
}
