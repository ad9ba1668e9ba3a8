/* The traces of gen.h: events over the fields that the policies of gen.c speak of. */
#include "gen.h"

#include "base/ban.h"

static const char *const actions[] = { "A", "B", "C" };
static const char *const kinds[] = { "request", "response", "error" };

static bool one_in(struct gen *g, uint32_t n)
{
	return gen_int(g, n) == 0;
}

static struct dw_val a_field(struct gen *g, char type)
{
	static const char *const strings[] = { "a", "b", "c" }, *const decimals[] = { "1.0", "1.00",
		"2.5" };

	switch (type) {
	case 'v':
		if (one_in(g, 200))
			return dw_int(one_in(g, 2) ? INT64_MAX : INT64_MIN);
		return dw_int(gen_int(g, 4));
	case 'd':
		return dw_decimal(sv_c(decimals[gen_int(g, 3)]));
	case 'b':
		return dw_bool(one_in(g, 2));
	case 'e':
		return one_in(g, 4) ? dw_ent(SV("N::R"), SV("r"))
		                    : dw_ent(SV("N::U"), sv_c(strings[gen_int(g, 2)]));
	default:
		return dw_str(sv_c(strings[gen_int(g, 3)]));
	}
}

static struct dw_val bag(struct gen *g, struct arena *a, struct dw_rec *outer)
{
	static const char names[] = "uvwdbe", types[] = "uvudbe";
	struct dw_rec in = dw_rec_in(a), inner = dw_rec_in(a);

	for (unsigned f = 0; f < sizeof(names) - 1; f++) {
		/* A field is missing now and then, or of another type than elsewhere. */
		if (!one_in(g, 12))
			dw_rec_add(&in, (sv){ &names[f], 1 },
			    a_field(g, !one_in(g, 60)    ? types[f]
			               : types[f] == 'v' ? 'u'
			                                 : 'v'));
	}
	if (!one_in(g, 6)) {
		if (!one_in(g, 12))
			dw_rec_add(&inner, SV("x"), a_field(g, 'u'));
		dw_rec_add(&in, SV("g"), dw_rec_val(&inner));
	}
	dw_rec_add(outer, SV("input"), dw_rec_val(&in));
	return dw_rec_val(outer);
}

/* Attributes of principal and resource for principal.tag and the like; now and then none. */
static void entities(struct gen *g, struct arena *a, struct dw_event *e)
{
	struct dw_entity *x = ARENA_VEC(a, struct dw_entity, 2);

	if (x == NULL || one_in(g, 4))
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct dw_rec attrs = dw_rec_in(a);

		x[i].uid = i == 0 ? e->principal : e->resource;
		if (!one_in(g, 4))
			dw_rec_add(&attrs, SV("tag"), a_field(g, 'u'));
		if (!one_in(g, 4))
			dw_rec_add(&attrs, SV("level"), a_field(g, 'v'));
		if (one_in(g, 8))
			dw_rec_add(&attrs, SV("id"), a_field(g, 'u'));
		x[i].attrs = dw_rec_val(&attrs);
	}
	e->ents = x;
	e->nents = 2;
}

struct dw_event *gen_trace(struct gen *g, struct arena *a, size_t n, bool back, bool pins)
{
	static const char *const who[] = { "a", "b" }, *const spelled[] = { "1.0", "1.00" };
	struct dw_event *v = ARENA_VEC(a, struct dw_event, n);
	int64_t ts = one_in(g, 50) ? INT64_MAX - 2000 : one_in(g, 50) ? INT64_MIN + 2000 : 100;

	for (size_t i = 0; v != NULL && i < n; i++) {
		struct dw_rec logged = dw_rec_in(a), ctx = dw_rec_in(a);
		const char *p = who[pins ? gen_int(g, 2) : 0], *s = who[gen_int(g, 2)];
		bool low = one_in(g, 2);

		ts += gen_int(g, one_in(g, 10) ? 30 : 5);
		if (back && one_in(g, 6))
			ts -= gen_int(g, 12);
		v[i].ns = one_in(g, 16) ? SV("M::Action") : SV("N::Action");
		v[i].id = sv_c(actions[gen_int(g, 3)]);
		v[i].kind = sv_c(kinds[gen_int(g, 2) == 0 ? 0 : gen_int(g, 3)]);
		v[i].ts = ts;
		v[i].principal = (struct dw_uid){ SV("N::U"), sv_c(p) };
		v[i].resource = (struct dw_uid){ SV("N::R"), SV("r") };
		entities(g, a, &v[i]);
		/* A request has every pinned field, and its context says the same; decimals may be
		 * spelled differently. Other events may lack one. */
		if (pins) {
			bool whole = sv_eq(v[i].kind, SV("request"));

			if (whole || !one_in(g, 12))
				dw_rec_add(
				    &logged, SV("callerPrincipal"), dw_ent(SV("N::U"), sv_c(p)));
			if (whole || !one_in(g, 12))
				dw_rec_add(&logged, SV("sessionId"), dw_str(sv_c(s)));
			if (whole || !one_in(g, 12))
				dw_rec_add(&logged, SV("key"),
				    dw_decimal(low ? SV("0.5") : sv_c(spelled[gen_int(g, 2)])));
			dw_rec_add(&ctx, SV("sessionId"), dw_str(sv_c(s)));
			dw_rec_add(&ctx, SV("key"),
			    dw_decimal(low ? SV("0.50") : sv_c(spelled[gen_int(g, 2)])));
		}
		v[i].logged = bag(g, a, &logged);
		v[i].context = !pins && one_in(g, 3) ? v[i].logged : bag(g, a, &ctx);
	}
	return v;
}
