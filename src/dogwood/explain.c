/* `dogwood explain`: what each leaf was compiled to, what it keeps, and what an event and a
 * decision cost. No silent fall-back: a condition that needs the general evaluator is named as
 * such. */
#include "dogwood/set_impl.h"

#include "base/ban.h"

static void put_paths(struct buf *b, const struct dw_col *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i != 0)
			buf_put_c(b, ", ");
		for (uint32_t k = 0; k < v[i].npath; k++)
			buf_putf(b, "%s" SV_FMT, k != 0 ? "." : "", SV_ARG(v[i].path[k]));
	}
}

static void put_span(struct buf *b, int64_t ticks, int64_t tick)
{
	int64_t s = ticks / tick;

	if (ticks == DW_TIME_FOREVER)
		buf_put_c(b, "for ever");
	else if (s % 3600 == 0 && s != 0)
		buf_putf(b, "for %lldh", (long long)(s / 3600));
	else if (s % 60 == 0 && s != 0)
		buf_putf(b, "for %lldm", (long long)(s / 60));
	else
		buf_putf(b, "for %llds", (long long)s);
}

static void put_rel(struct buf *b, const struct dw_set *s, const struct dw_rel *r)
{
	struct dw_uid head = { r->ns, r->id };
	struct dw_val e = dw_ent(head.type, head.id);

	buf_put_c(b, "    ");
	dw_val_print(b, &e);
	buf_put_c(b, "::");
	buf_put_sv(b, r->ekind);
	switch (r->kind) {
	case DW_REL_LATEST:
		buf_put_c(b, ": the newest match");
		break;
	case DW_REL_QUEUE:
		if (r->cap != 0)
			buf_putf(b, ": the newest %u matches", r->cap);
		else
			buf_put_c(b, ": the stamp of every match");
		break;
	case DW_REL_DISTINCT:
		buf_put_c(b, ": the distinct values of ");
		put_paths(b, r->val, r->nval);
		break;
	case DW_REL_RUN:
		buf_put_c(b, ": the unbroken run of matches");
		break;
	case DW_REL_LAST:
		buf_put_c(b, ": the last two matches");
		break;
	}
	if (r->nkey != 0) {
		buf_put_c(b, " for each ");
		put_paths(b, r->key, r->nkey);
	}
	buf_put_c(b, ", ");
	put_span(b, r->reach, s->tick);
	if (r->nfilter != 0)
		buf_putf(b, "; %u condition%s judged when it matches", r->nfilter,
		    r->nfilter == 1 ? "" : "s");
	buf_put_byte(b, '\n');
}

void dw_set_explain(const struct dw_set *s, struct buf *out)
{
	for (size_t i = 0; i < s->nleaves; i++) {
		const struct dw_leaf_impl *f = &s->leaves[i];
		const struct dw_plan *p = &f->plan;

		dw_rule_name(s, f->pub.rule, out);
		buf_putf(out, ", condition %u: ", f->pub.ordinal);
		dw_cond_print(out, f->cond);
		buf_put_byte(out, '\n');
		if (p->general) {
			buf_put_c(out, "  class: general. ");
			buf_put_c(
			    out, p->sees_all ? "Every event" : "Every event its patterns match");
			buf_put_c(out, " is kept ");
			put_span(out, p->reach, s->tick);
			buf_put_c(out, "; a decision looks through what is kept, so it costs more "
			               "the more that is.\n");
		} else if (p->walks) {
			buf_put_c(out,
			    "  class: keyed rows. An event costs one look-up for each pattern that "
			    "it matches; a decision goes "
			    "through the rows that are kept for the request's values.\n");
		} else if (p->nrel != 0) {
			buf_put_c(out, "  class: keyed. An event costs one look-up for each "
			               "pattern that it matches, a decision one for each "
			               "relation it asks; neither depends on the window.\n");
		} else {
			buf_put_c(out, "  class: present. Nothing is kept; only the event that is "
			               "decided is looked at.\n");
		}
		if (f->gate)
			buf_put_c(out, "  The rule is not even met while nothing is kept for the "
			               "request's values.\n");
		if (p->positional || p->sees_all)
			buf_put_c(out, "  Depends on which event came before, so every event is "
			               "synced before its verdict.\n");
		if (p->nrel != 0)
			buf_put_c(out, "  keeps:\n");
		for (uint32_t k = 0; k < p->nrel; k++)
			put_rel(out, s, s->rels.v[p->rel[k]]);
	}
}
