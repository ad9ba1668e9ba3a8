/* Word expansion (POSIX 2.6): tilde, parameters, commands and arithmetic produce flagged bytes;
 * then field splitting, pathname expansion and quote removal. Parameters are in param.c,
 * substitutions in subst.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/escape.h"
#include "shell/expand_int.h"
#include "shell/parse.h"
#include "shell/pattern.h"
#include "base/ban.h"

/* --- the flagged buffer --- */

static bool room(struct xp *x, size_t n)
{
	struct xb *b = &x->out;
	size_t need = b->n + n, cap = b->cap != 0 ? b->cap : 64;

	if (need > SH_EXPAND_MAX) {
		if (!x->bad)
			sh_error(x->sh, false, 1, "expansion too large");
		x->bad = true;
		return false;
	}
	if (need <= b->cap)
		return true;
	while (cap < need)
		cap *= 2;
	b->p = sh_xrealloc(b->p, cap, 1);
	b->f = sh_xrealloc(b->f, cap, 1);
	b->cap = cap;
	return true;
}

void sh_x_put(struct xp *x, const char *p, size_t n, uint8_t flags)
{
	if (n == 0 || !room(x, n))
		return;
	memcpy(x->out.p + x->out.n, p, n);
	memset(x->out.f + x->out.n, flags, n);
	x->out.n += n;
}

void sh_x_mark(struct xp *x, uint8_t flag)
{
	if (!room(x, 1))
		return;
	x->out.p[x->out.n] = 0;
	x->out.f[x->out.n] = flag;
	x->out.n++;
}

void sh_x_fini(struct xp *x)
{
	free(x->out.p);
	free(x->out.f);
	x->out = (struct xb){ 0 };
}

void sh_x_value(struct xp *x, const char *s, bool quoted)
{
	sh_x_put(x, s, strlen(s), quoted ? XF_QUOTED : XF_SPLIT);
}

static const char *ifs(struct shell *sh)
{
	const char *s = sh_var_get(sh, "IFS");

	return s != NULL ? s : " \t\n";
}

void sh_x_list(struct xp *x, char *const *v, size_t n, char sep, bool quoted)
{
	const char *i = ifs(x->sh);
	char join = sep == '@' ? ' ' : i[0];

	if (n == 0 && sep == '@' && quoted)
		x->at_empty = true;
	for (size_t k = 0; k < n; k++) {
		if (k != 0) {
			if (x->fields && quoted && sep == '@')
				sh_x_mark(x, XF_BREAK);
			else if (x->fields && !quoted && i[0] == '\0')
				sh_x_mark(x, XF_BREAK);
			else if (x->fields && !quoted)
				sh_x_put(x, i, 1, XF_SPLIT);
			else if (join != '\0')
				sh_x_put(x, &join, 1, quoted ? XF_QUOTED : XF_SPLIT);
		}
		if (quoted && x->fields && sep == '@')
			sh_x_mark(x, XF_EMPTY);
		sh_x_value(x, v[k], quoted);
	}
}

/* --- parts --- */

/* ~, ~+, ~- at s; the length consumed, 0 when it is none. The result is quoted. */
static size_t tilde(struct xp *x, sv s, bool whole)
{
	const char *v = NULL;
	size_t n = 1;

	if (s.n == 0 || s.p[0] != '~')
		return 0;
	while (n < s.n && s.p[n] != '/' && s.p[n] != ':') /* : as bash has it, in every word */
		n++;
	if (n == s.n && !whole)
		return 0; /* ~$x, ~"a": not a tilde prefix */
	if (n == 1)
		v = sh_var_get(x->sh, "HOME");
	else if (n == 2 && s.p[1] == '+')
		v = sh_var_get(x->sh, "PWD");
	else if (n == 2 && s.p[1] == '-')
		v = sh_var_get(x->sh, "OLDPWD");
	if (v == NULL && n == 1)
		v = x->sh->home;
	if (v == NULL)
		return 0;
	if (*v == '\0')
		sh_x_mark(x, XF_EMPTY);
	sh_x_put(x, v, strlen(v), XF_QUOTED);
	return n;
}

/* How far does `NAME=` reach at the front of an argument (bash expands ~ behind it too)? */
static size_t assign_prefix(sv s)
{
	ptrdiff_t eq = sv_find(s, '=');

	return eq > 0 && sh_is_name(sv_sub(s, 0, (size_t)eq)) ? (size_t)eq + 1 : 0;
}

