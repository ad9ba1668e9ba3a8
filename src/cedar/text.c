/* Values and names as Cedar text, and strings back from it. */
#include "cedar/value.h"

#include <inttypes.h>
#include <utf8proc.h>

#include "base/ban.h"

/* Does the reference print this character as it is? (Rust's escape_debug.) */
static bool printable(utf8proc_int32_t c, bool first)
{
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CS:
	case UTF8PROC_CATEGORY_CO:
	case UTF8PROC_CATEGORY_CN:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return false;
	case UTF8PROC_CATEGORY_ZS:
		return c == ' ';
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_ME:
		return !first;
	default:
		return true;
	}
}

void cedar_put_escaped(struct buf *b, sv s)
{
	const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)s.p;
	size_t i = 0;

	while (i < s.n) {
		utf8proc_int32_t c;
		utf8proc_ssize_t n = utf8proc_iterate(p + i, (utf8proc_ssize_t)(s.n - i), &c);

		if (n <= 0) {
			/* Cannot come from our readers, which demand UTF-8. */
			buf_put_sv(b, SV("\\u{fffd}"));
			i++;
			continue;
		}
		switch (c) {
		case '\0':
			buf_put_sv(b, SV("\\0"));
			break;
		case '\t':
			buf_put_sv(b, SV("\\t"));
			break;
		case '\n':
			buf_put_sv(b, SV("\\n"));
			break;
		case '\r':
			buf_put_sv(b, SV("\\r"));
			break;
		case '"':
		case '\'':
		case '\\':
			buf_put_byte(b, '\\');
			buf_put_byte(b, (uint8_t)c);
			break;
		default:
			if (printable(c, i == 0))
				buf_put(b, p + i, (size_t)n);
			else
				buf_putf(b, "\\u{%" PRIx32 "}", (uint32_t)c);
		}
		i += (size_t)n;
	}
}

void cedar_put_quoted(struct buf *b, sv s)
{
	buf_put_byte(b, '"');
	cedar_put_escaped(b, s);
	buf_put_byte(b, '"');
}

void cedar_put_uid(struct buf *b, struct cedar_uid u)
{
	buf_put_sv(b, cedar_sv(u.type));
	buf_put_sv(b, SV("::"));
	cedar_put_quoted(b, cedar_sv(u.id));
}

static void put_decimal(struct buf *b, int64_t v)
{
	uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v;

	buf_putf(
	    b, "decimal(\"%s%" PRIu64 ".%04" PRIu64 "\")", v < 0 ? "-" : "", m / 10000, m % 10000);
}

static void put_ip(struct buf *b, const struct cedar_ip *ip)
{
	size_t i;

	buf_put_sv(b, SV("ip(\""));
	for (i = 0; i < (ip->v6 ? 8u : 4u); i++) {
		if (i > 0)
			buf_put_byte(b, ip->v6 ? ':' : '.');
		if (ip->v6)
			buf_putf(b, "%x", (unsigned)ip->addr[i * 2] << 8 | ip->addr[i * 2 + 1]);
		else
			buf_putf(b, "%u", ip->addr[i]);
	}
	buf_putf(b, "/%u\")", ip->prefix);
}

static void put_record(struct buf *b, const struct cedar_record *r)
{
	uint32_t i;

	buf_put_byte(b, '{');
	for (i = 0; i < r->n; i++) {
		if (i > 0)
			buf_put_sv(b, SV(", "));
		cedar_put_quoted(b, cedar_sv(r->f[i].key));
		buf_put_sv(b, SV(": "));
		cedar_put_value(b, &r->f[i].v);
	}
	buf_put_byte(b, '}');
}

