/* Calls of extension functions and methods on values, and `like`. Spec 3.2, 3.3. */
#include "cedar/prog.h"

#include "base/ban.h"

/* Argument kinds by function; a receiver is the first argument. */
static const struct {
	uint8_t n;
	enum cedar_kind arg[2];
} sig[CEDAR_X_COUNT] = {
	[CEDAR_X_DECIMAL] = { 1, { CEDAR_STRING } },
	[CEDAR_X_LESS_THAN] = { 2, { CEDAR_DECIMAL, CEDAR_DECIMAL } },
	[CEDAR_X_LESS_THAN_OR_EQUAL] = { 2, { CEDAR_DECIMAL, CEDAR_DECIMAL } },
	[CEDAR_X_GREATER_THAN] = { 2, { CEDAR_DECIMAL, CEDAR_DECIMAL } },
	[CEDAR_X_GREATER_THAN_OR_EQUAL] = { 2, { CEDAR_DECIMAL, CEDAR_DECIMAL } },
	[CEDAR_X_IP] = { 1, { CEDAR_STRING } },
	[CEDAR_X_IS_IPV4] = { 1, { CEDAR_IP } },
	[CEDAR_X_IS_IPV6] = { 1, { CEDAR_IP } },
	[CEDAR_X_IS_LOOPBACK] = { 1, { CEDAR_IP } },
	[CEDAR_X_IS_MULTICAST] = { 1, { CEDAR_IP } },
	[CEDAR_X_IS_IN_RANGE] = { 2, { CEDAR_IP, CEDAR_IP } },
	[CEDAR_X_DATETIME] = { 1, { CEDAR_STRING } },
	[CEDAR_X_OFFSET] = { 2, { CEDAR_DATETIME, CEDAR_DURATION } },
	[CEDAR_X_DURATION_SINCE] = { 2, { CEDAR_DATETIME, CEDAR_DATETIME } },
	[CEDAR_X_TO_DATE] = { 1, { CEDAR_DATETIME } },
	[CEDAR_X_TO_TIME] = { 1, { CEDAR_DATETIME } },
	[CEDAR_X_DURATION] = { 1, { CEDAR_STRING } },
	[CEDAR_X_TO_MILLISECONDS] = { 1, { CEDAR_DURATION } },
	[CEDAR_X_TO_SECONDS] = { 1, { CEDAR_DURATION } },
	[CEDAR_X_TO_MINUTES] = { 1, { CEDAR_DURATION } },
	[CEDAR_X_TO_HOURS] = { 1, { CEDAR_DURATION } },
	[CEDAR_X_TO_DAYS] = { 1, { CEDAR_DURATION } },
};

#define DAY_MS INT64_C(86400000)

/* Is every address of a's range in b's? The range is the address masked to its first and last
 * member. */
static bool in_range(const struct cedar_ip *a, const struct cedar_ip *b)
{
	size_t i, n = a->v6 ? 16 : 4;
	int lo = 0, hi = 0; /* of b against a, decided by the first byte that differs */

	if (a->v6 != b->v6)
		return false;
	for (i = 0; i < n; i++) {
		int am = a->prefix >= (i + 1) * 8 ? 0
		         : a->prefix <= i * 8     ? 0xff
		                                  : 0xff >> (a->prefix - i * 8);
		int bm = b->prefix >= (i + 1) * 8 ? 0
		         : b->prefix <= i * 8     ? 0xff
		                                  : 0xff >> (b->prefix - i * 8);

		if (lo == 0)
			lo = (b->addr[i] & ~bm) - (a->addr[i] & ~am);
		if (hi == 0)
			hi = (b->addr[i] | bm) - (a->addr[i] | am);
	}
	return lo <= 0 && hi >= 0;
}

static bool is_loopback(const struct cedar_ip *ip)
{
	static const uint8_t one[16] = { [15] = 1 };

	if (ip->v6)
		return ip->prefix == 128 && memcmp(ip->addr, one, 16) == 0;
	return ip->prefix >= 8 && ip->addr[0] == 127;
}

static bool is_multicast(const struct cedar_ip *ip)
{
	if (ip->v6)
		return ip->prefix >= 8 && ip->addr[0] == 0xff;
	return ip->prefix >= 4 && (ip->addr[0] & 0xf0) == 0xe0;
}

/* Constructors: put Cedar's words before the reason. */
static int make(
    struct arena *a, enum cedar_ext x, sv s, struct cedar_value *out, struct box_err *err)
{
	struct box_err why = { 0 };
	const char *type = cedar_ext_name(x);
	int r;

	switch (x) {
	case CEDAR_X_DECIMAL:
		r = cedar_decimal_parse(s, out, &why);
		break;
	case CEDAR_X_IP:
		r = cedar_ip_parse(a, s, out, &why);
		type = "ipaddr";
		break;
	case CEDAR_X_DATETIME:
		r = cedar_datetime_parse(s, out, &why);
		break;
	default:
		r = cedar_duration_parse(s, out, &why);
	}
	if (r < 0)
		return box_fail(err, why.code, 0,
		    "error while evaluating `%s` extension function: %s", type, why.msg);
	return 0;
}

