/* What the operators of ${...} make of one string: patterns cut and replaced, case, slices, @
 * letters. See expand_int.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/escape.h"
#include "shell/expand_int.h"
#include "shell/parse.h"
#include "shell/pattern.h"
#include "base/ban.h"

static unsigned pat_flags(const struct shell *sh)
{
	/* Extended patterns are harmless where they were not parsed as such. */
	return SH_PAT_EXTGLOB | ((sh->shopts & SH_S_NOCASEMATCH) != 0 ? SH_PAT_NOCASE : 0u);
}

static char *sub_of(struct xp *x, sv s)
{
	return sh_adup(x->a, s);
}

char *sh_x_strip(struct xp *x, const char *s, enum sh_param_op op, const char *pat)
{
	sv t = sv_c(s), p = sv_c(pat);
	bool longest = op == SH_OP_PREFIX_LONG || op == SH_OP_SUFFIX_LONG;
	ptrdiff_t k;

	if (op == SH_OP_PREFIX || op == SH_OP_PREFIX_LONG) {
		k = sh_pat_prefix(p, t, longest, pat_flags(x->sh));
		return sub_of(x, k < 0 ? t : sv_sub(t, (size_t)k, t.n));
	}
	k = sh_pat_suffix(p, t, longest, pat_flags(x->sh));
	return sub_of(x, k < 0 ? t : sv_sub(t, 0, (size_t)k));
}

char *sh_x_replace(
    struct xp *x, const char *s, enum sh_param_op op, const char *pat, const char *rep)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	sv t = sv_c(s), p = sv_c(pat);
	size_t at = 0, from, to;
	unsigned flags = pat_flags(x->sh);
	struct sh_pat_scan *scan;
	uint32_t c;

	if (op == SH_OP_REPLACE_PREFIX || op == SH_OP_REPLACE_SUFFIX) {
		bool prefix = op == SH_OP_REPLACE_PREFIX;
		ptrdiff_t k =
		    prefix ? sh_pat_prefix(p, t, true, flags) : sh_pat_suffix(p, t, true, flags);

		if (k < 0)
			return sub_of(x, t);
		if (!prefix)
			buf_put(&b, s, (size_t)k);
		buf_put_c(&b, rep);
		if (prefix)
			buf_put(&b, s + k, t.n - (size_t)k);
		return sub_of(x, buf_sv(&b));
	}
	scan = sh_pat_scan_new(p, t, flags);
	while (p.n != 0 && sh_pat_scan_next(scan, at, &from, &to)) {
		buf_put(&b, s + at, from - at);
		buf_put_c(&b, rep);
		at = to;
		if (op == SH_OP_REPLACE || at == t.n)
			break;
		if (from == to) { /* the character behind an empty match stays */
			at += sh_utf8_step(sv_sub(t, at, t.n), &c);
			buf_put(&b, s + to, at - to);
		}
	}
	sh_pat_scan_free(scan);
	buf_put(&b, s + at, t.n - at);
	if (!buf_ok(&b))
		sh_no_memory();
	return sub_of(x, buf_sv(&b));
}

static uint32_t change(uint32_t c, enum sh_param_op op)
{
	bool up = c < 0x80 ? c >= 'A' && c <= 'Z' : false,
	     low = c < 0x80 ? c >= 'a' && c <= 'z' : false;

	if ((op == SH_OP_UPPER || op == SH_OP_UPPER_ALL || op == SH_OP_TOGGLE ||
	        op == SH_OP_TOGGLE_ALL) &&
	    low)
		return c - 32;
	if ((op == SH_OP_LOWER || op == SH_OP_LOWER_ALL || op == SH_OP_TOGGLE ||
	        op == SH_OP_TOGGLE_ALL) &&
	    up)
		return c + 32;
	if (c >= 0x80 && op != SH_OP_TOGGLE && op != SH_OP_TOGGLE_ALL) {
		bool upper = op == SH_OP_UPPER || op == SH_OP_UPPER_ALL;

		return upper ? sh_upper(c) : sh_fold(c);
	}
	return c;
}

char *sh_x_recase(struct xp *x, const char *s, enum sh_param_op op, const char *pat)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	sv t = sv_c(s);
	bool all = op == SH_OP_UPPER_ALL || op == SH_OP_LOWER_ALL || op == SH_OP_TOGGLE_ALL;

	for (bool first = true; t.n != 0; first = false) {
		uint32_t c;
		size_t n = sh_utf8_step(t, &c);
		sv one = sv_sub(t, 0, n);

		if ((first || all) &&
		    (pat == NULL || sh_pat_match(sv_c(pat), one, pat_flags(x->sh))) &&
		    change(c, op) != c)
			buf_put_utf8(&b, change(c, op));
		else
			buf_put_sv(&b, one);
		t = sv_sub(t, n, t.n);
	}
	return sub_of(x, buf_sv(&b));
}

