/* Changing single policies: add, update, delete, reset and changes of the action schema, folded
 * in order over a copy of the set; all of a batch or none of it (local-engine.md 11.3, 11.4). */
#include <stdlib.h>
#include <string.h>

#include "engine/build.h"
#include "engine/change.h"
#include "engine/codec.h"
#include "engine/engine.h"

#include "base/ban.h"

/* One policy of the set that is being made. */
struct item {
	sv text;
	int32_t from; /* index in the old set; -1: new */
	bool keep;    /* its history goes on */
	bool changed; /* its text was replaced */
	struct eng_entry who;
};

struct fold {
	const struct eng_set *old;
	struct arena a; /* texts and items */
	struct item *v;
	size_t n, cap;
	struct dogwood_policy_set src; /* of the old set: its schemas and macros */
	sv schema;
	sv defs; /* macros that the sources define, of all of them together */
	uint64_t next_ordinal;
	dogwood_diags *diags;
	struct buf minted; /* tokens of what was added, one a line */
};

static int push(struct fold *f, const struct item *it, struct box_err *err)
{
	if (f->n == f->cap) {
		size_t cap = f->cap == 0 ? 64 : 2 * f->cap;
		struct item *v = arena_grow(&f->a, f->v, f->n, cap, sizeof(*v));

		if (v == NULL)
			return box_nomem(err, "a batch of changes");
		f->v = v;
		f->cap = cap;
	}
	f->v[f->n++] = *it;
	return 0;
}

static int start(struct fold *f, struct box_err *err)
{
	if (eng_install_get(buf_sv(&f->old->body), &f->a, &f->src, err) < 0 ||
	    eng_set_definitions(f->old, &f->a, &f->defs, err) < 0)
		return -1;
	f->schema = eng_sv(f->src.action_schema.text);
	f->next_ordinal = f->old->next_ordinal;
	for (size_t i = 0; i < f->old->n; i++) {
		struct item it = { .text = dw_set_rule(f->old->set, i)->statement,
			.from = (int32_t)i,
			.keep = true,
			.who = f->old->entries[i] };

		if (push(f, &it, err) < 0)
			return -1;
	}
	return 0;
}

static struct item *find(struct fold *f, sv token, struct box_err *err)
{
	for (size_t i = 0; i < f->n; i++)
		if (sv_eq(sv_c(f->v[i].who.token), token))
			return &f->v[i];
	(void)box_fail(
	    err, BOX_ECONFIG, 0, "no such policy: " SV_FMT, SV_ARG(sv_sub(token, 0, 100)));
	return NULL;
}

static const char defs_name[] = "(definitions)";

static int load_one(const struct fold *f, sv text, bool with_defs, dogwood_diags *diags,
    struct eng_set **out, struct box_err *err)
{
	struct dogwood_source src[2] = { { dogwood_cstr(defs_name), eng_str(f->defs) },
		{ dogwood_cstr("(change)"), eng_str(text) } };
	struct dogwood_policy_set one = f->src;

	one.policies = with_defs ? src : src + 1;
	one.n_policies = with_defs ? 2 : 1;
	one.action_schema.text = eng_str(f->schema);
	return eng_set_load_for(&one, DW_TICK_NANO, true, diags, out, err);
}

/* The policies of one source. They are only taken apart here; the whole new set is checked at
 * the end. They may use macros that are defined already, define more, or repeat definitions word
 * by word. Returns a set to unref. */
static struct eng_set *split(struct fold *f, sv text, struct box_err *err)
{
	bool defs = f->defs.n != 0;
	struct box_err first = { 0 }, again;
	struct eng_set *s;
	sv own;

	if (load_one(f, text, defs, NULL, &s, &first) == 0) {
		if (eng_set_definitions(s, &f->a, &f->defs, err) < 0)
			goto fail;
	} else if (defs && load_one(f, text, false, NULL, &s, &again) == 0) {
		if (eng_set_definitions(s, &f->a, &own, err) < 0)
			goto fail;
		if (own.n == 0 || sv_find_sv(f->defs, own) < 0) {
			*err = first;
			goto fail;
		}
	} else {
		/* Once more, for the findings. */
		if (load_one(f, text, defs, f->diags, &s, err) == 0)
			eng_set_unref(s);
		*err = first;
		return NULL;
	}
	if (s->n != 0)
		return s;
	(void)box_fail(err, BOX_ECONFIG, 0, "source contains no policy");
fail:
	eng_set_unref(s);
	return NULL;
}

