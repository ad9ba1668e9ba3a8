/* Matching of shell patterns. See pattern.h.
 *
 * Whole texts against a pattern without groups: the matcher walks both together; a star remembers
 * one place to come back to, which is enough (the last star decides).
 *
 * Everything else works on sets of places. A place is an offset between two characters. An element
 * of the pattern takes the set of places where it may begin to the set of those where it may then
 * end (or, walking backwards, the other way round). So groups and repetitions need no trying out:
 * each pass over an element costs no more than the text is long, whatever was possible before. Only
 * `!(...)` looks at each beginning by itself; nested ones multiply, and are held by the budget of
 * steps. */
#include <stdlib.h>

#include "shell/mem.h"
#include "shell/pattern_int.h"
#include "base/ban.h"

/* Work that matching against a text of n bytes may cost, in characters looked at. Patterns without
 * nested negations stay far below. */
#define STEPS_MAX(n) (50000000 + 64 * (uint64_t)(n))

/* Bits by place; only words lo to hi - 1 may hold any. */
struct set {
	uint64_t *w;
	size_t lo, hi;
};

struct sh_pat_scan {
	sv text;
	unsigned flags;
	size_t words;
	struct set edge; /* every place: offsets between characters */
	struct sh_pat_tree tree;
	uint64_t **spare; /* words that are all zero, for the next set */
	size_t nspare, spare_cap;
	uint64_t steps, limit;
	bool over;        /* too deep or out of steps: nothing matches */
	struct set begin; /* places where some match begins */
	bool have_begin;
	sv plain; /* an ordinary text to search for instead; n is 0: none */
};

/* --- sets --- */

static bool empty(const struct set *s)
{
	return s->lo >= s->hi;
}

static struct set take(struct sh_pat_scan *m)
{
	struct set s = { NULL, 0, 0 };

	s.w = m->nspare != 0 ? m->spare[--m->nspare] : sh_xalloc(m->words, sizeof(*s.w));
	return s;
}

static void clear(struct sh_pat_scan *m, struct set *s)
{
	for (size_t i = s->lo; i < s->hi; i++)
		s->w[i] = 0;
	m->steps += s->hi - s->lo;
	s->lo = s->hi = 0;
}

static void give(struct sh_pat_scan *m, struct set *s)
{
	clear(m, s);
	if (m->nspare == m->spare_cap) {
		m->spare_cap = m->spare_cap * 2 + 8;
		m->spare = sh_xrealloc(m->spare, m->spare_cap, sizeof(*m->spare));
	}
	m->spare[m->nspare++] = s->w;
	s->w = NULL;
}

static void widen(struct set *s, size_t lo, size_t hi)
{
	if (empty(s)) {
		s->lo = lo;
		s->hi = hi;
		return;
	}
	s->lo = lo < s->lo ? lo : s->lo;
	s->hi = hi > s->hi ? hi : s->hi;
}

static void add(struct set *s, size_t place)
{
	widen(s, place / 64, place / 64 + 1);
	s->w[place / 64] |= (uint64_t)1 << (place % 64);
}

static bool has(const struct set *s, size_t place)
{
	return !empty(s) && (s->w[place / 64] >> (place % 64) & 1) != 0;
}

static void join(struct sh_pat_scan *m, struct set *s, const struct set *more)
{
	if (empty(more))
		return;
	widen(s, more->lo, more->hi);
	for (size_t i = more->lo; i < more->hi; i++)
		s->w[i] |= more->w[i];
	m->steps += more->hi - more->lo;
}

/* Without what is in less; the range is made as narrow as it can be. */
static void without(struct sh_pat_scan *m, struct set *s, const struct set *less)
{
	m->steps += s->hi - s->lo;
	for (size_t i = s->lo; i < s->hi; i++)
		s->w[i] &= ~less->w[i];
	while (!empty(s) && s->w[s->lo] == 0)
		s->lo++;
	while (!empty(s) && s->w[s->hi - 1] == 0)
		s->hi--;
}

