/* Verdicts. See verdict.h. */
#include "engine/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "engine/build.h"

#include "base/ban.h"

#define TEXT_MAX ((size_t)1 << 20)

struct dogwood_verdict *dogwood_verdict_new(void)
{
	struct eng_verdict *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->text = buf_with(TEXT_MAX);
	eng_verdict_clear(v);
	return &v->pub;
}

void dogwood_verdict_free(struct dogwood_verdict *pub)
{
	struct eng_verdict *v = eng_verdict_of(pub);

	if (v == NULL)
		return;
	eng_set_unref(v->set);
	free(v->rules);
	free(v->errors);
	buf_fini(&v->text);
	free(v);
}

void eng_verdict_clear(struct eng_verdict *v)
{
	eng_set_unref(v->set);
	v->set = NULL;
	v->text.n = 0;
	v->text.bad = false;
	v->pub = (struct dogwood_verdict){ .cause = DOGWOOD_FAULT };
}

void eng_verdict_fault(struct eng_verdict *v, sv why)
{
	v->pub.permit = false;
	v->pub.cause = DOGWOOD_FAULT;
	v->pub.n_rules = 0;
	v->pub.n_errors = 0;
	v->text.n = 0;
	v->text.bad = false;
	buf_put_sv(&v->text, why);
	v->pub.fault = eng_str(buf_ok(&v->text) ? buf_sv(&v->text) : SV("no memory"));
}

static bool grow(void **p, size_t *cap, size_t n, size_t size)
{
	void *q;

	if (n <= *cap)
		return true;
	q = reallocarray(*p, n, size);
	if (q == NULL)
		return false;
	*p = q;
	*cap = n;
	return true;
}

static bool put_rules(struct eng_verdict *v, struct eng_set *set, const uint32_t *rules, size_t n)
{
	size_t k = 0;

	if (set == NULL || n == 0)
		return true;
	if (!grow((void **)&v->rules, &v->cap_rules, n, sizeof(*v->rules)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (rules[i] < set->n)
			v->rules[k++] = eng_set_rule(set, rules[i]);
	v->set = eng_set_ref(set);
	v->pub.rules = v->rules;
	v->pub.n_rules = k;
	return true;
}

void eng_verdict_stored(struct eng_verdict *v, struct eng_set *set, const struct eng_stored *s,
    uint64_t offset, int64_t ts)
{
	size_t at;

	eng_verdict_clear(v);
	v->pub.offset = offset;
	v->pub.ts_ns = ts;
	if (!put_rules(v, set, s->rules, s->nrules) ||
	    !grow((void **)&v->errors, &v->cap_errors, s->nerrors, sizeof(*v->errors)))
		goto nomem;
	buf_put_sv(&v->text, s->fault);
	for (size_t i = 0; i < s->nerrors; i++)
		buf_put_sv(&v->text, s->errors[i]);
	if (!buf_ok(&v->text))
		goto nomem;
	/* The buffer no longer moves. */
	v->pub.fault = eng_str(sv_sub(buf_sv(&v->text), 0, s->fault.n));
	at = s->fault.n;
	for (size_t i = 0; i < s->nerrors; i++) {
		v->errors[i] = eng_str(sv_sub(buf_sv(&v->text), at, s->errors[i].n));
		at += s->errors[i].n;
	}
	v->pub.errors = v->errors;
	v->pub.n_errors = s->nerrors;
	v->pub.cause = (enum dogwood_cause)s->cause;
	v->pub.permit = s->cause == DOGWOOD_PERMITTED;
	return;
nomem:
	eng_verdict_fault(v, SV("no memory for the verdict"));
}

void eng_verdict_fill(struct eng_verdict *v, struct eng_set *set, const struct dw_decision *d,
    uint64_t offset, int64_t ts)
{
	sv text[ENG_ERRORS_MAX];
	struct eng_stored s = { .cause = DOGWOOD_RECORDED, .errors = text };

	if (d != NULL) {
		s.cause = eng_cause_of(d);
		s.rules = d->rules;
		s.nrules = d->nrules;
		s.nerrors = d->nerrors < ENG_ERRORS_MAX ? d->nerrors : ENG_ERRORS_MAX;
		for (size_t i = 0; i < s.nerrors; i++)
			text[i] = sv_c(d->errors[i].text);
		s.fault = sv_c(d->fault);
	}
	eng_verdict_stored(v, set, &s, offset, ts);
}
