/* The TOML reader against a table of documents: the valid ones with the tree they mean, the invalid
 * ones with the place and the words of the error. The rows follow the sections of the TOML 1.0
 * text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/toml.h"
#include "failmalloc.h"

/* The tree as one line: {a=i:1,b=[s:"x",f:1.5]}. */
static void render(const struct toml *v, struct buf *b)
{
	switch (v->kind) {
	case TOML_STRING:
		buf_put_c(b, "s:");
		buf_put_json(b, v->text);
		return;
	case TOML_INT:
		buf_putf(b, "i:%lld", (long long)v->i);
		return;
	case TOML_FLOAT:
		buf_putf(b, "f:%g", v->f);
		return;
	case TOML_BOOL:
		buf_put_c(b, v->b ? "true" : "false");
		return;
	case TOML_DATETIME:
		buf_putf(b, "odt:" SV_FMT, SV_ARG(v->text));
		return;
	case TOML_DATETIME_LOCAL:
		buf_putf(b, "ldt:" SV_FMT, SV_ARG(v->text));
		return;
	case TOML_DATE_LOCAL:
		buf_putf(b, "ld:" SV_FMT, SV_ARG(v->text));
		return;
	case TOML_TIME_LOCAL:
		buf_putf(b, "lt:" SV_FMT, SV_ARG(v->text));
		return;
	case TOML_ARRAY:
	case TOML_TABLE:
		buf_put_c(b, v->kind == TOML_ARRAY ? "[" : "{");
		for (const struct toml *e = v->first; e != NULL; e = e->next) {
			if (v->kind == TOML_TABLE)
				buf_putf(b, SV_FMT "=", SV_ARG(e->key));
			render(e, b);
			if (e->next != NULL)
				buf_put_c(b, ",");
		}
		buf_put_c(b, v->kind == TOML_ARRAY ? "]" : "}");
		return;
	}
}

struct valid {
	const char *text, *tree;
};