/* Characters [off, off + len) of s; len < 0 counts from the end. false: len is out of range. */
bool sh_x_slice(struct xp *x, const char *s, int64_t off, bool has_len, int64_t len, char **out)
{
	sv t = sv_c(s);
	int64_t n = (int64_t)sh_utf8_len(t), end;
	size_t a = 0, b;
	uint32_t c;

	if (off < 0)
		off += n;
	*out = sub_of(x, SV(""));
	if (off < 0 || off > n)
		return true;
	/* off + len, but for what lies behind the end. */
	end = !has_len || len > n - off ? n : len < 0 ? n + len : off + len;
	if (end < off)
		return has_len && len < 0 ? false : true;
	for (int64_t i = 0; i < off; i++)
		a += sh_utf8_step(sv_sub(t, a, t.n), &c);
	b = a;
	for (int64_t i = off; i < end; i++)
		b += sh_utf8_step(sv_sub(t, b, t.n), &c);
	*out = sub_of(x, sv_sub(t, a, b - a));
	return true;
}

static const char *transform_attrs(struct xp *x, const struct sh_param *q)
{
	struct sh_var *v = sh_var_find(x->sh, q->name);
	AUTO_BUF b = buf_with(64);

	if (v == NULL)
		return "";
	if ((v->flags & SH_V_ARRAY) != 0)
		buf_put_c(&b, "a");
	if ((v->flags & SH_V_ASSOC) != 0)
		buf_put_c(&b, "A");
	if ((v->flags & SH_V_INTEGER) != 0)
		buf_put_c(&b, "i");
	if ((v->flags & SH_V_LOWER) != 0)
		buf_put_c(&b, "l");
	if ((v->flags & SH_V_READONLY) != 0)
		buf_put_c(&b, "r");
	if ((v->flags & SH_V_UPPER) != 0)
		buf_put_c(&b, "u");
	if ((v->flags & SH_V_EXPORT) != 0)
		buf_put_c(&b, "x");
	return sub_of(x, buf_sv(&b));
}

char *sh_x_transform(struct xp *x, const struct sh_param *q, const char *s)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	struct sh_word *w;
	struct box_err err;

	switch (q->letter) {
	case 'Q':
		if (s[0] == '\0') {
			buf_put_c(&b, "''");
			break;
		}
		for (const char *p = s; *p != '\0'; p++) {
			if ((unsigned char)*p < 0x20 || *p == 0x7f) {
				sh_quote(&b, sv_c(s), true);
				return sub_of(x, buf_sv(&b));
			}
		}
		buf_put_byte(&b, '\'');
		for (const char *p = s; *p != '\0'; p++) {
			if (*p == '\'')
				buf_put_c(&b, "'\\''");
			else
				buf_put_byte(&b, (uint8_t)*p);
		}
		buf_put_byte(&b, '\'');
		break;
	case 'E':
		sh_unescape(&b, sv_c(s), SH_ESC_ANSI_C);
		break;
	case 'P':
		if (sh_parse_dquoted(x->a, sv_c(s), &w, &err) == 0) {
			char *e = sh_x_string(x, w);

			if (e != NULL)
				buf_put_c(&b, e);
		}
		break;
	case 'U':
		return sh_x_recase(x, s, SH_OP_UPPER_ALL, NULL);
	case 'u':
		return sh_x_recase(x, s, SH_OP_UPPER, NULL);
	case 'L':
		return sh_x_recase(x, s, SH_OP_LOWER_ALL, NULL);
	case 'A':
	case 'a': {
		struct sh_var *v = sh_var_find(x->sh, q->name);

		if (q->letter == 'a')
			return sub_of(x, sv_c(transform_attrs(x, q)));
		if (v == NULL)
			return sub_of(x, SV(""));
		if ((v->flags & ~(unsigned)(SH_V_SET | SH_V_LOCAL)) == 0) {
			buf_putf(&b, "%s=", q->name);
			buf_put_c(&b, "'");
			buf_put_c(&b, s);
			buf_put_c(&b, "'");
		} else {
			sh_var_print(&b, v, "declare");
			if (b.n != 0)
				b.n--;
		}
		break;
	}
	case 'K':
	case 'k':
		sh_quote(&b, sv_c(s), true);
		break;
	default:
		sh_error(x->sh, false, 1, "${%s}: bad substitution", q->text);
		x->bad = true;
		return NULL;
	}
	return sub_of(x, buf_sv(&b));
}
