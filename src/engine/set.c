/* Installed policy sets. See set.h. */
#include "engine/set.h"

#include <stdlib.h>
#include <string.h>

#include "engine/build.h"
#include "engine/codec.h"
#include "engine/diag.h"

#include "base/ban.h"

#define RULES_MAX ((size_t)256 << 20)

struct dogwood_rule eng_set_rule(const struct eng_set *s, size_t i)
{
	struct dogwood_rule r = s->rules[i];

	if (s->entries != NULL)
		r.token = dogwood_cstr(s->entries[i].token);
	return r;
}

static bool only_comments(sv s)
{
	sv line;

	for (s = sv_trim(s); sv_starts(s, SV("//")); s = sv_trim(s))
		(void)sv_cut(s, '\n', &line, &s);
	return s.n == 0;
}

int eng_set_definitions(const struct eng_set *s, struct arena *a, sv *out, struct box_err *err)
{
	AUTO_BUF b = buf_with(DW_SOURCE_MAX);
	size_t at = 0;

	*out = (sv){ NULL, 0 };
	for (size_t i = 0; i <= s->n; i++) {
		const struct dw_rule *r = i < s->n ? dw_set_rule(s->set, i) : NULL;
		sv between = sv_sub(s->text, at, (r != NULL ? r->start : s->text.n) - at);

		if (!only_comments(between)) {
			buf_put_sv(&b, sv_trim(between));
			buf_put_byte(&b, '\n');
		}
		if (r != NULL)
			at = r->start + r->statement.n;
	}
	if (b.n != 0)
		*out = arena_dup(a, buf_sv(&b));
	return buf_ok(&b) && (b.n == 0 || out->p != NULL) ? 0 : box_nomem(err, "definitions");
}

struct eng_set *eng_set_ref(struct eng_set *s)
{
	(void)atomic_fetch_add(&s->refs, 1);
	return s;
}

void eng_set_unref(struct eng_set *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	dw_set_free(s->set);
	buf_fini(&s->body);
	arena_free(&s->a);
	free(s);
}

/* All policy sources as one text, a newline between them. Source i begins at byte start[i],
 * behind before[i] lines. */
static int join(struct arena *a, const struct dogwood_policy_set *in, sv *text, size_t *start,
    uint32_t *before, struct box_err *err)
{
	size_t n = 0, at = 0;
	uint32_t lines = 0;
	char *p;

	for (size_t i = 0; i < in->n_policies; i++) {
		if (!add_sz(n, in->policies[i].text.n, &n) || !add_sz(n, 1, &n))
			n = SIZE_MAX;
		if (n > DW_SOURCE_MAX)
			return box_fail(err, BOX_ELIMIT, 0,
			    "the policies are larger than %zu bytes", DW_SOURCE_MAX);
	}
	p = arena_alloc(a, n + 1, 1);
	if (p == NULL)
		return box_nomem(err, "the policies");
	for (size_t i = 0; i < in->n_policies; i++) {
		if (i != 0)
			p[at++] = '\n';
		start[i] = at;
		before[i] = lines;
		if (in->policies[i].text.n != 0)
			memcpy(p + at, in->policies[i].text.p, in->policies[i].text.n);
		at += in->policies[i].text.n;
		for (size_t k = start[i]; k < at; k++)
			lines += p[k] == '\n';
		lines++; /* the newline that joins */
	}
	*text = (sv){ p, at };
	return 0;
}

static struct dw_source source(const struct dogwood_source *s)
{
	return (struct dw_source){ eng_sv(s->name), eng_sv(s->text) };
}

static int rules(struct eng_set *s, const struct eng_join *j, struct box_err *err)
{
	s->n = dw_set_nrules(s->set);
	s->rules = ARENA_VEC(&s->a, struct dogwood_rule, s->n);
	if (s->rules == NULL)
		return box_nomem(err, "the rules");
	for (size_t i = 0; i < s->n; i++) {
		const struct dw_rule *r = dw_set_rule(s->set, i);
		size_t k = j->n != 0 ? eng_join_find(j, r->start) : 0;

		s->rules[i] = (struct dogwood_rule){ .index = (unsigned)i,
			.engine_id = eng_str(r->cedar_id),
			.id = eng_str(r->id),
			.description = eng_str(r->description),
			.is_forbid = r->forbid,
			.line = r->line };
		if (j->n != 0) {
			s->rules[i].file = j->src[k].name;
			s->rules[i].line -= j->before[k];
		}
	}
	return 0;
}