static const struct valid valid[] = {
	/* comments, blank lines, line ends */
	{ "", "{}" },
	{ "\n\n", "{}" },
	{ "# only a comment", "{}" },
	{ "# tab\tin a comment, and \xc3\xa9\n", "{}" },
	{ "a = 1 # behind", "{a=i:1}" },
	{ "a = \"# no comment\"", "{a=s:\"# no comment\"}" },
	{ "a = 1\r\nb = 2\r\n", "{a=i:1,b=i:2}" },
	{ "\t a\t=\t1\t", "{a=i:1}" },
	/* keys */
	{ "bare_key-1 = 1", "{bare_key-1=i:1}" },
	{ "1234 = 1", "{1234=i:1}" },
	{ "\"quoted key\" = 1", "{quoted key=i:1}" },
	{ "'lit \\ key' = 1", "{lit \\ key=i:1}" },
	{ "\"\" = 1", "{=i:1}" },
	{ "'' = 1", "{=i:1}" },
	{ "\"\\u00e9\" = 1", "{\xc3\xa9=i:1}" },
	{ "a.b = 1\na.c = 2", "{a={b=i:1,c=i:2}}" },
	{ "a . b\t.\"c d\" = 1", "{a={b={c d=i:1}}}" },
	{ "3.14 = 1", "{3={14=i:1}}" },
	{ "fruit.x = 1\nother = 2\nfruit.y = 3", "{fruit={x=i:1,y=i:3},other=i:2}" },
	{ "true = 1\ninf = 2\n1979-05-27 = 3", "{true=i:1,inf=i:2,1979-05-27=i:3}" },
	{ "a.\"b.c\" = 1", "{a={b.c=i:1}}" },
	/* basic strings */
	{ "a = \"\"", "{a=s:\"\"}" },
	{ "a = \"\\b\\t\\n\\f\\r\\\"\\\\\"", "{a=s:\"\\u0008\\t\\n\\u000c\\r\\\"\\\\\"}" },
	{ "a = \"\\u0041\\U00000042\\u20ac\\U0001F600\"",
	    "{a=s:\"AB\xe2\x82\xac\xf0\x9f\x98\x80\"}" },
	{ "a = \"\\u0000\"", "{a=s:\"\\u0000\"}" },
	{ "a = \"tab\there\"", "{a=s:\"tab\\there\"}" },
	/* multi-line basic strings */
	{ "a = \"\"\"\"\"\"", "{a=s:\"\"}" },
	{ "a = \"\"\"\nx\ny\"\"\"", "{a=s:\"x\\ny\"}" },
	{ "a = \"\"\"\r\nx\r\ny\"\"\"", "{a=s:\"x\\ny\"}" },
	{ "a = \"\"\"x \\\n   y\"\"\"", "{a=s:\"x y\"}" },
	{ "a = \"\"\"x\\  \n\n\n \t y\"\"\"", "{a=s:\"xy\"}" },
	{ "a = \"\"\"\\\n  \"\"\"", "{a=s:\"\"}" },
	{ "a = \"\"\"x\\\r\n  y\"\"\"", "{a=s:\"xy\"}" },
	{ "a = \"\"\"one \" two \"\" \"\"\"", "{a=s:\"one \\\" two \\\"\\\" \"}" },
	{ "a = \"\"\"\"x\"\"\"\"", "{a=s:\"\\\"x\\\"\"}" },
	{ "a = \"\"\"\"\"x\"\"\"\"\"", "{a=s:\"\\\"\\\"x\\\"\\\"\"}" },
	{ "a = \"\"\"\"\"\"\"\"", "{a=s:\"\\\"\\\"\"}" },
	{ "a = \"\"\"\\\"\"\"\"", "{a=s:\"\\\"\"}" },
	{ "a = \"\"\"\\\\\n x\"\"\"", "{a=s:\"\\\\\\n x\"}" },
	/* literal strings */
	{ "a = 'C:\\x \"q\"'", "{a=s:\"C:\\\\x \\\"q\\\"\"}" },
	{ "a = ''", "{a=s:\"\"}" },
	{ "a = '''\nx\\\n'y''\n'''", "{a=s:\"x\\\\\\n'y''\\n\"}" },
	{ "a = ''''x''''", "{a=s:\"'x'\"}" },
	{ "a = '''''x'''''", "{a=s:\"''x''\"}" },
	/* integers */
	{ "a = 0\nb = +0\nc = -0", "{a=i:0,b=i:0,c=i:0}" },
	{ "a = +99\nb = -17", "{a=i:99,b=i:-17}" },
	{ "a = 1_000\nb = 1_2_3", "{a=i:1000,b=i:123}" },
	{ "a = 0xDEADbeef\nb = 0xdead_beef", "{a=i:3735928559,b=i:3735928559}" },
	{ "a = 0o755\nb = 0b1101_0110\nc = 0x00ff\nd = 0o0007", "{a=i:493,b=i:214,c=i:255,d=i:7}" },
	{ "a = 9223372036854775807\nb = -9223372036854775808",
	    "{a=i:9223372036854775807,b=i:-9223372036854775808}" },
	{ "a = 0x7fffffffffffffff", "{a=i:9223372036854775807}" },
	/* floats */
	{ "a = 1.0\nb = +3.14\nc = -0.01", "{a=f:1,b=f:3.14,c=f:-0.01}" },
	{ "a = 5e+22\nb = 1e06\nc = -2E-2\nd = 6.626e-34",
	    "{a=f:5e+22,b=f:1e+06,c=f:-0.02,d=f:6.626e-34}" },
	{ "a = 224_617.445_991\nb = 1e1_0\nc = 0e0", "{a=f:224617,b=f:1e+10,c=f:0}" },
	{ "a = inf\nb = +inf\nc = -inf", "{a=f:inf,b=f:inf,c=f:-inf}" },
	{ "a = nan\nb = +nan\nc = -nan", "{a=f:nan,b=f:nan,c=f:-nan}" },
	{ "a = -0.0", "{a=f:-0}" },
	{ "a = 0.0000\nb = 1.00e-0001", "{a=f:0,b=f:0.1}" },
	/* booleans */
	{ "a = true\nb = false", "{a=true,b=false}" },
	/* dates and times */
	{ "a = 1979-05-27T07:32:00Z", "{a=odt:1979-05-27T07:32:00Z}" },
	{ "a = 1979-05-27T00:32:00.999999-07:00", "{a=odt:1979-05-27T00:32:00.999999-07:00}" },
	{ "a = 1979-05-27 07:32:00z # c", "{a=odt:1979-05-27 07:32:00z}" },
	{ "a = 1979-05-27t07:32:00+00:00", "{a=odt:1979-05-27t07:32:00+00:00}" },
	{ "a = 1979-05-27T07:32:00", "{a=ldt:1979-05-27T07:32:00}" },
	{ "a = 1979-05-27 07:32:00.5", "{a=ldt:1979-05-27 07:32:00.5}" },
	{ "a = 1979-05-27", "{a=ld:1979-05-27}" },
	{ "a = 1979-05-27 # c", "{a=ld:1979-05-27}" },
	{ "a = [1979-05-27 ,1979-05-28]", "{a=[ld:1979-05-27,ld:1979-05-28]}" },
	{ "a = 07:32:00\nb = 00:32:00.999999", "{a=lt:07:32:00,b=lt:00:32:00.999999}" },
	{ "a = 2000-02-29\nb = 2024-02-29", "{a=ld:2000-02-29,b=ld:2024-02-29}" },
	{ "a = 23:59:60", "{a=lt:23:59:60}" },
	/* arrays */
	{ "a = []", "{a=[]}" },
	{ "a = [ ]", "{a=[]}" },
	{ "a = [1, 2, 3]", "{a=[i:1,i:2,i:3]}" },
	{ "a = [1,2,]", "{a=[i:1,i:2]}" },
	{ "a = [\n # c\n 1 # one\n , # comma\n 2\n]", "{a=[i:1,i:2]}" },
	{ "a = [[1, 2], [\"x\", 1.5], true, {b = 1}]",
	    "{a=[[i:1,i:2],[s:\"x\",f:1.5],true,{b=i:1}]}" },
	{ "a = [ \"]\", ']' ]", "{a=[s:\"]\",s:\"]\"]}" },
	{ "a = [[[[[]]]]]", "{a=[[[[[]]]]]}" },
	/* tables */
	{ "[a]", "{a={}}" },
	{ "[a]\nb = 1\n[c]\nb = 2", "{a={b=i:1},c={b=i:2}}" },
	{ "[ a . b . 'c d' ]", "{a={b={c d={}}}}" },
	{ "[a.b.c]\n[a]\nx = 1", "{a={b={c={}},x=i:1}}" },
	{ "[a.b]\nx = 1\n[a.c]\nx = 2\n[a]\ny = 3", "{a={b={x=i:1},c={x=i:2},y=i:3}}" },
	{ "[fruit]\napple.color = 1\n[fruit.apple.texture]\ns = true",
	    "{fruit={apple={color=i:1,texture={s=true}}}}" },
	{ "a.b = 1\n[a.c]\nd = 2", "{a={b=i:1,c={d=i:2}}}" },
	{ "[a.b.c]\nx = 1\n[a]\nb.d = 2", "{a={b={c={x=i:1},d=i:2}}}" },
	{ "[a] # c\nb = 1", "{a={b=i:1}}" },
	{ "[\"\"]\nx = 1", "{={x=i:1}}" },
	/* inline tables */
	{ "a = {}", "{a={}}" },
	{ "a = { }", "{a={}}" },
	{ "a = { x = 1, y = \"z\" }", "{a={x=i:1,y=s:\"z\"}}" },
	{ "a = { b.c = 1, b.d = 2 }", "{a={b={c=i:1,d=i:2}}}" },
	{ "a = { b = [\n1,\n2\n] }", "{a={b=[i:1,i:2]}}" },
	{ "a = { b = \"\"\"x\ny\"\"\" }", "{a={b=s:\"x\\ny\"}}" },
	{ "a = { b = { c = { } } }", "{a={b={c={}}}}" },
	/* arrays of tables */
	{ "[[a]]", "{a=[{}]}" },
	{ "[[a]]\nx = 1\n[[a]]\n[[a]]\nx = 3", "{a=[{x=i:1},{},{x=i:3}]}" },
	{ "[[f]]\nn = 1\n[f.p]\nc = 2\n[[f.v]]\nn = 3\n[[f.v]]\nn = 4\n[[f]]\n[[f.v]]\nn = 5",
	    "{f=[{n=i:1,p={c=i:2},v=[{n=i:3},{n=i:4}]},{v=[{n=i:5}]}]}" },
	{ "[[a.b]]\nx = 1\n[a]\ny = 2", "{a={b=[{x=i:1}],y=i:2}}" },
	{ "[[a]]\nb.x = 1\n[[a]]\nb.x = 2", "{a=[{b={x=i:1}},{b={x=i:2}}]}" },
	{ "[[ a ]] # c", "{a=[{}]}" },
};

