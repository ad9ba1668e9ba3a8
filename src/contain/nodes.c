#include "contain/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ban.h"

bool view_within(const char *a, const char *b)
{
	size_t n = strlen(b);

	if (n == 1)
		return a[0] == '/';
	return strncmp(a, b, n) == 0 && (a[n] == '\0' || a[n] == '/');
}

/* Order in which a parent comes directly before what is below it: '/' sorts before every other
 * byte. */
static int view_cmp(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (*a == '\0' || *b == '\0')
		return *a == '\0' ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int node_cmp(const void *x, const void *y)
{
	const struct node *a = x, *b = y;

	return view_cmp(a->op.dst, b->op.dst);
}

/* Room for one more element of a vector in the arena. */
static bool grow(struct nodes *t, void **v, size_t n, size_t *cap, size_t size, size_t max)
{
	size_t want = *cap != 0 ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return true;
	if (n >= max) {
		t->full = true;
		return false;
	}
	p = arena_grow(t->a, *v, n, want, size);
	if (p == NULL) {
		t->nomem = true;
		return false;
	}
	*v = p;
	*cap = want;
	return true;
}

struct node *nodes_at(struct nodes *t, const char *path)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].op.dst, path) == 0)
			return &t->v[i];
	return NULL;
}

struct node *nodes_tree(struct nodes *t, const char *path)
{
	struct node *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		struct node *n = &t->v[i];

		if (n->op.kind == SANDBOX_BIND && (n->op.flags & SANDBOX_IS_DIR) &&
		    view_within(path, n->op.dst) &&
		    (best == NULL || strlen(n->op.dst) > strlen(best->op.dst)))
			best = n;
	}
	return best;
}

struct node *nodes_host_tree(struct nodes *t, const char *path)
{
	struct node *n = nodes_tree(t, path);

	return n != NULL && (n->op.flags & SANDBOX_OWN) ? NULL : n;
}

void nodes_add(struct nodes *t, enum node_rank rank, struct sandbox_op op)
{
	const uint32_t limits = SANDBOX_RO | SANDBOX_NOEXEC;
	struct node *old;

	if (t->nomem || t->full)
		return;
	if (op.dst == NULL) {
		t->nomem = true;
		return;
	}
	old = nodes_at(t, op.dst);
	if (old != NULL) {
		if (old->op.kind == SANDBOX_BIND && op.kind == SANDBOX_BIND &&
		    old->op.ino == op.ino && old->op.dev == op.dev) {
			old->op.flags = (old->op.flags & op.flags & limits) |
			                ((old->op.flags | op.flags) & ~limits);
			if (rank > old->rank)
				old->rank = rank;
		} else if (rank > old->rank ||
		           (old->op.kind == SANDBOX_DIR && op.kind != SANDBOX_DIR)) {
			*old = (struct node){ .op = op, .rank = rank };
		}
		return;
	}
	if (grow(t, (void **)&t->v, t->n, &t->cap, sizeof(*t->v), SANDBOX_OPS_MAX / 2))
		t->v[t->n++] = (struct node){ .op = op, .rank = rank };
}

void nodes_dir(struct nodes *t, const char *path)
{
	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){
	        .kind = SANDBOX_DIR, .dst = arena_dup(t->a, sv_c(path)).p, .mode = 0755 });
}

void nodes_link(struct nodes *t, enum node_rank rank, const char *path, const char *text)
{
	const char *copy = arena_dup(t->a, sv_c(text)).p;

	if (copy == NULL)
		t->nomem = true;
	nodes_add(t, rank,
	    (struct sandbox_op){
	        .kind = SANDBOX_LINK, .src = copy, .dst = arena_dup(t->a, sv_c(path)).p });
}

void nodes_file(struct nodes *t, const char *path, const char *content)
{
	if (content == NULL)
		t->nomem = true;
	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){
	        .kind = SANDBOX_FILE, .dst = path, .content = sv_c(content), .mode = 0444 });
}

int nodes_bind(
    struct nodes *t, enum node_rank rank, const char *src, const char *dst, uint32_t flags)
{
	struct stat st;
	const char *s = arena_dup(t->a, sv_c(src)).p, *d = arena_dup(t->a, sv_c(dst)).p;

