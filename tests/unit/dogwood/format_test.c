/* The formatter on whole Dogwood sources: every source of the conformance data and many generated
 * ones, with comments and white space put between any two tokens. What comes out is stable, means
 * the same, and has every comment. */
#include <dirent.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/fd.h"
#include "cedar/parse.h"
#include "dogwood/format.h"
#include "dogwood/policyset.h"
#include "gen.h"

#include "base/ban.h"

#define ROOM ((size_t)4 << 20)

static const char *data; /* the folder of the conformance cases, from the command line */

/* Comments of a source, one a line, in order. Dogwood's lexer says what lies between tokens. */
static void comments(sv text, struct buf *out)
{
	struct cedar_lex l;
	struct cedar_tok t;
	size_t end = 0;

	cedar_lex_init(&l, text, (struct cedar_span){ 0 });
	do {
		sv gap, line;

		t = cedar_lex_next(&l);
		gap = sv_sub(text, end, t.span.off - end);
		end = t.span.off + t.text.n;
		while (gap.n != 0) {
			(void)sv_cut(gap, '\n', &line, &gap);
			line = sv_trim(line);
			if (line.n != 0) {
				buf_put_sv(out, line);
				buf_put_byte(out, '\n');
			}
		}
	} while (t.kind != CEDAR_T_END);
}

static struct dw_set *load(sv text)
{
	struct dw_load in = {
		.policy = { SV("x.dw"), text }, .tick = DW_TICK_SECOND, .no_validate = true
	};
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;

	return dw_load(&in, &d, &err);
}

/* Does it load, and to the same rules? Returns whether they load at all. */
static bool same_meaning(sv x, sv y, const char *what)
{
	struct dw_set *a = load(x), *b = load(y);
	bool loads = a != NULL;

	if ((a == NULL) != (b == NULL))
		fail_msg("%s: only one of source and result loads", what);
	if (!loads)
		return false;
	assert_int_equal(dw_set_nrules(a), dw_set_nrules(b));
	for (size_t i = 0; i < dw_set_nrules(a); i++) {
		const struct dw_rule *p = dw_set_rule(a, i), *q = dw_set_rule(b, i);

		if (!sv_eq(p->fingerprint, q->fingerprint))
			fail_msg("%s: rule %zu was\n%.*s\nand is\n%.*s", what, i,
			    SV_ARG(p->fingerprint), SV_ARG(q->fingerprint));
	}
	dw_set_free(a);
	dw_set_free(b);
	return true;
}

/* 0: refused; 1: formatted, all properties hold; 2: and it is a set that loads. */
static int check(sv text, unsigned width, const char *what)
{
	AUTO_BUF once = buf_with(ROOM), twice = buf_with(ROOM), said = buf_with(ROOM),
	         kept = buf_with(ROOM);
	AUTO_DW_DIAGS d = { 0 };
	AUTO_DW_DIAGS d2 = { 0 };

	if (dw_format(SV("x.dw"), text, width, &once, &d) < 0) {
		assert_true(d.errors != 0);
		assert_true(d.v[0].message.n != 0);
		return 0;
	}
	if (dw_format(SV("x.dw"), buf_sv(&once), width, &twice, &d2) < 0)
		fail_msg("%s: the result is refused: %.*s\n%s", what, SV_ARG(d2.v[0].message),
		    buf_cstr(&once));
	if (!sv_eq(buf_sv(&once), buf_sv(&twice)))
		fail_msg("%s, width %u: once\n%s\ntwice\n%s", what, width, buf_cstr(&once),
		    buf_cstr(&twice));
	comments(text, &said);
	comments(buf_sv(&once), &kept);
	if (!sv_eq(buf_sv(&said), buf_sv(&kept)))
		fail_msg("%s: the comments were\n%s\nand are\n%s", what, buf_cstr(&said),
		    buf_cstr(&kept));
	return same_meaning(text, buf_sv(&once), what) ? 2 : 1;
}

/* The tokens of text with random white space and comments between them. */
static void scatter(struct gen *g, sv text, unsigned comments_in, struct buf *out)
{
	static const char *const blanks[] = { " ", " ", "\n", "  \t", "\r\n", "\n\n\n" };
	static const char *const remarks[] = { " // why\n", "\n// own line\n", "//\n",
		"// a // b\n", "\n\n// one\n\n  // two\n", " // \"quoted\" { ( [ ;\n",
		" // na\303\257ve \342\200\224\n" };
	struct cedar_lex l;
	struct cedar_tok t, before = { .kind = CEDAR_T_END };

	cedar_lex_init(&l, text, (struct cedar_span){ 0 });
	for (;;) {
		size_t gap = l.at;

		t = cedar_lex_next(&l);
		gap = t.span.off - gap;
		/* Where tokens touched they may go on doing so. */
		if (comments_in != 0 && gen_int(g, comments_in) == 0)
			buf_put_c(out, remarks[gen_int(g, sizeof(remarks) / sizeof(remarks[0]))]);
		else if (gap != 0 || (gen_int(g, 3) == 0 && before.kind != CEDAR_T_END))
			buf_put_c(out, blanks[gen_int(g, sizeof(blanks) / sizeof(blanks[0]))]);
		if (t.kind == CEDAR_T_END)
			return;
		buf_put_sv(out, t.text);
		before = t;
	}
}

