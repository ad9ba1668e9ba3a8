/* The engine of one run. See policy.h. The policy text is the operator's: trusted in intent, not in
 * form. */
#include "monitor/policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "dogwood/box_checks.h"
#include "dogwood/box_schema.h"
#include "dogwood/dogwood.h"
#include "engine/diag.h"
#include "base/ban.h"

static const char *base_name(sv path)
{
	ptrdiff_t slash = sv_rfind(path, '/');

	return slash >= 0 ? path.p + slash + 1 : path.p;
}

/* All findings on stderr, with carets. */
static void print_findings(const struct dw_diags *found)
{
	char *text =
	    eng_diags_show(found, log_colour_on(STDERR_FILENO) ? DOGWOOD_RENDER_COLOUR : 0);

	if (text == NULL)
		log_error("no memory to show the findings");
	else if (fd_write_full(STDERR_FILENO, text, strlen(text)) != 0)
		log_debug("stderr is gone"); /* the error line will not be seen either */
	dogwood_free(text);
}

/* "policy file <path> will not load: <first error>" */
static int refuse(
    const struct plan *p, const struct dw_diags *d, const char *other, struct box_err *err)
{
	const char *path = p->policy_path.n != 0 ? p->policy_path.p : "<no authored policy>";
	AUTO_BUF line = buf_with((size_t)1 << 16);

	dw_box_reason(d, &line);
	if (line.n == 0)
		buf_put_c(&line, other);
	/* One line, whatever the messages quote from the operator's file. */
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < 0x20 || line.p[i] == 0x7f)
			line.p[i] = line.p[i] == '\n' ? ';' : '?';
	return box_fail(
	    err, BOX_ECONFIG, 0, "policy file %s will not load: %s", path, buf_cstr(&line));
}

/* Everything that speaks against the text, without a store: the language's checks against Box's
 * schemas, then Box's own. */
static int judge(const struct plan *p, sv text, struct dw_diags *d, struct box_err *err)
{
	struct dw_load in = { .policy = { p->policy_path.n != 0 ? p->policy_path : SV("policy"),
		                  { text.p != NULL ? text.p : "", text.n } },
		.action_schema = { SV("box.cedarschema"), sv_c(dw_box_actions) },
		.event_schema = { SV("box.dwschema"), sv_c(dw_box_events) },
		.tick = DW_TICK_NANO };
	struct box_err why = { 0 };
	struct dw_set *set = dw_load(&in, d, &why);
	int r = -1;

	if (set == NULL)
		r = refuse(p, d, why.msg, err);
	else if (dw_box_check(set, p->home, d) != 0)
		r = refuse(p, d, "out of memory", err);
	else
		r = 0;
	dw_set_free(set);
	return r;
}

int policy_check(const struct plan *p, struct box_err *err)
{
	AUTO_BUF text = buf_with(POLICY_MAX);
	AUTO_DW_DIAGS d = { 0 };
	int r;

	if (p->policy_path.n != 0 && config_read_policy(p, &text, err) != 0)
		return -1;
	r = judge(p, buf_sv(&text), &d, err);
	print_findings(&d);
	return r;
}

static int install(struct monitor *m, sv text, struct box_err *err)
{
	const struct plan *p = m->plan;
	struct dogwood_source policy = { dogwood_cstr(
		                             p->policy_path.n != 0 ? p->policy_path.p : "policy"),
		{ text.p != NULL ? text.p : "", text.n } };
	struct dogwood_policy_set set = { .policies = &policy,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("box.cedarschema"), dogwood_cstr(dw_box_actions) },
		.event_schema = { dogwood_cstr("box.dwschema"), dogwood_cstr(dw_box_events) } };
	struct dogwood_options o;
	struct dogwood_error de = { 0 };

	dogwood_options_init(&o);
	o.path = m->path.store;
	if (dogwood_engine_open(&o, &m->engine, &de) != 0)
		return box_fail(err, BOX_ECORRUPT, 0, "policy staging failed: %s", de.msg);
	if (dogwood_engine_install(m->engine, &set, NULL, NULL, &de) != 0)
		return box_fail(err, BOX_ECONFIG, 0, "policy staging failed: %s", de.msg);
	return 0;
}

int policy_open(struct monitor *m, struct buf *text, struct box_err *err)
{
	const struct plan *p = m->plan;
	AUTO_DW_DIAGS d = { 0 };
	sv subject =
	    p->policy_path.n != 0 ? sv_c(base_name(p->policy_path)) : SV("<no authored policy>");

	if (p->policy_path.n != 0 && config_read_policy(p, text, err) != 0)
		return -1;
	if (judge(p, buf_sv(text), &d, err) != 0) {
		print_findings(&d);
		record_control(m->rec, "policy_refused", subject, err->msg);
		return -1;
	}
	if (install(m, buf_sv(text), err) != 0) {
		record_control(m->rec, "policy_refused", subject, err->msg);
		return -1;
	}
	for (size_t i = 0; i < d.n; i++) {
		AUTO_BUF line = buf_with(8192);

		buf_put_escaped(&line, sv_sub(d.v[i].message, 0, 4000));
		if (d.v[i].severity == DW_WARNING && m->warnings_n < MONITOR_WARNINGS_MAX)
			m->warnings[m->warnings_n++] =
			    arena_printf(&m->arena, "%s", buf_cstr(&line));
	}
	record_control(m->rec, "policy_installed", subject, NULL);
	record_control(m->rec, "discovery_complete", subject, NULL);
	return 0;
}

void policy_print_warnings(struct monitor *m)
{
	for (size_t i = 0; i < m->warnings_n; i++)
		if (m->warnings[i] != NULL)
			log_warn("%s", m->warnings[i]);
}

void policy_close(struct monitor *m)
{
	struct dogwood_error de = { 0 };

	if (m->engine != NULL && dogwood_engine_close(m->engine, &de) != 0)
		log_warn("policy staging failed: %s", de.msg);
	m->engine = NULL;
}
