/* The startup report (box-config-and-policy 4.3, steps 2 and 5). Texts are matched by users and
 * tests: see tests/unit/config/disclose_test.c. */
#include "config/disclose.h"

#include "config/path.h"
#include "base/ban.h"

/* Control and non-ASCII characters as \u{..} (4.3 step 2). The path is UTF-8 or not; a stray byte
 * is shown by its value. */
static void put_ascii(struct buf *out, sv s)
{
	while (s.n != 0) {
		unsigned char c = (unsigned char)s.p[0];
		size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		uint32_t cp = n == 1 ? c : n == 2 ? c & 0x1fU : n == 3 ? c & 0x0fU : c & 0x07U;

		if (n > s.n || !sv_is_utf8(sv_sub(s, 0, n))) {
			n = 1;
			cp = c;
		}
		for (size_t i = 1; i < n; i++)
			cp = cp << 6 | ((unsigned char)s.p[i] & 0x3fU);
		if (cp >= 0x20 && cp < 0x7f)
			buf_put_byte(out, c);
		else
			buf_putf(out, "\\u{%x}", cp);
		s = sv_sub(s, n, s.n);
	}
}

static const char *op_of(enum plan_list l)
{
	return l == PLAN_READ_FILE ? "read" : l == PLAN_WRITE_FILE ? "write" : plan_list_name[l];
}

static void disclose_stores_of(
    const struct plan *p, const struct plan_process *proc, struct buf *out)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];
		AUTO_BUF shown = buf_with(65536);
		const char *sep = "";
		bool before = false;

		if (!g->credential_store || g->list == PLAN_DENY)
			continue;
		for (size_t k = 0; k < i; k++)
			before = before || (proc->grants[k].credential_store &&
			                       sv_eq(proc->grants[k].path, g->path));
		if (before)
			continue;
		path_put_home(&shown, g->path, p->home);
		buf_putf(out, "box: " SV_FMT ": exposes ", SV_ARG(proc->table));
		put_ascii(out, buf_sv(&shown));
		buf_put_c(out, " (");
		for (size_t k = i; k < proc->grants_n; k++) {
			if (!proc->grants[k].credential_store ||
			    !sv_eq(proc->grants[k].path, g->path))
				continue;
			buf_putf(out, "%s%s", sep, op_of(proc->grants[k].list));
			sep = ", ";
		}
		buf_put_c(out, ")\n");
	}
}

void disclose_stores(const struct plan *p, struct buf *out)
{
	if (p->agent != NULL)
		disclose_stores_of(p, p->agent, out);
	for (size_t i = 0; i < p->tools_n; i++)
		disclose_stores_of(p, &p->tools[i], out);
}

static void put_row(struct buf *out, const char *what, sv path, const char *note)
{
	buf_putf(out, "  %-10s  ", what);
	buf_put_escaped(out, path);
	if (note[0] != '\0')
		buf_putf(out, "  (%s)", note);
	buf_put_byte(out, '\n');
}

static void put_grants(const struct plan_process *proc, struct buf *out)
{
	bool any = false, named = false;

	for (int l = 0; l < PLAN_DENY; l++) {
		for (size_t i = 0; i < proc->grants_n; i++) {
			const struct plan_grant *g = &proc->grants[i];

			if (g->list != (enum plan_list)l)
				continue;
			any = true;
			named = named || (g->list == PLAN_EXEC && sv_eq(g->path, proc->program));
			put_row(out, plan_list_name[l], g->path,
			    g->credential_store ? "credential store" : "");
		}
	}
	if (!any)
		buf_put_c(out, "  (no filesystem entry)\n");
	if (!named)
		put_row(out, "exec", proc->program, "command, implicit");
}

/* "warning: [tool.x] command P lies inside the writable grant G, …" */
static void put_warning(const struct plan_process *proc, const char *what, sv path, struct buf *out)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];

		if ((g->list != PLAN_WRITE && g->list != PLAN_WRITE_FILE) ||
		    !path_within(path, g->path))
			continue;
		buf_putf(out, "box: warning: " SV_FMT " %s ", SV_ARG(proc->table), what);
		buf_put_escaped(out, path);
		buf_put_c(out, " lies inside the writable grant ");
		buf_put_escaped(out, g->path);
		buf_put_c(out, ", so the process can replace the program it runs\n");
		return;
	}
}

void disclose_process(const struct plan *p, const struct plan_process *proc,
    const struct disclose_minimum *minimum, size_t minimum_n, sv home, sv path, struct buf *out)
{
	sv workspace = proc->workspace;

	/* A tool without its own starts there, unless the shell stands elsewhere. */
	if (workspace.n == 0 && p->agent != NULL)
		workspace = p->agent->workspace;
	buf_putf(out, "box: " SV_FMT " runs ", SV_ARG(proc->table));
	buf_put_escaped(out, proc->program);
	buf_put_c(out, " with no policy decision over these paths:\n");
	put_grants(proc, out);
	buf_putf(out, "box: " SV_FMT " runtime minimum, added by Core:\n", SV_ARG(proc->table));
	for (size_t i = 0; i < minimum_n; i++)
		put_row(out, minimum[i].operation, sv_c(minimum[i].path), minimum[i].note);
	for (size_t i = 0; i < proc->interpreters_n; i++)
		put_row(out, "exec", proc->interpreters[i], "interpreter");
	if (workspace.n != 0)
		put_row(out, "enter", workspace, "workspace, entry only");
	if (!proc->contain_egress)
		buf_putf(out,
		    "box: " SV_FMT
		    " native egress: connects to the network directly%s with no egress gateway, no "
		    "net:connect or http:request decision, and no credential injection\n",
		    SV_ARG(proc->table),
		    proc->kind == PLAN_TOOL ? ", with the arguments the agent passes," : "");
	buf_putf(out, "box: " SV_FMT " HOME=", SV_ARG(proc->table));
	buf_put_escaped(out, home);
	buf_put_c(out, " PATH=");
	buf_put_escaped(out, path);
	buf_put_byte(out, '\n');
	put_warning(proc, "command", proc->program, out);
	for (size_t i = 0; i < proc->interpreters_n; i++)
		put_warning(proc, "interpreter", proc->interpreters[i], out);
}
