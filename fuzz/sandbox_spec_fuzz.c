/* The description that box-launch reads. What is accepted must survive being written and read
 * again. */
#include <stdlib.h>

#include "contain/spec.h"
#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct sandbox_spec s, again;
	AUTO_BUF b = buf_with(SANDBOX_SPEC_MAX);
	AUTO_BUF text = buf_with(SANDBOX_SPEC_MAX);

	if (sandbox_spec_get((sv){ (const char *)d, n }, &s, NULL) == 0) {
		sandbox_spec_print(&s, &text);
		if (sandbox_spec_put(&s, &b, NULL) == 0) {
			if (sandbox_spec_get(buf_sv(&b), &again, NULL) < 0)
				abort();
			sandbox_spec_fini(&again);
		}
	}
	sandbox_spec_fini(&s);
	return 0;
}
