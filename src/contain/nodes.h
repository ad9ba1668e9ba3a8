/* nodes: the view while it is being planned: a table of places (directories, links, files, mounts)
 * and of Landlock rights, both keyed by a canonical path. Order of adding does not matter;
 * nodes_emit sorts, adds missing parents, leaves out mounts that an enclosing one already gives,
 * and writes the operations. Internal to src/contain. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "contain/spec.h"

/* Who wants a place: of two different things at one place, the higher one stays. */
enum node_rank { RANK_SCAFFOLD, RANK_ALIAS, RANK_MINIMUM, RANK_GRANT };

struct node {
	struct sandbox_op op;
	enum node_rank rank;
	bool skip; /* set by nodes_emit: the enclosing mount is enough */
};

struct nodes {
	struct arena *a;
	struct node *v;
	size_t n, cap;
	struct sandbox_rule *rules;
	size_t rules_n, rules_cap;
	struct sandbox_op *late; /* after all mounts: covers, pins, the seal */
	size_t late_n, late_cap;
	bool nomem, full;
};

/* Path a equals b or lies below it. */
bool view_within(const char *a, const char *b);

void nodes_add(struct nodes *t, enum node_rank rank, struct sandbox_op op);
void nodes_dir(struct nodes *t, const char *path);
void nodes_link(struct nodes *t, enum node_rank rank, const char *path, const char *text);
void nodes_file(struct nodes *t, const char *path, const char *content);
/* Bind src (whose identity is taken now) at dst. flags: SANDBOX_NOEXEC, SANDBOX_RO …; a second bind
 * of the same source there gets the union of what both may do. -1 with errno when src cannot be
 * looked at. */
int nodes_bind(
    struct nodes *t, enum node_rank rank, const char *src, const char *dst, uint32_t flags);
/* The node exactly at path, or NULL. */
struct node *nodes_at(struct nodes *t, const char *path);
/* The innermost bind of a directory at or above path, or NULL. */
struct node *nodes_tree(struct nodes *t, const char *path);
/* The same when it shows the host's own path under its own name: not the box's /tmp. */
struct node *nodes_host_tree(struct nodes *t, const char *path);
void nodes_rule(struct nodes *t, const char *path, uint32_t rights);
void nodes_late(struct nodes *t, struct sandbox_op op);
/* Hold every directory above path in place that the process could otherwise rename. Grants must all
 * have been added. */
void nodes_pin(struct nodes *t, const char *path);
int nodes_emit(struct nodes *t, struct sandbox_spec *s, struct box_err *err);
