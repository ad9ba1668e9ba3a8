/* Brace expansion, as bash does it in front of everything else: a{b,c}d and {1..9..2}. Works on the
 * parts of a word: only unquoted literal text holds active braces. */
#include <stdio.h>
#include <string.h>

#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

#define WORDS_MAX 100000
#define DEPTH_MAX 64

/* One character of the word: a byte of a literal part, or a whole other part. */
struct item {
	const struct sh_part *part; /* not literal text */
	char c;
	/* of an opening brace: what lies between it and the one that closes it, at this depth */
	bool comma, dots;
	size_t close; /* how far behind it that one is; 0: there is none. The opening one below
	               * it while they are looked for */
};

struct br {
	struct arena *a;
	size_t count, pieces;
	bool too_many;
};

/* A list of item strings. */
struct seq {
	struct seq *next;
	struct item *v;
	size_t n;
};

static struct seq *expand(struct br *b, const struct item *v, size_t n, int depth);

static struct seq *one(struct br *b, const struct item *v, size_t n)
{
	struct seq *s = sh_aalloc(b->a, 1, sizeof(*s));

	if (++b->pieces > WORDS_MAX)
		b->too_many = true;
	s->v = sh_aalloc(b->a, n + 1, sizeof(*s->v));
	if (n != 0)
		memcpy(s->v, v, n * sizeof(*v));
	s->n = n;
	return s;
}

static bool is(const struct item *i, char c)
{
	return i->part == NULL && i->c == c;
}

/* Find the pairs, in one pass: a word may be all braces. */
static void match(struct item *v, size_t n)
{
	size_t open = n; /* the innermost one, n: none */

	for (size_t i = 0; i < n; i++) {
		if (is(&v[i], '{')) {
			v[i].close = open;
			open = i;
		} else if (open == n) {
			continue;
		} else if (is(&v[i], '}')) {
			size_t below = v[open].close;

			v[open].close = i - open;
			open = below;
		} else if (is(&v[i], ',')) {
			v[open].comma = true;
		} else if (is(&v[i], '.') && i + 1 < n && is(&v[i + 1], '.')) {
			v[open].dots = true;
		}
	}
	while (open != n) { /* those are ordinary characters */
		size_t below = v[open].close;

		v[open].close = 0;
		open = below;
	}
}

static struct seq *text_seq(struct br *b, const char *s)
{
	struct seq *q = sh_aalloc(b->a, 1, sizeof(*q));

	q->n = strlen(s);
	q->v = sh_aalloc(b->a, q->n + 1, sizeof(*q->v));
	for (size_t i = 0; i < q->n; i++)
		q->v[i].c = s[i];
	return q;
}

/* {x..y[..step]} with the text between the braces; NULL when it is not a sequence. */
static struct seq *sequence(struct br *b, const struct item *v, size_t n)
{
	char text[64], *f[3];
	int64_t x, y, step = 1;
	size_t nf = 1;
	int width = 0;
	bool letters;
	struct seq *list = NULL, **tail = &list;

	if (n == 0 || n >= sizeof(text))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (v[i].part != NULL)
			return NULL;
		text[i] = v[i].c;
	}
	text[n] = '\0';
	f[0] = text;
	for (char *d = text; (d = strstr(d, "..")) != NULL && nf < 3;) {
		*d = '\0';
		d += 2;
		f[nf++] = d;
	}
	if (nf < 2)
		return NULL;
	letters = strlen(f[0]) == 1 && strlen(f[1]) == 1 && (f[0][0] < '0' || f[0][0] > '9');
	if (letters) {
		x = (unsigned char)f[0][0];
		y = (unsigned char)f[1][0];
		if (strchr("+-", f[0][0]) != NULL || !((x | 32) >= 'a' && (x | 32) <= 'z') ||
		    !((y | 32) >= 'a' && (y | 32) <= 'z'))
			return NULL;
	} else {
		const char *p = f[0] + (f[0][0] == '+'), *q = f[1] + (f[1][0] == '+');

		if (!sv_to_i64(sv_c(p), 10, INT64_MIN / 2, INT64_MAX / 2, &x) ||
		    !sv_to_i64(sv_c(q), 10, INT64_MIN / 2, INT64_MAX / 2, &y))
			return NULL;
		for (int i = 0; i < 2; i++) {
			const char *d = f[i][0] == '-' ? f[i] + 1 : f[i];

			if (d[0] == '0' && d[1] != '\0' && (int)strlen(f[i]) > width)
				width = (int)strlen(f[i]);
		}
		if (width != 0) {
			for (int i = 0; i < 2; i++) {
				if ((int)strlen(f[i]) > width)
					width = (int)strlen(f[i]);
			}
		}
	}
	if (nf == 3 && !sv_to_i64(sv_c(f[2]), 10, -INT32_MAX, INT32_MAX, &step))
		return NULL;
	if (step < 0)
		step = -step;
	if (step == 0)
		step = 1;
	for (int64_t i = x; x <= y ? i <= y : i >= y; i += x <= y ? step : -step) {
		char num[80];

		if (++b->count > WORDS_MAX) {
			b->too_many = true;
			return list;
		}
		if (letters)
			(void)snprintf(num, sizeof(num), "%c", (int)i);
		else
			(void)snprintf(num, sizeof(num), "%0*lld", width, (long long)i);
		*tail = text_seq(b, num);
		tail = &(*tail)->next;
	}
	return list;
}

/* The alternatives between the braces at v[0] and v[end]. */
static struct seq *alternatives(struct br *b, const struct item *v, size_t end, int depth)
{
	struct seq *list = NULL, **tail = &list;
	size_t from = 1;
	int level = 0;