static int add(struct fold *f, sv text, struct box_err *err)
{
	struct eng_set *s = split(f, text, err);
	int rc = 0;

	for (size_t i = 0; s != NULL && i < s->n && rc == 0; i++) {
		struct item it = { .text = arena_dup(&f->a, dw_set_rule(s->set, i)->statement),
			.from = -1 };

		if (f->next_ordinal == UINT64_MAX)
			rc = box_fail(err, BOX_ELIMIT, 0, "policy ordinal space exhausted");
		else if (it.text.p == NULL)
			rc = box_nomem(err, "a batch of changes");
		else
			rc = eng_token_mint(it.who.token, err);
		it.who.ordinal = f->next_ordinal++;
		if (rc == 0)
			rc = push(f, &it, err);
		buf_put_c(&f->minted, it.who.token);
		buf_put_byte(&f->minted, '\n');
	}
	eng_set_unref(s);
	return s == NULL ? -1 : rc;
}

static int update(struct fold *f, sv token, sv text, struct box_err *err)
{
	struct item *it = find(f, token, err);
	struct eng_set *s;
	int rc = -1;

	if (it == NULL || (s = split(f, text, err)) == NULL)
		return -1;
	if (s->n != 1) {
		(void)box_fail(
		    err, BOX_ECONFIG, 0, "update expects exactly one policy, got %zu", s->n);
	} else {
		it->text = arena_dup(&f->a, dw_set_rule(s->set, 0)->statement);
		it->keep = false;
		it->changed = true;
		rc = it->text.p != NULL ? 0 : box_nomem(err, "a batch of changes");
	}
	eng_set_unref(s);
	return rc;
}

static int append_schema(struct fold *f, sv fragment, struct box_err *err)
{
	sv was = sv_trim(f->schema);
	const char *p = arena_printf(&f->a, "%.*s\n%.*s", SV_ARG(was), SV_ARG(fragment));

	if (p == NULL)
		return box_nomem(err, "the action schema");
	f->schema = sv_c(p);
	return 0;
}

static int apply(struct fold *f, const struct dogwood_verb *verb, struct box_err *err)
{
	sv token = eng_sv(verb->token), text = eng_sv(verb->text);
	struct item *it;

	if (text.n > DW_SOURCE_MAX || sv_find(text, '\0') >= 0)
		return box_fail(err, BOX_ECONFIG, 0, "a source is too large or holds a NUL");
	switch (verb->kind) {
	case DOGWOOD_ADD:
		return add(f, text, err);
	case DOGWOOD_UPDATE:
		return update(f, token, text, err);
	case DOGWOOD_DELETE:
		it = find(f, token, err);
		if (it == NULL)
			return -1;
		memmove(it, it + 1, (size_t)(f->v + f->n - it - 1) * sizeof(*it));
		f->n--;
		return 0;
	case DOGWOOD_RESET:
		it = find(f, token, err);
		if (it == NULL)
			return -1;
		it->keep = false;
		return 0;
	case DOGWOOD_DELETE_ALL:
		f->n = 0;
		return 0;
	case DOGWOOD_RESET_ALL:
		for (size_t i = 0; i < f->n; i++)
			f->v[i].keep = false;
		return 0;
	case DOGWOOD_SET_ACTION_SCHEMA:
		f->schema = text;
		return 0;
	case DOGWOOD_APPEND_ACTION_SCHEMA:
		return append_schema(f, text, err);
	}
	return box_fail(err, BOX_ECONFIG, 0, "unknown verb %d", (int)verb->kind);
}

/* Compile what the fold gave: one source for each policy, named by its token, and the macros. */
static int compile(struct fold *f, struct eng_set **out, struct box_err *err)
{
	struct dogwood_source *src = ARENA_VEC(&f->a, struct dogwood_source, f->n + 1);
	struct dogwood_policy_set set = f->src;
	size_t n = 0;

	if (src == NULL)
		return box_nomem(err, "a batch of changes");
	if (f->defs.n != 0)
		src[n++] = (struct dogwood_source){ dogwood_cstr(defs_name), eng_str(f->defs) };
	for (size_t i = 0; i < f->n; i++)
		src[n++] = (struct dogwood_source){ dogwood_cstr(f->v[i].who.token),
			eng_str(f->v[i].text) };
	set.policies = src;
	set.n_policies = n;
	set.action_schema.text = eng_str(f->schema);
	if (eng_set_load(&set, f->diags, out, err) < 0)
		return -1;
	if ((*out)->n != f->n) {
		eng_set_unref(*out);
		return box_fail(err, BOX_ECONFIG, 0, "a policy does not stand alone");
	}
	return 0;
}

