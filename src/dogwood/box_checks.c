/* See box_checks.h. */
#include "dogwood/box_checks.h"

#include <stdlib.h>

#include "dogwood/diags.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

struct chk {
	const struct dw_set *s;
	sv home;
	struct dw_diags *d;
	size_t rule;
	size_t errors;
};

#define TEXT_MAX 65536

static void report(struct chk *k, enum dw_severity sev, size_t rule, const struct cedar_span *at,
    const struct buf *text)
{
	struct dw_diag x = {
		.severity = sev, .code = "box", .message = buf_sv(text), .rule = (int32_t)rule
	};

	if (sev == DW_ERROR)
		k->errors++;
	dw_diags_add(k->d, &x, k->s->source_name, k->s->src.text, at);
}

/* `rule @id("x")`, or `the permit rule with no @id (rule 1)`; with_number adds ` (rule 1)` to the
 * former. */
static void put_rule(struct chk *k, struct buf *b, size_t i, bool with_number)
{
	const struct dw_rule *r = &k->s->rules[i];

	if (r->id.p == NULL || with_number) {
		dw_rule_name(k->s, i, b);
		return;
	}
	buf_put_c(b, "rule @id(\"");
	buf_put_escaped(b, r->id);
	buf_put_c(b, "\")");
}

/* ---- literals ---- */

/* A literal or pattern: runs with stars between them. */
struct lit {
	const sv *run;
	uint32_t n;
	bool pattern;
	struct cedar_span at;
};

static void put_lit(struct buf *b, const struct lit *l)
{
	buf_put_byte(b, '"');
	for (uint32_t i = 0; i < l->n; i++) {
		if (i != 0)
			buf_put_byte(b, '*');
		cedar_put_escaped(b, l->run[i]);
	}
	buf_put_byte(b, '"');
}

static bool under(sv path, sv home)
{
	return home.n > 1 && sv_starts(path, home) && (path.n == home.n || path.p[home.n] == '/');
}

static void inert(struct chk *k, const struct lit *l, const char *field, const char *why,
    const struct lit *better)
{
	AUTO_BUF b = buf_with(TEXT_MAX);

	buf_put_c(&b, "policy compares an inert literal: ");
	put_rule(k, &b, k->rule, false);
	buf_putf(&b, " compares context.input.%s with %s", field, l->pattern ? "the pattern " : "");
	put_lit(&b, l);
	buf_putf(&b, ", and %s; write ", why);
	put_lit(&b, better);
	report(k, DW_ERROR, k->rule, &l->at, &b);
}

static void check_path(struct chk *k, const struct lit *l, const char *field)
{
	AUTO_BUF b = buf_with(TEXT_MAX), first = buf_with(TEXT_MAX);
	sv *runs = calloc(l->n, sizeof(sv)), last = l->run[l->n - 1];
	struct lit better = { runs, l->n, l->pattern, l->at };

	if (runs == NULL) {
		k->errors = SIZE_MAX / 2;
		return;
	}
	memcpy(runs, l->run, l->n * sizeof(sv));
	if (under(l->run[0], k->home)) {
		buf_put_byte(&first, '~');
		buf_put_sv(&first, sv_sub(l->run[0], k->home.n, l->run[0].n));
		runs[0] = buf_sv(&first);
		if (runs[l->n - 1].n > 2 && sv_ends(runs[l->n - 1], SV("/")))
			runs[l->n - 1].n--;
		inert(k, l, field, "a path under the operator home is spelled ~/…", &better);
	} else if (last.n > 1 && sv_ends(last, SV("/"))) {
		runs[l->n - 1].n--;
		inert(k, l, field, "a directory is spelled without a trailing slash", &better);
	}
	for (uint32_t i = 1; i < l->n; i++) {
		ptrdiff_t at = k->home.n > 1 ? sv_find_sv(l->run[i], k->home) : -1;

		if (at < 0 || !under(sv_sub(l->run[i], (size_t)at, l->run[i].n), k->home))
			continue;
		put_rule(k, &b, k->rule, true);
		buf_putf(&b, " compares context.input.%s with the pattern ", field);
		put_lit(&b, l);
		buf_put_c(&b, ", which names the operator home after a wildcard; a path under the "
		              "home is spelled ~/…, so the "
		              "pattern matches none of them");
		report(k, DW_WARNING, k->rule, &l->at, &b);
		break;
	}
	free(runs);
}

static void check_program(struct chk *k, const struct lit *l)
{
	AUTO_BUF b = buf_with(TEXT_MAX);

	if (l->n == 0 || sv_find(l->run[0], '/') < 0)
		return;
	put_rule(k, &b, k->rule, true);
	buf_put_c(&b, " compares context.input.program with ");
	put_lit(&b, l);
	buf_put_c(&b, ", a path; `program` is the command as it was typed, so compare "
	              "`program_path` of shell:spawn instead");
	report(k, DW_WARNING, k->rule, &l->at, &b);
}

