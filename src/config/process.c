/* [agent] and [tool.<label>]: the tables as written (box-config-and-policy 1.3, 1.4 spelling rules,
 * 1.6). What needs the file system is judge.c's. */
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "config/path.h"
#include "base/ban.h"

static const struct cfg_key agent_keys[] = {
	{ "command", CFG_TAKEN, NULL },
	{ "workspace", CFG_TAKEN, NULL },
	{ "env", CFG_TAKEN, NULL },
	{ "filesystem", CFG_TAKEN, NULL },
	{ "network", CFG_REFUSED,
	    "`network` is refused on `[agent]`: the agent reaches the network through the gateway "
	    "only; remove "
	    "the table" },
	{ "packs", CFG_REFUSED,
	    "`[agent]` carries `packs`, which this build does not read; remove it" },
	{ "code", CFG_REFUSED,
	    "`[agent]` carries `code`, which this build does not read; remove it" },
	{ "default_command", CFG_REFUSED,
	    "`[agent]` carries `default_command`, which this build does not read; write `command` "
	    "instead" },
	{ "read", CFG_REFUSED,
	    "`[agent]` carries `read`, which this build does not read; write `filesystem.read` "
	    "instead" },
	{ "write", CFG_REFUSED,
	    "`[agent]` carries `write`, which this build does not read; write `filesystem.write` "
	    "instead" },
	{ NULL, CFG_TAKEN, NULL },
};

static const struct cfg_key tool_keys[] = {
	{ "command", CFG_TAKEN, NULL },
	{ "workspace", CFG_TAKEN, NULL },
	{ "env", CFG_TAKEN, NULL },
	{ "filesystem", CFG_TAKEN, NULL },
	{ "network", CFG_TAKEN, NULL },
	{ "exec", CFG_REFUSED,
	    "`[tool.*]` carries `exec`, which this build does not read; write `command` instead" },
	{ "read", CFG_REFUSED,
	    "`[tool.*]` carries `read`, which this build does not read; write `filesystem.read` "
	    "instead" },
	{ "write", CFG_REFUSED,
	    "`[tool.*]` carries `write`, which this build does not read; write `filesystem.write` "
	    "instead" },
	{ NULL, CFG_TAKEN, NULL },
};

static const struct cfg_key agent_lists[] = {
	{ "read", CFG_TAKEN, NULL },
	{ "write", CFG_TAKEN, NULL },
	{ "read_file", CFG_TAKEN, NULL },
	{ "write_file", CFG_TAKEN, NULL },
	{ "list", CFG_TAKEN, NULL },
	{ "metadata", CFG_TAKEN, NULL },
	{ "exec", CFG_TAKEN, NULL },
	{ "deny", CFG_TAKEN, NULL },
	{ NULL, CFG_TAKEN, NULL },
};

static const struct cfg_key tool_lists[] = {
	{ "read", CFG_TAKEN, NULL },
	{ "write", CFG_TAKEN, NULL },
	{ "read_file", CFG_TAKEN, NULL },
	{ "write_file", CFG_TAKEN, NULL },
	{ "list", CFG_TAKEN, NULL },
	{ "metadata", CFG_REFUSED,
	    "a tool's `filesystem` carries `metadata`, which this build does not read: only "
	    "`[agent.filesystem]` "
	    "has it" },
	{ "exec", CFG_REFUSED,
	    "a tool's `filesystem` carries `exec`, which this build does not read: only "
	    "`[agent.filesystem]` has "
	    "it, and a tool's own program is `command`" },
	{ "deny", CFG_TAKEN, NULL },
	{ NULL, CFG_TAKEN, NULL },
};

static const struct cfg_key network_keys[] = {
	{ "contain_egress", CFG_TAKEN, NULL },
	{ NULL, CFG_TAKEN, NULL },
};

