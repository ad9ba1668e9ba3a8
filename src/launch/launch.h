/* launch: the monitor's side of box-launch. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/ipc.h"
#include "contain/spec.h"
#include "launch/proto.h"

struct launch_child {
	pid_t pid;   /* box-launch, pid 1 of the sandbox; a child of the caller */
	int pidfd;   /* readable when it ended; SIGKILL on it ends the whole sandbox */
	int control; /* the channel: frames of launch/proto.h; blocking */
};
#define LAUNCH_CHILD_INIT                                                                          \
	{                                                                                          \
		.pid = -1, .pidfd = -1, .control = -1                                              \
	}

/* Start box-launch with this spec. stdio[i] becomes descriptor i of the program; they stay the
 * caller's. Returns as soon as the process exists; READY or FAILED comes over child->control. The
 * sandbox dies with the calling thread. -1 when no process could be made (err says which layer is
 * missing and what to enable). */
int launch_start(const char *launcher_path, const struct sandbox_spec *spec, const int stdio[3],
    struct launch_child *child, struct box_err *err);

/* What one frame from box-launch said. */
struct launch_event {
	enum launch_type type;
	int listener; /* LISTENER: the receiver's */
	enum launch_stage stage;
	char text[BOX_ERR_MSG_MAX]; /* FAILED: escaped for a terminal */
	int status;                 /* EXITED: wait status; STOPPED: signal */
};
/* Receive and check one frame. 1: *ev is filled; 0: the channel closed; -1: error (EAGAIN on a
 * non-blocking channel is err->sys), or a frame outside the table: end it. */
int launch_recv(struct launch_child *child, struct launch_event *ev, struct box_err *err);
/* Send LAUNCH_SIGNAL. */
int launch_signal(struct launch_child *child, int sig, struct box_err *err);
/* SIGKILL (when still alive), waitpid, close everything. */
void launch_end(struct launch_child *child);