static void check_field(struct chk *k, sv field, const struct lit *l)
{
	static const char *const paths[] = { "path", "cwd", "program_path" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (sv_eq(field, sv_c(paths[i])))
			check_path(k, l, paths[i]);
	}
	if (sv_eq(field, SV("program")))
		check_program(k, l);
}

/* The f of context.input.f; empty otherwise. */
static sv input_field(const struct cedar_expr *e)
{
	if (e->kind != CEDAR_E_GET || e->arg[0]->kind != CEDAR_E_GET ||
	    e->arg[0]->arg[0]->kind != CEDAR_E_VAR || e->arg[0]->arg[0]->var != CEDAR_CONTEXT ||
	    !sv_eq(cedar_sv(e->arg[0]->name), SV("input")))
		return (sv){ NULL, 0 };
	return cedar_sv(e->name);
}

static bool string_lit(const struct cedar_expr *e, sv *run, struct lit *out)
{
	if (e->kind != CEDAR_E_LIT || e->value.kind != CEDAR_STRING)
		return false;
	*run = cedar_sv(e->value.s);
	*out = (struct lit){ run, 1, false, e->span };
	return true;
}

static int see(void *ctx, struct cedar_expr **node)
{
	struct chk *k = ctx;
	const struct cedar_expr *e = *node;
	struct lit l;
	sv f, run;

	switch (e->kind) {
	case CEDAR_E_LIKE:
		f = input_field(e->arg[0]);
		l = (struct lit){ e->pattern.run, e->pattern.n, true, e->span };
		if (f.p != NULL && l.n != 0)
			check_field(k, f, &l);
		return 0;
	case CEDAR_E_EQ:
	case CEDAR_E_NE:
		for (int i = 0; i < 2; i++) {
			f = input_field(e->arg[i]);
			if (f.p != NULL && string_lit(e->arg[1 - i], &run, &l))
				check_field(k, f, &l);
		}
		return 0;
	case CEDAR_E_CONTAINS:
		f = input_field(e->arg[1]);
		if (f.p == NULL || e->arg[0]->kind != CEDAR_E_SET)
			return 0;
		for (uint32_t i = 0; i < e->arg[0]->n_arg; i++) {
			if (string_lit(e->arg[0]->arg[i], &run, &l))
				check_field(k, f, &l);
		}
		return 0;
	default:
		return 0;
	}
}

static void see_pred(struct chk *k, const struct dw_pred *p)
{
	for (uint32_t i = 0; i < p->nargs; i++) {
		const struct dw_arg *g = &p->args[i];
		struct lit l = { &g->term->lit.u.s, 1, false, g->at };

		if (g->npath == 2 && sv_eq(g->path[0], SV("input")) &&
		    g->term->kind == DW_TERM_LIT && g->term->lit.tag == DW_STRING)
			check_field(k, g->path[1], &l);
	}
}

/* ---- ids and actions ---- */

static void check_ids(struct chk *k)
{
	const struct dw_set *s = k->s;

	for (size_t i = 0; i < s->nrules; i++) {
		AUTO_BUF b = buf_with(TEXT_MAX);
		size_t more = 0;
		bool first = true;

		if (s->rules[i].id.p == NULL)
			continue;
		for (size_t x = 0; x < i && first; x++)
			first = s->rules[x].id.p == NULL || !sv_eq(s->rules[x].id, s->rules[i].id);
		if (!first)
			continue;
		buf_put_c(&b, "policy gives one @id to more than one rule: @id(\"");
		buf_put_escaped(&b, s->rules[i].id);
		buf_putf(&b, "\") is on rules %zu", i + 1);
		for (size_t x = i + 1; x < s->nrules; x++) {
			if (s->rules[x].id.p == NULL || !sv_eq(s->rules[x].id, s->rules[i].id))
				continue;
			buf_putf(&b, ", %zu", x + 1);
			more = x;
		}
		buf_put_c(&b, "; a refusal names its rule by @id, so give each rule its own");
		if (more != 0)
			report(k, DW_ERROR, more, &s->src.policy[more].span, &b);
	}
}

static bool names_only_other(const struct cedar_scope *a)
{
	if (a->op == CEDAR_S_EQ || a->op == CEDAR_S_IN)
		return sv_eq(cedar_sv(a->uid.type), SV("Box::Action")) &&
		       sv_eq(cedar_sv(a->uid.id), SV("fs:other"));
	if (a->op != CEDAR_S_IN_SET || a->n_set == 0)
		return false;
	for (uint32_t i = 0; i < a->n_set; i++) {
		if (!sv_eq(cedar_sv(a->set[i].id), SV("fs:other")) ||
		    !sv_eq(cedar_sv(a->set[i].type), SV("Box::Action")))
			return false;
	}
	return true;
}