/* Entries and map of the new set. */
static int32_t *identify(struct fold *f, struct eng_set *set, int64_t ts, struct box_err *err)
{
	int32_t *map = ARENA_VEC(&f->a, int32_t, f->n);

	set->entries = ARENA_VEC(&set->a, struct eng_entry, f->n);
	if (map == NULL || set->entries == NULL) {
		(void)box_nomem(err, "a batch of changes");
		return NULL;
	}
	set->next_ordinal = f->next_ordinal;
	for (size_t i = 0; i < f->n; i++) {
		struct item *it = &f->v[i];

		set->entries[i] = it->who;
		if (it->from < 0)
			set->entries[i].created = ts;
		if (it->from < 0 || it->changed)
			set->entries[i].updated = ts;
		map[i] = it->keep ? it->from : -1;
	}
	return map;
}

/* Holds `change`. */
static int run(struct dogwood_engine *e, struct fold *f, const struct dogwood_verb *verb, size_t n,
    struct dogwood_installed *out, struct dogwood_error *err)
{
	struct eng_set *set = NULL;
	struct box_err b = { 0 };
	const int32_t *map;
	int64_t ts;
	int rc = -1;

	if (start(f, &b) < 0)
		return eng_error_auto(err, &b);
	for (size_t i = 0; i < n; i++)
		if (apply(f, &verb[i], &b) < 0)
			return eng_error_policy(err, &b);
	if (compile(f, &set, &b) < 0)
		return eng_error_policy(err, &b);
	eng_lock(e);
	if (eng_check(e, err) == 0 && eng_stamp(e, &ts, err) == 0) {
		map = identify(f, set, ts, &b);
		rc = map != NULL ? eng_change(e, set, map, ts, out, err) : eng_error_auto(err, &b);
	}
	if (rc < 0)
		eng_unlock(e);
	else
		rc = eng_wait_durable(e, e->need, err);
	eng_set_unref(set);
	return rc;
}

int dogwood_engine_batch(dogwood_engine *e, const struct dogwood_verb *verb, size_t n,
    dogwood_diags *diags, struct dogwood_installed *out, char **minted, struct dogwood_error *err)
{
	struct fold f = { .a = { .limit = (size_t)256 << 20 },
		.diags = diags,
		.minted = buf_with((size_t)16 << 20) };
	struct dogwood_installed here = { 0 };
	struct eng_set *old;
	struct box_err b = { 0 };
	const char *s;
	int rc;

	(void)pthread_mutex_lock(&e->change);
	eng_lock(e);
	old = e->st.set != NULL ? eng_set_ref(e->st.set) : NULL;
	here.ts_ns = e->st.last_ts;
	eng_unlock(e);
	f.old = old;
	if (old == NULL) {
		(void)box_fail(&b, BOX_ECONFIG, 0,
		    "no policy set installed \342\200\224 apply one via the control plane");
		rc = eng_error(err, DOGWOOD_ENOPOLICY, &b);
	} else {
		rc = n == 0 ? 0 : run(e, &f, verb, n, &here, err);
	}
	(void)pthread_mutex_unlock(&e->change);
	if (rc == 0 && out != NULL)
		*out = here;
	if (rc == 0 && minted != NULL) {
		s = buf_cstr(&f.minted);
		*minted = strdup(s != NULL ? s : "");
	}
	eng_set_unref(old);
	arena_free(&f.a);
	buf_fini(&f.minted);
	return rc;
}

int dogwood_engine_policy(
    dogwood_engine *e, size_t i, struct dogwood_policy *out, struct dogwood_error *err)
{
	struct eng_set *set;
	struct box_err b = { 0 };
	int rc = -1;

	eng_lock(e);
	set = e->st.set != NULL ? eng_set_ref(e->st.set) : NULL;
	eng_unlock(e);
	if (set == NULL || i >= set->n) {
		(void)box_fail(&b, BOX_ECONFIG, 0, "there is no policy %zu", i);
		(void)eng_error_auto(err, &b);
	} else {
		const struct eng_entry *w = &set->entries[i];
		sv text = dw_set_rule(set->set, i)->statement;

		*out = (struct dogwood_policy){ .ordinal = w->ordinal,
			.created_ns = w->created,
			.updated_ns = w->updated,
			.statement = strndup(text.p, text.n) };
		memcpy(out->token, w->token, sizeof(out->token));
		rc = out->statement != NULL ? 0 : box_nomem(&b, "a policy");
		if (rc < 0)
			(void)eng_error_auto(err, &b);
	}
	eng_set_unref(set);
	return rc;
}
