/* The public list of findings. See diag.h and dogwood.h. */
#include "engine/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "engine/build.h"

#include "base/ban.h"

#define DIAGS_BYTES   ((size_t)32 << 20)
#define RENDER_MAX    ((size_t)16 << 20)
#define EXCERPT_BYTES 400

struct item {
	struct dogwood_diag d;
	sv line;      /* the source line, for the caret */
	size_t in;    /* byte of the caret in it */
	size_t width; /* bytes of it that are marked */
};

struct dogwood_diags {
	struct arena a;
	struct item *v;
	size_t n, cap, errors;
};

dogwood_diags *dogwood_diags_new(void)
{
	dogwood_diags *d = calloc(1, sizeof(*d));

	if (d != NULL)
		d->a.limit = DIAGS_BYTES;
	return d;
}

void dogwood_diags_free(dogwood_diags *d)
{
	if (d == NULL)
		return;
	arena_free(&d->a);
	free(d);
}

size_t dogwood_diags_count(const dogwood_diags *d)
{
	return d->n;
}

size_t dogwood_diags_errors(const dogwood_diags *d)
{
	return d->errors;
}

const struct dogwood_diag *dogwood_diags_at(const dogwood_diags *d, size_t i)
{
	return i < d->n ? &d->v[i].d : NULL;
}

