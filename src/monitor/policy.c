/* The engine of one run. See policy.h. The policy text is the operator's: trusted in intent, not in form. */
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
#include "base/ban.h"

static const char *base_name(sv path)
{
	ptrdiff_t slash = sv_rfind(path, '/');

	return slash >= 0 ? path.p + slash + 1 : path.p;
}

/* All findings on stderr, with carets. */
static void print_findings(const dogwood_diags *diags)
{
	const char *no = getenv("NO_COLOR");
	bool colour = isatty(STDERR_FILENO) == 1 && (no == NULL || *no == '\0');
	char *text = dogwood_diags_text(diags, colour ? DOGWOOD_RENDER_COLOUR : 0);

	if (text != NULL && fd_write_full(STDERR_FILENO, text, strlen(text)) != 0) {
		/* stderr is gone: the error line will not be seen either */
	}
	dogwood_free(text);
}

/* The sources of a box: its policy under the file's name, and Box's own schemas. */
struct sources {
	struct dogwood_source policy;
	struct dogwood_policy_set set;
};

static void set_sources(struct sources *s, const struct plan *p, sv text)
{
	s->policy =
	    (struct dogwood_source){ dogwood_cstr(p->policy_path.n != 0 ? p->policy_path.p : ""),
		    { text.p != NULL ? text.p : "", text.n } };
	s->set = (struct dogwood_policy_set){
		.policies = &s->policy,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("box actions.cedarschema"),
		    dogwood_cstr(dw_box_actions) },
		.event_schema = { dogwood_cstr("box events.dwschema"),
		    dogwood_cstr(dw_box_events) },
	};
}

/* "policy file <path> will not load: <first error>" */
static int refuse(const struct plan *p, const dogwood_diags *diags, const struct dogwood_error *de,
    struct box_err *err)
{
	const char *path = p->policy_path.n != 0 ? p->policy_path.p : "<no authored policy>";

	for (size_t i = 0; i < dogwood_diags_count(diags); i++) {
		const struct dogwood_diag *d = dogwood_diags_at(diags, i);

		if (d->severity == DOGWOOD_ERROR)
			return box_fail(err, BOX_ECONFIG, 0, "policy file %s will not load: %.*s",
			    path, (int)(d->message.n < 900 ? d->message.n : 900), d->message.p);
	}
	return box_fail(err, BOX_ECONFIG, 0, "policy file %s will not load: %s", path, de->msg);
}

int policy_check(const struct plan *p, struct box_err *err)
{
	AUTO_BUF text = buf_with(POLICY_MAX);
	dogwood_diags *diags = dogwood_diags_new();
	struct dogwood_error de = { 0 };
	struct sources s;
	int r = -1;

	if (diags == NULL)
		return box_nomem(err, "the findings");
	if (p->policy_path.n == 0 || config_read_policy(p, &text, err) == 0) {
		set_sources(&s, p, buf_sv(&text));
		if (dogwood_policy_check(&s.set, diags, &de) == 0 &&
		    box_checks(p->home, &s.set, diags, &de) == 0)
			r = 0;
		else
			r = refuse(p, diags, &de, err);
		print_findings(diags);
	}
	dogwood_diags_free(diags);
	return r;
}

int policy_open(struct monitor *m, struct buf *text, struct box_err *err)
{
	const struct plan *p = m->plan;
	struct dogwood_options o;
	struct dogwood_error de = { 0 };
	struct sources s;
	sv subject =
	    p->policy_path.n != 0 ? sv_c(base_name(p->policy_path)) : SV("<no authored policy>");

	m->findings = dogwood_diags_new();
	if (m->findings == NULL)
		return box_nomem(err, "the findings");
	if (p->policy_path.n != 0 && config_read_policy(p, text, err) != 0)
		return -1;
	dogwood_options_init(&o);
	o.path = m->path.store;
	if (dogwood_engine_open(&o, &m->engine, &de) != 0)
		return box_fail(err, BOX_ECORRUPT, 0, "policy staging failed: %s", de.msg);
	set_sources(&s, p, buf_sv(text));
	if (box_checks(p->home, &s.set, m->findings, &de) != 0 ||
	    dogwood_engine_install(m->engine, &s.set, m->findings, NULL, &de) != 0) {
		(void)refuse(p, m->findings, &de, err); /* always -1 */
		print_findings(m->findings);
		record_control(m->rec, "policy_refused", subject, err->msg);
		return -1;
	}
	record_control(m->rec, "policy_installed", subject, NULL);
	record_control(m->rec, "discovery_complete", subject, NULL);
	return 0;
}

void policy_print_warnings(struct monitor *m)
{
	for (size_t i = 0; i < dogwood_diags_count(m->findings); i++) {
		const struct dogwood_diag *d = dogwood_diags_at(m->findings, i);

		if (d->severity == DOGWOOD_WARNING)
			log_warn(
			    "%.*s", (int)(d->message.n < 2000 ? d->message.n : 2000), d->message.p);
	}
}

void policy_close(struct monitor *m)
{
	struct dogwood_error de = { 0 };

	if (m->engine != NULL && dogwood_engine_close(m->engine, &de) != 0)
		log_warn("policy staging failed: %s", de.msg);
	m->engine = NULL;
	dogwood_diags_free(m->findings);
	m->findings = NULL;
}
