/* sed: s and y on the pattern space. See sed_machine.h. */
#include "shell/sed_machine.h"

#include <limits.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/ban.h"

bool sed_search(
    struct sed_machine *m, struct sed_re *re, sv text, size_t from, size_t *start, size_t *end)
{
	if (re->empty) {
		if (m->last_re == NULL) {
			(void)shcmd_err(
			    m->io, "-e expression #1, char 0: no previous regular expression");
			m->failed = true;
			return false;
		}
		re = m->last_re;
	}
	m->last_re = re;
	return text_re_search(&re->re, text, from, start, end);
}

struct recase {
	enum sed_case mode, one;
};

/* Text with the case that \U, \L, \u and \l asked for. */
static void put_cased(struct sed_machine *m, struct recase *r, sv text)
{
	struct sed_space *to = &m->scratch;

	if (r->mode == SED_CASE_KEEP && r->one == SED_CASE_KEEP) {
		(void)sed_put(m, to, text.p, text.n); /* m->failed tells */
		return;
	}
	for (size_t i = 0; i < text.n;) {
		enum sed_case how = r->one == SED_CASE_UPPER_ONE   ? SED_CASE_UPPER
		                    : r->one == SED_CASE_LOWER_ONE ? SED_CASE_LOWER
		                                                   : r->mode;
		mbstate_t mb = { 0 };
		char out[MB_LEN_MAX];
		wchar_t wc = 0;
		size_t n = m->s->utf8 ? mbrtowc(&wc, text.p + i, text.n - i, &mb) : 1;

		r->one = SED_CASE_KEEP;
		if (n == 0 || n == (size_t)-1 || n == (size_t)-2 || !m->s->utf8 ||
		    (unsigned char)text.p[i] < 0x80) {
			char c = text.p[i++];

			if (how == SED_CASE_UPPER && c >= 'a' && c <= 'z')
				c = (char)(c - 32);
			else if (how == SED_CASE_LOWER && c >= 'A' && c <= 'Z')
				c = (char)(c + 32);
			(void)sed_put(m, to, &c, 1); /* m->failed tells */
			continue;
		}
		wc = how == SED_CASE_UPPER   ? (wchar_t)towupper((wint_t)wc)
		     : how == SED_CASE_LOWER ? (wchar_t)towlower((wint_t)wc)
		                             : wc;
		mb = (mbstate_t){ 0 };
		size_t w = wcrtomb(out, wc, &mb);

		if (w == (size_t)-1)
			(void)sed_put(m, to, text.p + i, n); /* m->failed tells */
		else
			(void)sed_put(m, to, out, w); /* m->failed tells */
		i += n;
	}
}

static sv group_of(struct sed_machine *m, sv text, size_t start, size_t end, int group)
{
	const struct text_re *re = &m->last_re->re;
	size_t i = (size_t)group;

	if (group == 0)
		return sv_sub(text, start, end - start);
	if (re->literal != NULL || i > text_re_groups(re) || re->regs.start[i] < 0)
		return (sv){ "", 0 };
	return sv_sub(
	    text, (size_t)re->regs.start[i], (size_t)(re->regs.end[i] - re->regs.start[i]));
}

static void put_replacement(
    struct sed_machine *m, const struct sed_subst *s, sv text, size_t start, size_t end)
{
	struct recase r = { SED_CASE_KEEP, SED_CASE_KEEP };

	for (size_t i = 0; i < s->pieces_n; i++) {
		const struct sed_piece *p = &s->pieces[i];

		put_cased(m, &r, p->text);
		if (p->group >= 0)
			put_cased(m, &r, group_of(m, text, start, end, p->group));
		switch (p->change) {
		case SED_CASE_KEEP:
			break;
		case SED_CASE_UPPER:
		case SED_CASE_LOWER:
			r.mode = p->change;
			break;
		case SED_CASE_END:
			r.mode = r.one = SED_CASE_KEEP;
			break;
		case SED_CASE_UPPER_ONE:
		case SED_CASE_LOWER_ONE:
			r.one = p->change;
			break;
		}
	}
}

/* Bytes of the character at `at`; one that is no UTF-8 is one byte. */
static size_t char_len(const struct sed_machine *m, sv text, size_t at)
{
	mbstate_t mb = { 0 };
	size_t n;

	if (!m->s->utf8 || (unsigned char)text.p[at] < 0x80)
		return 1;
	n = mbrlen(text.p + at, text.n - at, &mb);
	return n == (size_t)-1 || n == (size_t)-2 || n == 0 ? 1 : n;
}

void sed_substitute(struct sed_machine *m, struct sed_cmd *c)
{
	struct sed_subst *s = c->s;
	sv text = sed_view(&m->pattern);
	size_t from = 0, start, end, last_end = SIZE_MAX;
	uint64_t count = 0;
	bool done = false;

	m->scratch.n = 0;
	while (from <= text.n && !m->failed && sed_search(m, &s->re, text, from, &start, &end)) {
		bool empty = start == end;

		(void)sed_put(m, &m->scratch, text.p + from, start - from); /* m->failed tells */
		/* An empty match right behind another match is none. */
		if (!(empty && start == last_end)) {
			count++;
			if (count < s->number) {
				(void)sed_put(
				    m, &m->scratch, text.p + start, end - start); /* as above */
			} else {
				put_replacement(m, s, text, start, end);
				done = true;
			}
		}
		last_end = end;
		from = end;
		if (empty) {
			size_t n = from < text.n ? char_len(m, text, from) : 1;

			if (from < text.n)
				(void)sed_put(m, &m->scratch, text.p + from, n); /* as above */
			from += n;
		}
		if (done && !s->global)
			break;
	}
	if (!done || m->failed)
		return;
	if (from < text.n)
		(void)sed_put(m, &m->scratch, text.p + from, text.n - from); /* as above */
	m->scratch.chomped = m->pattern.chomped;
	sed_swap_spaces(&m->pattern, &m->scratch);
	m->replaced = true;
	if (s->print)
		sed_out_pattern(m);
	if (s->w != NULL)
		sed_write_file(m, s->w, sed_view(&m->pattern), m->pattern.chomped);
}

void sed_transliterate(struct sed_machine *m, const struct sed_map *y)
{
	sv text = sed_view(&m->pattern);

	if (y->bytes_only) {
		for (size_t i = 0; i < m->pattern.n; i++)
			m->pattern.p[i] = (char)y->byte[(unsigned char)m->pattern.p[i]];
		return;
	}
	m->scratch.n = 0;
	for (size_t i = 0; i < text.n;) {
		size_t n = char_len(m, text, i);
		sv c = sv_sub(text, i, n), to = c;

		for (size_t k = 0; k < y->n; k++)
			if (sv_eq(y->from[k], c)) {
				to = y->to[k];
				break;
			}
		(void)sed_put(m, &m->scratch, to.p, to.n); /* m->failed tells */
		i += n;
	}
	m->scratch.chomped = m->pattern.chomped;
	sed_swap_spaces(&m->pattern, &m->scratch);
}
