/* Installing a policy set: compiled without the lock, put in force and stored under it. */
#include <stdlib.h>
#include <string.h>

#include "engine/build.h"
#include "engine/change.h"
#include "engine/engine.h"

#include "base/ban.h"

static void describe(const struct dogwood_engine *e, unsigned kept, struct dogwood_installed *out)
{
	out->rules = (unsigned)e->st.set->n;
	out->clauses = (unsigned)dw_set_nleaves(e->st.set->set);
	out->clauses_kept = kept;
	out->clauses_new = out->clauses - kept;
}

int eng_change(struct dogwood_engine *e, struct eng_set *set, const int32_t *map, int64_t ts,
    struct dogwood_installed *out, struct dogwood_error *err)
{
	AUTO_BUF body = buf_with(WAL_BODY_MAX);
	struct box_err b = { 0 };
	unsigned kept = 0;
	uint64_t offset = e->st.next;

	eng_change_put(&body, set, map);
	if (!buf_ok(&body)) {
		(void)box_fail(
		    &b, BOX_ELIMIT, 0, "the policies and schemas are too large together");
		return eng_error_auto(err, &b);
	}
	if (eng_state_adopt(&e->st, set, map, &kept, &b) < 0)
		return eng_error_auto(err, &b);
	eng_set_ref(set); /* the caller's stays its own */
	/* A failure here breaks the engine, so that the set in memory decides nothing. */
	if (eng_append(e, WAL_INSTALL, ts, buf_sv(&body), err) < 0)
		return -1;
	e->need = e->st.next;
	*out = (struct dogwood_installed){ .changed = true, .offset = offset, .ts_ns = ts };
	describe(e, kept, out);
	return 0;
}

/* Under the lock. */
static int put_in_force(struct dogwood_engine *e, struct eng_set *set,
    struct dogwood_installed *out, struct dogwood_error *err)
{
	struct eng_set *old = e->st.set;
	struct box_err b = { 0 };
	int32_t *map = NULL;
	int64_t ts;
	int rc = -1;

	if (eng_check(e, err) < 0 || eng_stamp(e, &ts, err) < 0)
		return -1;
	if (old != NULL) {
		map = calloc(set->n + 1, sizeof(*map));
		if (map == NULL) {
			(void)box_nomem(&b, "a policy change");
			return eng_error_auto(err, &b);
		}
		dw_set_correspond(set->set, old->set, map);
	}
	if (eng_entries_follow(set, old, map, ts, &b) < 0)
		(void)eng_error_auto(err, &b);
	else
		rc = eng_change(e, set, map, ts, out, err);
	free(map);
	return rc;
}

int dogwood_engine_install(dogwood_engine *e, const struct dogwood_policy_set *in,
    dogwood_diags *diags, struct dogwood_installed *out, struct dogwood_error *err)
{
	struct dogwood_installed here = { 0 };
	struct box_err b = { 0 };
	struct eng_set *set;
	int rc = 0;

	if (in->providers.text.p != NULL && e->opt.provider == NULL) {
		(void)box_fail(&b, BOX_ECONFIG, 0,
		    "the set declares information providers, but the engine was opened without a "
		    "provider callback");
		return eng_error_policy(err, &b);
	}
	if (eng_set_load(in, diags, &set, &b) < 0)
		return eng_error_policy(err, &b);
	(void)pthread_mutex_lock(&e->change);
	eng_lock(e);
	if (e->st.set != NULL && sv_eq(buf_sv(&e->st.set->body), buf_sv(&set->body)))
		describe(e, (unsigned)dw_set_nleaves(e->st.set->set), &here);
	else
		rc = put_in_force(e, set, &here, err);
	if (rc < 0)
		eng_unlock(e);
	else
		rc = eng_wait_durable(e, e->need, err);
	(void)pthread_mutex_unlock(&e->change);
	eng_set_unref(set);
	if (rc == 0 && out != NULL)
		*out = here;
	return rc;
}

int dogwood_engine_rule(dogwood_engine *e, size_t i, struct dogwood_rule *out)
{
	int rc = -1;

	eng_lock(e);
	if (e->st.set != NULL && i < e->st.set->n) {
		*out = eng_set_rule(e->st.set, i);
		rc = 0;
	}
	eng_unlock(e);
	return rc;
}
