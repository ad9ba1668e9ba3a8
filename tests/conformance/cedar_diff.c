/* One side of the differential test (cedar_diff.mjs): reads a case a line on standard input,
 * writes our answers a line on standard output. A case: {schema, policies, templates: [{id, text}],
 * links: [{templateId, newId, values}], entities, requests: [{principal, action, resource,
 * context}], other?: {schema, policies}, translate?}. A schema is a string (human syntax) or an
 * object. `other` holds the other implementation's translations (policies as one JSON set):
 * everything must come out the same from them. With translate our own translations of schema and
 * policies are part of the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/jtree.h"
#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

struct one {
	struct cedar_syms *t;
	struct arena a;
	sv text;
	const struct jnode *j;
	struct cedar_eval ev;
	struct buf out;
};

static sv raw(const struct one *o, const struct jnode *j)
{
	return sv_sub(o->text, j->off, j->len);
}

static void put_ids(struct buf *b, const struct cedar_policies *ps, const uint32_t *v, size_t n)
{
	size_t i;

	buf_put_byte(b, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_put_byte(b, ',');
		buf_put_json(b, cedar_sv(cedar_policies_get(ps, v[i])->id));
	}
	buf_put_byte(b, ']');
}

static void answer(struct one *o, const struct cedar_policies *ps, const struct cedar_schema *s,
    const struct cedar_entities *es, bool conform, const struct jnode *j)
{
	struct cedar_request rq = { .entities = es };
	struct cedar_answer ans;
	struct box_err err = { 0 };
	uint32_t erring[256];
	size_t i;

	cedar_eval_reset(&o->ev);
	if (cedar_json_request(o->t, cedar_eval_arena(&o->ev), raw(o, j), s, &rq, &err) < 0) {
		buf_put_sv(&o->out, SV("{\"bad\":"));
		buf_put_json(&o->out, sv_c(err.msg));
		buf_put_byte(&o->out, '}');
		return;
	}
	conform = conform && s != NULL && cedar_request_conforms(s, &rq, &err) == 0;
	if (ps == NULL || cedar_authorize(ps, &o->ev, &rq, &ans, &err) < 0) {
		buf_put_sv(&o->out, SV("{}"));
		return;
	}
	buf_putf(&o->out, "{\"conform\":%s,\"why\":", conform ? "true" : "false");
	buf_put_json(&o->out, sv_c(err.msg));
	buf_putf(&o->out, ",\"decision\":\"%s\",\"reason\":", ans.allow ? "allow" : "deny");
	put_ids(&o->out, ps, ans.reason, ans.n_reason);
	for (i = 0; i < ans.n_error && i < 256; i++)
		erring[i] = ans.error[i].policy;
	buf_put_sv(&o->out, SV(",\"errors\":"));
	put_ids(&o->out, ps, erring, i);
	buf_put_byte(&o->out, '}');
}

/* Static policies, templates and links as read from a case. */
struct set {
	struct cedar_source fixed;      /* static policies */
	struct cedar_policy **template; /* n_template */
	size_t n_template;
	struct cedar_link *link; /* the static policies, then the links */
	size_t n_link;
};

static bool read_json(struct one *o, const struct jnode *j, struct set *s, struct cedar_diags *ds)
{
	struct cedar_json_set set;
	struct cedar_policy *p;
	size_t i;

	if (cedar_json_policies(o->t, &o->a, raw(o, j), &set, ds) < 0)
		return false;
	s->link = set.link;
	s->n_link = set.n_link;
	s->fixed.policy = ARENA_VEC(&o->a, struct cedar_policy, set.src.n_policy + 1);
	s->template = ARENA_VEC(&o->a, struct cedar_policy *, set.src.n_policy + 1);
	for (i = 0; i < set.src.n_policy; i++) {
		p = &set.src.policy[i];
		if (cedar_policy_is_template(p))
			s->template[s->n_template++] = p;
		else
			s->fixed.policy[s->fixed.n_policy++] = *p;
	}
	return true;
}

static struct cedar_policy *template_of(const struct set *s, sv id)
{
	for (size_t i = 0; i < s->n_template; i++)
		if (sv_eq(cedar_sv(s->template[i] -> id), id))
			return s->template[i];
	return NULL;
}

