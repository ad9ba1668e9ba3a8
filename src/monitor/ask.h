/* ask: one action to be decided, whoever asks. Workers' frames become a struct ask; ask.c turns it
 * into the policy's event (box-config-and-policy 2.2) and into the subject of a record (5.2). Views
 * borrow from the frame and are copied where they must outlive it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/rd.h"
#include "base/sv.h"
#include "monitor/proto.h"

enum ask_kind { ASK_FS, ASK_EXEC, ASK_SPAWN, ASK_CONNECT, ASK_HTTP };

struct ask_arg {
	sv text;
	bool literal; /* stood in the script as it is */
};

struct ask {
	enum ask_kind kind;
	/* fs */
	enum mon_fs_op op;
	sv path; /* fs, and the request path of http */
	/* shell */
	sv command, program, program_path, cwd;
	struct ask_arg *args;
	uint32_t args_n;
	uint32_t args_kept; /* entries of args that exist; fewer than args_n only in a copy */
	const sv *credential_reads; /* spawn: stores that the matching tools name */
	size_t credential_reads_n;
	/* net */
	sv host, ip, method;
	uint16_t port;
	uint64_t body_bytes;
	bool intercepted;
	uint64_t request_id; /* http, connect: the gateway's number of the exchange; 0 none */
};

/* "fs:read", "shell:exec", … */
const char *ask_action(const struct ask *a);
/* "fs", "shell", "net", "http" */
const char *ask_category(const struct ask *a);
/* "read_content", … ; NULL for a number outside the enum */
const char *ask_fs_operation(enum mon_fs_op op);
/* The entity type of the operation ("Box::FsReadOperation"). */
const char *ask_fs_type(enum mon_fs_op op);
/* What a denial names (3.1): path, program, program_path, host:port, host:port/path. */
void ask_put_target(const struct ask *a, struct buf *out);
/* The target of a text from outside never reaches a terminal raw: this is the escaped form for
 * messages. */
void ask_put_target_escaped(const struct ask *a, struct buf *out);

/* Read `command` of MON_ASK_EXEC and MON_ASK_SPAWN (proto.h). args live in arena, text borrows from
 * the frame. false: malformed. */
bool ask_read_command(struct rd *r, struct arena *arena, struct ask *a);
/* A copy that outlives the frame, in one allocation: free(3) it. Of the arguments the first two are
 * kept, for a spawn all. NULL without memory. credential_reads belong to the plan and are
 * borrowed. */
struct ask *ask_dup(const struct ask *a);
