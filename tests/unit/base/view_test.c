/* sv, rd, buf: views, bounded readers, bounded buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/rd.h"
#include "base/sv.h"
#include "failmalloc.h"

static void compares(void **state)
{
	(void)state;
	assert_true(sv_eq(SV(""), (sv){ NULL, 0 }));
	assert_true(sv_eq(sv_c(NULL), SV("")));
	assert_false(sv_eq(SV("a"), SV("b")));
	assert_true(sv_cmp(SV("a"), SV("ab")) < 0);
	assert_true(sv_cmp(SV("b"), SV("ab")) > 0);
	assert_true(sv_cmp(SV("\xff"), SV("a")) > 0); /* bytes, not chars */
	assert_int_equal(sv_cmp(SV("x"), SV("x")), 0);
	assert_true(sv_starts(SV("abc"), SV("ab")) && sv_starts(SV("abc"), SV("")) &&
	            !sv_starts(SV("a"), SV("ab")));
	assert_true(sv_ends(SV("abc"), SV("bc")) && sv_ends(SV("abc"), SV("")) &&
	            !sv_ends(SV("c"), SV("bc")));
	assert_true(sv_eq_nocase(SV("HoST-1"), SV("hOst-1")));
	assert_false(sv_eq_nocase(SV("a"), SV("ab")));
	assert_false(sv_eq_nocase(SV("["), SV("{"))); /* letters only */
}

static void cuts(void **state)
{
	sv head, tail;

	(void)state;
	assert_true(sv_cut(SV("a:b:c"), ':', &head, &tail));
	assert_true(sv_eq(head, SV("a")) && sv_eq(tail, SV("b:c")));
	assert_false(sv_cut(SV("abc"), ':', &head, &tail));
	assert_true(sv_eq(head, SV("abc")) && tail.p == NULL);
	assert_true(sv_cut(SV(":"), ':', &head, &tail));
	assert_true(head.n == 0 && tail.n == 0 && tail.p != NULL);
	assert_false(sv_cut((sv){ NULL, 0 }, ':', &head, &tail));
	assert_true(sv_eq(sv_sub(SV("hello"), 1, 3), SV("ell")));
	assert_true(sv_eq(sv_sub(SV("hello"), 4, 9), SV("o")));
	assert_int_equal(sv_sub(SV("hello"), 9, 1).n, 0);
	assert_int_equal(sv_sub((sv){ NULL, 0 }, 1, 1).n, 0);
	assert_int_equal(sv_find(SV("abcb"), 'b'), 1);
	assert_int_equal(sv_rfind(SV("abcb"), 'b'), 3);
	assert_int_equal(sv_find(SV(""), 'b'), -1);
	assert_int_equal(sv_find_sv(SV("ababc"), SV("abc")), 2);
	assert_int_equal(sv_find_sv(SV("ab"), SV("abc")), -1);
	assert_int_equal(sv_find_sv(SV(""), SV("")), 0);
	assert_true(sv_eq(sv_trim(SV(" \t\r\n\v\fx y \n")), SV("x y")));
	assert_int_equal(sv_trim(SV(" \n")).n, 0);
	assert_true(sv_has_ctl(SV("a\x1f")) && sv_has_ctl(SV("a\0b")) && sv_has_ctl(SV("\x7f")));
	assert_false(sv_has_ctl(SV("a \xc3\xa9~")));
}

