/* Unix sockets of the host below what a table grants: told at the start, and hidden in the view
 * where no entry names them (escapes SOCK-01). See contain_sockets. */
#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "contain/contain.h"
#include "monitor/internal.h"
#include "base/ban.h"

#define LINES_MAX   20
#define ENTRIES_MAX 20000
#define HIDDEN_MAX  512 /* of one process */

struct search {
	struct monitor *m;
	const struct plan_process *proc;
	size_t lines, hidden;
	bool nomem;
};

static bool is_known(const struct search *s, const char *path)
{
	for (const struct hidden_socket *h = s->m->sockets; h != NULL; h = h->next)
		if (h->proc == s->proc && strcmp(h->path, path) == 0)
			return true;
	return false;
}

static void on_socket(void *arg, const char *path, bool hide)
{
	struct search *s = arg;
	struct hidden_socket *h = ARENA_NEW(&s->m->arena, struct hidden_socket);
	AUTO_BUF text = buf_with((size_t)4 * PATH_MAX);

	if (is_known(s, path))
		return;
	if (h == NULL || (h->path = arena_dup(&s->m->arena, sv_c(path)).p) == NULL) {
		s->nomem = true;
		return;
	}
	h->proc = s->proc;
	h->hide = hide;
	h->next = s->m->sockets;
	s->m->sockets = h;
	s->hidden += hide;
	if (s->lines == 0)
		return;
	s->lines--;
	buf_put_escaped(&text, sv_c(path));
	if (hide)
		log_warn(SV_FMT
		    ": the socket " SV_FMT
		    " is hidden: a folder gives files, not services; an entry of its own in "
		    "`write_file` gives it",
		    SV_ARG(s->proc->table), SV_ARG(buf_sv(&text)));
	else
		log_warn(SV_FMT ": may connect to the socket " SV_FMT, SV_ARG(s->proc->table),
		    SV_ARG(buf_sv(&text)));
	if (s->lines == 0)
		log_warn("and perhaps more sockets: %d are shown", LINES_MAX);
}

int sockets_find(struct monitor *m, struct box_err *err)
{
	/* Together ENTRIES_MAX entries are looked at, about 10 ms: no process takes the others'
	 * share. */
	const size_t each = ENTRIES_MAX / (m->plan->tools_n + 1);
	struct search s = { .m = m, .lines = LINES_MAX };

	for (size_t i = 0; i <= m->plan->tools_n; i++) {
		s.proc = i < m->plan->tools_n ? &m->plan->tools[i] : m->plan->agent;
		s.hidden = 0;
		if (!contain_sockets(s.proc, each, on_socket, &s))
			log_debug(SV_FMT ": only the first %zu names below its paths were searched "
			                 "for sockets that nobody listens on",
			    SV_ARG(s.proc->table), each);
		if (s.nomem)
			return box_nomem(err, "the sockets of the host");
		if (s.hidden > HIDDEN_MAX)
			return box_fail(err, BOX_ELIMIT, 0,
			    SV_FMT ": more than %d sockets lie below its folders; grant narrower "
			           "folders, or "
			           "`deny` the one that holds them",
			    SV_ARG(s.proc->table), HIDDEN_MAX);
	}
	return 0;
}

const char *const *sockets_hidden(
    const struct monitor *m, const struct plan_process *proc, struct arena *arena, size_t *n)
{
	const char **v = arena_alloc(arena, HIDDEN_MAX, sizeof(*v));

	*n = 0;
	for (const struct hidden_socket *h = m->sockets; v != NULL && h != NULL; h = h->next)
		if (h->hide && h->proc == proc)
			v[(*n)++] = h->path;
	return v;
}
