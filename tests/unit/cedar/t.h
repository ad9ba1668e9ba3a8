/* What the tests of src/cedar share: a world with a symbol table, an arena and findings. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cedar/eval.h"
#include "cedar/parse.h"

struct world {
	struct cedar_syms *t;
	struct arena a;
	struct cedar_diags ds;
	struct cedar_eval ev;
	struct cedar_entities es;
	struct cedar_request rq;
};

static inline int world_open(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->t = cedar_syms_new(0);
	w->ds = cedar_diags_in(&w->a);
	w->es = cedar_entities_in(&w->a, NULL);
	w->rq.entities = &w->es;
	w->rq.principal =
	    (struct cedar_uid){ cedar_intern(w->t, SV("User")), cedar_intern(w->t, SV("alice")) };
	w->rq.action =
	    (struct cedar_uid){ cedar_intern(w->t, SV("Action")), cedar_intern(w->t, SV("view")) };
	w->rq.resource =
	    (struct cedar_uid){ cedar_intern(w->t, SV("Doc")), cedar_intern(w->t, SV("d1")) };
	*state = w;
	return 0;
}

static inline int world_close(void **state)
{
	struct world *w = *state;

	cedar_eval_fini(&w->ev);
	arena_free(&w->a);
	cedar_syms_free(w->t);
	free(w);
	return 0;
}

static inline struct cedar_uid uid(struct world *w, const char *text)
{
	struct cedar_uid u = { NULL, NULL };
	struct box_err err;

	if (cedar_uid_parse(w->t, sv_c(text), &u, &err) < 0)
		fail_msg("%s", err.msg);
	return u;
}

/* The value of an expression as text, or "error: …". In w->a. */
static inline const char *eval_text(struct world *w, const char *expr)
{
	struct cedar_value v;
	struct box_err err = { 0 };
	struct cedar_expr *e;
	struct buf b = buf_with(1 << 16);
	const char *s;

	w->ds = cedar_diags_in(&w->a);
	e = cedar_parse_expr(w->t, &w->a, sv_c(expr), NULL, &w->ds);
	if (e == NULL) {
		s = arena_printf(&w->a, "parse: " SV_FMT, SV_ARG(w->ds.d[0].message));
	} else if (cedar_eval_expr(w->t, &w->ev, e, &w->rq, NULL, &v, &err) < 0) {
		s = arena_printf(&w->a, "error: %s", err.msg);
	} else {
		cedar_put_value(&b, &v);
		s = arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&b)));
	}
	buf_fini(&b);
	return s;
}
