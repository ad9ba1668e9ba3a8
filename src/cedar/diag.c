/* Findings: collecting, near names, and their two printed forms. See diag.h. */
#include "cedar/diag.h"

#include <stdio.h>

#include "base/ban.h"

struct cedar_diag *cedar_diag_add(struct cedar_diags *ds, enum cedar_severity sev, const char *code,
    const struct cedar_span *span, const char *hint, const char *fmt, ...)
{
	struct cedar_diag *d;
	va_list ap;
	char *p;
	int n;

	if (sev == CEDAR_ERROR)
		ds->errors++;
	if (ds->n >= CEDAR_DIAGS_MAX)
		goto drop;
	if (ds->n == ds->cap) {
		size_t cap = ds->cap != 0 ? ds->cap * 2 : 8;

		d = arena_grow(ds->a, ds->d, ds->n, cap, sizeof(*d));
		if (d == NULL)
			goto drop;
		ds->d = d;
		ds->cap = cap;
	}
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = n >= 0 ? arena_alloc(ds->a, (size_t)n + 1, 1) : NULL;
	if (p == NULL)
		goto drop;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap); /* measured just above */
	va_end(ap);
	d = &ds->d[ds->n++];
	*d = (struct cedar_diag){ .severity = sev, .code = code, .message = { p, (size_t)n } };
	if (span != NULL)
		d->span = *span;
	if (hint != NULL)
		d->hint = arena_dup(ds->a, sv_c(hint));
	return d;
drop:
	ds->dropped++;
	return NULL;
}

void cedar_diags_sort(struct cedar_diags *ds)
{
	for (size_t i = 1; i < ds->n; i++) {
		struct cedar_diag x = ds->d[i];
		size_t k = i;

		for (; k > 0 && ds->d[k - 1].span.off > x.span.off; k--)
			ds->d[k] = ds->d[k - 1];
		ds->d[k] = x;
	}
}

/* Line and column behind the bytes [from, to), which begin at *at. */
static void walk(sv source, size_t from, size_t to, struct cedar_mark *at)
{
	for (size_t i = from; i < to; i++) {
		if (source.p[i] == '\n') {
			at->line++;
			at->col = 1;
		} else if (((uint8_t)source.p[i] & 0xc0) != 0x80) {
			at->col++;
		}
	}
}

struct cedar_span cedar_span_at(sv source, size_t off, size_t len)
{
	struct cedar_mark at = { 1, 1 };

	if (off > source.n)
		off = source.n;
	walk(source, 0, off, &at);
	return (struct cedar_span){ (uint32_t)off, (uint32_t)len, at.line, at.col };
}

struct cedar_places cedar_places_of(struct arena *a, sv source)
{
	struct cedar_places p = { .source = source };
	struct cedar_mark at = { 1, 1 };
	size_t n = source.n / CEDAR_PLACES_STEP + 1;

	p.mark = ARENA_VEC(a, struct cedar_mark, n);
	for (size_t i = 0; p.mark != NULL && i < n; i++) {
		p.mark[i] = at;
		if (i + 1 < n)
			walk(source, i * CEDAR_PLACES_STEP, (i + 1) * CEDAR_PLACES_STEP, &at);
	}
	return p;
}

struct cedar_span cedar_places_span(const struct cedar_places *p, size_t off, size_t len)
{
	struct cedar_mark at = { 0, 0 };

	if (off > p->source.n)
		off = p->source.n;
	if (p->mark != NULL) {
		at = p->mark[off / CEDAR_PLACES_STEP];
		walk(p->source, off - off % CEDAR_PLACES_STEP, off, &at);
	}
	return (struct cedar_span){ (uint32_t)off, (uint32_t)len, at.line, at.col };
}

#define NEAR_MAX 64 /* longer words get no suggestion */

/* Optimal string alignment: one step for an insertion, a deletion, a change, or a swap of
 * neighbours. */
static size_t distance(sv a, sv b)
{
	uint8_t row[3][NEAR_MAX + 1];
	size_t i, j;

	for (j = 0; j <= b.n; j++)
		row[0][j] = (uint8_t)j;
	for (i = 1; i <= a.n; i++) {
		uint8_t *cur = row[i % 3], *up = row[(i - 1) % 3], *up2 = row[(i + 1) % 3];

		cur[0] = (uint8_t)i;
		for (j = 1; j <= b.n; j++) {
			uint8_t d = (uint8_t)(up[j - 1] + (a.p[i - 1] != b.p[j - 1]));

			if (up[j] + 1 < d)
				d = (uint8_t)(up[j] + 1);
			if (cur[j - 1] + 1 < d)
				d = (uint8_t)(cur[j - 1] + 1);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] &&
			    a.p[i - 2] == b.p[j - 1] && up2[j - 2] + 1 < d)
				d = (uint8_t)(up2[j - 2] + 1);
			cur[j] = d;
		}
	}
	return row[a.n % 3][b.n];
}

