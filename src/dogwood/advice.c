/* See advice.h. */
#include "dogwood/advice.h"

#include "cedar/advice.h"

#include "base/ban.h"

#define LISTED 512 /* more names than this are not looked through */

static const char *meant(struct arena *a, sv word, const sv *v, size_t n, const char *before)
{
	sv near = cedar_nearest(word, v, n);

	return near.n != 0 ? arena_printf(a, "did you mean `%s" SV_FMT "`?", before, SV_ARG(near))
	                   : NULL;
}

static const char *kinds(struct arena *a, const struct dw_eschema *s, sv kind)
{
	sv v[LISTED];
	const char *list = "", *near;
	uint32_t n = 0;

	for (; n < s->nkinds && n < LISTED; n++)
		v[n] = s->kinds[n].name;
	near = meant(a, kind, v, n, "::");
	for (uint32_t i = 0; near == NULL && i < n && list != NULL; i++)
		list = arena_printf(a, "%s%s`" SV_FMT "`", list, i != 0 ? ", " : "", SV_ARG(v[i]));
	return near != NULL   ? near
	       : list != NULL ? arena_printf(a, "the event schema has the kinds %s", list)
	                      : NULL;
}

const char *dw_advice_event(struct arena *a, const struct dw_eschema *s, const struct dw_pred *pred)
{
	AUTO_BUF word = buf_with(65536);
	sv v[LISTED];
	size_t n = 0;

	if (dw_eschema_kind(s, pred->kind) == NULL)
		return kinds(a, s, pred->kind);
	buf_put_sv(&word, pred->ns);
	buf_put_c(&word, "::");
	cedar_put_quoted(&word, pred->id);
	for (uint32_t i = 0; i < s->nevents && n < LISTED; i++) {
		AUTO_BUF b = buf_with(65536);

		if (!sv_eq(s->events[i].kind, pred->kind))
			continue;
		buf_put_sv(&b, s->events[i].ns);
		buf_put_c(&b, "::");
		cedar_put_quoted(&b, s->events[i].id);
		v[n] = arena_dup(a, buf_sv(&b));
		n += v[n].p != NULL && buf_ok(&b);
	}
	return meant(a, buf_sv(&word), v, n, "");
}

const char *dw_advice_field(struct arena *a, const struct dw_derived *e, sv dotted)
{
	size_t n;
	const sv *v = dw_derived_names(a, e, &n);

	/* `path` for `input.path` is no slip of the fingers, so it is not near. */
	for (size_t i = 0; i < n; i++)
		if (v[i].n > dotted.n && sv_ends(v[i], dotted) &&
		    v[i].p[v[i].n - dotted.n - 1] == '.')
			return arena_printf(a, "did you mean `" SV_FMT "`?", SV_ARG(v[i]));
	return meant(a, dotted, v, n < LISTED ? n : LISTED, "");
}

const char *dw_advice_member(struct arena *a, const struct cedar_type *record, sv name)
{
	sv v[LISTED];
	uint32_t n = 0;

	if (record == NULL || record->kind != CEDAR_TY_RECORD)
		return NULL;
	for (; n < record->n_attr && n < LISTED; n++)
		v[n] = cedar_sv(record->attr[n].name);
	return meant(a, name, v, n, "");
}

const char *dw_advice_context(struct arena *a, const struct cedar_type *context, sv name)
{
	for (uint32_t i = 0; i < context->n_attr; i++) {
		const struct cedar_attr *m = &context->attr[i];

		if (m->type->kind == CEDAR_TY_RECORD &&
		    cedar_type_attr_named(m->type, name) != NULL)
			return arena_printf(a, "did you mean `context." SV_FMT "." SV_FMT "`?",
			    SV_ARG(cedar_sv(m->name)), SV_ARG(name));
	}
	return dw_advice_member(a, context, name);
}

const char *dw_advice_etype(struct arena *a, const struct cedar_schema *s, sv name)
{
	sv v[LISTED];
	size_t n = 0;

	for (size_t i = 0; i < s->n_etype && n < LISTED; i++)
		if (!s->etype[i]->is_action)
			v[n++] = cedar_sv(s->etype[i]->name);
	return meant(a, name, v, n, "");
}

const char *dw_advice_token(const struct cedar_tok *tok, const char *expected)
{
	static const struct {
		const char *expected, *text;
	} rows[] = {
		{ "'within' clause", "say how far back to look: `formerly within 1h "
		                     "App::Action::\"read\"::request{}`" },
		{ "time unit",
		    "a window is a whole number and one of s, m, h, d: `90s`, `30m`, `7d`" },
		{ "'for' clause",
		    "count events with `count_within(1h, App::Action::\"read\"::request{}) > 2`" },
		{ "event kind",
		    "an event is an action and a kind: `App::Action::\"read\"::request{}`" },
		{ "`{`", "a pattern has braces, also when any event will do: `::request{}`" },
		{ "`:`",
		    "a field of a pattern is compared with a colon: `input.path: \"notes.txt\"`" },
	};
	const char *text = NULL;

	if (tok->kind == CEDAR_T_IDENT || tok->kind == CEDAR_T_PUNCT)
		text = cedar_advice(CEDAR_AT_TEMPORAL, tok->text);
	/* Inside a pattern, what is wrong is the missing colon. */
	if (text != NULL && (expected == NULL || strcmp(expected, "`:`") != 0))
		return text;
	for (size_t i = 0; expected != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (sv_starts(sv_c(expected), sv_c(rows[i].expected)))
			return rows[i].text;
	return text;
}