struct invalid {
	const char *text, *err;
};

static const struct invalid invalid[] = {
	/* encoding and control characters */
	{ "a = \"\xff\"", "1:6: byte 0xff is not UTF-8" },
	{ "# \xc3\xa9\nb = \"\xc3\xa9\xc0\x80\"", "2:7: byte 0xc0 is not UTF-8" },
	{ "a = \"\xed\xa0\x80\"", "1:6: byte 0xed is not UTF-8" },
	{ "a = 1\n# cut \xe2\x82", "2:7: byte 0xe2" },
	{ "\xef\xbb\xbf"
	  "a = 1",
	    "1:1: the file begins with a byte-order mark" },
	{ "a = 1\n\xef\xbb\xbf", "2:1: \"\\u{feff}\" cannot stand in a bare key" },
	{ "# \x01", "1:3: control character 0x01 in a comment" },
	{ "# \x7f", "1:3: control character 0x7f in a comment" },
	{ "# x\ry", "1:4: control character 0x0d" },
	{ "a = 1\rb = 2", "1:6: a carriage return without a line feed" },
	{ "\r", "1:1: a carriage return" },
	{ "a = \"\x1f\"", "1:6: control character 0x1f in a string; write it as \\u001F" },
	{ "a = '\x7f'", "1:6: control character 0x7f" },
	{ "a = \"\"\"\x08\"\"\"", "1:8: control character 0x08" },
	{ "a = '''x\ry'''", "1:9: a carriage return" },
	{ "a = \"x\ry\"", "1:7: a carriage return" },
	{ "a\x0b = 1", "1:2: `=` is missing" },
	{ "a = [ \x0c ]", "1:7: \"\\x0c\" cannot begin a value" },
	/* keys */
	{ "= 1", "1:1: \"=\" cannot stand in a bare key" },
	{ "a", "1:2: `=` is missing behind the key `a`" },
	{ "a\n= 1", "1:2: `=` is missing" },
	{ "a =", "1:4: a value is missing" },
	{ "a = # c", "1:5: a value is missing" },
	{ "a =\n1", "1:4: a value is missing" },
	{ "a = 1 b = 2", "1:7: \"b\" where the line should end" },
	{ "a = 1, b = 2", "1:6: \",\" where the line should end" },
	{ "a b = 1", "1:3: `=` is missing behind the key `a`" },
	{ "a. = 1", "1:4: \"=\" cannot stand" },
	{ ".a = 1", "1:1: \".\" cannot stand" },
	{ "a..b = 1", "1:3: \".\" cannot stand" },
	{ "\xc3\xa9 = 1", "1:1: \"\xc3\xa9\" cannot stand in a bare key" },
	{ "\"\"\"a\"\"\" = 1", "1:1: a key cannot be a multi-line string" },
	{ "'''a''' = 1", "1:1: a key cannot be a multi-line string" },
	{ "\"a\nb\" = 1", "1:3: the string is not closed on its line" },
	{ "a = 1\na = 2", "2:1: `a` is defined a second time; the first is at 1:1" },
	{ "a = 1\n\"a\" = 2", "2:1: `a` is defined a second time" },
	{ "'x y' = 1\n\"x\\u0020y\" = 2", "2:1: `x y` is defined a second time" },
	{ "a = 1\na.b = 2", "2:1: `a` is already an integer (at 1:1)" },
	{ "a.b = 1\na = 2", "2:1: `a` is defined a second time" },
	{ "a.b = 1\na.b.c = 2", "2:3: `b` is already an integer" },
	{ "[a]\nb = 1\nb = 2", "3:1: `b` is defined a second time; the first is at 2:1" },
	{ "a!b = 1", "1:2: `=` is missing" },
	{ "a = 1 = 2", "1:7: \"=\" where the line should end" },
	/* strings */
	{ "a = \"x", "1:5: this string is never closed" },
	{ "a = 'x", "1:5: this string is never closed" },
	{ "a = \"x\ny\"", "1:7: the string is not closed on its line" },
	{ "a = 'x\r\ny'", "1:7: the string is not closed on its line" },
	{ "a = \"\"\"x\n\"\"", "1:5: this string is never closed; close it with \"\"\"" },
	{ "a = '''x", "1:5: this string is never closed; close it with '''" },
	{ "a = \"\\x41\"", "1:6: \\x is not an escape" },
	{ "a = \"\\e\"", "1:6: \\e is not an escape" },
	{ "a = \"\\ \"", "1:6: \\  is not an escape" },
	{ "a = \"\\u12\"", "1:6: \\u needs exactly 4 hexadecimal digits" },
	{ "a = \"\\u12g4\"", "1:6: \\u needs exactly 4" },
	{ "a = \"\\u+123\"", "1:6: \\u needs exactly 4" },
	{ "a = \"\\U0001F60\"", "1:6: \\U needs exactly 8" },
	{ "a = \"\\ud800\"", "1:6: \\ud800 is not a Unicode character" },
	{ "a = \"\\U00110000\"", "1:6: \\U00110000 is not a Unicode character" },
	{ "a = \"\\", "1:6: the string ends in the middle of an escape" },
	{ "a = \"\"\"\\ x\"\"\"", "1:8: \\  is not an escape" },
	{ "a = \"\"\"x\"\"\"\"\"\"", "1:14: \"\"\" where the line should end" },
	{ "a = \"\"\"\"\"\"\"\"\"", NULL },
	{ "a = '''''''''", NULL },
	{ "a = \"x\" y", "1:9: \"y\" where the line should end" },
	{ "a = \"x\"\"y\"", "1:8: " },
	{ "a = 'it''s'", "1:9: " },
	/* integers */
	{ "a = 01", "1:5: 01 is not a number: a leading zero is not allowed" },
	{ "a = -01", "leading zero" },
	{ "a = +0_1", "leading zero" },
	{ "a = 00", "leading zero" },
	{ "a = 1__0", "an underscore must stand between two digits" },
	{ "a = _1", "1:5: _1 is not a value" },
	{ "a = 1_", "underscore" },
	{ "a = 0x_1", "not a number" },
	{ "a = 0x1_", "underscore" },
	{ "a = 0X1", "0X1 is not a number" },
	{ "a = 0O7", "not a number" },
	{ "a = 0B1", "not a number" },
	{ "a = 0x", "not a number" },
	{ "a = 0xg", "not a number" },
	{ "a = 0o8", "not a number" },
	{ "a = 0b2", "not a number" },
	{ "a = +0x1", "not a number" },
	{ "a = -0b1", "not a number" },
	{ "a = 9223372036854775808", "does not fit a 64-bit signed integer" },
	{ "a = -9223372036854775809", "does not fit a 64-bit signed integer" },
	{ "a = 0xffffffffffffffff", "does not fit a 64-bit signed integer" },
	{ "a = ++1", "not a number" },
	{ "a = +-1", "not a number" },
	{ "a = -", "not a number" },
	{ "a = 1-2", "not a number" },
	{ "a = 1a", "not a number" },
	{ "a = 0xAz", "not a number" },
	/* floats */
	{ "a = 1.", "not a number" },
	{ "a = .5", ".5 is not a value" },
	{ "a = +.5", "not a number" },
	{ "a = 1.e2", "not a number" },
	{ "a = 1.5.6", "not a number" },
	{ "a = 03.14", "leading zero" },
	{ "a = 1e", "not a number" },
	{ "a = 1e+", "not a number" },
	{ "a = 1e1.5", "not a number" },
	{ "a = 1ee5", "not a number" },
	{ "a = 1e5e5", "not a number" },
	{ "a = 1_.5", "underscore" },
	{ "a = 1._5", "underscore" },
	{ "a = 1.5_", "underscore" },
	{ "a = 1e_5", "underscore" },
	{ "a = 1_e5", "underscore" },
	{ "a = Inf", "Inf is not a value" },
	{ "a = NaN", "NaN is not a value" },
	{ "a = infinity", "is not a value" },
	{ "a = +nand", "not a number" },
	{ "a = 1e999", "does not fit a 64-bit float" },
	{ "a = 0x1.8p3", "not a number" },
	/* booleans and words */
	{ "a = True", "1:5: True is not a value; true and false are in lower case" },
	{ "a = TRUE", "is not a value" },
	{ "a = truer", "is not a value" },
	{ "a = tru", "is not a value" },
	{ "a = yes", "a string needs quotes: \"yes\"" },
	{ "a = null", "is not a value" },
	{ "a = $HOME", "1:5: \"$\" cannot begin a value" },
	{ "a = \xe2\x82\xac", "1:5: \"\xe2\x82\xac\" cannot begin a value" },
	/* dates and times */
	{ "a = 1979-5-27", "is not a date or time" },
	{ "a = 1979-05-7", "is not a date or time" },
	{ "a = 79-05-27", "is not a number" },
	{ "a = 1979-13-01", "is not a date or time" },
	{ "a = 1979-00-01", "is not a date or time" },
	{ "a = 1979-04-31", "is not a date or time" },
	{ "a = 1979-01-00", "is not a date or time" },
	{ "a = 2023-02-29", "is not a date or time" },
	{ "a = 1900-02-29", "is not a date or time" },
	{ "a = 1979-05-27T", "is not a date or time" },
	{ "a = 1979-05-27T07:32", "is not a date or time" },
	{ "a = 1979-05-27 07:32", "is not a date or time" },
	{ "a = 1979-05-27T24:00:00", "is not a date or time" },
	{ "a = 1979-05-27T07:60:00", "is not a date or time" },
	{ "a = 1979-05-27T07:32:61", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00.", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00.Z", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00+24:00", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00+07:60", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00+0700", "is not a date or time" },
	{ "a = 1979-05-27T07:32:00ZZ", "is not a date or time" },
	{ "a = 1979-05-27x07:32:00", "is not a date or time" },
	{ "a = 1979-05-27  07:32:00", "1:17: \"0\" where the line should end" },
	{ "a = 7:32:00", "not a number" },
	{ "a = 07:32", "is not a date or time" },
	{ "a = 24:00:00", "is not a date or time" },
	{ "a = 07:32:00Z", "is not a date or time" },
	{ "a = 07:32:0", "is not a date or time" },
	/* arrays */
	{ "a = [", "1:5: this array is never closed" },
	{ "a = [1", "1:5: this array is never closed" },
	{ "a = [1,\n2\n", "1:5: this array is never closed" },
	{ "a = [1 2]", "1:8: \"2\" where `,` or `]` should follow" },
	{ "a = [,]", "1:6: \",\" cannot begin a value" },
	{ "a = [1,,2]", "1:8: \",\" cannot begin a value" },
	{ "a = [1}", "1:7: \"}\" where" },
	{ "a = ]", "1:5: \"]\" cannot begin a value" },
	{ "a = [1] 2", "1:9: \"2\" where the line should end" },
	{ "a = [ b = 1 ]", "is not a value" },
	/* tables */
	{ "[a", "1:3: the header is not closed" },
	{ "[a\n]", "1:3: the header is not closed" },
	{ "[]", "1:2: \"]\" cannot stand in a bare key" },
	{ "[a.]", "1:4: " },
	{ "[.a]", "1:2: " },
	{ "[a..b]", "1:4: " },
	{ "[a] b = 1", "1:5: \"b\" where the line should end" },
	{ "[a]]", "1:4: \"]\" where the line should end" },
	{ "[a b]", "1:4: the header is not closed" },
	{ "[a]\n[a]", "2:2: `a` is defined a second time; the first is at 1:2" },
	{ "[a.b]\n[a]\n[a.b]", "3:4: `b` is defined a second time" },
	{ "a = 1\n[a]", "2:2: `a` is defined a second time" },
	{ "a = 1\n[a.b]", "2:2: `a` is already an integer" },
	{ "a.b = 1\n[a]", "2:2: `a` is defined a second time" },
	{ "[a]\nb.c = 1\n[a.b]", "3:4: `b` is defined a second time" },
	{ "[a.b]\nx = 1\n[a]\nb.y = 2", "4:1: `b` is already a complete table" },
	{ "[a.b.c]\nz = 9\n[a]\nb.c.t = 1", "4:3: `c` is already a complete table" },
	{ "[a.b.c.d]\nz = 9\n[a]\nb.c.d.k = 1", "4:5: `d` is already a complete table" },
	{ "[a.b.c]\n[a]\nb.d = 1\n[a.b]", "4:4: `b` is defined a second time" },
	{ "[a]\nb = 1\n[a.b]", "3:4: `b` is defined a second time" },
	{ "[a]\nb = 1\n[a.b.c]", "3:4: `b` is already an integer" },
	{ "[\"a\n\"]", "1:4: " },
	/* inline tables */
	{ "a = {", "1:6: a key is missing" },
	{ "a = { b = 1", "the line ends where `,` or `}` should follow" },
	{ "a = { b = 1, }", "1:14: a comma before `}`" },
	{ "a = { , }", "1:7: \",\" cannot stand" },
	{ "a = { b = 1,, c = 2 }", "1:13: \",\" cannot stand" },
	{ "a = { b = 1\n}", "1:12: the line ends where" },
	{ "a = {\n}", "1:6: a key is missing" },
	{ "a = { b = 1 # c\n}", "1:13: a comment where" },
	{ "a = { b = 1 c = 2 }", "1:13: something else where" },
	{ "a = { b }", "1:9: `=` is missing" },
	{ "a = { b = 1, b = 2 }", "1:14: `b` is defined a second time" },
	{ "a = { b.c = 1, b = 2 }", "1:16: `b` is defined a second time" },
	{ "a = { b = 1, b.c = 2 }", "1:14: `b` is already an integer" },
	{ "a = { b = { c = 1 }, b.d = 2 }", "1:22: `b` is already a complete table" },
	{ "a = {}\na.b = 1", "2:1: `a` is already a complete table" },
	{ "a = {}\n[a]", "2:2: `a` is defined a second time" },
	{ "a = {}\n[a.b]", "2:2: `a` is already an inline table" },
	{ "a = { b.c = 1 }\n[a.b.d]", "2:2: `a` is already an inline table" },
	{ "[a]\nb = {}\n[a.b.c]", "3:4: `b` is already an inline table" },
	{ "a = [{}]\n[[a]]", "2:3: `a` is already a complete array" },
	/* arrays of tables */
	{ "[[a]", "the header is not closed; close it with ]]" },
	{ "[[a] ]", "the header is not closed; close it with ]]" },
	{ "[ [a]]", "1:3: \"[\" cannot stand" },
	{ "[[]]", "1:3: " },
	{ "a = []\n[[a]]", "2:3: `a` is already a complete array" },
	{ "[a]\n[[a]]", "2:3: `a` is already a table" },
	{ "[[a]]\n[a]", "2:2: `a` is defined a second time" },
	{ "[a.b]\n[[a]]", "2:3: `a` is already a table" },
	{ "[[a.b]]\n[a]\nb.y = 2", "3:1: `b` is already an array" },
	{ "[[a]]\n[a.b]\n[[a.b]]", "3:5: `b` is already a table" },
	{ "a = [{b = 1}]\n[a.c]", "2:2: `a` is already an array" },
	{ "[[f]]\nv = []\n[[f.v]]", "3:5: `v` is already a complete array" },
};

static void parses_valid(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
		AUTO_ARENA a = { .limit = (size_t)1 << 20 };
		AUTO_BUF b = buf_with(65536);
		struct box_err err = { 0 };
		const struct toml *root;

		if (toml_parse(&a, sv_c(valid[i].text), &root, &err) != 0)
			fail_msg("row %zu: %s\nin: %s", i, err.msg, valid[i].text);
		render(root, &b);
		if (strcmp(buf_cstr(&b), valid[i].tree) != 0)
			fail_msg("row %zu: got %s\nwant %s", i, buf_cstr(&b), valid[i].tree);
	}
}