static int check_shape(const struct dogwood_policy_set *in, struct box_err *err)
{
	if (in->n_policies > ENG_SOURCES_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "more than %d policy sources", ENG_SOURCES_MAX);
	for (size_t i = 0; i < in->n_policies; i++)
		if (in->policies[i].name.n > ENG_NAME_MAX)
			return box_fail(err, BOX_ELIMIT, 0, "the name of a source is too long");
	if (in->action_schema.name.n > ENG_NAME_MAX || in->event_schema.name.n > ENG_NAME_MAX ||
	    in->macros.name.n > ENG_NAME_MAX || in->providers.name.n > ENG_NAME_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "the name of a source is too long");
	return 0;
}

/* The texts of `in` live as long as the set: they are those of s->body. */
static int compile(struct eng_set *s, const struct dogwood_policy_set *in, int64_t tick, bool loose,
    dogwood_diags *diags, struct box_err *err)
{
	size_t *start = ARENA_VEC(&s->a, size_t, in->n_policies);
	uint32_t *before = ARENA_VEC(&s->a, uint32_t, in->n_policies);
	struct eng_join j = { in->policies, start, before, in->n_policies };
	sv name = in->n_policies != 0 ? eng_sv(in->policies[0].name) : SV("policies"), text;
	struct dw_load load = { .action_schema = source(&in->action_schema),
		.event_schema = source(&in->event_schema),
		.macros = source(&in->macros),
		.providers = source(&in->providers),
		.tick = tick,
		.no_validate = loose };
	AUTO_DW_DIAGS found = { 0 };

	if (start == NULL || before == NULL)
		return box_nomem(err, "the policies");
	if (join(&s->a, in, &text, start, before, err) < 0)
		return -1;
	s->text = text;
	load.policy = (struct dw_source){ name, text };
	s->set = dw_load(&load, &found, err);
	if (diags != NULL && eng_diags_add(diags, &found, name, &j) < 0)
		return box_nomem(err, "the diagnostics");
	if (s->set == NULL) {
		/* The language calls all of these by names of its own. */
		if (err != NULL && err->code != BOX_ENOMEM && err->code != BOX_ELIMIT)
			err->code = BOX_ECONFIG;
		return -1;
	}
	return rules(s, &j, err);
}

static int load_body(
    struct eng_set *s, int64_t tick, bool loose, dogwood_diags *diags, struct box_err *err)
{
	struct dogwood_policy_set in;

	if (eng_install_get(buf_sv(&s->body), &s->a, &in, err) < 0)
		return -1;
	return compile(s, &in, tick, loose, diags, err);
}

static struct eng_set *set_new(struct box_err *err)
{
	struct eng_set *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)box_nomem(err, "a policy set");
		return NULL;
	}
	atomic_init(&s->refs, 1);
	s->body = buf_with(ENG_SOURCES_BYTES);
	s->a.limit = RULES_MAX;
	return s;
}

int eng_set_load(const struct dogwood_policy_set *in, dogwood_diags *diags, struct eng_set **out,
    struct box_err *err)
{
	return eng_set_load_for(in, DW_TICK_NANO, false, diags, out, err);
}

int eng_set_load_for(const struct dogwood_policy_set *in, int64_t tick, bool loose,
    dogwood_diags *diags, struct eng_set **out, struct box_err *err)
{
	struct eng_set *s;

	if (check_shape(in, err) < 0 || (s = set_new(err)) == NULL)
		return -1;
	/* Compile what would be stored: what recovery will read is what was checked. */
	eng_install_put(&s->body, in);
	if (!buf_ok(&s->body)) {
		(void)box_fail(
		    err, BOX_ELIMIT, 0, "the policies and schemas are too large together");
		goto fail;
	}
	if (load_body(s, tick, loose, diags, err) < 0)
		goto fail;
	*out = s;
	return 0;
fail:
	eng_set_unref(s);
	return -1;
}

int eng_set_decode(sv body, struct eng_set **out, struct box_err *err)
{
	struct eng_set *s = set_new(err);

	if (s == NULL)
		return -1;
	buf_put_sv(&s->body, body);
	if (!buf_ok(&s->body)) {
		(void)box_nomem(err, "a policy set");
		goto fail;
	}
	if (load_body(s, DW_TICK_NANO, false, NULL, err) < 0) {
		if (err != NULL && err->code == BOX_ECONFIG)
			err->code = BOX_ECORRUPT;
		(void)box_wrap(err, "an installed policy set does not load any more");
		goto fail;
	}
	*out = s;
	return 0;
fail:
	eng_set_unref(s);
	return -1;
}

int dogwood_policy_check(
    const struct dogwood_policy_set *set, dogwood_diags *diags, struct dogwood_error *err)
{
	struct box_err e = { 0 };
	struct eng_set *s = NULL;

	if (eng_set_load(set, diags, &s, &e) < 0)
		return eng_error_policy(err, &e);
	eng_set_unref(s);
	return 0;
}
