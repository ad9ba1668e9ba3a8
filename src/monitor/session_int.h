/* What the two files of a session share: session.c (its life and what its shell asks) and
 * session_start.c (its start). */
#pragma once

#include "monitor/internal.h"

#define SESSION_NEW  1U /* no HELLO yet */
#define SESSION_IDLE 2U /* spare */
#define SESSION_LIVE 4U

struct shell_chan {
	struct shell_chan *next;
	struct session *session;
	struct chan *chan;
	bool first;
};

struct tool {
	struct tool *next;
	uint32_t id;
	struct shell_chan *asker; /* NULL: that subshell is gone */
	uint32_t request;
	uint64_t ticket;
	bool started;
};

struct session {
	struct session *next;
	struct monitor *m;
	uint32_t id;
	struct crew crew;
	struct decide_owner owner; /* of the tickets of all its channels */
	struct shell_chan *chans;
	size_t chans_n;
	struct alias *alias; /* NULL before a command, and after its exit */
	struct tool *tools;
	size_t tools_n;
	uint32_t next_tool;
	struct loop_timer *kill_timer;
	struct loop_watch *reaped; /* its channels are gone, its process is about to be */
	bool broken;               /* a channel broke the rules */
	sv traceparent;
	struct arena arena; /* of the command */
};

/* The request table of a shell's channels. */
const struct chan_ops *session_chan_ops(void);
