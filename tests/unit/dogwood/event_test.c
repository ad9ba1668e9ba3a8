/* Values, their keys and equality; the stored form of events, also damaged; traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "dogwood/trace.h"
#include "gen.h"

#include "base/ban.h"

/* Values that are pairwise different, but for those of one group. */
static struct dw_val v_arr(const struct dw_val *v, size_t n)
{
	return (struct dw_val){ .tag = DW_ARRAY, .u.arr = { v, n } };
}

static void equality_and_keys(void **state)
{
	const struct dw_val one[] = { dw_int(1) }, two[] = { dw_int(1), dw_int(2) },
	                    swapped[] = { dw_int(2), dw_int(1) };
	const struct dw_member ab[] = { { SV("a"), dw_int(1) }, { SV("b"), dw_int(2) } },
	                       ba[] = { { SV("b"), dw_int(2) }, { SV("a"), dw_int(1) } },
	                       a[] = { { SV("a"), dw_int(1) } };
	const struct {
		int group;
		struct dw_val v;
	} vals[] = {
		{ 0, dw_null() },
		{ 1, dw_bool(true) },
		{ 2, dw_bool(false) },
		{ 3, dw_int(1) },
		{ 4, dw_int(-1) },
		{ 5, dw_str(SV("1")) },
		{ 6, dw_str(SV("")) },
		{ 7, dw_decimal(SV("1.5")) },
		{ 7, dw_decimal(SV("1.50")) },
		{ 7, dw_decimal(SV("01.5000")) },
		{ 8, dw_decimal(SV("-0.0")) },
		{ 8, dw_decimal(SV("0.0")) },
		{ 9, dw_decimal(SV("1.00000")) },
		{ 10, dw_decimal(SV("1.000000")) },
		{ 11, dw_ent(SV("A"), SV("b")) },
		{ 12, dw_ent(SV("Ab"), SV("")) },
		{ 13, v_arr(one, 1) },
		{ 14, v_arr(two, 2) },
		{ 15, v_arr(swapped, 2) },
		{ 16, v_arr(NULL, 0) },
		{ 17, dw_obj(ab, 2) },
		{ 17, dw_obj(ba, 2) },
		{ 18, dw_obj(a, 1) },
		{ 19, dw_obj(NULL, 0) },
		{ 20, dw_decimal(SV("922337203685477.5807")) },
		{ 21, dw_decimal(SV("922337203685477.5808")) },
		{ 22, dw_decimal(SV("-922337203685477.5808")) },
	};
	const size_t n = sizeof(vals) / sizeof(vals[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			AUTO_BUF x = buf_with(1000), y = buf_with(1000);
			bool same = vals[i].group == vals[k].group;

			dw_val_key(&x, &vals[i].v);
			dw_val_key(&y, &vals[k].v);
			assert_true(buf_ok(&x) && buf_ok(&y));
			if (dw_val_eq(&vals[i].v, &vals[k].v) != same ||
			    sv_eq(buf_sv(&x), buf_sv(&y)) != same)
				fail_msg("values %zu and %zu", i, k);
		}
	}
}

static void long_strings_have_short_keys(void **state)
{
	AUTO_BUF text = buf_with(1 << 20), x = buf_with(1000), y = buf_with(1000),
	         z = buf_with(1000);
	struct dw_val v;

	(void)state;
	for (int i = 0; i < 100000; i++)
		buf_put_byte(&text, 'a');
	v = dw_str(buf_sv(&text));
	dw_val_key(&x, &v);
	text.p[99999] = 'b';
	dw_val_key(&y, &v);
	text.p[99999] = 'a';
	dw_val_key(&z, &v);
	assert_true(buf_ok(&x) && buf_ok(&y) && x.n < 64);
	assert_false(sv_eq(buf_sv(&x), buf_sv(&y)));
	assert_true(sv_eq(buf_sv(&x), buf_sv(&z)));
	/* No short string can pass for a long one. */
	buf_clear(&y);
	v = dw_str(buf_sv(&x));
	dw_val_key(&y, &v);
	assert_false(sv_eq(buf_sv(&x), buf_sv(&y)));
}

static void many_members(void **state)
{
	AUTO_ARENA a = { 0 };
	struct dw_rec up = dw_rec_in(&a), down = dw_rec_in(&a);
	AUTO_BUF x = buf_with(100000), y = buf_with(100000);
	struct dw_val u, d;

	(void)state;
	for (int i = 0; i < 300; i++)
		dw_rec_int(&up, sv_c(arena_printf(&a, "m%d", i)), i);
	for (int i = 300; i-- != 0;)
		dw_rec_int(&down, sv_c(arena_printf(&a, "m%d", i)), i);
	u = dw_rec_val(&up);
	d = dw_rec_val(&down);
	assert_true(dw_val_eq(&u, &d));
	dw_val_key(&x, &u);
	dw_val_key(&y, &d);
	assert_true(sv_eq(buf_sv(&x), buf_sv(&y)));
	assert_int_equal(dw_get(&u, SV("m299"))->u.i, 299);
	assert_null(dw_get(&u, SV("m300")));
}

