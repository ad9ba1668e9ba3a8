/* tree: rm -r, cp -r, mv, chmod -R and rename as one request (design.md 6). Nothing is changed
 * before everything is decided:
 *
 *   operands    every operand is resolved and its metadata decided
 *   enumerate   folder by folder: decided, floor, read; what is found joins the plan
 *   decide      the effects of the whole plan in batches, floor on each; one refusal ends it here
 *   act         object by object, in slices, each found again by its canonical path and proven to
 *               be the object that was planned
 *
 * A plan holds no descriptors (it may have a million entries), only canonical paths and identities.
 * Paths are rebuilt from the parents. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "files/server.h"

#define TREE_NONE      UINT32_MAX
#define TREE_BYTES_MAX ((size_t)200 << 20)

enum tree_dst { DST_NONE, DST_NEW, DST_FILE, DST_DIR };

struct node {
	uint32_t parent; /* TREE_NONE: an operand */
	uint32_t operand;
	sv name; /* operand: the canonical path; else one name */
	const struct reach_prot *prot, *dst_prot;
	uint64_t dev, ino, rdev;
	uint64_t dst_dev, dst_ino, dst_rdev; /* what stands there; after the act, what was made */
	uint32_t mode, dst_mode;
	uint32_t eff;    /* number of the first effect */
	int err;         /* known at planning time: reported instead of acting */
	const char *why; /* text for err, when strerror does not say it */
	/* Of an operand, or of a child whose destination is a followed link: canonical; else empty
	 * (the parent's and the name). */
	sv dst_path;
	sv link;                       /* text of a link to be copied */
	uint32_t children, children_n; /* of a folder that was read: they stand together */
	uint8_t eff_n;
	uint8_t dst;   /* enum tree_dst */
	bool asked;    /* in the question under way */
	bool readable; /* its enumeration was permitted: to be read */
	bool settled;  /* outcome reported (or nothing to report) */
	bool failed;   /* an error was reported for it, or above it */
	bool below;    /* an error was reported below it */
	bool at_dst;   /* the error is about the destination */
	bool skip;     /* nothing to do */
	bool cross;    /* operand of a move: on another file system, copied and removed */
};

/* One permitted question of the decide phase. */
struct batch {
	uint64_t ticket;
	uint32_t first; /* number of its first effect */
	uint16_t n;
};

enum tree_phase { TREE_BUILD, TREE_OPERANDS, TREE_ENUMERATE, TREE_READ, TREE_DECIDE, TREE_ACT };

/* A folder that is open while its entries are worked on. */
struct held_dir {
	uint32_t node; /* TREE_NONE: none */
	int fd;        /* O_PATH */
};

struct tree {
	struct req *q;
	struct arena arena;
	size_t charged; /* of srv.plan_bytes */
	enum files_tree_op op;
	uint32_t flags, mode_set, mode_clear, mode_x;
	bool single; /* FILES_RENAME: one errno instead of notes */
	bool no_replace;
	int build_err; /* an operand did not fit; said at TREE_GO */
	sv dst;        /* as the client wrote it */

	struct node *v;
	uint32_t n, cap, operands;

	enum tree_phase phase;
	bool asking;
	uint32_t at;                 /* next node of the phase */
	uint32_t ask_first, ask_end; /* nodes of the question under way */
	uint32_t read_at;            /* TREE_READ: folder being read */
	DIR *dir;

	struct batch *batches;
	uint32_t batches_n, batches_cap;
	uint32_t effs; /* effects permitted so far */

	uint32_t pass; /* of TREE_ACT: see tree_act.c */
	/* In which nodes are worked on: a folder before its content, or (remove, chmod) after
	 * it. */
	uint32_t *order;
	struct held_dir src_dir, dst_dir;
	int copy_in, copy_out; /* a file copy under way */
	bool any_error;
	int last_err; /* for single */
	const char *last_why;
};

/* tree_node.c */
/* A new entry, the name copied. The array may move. NULL: no memory, or too many. */
struct node *tree_add(struct tree *t, uint32_t parent, uint32_t operand, sv name);
/* Bytes of the plan against the limit of all plans. */
bool tree_charge(struct tree *t);
/* Known now, reported instead of acting: errno, and a text when strerror does not say it. */
void tree_clash(struct node *v, int e, const char *why);
/* Paths of a node: canonical, into out. false: too long. */
bool tree_path(const struct tree *t, uint32_t i, struct buf *out);
bool tree_dst_path(const struct tree *t, uint32_t i, struct buf *out);
bool tree_has(const struct tree *t, uint32_t flag);
/* Is a folder of the plan to be descended into? */
bool tree_descends(const struct tree *t, const struct node *v);
/* The whole request ends with this errno; nothing was changed. */
void tree_fail(struct tree *t, int e);
/* Report an operand or a node as refused or failed: the body of a note. */
void tree_note(struct tree *t, uint32_t i, enum files_tree_event ev, const struct buf *fail);
/* A refusal ends the request: one note, then the answer. */
void tree_denied(struct tree *t, uint32_t i, sv text);
void tree_floored(struct tree *t, uint32_t i, sv canon, const char *reason);

/* tree_dst.c */
/* Where v goes; src is what v is. Of an operand: `operand` as the client wrote it. -1: no
 * memory. */
int tree_operand_dst(struct tree *t, struct node *v, sv operand, const struct stat *src);
int tree_child_dst(struct tree *t, struct node *v, const struct stat *src);

/* tree_plan.c */
/* Resolve an operand into the plan. -1: no memory. */
int tree_operand(struct tree *t, sv path);
/* One question of TREE_OPERANDS or TREE_ENUMERATE; one slice of TREE_READ. */
void tree_ask_look(struct tree *t);
void tree_read_dirs(struct tree *t);

/* tree_decide.c */
void tree_decide_slice(struct tree *t);
/* Report what was permitted and will not be done. */
void tree_abandon(struct tree *t);
/* The ticket of effect number k. */
uint64_t tree_ticket(const struct tree *t, uint32_t k);

/* tree_act.c */
void tree_act_slice(struct tree *t);
/* Report a node: done, or failed with errno (ESTALE: changed). */
void tree_did(struct tree *t, uint32_t i);
void tree_error(struct tree *t, uint32_t i, int e, const char *why);
/* The folder that holds node i's name, proven; O_PATH, owned by t. -1 with errno. *name is the
 * node's name there. */
int tree_parent(struct tree *t, uint32_t i, char name[256]);
/* The same for its destination. */
int tree_dst_parent(struct tree *t, uint32_t i, char name[256]);
void tree_drop_dirs(struct tree *t);
/* Is `name` in dir still node i? 0, ESTALE or errno. */
int tree_check(const struct tree *t, uint32_t i, int dir, const char *name);
/* Is the destination as planned? 0, ESTALE. */
int tree_check_dst(const struct tree *t, uint32_t i, int dir, const char *name);

/* tree_copy.c */
/* One slice of copying node i. 1: more to do; 0: done; -1: errno. */
int tree_copy(struct tree *t, uint32_t i);
/* Modes and times of a copied folder, after its content. 0 or errno. */
int tree_copy_finish(struct tree *t, uint32_t i);
