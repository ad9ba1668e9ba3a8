/* server: the event loop of box-files. It owns the channel to the monitor, the clients' channels
 * and the requests in progress; what a request does is in the ops_*.c and tree_*.c files.
 * Nothing here ever waits for one peer: frames that do not fit a socket are queued, a client is
 * read again only when its answer went out, and long work is done in slices between events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ipc.h"
#include "files/client.h"
#include "files/reach.h"
#include "files/walk.h"

struct event;
struct event_base;
struct srv;
struct client;
struct req;

/* A frame that did not fit the socket yet. */
struct outframe {
	struct outframe *next;
	uint16_t type;
	uint32_t id;
	struct buf body;
	int fds[IPC_FDS_MAX];
	size_t nfds;
};

/* One end: the socket and what waits to be sent on it. */
struct peer {
	int fd;
	struct event *rd, *wr;
	struct outframe *head, **tail;
	bool broken; /* the other end is gone */
};

/* The monitor's answer to one question. */
struct verdict {
	bool permit;
	uint64_t ticket; /* of the first effect; the others follow */
	uint16_t index;  /* denied: which effect */
	sv text;         /* denied: the whole denial */
};
typedef void (*verdict_fn)(void *ctx, const struct verdict *v);

/* A question being written: MON_ASK_FS. */
struct question {
	struct buf body;
	uint16_t n;
};

/* One effect of a request that is decided as a whole. */
struct eff {
	enum mon_fs_op op;
	bool ref;      /* only named: the target of a new link */
	bool anywhere; /* a host program */
	size_t w;      /* index into req.w */
};

/* A request of one client, from its frame to its answer. */
struct req {
	struct srv *srv;
	struct client *c; /* outlives the request */
	uint32_t id;
	uint16_t type;

	struct walk *w; /* the objects it names */
	size_t nw, capw;
	struct eff *e; /* what is to be decided, in order */
	size_t ne, cape;
	uint16_t asked;  /* effects in the question: those that need a decision */
	uint64_t ticket; /* of the first of them */
	bool permitted;  /* the tickets are ours to report */

	/* Permitted and past the floor: do it, and end with req_ok or req_errno. */
	void (*act)(struct req *q);
	/* One slice of long work; called until it asks for no more (srv_unready). NULL: none. */
	void (*slice)(struct req *q);
	/* The client went away during long work: free everything with req_end. NULL: wait for
	 * the verdict. */
	void (*gone)(struct req *q);
	/* Free what `state` points to. */
	void (*drop)(struct req *q);
	void *state; /* of the operation */
	bool ready;  /* in the list of slices */
	struct req *next_ready;

	/* Arguments of the small operations. */
	uint32_t flags, mode;
	bool yes; /* follow, must_exist, stat_entries, dir, no_replace */
	struct timespec ts[2];
	struct buf text; /* link text, template, PATH */
	struct {
		uint32_t flags, mode;
	} open[FILES_OPEN_MAX];
};

struct client {
	struct srv *srv;
	struct client *next, **pprev;
	struct peer peer;
	uint32_t session;
	struct req *cur;
	bool dead;
	size_t notes; /* frames waiting */
};

struct pending {
	verdict_fn fn; /* NULL: a free slot */
	void *ctx;
	uint16_t gen, n;
};

struct srv {
	struct event_base *base;
	struct reach reach;
	struct peer mon;
	struct ipc_msg msg; /* the frame being handled */
	struct client *clients;
	size_t clients_n;
	struct pending *pend;
	size_t pend_n;
	struct req *ready;
	struct event *tick;
	size_t plan_bytes; /* of FILES_PLAN_BYTES_MAX */
	bool stop;         /* MON_STOP came or the monitor is gone */
	struct box_err err;
};

/* Serve on the monitor's channel (taken over, also on failure): START was read into s->reach
 * before (srv_start). 0 after MON_STOP or when the monitor closed, -1 with err set when
 * box-files cannot go on. */
