/* Frames of a box-launch, which is pid 1 of the agent's own sandbox, into the monitor: of the
 * agent's when the first byte is odd, else of a tool whose session is over. */
#include "monitor/sandbox.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();
	bool agent = size != 0 && (data[0] & 1) != 0;
	struct sandbox *s = calloc(1, sizeof(*s));
	uint32_t id = r->m.next_sandbox++;
	struct box_err err;
	int pair[2];

	if (size == 0) {
		free(s);
		return 0;
	}
	if (s == NULL || ipc_pair(pair, &err) != 0 || fd_set_nonblock(pair[0], true) != 0)
		abort();
	*s = (struct sandbox){ .m = &r->m,
		.id = id,
		.proc = agent ? &r->agent : &r->tool,
		.child = LAUNCH_CHILD_INIT };
	s->child.control = pair[0];
	s->next = r->m.sandboxes;
	r->m.sandboxes = s;
	if (agent)
		r->m.agent = s;
	s->watch = loop_watch(r->m.loop, pair[0], EPOLLIN, on_control, s, &err);
	if (s->watch == NULL)
		abort();
	rig_feed(r, pair[1], data + 1, size - 1);
	(void)close(pair[1]);
	rig_settle(r);
	if (r->m.sandboxes != NULL || r->m.agent != NULL)
		abort();               /* its end was not noticed */
	while (r->m.listeners != NULL) /* one for each LISTENER */
		egress_unlisten(&r->m, id);
	return 0;
}
