/* boxdir: the box directory on disk (box-config-and-policy 1.2, 4.3 step 1, 4.6, 1.10): made,
 * verified, locked, recorded.
 *
 *     boxdir_open            creates or verifies the folder and its tree, takes both locks
 *     (open the history)     boxdir_check_history before, the engine after
 *     boxdir_commit          writes the record; says created, updated or unchanged
 *     … the run …
 *     boxdir_close           releases the run lock
 *
 * Everything is done relative to descriptors, without following links. A first start that was
 * killed before boxdir_commit leaves private/ with mode 01700; the next boxdir_open clears it,
 * since nothing was ever decided in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sv.h"
#include "config/plan.h"

#define BOXDIR_ID_LEN        20 /* "box-" and 16 lower-case hex digits */
#define BOXDIR_VERSION       1
#define BOXDIR_SOCK_PATH_MAX 103 /* of "<BD>/run/box.sock" */

struct boxdir {
	sv path;        /* borrowed from the plan */
	int fd;         /* the folder; its flock is held from boxdir_open to boxdir_commit */
	int private_fd; /* private/ */
	int lock_fd;    /* private/.lock; its flock is held until boxdir_close */
	char id[BOXDIR_ID_LEN + 1];
	bool fresh; /* no committed record yet */
};
#define BOXDIR_INIT                                                                                \
	{                                                                                          \
		.fd = -1, .private_fd = -1, .lock_fd = -1                                          \
	}

/* Create or verify p->box_dir and its tree (bin run trust tmp private private/telemetry, all 0700),
 * take the locks, read the record. On -1 nothing is held. Refusals are those of 1.2. */
int boxdir_open(const struct plan *p, struct boxdir *b, struct box_err *err);
/* What boxdir_open would refuse about the folder itself, without creating or locking anything: for
 * `box check`. */
int boxdir_check(const struct plan *p, struct box_err *err);
void boxdir_close(struct boxdir *b);
#define AUTO_BOXDIR __attribute__((cleanup(boxdir_close))) struct boxdir

/* Does the history (a file or folder of this name in private/) fit the record? A committed record
 * needs a history that is not empty, a fresh one must not have any. "policy staging failed: …"
 * (1.10). */
int boxdir_check_history(const struct boxdir *b, const char *name, struct box_err *err);

enum boxdir_change { BOXDIR_SAME, BOXDIR_CREATED, BOXDIR_UPDATED };
/* Store the record (box.toml's identity and digest) and the copy of the policy, durable, and
 * release the preparation lock. To be called when the history is open and the policy is installed,
 * before anything runs. *change: what the startup line says. */
int boxdir_commit(struct boxdir *b, const struct plan *p, sv policy, enum boxdir_change *change,
    struct box_err *err);
