/* From the path on the command line to a parsed plan: source files, top-level keys
 * (box-config-and-policy 1.1). See config.h. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/toml.h"
#include "config/keys.h"
#include "config/path.h"
#include "base/ban.h"

#define PLAN_ARENA_MAX ((size_t)32 << 20)
#define POLICY_MAX     ((size_t)4 << 20)

static const struct cfg_key top_keys[] = {
	{ "name", CFG_TAKEN, NULL },
	{ "box_dir", CFG_TAKEN, NULL },
	{ "policy", CFG_TAKEN, NULL },
	{ "agent", CFG_TAKEN, NULL },
	{ "tool", CFG_TAKEN, NULL },
	{ "egress", CFG_TAKEN, NULL },
	{ "resolve", CFG_TAKEN, NULL },
	{ "mcp", CFG_UNSUPPORTED, "remove the `[mcp.*]` tables to run without MCP servers" },
	{ "telemetry", CFG_UNSUPPORTED,
	    "records go to private/telemetry/records.jsonl in the box directory" },
	{ "containment", CFG_UNSUPPORTED, "a private /proc is always used" },
	{ "filesystem", CFG_REFUSED,
	    "the top level carries `filesystem`, which this build does not read; write "
	    "`[agent.filesystem]` instead" },
	{ "workspace", CFG_REFUSED,
	    "the top level carries `workspace`, which this build does not read; write `[agent] "
	    "workspace` instead" },
	{ "env", CFG_REFUSED,
	    "the top level carries `env`, which this build does not read; write `[agent.env]` "
	    "instead" },
	{ NULL, CFG_TAKEN, NULL },
};

static int read_name(struct cfg *c, const struct toml *root)
{
	struct plan *p = c->p;
	struct plan_at at = { 1, 1 };
	const char *why;

	if (toml_get(root, SV("name")) == NULL)
		return cfg_fail_parse(c, at, "`name` is missing; write name = \"my-box\"");
	if (cfg_string(c, root, "name", &p->name, &at) != 0)
		return -1;
	why = cfg_name_reason(&p->arena, p->name, 32);
	if (why == NULL)
		return 0;
	return cfg_fail(c, at,
	    "box name \"%s\" is invalid: %s; use one component of letters, digits, '.', '_', or "
	    "'-'",
	    cfg_shown(c, p->name), why);
}

static int read_box_dir(struct cfg *c, const struct toml *root)
{
	struct plan *p = c->p;
	struct plan_at at = { 1, 1 };

	p->box_dir = SV("");
	if (cfg_string(c, root, "box_dir", &p->box_dir, &at) != 0)
		return -1;
	if (p->box_dir.n == 0)
		return cfg_fail(c, at,
		    "invalid Box configuration: `box_dir` must be absolute: it is not set; name a "
		    "folder of its own, "
		    "such as box_dir = \"/home/me/boxes/one\"");
	if (sv_has_ctl(p->box_dir))
		return cfg_fail(
		    c, at, "invalid Box configuration: `box_dir` holds a control character");
	if (p->box_dir.p[0] != '/')
		return cfg_fail(c, at,
		    "invalid Box configuration: `box_dir` must be absolute: " SV_FMT,
		    SV_ARG(p->box_dir));
	if (path_has_dotdot(p->box_dir))
		return cfg_fail(c, at,
		    "invalid Box configuration: `box_dir` carries `..`; name the path it "
		    "means: " SV_FMT,
		    SV_ARG(p->box_dir));
	p->box_dir = path_tidy(&p->arena, p->box_dir);
	return p->box_dir.p != NULL ? 0 : cfg_nomem(c);
}

static int read_policy_key(struct cfg *c, const struct toml *root)
{
	struct plan *p = c->p;
	struct plan_at at = { 1, 1 };
	sv dir = path_parent(p->config_path);
	const char *joined;

	p->policy_path = SV("");
	if (cfg_string(c, root, "policy", &p->policy_path, &at) != 0)
		return -1;
	if (toml_get(root, SV("policy")) == NULL)
		return 0;
	if (p->policy_path.n == 0 || sv_has_ctl(p->policy_path))
		return cfg_fail(c, at, "`policy` must name a file");
	if (p->policy_path.p[0] == '/')
		return 0;
	joined = arena_printf(&p->arena, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(p->policy_path));
	if (joined == NULL)
		return cfg_nomem(c);
	p->policy_path = sv_c(joined);
	return 0;
}

static int parse_text(struct cfg *c, const struct config_input *in, sv text)
{
	const struct toml *root;

	if (toml_parse(&c->p->arena, text, &root, c->err) != 0) {
		if (c->err != NULL && c->err->code == BOX_EPARSE) {
			/* "FILE:" and "LINE:COL: …" without a space between. */
			return box_fail(c->err, BOX_ECONFIG, 0,
			    "cannot parse config file " SV_FMT ":%s", SV_ARG(c->p->config_typed),
			    c->err->msg);
		}
		return box_wrap(
		    c->err, "cannot parse config file " SV_FMT, SV_ARG(c->p->config_typed));
	}
	if (cfg_check_keys(c, root, top_keys, "the top level") != 0)
		return -1;
	if (read_name(c, root) != 0 || read_box_dir(c, root) != 0 || read_policy_key(c, root) != 0)
		return -1;
	if (cfg_read_processes(c, root, in->args) != 0 || cfg_read_egress(c, root) != 0)
		return -1;
	return cfg_read_resolve(c, root);
}

