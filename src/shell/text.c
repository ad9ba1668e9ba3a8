/* Shared by the text utilities. See text.h. */
#include "shell/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

static bool names_utf8(const char *s)
{
	const char *dot = strchr(s, '.');

	return dot != NULL &&
	       (strncasecmp(dot + 1, "UTF-8", 5) == 0 || strncasecmp(dot + 1, "UTF8", 4) == 0);
}

void text_locale_begin(struct text_locale *l, struct sh_io *io)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *v = NULL;

	*l = (struct text_locale){ 0 };
	for (size_t i = 0; i < 3 && (v == NULL || *v == '\0'); i++)
		v = shcmd_env(io, names[i]);
	l->utf8 = v != NULL && names_utf8(v);
	/* The one UTF-8 locale that is always there; a host without its data works with bytes.
	 * Plain "C" is set too: the shell itself runs in UTF-8. */
	l->mine = newlocale(LC_CTYPE_MASK, l->utf8 ? "C.UTF-8" : "C", (locale_t)0);
	if (l->mine == (locale_t)0) {
		l->utf8 = false;
		return;
	}
	l->before = uselocale(l->mine);
}

void text_locale_end(struct text_locale *l)
{
	if (l->mine == (locale_t)0)
		return;
	(void)uselocale(l->before);
	freelocale(l->mine);
	*l = (struct text_locale){ 0 };
}

int text_read_err(struct sh_io *io, const char *name, int sys)
{
	return shcmd_err(io, "%s: %s", name, box_strerror(sys));
}

int text_open(struct sh_io *io, const char *name, enum text_open_words how)
{
	int fd = shcmd_open_read(io, name);

	if (fd >= 0)
		return fd;
	if (how == TEXT_OPEN_READING && io->last.why == FILES_ERRNO && io->last.sys == EISDIR)
		(void)shcmd_err(io, "error reading '%s': %s", name, io->last.text);
	else if (how == TEXT_OPEN_READING && io->last.why == FILES_ERRNO)
		(void)shcmd_err(io, "cannot open '%s' for reading: %s", name, io->last.text);
	else
		(void)shcmd_open_err(io, name); /* the status is the caller's */
	return -1;
}

int text_each(struct sh_io *io, char **names, enum text_open_words how,
    int (*on)(void *arg, int fd, const char *name), void *arg)
{
	static char dash[] = "-";
	char *only[] = { dash, NULL };
	int status = 0;

	if (names[0] == NULL)
		names = only;
	for (; *names != NULL && !shcmd_interrupted(io) && !shcmd_out_dead(io); names++) {
		AUTO_FD fd = text_open(io, *names, how);
		int r = fd < 0 ? (io->last.why == FILES_BROKEN ? 125 : 1) : on(arg, fd, *names);

		status = r > status ? r : status;
		if (status == 125)
			break;
	}
	return status;
}

bool text_count(const char *s, int64_t *out)
{
	static const char units[] = "KMGTPEZY";
	int64_t v = 0, mul = 1, base = 1024;
	const char *u;
	bool big = false;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		big = big || __builtin_mul_overflow(v, 10, &v) ||
		      __builtin_add_overflow(v, *s - '0', &v);
	if (strcmp(s, "b") == 0) {
		big = big || __builtin_mul_overflow(v, 512, &v);
	} else if (*s != '\0') {
		u = strchr(units, *s == 'k' ? 'K' : *s == 'm' ? 'M' : *s);
		if (u == NULL)
			return false;
		if (strcmp(s + 1, "B") == 0)
			base = 1000;
		else if (s[1] != '\0' && strcmp(s + 1, "iB") != 0)
			return false;
		for (ptrdiff_t i = 0; i <= u - units; i++)
			big = big || __builtin_mul_overflow(mul, base, &mul);
		big = (big && v != 0) || __builtin_mul_overflow(v, mul, &v);
	}
	*out = big ? INT64_MAX : v;
	return true;
}

void *text_grow(struct sh_io *io, void *p, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap != 0 ? *cap : 64, bytes;
	void *q;

	if (need <= *cap)
		return p;
	while (n < need)
		n = n > SIZE_MAX / 2 ? need : n * 2;
	if (!mul_sz(n, size, &bytes) || bytes > SHCMD_MEM_MAX || (q = realloc(p, bytes)) == NULL) {
		(void)shcmd_err(io, "memory exhausted"); /* the status is the caller's */
		return NULL;
	}
	*cap = n;
	return q;
}

int text_queue_put(struct sh_io *io, struct text_queue *q, sv piece)
{
	size_t need;
	void *p;

	if (q->from > q->cap / 2) {
		/* Each byte is moved at most once per half a buffer of new ones. */
		memmove(q->p, q->p + q->from, q->to - q->from);
		q->to -= q->from;
		q->from = 0;
	}
	if (!add_sz(q->to, piece.n, &need) || (p = text_grow(io, q->p, &q->cap, need, 1)) == NULL)
		return -1;
	q->p = p;
	if (piece.n != 0)
		memcpy(q->p + q->to, piece.p, piece.n);
	q->to += piece.n;
	if (q->len_n == q->len_cap) {
		size_t old = q->len_cap;

		p = text_grow(io, q->len, &q->len_cap, old + 1, sizeof(*q->len));
		if (p == NULL)
			return -1;
		q->len = p;
		/* Unroll the ring: what had wrapped goes behind the old end. */
		memcpy(q->len + old, q->len, q->len_from * sizeof(*q->len));
	}
	q->len[(q->len_from + q->len_n++) % q->len_cap] = piece.n;
	return 0;
}

bool text_queue_take(struct text_queue *q, sv *piece)
{
	if (q->len_n == 0)
		return false;
	*piece = (sv){ q->p + q->from, q->len[q->len_from] };
	q->from += piece->n;
	q->len_from = (q->len_from + 1) % q->len_cap;
	q->len_n--;
	return true;
}

void text_queue_fini(struct text_queue *q)
{
	free(q->p);
	free(q->len);
	*q = (struct text_queue){ 0 };
}