static int overflow(struct box_err *err, const char *what)
{
	return box_fail(err, BOX_EPARSE, 0,
	    "error while evaluating `datetime` extension function: overflows when %s", what);
}

int cedar_ext_call(struct arena *a, enum cedar_ext x, const struct cedar_value *v, size_t n,
    struct cedar_value *out, struct box_err *err)
{
	int64_t r, rem;
	size_t i;

	if (n != sig[x].n)
		return box_fail(err, BOX_EPARSE, 0,
		    "wrong number of arguments provided to extension function `%s`: expected %u, "
		    "got %zu",
		    cedar_ext_name(x), sig[x].n, n);
	for (i = 0; i < n; i++)
		if (v[i].kind != sig[x].arg[i])
			return box_fail(err, BOX_EPARSE, 0, "type error: expected %s, got %s",
			    cedar_kind_name(sig[x].arg[i]), cedar_kind_name(v[i].kind));
	switch (x) {
	case CEDAR_X_DECIMAL:
	case CEDAR_X_IP:
	case CEDAR_X_DATETIME:
	case CEDAR_X_DURATION:
		return make(a, x, cedar_sv(v[0].s), out, err);
	case CEDAR_X_LESS_THAN:
		*out = cedar_bool(v[0].i < v[1].i);
		return 0;
	case CEDAR_X_LESS_THAN_OR_EQUAL:
		*out = cedar_bool(v[0].i <= v[1].i);
		return 0;
	case CEDAR_X_GREATER_THAN:
		*out = cedar_bool(v[0].i > v[1].i);
		return 0;
	case CEDAR_X_GREATER_THAN_OR_EQUAL:
		*out = cedar_bool(v[0].i >= v[1].i);
		return 0;
	case CEDAR_X_IS_IPV4:
		*out = cedar_bool(!v[0].ip->v6);
		return 0;
	case CEDAR_X_IS_IPV6:
		*out = cedar_bool(v[0].ip->v6);
		return 0;
	case CEDAR_X_IS_LOOPBACK:
		*out = cedar_bool(is_loopback(v[0].ip));
		return 0;
	case CEDAR_X_IS_MULTICAST:
		*out = cedar_bool(is_multicast(v[0].ip));
		return 0;
	case CEDAR_X_IS_IN_RANGE:
		*out = cedar_bool(in_range(v[0].ip, v[1].ip));
		return 0;
	case CEDAR_X_OFFSET:
		if (__builtin_add_overflow(v[0].i, v[1].i, &r))
			return overflow(err, "adding an offset");
		*out = (struct cedar_value){ .kind = CEDAR_DATETIME, .i = r };
		return 0;
	case CEDAR_X_DURATION_SINCE:
		if (__builtin_sub_overflow(v[0].i, v[1].i, &r))
			return overflow(err, "computing the duration between the two");
		*out = (struct cedar_value){ .kind = CEDAR_DURATION, .i = r };
		return 0;
	case CEDAR_X_TO_DATE:
	case CEDAR_X_TO_TIME:
		rem = v[0].i % DAY_MS;
		if (rem < 0)
			rem += DAY_MS;
		if (x == CEDAR_X_TO_TIME) {
			*out = (struct cedar_value){ .kind = CEDAR_DURATION, .i = rem };
			return 0;
		}
		if (__builtin_sub_overflow(v[0].i, rem, &r))
			return overflow(err, "computing the date");
		*out = (struct cedar_value){ .kind = CEDAR_DATETIME, .i = r };
		return 0;
	case CEDAR_X_TO_MILLISECONDS:
		*out = cedar_long(v[0].i);
		return 0;
	case CEDAR_X_TO_SECONDS:
		*out = cedar_long(v[0].i / 1000);
		return 0;
	case CEDAR_X_TO_MINUTES:
		*out = cedar_long(v[0].i / 1000 / 60);
		return 0;
	case CEDAR_X_TO_HOURS:
		*out = cedar_long(v[0].i / 1000 / 60 / 60);
		return 0;
	case CEDAR_X_TO_DAYS:
		*out = cedar_long(v[0].i / 1000 / 60 / 60 / 24);
		return 0;
	case CEDAR_X_COUNT:
		break;
	}
	return box_fail(err, BOX_EPARSE, 0, "unknown extension function");
}

/* The first run is a prefix, the last a suffix, those between are found leftmost in turn. UTF-8
 * keeps this right by bytes. */
bool cedar_like(const struct cedar_pattern *p, sv s)
{
	uint32_t i;

	if (p->n == 1)
		return sv_eq(p->run[0], s);
	if (!sv_starts(s, p->run[0]))
		return false;
	s = sv_sub(s, p->run[0].n, SIZE_MAX);
	if (!sv_ends(s, p->run[p->n - 1]))
		return false;
	s.n -= p->run[p->n - 1].n;
	for (i = 1; i + 1 < p->n; i++) {
		const char *at;

		if (p->run[i].n == 0)
			continue;
		at = s.n != 0 ? memmem(s.p, s.n, p->run[i].p, p->run[i].n) : NULL;
		if (at == NULL)
			return false;
		s = sv_sub(s, (size_t)(at - s.p) + p->run[i].n, SIZE_MAX);
	}
	return true;
}