/* The smallest place at or behind from; SIZE_MAX when there is none. */
static size_t lowest(const struct set *s, size_t from)
{
	for (size_t i = from / 64 > s->lo ? from / 64 : s->lo; i < s->hi; i++) {
		uint64_t w = s->w[i];

		if (i == from / 64)
			w &= ~(uint64_t)0 << (from % 64);
		if (w != 0)
			return i * 64 + (size_t)__builtin_ctzll(w);
	}
	return SIZE_MAX;
}

static size_t highest(const struct set *s)
{
	for (size_t i = s->hi; i > s->lo; i--) {
		if (s->w[i - 1] != 0)
			return i * 64 - 1 - (size_t)__builtin_clzll(s->w[i - 1]);
	}
	return SIZE_MAX;
}

/* Every place from `place` on (or up to it). */
static void rest(struct sh_pat_scan *m, size_t place, bool back, struct set *out)
{
	size_t at = place / 64, lo = back ? 0 : at, hi = back ? at + 1 : m->words;
	uint64_t bit = (uint64_t)1 << (place % 64);
	uint64_t mask = back ? bit | (bit - 1) : ~(bit - 1);

	widen(out, lo, hi);
	for (size_t i = lo; i < hi; i++)
		out->w[i] |= m->edge.w[i] & (i == at ? mask : ~(uint64_t)0);
	m->steps += hi - lo;
}

/* --- walking --- */

static bool hits(const struct sh_pat_scan *m, const struct sh_pat_elem *e, uint32_t c)
{
	bool hit = false;

	if (e->kind == SH_PE_LIT)
		return sh_pat_same(m->flags, e->c, c);
	if (e->kind == SH_PE_BRACKET)
		(void)sh_pat_bracket(m->flags, e->text, c, &hit);
	return e->kind == SH_PE_ANY || hit;
}

/* An element that stands for one character. */
static void one_char(struct sh_pat_scan *m, const struct sh_pat_elem *e, bool back,
    const struct set *s, struct set *out)
{
	for (size_t w = s->lo; w < s->hi; w++) {
		m->steps++;
		for (uint64_t bits = s->w[w]; bits != 0; bits &= bits - 1) {
			size_t from = w * 64 + (size_t)__builtin_ctzll(bits), to, n;
			uint32_t c;

			m->steps += 1 + e->text.n;
			if (from == (back ? 0 : m->text.n))
				continue;
			if (back) {
				for (to = from - 1; !has(&m->edge, to);)
					to--;
				(void)sh_utf8_step(sv_sub(m->text, to, m->text.n), &c);
			} else {
				n = sh_utf8_step(sv_sub(m->text, from, m->text.n), &c);
				to = from + n;
			}
			if (hits(m, e, c))
				add(out, to);
		}
	}
}

static void sequence(
    struct sh_pat_scan *m, const struct sh_pat_elem *alt, bool back, struct set *s);

/* Where any of the alternatives leads from s, added to out. */
static void any_of(struct sh_pat_scan *m, const struct sh_pat_elem *group, bool back,
    const struct set *s, struct set *out)
{
	for (const struct sh_pat_elem *alt = group->first; alt != NULL; alt = alt->next) {
		struct set at = take(m);

		join(m, &at, s);
		sequence(m, alt, back, &at);
		join(m, out, &at);
		give(m, &at);
	}
}

/* What is in out, and wherever repeating the group leads from there. */
static void repeat(
    struct sh_pat_scan *m, const struct sh_pat_elem *group, bool back, struct set *out)
{
	struct set fresh = take(m);

	join(m, &fresh, out);
	while (!empty(&fresh) && m->steps < m->limit) {
		struct set next = take(m);

		any_of(m, group, back, &fresh, &next);
		without(m, &next, out);
		join(m, out, &next);
		give(m, &fresh);
		fresh = next;
	}
	give(m, &fresh);
}

