/* Looking at a loaded set, and printing findings. See policyset.h. */
#include <stdlib.h>

#include "dogwood/diags.h"
#include "dogwood/provider.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

void dw_diags_fini(struct dw_diags *d)
{
	arena_free(&d->a);
	*d = (struct dw_diags){ 0 };
}

static sv line_at(sv text, size_t off)
{
	size_t from = off < text.n ? off : text.n, to = from;

	while (from > 0 && text.p[from - 1] != '\n')
		from--;
	while (to < text.n && text.p[to] != '\n')
		to++;
	if (to > from && text.p[to - 1] == '\r')
		to--;
	return sv_sub(text, from, to - from);
}

void dw_diags_add(
    struct dw_diags *d, const struct dw_diag *x, sv file, sv text, const struct cedar_span *at)
{
	struct dw_diag y = *x;

	if (d->a.limit == 0)
		d->a.limit = DW_SOURCE_MAX * 2;
	if (y.severity == DW_ERROR)
		d->errors++;
	else
		d->warnings++;
	if (d->n == d->cap) {
		size_t cap = d->cap != 0 ? d->cap * 2 : 16;
		struct dw_diag *v = arena_grow(&d->a, d->v, d->n, cap, sizeof(*v));

		if (v == NULL) {
			d->cut = true;
			return;
		}
		d->v = v;
		d->cap = cap;
	}
	y.message = arena_dup(&d->a, x->message);
	y.help = arena_dup(&d->a, x->help);
	y.file = arena_dup(&d->a, file);
	if (at != NULL && at->line != 0) {
		y.start = at->off;
		y.len = at->len;
		y.line = at->line;
		y.column = at->col;
		y.line_text = arena_dup(&d->a, line_at(text, at->off));
	}
	d->v[d->n++] = y;
}

void dw_diags_take(struct dw_diags *d, const struct cedar_diags *ds, const struct dw_source *src,
    const struct cedar_source *rules)
{
	size_t errors = d->errors;

	for (size_t i = 0; i < ds->n; i++) {
		const struct cedar_diag *x = &ds->d[i];
		struct dw_diag y = { .severity = x->severity == CEDAR_ERROR ? DW_ERROR : DW_WARNING,
			.code = x->code,
			.message = x->message,
			.help = x->hint,
			.rule = -1 };

		for (size_t k = 0; rules != NULL && k < rules->n_policy && x->span.line != 0; k++) {
			const struct cedar_span *p = &rules->policy[k].span;

			if (x->span.off >= p->off && x->span.off - p->off < p->len)
				y.rule = (int32_t)k;
		}
		dw_diags_add(d, &y, src->name, src->text, &x->span);
	}
	/* Findings that were only counted are findings. */
	d->errors = errors + ds->errors;
	d->cut = d->cut || ds->dropped != 0;
}

void dw_diags_messages(const struct dw_diags *d, enum dw_severity severity, struct buf *out)
{
	bool first = true;

	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i].severity != severity)
			continue;
		if (!first)
			buf_put_byte(out, '\n');
		first = false;
		buf_put_sv(out, d->v[i].message);
	}
}

size_t dw_set_nrules(const struct dw_set *s)
{
	return s->nrules;
}

const struct dw_rule *dw_set_rule(const struct dw_set *s, size_t i)
{
	return &s->rules[i];
}

void dw_rule_name(const struct dw_set *s, size_t i, struct buf *b)
{
	const struct dw_rule *r = &s->rules[i];

	if (r->id.p != NULL) {
		buf_put_c(b, "rule @id(\"");
		buf_put_escaped(b, r->id);
		buf_putf(b, "\") (rule %zu)", i + 1);
	} else {
		buf_putf(b, "the %s rule with no @id (rule %zu)", r->forbid ? "forbid" : "permit",
		    i + 1);
	}
}

size_t dw_set_nleaves(const struct dw_set *s)
{
	return s->nleaves;
}

const struct dw_leaf *dw_set_leaf(const struct dw_set *s, size_t i)
{
	return &s->leaves[i].pub;
}

int64_t dw_set_reach(const struct dw_set *s)
{
	return s->reach;
}

int64_t dw_set_tick(const struct dw_set *s)
{
	return s->tick;
}

bool dw_set_has_providers(const struct dw_set *s)
{
	return s->nprovided != 0;
}