static void literal(struct xp *x, const struct sh_part *part, bool word_start)
{
	uint8_t flags = x->in_arg ? XF_SPLIT : 0;
	sv s = part->text;
	size_t i = 0;

	if (word_start && x->fields && !x->in_arg) {
		i = assign_prefix(s);
		if (i != 0 && i < s.n && s.p[i] == '~') {
			sh_x_put(x, s.p, i, flags);
			i += tilde(x, sv_sub(s, i, s.n), part->next == NULL);
		} else {
			i = 0;
		}
	}
	if (word_start && i == 0)
		i = tilde(x, s, part->next == NULL);
	if (x->tilde_assign) {
		while (i < s.n) {
			ptrdiff_t c = sv_find(sv_sub(s, i, s.n), ':');

			if (c < 0)
				break;
			sh_x_put(x, s.p + i, (size_t)c + 1, flags);
			i += (size_t)c + 1;
			i += tilde(x, sv_sub(s, i, s.n), part->next == NULL);
		}
	}
	sh_x_put(x, s.p + i, s.n - i, flags);
}

static void double_quoted(struct xp *x, const struct sh_part *part)
{
	size_t before = x->out.n;
	bool saved = x->at_empty;

	x->at_empty = false;
	sh_x_parts(x, part->sub, true, false);
	if (x->out.n == before && !x->at_empty)
		sh_x_mark(x, XF_EMPTY);
	x->at_empty = saved;
}

static void arithmetic(struct xp *x, const struct sh_part *part, bool quoted)
{
	struct sh_word w = { .parts = part->sub };
	char text[32];
	int64_t v;
	char *e = sh_x_string(x, &w);

	if (e == NULL)
		return;
	if (sh_arith(x->sh, e, &v) != 0) {
		if (x->sh->flow == SH_FLOW_NONE) {
			x->sh->status = 1;
			x->sh->flow = SH_FLOW_ABORT;
		}
		x->bad = true;
		return;
	}
	(void)snprintf(text, sizeof(text), "%lld", (long long)v);
	sh_x_value(x, text, quoted);
}

void sh_x_parts(struct xp *x, const struct sh_part *parts, bool quoted, bool word_start)
{
	for (const struct sh_part *p = parts; p != NULL && !x->bad; p = p->next) {
		size_t n;
		char *s;

		switch (p->kind) {
		case SH_PT_LIT:
			literal(x, p, word_start && p == parts);
			break;
		case SH_PT_QUOTED:
			if (p->text.n == 0)
				sh_x_mark(x, XF_EMPTY);
			sh_x_put(x, p->text.p, p->text.n, XF_QUOTED);
			break;
		case SH_PT_DQUOTE:
			double_quoted(x, p);
			break;
		case SH_PT_PARAM:
			sh_x_param(x, p->param, quoted);
			break;
		case SH_PT_CMD:
			s = sh_x_command(x, p->cmd, &n);
			if (s != NULL)
				sh_x_put(x, s, n, quoted ? XF_QUOTED : XF_SPLIT);
			free(s);
			break;
		case SH_PT_ARITH:
			arithmetic(x, p, quoted);
			break;
		case SH_PT_PROC:
			if (sh_x_process(x, p) != 0)
				x->bad = true;
			break;
		}
	}
}

/* --- results as one string --- */

static bool special(char c)
{
	return strchr("*?[]\\()|!^-+@", c) != NULL && c != '\0';
}

static bool regex_special(char c)
{
	return strchr("^$.[]|()*+?{}\\", c) != NULL && c != '\0';
}

/* The buffer as a string. Quoted characters that are special get a backslash in patterns. */
static char *render(struct xp *x, size_t from, size_t to, enum sh_expand_mode mode)
{
	AUTO_BUF b = buf_with(2 * SH_EXPAND_MAX);
	char *s;

	for (size_t i = from; i < to; i++) {
		char c = x->out.p[i];
		uint8_t f = x->out.f[i];

		if (f == XF_EMPTY)
			continue;
		if (f == XF_BREAK) {
			buf_put_byte(&b, ' ');
			continue;
		}
		if ((f & XF_QUOTED) != 0 && ((mode == SH_X_PATTERN && special(c)) ||
		                                (mode == SH_X_REGEX && regex_special(c))))
			buf_put_byte(&b, '\\');
		buf_put_byte(&b, (uint8_t)c);
	}
	if (!buf_ok(&b))
		sh_no_memory();
	s = sh_adup(x->a, buf_sv(&b));
	return s;
}

static char *one_string(
    struct shell *sh, struct arena *a, const struct sh_word *w, enum sh_expand_mode mode)
{
	struct xp x = { .sh = sh, .a = a, .tilde_assign = mode == SH_X_ASSIGN };
	char *s = NULL;

