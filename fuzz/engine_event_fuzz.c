/* Bodies of log records: events with their verdicts, installs, clock jumps. */
#include "engine/codec.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	sv body = { (const char *)p, n };
	AUTO_ARENA a = { .limit = 1 << 24 };
	AUTO_BUF b = buf_with(1 << 22);
	struct dogwood_policy_set set;
	struct eng_stored s;
	struct dw_event e;
	struct box_err err;
	int64_t last, now;
	sv token, verdict;
	bool full = eng_event_get(body, &a, &e, &token, &s, &err) == 0;

	/* Recovery takes what inspection takes, and what was read can be written. */
	if (full && eng_event_lean(body, &a, &e, &token, &verdict, &err) < 0)
		__builtin_trap();
	if (full && eng_event_get(body, &a, &e, &token, &s, &err) == 0)
		eng_event_put(&b, &e, token);
	(void)eng_install_get(body, &a, &set, &err);
	(void)eng_clock_get(body, &last, &now, &err);
	(void)eng_stored_get(body, &a, &s, &err);
	return 0;
}
