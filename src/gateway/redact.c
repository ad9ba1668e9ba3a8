/* redact: see redact.h. Invariant: `held` is always a proper prefix of some secret. */
#include "gateway/redact.h"

#include "base/ban.h"

void redact_init(struct redact *r)
{
	memset(r, 0, sizeof(*r));
	r->held = buf_with(2 * (size_t)REDACT_LENGTH + ((size_t)1 << 20));
}

void redact_fini(struct redact *r)
{
	for (size_t i = 0; i < r->n; i++)
		buf_fini(&r->secret[i]);
	buf_fini(&r->held);
	r->n = 0;
}

int redact_add(struct redact *r, sv secret)
{
	struct buf *b;

	if (secret.n == 0)
		return 0;
	if (r->n == REDACT_MAX || secret.n > REDACT_LENGTH)
		return -1;
	b = &r->secret[r->n++];
	*b = buf_with(REDACT_LENGTH);
	buf_put_sv(b, secret);
	return buf_ok(b) ? 0 : -1;
}

/* The secret that begins earliest in s; of several at one place the longest. -1: none. */
static ptrdiff_t find_first(const struct redact *r, sv s, size_t *len)
{
	ptrdiff_t best = -1;

	for (size_t i = 0; i < r->n; i++) {
		ptrdiff_t at = sv_find_sv(s, buf_sv(&r->secret[i]));

		if (at >= 0 && (best < 0 || at < best || (at == best && r->secret[i].n > *len))) {
			best = at;
			*len = r->secret[i].n;
		}
	}
	return best;
}

/* Length of the longest end of s that is a proper beginning of a secret. */
static size_t open_end(const struct redact *r, sv s)
{
	size_t best = 0;

	for (size_t i = 0; i < r->n; i++) {
		sv secret = buf_sv(&r->secret[i]);
		size_t n = secret.n - 1 < s.n ? secret.n - 1 : s.n;

		for (; n > best; n--) {
			if (sv_eq(sv_sub(s, s.n - n, n), sv_sub(secret, 0, n)))
				best = n;
		}
	}
	return best;
}

/* Everything of s but the last `keep` bytes that may still grow into a secret; returns how many
 * were kept. */
static size_t put_clean(const struct redact *r, sv s, bool last, struct buf *out)
{
	ptrdiff_t at;
	size_t len = 0, keep;

	while ((at = find_first(r, s, &len)) >= 0) {
		buf_put_sv(out, sv_sub(s, 0, (size_t)at));
		buf_put_c(out, REDACT_TEXT);
		s = sv_sub(s, (size_t)at + len, s.n);
	}
	keep = last ? 0 : open_end(r, s);
	buf_put_sv(out, sv_sub(s, 0, s.n - keep));
	return keep;
}

int redact_feed(struct redact *r, sv in, struct buf *out)
{
	size_t keep;

	if (r->n == 0) {
		buf_put_sv(out, in);
		return buf_ok(out) ? 0 : -1;
	}
	if (r->held.n == 0) {
		keep = put_clean(r, in, false, out);
		buf_put_sv(&r->held, sv_sub(in, in.n - keep, keep));
	} else {
		buf_put_sv(&r->held, in);
		if (!buf_ok(&r->held))
			return -1;
		keep = put_clean(r, buf_sv(&r->held), false, out);
		buf_drop(&r->held, r->held.n - keep);
	}
	return buf_ok(out) && buf_ok(&r->held) ? 0 : -1;
}

int redact_end(struct redact *r, struct buf *out)
{
	(void)put_clean(r, buf_sv(&r->held), true, out);
	buf_clear(&r->held);
	return buf_ok(out) ? 0 : -1;
}

int redact_whole(const struct redact *r, sv in, struct buf *out)
{
	(void)put_clean(r, in, true, out);
	return buf_ok(out) ? 0 : -1;
}
