/* The JSON reader: any bytes end in a tree or an error; what was accepted stays within the
 * limits. */
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct box_err err = { 0 };
	json_t *j = js_parse((sv){ (const char *)d, n }, JS_LIMITS_DEFAULT, &err);

	if (j == NULL && err.code == BOX_OK)
		__builtin_trap(); /* a refusal says why */
	json_decref(j);
	return 0;
}