	for (size_t i = 1; i <= end && !b->too_many; i++) {
		if (i == end || (level == 0 && is(&v[i], ','))) {
			*tail = expand(b, v + from, i - from, depth + 1);
			while (*tail != NULL)
				tail = &(*tail)->next;
			from = i + 1;
		} else if (is(&v[i], '{')) {
			level++;
		} else if (is(&v[i], '}')) {
			level--;
		}
	}
	return list;
}

/* pre + each of mid + each of post */
static struct seq *product(
    struct br *b, const struct item *pre, size_t npre, struct seq *mid, struct seq *post)
{
	struct seq *list = NULL, **tail = &list;

	for (struct seq *m = mid; m != NULL; m = m->next) {
		for (struct seq *p = post; p != NULL; p = p->next) {
			struct seq *s = sh_aalloc(b->a, 1, sizeof(*s));

			if (++b->count > WORDS_MAX) {
				b->too_many = true;
				return list;
			}
			s->n = npre + m->n + p->n;
			s->v = sh_aalloc(b->a, s->n + 1, sizeof(*s->v));
			if (npre != 0)
				memcpy(s->v, pre, npre * sizeof(*pre));
			if (m->n != 0)
				memcpy(s->v + npre, m->v, m->n * sizeof(*pre));
			if (p->n != 0)
				memcpy(s->v + npre + m->n, p->v, p->n * sizeof(*pre));
			*tail = s;
			tail = &s->next;
		}
	}
	return list;
}

static struct seq *expand(struct br *b, const struct item *v, size_t n, int depth)
{
	for (size_t i = 0; i < n && depth < DEPTH_MAX && !b->too_many; i++) {
		struct seq *mid = NULL;
		size_t end = v[i].close;

		/* All of [v, v + n) lies between two braces of a pair or outside of all of them. */
		if (!is(&v[i], '{') || end == 0)
			continue;
		if (v[i].comma)
			mid = alternatives(b, v + i, end, depth);
		else if (v[i].dots)
			mid = sequence(b, v + i + 1, end - 1);
		if (mid == NULL)
			continue;
		return product(
		    b, v, i, mid, expand(b, v + i + end + 1, n - i - end - 1, depth + 1));
	}
	return one(b, v, n);
}

static bool name_char(const struct item *i)
{
	return i->part == NULL && (i->c == '_' || (i->c >= 'a' && i->c <= 'z') ||
	                              (i->c >= 'A' && i->c <= 'Z') || (i->c >= '0' && i->c <= '9'));
}

/* Braces are expanded as text: $x{1,2} means $x1 $x2. How many of the items from i on belong to the
 * name of p. */
static size_t longer_name(struct br *b, const struct seq *s, size_t i, struct sh_part *p)
{
	struct sh_param *q;
	size_t n = 0, old;
	char *name;

	if (p->kind != SH_PT_PARAM || p->param->text != p->param->name ||
	    !sh_is_name(sv_c(p->param->name)))
		return 0;
	while (i + n < s->n && name_char(&s->v[i + n]))
		n++;
	if (n == 0)
		return 0;
	old = strlen(p->param->name);
	name = sh_aalloc(b->a, old + n + 1, 1);
	memcpy(name, p->param->name, old);
	for (size_t k = 0; k < n; k++)
		name[old + k] = s->v[i + k].c;
	q = sh_aalloc(b->a, 1, sizeof(*q));
	*q = *p->param;
	q->name = q->text = name;
	p->param = q;
	return n;
}

static struct sh_word *to_word(struct br *b, const struct seq *s, const struct sh_word *like)
{
	struct sh_word *w = sh_aalloc(b->a, 1, sizeof(*w));
	struct sh_part **tail = &w->parts;

	w->line = like->line;
	for (size_t i = 0; i < s->n;) {
		struct sh_part *p = sh_aalloc(b->a, 1, sizeof(*p));

		if (s->v[i].part != NULL) {
			*p = *s->v[i].part;
			p->next = NULL;
			i++;
			i += longer_name(b, s, i, p);
		} else {
			size_t k = i;
			char *t;

			while (k < s->n && s->v[k].part == NULL)
				k++;
			t = sh_aalloc(b->a, k - i + 1, 1);
			for (size_t j = i; j < k; j++)
				t[j - i] = s->v[j].c;
			p->kind = SH_PT_LIT;
			p->text = (sv){ t, k - i };
			i = k;
		}
		*tail = p;
		tail = &p->next;
	}
	return w;
}

struct sh_word *sh_brace_expand(struct arena *a, const struct sh_word *w, bool *too_many)
{
	struct br b = { .a = a };
	struct item *v;
	size_t n = 0;
	struct sh_word *head = NULL, **tail = &head;

	for (const struct sh_part *p = w->parts; p != NULL; p = p->next)
		n += p->kind == SH_PT_LIT ? p->text.n : 1;
	v = sh_aalloc(a, n + 1, sizeof(*v));
	n = 0;
	for (const struct sh_part *p = w->parts; p != NULL; p = p->next) {
		if (p->kind != SH_PT_LIT) {
			v[n++].part = p;
			continue;
		}
		for (size_t i = 0; i < p->text.n; i++)
			v[n++].c = p->text.p[i];
	}
	match(v, n);
	for (struct seq *s = expand(&b, v, n, 0); s != NULL; s = s->next) {
		*tail = to_word(&b, s, w);
		tail = &(*tail)->next;
	}
	*too_many = b.too_many;
	return head;
}