/* !(...): from each place, wherever the alternatives do not lead. */
static void none_of(struct sh_pat_scan *m, const struct sh_pat_elem *group, bool back,
    const struct set *s, struct set *out)
{
	for (size_t at = lowest(s, 0); at != SIZE_MAX && m->steps < m->limit;
	     at = lowest(s, at + 1)) {
		struct set one = take(m), all = take(m), led = take(m);

		add(&one, at);
		any_of(m, group, back, &one, &led);
		rest(m, at, back, &all);
		without(m, &all, &led);
		join(m, out, &all);
		give(m, &one);
		give(m, &all);
		give(m, &led);
	}
}

static void step(struct sh_pat_scan *m, const struct sh_pat_elem *e, bool back, const struct set *s,
    struct set *out)
{
	switch (e->kind) {
	case SH_PE_LIT:
	case SH_PE_ANY:
	case SH_PE_BRACKET:
		one_char(m, e, back, s, out);
		break;
	case SH_PE_STAR:
		rest(m, back ? highest(s) : lowest(s, 0), back, out);
		break;
	case SH_PE_GROUP:
		if (e->group == '!') {
			none_of(m, e, back, s, out);
			break;
		}
		if (e->group == '?' || e->group == '*')
			join(m, out, s);
		if (e->group != '*')
			any_of(m, e, back, s, out);
		if (e->group == '*' || e->group == '+')
			repeat(m, e, back, out);
		break;
	case SH_PE_ALT: /* not in a sequence */
		break;
	}
}

/* Take s through one alternative, in place. */
static void sequence(struct sh_pat_scan *m, const struct sh_pat_elem *alt, bool back, struct set *s)
{
	for (const struct sh_pat_elem *e = back ? alt->last : alt->first; e != NULL && !empty(s);
	     e = back ? e->prev : e->next) {
		struct set out = take(m);

		if (m->steps >= m->limit)
			m->over = true;
		else
			step(m, e, back, s, &out);
		give(m, s);
		*s = out;
	}
}

/* --- a pattern and a text --- */

static void scan_init(struct sh_pat_scan *m, sv pattern, sv text, unsigned flags)
{
	*m = (struct sh_pat_scan){ .text = text, .flags = flags, .limit = STEPS_MAX(text.n) };
	sh_pat_tree_init(&m->tree, pattern, flags);
	m->over = m->tree.too_much;
}

static void find_places(struct sh_pat_scan *m)
{
	m->words = m->text.n / 64 + 1;
	m->edge = take(m);
	for (size_t i = 0; i < m->text.n;) {
		uint32_t c;

		add(&m->edge, i);
		i += sh_utf8_step(sv_sub(m->text, i, m->text.n), &c);
	}
	add(&m->edge, m->text.n);
}

static void scan_fini(struct sh_pat_scan *m)
{
	if (m->begin.w != NULL)
		give(m, &m->begin);
	if (m->edge.w != NULL)
		give(m, &m->edge);
	for (size_t i = 0; i < m->nspare; i++)
		free(m->spare[i]);
	free(m->spare);
	sh_pat_tree_fini(&m->tree);
}

/* Take s through the whole pattern; nothing is left of it when that was too much. */
static void walk(struct sh_pat_scan *m, bool back, struct set *s)
{
	if (!m->over)
		sequence(m, m->tree.root, back, s);
	m->over = m->over || m->steps >= m->limit;
	if (m->over)
		clear(m, s);
}

/* Where the pattern leads from one place. */
static struct set from_place(struct sh_pat_scan *m, size_t place, bool back)
{
	struct set s = take(m);

	add(&s, place);
	walk(m, back, &s);
	return s;
}