sv cedar_nearest(sv word, const sv *candidates, size_t n)
{
	size_t i, best = SIZE_MAX, limit = word.n <= 3 ? 1 : word.n / 3 + 1;
	sv found = { NULL, 0 };

	if (word.n == 0 || word.n > NEAR_MAX)
		return found;
	for (i = 0; i < n; i++) {
		sv c = candidates[i];
		size_t d;

		if (c.n == 0 || c.n > NEAR_MAX || c.n > word.n + limit || word.n > c.n + limit)
			continue;
		d = distance(word, c);
		if (d <= limit && d < best) {
			best = d;
			found = c;
		}
	}
	return found;
}

static const char *severity(enum cedar_severity s)
{
	switch (s) {
	case CEDAR_ERROR:
		return "error";
	case CEDAR_WARNING:
		return "warning";
	case CEDAR_ADVICE:
		return "advice";
	}
	return "error";
}

/* A tab stays one column wide, so that the caret stands under what it means. */
static void put_line(struct buf *b, sv line)
{
	size_t i, from = 0;

	for (i = 0; i < line.n; i++)
		if (line.p[i] == '\t') {
			buf_put_visible(b, sv_sub(line, from, i - from));
			buf_put_byte(b, ' ');
			from = i + 1;
		}
	buf_put_visible(b, sv_sub(line, from, SIZE_MAX));
}

static size_t columns(sv s)
{
	size_t i, n = 0;

	for (i = 0; i < s.n; i++)
		n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
	return n;
}

static void put_excerpt(struct buf *b, sv source, struct cedar_span at)
{
	size_t from = at.off, to, len, i, width;
	sv line, part;

	if (at.off > source.n)
		return;
	while (from > 0 && source.p[from - 1] != '\n')
		from--;
	for (to = at.off; to < source.n && source.p[to] != '\n'; to++)
		;
	line = sv_sub(source, from, to - from);
	if (line.n > 400)
		return; /* nobody reads such a line on a terminal */
	len = at.len < to - at.off ? at.len : to - at.off;
	width = (size_t)snprintf(NULL, 0, "%u", at.line);
	buf_putf(b, "  %u | ", at.line);
	put_line(b, line);
	buf_putf(b, "\n  %*s | ", (int)width, "");
	for (i = columns(sv_sub(line, 0, at.off - from)); i > 0; i--)
		buf_put_byte(b, ' ');
	part = sv_sub(source, at.off, len);
	i = columns(part);
	do
		buf_put_byte(b, '^');
	while (i-- > 1);
	buf_put_byte(b, '\n');
}

void cedar_diag_render(struct buf *b, const char *file, sv source, const struct cedar_diag *d)
{
	if (file != NULL)
		buf_putf(b, "%s:", file);
	if (d->span.line != 0)
		buf_putf(b, "%u:%u:", d->span.line, d->span.col);
	if (file != NULL || d->span.line != 0)
		buf_put_byte(b, ' ');
	buf_putf(b, "%s: ", severity(d->severity));
	buf_put_visible(b, d->message);
	buf_put_byte(b, '\n');
	if (d->span.line != 0 && source.n != 0)
		put_excerpt(b, source, d->span);
	if (d->hint.n != 0) {
		buf_put_sv(b, SV("  hint: "));
		buf_put_visible(b, d->hint);
		buf_put_byte(b, '\n');
	}
}

void cedar_diags_render(struct buf *b, const char *file, sv source, const struct cedar_diags *ds)
{
	size_t i;

	for (i = 0; i < ds->n; i++)
		cedar_diag_render(b, file, source, &ds->d[i]);
	if (ds->dropped != 0)
		buf_putf(b, "... and %zu more\n", ds->dropped);
}

void cedar_diag_json(struct buf *b, const char *file, const struct cedar_diag *d)
{
	buf_putf(b, "{\"severity\": \"%s\"", severity(d->severity));
	if (d->code != NULL)
		buf_putf(b, ", \"code\": \"%s\"", d->code);
	buf_put_sv(b, SV(", \"message\": "));
	buf_put_json(b, d->message);
	if (file != NULL) {
		buf_put_sv(b, SV(", \"file\": "));
		buf_put_json(b, sv_c(file));
	}
	if (d->span.line != 0)
		buf_putf(b,
		    ", \"labels\": [{\"start\": %u, \"len\": %u, \"line\": %u, \"column\": %u}]",
		    d->span.off, d->span.len, d->span.line, d->span.col);
	if (d->hint.n != 0) {
		buf_put_sv(b, SV(", \"help\": "));
		buf_put_json(b, d->hint);
	}
	buf_putf(b, ", \"spanned\": %s}", d->span.line != 0 ? "true" : "false");
}
