/* Whole box.toml files through the parse stage. Nothing but the (fixed) home is looked up in the
 * file system. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	const struct config_input in = { "box.toml", "/", "/nonexistent", NULL, NULL, 0, 0 };
	struct box_err err = { 0 };
	struct plan p = { 0 };

	if (config_parse(&in, (sv){ (const char *)d, n }, &p, &err) != 0 &&
	    strchr(err.msg, '\n') != NULL)
		__builtin_trap(); /* an error is one line */
	plan_fini(&p);
	return 0;
}
