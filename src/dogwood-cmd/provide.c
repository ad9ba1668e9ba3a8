/* Answers of information providers from a file, for trying policies that ask them. See cmd.h. */
#include <string.h>

#include "dogwood-cmd/cmd.h"
#include "engine/valjson.h"

#include "base/ban.h"

#define DATA_MAX ((size_t)64 << 20)
#define DEPTH    48

int cmd_answers_read(struct cmd_answers *w, const char *path)
{
	struct box_err err = { 0 };
	sv text;
	int rc = cmd_read(&w->a, path, DATA_MAX, &text);

	w->path = path;
	if (rc != CMD_OK)
		return rc;
	if (eng_json_get(&w->a, text, DEPTH, &w->all, &err) < 0) {
		(void)box_wrap(&err, "%s", path);
		return cmd_failed(&err);
	}
	if (w->all.tag == DW_OBJECT)
		return CMD_OK;
	(void)cmd_error("%s: answers are an object: {\"Ns::Fn(\\\"a\\\", 1)\": VALUE, "
	                "\"Ns::Fn\": VALUE for other arguments}",
	    path);
	return CMD_REFUSED;
}

/* `Ns::Fn("a", 1).m(2)`, or without arguments `Ns::Fn.m`. */
static void put_call(const struct dw_provider_part *part, size_t n, bool arguments, struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		buf_put_c(b, i != 0 ? "." : "");
		buf_put_sv(b, part[i].name);
		if (!arguments)
			continue;
		buf_put_byte(b, '(');
		for (size_t k = 0; k < part[i].nargs; k++) {
			buf_put_c(b, k != 0 ? ", " : "");
			eng_json_put(b, &part[i].args[k]);
		}
		buf_put_byte(b, ')');
	}
}

int cmd_answer(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err)
{
	const struct cmd_answers *w = arg;
	AUTO_BUF exact = buf_with(DATA_MAX), any = buf_with(DATA_MAX);
	const struct dw_val *v, *why;

	(void)a; /* the answers live as long as the program */
	put_call(part, n, true, &exact);
	put_call(part, n, false, &any);
	v = dw_get(&w->all, buf_sv(&exact));
	if (v == NULL)
		v = dw_get(&w->all, buf_sv(&any));
	if (v == NULL || !buf_ok(&exact))
		return box_fail(err, BOX_EPARSE, 0,
		    "%s has no answer for `" SV_FMT "`, nor for `" SV_FMT "` with any arguments",
		    w->path, SV_ARG(sv_sub(buf_sv(&exact), 0, 200)), SV_ARG(buf_sv(&any)));
	why = v->tag == DW_OBJECT ? dw_get(v, SV("__error")) : NULL;
	if (why != NULL && why->tag == DW_STRING)
		return box_fail(err, BOX_EPARSE, 0, SV_FMT, SV_ARG(why->u.s));
	*out = *v;
	return 0;
}

void cmd_answers_fini(struct cmd_answers *w)
{
	arena_free(&w->a);
}
