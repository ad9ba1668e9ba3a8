/* walk: from a path that a client wrote to an object that is held. Each component is opened by
 * itself (openat, O_PATH, O_NOFOLLOW) from a held folder; links are read and followed here, `..`
 * steps back on the stack of held folders, so no name is ever looked up twice and no swap can
 * lead the walk out of the folders it saw. The result carries the canonical path that policy
 * judges and the descriptors to act on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "files/reach.h"

#define WALK_LINKS_MAX 40 /* as Linux: more is ELOOP */
#define WALK_DEPTH_MAX 2048

enum walk_flags {
	WALK_FOLLOW = 1,   /* follow a link that is the last name */
	WALK_ANYWHERE = 2, /* look outside the roots too (FILES_LOCATE only) */
	WALK_MAKE = 4 /* the last name will be made: slashes behind it are no promise of a folder */
};

/* What a path means. canon is always set; what else depends on err:
 *   0       the object is held: obj, st; parent and name unless it is "/"
 *   ENOENT  with parent >= 0: only the last name is missing; it can be made there
 *   other   (or parent < 0): the walk ended early. canon is the path folded as if every missing
 *           name were a folder, so that the decision (which is made all the same) does not
 *           depend on what exists */
struct walk {
	struct buf canon; /* bytes; use buf_sv */
	char name[256];   /* the last name, NUL-terminated; "" for "/" */
	int parent;       /* O_PATH folder that holds name, or -1 */
	int obj;          /* O_PATH on the object (a link itself when not followed), or -1 */
	struct stat st;   /* of obj */
	uint64_t parent_dev, parent_ino;
	uint32_t parent_mode;
	const struct reach_prot
	    *prot; /* protected object met on the way or at the end, by identity */
	int err;
	bool slash;    /* slashes behind the last name */
	bool dot;      /* the last name was "." or ".." */
	bool tmp;      /* the box's /tmp itself: `name` in `parent` is another folder */
	bool host_tmp; /* below the host's /tmp (reach_is_host_tmp) */
};

/* A struct walk that holds nothing. */
#define WALK_INIT                                                                                  \
	{                                                                                          \
		.parent = -1, .obj = -1                                                            \
	}
void walk_fini(struct walk *w);

/* Resolve an absolute path (at most FILES_PATH_MAX - 1 bytes, no NUL, both checked by the
 * caller). 0 with *w filled, -1 when even the canonical path cannot be made: w->err holds
 * ENAMETOOLONG, EILSEQ (a name that is not UTF-8 cannot be named to policy), ENOMEM or EMFILE. */
int walk_path(const struct reach *r, sv path, unsigned flags, struct walk *w);
/* Is w->parent still the folder that the canonical path names, with no link on the way? To be
 * asked directly before acting. */
bool walk_still(const struct reach *r, const struct walk *w);
/* Look up w->name in w->parent again: 0 and *st, or errno. */
int walk_peek(const struct walk *w, struct stat *st);
/* Is the object under w->name still the one that was held? */
bool walk_same(const struct walk *w);
/* The floor's question about this object. */
struct reach_ask walk_ask(const struct walk *w, enum mon_fs_op op, bool ref);
