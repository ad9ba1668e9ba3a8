/* Requests on both sockets of `dogwood serve`, against an engine in memory. */
#include <stdlib.h>

#include "dogwood-cmd/plane.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static dogwood_engine *engine;
	static unsigned uses;
	struct dogwood_source src = { dogwood_cstr("p"),
		dogwood_cstr("permit (principal, action, resource);") };
	struct dogwood_policy_set set = { .policies = &src, .n_policies = 1 };
	struct dogwood_options o;
	AUTO_BUF out = buf_with(1 << 24);

	/* A fresh one now and then, so that state does not pile up. */
	if (engine == NULL || ++uses % 4096 == 0) {
		(void)dogwood_engine_close(engine, NULL);
		dogwood_options_init(&o);
		if (dogwood_engine_open(&o, &engine, NULL) < 0 ||
		    dogwood_engine_install(engine, &set, NULL, NULL, NULL) < 0)
			abort();
	}
	{
		const struct plane plane = { .engine = engine };
		sv request = { (const char *)p, n };

		(void)plane_data(&plane, request, &out);
		(void)plane_control(&plane, request, &out);
	}
	return 0;
}
