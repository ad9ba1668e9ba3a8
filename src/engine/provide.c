/* See provide.h. The host's answer is read like any JSON from outside. */
#include "engine/provide.h"

#include "engine/build.h"
#include "engine/valjson.h"

#include "base/ban.h"

#define ARGS_MAX ((size_t)4 << 20) /* bytes of JSON of one step's arguments */
#define DEPTH    48

struct dogwood_answer {
	struct arena *a;
	struct dw_val v;
	bool given;
	struct box_err err; /* why there is none */
};

void dogwood_answer_json(dogwood_answer *a, dogwood_str json)
{
	a->err = (struct box_err){ 0 };
	a->given = eng_json_get(a->a, eng_sv(json), DEPTH, &a->v, &a->err) == 0;
}

void dogwood_answer_error(dogwood_answer *a, dogwood_str text)
{
	a->given = false;
	(void)box_fail(&a->err, BOX_EPARSE, 0, SV_FMT, SV_ARG(eng_sv(text)));
}

static int call_of(const struct dw_provider_part *part, struct arena *a, struct dogwood_call *out,
    struct box_err *err)
{
	AUTO_BUF b = buf_with(ARGS_MAX);
	sv json;

	buf_put_byte(&b, '[');
	for (size_t i = 0; i < part->nargs; i++) {
		if (i != 0)
			buf_put_byte(&b, ',');
		eng_json_put(&b, &part->args[i]);
	}
	buf_put_byte(&b, ']');
	json = arena_dup(a, buf_sv(&b));
	if (!buf_ok(&b) || json.p == NULL)
		return box_fail(err, BOX_ELIMIT, 0, "the arguments are too large");
	*out = (struct dogwood_call){ eng_str(part->name), eng_str(json) };
	return 0;
}

int eng_provide(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err)
{
	const struct dogwood_options *opt = arg;
	struct dogwood_call *call = ARENA_VEC(a, struct dogwood_call, n);
	dogwood_answer answer = { .a = a };

	if (call == NULL)
		return box_nomem(err, "a call of a provider");
	for (size_t i = 0; i < n; i++) {
		if (call_of(&part[i], a, &call[i], err) < 0)
			return -1;
	}
	opt->provider(opt->provider_arg, call, n, &answer);
	if (answer.given) {
		*out = answer.v;
		return 0;
	}
	return box_fail(
	    err, BOX_EPARSE, 0, "%s", answer.err.code != 0 ? answer.err.msg : "there is no answer");
}