static void checks_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t n;
		bool ok;
	} rows[] = {
		{ "", 0, true },
		{ "a\0b", 3, true },
		{ "\x7f", 1, true },
		{ "\x80", 1, false },
		{ "\xc2\x80", 2, true },
		{ "\xc1\xbf", 2, false },
		{ "\xc0\x80", 2, false },
		{ "\xdf\xbf", 2, true },
		{ "\xc2", 1, false },
		{ "\xc2\x41", 2, false },
		{ "\xe0\xa0\x80", 3, true },
		{ "\xe0\x9f\xbf", 3, false },
		{ "\xed\x9f\xbf", 3, true },
		{ "\xed\xa0\x80", 3, false },
		{ "\xef\xbf\xbf", 3, true },
		{ "\xe2\x82", 2, false },
		{ "\xf0\x90\x80\x80", 4, true },
		{ "\xf0\x8f\xbf\xbf", 4, false },
		{ "\xf4\x8f\xbf\xbf", 4, true },
		{ "\xf4\x90\x80\x80", 4, false },
		{ "\xf5\x80\x80\x80", 4, false },
		{ "\xf0\x90\x80", 3, false },
		{ "\xff", 1, false },
		{ "ok\xc3\xa9"
		  "x",
		    5, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (sv_is_utf8((sv){ rows[i].s, rows[i].n }) != rows[i].ok)
			fail_msg("row %zu", i);
}

static void parses_numbers(void **state)
{
	int64_t i = 42;
	uint64_t u = 42;

	(void)state;
	assert_true(
	    sv_to_i64(SV("-9223372036854775808"), 10, INT64_MIN, INT64_MAX, &i) && i == INT64_MIN);
	assert_true(
	    sv_to_i64(SV("9223372036854775807"), 10, INT64_MIN, INT64_MAX, &i) && i == INT64_MAX);
	assert_true(sv_to_i64(SV("-0"), 10, -1, 1, &i) && i == 0);
	i = 42;
	assert_false(sv_to_i64(SV("9223372036854775808"), 10, INT64_MIN, INT64_MAX, &i));
	assert_false(sv_to_i64(SV("-9223372036854775809"), 10, INT64_MIN, INT64_MAX, &i));
	assert_false(sv_to_i64(SV("-1"), 10, 0, 9, &i));
	assert_false(sv_to_i64(SV("10"), 10, 0, 9, &i));
	assert_false(sv_to_i64(SV(""), 10, 0, 9, &i));
	assert_false(sv_to_i64(SV("-"), 10, -9, 9, &i));
	assert_false(sv_to_i64(SV("+1"), 10, -9, 9, &i));
	assert_false(sv_to_i64(SV(" 1"), 10, -9, 9, &i));
	assert_false(sv_to_i64(SV("1a"), 10, -9, 9, &i));
	assert_false(sv_to_i64(SV("--1"), 10, -9, 9, &i));
	assert_int_equal(i, 42); /* untouched */
	assert_true(sv_to_u64(SV("18446744073709551615"), 10, UINT64_MAX, &u) && u == UINT64_MAX);
	assert_false(sv_to_u64(SV("18446744073709551616"), 10, UINT64_MAX, &u));
	assert_false(sv_to_u64(SV("99999999999999999999999"), 10, UINT64_MAX, &u));
	assert_true(sv_to_u64(SV("fF"), 16, 255, &u) && u == 255);
	assert_true(sv_to_u64(SV("777"), 8, 511, &u) && u == 511);
	assert_false(sv_to_u64(SV("8"), 8, 100, &u));
	assert_false(sv_to_u64(SV("2"), 2, 100, &u));
}

static void reads(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0,
		2, 'h', 'i' };
	struct rd r = rd_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(rd_u8(&r), 0x01);
	assert_int_equal(rd_u16(&r), 0x0203);
	assert_int_equal(rd_u32(&r), 0x04050607);
	assert_true(rd_u64(&r) == UINT64_C(0x08090a0b0c0d0e0f));
	assert_int_equal(rd_left(&r), 6);
	assert_false(rd_done(&r));
	assert_true(sv_eq(rd_str(&r, 2), SV("hi")));
	assert_true(rd_done(&r));
	assert_int_equal(rd_bytes(&r, 0).n, 0);
	assert_true(rd_done(&r));
	assert_int_equal(rd_u8(&r), 0); /* one too many: sticky */
	assert_true(r.bad);
	assert_int_equal(rd_left(&r), 0);
	assert_int_equal(rd_bytes(&r, 0).n, 0);
	assert_false(rd_done(&r));
	/* lengths that lie */
	r = rd_of(bytes + 15, 6);
	assert_int_equal(rd_str(&r, 1).n, 0);
	assert_true(r.bad);
	r = rd_of(bytes + 15, 5);
	assert_int_equal(rd_str(&r, 100).n, 0);
	assert_true(r.bad);
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 'x' };

	r = rd_of(huge, sizeof(huge));
	assert_int_equal(rd_str(&r, SIZE_MAX).n, 0);
	assert_true(r.bad);
	r = rd_of(NULL, 0);
	assert_true(rd_done(&r));
	assert_int_equal(rd_u16(&r), 0);
	assert_true(r.bad);
}

static void writes(void **state)
{
	AUTO_BUF b = buf_with(BUF_MAX_DEFAULT);
	struct rd r;

	(void)state;
	assert_string_equal(buf_cstr(&b), "");
	buf_put_byte(&b, 0x01);
	buf_put_u16(&b, 0x0203);
	buf_put_u32(&b, 0x04050607);
	buf_put_u64(&b, UINT64_C(0x08090a0b0c0d0e0f));
	buf_put_str(&b, SV("hi"));
	buf_put_str(&b, (sv){ NULL, 0 });
	r = rd_of(b.p, b.n);
	assert_int_equal(rd_u8(&r), 1);
	assert_int_equal(rd_u16(&r), 0x0203);
	assert_int_equal(rd_u32(&r), 0x04050607);
	assert_true(rd_u64(&r) == UINT64_C(0x08090a0b0c0d0e0f));
	assert_true(sv_eq(rd_str(&r, 9), SV("hi")));
	assert_int_equal(rd_str(&r, 9).n, 0);
	assert_true(rd_done(&r));
	buf_drop(&b, 3);
	assert_int_equal(b.p[0], 0x04);
	buf_drop(&b, SIZE_MAX);
	assert_int_equal(b.n, 0);
	buf_putf(&b, "%s-%d", "x", 7);
	assert_string_equal(buf_cstr(&b), "x-7");
	buf_clear(&b);
	buf_putf(&b, "%0500d", 1); /* longer than the stack buffer */
	assert_int_equal(b.n, 500);
	assert_true(buf_ok(&b));
}

