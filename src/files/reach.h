/* reach: what START told box-files, and the floor that stands beneath policy. Pure data and
 * comparisons: nothing here opens what a client named (reach_init looks up the protected
 * objects' folders once, before any client exists).
 *
 * The floor judges an object twice: by its canonical path, which also covers what does not exist
 * yet, and by the identity (dev, ino) of every folder that was walked through, which covers hard
 * links, bind mounts and case folding. It only refuses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "files/proto.h"

struct reach_root {
	sv path; /* canonical, absolute */
	/* For a root in the host's /tmp: "/tmp/<first name>", which hides that name of the
	 * box's. */
	sv gate;
	bool write;
};

/* A folder above a protected object: it must keep its name and its permissions. */
struct reach_above {
	uint64_t dev, ino;
	size_t prot; /* index into prots */
};

struct reach_prot {
	enum files_protect kind;
	sv path;
	uint64_t dev, ino; /* 0, 0: absent at start */
};

struct reach {
	struct arena arena;
	sv home;
	struct reach_root *roots;
	size_t roots_n;
	struct reach_prot *prots;
	size_t prots_n;
	struct reach_above *above;
	size_t above_n, above_cap;
	sv *allow;
	size_t allow_n;
	int root_fd;     /* "/" */
	int tmp_fd;      /* the box's /tmp */
	int host_tmp_fd; /* the host's /tmp, for roots that lie in it; -1 when it is not a folder */
	int proc_fd;     /* /proc/self/fd, for calls that lack AT_EMPTY_PATH; -1 without /proc */
};

/* Fill *r from the body of MON_START. tmp_fd is taken over, also on failure. */
int reach_init(struct reach *r, struct rd *start, int tmp_fd, struct box_err *err);
void reach_fini(struct reach *r);

/* path is base itself or lies below it (component-wise; no trailing slashes but in "/"). */
bool reach_within(sv path, sv base);
/* The policy spelling of a canonical path: "~", "~/…" or absolute. */
void reach_spell(const struct reach *r, sv canon, struct buf *out);
/* May this canonical path be looked up at all: inside a root, above one, in /tmp, or a harmless
 * device? */
bool reach_visible(const struct reach *r, sv canon);
/* Inside a root, or in /tmp (then *write is what the root allows); devices are not. */
bool reach_inside(const struct reach *r, sv canon, bool *write);
/* Does this path lie in the host's /tmp instead of the box's, because a root is there? */
bool reach_is_host_tmp(const struct reach *r, sv canon);
/* Is this one of the harmless devices by name: /dev/null, zero, full, random, urandom, tty? */
bool reach_is_dev_path(sv canon);
/* Must the object keep its name: a root, /tmp or a folder above one? */
bool reach_is_pinned(const struct reach *r, sv canon);
/* The protected object with this identity, or NULL. */
const struct reach_prot *reach_by_id(const struct reach *r, uint64_t dev, uint64_t ino);

/* What the floor is asked. */
struct reach_ask {
	enum mon_fs_op op;
	bool ref;      /* only named (the target of a new link): judged as reading */
	bool anywhere; /* a program for the host: may lie outside the roots */
	sv canon;
	const struct reach_prot
	    *chain; /* the protected object the walk went through or ended at, by identity */
	bool exists;
	uint64_t dev, ino; /* of the object */
	uint32_t mode;     /* of the object */
	uint64_t rdev;
};
/* NULL when the floor lets it through, else one of FILES_TEXT_*. */
const char *reach_floor(const struct reach *r, const struct reach_ask *a);
/* Is a device of this mode and number one that boxes may open? */
bool reach_is_safe_device(uint32_t mode, uint64_t rdev);
