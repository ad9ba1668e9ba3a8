/* The shell's parser: any bytes end in trees or an error within its limits, and what a tree
 * unparses to is parsed again. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "shell/parse.h"
#include "shell/shell.h"

static int commands(sv text, struct buf *out, bool extglob)
{
	struct sh_parse_env env = { .extglob = extglob };
	struct sh_parser *p = sh_parser_new(text, "f", &env);
	struct sh_tree *t;
	struct box_err err;
	int r = -1;

	while (p != NULL && (r = sh_parse_next(p, &t, &err)) == 1) {
		if (t->node != NULL) {
			sh_unparse(out, t->node);
			buf_put_byte(out, '\n');
		}
		sh_tree_unref(t);
	}
	sh_parser_free(p);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	AUTO_BUF out = buf_with((size_t)8 << 20);
	AUTO_BUF again = buf_with((size_t)8 << 20);

	if (n == 0)
		return 0;
	if (commands((sv){ (const char *)d + 1, n - 1 }, &out, (d[0] & 1) != 0) == 0 &&
	    buf_ok(&out))
		(void)commands(
		    buf_sv(&out), &again, (d[0] & 1) != 0); /* comments and quoting may differ */
	return 0;
}
