/* See advice.h. */
#include "cedar/advice.h"

#include "base/ban.h"

struct row {
	enum cedar_place place;
	const char *words; /* with a blank around each */
	const char *text;
};

#define LIKE "texts are compared with `like`, where `*` stands for anything: `x like \"*.env\"`"
#define PAST "what happened before is asked in a block of its own: `when temporal { … }`"
#define BESIDE                                                                                     \
	"a temporal condition has no such test: put it beside the block, `when { … } when "      \
	"temporal "                                                                                \
	"{ … }`"

static const struct row rows[] = {
	{ CEDAR_AT_TOKEN, " and & ", "write `&&`" },
	{ CEDAR_AT_TOKEN, " or | ", "write `||`" },
	{ CEDAR_AT_TOKEN, " not ~ ", "write `!`" },
	{ CEDAR_AT_TOKEN, " = === ", "equality is `==`" },
	{ CEDAR_AT_TOKEN, " <> ", "write `!=`" },
	{ CEDAR_AT_TOKEN, " ' ` ", "a text is written in double quotes: \"…\"" },
	{ CEDAR_AT_TOKEN, " # -- ", "a comment begins with `//` and goes to the end of the line" },
	{ CEDAR_AT_TOKEN, " / ",
	    "a comment begins with `//` and goes to the end of the line; there is no division" },
	{ CEDAR_AT_TOKEN, " \342\200\234 \342\200\235 \342\200\230 \342\200\231 ",
	    "these are typographic quotes; a text is written in plain double quotes: \"…\"" },
	{ CEDAR_AT_VARIABLE, " and or not ", "write `&&`, `||`, `!`" },
	{ CEDAR_AT_VARIABLE, " null nil None none undefined ",
	    "there is no such value: whether an attribute is there is asked with `has`, as in "
	    "`context.input has note`" },
	{ CEDAR_AT_VARIABLE, " True TRUE ", "write `true`" },
	{ CEDAR_AT_VARIABLE, " False FALSE ", "write `false`" },
	{ CEDAR_AT_VARIABLE, " input ", "did you mean `context.input`?" },
	{ CEDAR_AT_VARIABLE, " output ", "did you mean `context.output`?" },
	{ CEDAR_AT_VARIABLE, " user subject actor ", "did you mean `principal`?" },
	{ CEDAR_AT_VARIABLE, " formerly previous since exists count sum tp ", PAST },
	{ CEDAR_AT_EFFECT, " allow grant Allow ALLOW PERMIT ", "write `permit`" },
	{ CEDAR_AT_EFFECT, " deny block Deny DENY FORBID ", "write `forbid`" },
	{ CEDAR_AT_KEYWORD, " if where provided ", "write `when { … }`" },
	{ CEDAR_AT_KEYWORD, " except ", "write `unless { … }`" },
	{ CEDAR_AT_KEYWORD, " and or ",
	    "each condition has a word of its own: `when { … } unless { … }`" },
	{ CEDAR_AT_METHOD,
	    " startsWith endsWith matches includes indexOf starts_with ends_with match test ",
	    LIKE },
	{ CEDAR_AT_METHOD, " length size count len ",
	    "sets and texts have no length; a set has `isEmpty()`" },
	{ CEDAR_AT_METHOD, " toLower toUpper lower upper trim ",
	    "there is no such function: texts are compared as they are" },
	{ CEDAR_AT_METHOD, " equals eq ", "write `==`" },
	{ CEDAR_AT_TEMPORAL, " || or | ",
	    "a temporal condition has no `||`: join two blocks, `when { temporal { … } || temporal "
	    "{ "
	    "… } }`, or write two policies" },
	{ CEDAR_AT_TEMPORAL, " + - * / % ",
	    "a temporal condition does not calculate; compare with the number itself" },
	{ CEDAR_AT_TEMPORAL, " like has in is contains if ", BESIDE },
	{ CEDAR_AT_TEMPORAL, " forall always never ",
	    "there is no such operator; write `!(formerly within 1h …)` for what did not happen" },
};

const char *cedar_advice(enum cedar_place place, sv text)
{
	char word[24];

	if (text.n == 0 || text.n > sizeof(word) - 2)
		return place == CEDAR_AT_TOKEN && text.n != 0 && text.p[0] == '"'
		           ? "the text that begins here has no closing quote"
		           : NULL;
	if (place == CEDAR_AT_TOKEN && text.p[0] == '"' &&
	    (text.n == 1 || text.p[text.n - 1] != '"'))
		return "the text that begins here has no closing quote";
	word[0] = word[text.n + 1] = ' ';
	memcpy(word + 1, text.p, text.n);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].place == place &&
		    sv_find_sv(sv_c(rows[i].words), (sv){ word, text.n + 2 }) >= 0)
			return rows[i].text;
	return NULL;
}
