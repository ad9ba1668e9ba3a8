/* A monitor without processes, for fuzzing its request tables: memory engine, an open policy, a
 * plan with one agent and one tool, records to /dev/null. Frames of the input go in through a
 * socket pair; whatever they ask for, no program can be started (program_dir does not exist). */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "dogwood/box_schema.h"
#include "dogwood/dogwood.h"
#include "monitor/internal.h"

struct rig {
	struct plan plan;
	struct plan_process agent, tool;
	struct plan_route route;
	struct plan_dest dest;
	struct monitor m;
	int64_t now;
	uint64_t ticket; /* of the newest permit */
	int other;       /* the far end of every descriptor that was sent */
	bool ready;
};

static inline int64_t rig_now(void *arg)
{
	return ++((struct rig *)arg)->now;
}

/* Made once; the engine keeps its (small) history over the inputs. */
static inline struct rig *rig_get(void)
{
	static struct rig r;
	static const char policy[] = "permit (principal, action, resource);";
	struct dogwood_source src = { dogwood_cstr("p"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("a"), dogwood_cstr(dw_box_actions) },
		.event_schema = { dogwood_cstr("e"), dogwood_cstr(dw_box_events) } };
	struct dogwood_options o;
	struct box_err err;

	if (r.ready)
		return &r;
	r.agent =
	    (struct plan_process){ .table = SV("[agent]"), .workspace = SV("/nonexistent/w") };
	r.tool = (struct plan_process){ .kind = PLAN_TOOL,
		.table = SV("[tool.t]"),
		.program = SV("/nonexistent/tool"),
		.fixed_n = 1 };
	r.dest = (struct plan_dest){ .host = SV("api.test") };
	r.route = (struct plan_route){ .name = SV("r"),
		.dests = &r.dest,
		.dests_n = 1,
		.secret_var = SV("TOK"),
		.header = SV("Authorization"),
		.prefix = SV("Bearer "),
		.phantom_prefix = SV("p_") };
	r.plan = (struct plan){ .home = SV("/nonexistent/home"),
		.path_var = SV("/nonexistent/bin"),
		.box_dir = SV("/nonexistent/box"),
		.agent = &r.agent,
		.tools = &r.tool,
		.tools_n = 1,
		.routes = &r.route,
		.routes_n = 1,
		.uid = getuid() };
	r.m = (struct monitor){ .plan = &r.plan,
		.wall = { rig_now, &r },
		.mono = { rig_now, &r },
		.broker_fd = -1,
		.next_session = 1,
		.next_sandbox = 1 };
	r.m.path = (struct monitor_paths){ .box_dir = "/nonexistent/box",
		.bin = "/nonexistent/box/bin",
		.ca_cert = "/nonexistent/c",
		.ca_bundle = "/nonexistent/b",
		.tmp = "/nonexistent/tmp",
		.program_dir = "/nonexistent" };
	dogwood_options_init(&o);
	o.now_ns = rig_now;
	o.now_arg = &r;
	r.m.loop = loop_new(r.m.mono, &err);
	r.m.rec = record_open("/dev/null", "box-0000000000000000", r.m.wall, &err);
	if (r.m.loop == NULL || r.m.rec == NULL ||
	    dogwood_engine_open(&o, &r.m.engine, NULL) != 0 ||
	    dogwood_engine_install(r.m.engine, &set, NULL, NULL, NULL) != 0 ||
	    (r.m.decider = decide_new(r.m.engine, r.m.rec, &err)) == NULL ||
	    (r.m.ca = ca_new(SV("fuzz"), &r.m.wall, &err)) == NULL ||
	    setenv("TOK", "secret", 1) != 0 ||
	    routes_open(&r.plan, (const char *(*)(const char *))getenv, &r.m.routes, &err) != 0)
		abort();
	r.ready = true;
	return &r;
}

