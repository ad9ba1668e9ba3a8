/* Secrets, placeholders, destinations. See routes.h. */
#include "monitor/routes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/ban.h"

/* Never a credential variable (box-design 10): they steer programs, or name the operator's ambient
 * identity. Compared without case. */
static const char *const denied_vars[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CREDENTIAL_EXPIRATION", "AWS_PROFILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE", "HOME", "PATH", NULL };

static bool is_denied_var(sv name)
{
	for (size_t i = 0; denied_vars[i] != NULL; i++)
		if (sv_eq_nocase(name, sv_c(denied_vars[i])))
			return true;
	return plan_env_reserved(name);
}

static bool is_var_name(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && !(i > 0 && c >= '0' && c <= '9'))
			return false;
	}
	return s.n != 0;
}

static int make_placeholder(struct route *r, struct box_err *err)
{
	uint8_t random[32];
	AUTO_BUF b = buf_with(512);
	const char *text;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return box_fail(
		    err, BOX_ESYS, 0, "credential setup failed: the kernel has no randomness");
	buf_put_sv(&b, r->plan->phantom_prefix);
	for (size_t i = 0; i < sizeof(random); i++)
		buf_putf(&b, "%02x", random[i]);
	text = buf_cstr(&b);
	r->placeholder = text != NULL ? strdup(text) : NULL;
	return r->placeholder != NULL ? 0 : box_nomem(err, "a placeholder");
}

static int read_secret(struct route *r, const char *(*get)(const char *name), struct box_err *err)
{
	sv name = r->plan->secret_var, value;
	const char *text;

	if (!is_var_name(name) || is_denied_var(name))
		return box_fail(err, BOX_ECONFIG, 0,
		    "credential setup failed: credential for " SV_FMT
		    " names invalid or reserved variable \"" SV_FMT "\"",
		    SV_ARG(r->plan->dests[0].authored), SV_ARG(name));
	text = get(name.p);
	value = sv_trim(sv_c(text));
	if (value.n == 0)
		return box_fail(err, BOX_ECONFIG, 0,
		    "credential setup failed: credential variable " SV_FMT
		    " is not set, or holds only whitespace",
		    SV_ARG(name));
	value = sv_c(text);
	if (sv_has_ctl(value))
		return box_fail(err, BOX_ECONFIG, 0,
		    "credential setup failed: credential variable " SV_FMT
		    " holds a control character, which no header can carry",
		    SV_ARG(name));
	r->secret = secret_new(value, err);
	return r->secret != NULL ? 0 : -1;
}

int routes_open(const struct plan *p, const char *(*get)(const char *name), struct routes *r,
    struct box_err *err)
{
	*r = (struct routes){ 0 };
	if (p->routes_n == 0)
		return 0;
	r->v = calloc(p->routes_n, sizeof(r->v[0]));
	if (r->v == NULL)
		return box_nomem(err, "the routes");
	r->n = p->routes_n;
	for (size_t i = 0; i < r->n; i++) {
		r->v[i].plan = &p->routes[i];
		if (read_secret(&r->v[i], get, err) != 0 || make_placeholder(&r->v[i], err) != 0)
			return -1;
	}
	return 0;
}

void routes_fini(struct routes *r)
{
	for (size_t i = 0; i < r->n; i++) {
		secret_free(r->v[i].secret);
		free(r->v[i].placeholder);
	}
	free(r->v);
	*r = (struct routes){ 0 };
}

bool route_covers(const struct route *r, sv host, uint16_t port, sv path, bool intercepted)
{
	if (!intercepted)
		return false;
	for (size_t i = 0; i < r->plan->dests_n; i++)
		if (plan_dest_covers(&r->plan->dests[i], host, port, path))
			return true;
	return false;
}