/* What the caller knows, copied. */
static int take_input(struct cfg *c, const struct config_input *in)
{
	struct plan *p = c->p;
	sv home;

	*p = (struct plan){ .arena.limit = PLAN_ARENA_MAX, .uid = in->uid, .gid = in->gid };
	p->config_typed = arena_dup(&p->arena, sv_c(in->config_path));
	p->start_dir = arena_dup(&p->arena, sv_c(in->start_dir));
	p->path_var = arena_dup(&p->arena, in->path_var != NULL && in->path_var[0] != '\0'
	                                       ? sv_c(in->path_var)
	                                       : SV("/usr/bin:/bin"));
	home = path_real(&p->arena, sv_c(in->home));
	p->home = home.p != NULL ? home : path_tidy(&p->arena, sv_c(in->home));
	if (p->config_typed.p == NULL || p->start_dir.p == NULL || p->path_var.p == NULL ||
	    p->home.p == NULL)
		return cfg_nomem(c);
	return 0;
}

int config_parse(const struct config_input *in, sv text, struct plan *p, struct box_err *err)
{
	struct cfg c = { p, err };

	if (take_input(&c, in) != 0)
		return -1;
	p->config_path = p->config_typed;
	p->config_text = arena_dup(&p->arena, text);
	return p->config_text.p != NULL ? parse_text(&c, in, p->config_text) : cfg_nomem(&c);
}

/* Open an authority file: canonical, no final link, regular, one name (1.1). The path must be
 * NUL-terminated. */
static int open_source(const char *kind, sv path, struct stat *st, struct box_err *err)
{
	AUTO_FD fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ELOOP)
		return box_fail(
		    err, BOX_ECONFIG, 0, "%s source %s is not a regular file", kind, path.p);
	if (fd < 0)
		return box_fail(err, BOX_ECONFIG, errno, "cannot open %s source %s", kind, path.p);
	if (fstat(fd, st) != 0)
		return box_fail(
		    err, BOX_ECONFIG, errno, "cannot examine %s source %s", kind, path.p);
	if (!S_ISREG(st->st_mode))
		return box_fail(
		    err, BOX_ECONFIG, 0, "%s source %s is not a regular file", kind, path.p);
	if (st->st_nlink != 1)
		return box_fail(err, BOX_ECONFIG, 0,
		    "%s source %s has more than one filesystem name", kind, path.p);
	return fd_take(&fd);
}

static int load_config_source(struct cfg *c, struct buf *text)
{
	struct plan *p = c->p;
	struct stat st;

	p->config_path = path_real(&p->arena, p->config_typed);
	if (p->config_path.p == NULL)
		return box_fail(
		    c->err, BOX_ECONFIG, errno, "cannot read config file %s", p->config_typed.p);
	if (sv_has_ctl(p->config_path))
		return box_fail(c->err, BOX_ECONFIG, 0,
		    "the path of the config file holds a control character");
	AUTO_FD fd = open_source("configuration", p->config_path, &st, c->err);

	if (fd < 0)
		return -1;
	p->config_dev = st.st_dev;
	p->config_ino = st.st_ino;
	text->max = TOML_MAX_BYTES;
	if (fd_read_all(fd, text, "the file", c->err) != 0)
		return box_wrap(c->err, "cannot read config file %s", p->config_typed.p);
	p->config_text = arena_dup(&p->arena, buf_sv(text));
	return p->config_text.p != NULL ? 0 : cfg_nomem(c);
}

static int resolve_policy_source(struct cfg *c)
{
	struct plan *p = c->p;
	struct stat st;
	sv real;

	if (p->policy_path.n == 0)
		return 0;
	real = path_real(&p->arena, p->policy_path);
	if (real.p == NULL)
		return box_fail(c->err, BOX_ECONFIG, errno,
		    "policy load failed: cannot resolve policy file %s", p->policy_path.p);
	p->policy_path = real;
	AUTO_FD fd = open_source("policy", real, &st, c->err);

	if (fd < 0)
		return -1;
	p->policy_dev = st.st_dev;
	p->policy_ino = st.st_ino;
	return 0;
}

int config_load(const struct config_input *in, struct plan *p, struct box_err *err)
{
	AUTO_BUF text = buf_with(TOML_MAX_BYTES);
	struct cfg c = { p, err };

	if (take_input(&c, in) != 0 || load_config_source(&c, &text) != 0)
		return -1;
	if (parse_text(&c, in, p->config_text) != 0)
		return -1;
	return resolve_policy_source(&c);
}

static int same_source(const char *kind, sv path, dev_t dev, ino_t ino, struct box_err *err)
{
	struct stat st;
	AUTO_FD fd = open_source(kind, path, &st, err);

	if (fd < 0)
		return -1;
	if (st.st_dev != dev || st.st_ino != ino)
		return box_fail(err, BOX_ECONFIG, 0,
		    "%s source %s changed identity while Box prepared the run", kind, path.p);
	return fd_take(&fd);
}

int config_read_policy(const struct plan *p, struct buf *out, struct box_err *err)
{
	AUTO_FD fd = same_source("policy", p->policy_path, p->policy_dev, p->policy_ino, err);

	if (fd < 0)
		return -1;
	out->max = POLICY_MAX;
	return fd_read_all(fd, out, "the policy file", err) == 0
	           ? 0
	           : box_wrap(err, "policy load failed");
}

int config_verify_sources(const struct plan *p, struct box_err *err)
{
	AUTO_FD config =
	    same_source("configuration", p->config_path, p->config_dev, p->config_ino, err);

	if (config < 0)
		return -1;
	if (p->policy_path.n == 0)
		return 0;
	AUTO_FD policy = same_source("policy", p->policy_path, p->policy_dev, p->policy_ino, err);

	return policy < 0 ? -1 : 0;
}