size_t eng_join_find(const struct eng_join *j, size_t at)
{
	size_t lo = 0, hi = j->n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (j->start[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Bytes of UTF-8 to characters: continuation bytes do not count. */
static unsigned chars(sv s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* The byte at which character i of s begins. */
static size_t byte_of(sv s, size_t i)
{
	size_t at = 0;

	for (; i > 0 && at < s.n; i--)
		do
			at++;
		while (at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80);
	return at;
}

static int add(dogwood_diags *d, const struct dw_diag *from, sv policy, const struct eng_join *j)
{
	struct item *it;
	sv file = from->file;
	uint32_t line = from->line;
	size_t start = from->start;

	if (d->n == d->cap) {
		size_t cap = d->cap == 0 ? 8 : 2 * d->cap;

		it = arena_grow(&d->a, d->v, d->n, cap, sizeof(*it));
		if (it == NULL)
			return -1;
		d->v = it;
		d->cap = cap;
	}
	if (j != NULL && j->n > 1 && line != 0 && sv_eq(file, policy)) {
		size_t i = eng_join_find(j, start);

		file = eng_sv(j->src[i].name);
		start -= j->start[i];
		line -= j->before[i];
	}
	it = &d->v[d->n];
	*it = (struct item){ .line = arena_dup(&d->a, sv_sub(from->line_text, 0, 64 * 1024)),
		.in = from->column != 0 ? byte_of(from->line_text, from->column - 1) : 0,
		.width = from->len };
	it->d = (struct dogwood_diag){ .severity = from->severity == DW_ERROR ? DOGWOOD_ERROR
		                                                              : DOGWOOD_WARNING,
		.file = eng_str(arena_dup(&d->a, file)),
		.line = line,
		.col = line == 0 ? 0 : from->column,
		.start = start,
		.len = from->len,
		.message = eng_str(arena_dup(&d->a, from->message)),
		.hint = eng_str(arena_dup(&d->a, from->help)) };
	if (it->d.message.p == NULL)
		return -1;
	d->n++;
	d->errors += it->d.severity == DOGWOOD_ERROR;
	return 0;
}

/* Does x stand behind y in the same source? What has no place stays where it is. */
static bool behind(const struct dw_diag *x, const struct dw_diag *y)
{
	return x->line != 0 && y->line != 0 && x->start > y->start && sv_eq(x->file, y->file);
}

/* The same text of the same place: found twice on the way, of use once. */
static bool same(const struct dw_diag *x, const struct dw_diag *y)
{
	return x->line != 0 && x->start == y->start && x->severity == y->severity &&
	       sv_eq(x->message, y->message) && sv_eq(x->file, y->file);
}

/* "policy is impossible" where an error says why it is. */
static bool follows(const struct dw_diags *all, const struct dw_diag *x)
{
	if (x->severity == DW_ERROR || x->rule < 0 ||
	    sv_find_sv(x->message, SV("policy is impossible: ")) < 0)
		return false;
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].severity == DW_ERROR && all->v[i].rule == x->rule)
			return true;
	return false;
}

int eng_diags_add(
    dogwood_diags *d, const struct dw_diags *from, sv policy, const struct eng_join *j)
{
	AUTO_ARENA tmp = { .limit = DIAGS_BYTES };
	const struct dw_diag **v = ARENA_VEC(&tmp, const struct dw_diag *, from->n);

	if (v == NULL)
		return -1;
	/* Stages come one after the other, and sources too: by place within each source. */
	for (size_t i = 0; i < from->n; i++) {
		size_t k = i;

		for (; k > 0 && behind(v[k - 1], &from->v[i]); k--)
			v[k] = v[k - 1];
		v[k] = &from->v[i];
	}
	for (size_t i = 0; i < from->n; i++)
		if ((i == 0 || !same(v[i], v[i - 1])) && !follows(from, v[i]) &&
		    add(d, v[i], policy, j) < 0)
			return -1;
	return 0;
}

static const char *severity(const struct item *it)
{
	static const char *const name[] = { "error", "warning", "advice" };

	return name[it->d.severity];
}

/* Tabs as one blank, so that the marks below stand where they should; control characters are
 * escaped. */
static void put_text(struct buf *b, sv s)
{
	sv head;

	while (sv_cut(s, '\t', &head, &s)) {
		buf_put_visible(b, head);
		buf_put_byte(b, ' ');
	}
	buf_put_visible(b, head);
}

static void excerpt(struct buf *b, const struct item *it, const char *mark, const char *off)
{
	sv line = it->line;
	size_t in = it->in, width = it->width;
	AUTO_BUF lead = buf_with(RENDER_MAX);

	if (in > line.n)
		in = line.n;
	/* Of a very long line the part around the place. */
	if (in > EXCERPT_BYTES) {
		size_t cut = in - EXCERPT_BYTES / 2;

		while (cut < in && ((unsigned char)line.p[cut] & 0xc0) == 0x80)
			cut++;
		line = sv_sub(line, cut, SIZE_MAX);
		in -= cut;
	}
	line = sv_sub(line, 0, in + EXCERPT_BYTES);
	if (width > line.n - in)
		width = line.n - in;
	buf_putf(b, "%5u | ", it->d.line);
	put_text(b, line);
	buf_put_c(b, "\n      | ");
	/* As many blanks as what stands before the place takes once escaped. */
	put_text(&lead, sv_sub(line, 0, in));
	for (unsigned n = chars(buf_sv(&lead)); n != 0; n--)
		buf_put_byte(b, ' ');
	buf_clear(&lead);
	put_text(&lead, sv_sub(line, in, width));
	buf_put_c(b, mark);
	buf_put_byte(b, '^');
	for (unsigned n = chars(buf_sv(&lead)); n > 1; n--)
		buf_put_byte(b, '~');
	buf_put_c(b, off);
	buf_put_byte(b, '\n');
}

static void render(struct buf *b, const struct item *it, bool colour)
{
	static const char *const tint[] = { "\033[1;31m", "\033[1;35m", "\033[1;36m" };
	const char *on = colour ? tint[it->d.severity] : "", *off = colour ? "\033[0m" : "";

	if (it->d.file.n != 0) {
		buf_put_visible(b, eng_sv(it->d.file));
		if (it->d.line != 0)
			buf_putf(b, ":%u:%u", it->d.line, it->d.col);
		buf_put_c(b, ": ");
	}
	buf_putf(b, "%s%s:%s ", on, severity(it), off);
	buf_put_visible(b, eng_sv(it->d.message));
	buf_put_byte(b, '\n');
	if (it->d.line != 0 && it->line.n != 0)
		excerpt(b, it, on, off);
	if (it->d.hint.n != 0) {
		buf_put_c(b, "      = help: ");
		buf_put_visible(b, eng_sv(it->d.hint));
		buf_put_byte(b, '\n');
	}
}

/* The content as the caller's own, NUL-terminated. */
static char *give(struct buf *b)
{
	const char *s = buf_cstr(b);
	char *out = s == NULL ? NULL : strdup(s);

	buf_fini(b);
	return out;
}

char *dogwood_diags_text(const dogwood_diags *d, unsigned flags)
{
	struct buf b = buf_with(RENDER_MAX);

	for (size_t i = 0; i < d->n; i++)
		render(&b, &d->v[i], (flags & DOGWOOD_RENDER_COLOUR) != 0);
	return give(&b);
}

char *eng_diags_show(const struct dw_diags *from, unsigned flags)
{
	dogwood_diags *d = dogwood_diags_new();
	char *text = NULL;

	if (d != NULL && eng_diags_add(d, from, (sv){ NULL, 0 }, NULL) == 0)
		text = dogwood_diags_text(d, flags);
	dogwood_diags_free(d);
	return text;
}

char *dogwood_diags_json(const dogwood_diags *d)
{
	struct buf b = buf_with(RENDER_MAX);

	buf_put_byte(&b, '[');
	for (size_t i = 0; i < d->n; i++) {
		const struct dogwood_diag *x = &d->v[i].d;

		buf_putf(
		    &b, "%s{\"severity\":\"%s\",\"file\":", i == 0 ? "" : ",", severity(&d->v[i]));
		buf_put_json(&b, eng_sv(x->file));
		buf_putf(&b,
		    ",\"line\":%u,\"column\":%u,\"start\":%zu,\"len\":%zu,\"message\":", x->line,
		    x->col, x->start, x->len);
		buf_put_json(&b, eng_sv(x->message));
		buf_put_c(&b, ",\"help\":");
		buf_put_json(&b, eng_sv(x->hint));
		buf_put_byte(&b, '}');
	}
	buf_put_byte(&b, ']');
	return give(&b);
}

void dogwood_free(void *p)
{
	free(p);
}
