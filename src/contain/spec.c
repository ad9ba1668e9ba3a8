/* spec.h: serialise, read back, print. The reader runs in box-launch, before anything is set up;
 * what it reads comes from the monitor, yet everything is bounded and checked, so that a damaged
 * spec ends as a message and not as half a sandbox. */
#include "contain/spec.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/rd.h"
#include "base/ban.h"

#define SPEC_MAGIC UINT32_C(0x62785350) /* "bxSP" */
#define STR_MAX    ((size_t)1 << 20)    /* one argument or variable */

void sandbox_spec_fini(struct sandbox_spec *s)
{
	arena_free(&s->arena);
	*s = (struct sandbox_spec){ 0 };
}

/* A string that may be NULL: u8 present, then str. */
static void put_opt(struct buf *b, const char *s)
{
	buf_put_byte(b, s != NULL);
	if (s != NULL)
		buf_put_str(b, sv_c(s));
}

int sandbox_spec_put(const struct sandbox_spec *s, struct buf *out, struct box_err *err)
{
	buf_put_u32(out, SPEC_MAGIC);
	buf_put_u32(out, SANDBOX_SPEC_VERSION);
	buf_put_str(out, sv_c(s->label));
	buf_put_u32(out, (uint32_t)s->ops_n);
	for (size_t i = 0; i < s->ops_n; i++) {
		const struct sandbox_op *o = &s->ops[i];

		buf_put_byte(out, (uint8_t)o->kind);
		buf_put_u32(out, o->flags);
		put_opt(out, o->src);
		buf_put_str(out, sv_c(o->dst));
		buf_put_str(out, o->content);
		buf_put_u32(out, o->mode);
		buf_put_u64(out, o->size);
		buf_put_u64(out, o->dev);
		buf_put_u64(out, o->ino);
	}
	buf_put_u32(out, (uint32_t)s->rules_n);
	for (size_t i = 0; i < s->rules_n; i++) {
		buf_put_str(out, sv_c(s->rules[i].path));
		buf_put_u32(out, s->rules[i].rights);
		buf_put_byte(out, s->rules[i].optional);
	}
	buf_put_byte(out, (uint8_t)s->net);
	buf_put_str(out, sv_c(s->program));
	buf_put_u32(out, (uint32_t)s->argv_n);
	for (size_t i = 0; i < s->argv_n; i++)
		buf_put_str(out, sv_c(s->argv[i]));
	buf_put_u32(out, (uint32_t)s->envp_n);
	for (size_t i = 0; i < s->envp_n; i++)
		buf_put_str(out, sv_c(s->envp[i]));
	buf_put_str(out, sv_c(s->cwd));
	buf_put_str(out, sv_c(s->hostname));
	buf_put_u32(out, s->uid);
	buf_put_u32(out, s->gid);
	buf_put_u32(out, s->umask);
	buf_put_byte(out, s->tty);
	buf_put_u32(out, (uint32_t)s->limits_n);
	for (size_t i = 0; i < s->limits_n; i++) {
		buf_put_u32(out, (uint32_t)s->limits[i].resource);
		buf_put_u64(out, s->limits[i].soft);
		buf_put_u64(out, s->limits[i].hard);
	}
	if (!buf_ok(out))
		return box_fail(err, BOX_ELIMIT, 0, "the sandbox of %s is too large to describe",
		    s->label != NULL ? s->label : "");
	return 0;
}

struct spec_rd {
	struct rd r;
	struct arena *a;
	bool nomem;
};

/* One string without NUL inside, copied; NULL on any failure (the reader is then bad, or there is
 * no memory). */
static const char *get_str(struct spec_rd *g, size_t max)
{
	sv s = rd_str(&g->r, max);

	if (g->r.bad)
		return NULL;
	if (s.n != 0 && memchr(s.p, '\0', s.n) != NULL) {
		g->r.bad = true;
		return NULL;
	}
	s = arena_dup(g->a, s);
	if (s.p == NULL)
		g->nomem = true;
	return s.p;
}

/* Absolute, "/" or without empty, "." and ".." components and trailing slash. */
static bool path_is_plain(const char *p)
{
	sv rest = sv_c(p), part;
	bool more;

	if (rest.n == 0 || rest.p[0] != '/' || rest.n >= PATH_MAX)
		return false;
	if (rest.n == 1)
		return true;
	rest = sv_sub(rest, 1, rest.n);
	do {
		more = sv_cut(rest, '/', &part, &rest);
		if (part.n == 0 || sv_eq(part, SV(".")) || sv_eq(part, SV("..")))
			return false;
	} while (more);
	return true;
}

static const char *get_path(struct spec_rd *g)
{
	const char *p = get_str(g, PATH_MAX);

	if (p != NULL && !path_is_plain(p))
		g->r.bad = true;
	return p;
}

