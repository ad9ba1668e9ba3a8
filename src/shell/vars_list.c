/* Variables listed: `set`, `export -p`, `declare -p`, and the environment of programs. See vars.h.
 */
#include <stdlib.h>
#include <string.h>

#include "shell/escape.h"
#include "shell/shell.h"
#include "shell/vars.h"
#include "base/ban.h"

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct sh_var *const *)a)->name, (*(struct sh_var *const *)b)->name);
}

struct sh_var **sh_vars_sorted(struct shell *sh, size_t *n)
{
	struct sh_var **out;
	size_t k = 0;

	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		for (struct sh_var *v = sh->vars.bucket[b]; v != NULL; v = v->next)
			k++;
	}
	out = sh_xalloc(k + 1, sizeof(struct sh_var *));
	*n = 0;
	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		for (struct sh_var *v = sh->vars.bucket[b]; v != NULL; v = v->next)
			out[(*n)++] = v;
	}
	qsort(out, *n, sizeof(struct sh_var *), by_name);
	return out;
}

void sh_vars_environ(struct shell *sh, struct sh_vec *out)
{
	size_t n;
	struct sh_var **v = sh_vars_sorted(sh, &n);

	for (size_t i = 0; i < n; i++) {
		if ((v[i]->flags & SH_V_EXPORT) != 0 && v[i]->value != NULL &&
		    (v[i]->flags & SH_V_NAMEREF) == 0)
			sh_vec_push(out, sh_xprintf("%s=%s", v[i]->name, v[i]->value));
	}
	free(v);
}

static void put_dquoted(struct buf *out, const char *s)
{
	bool ctl = false;

	for (const char *p = s; *p != '\0'; p++)
		ctl = ctl || (unsigned char)*p < 0x20 || *p == 0x7f;
	if (ctl) {
		sh_quote(out, sv_c(s), true);
		return;
	}
	buf_put_byte(out, '"');
	for (const char *p = s; *p != '\0'; p++) {
		if (strchr("\"\\$`", *p) != NULL)
			buf_put_byte(out, '\\');
		buf_put_byte(out, (uint8_t)*p);
	}
	buf_put_byte(out, '"');
}

void sh_var_print(struct buf *out, const struct sh_var *v, const char *command)
{
	static const struct {
		unsigned flag;
		char letter;
	} letters[] = { { SH_V_ARRAY, 'a' }, { SH_V_ASSOC, 'A' }, { SH_V_INTEGER, 'i' },
		{ SH_V_LOWER, 'l' }, { SH_V_NAMEREF, 'n' }, { SH_V_READONLY, 'r' },
		{ SH_V_UPPER, 'u' }, { SH_V_EXPORT, 'x' } };
	bool any = false;

	buf_putf(out, "%s -", command);
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if ((v->flags & letters[i].flag) != 0) {
			buf_put_byte(out, (uint8_t)letters[i].letter);
			any = true;
		}
	}
	buf_putf(out, "%s %s", any ? "" : "-", v->name);
	if ((v->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0) {
		if ((v->flags & SH_V_SET) != 0 || v->nelem != 0) {
			buf_put_c(out, "=(");
			for (size_t i = 0; i < v->nelem; i++) {
				if (i != 0 && (v->flags & SH_V_ARRAY) != 0)
					buf_put_byte(out, ' ');
				buf_put_byte(out, '[');
				if (v->elem[i].key != NULL)
					sh_quote(out, sv_c(v->elem[i].key), true);
				else
					buf_putf(out, "%lld", (long long)v->elem[i].index);
				buf_put_c(out, "]=");
				put_dquoted(out, v->elem[i].value);
				if ((v->flags & SH_V_ASSOC) != 0)
					buf_put_byte(out, ' ');
			}
			buf_put_c(out, ")");
		}
	} else if (v->value != NULL) {
		buf_put_byte(out, '=');
		put_dquoted(out, v->value);
	}
	buf_put_byte(out, '\n');
}