static void has_a_maximum(void **state)
{
	AUTO_BUF b = buf_with(4);

	(void)state;
	buf_put_c(&b, "1234");
	assert_true(buf_ok(&b));
	buf_put_byte(&b, '5');
	assert_false(buf_ok(&b));
	assert_int_equal(b.n, 4);
	buf_put_c(&b, ""); /* nothing changes that */
	assert_false(buf_ok(&b));
	assert_null(buf_cstr(&b));
	assert_null(buf_room(&b, 1));
	buf_clear(&b);
	assert_true(buf_ok(&b));
	buf_put_c(&b, "12345"); /* all or nothing */
	assert_false(buf_ok(&b));
	assert_int_equal(b.n, 0);
	buf_clear(&b);
	assert_null(buf_room(&b, SIZE_MAX));
	buf_fini(&b);
	assert_int_equal(b.max, 4);
	buf_put_c(&b, "123");
	assert_string_equal(buf_cstr(&b), "123");
	/* and no memory looks the same */
	AUTO_BUF c = buf_with(SIZE_MAX);

	fail_after(1);
	buf_put_c(&c, "x");
	fail_after(0);
	assert_false(buf_ok(&c));
}

static void escapes(void **state)
{
	static const struct {
		sv in;
		const char *shown, *json;
	} rows[] = {
		{ SV_INIT("plain"), "plain", "\"plain\"" },
		{ SV_INIT("a\nb\tc\rd\\e\"f"), "a\\nb\\tc\\rd\\\\e\"f",
		    "\"a\\nb\\tc\\rd\\\\e\\\"f\"" },
		{ SV_INIT("\0\x1b[31m\x7f"), "\\x00\\x1b[31m\\x7f", "\"\\u0000\\u001b[31m\x7f\"" },
		{ SV_INIT("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80",
		    "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"" },
		{ SV_INIT("\xff\xc3"), "\\xff\\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ SV_INIT("\xc2\x85\xe2\x80\xae\xef\xbb\xbf"), "\\u{85}\\u{202e}\\u{feff}",
		    "\"\xc2\x85\xe2\x80\xae\xef\xbb\xbf\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF b = buf_with(4096);

		buf_put_escaped(&b, rows[i].in);
		assert_string_equal(buf_cstr(&b), rows[i].shown);
		buf_clear(&b);
		buf_put_json(&b, rows[i].in);
		assert_string_equal(buf_cstr(&b), rows[i].json);
	}
	{
		AUTO_BUF b = buf_with(64);

		buf_put_visible(&b, SV("a\\b\n\x1b"));
		assert_string_equal(buf_cstr(&b), "a\\b\\n\\x1b");
	}
}

/* Every scalar value, back through the reader of buf_put_escaped; the ends of each length. */
static void encodes_utf8(void **state)
{
	static const struct {
		uint32_t cp;
		const char *want;
	} rows[] = { { 0x24, "$" }, { 0x7f, "\x7f" }, { 0x80, "\xc2\x80" }, { 0x7ff, "\xdf\xbf" },
		{ 0x800, "\xe0\xa0\x80" }, { 0xffff, "\xef\xbf\xbf" },
		{ 0x10000, "\xf0\x90\x80\x80" }, { 0x10ffff, "\xf4\x8f\xbf\xbf" },
		{ 0x110000, "\xef\xbf\xbd" }, { UINT32_MAX, "\xef\xbf\xbd" } };
	AUTO_BUF tiny = buf_with(3);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF b = buf_with(16);

		buf_put_utf8(&b, rows[i].cp);
		assert_string_equal(buf_cstr(&b), rows[i].want);
	}
	for (uint32_t cp = 1; cp <= 0x10ffff; cp++) {
		char out[4];
		size_t n = utf8_put(out, cp);

		assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
		if (sv_is_utf8((sv){ out, n }) != (cp < 0xd800 || cp > 0xdfff))
			fail_msg("U+%04X", cp);
	}
	buf_put_utf8(&tiny, 0x10000);
	assert_false(buf_ok(&tiny));
	assert_int_equal(tiny.n, 0);
}

static void quotes_shell_words(void **state)
{
	static const struct {
		sv in;
		const char *out;
	} rows[] = {
		{ SV_INIT("a-b_c./:=@%+,Z9"), "a-b_c./:=@%+,Z9" },
		{ SV_INIT(""), "''" },
		{ SV_INIT("it's"), "'it'\\''s'" },
		{ SV_INIT("a b"), "'a b'" },
		{ SV_INIT("~/x"), "'~/x'" },
		{ SV_INIT("$(rm)"), "'$(rm)'" },
		{ SV_INIT("a\nb"), "'a\nb'" },
		{ SV_INIT("\xff"), "'\xff'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF b = buf_with(4096);

		buf_put_shell_word(&b, rows[i].in);
		assert_string_equal(buf_cstr(&b), rows[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares),
		cmocka_unit_test(cuts),
		cmocka_unit_test(checks_utf8),
		cmocka_unit_test(parses_numbers),
		cmocka_unit_test(reads),
		cmocka_unit_test(writes),
		cmocka_unit_test(has_a_maximum),
		cmocka_unit_test(escapes),
		cmocka_unit_test(encodes_utf8),
		cmocka_unit_test(quotes_shell_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
