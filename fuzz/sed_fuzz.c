/* sed scripts: any text ends in commands or a message. Patterns are compiled too; nothing is run
 * and no file is opened (the sandbox refuses file names). */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shell/sed.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static const struct sh_cmd cmd = { .name = "sed", .flags = SHCMD_UTILITY };
	static int null = -1;
	AUTO_ARENA a = { .limit = (size_t)16 << 20 };
	struct sh_out sink;
	struct sh_io io = { .name = "sed",
		.out = &sink,
		.err = &sink,
		.in = -1,
		.arena = &a,
		.cwd = "/",
		.cmd = &cmd };
	struct sed s = { .io = &io,
		.delim = '\n',
		.sandbox = true,
		.utf8 = n % 2 != 0,
		.extended = n % 3 == 0,
		.script = { .max = 4096 } };
	struct sed_source *src = calloc(1, sizeof(*src));

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (n > 2000 || src == NULL) {
		free(src);
		return 0;
	}
	sh_out_init(&sink, null);
	*src = (struct sed_source){ 0, NULL, 1 };
	s.sources = src;
	s.sources_n = 1;
	buf_put(&s.script, d, n);
	(void)sed_parse(&s); /* both outcomes are fine */
	sed_free(&s);
	(void)sh_out_fini(&sink);
	return 0;
}