	if (w == NULL)
		return sh_adup(a, SV(""));
	/* The common cases need no buffer. */
	if (w->parts == NULL)
		return sh_adup(a, SV(""));
	if (w->parts->next == NULL && w->parts->kind == SH_PT_QUOTED && mode < SH_X_PATTERN)
		return sh_adup(a, w->parts->text);
	if (sh_stack_full(sh))
		return NULL; /* x='${x@P}'; echo ${x@P} */
	sh_x_parts(&x, w->parts, false, true);
	if (!x.bad)
		s = render(&x, 0, x.out.n, mode);
	sh_x_fini(&x);
	return s;
}

char *sh_expand_str(
    struct shell *sh, struct arena *a, const struct sh_word *w, enum sh_expand_mode mode)
{
	return one_string(sh, a, w, mode);
}

char *sh_x_pattern(struct xp *x, const struct sh_word *w)
{
	char *s = one_string(x->sh, x->a, w, SH_X_PATTERN);

	if (s == NULL)
		x->bad = true;
	return s;
}

char *sh_x_string(struct xp *x, const struct sh_word *w)
{
	char *s = one_string(x->sh, x->a, w, SH_X_STRING);

	if (s == NULL)
		x->bad = true;
	return s;
}

/* --- fields --- */

void sh_args_push(struct arena *a, struct sh_args *out, char *s, bool literal_word)
{
	if (out->n + 2 > out->cap) {
		size_t cap = out->cap != 0 ? out->cap * 2 : 16;
		char **v = sh_aalloc(a, cap, sizeof(*v));
		bool *l = sh_aalloc(a, cap, sizeof(*l));

		if (out->n != 0) {
			memcpy(v, out->v, out->n * sizeof(*v));
			memcpy(l, out->literal, out->n * sizeof(*l));
		}
		out->v = v;
		out->literal = l;
		out->cap = cap;
	}
	out->v[out->n] = s;
	out->literal[out->n] = literal_word;
	out->n++;
	out->v[out->n] = NULL;
}

/* Bytes [from, to) of the buffer are a field: pathname expansion, then quote removal. */
static void emit(struct xp *x, size_t from, size_t to, bool lit, struct sh_args *out)
{
	bool magic = false;
	char *pattern;

	for (size_t i = from; i < to && !magic; i++)
		magic = (x->out.f[i] & (XF_QUOTED | XF_EMPTY)) == 0 &&
		        strchr("*?[+@!", x->out.p[i]) != NULL && x->out.p[i] != '\0';
	if (magic && (x->sh->opts & SH_O_NOGLOB) == 0) {
		unsigned flags = (x->sh->shopts & SH_S_EXTGLOB) != 0 ? SH_PAT_EXTGLOB : 0;

		pattern = render(x, from, to, SH_X_PATTERN);
		if (sh_pat_is_magic(sv_c(pattern), flags)) {
			if (sh_glob(x->sh, x->a, pattern, out) != 0)
				return;
			if ((x->sh->shopts & SH_S_FAILGLOB) != 0) {
				char *text = render(x, from, to, SH_X_STRING);

				sh_error(x->sh, false, 1, "no match: %s", text);
				x->bad = true;
				return;
			}
			if ((x->sh->shopts & SH_S_NULLGLOB) != 0)
				return;
		}
	}
	sh_args_push(x->a, out, render(x, from, to, SH_X_STRING), lit);
}

static bool is_ifs(const struct xp *x, size_t i, const char *set)
{
	return x->out.f[i] == XF_SPLIT && x->out.p[i] != '\0' && strchr(set, x->out.p[i]) != NULL;
}

static bool is_ifs_blank(const struct xp *x, size_t i, const char *set)
{
	char c = x->out.p[i];

	return is_ifs(x, i, set) && (c == ' ' || c == '\t' || c == '\n');
}

/* Field splitting (POSIX 2.6.5) of the whole buffer. */
static void split(struct xp *x, bool lit, struct sh_args *out)
{
	const char *set = sh_xstrdup(ifs(x->sh));
	size_t i = 0, n = x->out.n, start;
	bool content;

	while (i < n && !x->bad) {
		while (i < n && is_ifs_blank(x, i, set))
			i++;
		start = i;
		content = false;
		while (i < n && x->out.f[i] != XF_BREAK && !is_ifs(x, i, set)) {
			content = true;
			i++;
		}
		if (i == n) {
			if (content)
				emit(x, start, i, lit, out);
			break;
		}
		if (x->out.f[i] == XF_BREAK) {
			if (content)
				emit(x, start, i, lit, out);
			i++;
			continue;
		}
		/* A delimiter: blanks, at most one other IFS character, blanks. */
		emit(x, start, i, lit, out);
		while (i < n && is_ifs_blank(x, i, set))
			i++;
		if (i < n && is_ifs(x, i, set))
			i++;
	}
	free((char *)(uintptr_t)set);
}