int srv_run(struct srv *s, struct box_err *err);
/* The parts of srv_run: make the loop ready; one turn of it (0: go on, 1: ended, -1: error). */
int srv_open(struct srv *s, struct box_err *err);
int srv_turn(struct srv *s, bool wait, struct box_err *err);
/* Say HELLO, wait for START, fill s->reach. fd is taken over. */
int srv_start(struct srv *s, int fd, struct box_err *err);
void srv_fini(struct srv *s);

/* Begin a question, add effects to it (false: this one does not fit any more; send it and begin
 * the next), send it. srv_ask returns -1 without calling fn when there is no memory. */
void question_begin(struct question *k, uint32_t session);
bool question_add(struct srv *s, struct question *k, enum mon_fs_op op, sv canon);
int srv_ask(struct srv *s, struct question *k, verdict_fn fn, void *ctx);
/* Outcomes. */
void srv_done(struct srv *s, uint64_t ticket, enum mon_fs_result result);
void srv_abandon(struct srv *s, uint64_t ticket, uint16_t n);
void srv_floor(
    struct srv *s, uint64_t ticket, uint16_t n, enum mon_fs_op op, sv canon, const char *reason);

/* A frame to the client; fds are taken over (closed). Never fails: a client that is gone gets
 * nothing. */
void client_send(
    struct client *c, uint16_t type, uint32_t id, const struct buf *body, int *fds, size_t nfds);
/* The client's state changed: read it again, or not. */
void client_update(struct client *c);
/* Did the client go away? To be asked between parts of long work; a client that did is ended
 * when this turn of the loop is over. */
bool client_hung_up(struct client *c);
/* Frames are waiting: make no more of them now. */
bool client_is_full(const struct client *c);

/* Give the request slices until req_unready. */
void req_ready(struct req *q);
void req_unready(struct req *q);

/* Building a request. -1: the request was answered and is gone (or the client must end, with err
 * set: req_path). */
struct req *req_new(struct client *c, const struct ipc_msg *m, struct box_err *err);
/* Read a path from the frame: -1 with err set when the frame is malformed (the client ends), 0
 * with *out. */
int req_path(struct rd *b, sv *out, struct box_err *err);
/* Resolve one more object. Its index, or -1 when the request has been answered with an errno. */
ptrdiff_t req_walk(struct req *q, sv path, unsigned flags);
/* Have this decided. -1: answered with ENOMEM. */
int req_effect(struct req *q, enum mon_fs_op op, size_t w, bool ref);
/* Ask the monitor for all effects at once, then the floor, then q->act. */
void req_decide(struct req *q);

/* Answers. Each ends the request: it is freed, tickets are reported. */
void req_ok(
    struct req *q, enum mon_fs_result result, const struct buf *body, int *fds, size_t nfds);
void req_errno(struct req *q, int e);
void req_errno_at(struct req *q, int e, size_t index);
/* The object is no longer the one that was decided. */
void req_changed(struct req *q, size_t index);
void req_denied(struct req *q, size_t index, sv text);
void req_floored(struct req *q, size_t index, sv canon, const char *reason);
/* Free without an answer (the client is gone); permitted effects are abandoned. */
void req_end(struct req *q);

/* The body of a FILES_FAIL, also inside FILES_NOTE. */
void put_fail(struct buf *b, enum files_why why, int sys, size_t index, sv path, sv text);
void put_stat(struct buf *b, const struct stat *st);

/* Parsers of the client's frames (ops_*.c, tree.c): 0, or -1 with err set when the frame is
 * malformed. */
int op_open(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_stat(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_access(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_list(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_readlink(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_realpath(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_chdir(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_mkdir(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_chmod(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_utimes(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_unlink(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_rmdir(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_rename(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_symlink(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_link(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_mktemp(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_locate(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_tree_begin(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_tree_add(struct client *c, struct ipc_msg *m, struct box_err *err);
int op_tree_go(struct client *c, struct ipc_msg *m, struct box_err *err);

/* What an object is changed or opened through, with its identity proven (act.c). -1 with errno;
 * ESTALE: not the object that was decided. */
int act_open_held(const struct reach *r, const struct walk *w, int flags);
int act_open_dir(const struct walk *w);
int act_chmod(const struct reach *r, const struct walk *w, mode_t mode);
