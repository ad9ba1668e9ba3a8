/* Environments. See environ.h. Exported variables come from inside the box and are hostile. */
#include "monitor/environ.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/ban.h"

struct list {
	struct arena *arena;
	struct plan_var *v;
	size_t n, cap;
	bool bad;
};

static void set(struct list *l, sv name, sv value)
{
	sv copy;

	for (size_t i = 0; i < l->n; i++) {
		if (!sv_eq(l->v[i].name, name))
			continue;
		copy = arena_dup(l->arena, value);
		l->bad |= copy.p == NULL;
		l->v[i].value = copy;
		return;
	}
	if (l->n == l->cap) {
		size_t cap = l->cap != 0 ? l->cap * 2 : 64;
		struct plan_var *v = arena_grow(l->arena, l->v, l->n, cap, sizeof(*v));

		if (v == NULL) {
			l->bad = true;
			return;
		}
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct plan_var){ arena_dup(l->arena, name), arena_dup(l->arena, value) };
	l->bad |= l->v[l->n].name.p == NULL || l->v[l->n].value.p == NULL;
	l->n++;
}

bool environ_may_export(sv name)
{
	/* The shell keeps these itself, or the box decides them. */
	static const char *const own[] = { "HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "IFS",
		"TMPDIR", "SHELL", "BASH", "BASHOPTS", "SHELLOPTS", "BASH_ENV", "ENV", NULL };
	/* Names that make a program load code, run another one, or trust and show something else:
	 * an operator may set them in a table's env, the agent may not tell a tool that was
	 * permitted for something else (escapes TOOL-02). */
	static const char *const weapons[] = { "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR",
		"GLIBC_TUNABLES", "MALLOC_TRACE", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
		"OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES",
		"SSLKEYLOGFILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "CURL_HOME", "ALL_PROXY",
		"all_proxy", "FTP_PROXY", "ftp_proxy", "RUBYLIB", "PERL5DB", "JDK_JAVA_OPTIONS",
		"GIT_EXEC_PATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF",
		"GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_TEMPLATE_DIR", "LESSOPEN",
		"LESSCLOSE", "TAR_OPTIONS", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "HGRCPATH",
		"MAKEFILES", "VIMINIT", "EXINIT", "NODE_PATH", "npm_config_node_options",
		"npm_config_script_shell", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "AWKLIBPATH",
		"TCLLIBPATH", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_ENVIRON",
		"JULIA_LOAD_PATH", "ERL_AFLAGS", "ERL_ZFLAGS", "DOTNET_STARTUP_HOOKS",
		"CORECLR_PROFILER_PATH", "JDK_JAVAC_OPTIONS", NULL };

	if (name.n == 0 || name.n > 256 || plan_env_reserved(name))
		return false;
	for (size_t i = 0; own[i] != NULL; i++)
		if (sv_eq(name, sv_c(own[i])))
			return false;
	for (size_t i = 0; weapons[i] != NULL; i++)
		if (sv_eq(name, sv_c(weapons[i])))
			return false;
	if (sv_starts(name, SV("GIT_CONFIG")))
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && !(i > 0 && c >= '0' && c <= '9'))
			return false;
	}
	return true;
}

/* PATH without any spelling of bin_dir, and with it in front for the agent. */
static void set_path(struct list *l, const struct environ_input *in, sv path)
{
	AUTO_BUF b = buf_with((size_t)1 << 16);
	sv bin = sv_c(in->bin_dir), part, rest = path;
	bool more = true;

	if (in->is_agent)
		buf_put_sv(&b, bin);
	while (more) {
		sv bare;

		more = sv_cut(rest, ':', &part, &rest);
		bare = part;
		while (bare.n > 1 && bare.p[bare.n - 1] == '/')
			bare.n--;
		/* An empty entry means the current directory: never here. */
		if (bare.n == 0 || sv_eq(bare, bin))
			continue;
		if (b.n != 0)
			buf_put_byte(&b, ':');
		buf_put_sv(&b, part);
	}
	l->bad |= !buf_ok(&b);
	set(l, SV("PATH"), buf_sv(&b));
}

static void set_box_names(struct list *l, const struct environ_input *in)
{
	static const char *const proxies[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
		"https_proxy" };
	/* Programs that read these as their only roots need the system's as well. */
	static const char *const bundles[] = { "SSL_CERT_FILE", "AWS_CA_BUNDLE",
		"REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO" };
	static const char *const extras[] = { "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE" };
	const char *proxy = arena_printf(l->arena, "http://127.0.0.1:%u", in->proxy_port);

	if (proxy == NULL) {
		l->bad = true;
		return;
	}
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		set(l, sv_c(proxies[i]), sv_c(proxy));
	set(l, SV("NO_PROXY"), SV("127.0.0.1,localhost"));
	set(l, SV("no_proxy"), SV("127.0.0.1,localhost"));
	set(l, SV("NODE_USE_ENV_PROXY"), SV("1"));
	for (size_t i = 0; i < sizeof(bundles) / sizeof(bundles[0]); i++)
		set(l, sv_c(bundles[i]), sv_c(in->ca_bundle));
	for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++)
		set(l, sv_c(extras[i]), sv_c(in->ca_cert));
	set(l, SV("USER"), SV("strands-box"));
	if (in->cwd != NULL)
		set(l, SV("PWD"), sv_c(in->cwd));
}

static int by_name(const void *a, const void *b)
{
	return sv_cmp(((const struct plan_var *)a)->name, ((const struct plan_var *)b)->name);
}

sv environ_path(const struct plan *plan, const struct plan_process *proc)
{
	for (size_t i = 0; proc != NULL && i < proc->env_n; i++)
		if (sv_eq(proc->env[i].name, SV("PATH")))
			return proc->env[i].value;
	return plan->path_var;
}

int environ_compose(const struct environ_input *in, struct arena *arena, struct plan_var **out,
    size_t *n, struct box_err *err)
{
	struct list l = { .arena = arena };
	sv path = environ_path(in->plan, in->proc);

	for (size_t i = 0; i < in->routes->n; i++)
		set(&l, in->routes->v[i].plan->secret_var, sv_c(in->routes->v[i].placeholder));
	set(&l, SV("HOME"), in->plan->home);
	set(&l, SV("TMPDIR"), SV("/tmp"));
	for (size_t i = 0; i < in->exported_n; i++)
		if (environ_may_export(in->exported[i].name))
			set(&l, in->exported[i].name, in->exported[i].value);
	for (size_t i = 0; in->proc != NULL && i < in->proc->env_n; i++)
		set(&l, in->proc->env[i].name, in->proc->env[i].value);
	set_path(&l, in, path);
	set_box_names(&l, in);
	if (l.bad)
		return box_nomem(err, "an environment");
	qsort(l.v, l.n, sizeof(l.v[0]), by_name);
	*out = l.v;
	*n = l.n;
	return 0;
}