static void check_reserved(struct chk *k, size_t i)
{
	AUTO_BUF b = buf_with(TEXT_MAX);

	if (!names_only_other(&k->s->src.policy[i].action))
		return;
	buf_put_c(&b, "policy names only a reserved action: ");
	put_rule(k, &b, i, true);
	buf_put_c(&b, " names only the reserved action \"fs:other\"; nothing raises it, so the "
	              "rule can never match");
	report(k, DW_ERROR, i, &k->s->src.policy[i].action.span, &b);
}

static bool has_action(const struct cedar_scope *a, struct cedar_uid u)
{
	if (a->op == CEDAR_S_ANY)
		return true;
	if (a->op != CEDAR_S_IN_SET)
		return cedar_uid_eq(a->uid, u);
	for (uint32_t i = 0; i < a->n_set; i++) {
		if (cedar_uid_eq(a->set[i], u))
			return true;
	}
	return false;
}

/* Box has no action groups, so scopes meet when they share an action. */
static bool scopes_meet(const struct cedar_scope *a, const struct cedar_scope *b)
{
	if (a->op == CEDAR_S_ANY || b->op == CEDAR_S_ANY)
		return true;
	if (a->op != CEDAR_S_IN_SET)
		return has_action(b, a->uid);
	for (uint32_t i = 0; i < a->n_set; i++) {
		if (has_action(b, a->set[i]))
			return true;
	}
	return false;
}

static void check_caps(struct chk *k, size_t i)
{
	const struct dw_set *s = k->s;

	if (s->rules[i].forbid || s->rules[i].nleaves == 0)
		return;
	for (size_t x = 0; x < s->nrules; x++) {
		AUTO_BUF b = buf_with(TEXT_MAX);
		bool open = s->src.policy[x].n_cond == 0;

		if (x == i || s->rules[x].forbid || s->rules[x].nleaves != 0 ||
		    !scopes_meet(&s->src.policy[i].action, &s->src.policy[x].action))
			continue;
		if (open)
			buf_put_c(&b, "policy writes a cap as a permit: ");
		put_rule(k, &b, i, true);
		buf_put_c(&b, " carries a temporal clause beside ");
		put_rule(k, &b, x, true);
		if (open)
			buf_put_c(&b, ", which permits the same action with no condition; a permit "
			              "only widens, so the clause limits "
			              "nothing: write the limit as a forbid");
		else
			buf_put_c(&b, ", which permits the same action under a `when`; a permit "
			              "only widens, so the clause limits "
			              "nothing where both hold: write a limit as a forbid");
		report(k, open ? DW_ERROR : DW_WARNING, i, &s->src.policy[i].span, &b);
		return;
	}
}

size_t dw_box_check(const struct dw_set *s, sv home, struct dw_diags *d)
{
	struct chk k = { .s = s, .home = home, .d = d };

	for (size_t i = 0; i < s->nrules; i++) {
		const struct cedar_policy *p = &s->src.policy[i];

		k.rule = i;
		for (uint32_t c = 0; c < p->n_cond; c++) {
			struct cedar_expr *e = p->cond[c].e;

			(void)cedar_expr_walk(&e, see, &k);
		}
		for (uint32_t f = 0; f < s->rules[i].nleaves; f++) {
			const struct dw_names *n = &s->leaves[s->rules[i].leaf0 + f].names;

			for (uint32_t x = 0; x < n->npred; x++)
				see_pred(&k, n->pred[x]);
		}
		check_reserved(&k, i);
		check_caps(&k, i);
	}
	check_ids(&k);
	return k.errors;
}

/* The words in front of the findings of one kind. */
static const char *words(const struct dw_diag *x)
{
	if (x->code == NULL || strcmp(x->code, "box") == 0)
		return "";
	if (strcmp(x->code, "provider") == 0 || strcmp(x->code, "macro") == 0)
		return "failed to parse policy source: dogwood: ";
	if (strcmp(x->code, "parse") == 0)
		return "failed to parse policy source: dogwood parse: ";
	if (sv_find_sv(x->message, SV("unrecognized action")) >= 0)
		return "policy references unknown action: ";
	return "policy fails schema validation: ";
}

void dw_box_reason(const struct dw_diags *d, struct buf *out)
{
	const char *first = NULL;

	for (size_t i = 0; i < d->n; i++) {
		const char *w = words(&d->v[i]);

		if (d->v[i].severity != DW_ERROR || (first != NULL && w != first))
			continue;
		buf_put_c(out, first == NULL ? w : "; ");
		first = w;
		buf_put_sv(out, d->v[i].message);
	}
}
