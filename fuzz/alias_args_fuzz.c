/* The command line of an alias: words separated by line ends. */
#include <stdlib.h>
#include <string.h>

#include "alias/args.h"
#include "base/arena.h"
#include "base/sv.h"

#include "base/ban.h"

#define CHECK(x)  ((x) ? (void)0 : abort())
#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	AUTO_ARENA mem = { .limit = 1 << 20 };
	char *argv[WORDS_MAX + 1] = { NULL };
	sv rest = { (const char *)d, n }, word;
	struct alias_args a;
	struct box_err err = { 0 };
	int argc = 0;

	while (rest.n != 0 && argc < WORDS_MAX) {
		(void)sv_cut(rest, '\n', &word, &rest);
		argv[argc] = (char *)arena_dup(&mem, word).p;
		if (argv[argc++] == NULL)
			return 0;
	}
	if (alias_parse(argc, argv, &a, &err) != 0) {
		CHECK(err.msg[0] != '\0');
		return 0;
	}
	CHECK(a.text != NULL && a.zero != NULL);
	CHECK(a.params >= argv && a.params <= argv + argc && argv[argc] == NULL);
	if (a.script != NULL)
		CHECK(a.text[0] == '\0' && a.script == a.zero);
	return 0;
}