static void events_come_back(void **state)
{
	struct gen g = { 42 };
	AUTO_ARENA a = { 0 }, b = { 0 };
	struct dw_event *ev = gen_trace(&g, &a, 200, true, true), back;
	struct box_err err = { 0 };

	(void)state;
	assert_non_null(ev);
	for (size_t i = 0; i < 200; i++) {
		AUTO_BUF x = buf_with(1 << 20), y = buf_with(1 << 20);
		struct rd r;

		dw_event_put(&x, &ev[i], DW_PUT_ALL);
		assert_true(buf_ok(&x));
		r = rd_of(x.p, x.n);
		assert_return_code(dw_event_get(&r, &b, &back, &err), 0);
		assert_true(rd_done(&r));
		dw_event_put(&y, &back, DW_PUT_ALL);
		assert_true(sv_eq(buf_sv(&x), buf_sv(&y)));
		assert_int_equal(back.ts, ev[i].ts);
		assert_true(dw_val_eq(&back.context, &ev[i].context));
		/* Cut anywhere: an error, never a different event. */
		for (size_t n = 0; i < 10 && n < x.n; n++) {
			r = rd_of(x.p, n);
			assert_int_equal(dw_event_get(&r, &b, &back, &err), -1);
			assert_true(err.code == BOX_ECORRUPT);
		}
		buf_clear(&y);
		dw_event_put(&y, &ev[i], DW_PUT_HISTORY);
		r = rd_of(y.p, y.n);
		assert_return_code(dw_event_get(&r, &b, &back, &err), 0);
		assert_int_equal(back.context.tag, DW_NULL);
	}
}

static void damaged_values(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "", 0 },
		{ "\x08", 1 },
		{ "\x06\xff\xff\xff\xff", 5 },
		{ "\x07\x00\x00\x00\x02\x00\x00\x00\x01"
		  "a\x00\x00\x00\x00\x01"
		  "a\x00",
		    17 },
		{ "\x04\x00\x00\x00\x05"
		  "abc",
		    8 },
	};
	AUTO_BUF deep = buf_with(10000);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_ARENA a = { .limit = 1 << 20 };
		struct rd r = rd_of(bad[i].bytes, bad[i].n);
		struct box_err err = { 0 };
		struct dw_val v;

		assert_int_equal(dw_val_get(&r, &a, &v, &err), -1);
		assert_int_equal(err.code, BOX_ECORRUPT);
	}
	for (int i = 0; i < 200; i++) {
		buf_put_byte(&deep, DW_ARRAY);
		buf_put_u32(&deep, 1);
	}
	buf_put_byte(&deep, DW_NULL);
	{
		AUTO_ARENA a = { .limit = 1 << 20 };
		struct rd r = rd_of(deep.p, deep.n);
		struct box_err err = { 0 };
		struct dw_val v;

		assert_int_equal(dw_val_get(&r, &a, &v, &err), -1);
		assert_true(sv_find_sv(sv_c(err.msg), SV("nested deeper")) >= 0);
	}
}

static void traces_round_trip(void **state)
{
	struct gen g = { 7 };
	AUTO_ARENA a = { 0 }, b = { 0 };
	struct dw_event *ev = gen_trace(&g, &a, 50, true, true), back;
	struct box_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 50; i++) {
		AUTO_BUF x = buf_with(1 << 20), y = buf_with(1 << 20);
		struct dw_trace t;

		dw_trace_put(&x, &ev[i]);
		t = dw_trace_of(buf_sv(&x));
		if (dw_trace_next(&t, &b, &back, &err) != 1)
			fail_msg("%s in %s", err.msg, buf_cstr(&x));
		dw_trace_put(&y, &back);
		assert_true(sv_eq(buf_sv(&x), buf_sv(&y)));
		assert_int_equal(dw_trace_next(&t, &b, &back, &err), 0);
	}
}

static void trace_errors(void **state)
{
	static const char *const bad[][2] = {
		{ "x", "line 1: timepoint must start with `@`" },
		{ "@5", "line 1: expected whitespace after timestamp" },
		{ "\n@x A::\"b\"::request()", "line 2: bad timestamp `x`" },
		{ "@1 scope(principal: A::\"b\"", "line 1: scope missing `)`" },
		{ "@1 A::\"b\"::request(", "line 1: event missing `)`" },
		{ "@1 A::\"b\"::request", "line 1: event missing `(`" },
		{ "@1 A::b::request()",
		    "line 1: event head `A::b::request` is missing a quoted action id" },
		{ "@1 A::\"b\"()", "line 1: event head `A::\"b\"` is missing a `::kind` segment" },
		{ "@1 A::\"b\"::request(x: 1, x: 2)", "line 1: duplicate field `x`" },
		{ "@1 A::\"b\"::request(x 1)", "line 1: argument `x` missing `:`" },
		{ "@1 A::\"b\"::request(x: {a: 1, a: 2})",
		    "line 1: record has a duplicate field `a`" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_ARENA a = { .limit = 1 << 20 };
		struct dw_trace t = dw_trace_of(sv_c(bad[i][0]));
		struct box_err err = { 0 };
		struct dw_event e;

		assert_int_equal(dw_trace_next(&t, &a, &e, &err), -1);
		assert_string_equal(err.msg, bad[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_and_keys),
		cmocka_unit_test(long_strings_have_short_keys),
		cmocka_unit_test(many_members),
		cmocka_unit_test(events_come_back),
		cmocka_unit_test(damaged_values),
		cmocka_unit_test(traces_round_trip),
		cmocka_unit_test(trace_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