static bool is_literal(const struct sh_word *w)
{
	for (const struct sh_part *p = w->parts; p != NULL; p = p->next) {
		if (p->kind == SH_PT_DQUOTE) {
			for (const struct sh_part *q = p->sub; q != NULL; q = q->next) {
				if (q->kind != SH_PT_QUOTED)
					return false;
			}
		} else if (p->kind != SH_PT_LIT && p->kind != SH_PT_QUOTED) {
			return false;
		}
	}
	return true;
}

static int fields_of(
    struct shell *sh, struct arena *a, const struct sh_word *w, struct sh_args *out)
{
	struct xp x = { .sh = sh, .a = a, .fields = true };
	bool bad;

	/* Plain words are most words. */
	if (w->parts != NULL && w->parts->next == NULL && w->parts->kind == SH_PT_LIT) {
		bool plain = w->parts->text.p[0] != '~';

		for (size_t i = 0; i < w->parts->text.n && plain; i++)
			plain = strchr("*?[+@!~", w->parts->text.p[i]) == NULL;
		if (plain) {
			sh_args_push(a, out, sh_adup(a, w->parts->text), true);
			return 0;
		}
	}
	sh_x_parts(&x, w->parts, false, true);
	if (!x.bad)
		split(&x, is_literal(w), out);
	bad = x.bad;
	sh_x_fini(&x);
	return bad ? -1 : 0;
}

/* An argument of declare and its kin that is an assignment: "name=value" without splitting. Arrays
 * are left to the command. */
static int declared(struct shell *sh, struct arena *a, const struct sh_word *w, struct sh_args *out)
{
	const struct sh_assign *as = w->assign;
	char *value, *s;
	size_t n, k, m;

	if (as->is_array || as->subscript != NULL) {
		struct sh_assign **d = sh_aalloc(a, out->n + 2, sizeof(struct sh_assign *));

		for (size_t i = 0; i < out->ndecl; i++)
			d[i] = out->decl[i];
		sh_args_push(a, out, sh_adup(a, sv_c(w->text)), true);
		/* sh_args_push may not touch decl; it is indexed by argument. */
		d[out->n - 1] = w->assign;
		out->decl = d;
		out->ndecl = out->n;
		return 0;
	}
	value = sh_expand_str(sh, a, as->value, SH_X_ASSIGN);
	if (value == NULL)
		return -1;
	n = strlen(as->name);
	k = strlen(value);
	m = as->append ? 1 : 0;
	s = sh_aalloc(a, n + m + 1 + k + 1, 1);
	memcpy(s, as->name, n);
	if (m != 0)
		s[n] = '+';
	s[n + m] = '=';
	memcpy(s + n + m + 1, value, k);
	sh_args_push(a, out, s, as->value == NULL || is_literal(as->value));
	return 0;
}

int sh_expand_words(
    struct shell *sh, struct arena *a, const struct sh_word *words, struct sh_args *out)
{
	for (const struct sh_word *w = words; w != NULL; w = w->next) {
		if (w->assign != NULL) {
			if (declared(sh, a, w, out) != 0)
				return -1;
		} else if (w->braces && (sh->opts & SH_O_BRACES) != 0) {
			bool too_many = false;

			for (struct sh_word *b = sh_brace_expand(a, w, &too_many); b != NULL;
			     b = b->next) {
				if (fields_of(sh, a, b, out) != 0)
					return -1;
			}
			if (too_many) {
				sh_error(sh, false, 1, "brace expansion: too many words");
				return -1;
			}
		} else if (fields_of(sh, a, w, out) != 0) {
			return -1;
		}
	}
	return 0;
}

char *sh_join(struct shell *sh, struct arena *a, char *const *v, size_t n, const char *sep)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);

	(void)sh;
	for (size_t i = 0; i < n; i++) {
		if (i != 0)
			buf_put_c(&b, sep);
		buf_put_c(&b, v[i]);
	}
	if (!buf_ok(&b))
		sh_no_memory();
	return sh_adup(a, buf_sv(&b));
}

char *sh_expand_text(struct shell *sh, struct arena *a, const char *text)
{
	struct sh_word *w;
	struct box_err err;
	char *s = NULL;

	if (strpbrk(text, "$`\\") != NULL && sh_parse_dquoted(a, sv_c(text), &w, &err) == 0)
		s = sh_expand_str(sh, a, w, SH_X_STRING);
	return s != NULL ? s : sh_adup(a, sv_c(text));
}