	if (lstat(src, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	if (s == NULL || d == NULL) {
		t->nomem = true;
		return 0;
	}
	nodes_add(t, rank,
	    (struct sandbox_op){ .kind = SANDBOX_BIND,
	        .flags = flags | (S_ISDIR(st.st_mode) ? SANDBOX_IS_DIR : 0u),
	        .src = s,
	        .dst = d,
	        .dev = (uint64_t)st.st_dev,
	        .ino = (uint64_t)st.st_ino });
	return 0;
}

void nodes_rule(struct nodes *t, const char *path, uint32_t rights)
{
	const char *copy;

	if (rights == 0)
		return;
	for (size_t i = 0; i < t->rules_n; i++)
		if (strcmp(t->rules[i].path, path) == 0) {
			t->rules[i].rights |= rights;
			return;
		}
	copy = arena_dup(t->a, sv_c(path)).p;
	if (copy == NULL)
		t->nomem = true;
	else if (grow(t, (void **)&t->rules, t->rules_n, &t->rules_cap, sizeof(*t->rules),
	             SANDBOX_RULES_MAX))
		t->rules[t->rules_n++] = (struct sandbox_rule){ copy, rights, false };
}

void nodes_late(struct nodes *t, struct sandbox_op op)
{
	if (op.dst == NULL)
		t->nomem = true;
	else if (grow(t, (void **)&t->late, t->late_n, &t->late_cap, sizeof(*t->late),
	             SANDBOX_OPS_MAX / 2))
		t->late[t->late_n++] = op;
}

void nodes_pin(struct nodes *t, const char *path)
{
	const struct node *tree = NULL;

	/* The outermost writable tree: an inner bind may yet be left out (settle), and what is
	 * read-only by itself may lie in a directory that can be renamed. */
	for (size_t i = 0; i < t->n; i++) {
		const struct node *n = &t->v[i];

		if (n->op.kind == SANDBOX_BIND && (n->op.flags & SANDBOX_IS_DIR) &&
		    !(n->op.flags & (SANDBOX_RO | SANDBOX_OWN)) && view_within(path, n->op.dst) &&
		    (tree == NULL || strlen(n->op.dst) < strlen(tree->op.dst)))
			tree = n;
	}
	if (tree == NULL)
		return; /* nothing can be renamed there */
	for (const char *s = strchr(path + strlen(tree->op.dst) + 1, '/'); s != NULL;
	     s = strchr(s + 1, '/')) {
		const char *dir = arena_dup(t->a, (sv){ path, (size_t)(s - path) }).p;
		bool there = false;

		for (size_t i = 0; dir != NULL && i < t->late_n; i++)
			there = there || (t->late[i].kind == SANDBOX_PIN &&
			                     strcmp(t->late[i].dst, dir) == 0);
		if (!there)
			nodes_late(t, (struct sandbox_op){ .kind = SANDBOX_PIN, .dst = dir });
	}
}

/* Directories above every node that are not there by themselves: not below a bind of the host, but
 * for one of the box's own. */
static void add_parents(struct nodes *t)
{
	size_t n = t->n;

	for (size_t i = 0; i < n; i++) {
		const char *dst = t->v[i].op.dst;

		for (const char *s = strchr(dst + 1, '/'); s != NULL; s = strchr(s + 1, '/')) {
			const char *dir = arena_dup(t->a, (sv){ dst, (size_t)(s - dst) }).p;
			struct node *tree, *at;

			if (dir == NULL) {
				t->nomem = true;
				return;
			}
			at = nodes_at(t, dir);
			if (at != NULL && at->op.kind == SANDBOX_LINK) {
				/* /var/tmp -> /tmp, and something of the host is shown below
				 * /var/tmp. */
				at->op.kind = SANDBOX_DIR;
				at->op.src = NULL;
				at->op.mode = 0755;
			}
			tree = nodes_tree(t, dir);
			if (tree != NULL && !(tree->op.flags & SANDBOX_OWN))
				break;
			if (tree == NULL || strcmp(tree->op.dst, dir) != 0)
				nodes_dir(t, dir);
		}
	}
}

/* Leave out what the enclosing bind already shows: scaffold below a host tree, and binds that add
 * nothing. A bind that stays may do what its enclosing one may. */
static void settle(struct nodes *t, size_t i)
{
	const uint32_t limits = SANDBOX_RO | SANDBOX_NOEXEC;
	struct node *n = &t->v[i], *tree = NULL;

	for (size_t k = 0; k < i; k++) {
		struct node *o = &t->v[k];

		if (!o->skip && o->op.kind == SANDBOX_BIND && (o->op.flags & SANDBOX_IS_DIR) &&
		    view_within(n->op.dst, o->op.dst) && strcmp(n->op.dst, o->op.dst) != 0)
			tree = o; /* sorted: the last one is the innermost */
	}
	if (tree == NULL || (tree->op.flags & SANDBOX_OWN))
		return;
	if (n->op.kind != SANDBOX_BIND) {
		n->skip = true;
		return;
	}
	n->op.flags &= ~limits | (tree->op.flags & limits);
	/* Same object under the same name, nothing more allowed: no mount of its own, so that
	 * renames across it keep working. */
	if (strcmp(n->op.src, n->op.dst) == 0 && strcmp(tree->op.src, tree->op.dst) == 0 &&
	    (tree->op.flags & limits & ~n->op.flags) == 0 && !(n->op.flags & SANDBOX_DEVICE))
		n->skip = true;
}

int nodes_emit(struct nodes *t, struct sandbox_spec *s, struct box_err *err)
{
	size_t n = 0;

	add_parents(t);
	if (t->n != 0)
		qsort(t->v, t->n, sizeof(*t->v), node_cmp);
	for (size_t i = 0; i < t->n; i++)
		settle(t, i);
	s->ops = ARENA_VEC(t->a, struct sandbox_op, t->n + t->late_n + 1);
	if (t->full)
		return box_fail(err, BOX_ELIMIT, 0, "the sandbox has too many paths");
	if (t->nomem || s->ops == NULL)
		return box_nomem(err, "the plan of a sandbox");
	for (size_t i = 0; i < t->n; i++)
		if (!t->v[i].skip && strcmp(t->v[i].op.dst, "/") != 0)
			s->ops[n++] = t->v[i].op;
	for (size_t i = 0; i < t->late_n; i++)
		s->ops[n++] = t->late[i];
	s->ops_n = n;
	s->rules = t->rules;
	s->rules_n = t->rules_n;
	return 0;
}
