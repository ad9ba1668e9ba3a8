/* Policy sets in Cedar's JSON form, read: static policies, templates and their links. Hostile text;
 * a link finds its template by bisection, so that many of both cost no square. */
#include "cedar/est_priv.h"
#include "cedar/sort.h"

#include "base/ban.h"

/* The templates of a set in the order of their ids. */
struct by_id {
	const struct cedar_policy **v;
	size_t n;
};

static int id_order(const void *a, const void *b)
{
	const struct cedar_policy *const *x = a, *const *y = b;

	return sv_cmp(cedar_sv((*x)->id), cedar_sv((*y)->id));
}

static bool sort_templates(struct er *p, const struct cedar_source *src, struct by_id *t)
{
	size_t i;

	t->v = ARENA_VEC(p->a, const struct cedar_policy *, src->n_policy);
	t->n = 0;
	if (t->v == NULL)
		return est_fail(p, NULL, "out of memory") != NULL;
	for (i = 0; i < src->n_policy; i++)
		if (cedar_policy_is_template(&src->policy[i]))
			t->v[t->n++] = &src->policy[i];
	cedar_sort(t->v, t->n, sizeof(*t->v), id_order);
	return true;
}

static const struct cedar_policy *find_template(const struct by_id *t, sv id)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sv_cmp(cedar_sv(t->v[mid]->id), id);

		if (c == 0)
			return t->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool link_one(
    struct er *p, const struct jnode *j, const struct by_id *templates, struct cedar_link *l)
{
	const struct jnode *of, *id, *v;
	uint32_t k;

	if (!est_only(p, j, 3) || (of = est_member(p, j, "templateId")) == NULL ||
	    (id = est_member(p, j, "newId")) == NULL || (v = est_member(p, j, "values")) == NULL)
		return false;
	if (of->kind != J_STR || id->kind != J_STR || v->kind != J_OBJ)
		return est_fail(p, j,
		           "a link has strings for `templateId` and `newId` and an object for "
		           "`values`") != NULL;
	l->policy = find_template(templates, of->s);
	if (l->policy == NULL)
		return est_fail(p, of, "there is no template of this id") != NULL;
	l->id = est_intern(p, id->s);
	if (l->id == NULL)
		return false;
	for (k = 0; k < v->n; k++) {
		int slot = sv_eq(v->key[k], SV("?principal"))  ? 0
		           : sv_eq(v->key[k], SV("?resource")) ? 1
		                                               : -1;

		if (slot < 0)
			return est_fail(p, v->item[k], "the slots are ?principal and ?resource") !=
			       NULL;
		if (!est_uid(p, v->item[k], &l->slot[slot]))
			return false;
	}
	return true;
}

int cedar_json_policies(struct cedar_syms *t, struct arena *a, sv text, struct cedar_json_set *out,
    struct cedar_diags *ds)
{
	struct er p = { t, a, ds, cedar_places_of(a, text), NULL };
	struct jnode *j = est_start(&p), *part[2], *links;
	struct by_id templates;
	size_t n = 0, i;
	uint32_t k;
	bool good = true;

	*out = (struct cedar_json_set){ .src.text = text };
	if (j == NULL)
		return -1;
	part[0] = jtree_get(j, SV("staticPolicies"));
	part[1] = jtree_get(j, SV("templates"));
	links = jtree_get(j, SV("templateLinks"));
	if (j->kind != J_OBJ ||
	    j->n != (uint32_t)(part[0] != NULL) + (part[1] != NULL) + (links != NULL) ||
	    (part[0] != NULL && part[0]->kind != J_OBJ) ||
	    (part[1] != NULL && part[1]->kind != J_OBJ) ||
	    (links != NULL && links->kind != J_ARR)) {
		est_fail(
		    &p, j, "a policy set has `staticPolicies`, `templates` and `templateLinks`");
		return -1;
	}
	for (i = 0; i < 2; i++)
		n += part[i] != NULL ? part[i]->n : 0;
	out->src.policy = ARENA_VEC(a, struct cedar_policy, n);
	out->link = ARENA_VEC(a, struct cedar_link, n + (links != NULL ? links->n : 0));
	if (out->src.policy == NULL || out->link == NULL) {
		est_fail(&p, NULL, "out of memory");
		return -1;
	}
	for (i = 0; i < 2; i++)
		for (k = 0; part[i] != NULL && k < part[i]->n; k++) {
			struct cedar_policy *pol = &out->src.policy[out->src.n_policy++];

			if (!est_policy(&p, part[i]->item[k], part[i]->key[k], pol)) {
				good = false;
				continue;
			}
			if (cedar_policy_is_template(pol) != (i == 1)) {
				est_fail(&p, part[i]->item[k],
				    i == 1 ? "a template has a slot; this policy has none"
				           : "a static policy has no slots");
				good = false;
			}
			if (i == 0)
				out->link[out->n_link++].policy = pol;
		}
	if (good && links != NULL && !sort_templates(&p, &out->src, &templates))
		good = false;
	for (k = 0; good && links != NULL && k < links->n; k++)
		good = link_one(&p, links->item[k], &templates, &out->link[out->n_link++]);
	return good ? 0 : -1;
}