static void refuses_invalid(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		AUTO_ARENA a = { .limit = (size_t)1 << 20 };
		struct box_err err = { 0 };
		const struct toml *root = NULL;

		if (toml_parse(&a, sv_c(invalid[i].text), &root, &err) == 0)
			fail_msg("row %zu was accepted: %s", i, invalid[i].text);
		assert_int_equal(err.code, BOX_EPARSE);
		assert_null(root);
		if (invalid[i].err != NULL && strstr(err.msg, invalid[i].err) == NULL)
			fail_msg("row %zu: got %s\nwant %s\nin: %s", i, err.msg, invalid[i].err,
			    invalid[i].text);
	}
}

/* Every prefix and every single-byte change of a rich document ends in a tree or an error with a
 * place. */
static void survives_damage(void **state)
{
	static const char doc[] =
	    "a.b = [1, {c = \"\\u00e9\"}]\n[x.'y']\nd = 1979-05-27 07:32:00Z # c\r\n"
	    "[[t]]\ne = \"\"\"\nq\\\n  r\"\"\"\nf = 0x1F\n";
	static const char put[] = { '\0', '\n', '\r', '"', '\'', '[', ']', '{', '}', '=', ',', '.',
		'#', '\\', '_', '\x80', 'e', '0' };

	(void)state;
	for (size_t i = 0; i < sizeof(doc) - 1; i++) {
		for (size_t k = 0; k <= sizeof(put); k++) {
			AUTO_ARENA a = { .limit = (size_t)1 << 20 };
			struct box_err err = { 0 };
			const struct toml *root;
			char copy[sizeof(doc)];
			size_t n = sizeof(doc) - 1;

			memcpy(copy, doc, sizeof(doc));
			if (k == sizeof(put))
				n = i;
			else
				copy[i] = put[k];
			/* An exact heap copy, so that a read behind the end is seen by the
			 * sanitizer. */
			char *exact = malloc(n + (n == 0));

			memcpy(exact, copy, n);
			if (toml_parse(&a, (sv){ exact, n }, &root, &err) != 0) {
				int line, col;

				assert_int_equal(sscanf(err.msg, "%d:%d: ", &line, &col), 2);
			}
			free(exact);
		}
	}
}

