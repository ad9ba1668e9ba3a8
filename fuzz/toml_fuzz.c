/* The TOML reader: any bytes end in a tree or an error, within the arena's limit. */
#include <stddef.h>
#include <stdint.h>

#include "base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	AUTO_ARENA a = { .limit = (size_t)8 << 20 };
	struct box_err err = { 0 };
	const struct toml *root;

	(void)toml_parse(&a, (sv){ (const char *)d, n }, &root, &err); /* both outcomes are fine */
	return 0;
}