void cedar_put_value(struct buf *b, const struct cedar_value *v)
{
	uint32_t i;

	switch (v->kind) {
	case CEDAR_BOOL:
		buf_put_c(b, v->b ? "true" : "false");
		break;
	case CEDAR_LONG:
		buf_putf(b, "%" PRId64, v->i);
		break;
	case CEDAR_STRING:
		cedar_put_quoted(b, cedar_sv(v->s));
		break;
	case CEDAR_ENTITY:
		cedar_put_uid(b, v->uid);
		break;
	case CEDAR_SET:
		buf_put_byte(b, '[');
		for (i = 0; i < v->set->n; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			cedar_put_value(b, &v->set->v[i]);
		}
		buf_put_byte(b, ']');
		break;
	case CEDAR_RECORD:
		put_record(b, v->rec);
		break;
	case CEDAR_DECIMAL:
		put_decimal(b, v->i);
		break;
	case CEDAR_IP:
		put_ip(b, v->ip);
		break;
	case CEDAR_DATETIME:
		/* Any instant, also those no date text reaches. */
		buf_putf(b, "datetime(\"1970-01-01\").offset(duration(\"%" PRId64 "ms\"))", v->i);
		break;
	case CEDAR_DURATION:
		buf_putf(b, "duration(\"%" PRId64 "ms\")", v->i);
		break;
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The body of \u{…} at s (behind the u). Number of bytes used, 0 when it is wrong; *used_bad is
 * then how far it was read. */
static size_t unicode(sv s, uint32_t *cp, size_t *used_bad)
{
	size_t i = 1, n = 0;
	uint32_t v = 0;

	*used_bad = s.n < 1 ? s.n : 1;
	if (s.n < 3 || s.p[0] != '{')
		return 0;
	for (; i < s.n; i++) {
		int h;

		*used_bad = i + 1;
		if (s.p[i] == '}')
			break;
		if (s.p[i] == '_' && n > 0)
			continue;
		h = hex(s.p[i]);
		if (h < 0 || ++n > 6)
			return 0;
		v = v << 4 | (uint32_t)h;
	}
	if (i == s.n || n == 0 || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*cp = v;
	return i + 1;
}

sv cedar_unescape(struct arena *a, sv body, sv *bad)
{
	char *p = arena_alloc(a, body.n + 1, 1);
	size_t i = 0, n = 0, used, seen;
	uint32_t cp;

	*bad = (sv){ NULL, 0 };
	if (p == NULL)
		return (sv){ NULL, 0 };
	while (i < body.n) {
		char c = body.p[i];

		if (c == '\r') {
			*bad = sv_sub(body, i, 1);
			return (sv){ NULL, 0 };
		}
		if (c != '\\') {
			p[n++] = c;
			i++;
			continue;
		}
		used = 2;
		seen = 2;
		c = i + 1 < body.n ? body.p[i + 1] : '\0';
		switch (c) {
		case 'n':
			p[n++] = '\n';
			break;
		case 'r':
			p[n++] = '\r';
			break;
		case 't':
			p[n++] = '\t';
			break;
		case '0':
			p[n++] = '\0';
			break;
		case '\\':
		case '\'':
		case '"':
			p[n++] = c;
			break;
		case 'x':
			seen = 4;
			used = 0;
			if (body.n - i >= 4 && hex(body.p[i + 2]) >= 0 && hex(body.p[i + 3]) >= 0) {
				cp = (uint32_t)(hex(body.p[i + 2]) << 4 | hex(body.p[i + 3]));
				if (cp < 0x80) {
					p[n++] = (char)cp;
					used = 4;
				}
			}
			break;
		case 'u':
			used = unicode(sv_sub(body, i + 2, SIZE_MAX), &cp, &seen);
			seen += 2;
			if (used != 0) {
				/* At least five bytes were read for at most four written. */
				n += (size_t)utf8proc_encode_char(
				    (utf8proc_int32_t)cp, (utf8proc_uint8_t *)p + n);
				used += 2;
			}
			break;
		default:
			used = 0;
			/* Show the whole character behind the backslash. */
			while (i + seen < body.n && ((uint8_t)body.p[i + seen] & 0xc0) == 0x80)
				seen++;
		}
		if (used == 0 || i + used > body.n) {
			*bad = sv_sub(body, i, seen);
			return (sv){ NULL, 0 };
		}
		i += used;
	}
	return (sv){ p, n };
}

bool cedar_is_ident(sv s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		        (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return s.n != 0;
}

bool cedar_is_reserved(sv s)
{
	static const sv words[] = { SV_INIT("true"), SV_INIT("false"), SV_INIT("if"),
		SV_INIT("then"), SV_INIT("else"), SV_INIT("in"), SV_INIT("like"), SV_INIT("has"),
		SV_INIT("is"), SV_INIT("__cedar") };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (sv_eq(s, words[i]))
			return true;
	return false;
}

int cedar_uid_parse(struct cedar_syms *t, sv text, struct cedar_uid *out, struct box_err *err)
{
	AUTO_ARENA a = { .limit = CEDAR_STR_MAX };
	ptrdiff_t q = sv_find(text, '"');
	sv type, rest, part, bad, id;

	if (q < 3 || text.n < 5 || text.p[text.n - 1] != '"' || (size_t)q == text.n - 1 ||
	    !sv_is_utf8(text))
		goto malformed;
	type = sv_sub(text, 0, (size_t)q);
	if (!sv_ends(type, SV("::")))
		goto malformed;
	type.n -= 2;
	for (rest = type; rest.n != 0;) {
		ptrdiff_t c = sv_find_sv(rest, SV("::"));

		part = c < 0 ? rest : sv_sub(rest, 0, (size_t)c);
		if (!cedar_is_ident(part) || cedar_is_reserved(part))
			goto malformed;
		rest = c < 0 ? (sv){ NULL, 0 } : sv_sub(rest, (size_t)c + 2, SIZE_MAX);
		if (c >= 0 && rest.n == 0)
			goto malformed;
	}
	id = sv_sub(text, (size_t)q + 1, text.n - (size_t)q - 2);
	/* A quote inside must be escaped. */
	for (size_t i = 0; i < id.n; i++) {
		if (id.p[i] == '\\')
			i++;
		else if (id.p[i] == '"')
			goto malformed;
	}
	id = cedar_unescape(&a, id, &bad);
	if (id.p == NULL && bad.n == 0)
		return box_nomem(err, "an entity reference");
	if (id.p == NULL)
		return box_fail(err, BOX_EPARSE, 0, "the input `" SV_FMT "` is not a valid escape",
		    SV_ARG(bad));
	out->type = cedar_intern(t, type);
	out->id = cedar_intern(t, id);
	if (out->type == NULL || out->id == NULL)
		return box_nomem(err, "an entity reference");
	return 0;
malformed:
	return box_fail(err, BOX_EPARSE, 0,
	    "`" SV_FMT "` is not an entity reference; write `Ns::Type::\"id\"`", SV_ARG(text));
}