/* Read what the monitor answered. */
static inline void rig_answers(struct rig *r, int fd)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;

	while (ipc_recv(fd, &m, &err) == 1) {
		bool permit = m.type == MON_VERDICT && rd_u8(&m.body) == 1;
		uint64_t ticket = permit ? rd_u64(&m.body) : 0;

		if (permit && !m.body.bad)
			r->ticket = ticket;
	}
}

/* A body as the input has it; when it begins with a small number (u64), as the bodies do that name
 * a ticket, it is made a real one, since inputs cannot know tickets: 1 is the (first) ticket of the
 * newest permit, 0 the one behind it, 2 and 3 those before. */
static inline void rig_body(const struct rig *r, sv bytes, struct buf *b)
{
	struct rd look = rd_of(bytes.p, bytes.n);
	uint64_t back = rd_u64(&look);

	if (!look.bad && back < 4 && r->ticket + 1 > back) {
		buf_put_u64(b, r->ticket + 1 - back);
		bytes = sv_sub(bytes, 8, bytes.n);
	}
	buf_put_sv(b, bytes);
}

/* Cut the input into frames (u16 type, u16 length, bytes) and send them, one turn of the loop after
 * each. The upper three bits of the length say how many descriptors travel: all are one end of a
 * channel, and the upper bit of a later type sends that frame into the other end. */
static inline void rig_feed(struct rig *r, int fd, const uint8_t *data, size_t size)
{
	struct rd in = rd_of(data, size);
	struct box_err err;
	int more[2];

	if (ipc_pair(more, &err) != 0)
		abort();
	r->other = more[0];
	(void)fd_set_nonblock(fd, true); /* pairs of ours */
	(void)fd_set_nonblock(more[0], true);
	r->ticket = 0;
	for (int i = 0; i < 64 && rd_left(&in) >= 4; i++) {
		uint16_t type = rd_u16(&in);
		uint16_t head = rd_u16(&in);
		size_t len = head & 0x1fff, nfds = head >> 13;
		sv bytes = rd_bytes(&in, len < rd_left(&in) ? len : rd_left(&in));
		AUTO_BUF b = buf_with(IPC_BODY_MAX);
		int fds[4] = { more[1], more[1], more[1], more[1] };

		rig_body(r, bytes, &b);
		if (ipc_send((type & 0x8000) != 0 ? more[0] : fd, type & 0x7fff, (uint32_t)i, &b,
		        fds, nfds <= IPC_FDS_MAX ? nfds : 0, &err) != 0)
			break;
		(void)loop_turn(r->m.loop, 0, &err);
		(void)decide_turn(r->m.decider);
		rig_answers(r, fd);
		rig_answers(r, more[0]);
	}
	(void)close(more[1]);
}

/* Let everything end. */
static inline void rig_settle(struct rig *r)
{
	struct box_err err;

	for (int i = 0; i < 8; i++)
		(void)loop_turn(r->m.loop, 0, &err);
	fd_drop(&r->other);
	for (int i = 0; i < 4; i++)
		(void)loop_turn(r->m.loop, 0, &err);
	r->m.failed = false;
}

/* The frames of a peer of the monitor's, behind one byte: odd, the peer has said hello and is in
 * the state `live`. */
static inline int rig_crew(struct rig *r, struct crew *crew, const char *program,
    const struct chan_ops *frames, unsigned live, const uint8_t *data, size_t size)
{
	struct box_err err;
	int pair[2];

	if (size == 0)
		return 0;
	if (ipc_pair(pair, &err) != 0)
		abort();
	*crew = (struct crew){ .m = &r->m, .program = program, .pid = -1, .pidfd = -1 };
	crew->chan = chan_new(r->m.loop, r->m.decider, pair[0], frames, &r->m, &err);
	if (crew->chan == NULL)
		abort();
	if ((data[0] & 1) != 0)
		chan_set_state(crew->chan, live);
	rig_feed(r, pair[1], data + 1, size - 1);
	(void)close(pair[1]);
	rig_settle(r);
	return 0;
}