bool dw_set_is_decision(const struct dw_set *s, sv kind)
{
	const struct dw_kind *k = dw_eschema_kind(s->events, kind);

	return k != NULL && k->decision;
}

size_t dw_set_ndecision_kinds(const struct dw_set *s)
{
	size_t n = 0;

	for (uint32_t i = 0; i < s->events->nkinds; i++)
		n += s->events->kinds[i].decision;
	return n;
}

sv dw_set_decision_kind(const struct dw_set *s, size_t i)
{
	for (uint32_t k = 0; k < s->events->nkinds; k++) {
		if (s->events->kinds[k].decision && i-- == 0)
			return s->events->kinds[k].name;
	}
	return (sv){ NULL, 0 };
}

bool dw_set_has_action(const struct dw_set *s, sv ns, sv id)
{
	struct cedar_uid u;

	if (s->schema == NULL)
		return true;
	u.type = cedar_syms_find(s->syms, ns);
	u.id = cedar_syms_find(s->syms, id);
	return u.type != NULL && u.id != NULL && cedar_schema_action(s->schema, u) != NULL;
}

size_t dw_set_npins(const struct dw_set *s)
{
	return s->events->nuniversal;
}

sv dw_set_pin(const struct dw_set *s, size_t i)
{
	return s->events->universal[i].field;
}

void dw_set_correspond(const struct dw_set *now, const struct dw_set *old, int32_t *map)
{
	/* Quadratic in the worst case only for rules that share neither id nor place; a policy file
	 * that is edited keeps most of both. */
	size_t hint = 0;
	bool *used = calloc(old->nrules != 0 ? old->nrules : 1, sizeof(bool));

	for (size_t i = 0; i < now->nrules; i++) {
		const struct dw_rule *r = &now->rules[i];

		map[i] = -1;
		for (size_t k = 0; used != NULL && k < old->nrules; k++) {
			size_t at = (hint + k) % old->nrules;
			const struct dw_rule *o = &old->rules[at];

			if (used[at] || (r->id.p != NULL) != (o->id.p != NULL))
				continue;
			if (r->id.p != NULL ? !sv_eq(r->id, o->id)
			                    : !sv_eq(r->fingerprint, o->fingerprint))
				continue;
			used[at] = true;
			map[i] = (int32_t)at;
			hint = at + 1;
			break;
		}
	}
	free(used);
}

static void put_field(void *ctx, struct buf *b, const struct cedar_leaf *l)
{
	const struct dw_set *s = ctx;

	buf_put_c(b, "context.");
	if (l->is_provider) {
		buf_put_c(b, "providers.");
		buf_put_sv(b, ((const struct dw_provider_leaf *)l->host)->field);
		return;
	}
	buf_put_sv(b, s->leaves[l->ordinal].pub.field);
}

static int put_provider(void *ctx, struct cedar_expr **node)
{
	struct buf *out = ctx;
	const struct dw_provider_leaf *l;

	if ((*node)->kind != CEDAR_E_LEAF || !(*node)->leaf->is_provider)
		return 0;
	l = (*node)->leaf->host;
	buf_put_c(out, "// providers.");
	buf_put_sv(out, l->field);
	buf_put_c(out, " = ");
	buf_put_sv(out, l->text);
	buf_put_byte(out, '\n');
	return 0;
}

void dw_set_expand(const struct dw_set *s, struct buf *out)
{
	struct cedar_print how = { NULL, put_field };

	/* The printer's context is not const; put_field only reads. */
	memcpy(&how.ctx, &s, sizeof(how.ctx));
	for (size_t i = 0; i < s->nrules; i++) {
		if (i != 0)
			buf_put_byte(out, '\n');
		for (uint32_t k = 0; k < s->rules[i].nleaves; k++) {
			const struct dw_leaf_impl *f = &s->leaves[s->rules[i].leaf0 + k];

			buf_put_c(out, "// ");
			buf_put_sv(out, f->pub.field);
			buf_put_c(out, " = ");
			dw_cond_print(out, f->cond);
			buf_put_byte(out, '\n');
		}
		for (uint32_t k = 0; k < s->src.policy[i].n_cond; k++) {
			struct cedar_expr *e = s->src.policy[i].cond[k].e;

			(void)cedar_expr_walk(&e, put_provider, out); /* never stops */
		}
		cedar_put_policy(out, &s->src.policy[i], true, &how);
		buf_put_byte(out, '\n');
	}
}