/* The whole text, by a pattern without groups. */
static bool match_flat(struct sh_pat_scan *m)
{
	const struct sh_pat_elem *e = m->tree.root->first, *star = NULL;
	sv t = m->text, star_t = t;

	for (; m->steps < m->limit; m->steps++) {
		uint32_t c;
		size_t n = t.n != 0 ? sh_utf8_step(t, &c) : 0;

		if (e == NULL && t.n == 0)
			return true;
		if (e != NULL && e->kind == SH_PE_STAR) {
			star = e;
			star_t = t;
			e = e->next;
			continue;
		}
		if (e != NULL && n != 0) {
			m->steps += e->text.n;
			if (hits(m, e, c)) {
				e = e->next;
				t = sv_sub(t, n, t.n);
				continue;
			}
		}
		/* What the last star stands for is one character longer. */
		if (star == NULL || star_t.n == 0)
			return false;
		t = star_t = sv_sub(star_t, sh_utf8_step(star_t, &c), star_t.n);
		e = star->next;
	}
	return false;
}

bool sh_pat_match(sv pattern, sv text, unsigned flags)
{
	struct sh_pat_scan m;
	bool hit = false;

	if ((flags & SH_PAT_PERIOD) != 0 && text.n != 0 && text.p[0] == '.' &&
	    !(pattern.n != 0 && pattern.p[0] == '.') &&
	    !(pattern.n > 1 && pattern.p[0] == '\\' && pattern.p[1] == '.'))
		return false;
	scan_init(&m, pattern, text, flags);
	if (m.tree.groups) {
		struct set s;

		find_places(&m);
		s = from_place(&m, 0, false);
		hit = has(&s, text.n);
		give(&m, &s);
	} else if (!m.over) {
		hit = match_flat(&m);
	}
	scan_fini(&m);
	return hit;
}

/* The lowest or the highest place that the pattern leads to; -1: none. */
static ptrdiff_t led_to(sv pattern, sv text, size_t place, bool back, bool low, unsigned flags)
{
	struct sh_pat_scan m;
	struct set s;
	size_t at;

	scan_init(&m, pattern, text, flags);
	find_places(&m);
	s = from_place(&m, place, back);
	at = low ? lowest(&s, 0) : highest(&s);
	give(&m, &s);
	scan_fini(&m);
	return at != SIZE_MAX ? (ptrdiff_t)at : -1;
}

ptrdiff_t sh_pat_prefix(sv pattern, sv text, bool longest, unsigned flags)
{
	return led_to(pattern, text, 0, false, !longest, flags);
}

ptrdiff_t sh_pat_suffix(sv pattern, sv text, bool longest, unsigned flags)
{
	return led_to(pattern, text, text.n, true, longest, flags);
}

/* --- searching --- */

struct sh_pat_scan *sh_pat_scan_new(sv pattern, sv text, unsigned flags)
{
	struct sh_pat_scan *m = sh_xalloc(1, sizeof(*m));

	scan_init(m, pattern, text, flags);
	/* A pattern of ordinary characters (the usual ${x//a/b}) is a plain search. */
	if (!sh_pat_is_magic(pattern, flags) && (flags & SH_PAT_NOCASE) == 0 &&
	    sv_find(pattern, '\\') < 0)
		m->plain = pattern;
	else
		find_places(m);
	return m;
}

void sh_pat_scan_free(struct sh_pat_scan *m)
{
	if (m == NULL)
		return;
	scan_fini(m);
	free(m);
}

bool sh_pat_scan_next(struct sh_pat_scan *m, size_t from, size_t *start, size_t *end)
{
	struct set s;

	if (m->plain.n != 0) {
		ptrdiff_t at = sv_find_sv(sv_sub(m->text, from, m->text.n), m->plain);

		if (at < 0)
			return false;
		*start = from + (size_t)at;
		*end = *start + m->plain.n;
		return true;
	}
	/* Backwards from every place at once: where anything can begin. */
	if (!m->have_begin) {
		m->have_begin = true;
		m->begin = take(m);
		join(m, &m->begin, &m->edge);
		walk(m, true, &m->begin);
	}
	*start = lowest(&m->begin, from);
	if (*start == SIZE_MAX || (*start == m->text.n && m->text.n != 0))
		return false;
	s = from_place(m, *start, false);
	*end = highest(&s);
	give(m, &s);
	return *end != SIZE_MAX;
}
