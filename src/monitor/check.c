/* box check, and where the records are: the parts of a run that create nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/boxdir.h"
#include "config/config.h"
#include "contain/contain.h"
#include "monitor/load.h"
#include "monitor/monitor.h"
#include "monitor/policy.h"
#include "base/ban.h"

int monitor_check(const struct monitor_options *o)
{
	struct plan p;
	struct box_err err = { 0 };
	int bad = 0;

	if (monitor_load(o, &p, &err) != 0) {
		log_error("%s", err.msg);
		plan_fini(&p);
		return 1;
	}
	/* Both halves are judged, so that one run tells everything. */
	if (config_judge(&p, &err) != 0) {
		log_error("%s", err.msg);
		bad = 1;
	}
	if (boxdir_check(&p, &err) != 0) {
		log_error("%s", err.msg);
		bad = 1;
	}
	if (contain_check(&err) != 0) {
		log_error("%s", err.msg);
		bad = 1;
	}
	if (policy_check(&p, &err) != 0) {
		log_error("%s", err.msg);
		bad = 1;
	}
	for (size_t i = 0; i < p.warnings_n; i++)
		log_warn("%s", p.warnings[i]);
	/* Not an error: a check may run where the secrets are not. */
	for (size_t i = 0; i < p.routes_n; i++)
		if (p.routes[i].secret_var.n != 0 && getenv(p.routes[i].secret_var.p) == NULL)
			log_warn(SV_FMT " is not in the environment; `box run` needs it",
			    SV_ARG(p.routes[i].secret_var));
	if (!bad && p.agent == NULL) {
		log_error("the configuration has no `[agent]` table");
		bad = 1;
	}
	if (!bad)
		log_line("%s: nothing to object", o->config);
	plan_fini(&p);
	return bad;
}

int monitor_records_path(const char *config, char **out, struct box_err *err)
{
	struct monitor_options o = { .config = config };
	struct plan p;
	AUTO_BUF b = buf_with(8192);
	const char *text = NULL;
	int r = monitor_load(&o, &p, err);

	if (r == 0) {
		buf_putf(&b, SV_FMT "/private/telemetry/records.jsonl", SV_ARG(p.box_dir));
		text = buf_cstr(&b);
		*out = text != NULL ? strdup(text) : NULL;
		if (*out == NULL)
			r = box_nomem(err, "a path");
	}
	plan_fini(&p);
	return r;
}