static bool read_text(struct one *o, struct set *s, struct cedar_diags *ds)
{
	static const char *const slot[] = { "?principal", "?resource" };
	const struct jnode *list = jtree_get(o->j, SV("templates")),
	                   *links = jtree_get(o->j, SV("links")), *j, *v;
	struct cedar_source src;
	size_t i, k;
	bool good =
	    cedar_parse(o->t, &o->a, jtree_get(o->j, SV("policies"))->s, NULL, &s->fixed, ds) == 0;

	s->template = ARENA_VEC(&o->a, struct cedar_policy *, list->n + 1);
	s->link = ARENA_VEC(&o->a, struct cedar_link, s->fixed.n_policy + links->n + 1);
	for (i = 0; i < s->fixed.n_policy; i++) {
		good = good && !cedar_policy_is_template(&s->fixed.policy[i]);
		s->link[s->n_link++].policy = &s->fixed.policy[i];
	}
	for (i = 0; good && i < list->n; i++) {
		j = list->item[i];
		good = cedar_parse(o->t, &o->a, jtree_get(j, SV("text"))->s, NULL, &src, ds) == 0 &&
		       src.n_policy == 1 && cedar_policy_is_template(&src.policy[0]);
		if (!good)
			break;
		src.policy[0].id = cedar_intern(o->t, jtree_get(j, SV("id"))->s);
		s->template[s->n_template++] = &src.policy[0];
	}
	for (i = 0; good && i < links->n; i++) {
		struct cedar_link *l = &s->link[s->n_link++];

		j = links->item[i];
		l->policy = template_of(s, jtree_get(j, SV("templateId"))->s);
		l->id = cedar_intern(o->t, jtree_get(j, SV("newId"))->s);
		good = l->policy != NULL && template_of(s, jtree_get(j, SV("newId"))->s) == NULL;
		for (k = 0; k < 2; k++) {
			v = jtree_get(jtree_get(j, SV("values")), sv_c(slot[k]));
			if (v == NULL)
				continue;
			l->slot[k].type = cedar_intern(o->t, jtree_get(v, SV("type"))->s);
			l->slot[k].id = cedar_intern(o->t, jtree_get(v, SV("id"))->s);
		}
	}
	return good;
}

/* "id": [has errors, is impossible] */
static void verdict(struct one *o, const struct cedar_schema *s, const struct cedar_link *l)
{
	struct cedar_diags ds = cedar_diags_in(&o->a);
	bool bad = cedar_validate(s, l, 1, &ds) != 0, never = false;

	for (size_t i = 0; i < ds.n; i++)
		never = never || sv_find_sv(ds.d[i].message, SV("policy is impossible")) >= 0;
	buf_put_json(&o->out, cedar_sv(l->id != NULL ? l->id : l->policy->id));
	buf_putf(&o->out, ":[%d,%d],", bad, never);
}

/* Our own translations, read again, must be read without complaint. */
static bool again(struct one *o, const struct cedar_source *src)
{
	struct cedar_diags ds = cedar_diags_in(&o->a);
	struct buf b = buf_with(1 << 20);
	struct cedar_source text;
	struct cedar_json_set set;
	size_t i;
	bool good;

	for (i = 0; i < src->n_policy; i++)
		cedar_put_policy(&b, &src->policy[i], i % 2 == 1, NULL);
	good = cedar_parse(o->t, &o->a, buf_sv(&b), NULL, &text, &ds) == 0 &&
	       text.n_policy == src->n_policy;
	if (!good)
		fprintf(stderr, "text again: %s", buf_cstr(&b));
	buf_clear(&b);
	cedar_put_source_json(&b, src, NULL);
	good = good && cedar_json_policies(o->t, &o->a, buf_sv(&b), &set, &ds) == 0;
	if (ds.n != 0)
		fprintf(stderr, SV_FMT "\n", SV_ARG(ds.d[0].message));
	buf_fini(&b);
	return good;
}

static void translations(
    struct one *o, const struct cedar_schema *s, const struct cedar_policies *ps, struct set *set)
{
	if (s != NULL) {
		buf_put_sv(&o->out, SV(",\"schema_json\":"));
		cedar_schema_put_json(&o->out, s->src);
	}
	if (ps == NULL)
		return;
	buf_put_sv(&o->out, SV(",\"est\":["));
	for (size_t i = 0; i < set->fixed.n_policy; i++) {
		if (i > 0)
			buf_put_byte(&o->out, ',');
		cedar_put_policy_json(&o->out, &set->fixed.policy[i], NULL);
	}
	buf_put_byte(&o->out, ']');
}

