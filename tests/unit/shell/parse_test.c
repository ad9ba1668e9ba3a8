/* The parser alone: messages, limits, what a tree unparses to, and every allocation failing once.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

/* --- allocation failures --- */

static struct {
	long fail_at; /* the n-th allocation fails; 0: none */
	long count;
} alloc;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

static bool fails(void)
{
	return alloc.fail_at != 0 && ++alloc.count == alloc.fail_at;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

/* Parse all of text. Returns how many commands it held, or -1 with err set. */
static int parse(const char *text, struct buf *out, struct box_err *err)
{
	struct sh_parser *p = sh_parser_new(sv_c(text), "f", NULL);
	struct sh_tree *t;
	int n = 0, r;

	*err = (struct box_err){ 0 };
	if (p == NULL)
		return box_nomem(err, "a parser");
	while ((r = sh_parse_next(p, &t, err)) == 1) {
		if (t->node != NULL) {
			n++;
			if (out != NULL) {
				sh_unparse(out, t->node);
				buf_put_byte(out, '\n');
			}
		}
		sh_tree_unref(t);
	}
	sh_parser_free(p);
	return r < 0 ? -1 : n;
}

static const char everything[] = "a=1 b+=2 c[1]=x d=(1 [3]=4 'q r') cmd \"$x ${y:-$(z)} `w` "
                                 "$((1+2))\" > f 2>&1 <<E <<'F' | g |& h &\n"
                                 "$here ${u}\nE\nquoted\nF\n"
                                 "if a; then b; elif c; then d; else e; fi; for i in 1 2; do :; "
                                 "done; for ((i=0;i<3;i++)); do :; done\n"
                                 "case x in (a|b) c ;; *) d ;& esac; while a; do b; done; until a; "
                                 "do b; done; f() { local x; } >o\n"
                                 "[[ -f a && ( b == c* || ! d =~ ^e(f)$ ) ]]; ((x++)); function g "
                                 "{ :; }; (sub); { grp; }; ! not\n"
                                 "time -p t; echo ${a[@]} ${!b} ${c//x/y} ${d:1:2} ${#e} $'\\n' "
                                 "{a,b}c <(p) >(q) @(x|y)z; cat <<< here\n";

static void everything_parses(void **state)
{
	AUTO_BUF out = buf_with((size_t)1 << 20);
	AUTO_BUF again = buf_with((size_t)1 << 20);
	struct box_err err;

	(void)state;
	assert_int_equal(parse(everything, &out, &err), 5);
	/* What is printed is the same program: it parses, and prints as itself. */
	assert_true(parse(buf_cstr(&out), &again, &err) > 0);
	{
		AUTO_BUF third = buf_with((size_t)1 << 20);

		assert_true(parse(buf_cstr(&again), &third, &err) > 0);
		assert_string_equal(buf_cstr(&third), buf_cstr(&again));
	}
}

static void every_allocation_fails_once(void **state)
{
	struct box_err err;
	long n = 0;
	int r;

	(void)state;
	do {
		alloc.count = 0;
		alloc.fail_at = ++n;
		r = parse(everything, NULL, &err);
		alloc.fail_at = 0;
		if (r < 0)
			assert_true(err.code == BOX_ENOMEM || err.code == BOX_ELIMIT);
	} while (alloc.count >= n);
	assert_true(n > 20);
	assert_int_equal(r, 5);
}

static void messages(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = { { "echo 'a", "f: line 1: unterminated single quote" },
		{ "\necho \"a", "f: line 2: unterminated double quote" },
		{ "echo `a", "f: line 1: unterminated backtick" },
		{ "echo $(a", "f: line 1: unterminated $()" },
		{ "echo $((1", "f: line 1: unterminated $(())" },
		{ "echo ${a", "f: line 1: unterminated ${}" },
		{ "a )", "f: line 1: unexpected ')'" }, { "a ;;", "f: line 1: unexpected ';;'" },
		{ "fi", "f: line 1: unexpected 'fi'" },
		{ "if a; then b; done", "f: line 1: expected 'fi', got 'done'" },
		{ "( a", "f: line 1: Opened parentheses without closing" },
		{ "a |", "f: line 1: unexpected end of file" },
		{ "a > ", "f: line 1: expected filename after redirection" },
		{ "a && ;", "f: line 1: unexpected ';'" }, { "{ }", "f: line 1: unexpected '}'" } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct box_err err;

		assert_int_equal(parse(rows[i].text, NULL, &err), -1);
		assert_string_equal(err.msg, rows[i].message);
	}
}

static void repeat(struct buf *b, const char *s, int n)
{
	while (n-- > 0)
		buf_put_c(b, s);
}

static void depth_is_limited(void **state)
{
	static const char *const openers[] = { "(", "$(", "\"$(", "${x:-", "{ ", "if ", "[[ ( ",
		"`", "! ", "$((", "case x in x) ", "@(" };

	(void)state;
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++) {
		AUTO_BUF b = buf_with((size_t)4 << 20);
		struct box_err err;

		repeat(&b, openers[i], 20001); /* odd: backquotes pair */
		assert_int_equal(parse(buf_cstr(&b), NULL, &err), -1);
	}
}

/* One pass over the text, whatever it holds: a long function is not read again for every line. */
static void long_texts_are_read_once(void **state)
{
	AUTO_BUF b = buf_with((size_t)8 << 20);
	struct box_err err;

	(void)state;
	buf_put_c(&b, "f() {\n");
	repeat(&b, "echo some words \"and $more\" words\n", 20000);
	buf_put_c(&b, "}\n");
	assert_int_equal(parse(buf_cstr(&b), NULL, &err), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_parses),
		cmocka_unit_test(every_allocation_fails_once),
		cmocka_unit_test(messages),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(long_texts_are_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
