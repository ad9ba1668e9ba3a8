/* What the verbs of `dogwood` share. See cmd.h. */
#include "dogwood-cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "engine/diag.h"

#include "base/ban.h"

int cmd_error(const char *fmt, ...)
{
	struct box_err e = { 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)box_vfail(&e, BOX_ECONFIG, 0, fmt, ap); /* always -1 */
	va_end(ap);
	(void)cmd_failed(&e);
	return CMD_USAGE;
}

int cmd_failed(const struct box_err *err)
{
	AUTO_BUF b = buf_with(BUF_MAX_DEFAULT);
	sv left = sv_c(err->msg), line;
	bool more;

	buf_put_c(&b, "error: ");
	do {
		more = sv_cut(left, '\n', &line, &left);
		buf_put_escaped(&b, line);
		buf_put_byte(&b, '\n');
	} while (more);
	(void)fwrite(b.p, 1, b.n, stderr); /* nowhere else to say it */
	return err->code == BOX_ESYS ? CMD_USAGE : CMD_REFUSED;
}

int cmd_usage(const struct cmd *self, int opt)
{
	if (opt == 'h') {
		(void)fputs(self->help, stdout);
		return fflush(stdout) == 0 ? CMD_OK : CMD_USAGE;
	}
	(void)fprintf(stderr, "Try `dogwood %s --help`.\n", self->name);
	return CMD_USAGE;
}

/* https://no-color.org: any value but the empty one. */
static unsigned render_flags(void)
{
	return log_colour_on(STDERR_FILENO) ? DOGWOOD_RENDER_COLOUR : 0;
}

/* Frees text. */
static void put_findings(char *text)
{
	(void)fputs(text != NULL ? text : "error: there is no memory to show the findings\n",
	    stderr); /* nowhere else to say it */
	dogwood_free(text);
}

void cmd_put_diags(const dogwood_diags *d)
{
	put_findings(dogwood_diags_text(d, render_flags()));
}

int cmd_findings(const struct dw_diags *found)
{
	put_findings(eng_diags_show(found, render_flags()));
	return CMD_REFUSED;
}

int cmd_print(const struct buf *b)
{
	if (!buf_ok(b))
		return cmd_error("the output is too large, or there is no memory for it");
	if (fwrite(b->p, 1, b->n, stdout) != b->n || fflush(stdout) != 0)
		return cmd_error("write to standard output: %s", box_strerror(errno));
	return CMD_OK;
}

int cmd_read(struct arena *a, const char *path, size_t max, sv *out)
{
	AUTO_BUF b = buf_with(max);
	struct box_err err = { 0 };
	int rc = strcmp(path, "-") == 0 ? fd_read_all(STDIN_FILENO, &b, "standard input", &err)
	                                : fd_read_file(path, max, &b, &err);

	if (rc < 0) {
		(void)box_wrap(&err, "reading %s", path);
		(void)cmd_failed(&err);
		return CMD_USAGE;
	}
	*out = arena_dup(a, buf_sv(&b));
	return out->p != NULL ? CMD_OK : cmd_error("no memory for %s", path);
}

bool cmd_policy_option(struct cmd_policy *p, int opt, const char *arg)
{
	const char **to = opt == 's'   ? &p->schema
	                  : opt == 'e' ? &p->events
	                  : opt == 'm' ? &p->macros
	                  : opt == 'P' ? &p->providers
	                               : NULL;

	if (to != NULL)
		*to = arg;
	return to != NULL;
}

static int read_source(struct cmd_policy *p, const char *path, struct dogwood_source *out)
{
	sv text;
	int rc;

	*out = (struct dogwood_source){ 0 };
	if (path == NULL)
		return CMD_OK;
	rc = cmd_read(&p->a, path, DW_SOURCE_MAX, &text);
	out->name = dogwood_cstr(strcmp(path, "-") == 0 ? "<stdin>" : path);
	out->text = (dogwood_str){ text.p, text.n };
	return rc;
}

int cmd_policy_read(struct cmd_policy *p, char **files, int n)
{
	struct dogwood_source *v = ARENA_VEC(&p->a, struct dogwood_source, (size_t)n);
	int rc = CMD_OK;

	if (v == NULL)
		return cmd_error("no memory");
	for (int i = 0; i < n && rc == CMD_OK; i++)
		rc = read_source(p, files[i], &v[i]);
	p->set.policies = v;
	p->set.n_policies = (size_t)n;
	if (rc == CMD_OK)
		rc = read_source(p, p->schema, &p->set.action_schema);
	if (rc == CMD_OK)
		rc = read_source(p, p->events, &p->set.event_schema);
	if (rc == CMD_OK)
		rc = read_source(p, p->macros, &p->set.macros);
	return rc == CMD_OK ? read_source(p, p->providers, &p->set.providers) : rc;
}

struct eng_set *cmd_policy_load(const struct cmd_policy *p, int64_t tick, bool loose, int *status)
{
	dogwood_diags *d = dogwood_diags_new();
	struct eng_set *set = NULL;
	struct box_err err = { 0 };

	if (d == NULL) {
		*status = cmd_error("no memory");
		return NULL;
	}
	if (eng_set_load_for(&p->set, tick, loose, d, &set, &err) < 0)
		*status = CMD_REFUSED;
	cmd_put_diags(d);
	/* A refusal always says something. */
	if (set == NULL && dogwood_diags_errors(d) == 0)
		*status = cmd_failed(&err);
	dogwood_diags_free(d);
	return set;
}

void cmd_policy_fini(struct cmd_policy *p)
{
	arena_free(&p->a);
}