static void run(struct one *o, const struct jnode *other)
{
	const struct jnode *sj = jtree_get(other != NULL ? other : o->j, SV("schema"));
	const struct jnode *ej = jtree_get(o->j, SV("entities")),
	                   *reqs = jtree_get(o->j, SV("requests"));
	struct cedar_diags ds = cedar_diags_in(&o->a), vds = cedar_diags_in(&o->a);
	bool human = sj->kind == J_STR;
	struct cedar_schema *s =
	    cedar_schema_load(o->t, &o->a, human ? sj->s : raw(o, sj), !human, &ds);
	struct set set = { 0 };
	struct cedar_policies *ps = NULL;
	struct cedar_entities es = cedar_entities_in(&o->a, s != NULL ? &s->actions : NULL);
	struct box_err err = { 0 };
	bool conform = s != NULL, good, valid = false;
	size_t i;

	if (other != NULL ? read_json(o, jtree_get(other, SV("policies")), &set, &ds)
	                  : read_text(o, &set, &ds))
		ps = cedar_policies_new(o->t, set.link, set.n_link, NULL, &ds);
	good = cedar_json_entities(o->t, raw(o, ej), s, &es, &err) == 0;
	for (i = 0; conform && i < es.n; i++)
		conform = cedar_entity_conforms(s, &es.e[i], &err) == 0;
	buf_put_sv(&o->out, SV("{\"verdicts\":{"));
	if (s != NULL && ps != NULL) {
		valid = cedar_validate(s, set.link, set.n_link, &vds) == 0;
		for (i = 0; i < set.n_template; i++) {
			struct cedar_link l = { .policy = set.template[i] };

			valid = cedar_validate(s, &l, 1, &vds) == 0 && valid;
			verdict(o, s, &l);
		}
		for (i = 0; i < set.n_link; i++)
			verdict(o, s, &set.link[i]);
	}
	buf_putf(&o->out,
	    "\"\":[0,0]},\"schema\":%s,\"policies\":%s,\"valid\":%s,\"entities\":%s,\"again\":%s,"
	    "\"why\":[",
	    s != NULL ? "true" : "false", ps != NULL ? "true" : "false", valid ? "true" : "false",
	    good ? "true" : "false", ps == NULL || again(o, &set.fixed) ? "true" : "false");
	for (i = 0; i < ds.n; i++) {
		buf_put_json(&o->out, ds.d[i].message);
		buf_put_byte(&o->out, ',');
	}
	for (i = 0; i < vds.n; i++) {
		buf_put_json(&o->out, vds.d[i].message);
		buf_put_byte(&o->out, ',');
	}
	buf_put_json(&o->out, sv_c(err.msg));
	buf_put_sv(&o->out, SV("],\"answers\":["));
	for (i = 0; good && i < reqs->n; i++) {
		if (i > 0)
			buf_put_byte(&o->out, ',');
		answer(o, ps, s, &es, conform, reqs->item[i]);
	}
	buf_put_byte(&o->out, ']');
	if (other == NULL && jtree_get(o->j, SV("translate")) != NULL)
		translations(o, s, ps, &set);
	buf_put_byte(&o->out, '}');
	cedar_policies_free(ps);
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct one o = { .out = buf_with((size_t)64 << 20), .text = { line, (size_t)n } };
		struct box_err err = { 0 };
		const struct jnode *other;

		o.t = cedar_syms_new(0);
		o.j = jtree_parse(&o.a, o.text, &err);
		if (o.j == NULL) {
			fprintf(stderr, "case: %s\n", err.msg);
			return 2;
		}
		buf_put_byte(&o.out, '[');
		run(&o, NULL);
		other = jtree_get(o.j, SV("other"));
		if (other != NULL) {
			buf_put_byte(&o.out, ',');
			run(&o, other);
		}
		buf_put_byte(&o.out, ']');
		/* The JSON of a schema is indented: one line a case all the same. */
		for (size_t i = 0; i < o.out.n; i++)
			if (o.out.p[i] == '\n')
				o.out.p[i] = ' ';
		printf("%s\n", buf_cstr(&o.out));
		fflush(stdout);
		cedar_eval_fini(&o.ev);
		buf_fini(&o.out);
		arena_free(&o.a);
		cedar_syms_free(o.t);
	}
	free(line);
	return 0;
}