/* Set by the box itself, and names that make a program load code (1.6). */
static const char *const reserved_env[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
	"https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
	"NODE_USE_ENV_PROXY", "CODEX_CA_CERTIFICATE", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
	"GIT_SSL_CAINFO", "PWD", "USER", "NODE_OPTIONS", "BASH_ENV", "ENV", "RUBYOPT", "PERL5LIB",
	"PERL5OPT", "GEM_PATH", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS" };
static const char *const reserved_env_prefix[] = { "OTEL_EXPORTER_OTLP_", "LD_", "DYLD_",
	"PYTHON" };

bool plan_env_reserved(sv name)
{
	for (size_t i = 0; i < sizeof(reserved_env) / sizeof(reserved_env[0]); i++)
		if (sv_eq(name, sv_c(reserved_env[i])))
			return true;
	for (size_t i = 0; i < sizeof(reserved_env_prefix) / sizeof(reserved_env_prefix[0]); i++)
		if (sv_starts(name, sv_c(reserved_env_prefix[i])))
			return true;
	return false;
}

enum cfg_env_name cfg_env_name(sv name)
{
	if (name.n == 0 || (name.p[0] >= '0' && name.p[0] <= '9'))
		return CFG_ENV_INVALID;
	for (size_t i = 0; i < name.n; i++) {
		char ch = name.p[i];

		if (!((ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
		        (ch >= 'a' && ch <= 'z') || ch == '_'))
			return CFG_ENV_INVALID;
	}
	return plan_env_reserved(name) ? CFG_ENV_RESERVED : CFG_ENV_OK;
}

/* "invalid `[tool.git]` table: …" at a place. */
#define FAIL_TABLE(c, proc, at, fmt, ...)                                                          \
	cfg_fail(                                                                                  \
	    (c), (at), "invalid `" SV_FMT "` table: " fmt, SV_ARG((proc)->table), ##__VA_ARGS__)

/* ${NAME} in a fixed argument. The three names of 1.3 stand for the telemetry collector, which this
 * build does not have. */
static int check_tokens(
    struct cfg *c, const struct plan_process *p, const struct toml *v, size_t i, sv arg)
{
	sv rest = arg, name;
	ptrdiff_t at;

	at = sv_find_sv(rest, SV("${"));
	if (at < 0)
		return 0;
	rest = sv_sub(rest, (size_t)at + 2, rest.n);
	if (!sv_cut(rest, '}', &name, &rest))
		return FAIL_TABLE(c, p, cfg_at(v),
		    "`command` element %zu \"%s\" has an unterminated `${`", i, cfg_shown(c, arg));
	return FAIL_TABLE(c, p, cfg_at(v),
	    "`command` element %zu \"%s\" names no expandable value; this build expands none (the "
	    "OTEL_EXPORTER_OTLP_* "
	    "names come with telemetry)",
	    i, cfg_shown(c, arg));
}

static int read_command(
    struct cfg *c, struct plan_process *p, const struct toml *t, char *const *args)
{
	const struct toml *v = toml_get(t, SV("command"));
	size_t extra = 0, i = 0;

	if (v == NULL)
		return cfg_fail_parse(c, (struct plan_at){ p->line, 1 },
		    "`" SV_FMT "` has no `command`; write command = [\"program\", \"argument\"]",
		    SV_ARG(p->table));
	p->at_command = cfg_at(v);
	if (cfg_want(c, v, TOML_ARRAY, "`command`") != 0)
		return -1;
	if (v->n == 0)
		return FAIL_TABLE(
		    c, p, cfg_at(v), "`command` must name a program as its first entry");
	while (args != NULL && args[extra] != NULL)
		extra++;
	p->command = ARENA_VEC(&c->p->arena, sv, v->n + extra);
	if (p->command == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next, i++) {
		if (cfg_take(c, e, "a `command` element", &p->command[i]) != 0)
			return -1;
		if (i != 0 && check_tokens(c, p, e, i, p->command[i]) != 0)
			return -1;
	}
	for (size_t k = 0; k < extra; k++) {
		if (!sv_is_utf8(sv_c(args[k])))
			return box_fail(c->err, BOX_ECONFIG, 0,
			    "workload argument %s is not valid UTF-8", cfg_shown(c, sv_c(args[k])));
		p->command[i + k] = arena_dup(&c->p->arena, sv_c(args[k]));
		if (p->command[i + k].p == NULL)
			return cfg_nomem(c);
	}
	p->fixed_n = i;
	p->command_n = i + extra;

	sv prog = p->command[0];

	if (prog.n == 0)
		return FAIL_TABLE(c, p, cfg_at(v->first), "`command` element 0 is empty");
	if (sv_find_sv(prog, SV("${")) >= 0)
		return FAIL_TABLE(c, p, cfg_at(v->first),
		    "`command` element 0 \"%s\" carries `${`, and the program is never expanded",
		    cfg_shown(c, prog));
	if (sv_has_ctl(prog))
		return FAIL_TABLE(c, p, cfg_at(v->first),
		    "`command` element 0 \"%s\" holds a control character", cfg_shown(c, prog));
	if (prog.p[0] != '/' && sv_find(prog, '/') >= 0)
		return FAIL_TABLE(c, p, cfg_at(v->first),
		    "`command` element 0 \"%s\" is a relative path; write an absolute path, or a "
		    "bare name that "
		    "`env.PATH` resolves",
		    cfg_shown(c, prog));
	return 0;
}

static int read_workspace(struct cfg *c, struct plan_process *p, const struct toml *t)
{
	sv w = { NULL, 0 };

	if (cfg_string(c, t, "workspace", &w, &p->at_workspace) != 0)
		return -1;
	if (w.p == NULL)
		return 0;
	if (w.n == 0 || w.p[0] != '/' || sv_has_ctl(w))
		return FAIL_TABLE(c, p, p->at_workspace,
		    "`workspace` must be an absolute path: \"%s\"", cfg_shown(c, w));
	p->workspace = w;
	return 0;
}

static int read_env(struct cfg *c, struct plan_process *p, const struct toml *t)
{
	const struct toml *v = toml_get(t, SV("env"));

	if (v == NULL)
		return 0;
	if (cfg_want(c, v, TOML_TABLE, "`env`") != 0)
		return -1;
	p->env = ARENA_VEC(&c->p->arena, struct plan_var, v->n);
	if (p->env == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next) {
		struct plan_var *var = &p->env[p->env_n];
		enum cfg_env_name ok = cfg_env_name(e->key);

		if (ok == CFG_ENV_INVALID)
			return FAIL_TABLE(c, p, cfg_at_key(e),
			    "`env` name \"%s\" is not a valid environment-variable name",
			    cfg_shown(c, e->key));
		if (ok == CFG_ENV_RESERVED)
			return FAIL_TABLE(c, p, cfg_at_key(e),
			    "`env` name \"%s\" is set by the box itself, so a table cannot claim "
			    "it",
			    cfg_shown(c, e->key));
		var->name = arena_dup(&c->p->arena, e->key);
		if (var->name.p == NULL)
			return cfg_nomem(c);
		if (cfg_take(c, e, "an `env` value", &var->value) != 0)
			return -1;
		if ((sv_eq(var->name, SV("HOME")) || sv_eq(var->name, SV("TMPDIR"))) &&
		    (var->value.n == 0 || var->value.p[0] != '/'))
			return FAIL_TABLE(c, p, cfg_at(e),
			    "`env." SV_FMT "` must be an absolute path: \"%s\"", SV_ARG(var->name),
			    cfg_shown(c, var->value));
		if (sv_eq(var->name, SV("HOME")))
			p->at_home = cfg_at(e);
		p->env_n++;
	}
	return 0;
}

/* The spelling rules of 1.4; fills authored and path. */
static int read_entry(
    struct cfg *c, struct plan_process *p, const struct toml *e, struct plan_grant *g)
{
	const char *list = plan_list_name[g->list];
	struct arena *a = &c->p->arena;
	sv s;

	if (cfg_want(c, e, TOML_STRING, "a `filesystem` entry") != 0)
		return -1;
	s = e->text;
	g->line = e->line;
	g->col = e->col;
	g->authored = arena_dup(a, s);
	if (g->authored.p == NULL)
		return cfg_nomem(c);
	if (s.n == 0 || sv_has_ctl(s))
		return FAIL_TABLE(c, p, cfg_at(e),
		    "`filesystem.%s` path \"%s\" must be exact and contain no pattern or control "
		    "character",
		    list, cfg_shown(c, s));
	for (size_t i = 0; i < s.n; i++)
		if (strchr("*?[]{}", s.p[i]) != NULL)
			return FAIL_TABLE(c, p, cfg_at(e),
			    "`filesystem.%s` path \"%s\" must be exact and contain no pattern or "
			    "control character",
			    list, cfg_shown(c, s));
	bool home = sv_eq(s, SV("~")) || sv_starts(s, SV("~/"));

	if (!home && s.p[0] != '/')
		return FAIL_TABLE(c, p, cfg_at(e),
		    "`filesystem.%s` path \"%s\" must be absolute or start with `~/` (your home)",
		    list, cfg_shown(c, s));
	if (path_has_dotdot(s))
		return FAIL_TABLE(c, p, cfg_at(e),
		    "`filesystem.%s` path \"%s\" carries `..`; name the path it means", list,
		    cfg_shown(c, s));
	if (home) {
		const char *joined =
		    arena_printf(a, SV_FMT SV_FMT, SV_ARG(c->p->home), SV_ARG(sv_sub(s, 1, s.n)));

		if (joined == NULL)
			return cfg_nomem(c);
		s = sv_c(joined);
	}
	g->path = path_tidy(a, s);
	return g->path.p != NULL ? 0 : cfg_nomem(c);
}

static int read_filesystem(struct cfg *c, struct plan_process *p, const struct toml *t)
{
	const struct toml *fs = toml_get(t, SV("filesystem")), *v;
	const char *where =
	    arena_printf(&c->p->arena, "`filesystem` of `" SV_FMT "`", SV_ARG(p->table));
	size_t total = 0;

	if (where == NULL)
		return cfg_nomem(c);
	if (fs == NULL)
		return 0;
	if (cfg_want(c, fs, TOML_TABLE, "`filesystem`") != 0 ||
	    cfg_check_keys(c, fs, p->kind == PLAN_AGENT ? agent_lists : tool_lists, where) != 0)
		return -1;
	for (v = fs->first; v != NULL; v = v->next) {
		if (cfg_want(c, v, TOML_ARRAY, "a `filesystem` list") != 0)
			return -1;
		total += v->n;
	}
	p->grants = ARENA_VEC(&c->p->arena, struct plan_grant, total);
	if (p->grants == NULL)
		return cfg_nomem(c);
	for (int l = 0; l < PLAN_LISTS; l++) {
		size_t from = p->grants_n;

		v = toml_get(fs, sv_c(plan_list_name[l]));
		for (const struct toml *e = v != NULL ? v->first : NULL; e != NULL; e = e->next) {
			struct plan_grant *g = &p->grants[p->grants_n];

			g->list = (enum plan_list)l;
			if (read_entry(c, p, e, g) != 0)
				return -1;
			for (size_t i = from; i < p->grants_n; i++)
				if (sv_eq(p->grants[i].path, g->path))
					return FAIL_TABLE(c, p, cfg_at(e),
					    "`filesystem.%s` path %s is duplicated",
					    plan_list_name[l], cfg_shown(c, g->authored));
			p->grants_n++;
		}
	}
	return 0;
}

static int read_network(struct cfg *c, struct plan_process *p, const struct toml *t)
{
	const struct toml *v = toml_get(t, SV("network"));

	p->contain_egress = true;
	if (v == NULL)
		return 0;
	if (cfg_want(c, v, TOML_TABLE, "`network`") != 0 ||
	    cfg_check_keys(c, v, network_keys, "`network`") != 0)
		return -1;
	v = toml_get(v, SV("contain_egress"));
	if (v == NULL)
		return 0;
	if (cfg_want(c, v, TOML_BOOL, "`contain_egress`") != 0)
		return -1;
	if (!v->b)
		return FAIL_TABLE(c, p, cfg_at(v),
		    "`network.contain_egress = false` is not available in this build: every tool's "
		    "network goes "
		    "through the gateway; remove the line");
	return 0;
}

static int read_process(
    struct cfg *c, struct plan_process *p, const struct toml *t, char *const *args)
{
	const char *where = arena_printf(&c->p->arena, "`" SV_FMT "`", SV_ARG(p->table));

	if (where == NULL)
		return cfg_nomem(c);
	p->line = t->header ? t->line : t->key_line;
	if (cfg_want(c, t, TOML_TABLE, where) != 0 ||
	    cfg_check_keys(c, t, p->kind == PLAN_AGENT ? agent_keys : tool_keys, where) != 0)
		return -1;
	if (read_command(c, p, t, args) != 0 || read_workspace(c, p, t) != 0 ||
	    read_env(c, p, t) != 0 || read_filesystem(c, p, t) != 0)
		return -1;
	p->contain_egress = true;
	return p->kind == PLAN_TOOL ? read_network(c, p, t) : 0;
}

static int by_label(const void *a, const void *b)
{
	return sv_cmp(
	    ((const struct plan_process *)a)->label, ((const struct plan_process *)b)->label);
}

static int read_tools(struct cfg *c, const struct toml *v)
{
	struct plan *p = c->p;

	if (cfg_want(c, v, TOML_TABLE, "`tool`") != 0)
		return -1;
	p->tools = ARENA_VEC(&p->arena, struct plan_process, v->n);
	if (p->tools == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next) {
		struct plan_process *t = &p->tools[p->tools_n];
		const char *why = cfg_name_reason(&p->arena, e->key, 0), *table;

		if (why != NULL)
			return cfg_fail(c, cfg_at_key(e),
			    "tool label \"%s\" is invalid: %s; use one component of letters, "
			    "digits, '.', '_', or "
			    "'-'",
			    cfg_shown(c, e->key), why);
		t->kind = PLAN_TOOL;
		t->label = arena_dup(&p->arena, e->key);
		table = arena_printf(&p->arena, "[tool." SV_FMT "]", SV_ARG(e->key));
		if (t->label.p == NULL || table == NULL)
			return cfg_nomem(c);
		t->table = sv_c(table);
		if (read_process(c, t, e, NULL) != 0)
			return -1;
		p->tools_n++;
	}
	if (p->tools_n > 1)
		qsort(p->tools, p->tools_n, sizeof(p->tools[0]), by_label);
	return 0;
}

int cfg_read_processes(struct cfg *c, const struct toml *root, char *const *args)
{
	const struct toml *v = toml_get(root, SV("agent"));

	if (v != NULL) {
		c->p->agent = ARENA_NEW(&c->p->arena, struct plan_process);
		if (c->p->agent == NULL)
			return cfg_nomem(c);
		c->p->agent->kind = PLAN_AGENT;
		c->p->agent->label = SV("");
		c->p->agent->table = SV("[agent]");
		if (read_process(c, c->p->agent, v, args) != 0)
			return -1;
	}
	v = toml_get(root, SV("tool"));
	return v != NULL ? read_tools(c, v) : 0;
}