/* A count of things that take at least `least` bytes each: no larger than what is left can hold. */
static size_t get_count(struct spec_rd *g, size_t max, size_t least)
{
	size_t n = rd_u32(&g->r);

	if (n > max || n > rd_left(&g->r) / least) {
		g->r.bad = true;
		return 0;
	}
	return n;
}

static void get_op(struct spec_rd *g, struct sandbox_op *o)
{
	uint8_t kind = rd_u8(&g->r);
	const uint32_t known = SANDBOX_RO | SANDBOX_NOEXEC | SANDBOX_DEVICE | SANDBOX_OPTIONAL |
	                       SANDBOX_IS_DIR | SANDBOX_OWN;

	o->kind = (enum sandbox_op_kind)kind;
	o->flags = rd_u32(&g->r);
	if (kind < SANDBOX_DIR || kind > SANDBOX_SEAL || (o->flags & ~known) != 0)
		g->r.bad = true;
	if (rd_u8(&g->r) != 0)
		o->src = kind == SANDBOX_LINK ? get_str(g, PATH_MAX) : get_path(g);
	if ((o->src != NULL) != (kind == SANDBOX_LINK || kind == SANDBOX_BIND))
		g->r.bad = true;
	o->dst = get_path(g);
	o->content = arena_dup(g->a, rd_str(&g->r, STR_MAX));
	if (!g->r.bad && o->content.p == NULL)
		g->nomem = true;
	o->mode = rd_u32(&g->r);
	o->size = rd_u64(&g->r);
	o->dev = rd_u64(&g->r);
	o->ino = rd_u64(&g->r);
}

static void get_ops(struct spec_rd *g, struct sandbox_spec *s)
{
	size_t n = get_count(g, SANDBOX_OPS_MAX, 42);

	s->ops = ARENA_VEC(g->a, struct sandbox_op, n);
	if (s->ops == NULL && n != 0) {
		g->nomem = true;
		return;
	}
	for (size_t i = 0; i < n && !g->r.bad && !g->nomem; i++)
		get_op(g, &s->ops[i]);
	s->ops_n = n;
}

static void get_rules(struct spec_rd *g, struct sandbox_spec *s)
{
	const uint32_t known = SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_WRITE | SANDBOX_R_MAKE |
	                       SANDBOX_R_EXEC | SANDBOX_R_IOCTL;
	size_t n = get_count(g, SANDBOX_RULES_MAX, 9);

	s->rules = ARENA_VEC(g->a, struct sandbox_rule, n);
	if (s->rules == NULL && n != 0) {
		g->nomem = true;
		return;
	}
	for (size_t i = 0; i < n && !g->r.bad && !g->nomem; i++) {
		s->rules[i].path = get_path(g);
		s->rules[i].rights = rd_u32(&g->r);
		s->rules[i].optional = rd_u8(&g->r) != 0;
		if ((s->rules[i].rights & ~known) != 0)
			g->r.bad = true;
	}
	s->rules_n = n;
}

static const char *const *get_strs(struct spec_rd *g, size_t *count)
{
	size_t n = get_count(g, SANDBOX_STRS_MAX, 4);
	const char **v = ARENA_VEC(g->a, const char *, n + 1);

	if (v == NULL) {
		g->nomem = true;
		return NULL;
	}
	for (size_t i = 0; i < n && !g->r.bad && !g->nomem; i++)
		v[i] = get_str(g, STR_MAX);
	*count = n;
	return v;
}

static void get_limits(struct spec_rd *g, struct sandbox_spec *s)
{
	size_t n = get_count(g, RLIM_NLIMITS, 20);

	s->limits = ARENA_VEC(g->a, struct sandbox_limit, n);
	if (s->limits == NULL && n != 0) {
		g->nomem = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t res = rd_u32(&g->r);

		if (res >= RLIM_NLIMITS)
			g->r.bad = true;
		s->limits[i].resource = (int32_t)(res & 0xff);
		s->limits[i].soft = rd_u64(&g->r);
		s->limits[i].hard = rd_u64(&g->r);
	}
	s->limits_n = n;
}