static void keeps_places(void **state)
{
	AUTO_ARENA a = { .limit = (size_t)1 << 20 };
	struct box_err err = { 0 };
	const struct toml *root, *t, *v;

	(void)state;
	assert_int_equal(
	    toml_parse(
	        &a, SV("\n[tool.git]\n  'caf\xc3\xa9' = 1\nb.c = [ 1,\n  2 ]\n"), &root, &err),
	    0);
	t = toml_get(toml_get(root, SV("tool")), SV("git"));
	assert_true(t->header);
	assert_int_equal(t->line, 2);
	assert_int_equal(t->col, 1);
	assert_int_equal(t->key_col, 7);
	v = toml_get(t, SV("caf\xc3\xa9"));
	assert_int_equal(v->key_line, 3);
	assert_int_equal(v->key_col, 3);
	assert_int_equal(v->col, 12); /* characters, not bytes */
	v = toml_get(toml_get(t, SV("b")), SV("c"));
	assert_int_equal(v->key_line, 4);
	assert_int_equal(v->key_col, 3);
	assert_int_equal(v->first->next->line, 5);
	assert_int_equal(v->first->next->col, 3);
	assert_null(toml_get(v, SV("x")));
	assert_null(toml_get(t, SV("x")));
}

static void has_limits(void **state)
{
	AUTO_ARENA a = { 0 };
	AUTO_BUF b = buf_with((size_t)4 << 20);
	struct box_err err = { 0 };
	const struct toml *root;

	(void)state;
	/* depth: exactly the limit passes, one more does not */
	for (int extra = 0; extra < 2; extra++) {
		buf_clear(&b);
		buf_put_c(&b, "a = ");
		for (int i = 0; i < TOML_MAX_DEPTH + extra; i++)
			buf_put_c(&b, i % 2 != 0 ? "[" : "{a=");
		buf_put_c(&b, "1");
		for (int i = TOML_MAX_DEPTH + extra; i-- > 0;)
			buf_put_c(&b, i % 2 != 0 ? "]" : "}");
		assert_int_equal(toml_parse(&a, buf_sv(&b), &root, &err), -extra);
	}
	assert_non_null(strstr(err.msg, "nested more than 32 deep"));
	buf_clear(&b);
	for (int i = 0; i <= TOML_MAX_DEPTH; i++)
		buf_put_c(&b, "a.");
	assert_int_equal(toml_parse(&a, buf_sv(&b), &root, &err), -1);
	assert_non_null(strstr(err.msg, "a key of more than 32 parts"));
	/* size */
	buf_clear(&b);
	for (size_t i = 0; i <= TOML_MAX_BYTES; i++)
		buf_put_byte(&b, '\n');
	assert_int_equal(toml_parse(&a, buf_sv(&b), &root, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	/* many keys stay fast and still find the duplicate */
	buf_clear(&b);
	for (int i = 0; i < 50000; i++)
		buf_putf(&b, "key%d = %d\n", i, i);
	buf_put_c(&b, "key77 = 1\n");
	assert_int_equal(toml_parse(&a, buf_sv(&b), &root, &err), -1);
	assert_non_null(
	    strstr(err.msg, "50001:1: `key77` is defined a second time; the first is at 78:1"));
	/* the arena's limit */
	arena_free(&a);
	a.limit = 8192;
	assert_int_equal(toml_parse(&a, buf_sv(&b), &root, &err), -1);
	assert_int_equal(err.code, BOX_ENOMEM);
}

static void survives_no_memory(void **state)
{
	static const sv doc =
	    SV_INIT("a = \"x\"\n[b.c]\nd = [1, {e = 'y'}, 07:32:00, 1.5]\n[[f]]\ng.h = true\n"
	            "[[f]]\nlonger_than_a_block = '''0123456789'''\n");
	(void)state;
	for (size_t n = 1;; n++) {
		AUTO_ARENA a = { 0 };
		struct box_err err = { 0 };
		const struct toml *root;
		int r;

		fail_after(n);
		r = toml_parse(&a, doc, &root, &err);
		fail_after(0);
		if (r == 0) {
			assert_true(n > 2);
			return;
		}
		assert_int_equal(err.code, BOX_ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_valid),
		cmocka_unit_test(refuses_invalid),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(keeps_places),
		cmocka_unit_test(has_limits),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
