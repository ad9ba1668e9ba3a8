/* Typed keys and the refusal of unknown ones. See keys.h. */
#include "config/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/ban.h"

int cfg_fail(struct cfg *c, struct plan_at at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)box_vfail(c->err, BOX_ECONFIG, 0, fmt, ap); /* always -1 */
	va_end(ap);
	if (at.line == 0)
		return box_wrap(c->err, SV_FMT, SV_ARG(c->p->config_typed));
	return box_wrap(c->err, SV_FMT ":%d:%d", SV_ARG(c->p->config_typed), at.line, at.col);
}

int cfg_fail_parse(struct cfg *c, struct plan_at at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)box_vfail(c->err, BOX_ECONFIG, 0, fmt, ap); /* always -1 */
	va_end(ap);
	return box_wrap(c->err, "cannot parse config file " SV_FMT ":%d:%d",
	    SV_ARG(c->p->config_typed), at.line, at.col);
}

int cfg_nomem(struct cfg *c)
{
	return box_nomem(c->err, "the configuration");
}

/* Edit distance with transpositions (optimal string alignment). Names are short. */
static size_t distance(sv a, sv b)
{
	size_t d[3][33];

	if (a.n > 32 || b.n > 32)
		return 99;
	for (size_t j = 0; j <= b.n; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *cur = d[i % 3], *prev = d[(i + 2) % 3], *prev2 = d[(i + 1) % 3];

		cur[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t best = prev[j - 1] + (a.p[i - 1] != b.p[j - 1]);

			if (prev[j] + 1 < best)
				best = prev[j] + 1;
			if (cur[j - 1] + 1 < best)
				best = cur[j - 1] + 1;
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] &&
			    a.p[i - 2] == b.p[j - 1] && prev2[j - 2] + 1 < best)
				best = prev2[j - 2] + 1;
			cur[j] = best;
		}
	}
	return d[a.n % 3][b.n];
}

const char *cfg_nearest(sv wrong, const struct cfg_key *keys)
{
	const char *best = NULL;
	size_t best_d = 99;

	for (; keys->name != NULL; keys++) {
		size_t d = distance(wrong, sv_c(keys->name)), most = strlen(keys->name) < 5 ? 1 : 2;

		if (keys->fate == CFG_TAKEN && d <= most && d < best_d) {
			best_d = d;
			best = keys->name;
		}
	}
	return best;
}

const char *cfg_shown(struct cfg *c, sv s)
{
	AUTO_BUF b = buf_with(8192);
	sv copy;

	buf_put_escaped(&b, sv_sub(s, 0, 512));
	copy = arena_dup(&c->p->arena, buf_sv(&b));
	return copy.p != NULL ? copy.p : "?";
}

static const char *list_keys(struct cfg *c, const struct cfg_key *keys)
{
	AUTO_BUF b = buf_with(1024);
	const char *sep = "";
	sv copy;

	for (; keys->name != NULL; keys++) {
		if (keys->fate != CFG_TAKEN)
			continue;
		buf_putf(&b, "%s%s", sep, keys->name);
		sep = " ";
	}
	copy = arena_dup(&c->p->arena, buf_sv(&b));
	return copy.p != NULL ? copy.p : "?";
}

int cfg_check_keys(
    struct cfg *c, const struct toml *t, const struct cfg_key *keys, const char *where)
{
	for (const struct toml *v = t->first; v != NULL; v = v->next) {
		const struct cfg_key *k = keys;
		const char *near;

		while (k->name != NULL && !sv_eq(v->key, sv_c(k->name)))
			k++;
		if (k->name != NULL && k->fate == CFG_TAKEN)
			continue;
		if (k->name != NULL && k->fate == CFG_UNSUPPORTED)
			return cfg_fail(c, cfg_at_key(v),
			    "`%s` in %s is not supported by this build of box yet%s%s", k->name,
			    where, k->hint != NULL ? "; " : "", k->hint != NULL ? k->hint : "");
		if (k->name != NULL)
			return cfg_fail(c, cfg_at_key(v), "%s", k->hint);
		near = cfg_nearest(v->key, keys);
		if (near != NULL)
			return cfg_fail_parse(c, cfg_at_key(v),
			    "unknown key `%s` in %s; did you mean `%s`?", cfg_shown(c, v->key),
			    where, near);
		return cfg_fail_parse(c, cfg_at_key(v),
		    "unknown key `%s` in %s; the keys there are: %s", cfg_shown(c, v->key), where,
		    list_keys(c, keys));
	}
	return 0;
}

int cfg_want(struct cfg *c, const struct toml *v, enum toml_kind kind, const char *name)
{
	if (v->kind == kind)
		return 0;
	return cfg_fail_parse(c, cfg_at(v), "%s must be %s, not %s", name, toml_kind_text(kind),
	    toml_kind_text(v->kind));
}

int cfg_take(struct cfg *c, const struct toml *v, const char *name, sv *out)
{
	if (cfg_want(c, v, TOML_STRING, name) != 0)
		return -1;
	if (sv_find(v->text, '\0') >= 0)
		return cfg_fail_parse(
		    c, cfg_at(v), "%s holds a NUL character, which no program can receive", name);
	*out = arena_dup(&c->p->arena, v->text);
	return out->p != NULL ? 0 : cfg_nomem(c);
}

int cfg_string(struct cfg *c, const struct toml *t, const char *key, sv *out, struct plan_at *at)
{
	const struct toml *v = toml_get(t, sv_c(key));
	char name[64];

	if (v == NULL)
		return 0;
	if (at != NULL)
		*at = cfg_at(v);
	(void)snprintf(name, sizeof(name), "`%s`", key); /* keys are short and ours */
	return cfg_take(c, v, name, out);
}

const char *cfg_name_reason(struct arena *a, sv name, size_t max)
{
	const char *r;

	if (name.n == 0)
		return "it is empty";
	if (sv_eq(name, SV(".")) || sv_eq(name, SV("..")))
		return "it names a relative directory";
	if (max != 0 && name.n > max) {
		r = arena_printf(
		    a, "it is %zu bytes; a name may be at most %zu bytes", name.n, max);
		return r != NULL ? r : "it is too long";
	}
	for (size_t i = 0; i < name.n; i++) {
		char ch = name.p[i];

		if ((ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
		    (ch >= 'a' && ch <= 'z') || ch == '.' || ch == '_' || ch == '-')
			continue;
		if (ch > 0x20 && ch < 0x7f)
			r = arena_printf(a, "it contains '%c'", ch);
		else
			r = arena_printf(
			    a, "it contains the byte 0x%02x", (unsigned)(unsigned char)ch);
		return r != NULL ? r : "it contains a character that is not allowed";
	}
	return NULL;
}