int sandbox_spec_get(sv bytes, struct sandbox_spec *out, struct box_err *err)
{
	struct spec_rd g = { .r = rd_of(bytes.p, bytes.n) };
	uint8_t net;

	*out = (struct sandbox_spec){ .arena = { .limit = 4 * SANDBOX_SPEC_MAX } };
	g.a = &out->arena;
	if (bytes.n > SANDBOX_SPEC_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "the sandbox description is too large");
	if (rd_u32(&g.r) != SPEC_MAGIC || rd_u32(&g.r) != SANDBOX_SPEC_VERSION)
		return box_fail(err, BOX_EPARSE, 0,
		    "box and box-launch are of different versions: reinstall both");
	out->label = get_str(&g, 256);
	get_ops(&g, out);
	get_rules(&g, out);
	net = rd_u8(&g.r);
	if (net > SANDBOX_NET_PROXY)
		g.r.bad = true;
	out->net = (enum sandbox_net)net;
	out->program = get_path(&g);
	out->argv = get_strs(&g, &out->argv_n);
	out->envp = get_strs(&g, &out->envp_n);
	out->cwd = get_path(&g);
	out->hostname = get_str(&g, 64);
	out->uid = rd_u32(&g.r);
	out->gid = rd_u32(&g.r);
	out->umask = rd_u32(&g.r);
	out->tty = rd_u8(&g.r) != 0;
	get_limits(&g, out);
	if (g.nomem)
		return box_nomem(err, "the sandbox description");
	if (!rd_done(&g.r) || out->argv_n == 0)
		return box_fail(err, BOX_EPARSE, 0, "the sandbox description is damaged");
	return 0;
}

static const char *const kind_name[] = { [SANDBOX_DIR] = "dir",
	[SANDBOX_FILE] = "file",
	[SANDBOX_LINK] = "link",
	[SANDBOX_TMPFS] = "tmpfs",
	[SANDBOX_BIND] = "bind",
	[SANDBOX_PROC] = "proc",
	[SANDBOX_DEVPTS] = "devpts",
	[SANDBOX_CONSOLE] = "console",
	[SANDBOX_COVER] = "cover",
	[SANDBOX_PIN] = "pin",
	[SANDBOX_SEAL] = "seal" };

struct flag_name {
	uint32_t bit;
	const char *name;
};
static const struct flag_name op_flags[] = { { SANDBOX_RO, "ro" }, { SANDBOX_NOEXEC, "noexec" },
	{ SANDBOX_DEVICE, "dev" }, { SANDBOX_OPTIONAL, "optional" }, { SANDBOX_OWN, "own" },
	{ 0, NULL } };
static const struct flag_name right_flags[] = { { SANDBOX_R_READ, "read" },
	{ SANDBOX_R_LIST, "list" }, { SANDBOX_R_WRITE, "write" }, { SANDBOX_R_MAKE, "make" },
	{ SANDBOX_R_EXEC, "exec" }, { SANDBOX_R_IOCTL, "ioctl" }, { 0, NULL } };

static void put_flags(struct buf *b, uint32_t v, const struct flag_name *t)
{
	const char *sep = "";

	for (; t->bit != 0; t++)
		if (v & t->bit) {
			buf_putf(b, "%s%s", sep, t->name);
			sep = ",";
		}
	if (*sep == '\0')
		buf_put_c(b, "-");
}

void sandbox_spec_print(const struct sandbox_spec *s, struct buf *out)
{
	for (size_t i = 0; i < s->ops_n; i++) {
		const struct sandbox_op *o = &s->ops[i];

		buf_putf(out, "%-7s ", kind_name[o->kind]);
		buf_put_escaped(out, sv_c(o->dst));
		if (o->src != NULL && (o->kind == SANDBOX_LINK || strcmp(o->src, o->dst) != 0)) {
			buf_put_c(out, o->kind == SANDBOX_LINK ? " -> " : " <- ");
			buf_put_escaped(out, sv_c(o->src));
		}
		if (o->flags & ~(uint32_t)SANDBOX_IS_DIR) {
			buf_put_byte(out, ' ');
			put_flags(out, o->flags, op_flags);
		}
		buf_put_byte(out, '\n');
	}
	for (size_t i = 0; i < s->rules_n; i++) {
		buf_put_c(out, "rule    ");
		buf_put_escaped(out, sv_c(s->rules[i].path));
		buf_put_byte(out, ' ');
		put_flags(out, s->rules[i].rights, right_flags);
		buf_put_byte(out, '\n');
	}
	buf_putf(out, "net     %s\n",
	    s->net == SANDBOX_NET_PROXY ? "loopback, proxy listener" : "loopback only");
	for (size_t i = 0; i < s->limits_n; i++)
		buf_putf(out, "limit   %d %llu %llu\n", s->limits[i].resource,
		    (unsigned long long)s->limits[i].soft, (unsigned long long)s->limits[i].hard);
	for (size_t i = 0; i < s->envp_n; i++) {
		sv name, value;

		(void)sv_cut(sv_c(s->envp[i]), '=', &name, &value);
		buf_put_c(out, "env     ");
		buf_put_escaped(out, name);
		buf_put_byte(out, '\n');
	}
	buf_put_c(out, "cwd     ");
	buf_put_escaped(out, sv_c(s->cwd));
	buf_put_c(out, "\nexec    ");
	buf_put_escaped(out, sv_c(s->program));
	for (size_t i = 0; i < s->argv_n; i++) {
		buf_put_byte(out, ' ');
		buf_put_escaped(out, sv_c(s->argv[i]));
	}
	buf_put_byte(out, '\n');
}