static void shaken(struct gen *g, sv text, const char *what, unsigned rounds, unsigned *loaded)
{
	int plain = check(text, 0, what);

	*loaded += plain == 2;
	for (unsigned i = 0; i < rounds && plain != 0; i++) {
		AUTO_BUF b = buf_with(ROOM);

		scatter(g, text, i % 2 == 0 ? 0 : 1 + gen_int(g, 9), &b);
		if (check(buf_sv(&b), 20 + gen_int(g, 120), what) != plain)
			fail_msg("%s: white space and comments changed what it is:\n%s", what,
			    buf_cstr(&b));
	}
}

static void every_source(void **state)
{
	DIR *dp = opendir(data);
	struct gen g = { 11 };
	unsigned files = 0, loaded = 0;
	struct dirent *e;

	(void)state;
	if (dp == NULL)
		fail_msg("cannot open %s", data);
	while ((e = readdir(dp)) != NULL) {
		static const char *const names[] = { "policy.dw", "policy_1.dw", "policy_2.dw",
			"policy_3.dw", "macros.dw" };

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			AUTO_BUF b = buf_with(ROOM);
			struct box_err err;
			char path[4096];

			if (snprintf(path, sizeof(path), "%s/%s/%s", data, e->d_name, names[i]) >=
			        (int)sizeof(path) ||
			    fd_read_file(path, ROOM, &b, &err) < 0)
				continue;
			files++;
			shaken(&g, buf_sv(&b), path, 40, &loaded);
		}
	}
	closedir(dp);
	assert_true(files >= 50);
	assert_true(loaded >= 20);
}

static void generated(void **state)
{
	struct gen g = { 5 };
	unsigned loaded = 0;

	(void)state;
	for (unsigned i = 0; i < 1500; i++) {
		AUTO_BUF b = buf_with(ROOM);

		gen_policy(&g, 1 + gen_int(&g, 3), &b);
		shaken(&g, buf_sv(&b), "generated", 2, &loaded);
	}
	assert_true(loaded > 100);
}

/* Everything the grammar has, in one source: macros of both kinds, providers, guardrails, blocks
 * inside expressions, refinements, negative numbers, and names that are words elsewhere. */
static void whole_language(void **state)
{
	static const char text[] =
	    "// the library\n"
	    "def cedar near(?a, ?b) { ?a - ?b < 10 && -1 <= ?a // both\n };\n"
	    "def temporal busy(?w, ?s, ?k) { count for ($t: Timepoint), (?k: String). where "
	    "(formerly "
	    "within ?w (?s{ input.a: ?k } && tp($t))) };\n"
	    "@id(\"a\")@description(\"x \\\" y\") permit(principal is A::B in A::G::\"g\",action "
	    "in["
	    "A::Action::\"r\",A::Action::\"w\"],resource)when{near(context.input.n,-5)}when "
	    "guardrails "
	    "{ Scan::text(context.input.s, [\"a\", 1]).score(2).value > 3 }\n"
	    "when{context.ok&&(temporal{!!(formerly within 1h A::Action::\"r\"::request{ input.a: "
	    "* "
	    "}{input.b:_})}||!temporal{A::Action::\"w\"::response{input.n:-3,input.d:decimal(\"1."
	    "5\"),"
	    "input.l:[1,-2,\"x\"]}since within 90 m tp(x)})}\n"
	    "unless temporal { exists(n:Long).((count for(t:Timepoint).where(previous within 5s("
	    "A::Action::\"r\"::request{}&&tp(t))))==n&&n>-2) && "
	    "busy(10m,A::Action::\"r\"::request{},"
	    "k)>=3&&context.input.host!=principal.if};\n"
	    "permit(resource,principal==?principal,action)when{if true then{\"a "
	    "b\":1,if:2,then:{}}has"
	    " if.then else principal is "
	    "T&&\"x\"like\"a*\\*\"&&ip(\"::1\").isInRange(ip(\"::/0\"))&&[1][\"k\"]"
	    "&&!(-(-1)*2>=- 3)};\n";
	struct gen g = { 3 };
	unsigned loaded = 0;

	(void)state;
	assert_int_equal(check(sv_c(text), 0, "whole"), 1);
	shaken(&g, sv_c(text), "whole", 400, &loaded);
}

static void refusals(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "permit (principal) when temporal { formerly within 1x a == b };",
		    "unexpected token `x`, expected time unit ('s', 'm', 'h', or 'd')" },
		{ "def cedar f(?a) { ?b };",
		    "in `def cedar` body: `?b` does not name a declared parameter" },
		{ "def temporal f() { a || b };",
		    "unexpected token `||`, expected comparison operator" },
		{ "permit (principal) when { temporal { \"open } };", "unexpected end of input" },
		{ "permit (", "unexpected end of input, expected identifier" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF out = buf_with(ROOM), got = buf_with(ROOM);
		AUTO_DW_DIAGS d = { 0 };

		assert_int_equal(dw_format(SV("x"), sv_c(rows[i].text), 0, &out, &d), -1);
		dw_diags_messages(&d, DW_ERROR, &got);
		assert_string_equal(buf_cstr(&got), rows[i].want);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_source),
		cmocka_unit_test(generated),
		cmocka_unit_test(whole_language),
		cmocka_unit_test(refusals),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	data = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
