/* Installing a policy set: compiled without the lock, put in force and stored under it. */
#include <string.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

static void describe(const struct dogwood_engine *e, unsigned kept, struct dogwood_installed *out)
{
	out->rules = (unsigned)e->st.set->n;
	out->clauses = (unsigned)dw_set_nleaves(e->st.set->set);
	out->clauses_kept = kept;
	out->clauses_new = out->clauses - kept;
}

/* Under the lock. */
static int put_in_force(struct dogwood_engine *e, struct eng_set *set,
    struct dogwood_installed *out, struct dogwood_error *err)
{
	struct box_err b = { 0 };
	unsigned kept = 0;
	uint64_t offset;
	int64_t ts;

	if (eng_check(e, err) < 0 || eng_stamp(e, &ts, err) < 0)
		return -1;
	if (eng_state_adopt(&e->st, set, &kept, &b) < 0)
		return eng_error_auto(err, &b);
	eng_set_ref(set); /* the caller's stays its own */
	offset = e->st.next;
	/* A failure here breaks the engine, so that the set in memory decides nothing. */
	if (eng_append(e, WAL_INSTALL, ts, buf_sv(&set->body), err) < 0)
		return -1;
	e->need = e->st.next;
	*out = (struct dogwood_installed){ .changed = true, .offset = offset, .ts_ns = ts };
	describe(e, kept, out);
	return 0;
}

int dogwood_engine_install(dogwood_engine *e, const struct dogwood_policy_set *in,
    dogwood_diags *diags, struct dogwood_installed *out, struct dogwood_error *err)
{
	struct dogwood_installed here = { 0 };
	struct box_err b = { 0 };
	struct eng_set *set;
	int rc = 0;

	if (eng_set_load(in, diags, &set, &b) < 0)
		return b.code == BOX_ECONFIG ? eng_error(err, DOGWOOD_EPOLICY, &b)
		                             : eng_error_auto(err, &b);
	(void)pthread_mutex_lock(&e->lock);
	if (e->st.set != NULL && sv_eq(buf_sv(&e->st.set->body), buf_sv(&set->body)))
		describe(e, (unsigned)dw_set_nleaves(e->st.set->set), &here);
	else
		rc = put_in_force(e, set, &here, err);
	if (rc < 0)
		(void)pthread_mutex_unlock(&e->lock);
	else
		rc = eng_wait_durable(e, e->need, err);
	eng_set_unref(set);
	if (rc == 0 && out != NULL)
		*out = here;
	return rc;
}

int dogwood_engine_rule(dogwood_engine *e, size_t i, struct dogwood_rule *out)
{
	int rc = -1;

	(void)pthread_mutex_lock(&e->lock);
	if (e->st.set != NULL && i < e->st.set->n) {
		*out = e->st.set->rules[i];
		rc = 0;
	}
	(void)pthread_mutex_unlock(&e->lock);
	return rc;
}
