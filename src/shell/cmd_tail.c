/* tail: the last lines or bytes, or everything from one on; following (POSIX tail, GNU -c -n -q -v
 * -z -f -F -s). A regular file is read from its end; of a stream only what may still be printed is
 * held. -f ends by a signal or when the reader of its output goes away. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "shell/text.h"
#include "base/ban.h"

#define BLOCK 16384

struct followed {
	const char *name;
	int fd; /* -1: not there (yet) */
	uint64_t dev, ino;
};

struct tail {
	struct sh_io *io;
	int64_t count;
	bool bytes, from_start, headers, any;
	bool follow, by_name;
	int64_t interval_ns;
	char delim;
	struct followed *files;
	size_t files_n;
	const char *last_shown;
};

static const char *pretty(const char *name)
{
	return strcmp(name, "-") == 0 ? "standard input" : name;
}

static void put_header(struct tail *t, const char *name)
{
	if (t->headers)
		shcmd_printf(t->io, "%s==> %s <==\n", t->any ? "\n" : "", pretty(name));
	t->any = true;
	t->last_shown = name;
}

/* The rest of the stream. -1 with errno. */
static int copy_rest(struct tail *t, int fd, uint64_t *copied)
{
	char block[BLOCK];
	ssize_t n;

	while (!shcmd_out_dead(t->io) && (n = shcmd_read(t->io, fd, block, sizeof(block))) != 0) {
		if (n < 0)
			return -1;
		shcmd_put(t->io, block, (size_t)n);
		*copied += (uint64_t)n;
	}
	return 0;
}

static int from_number(struct tail *t, struct sh_in *in)
{
	/* "+1" and "+0" are everything. */
	uint64_t skip = t->count > 0 ? (uint64_t)t->count - 1 : 0;
	int r = 1;
	sv s;

	while (!t->bytes && skip > 0 && (r = shcmd_getline(in, t->delim, &s)) > 0)
		skip--;
	while (r > 0 && !shcmd_out_dead(t->io) && (r = shcmd_getchunk(in, &s)) > 0) {
		size_t n = skip < s.n ? (size_t)skip : s.n;

		shcmd_put(t->io, s.p + n, s.n - n);
		skip -= n;
	}
	return r;
}

/* The last count pieces of a stream. Lines are held whole; bytes in the pieces they came in. */
static int last_of_stream(struct tail *t, struct sh_in *in)
{
	struct text_queue q = { 0 };
	uint64_t held = 0, skip;
	sv s, old;
	int r;

	while ((r = t->bytes ? shcmd_getchunk(in, &s) : shcmd_getline(in, t->delim, &s)) > 0) {
		if (text_queue_put(t->io, &q, s) != 0) {
			text_queue_fini(&q);
			return -2;
		}
		held += s.n;
		if (t->bytes) {
			while (q.len_n != 0 && held - q.len[q.len_from] >= (uint64_t)t->count &&
			       text_queue_take(&q, &old))
				held -= old.n;
		} else if ((int64_t)q.len_n > t->count) {
			(void)text_queue_take(&q, &old); /* not empty */
		}
	}
	skip = t->bytes && held > (uint64_t)t->count ? held - (uint64_t)t->count : 0;
	while (r == 0 && text_queue_take(&q, &old)) {
		size_t n = skip < old.n ? (size_t)skip : old.n;

		shcmd_put(t->io, old.p + n, old.n - n);
		skip -= n;
	}
	text_queue_fini(&q);
	return r;
}

/* Where the last count lines of a regular file begin, searched backwards from its end. -1 with
 * errno. */
static off_t find_lines(struct tail *t, int fd, off_t begin, off_t end)
{
	char block[BLOCK];
	int64_t left = t->count;
	off_t at = end;
	bool first = true;

	if (left == 0)
		return end;
	while (at > begin) {
		size_t n = at - begin < BLOCK ? (size_t)(at - begin) : BLOCK;
		ssize_t r = pread(fd, block, n, at - (off_t)n);

		if (r != (ssize_t)n)
			return -1;
		/* The delimiter that ends the last line does not begin another. */
		if (first && block[n - 1] == t->delim)
			left = left == INT64_MAX ? left : left + 1;
		first = false;
		for (size_t i = n; i-- > 0;)
			if (block[i] == t->delim && --left == 0)
				return at - (off_t)n + (off_t)i + 1;
		at -= (off_t)n;
	}
	return begin;
}

/* Put the descriptor where the output begins. false: not a file in which one can search. */
static bool seek_tail(struct tail *t, int fd)
{
	off_t begin = lseek(fd, 0, SEEK_CUR), end, to;
	struct stat st;

	if (begin < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || t->from_start)
		return false;
	end = st.st_size;
	if (end <= begin)
		return false; /* empty, or one of /proc that says so */
	if (t->bytes)
		to = end - begin > t->count ? end - (off_t)t->count : begin;
	else
		to = find_lines(t, fd, begin, end);
	return to >= 0 && lseek(fd, to, SEEK_SET) == to;
}

static int show(struct tail *t, int fd, const char *name)
{
	uint64_t copied = 0;
	struct sh_in in;
	int r, e = 0;

	put_header(t, name);
	if (seek_tail(t, fd)) {
		r = copy_rest(t, fd, &copied);
		e = errno;
	} else {
		shcmd_in_init(&in, t->io, fd);
		r = t->from_start ? from_number(t, &in) : last_of_stream(t, &in);
		e = in.err;
		shcmd_in_fini(&in);
	}
	if (r == -1)
		(void)shcmd_err(t->io, "error reading '%s': %s", pretty(name),
		    box_strerror(e)); /* status below */
	return r < 0 ? 1 : 0;
}

static void remember(struct tail *t, const char *name, int fd)
{
	struct followed *f = &t->files[t->files_n++];
	struct stat st;

	*f = (struct followed){ .name = name, .fd = fd };
	if (fd >= 0 && fstat(fd, &st) == 0) {
		f->dev = (uint64_t)st.st_dev;
		f->ino = (uint64_t)st.st_ino;
	}
}

/* Everything that came to f since the last look. false: the descriptor is of no more use. */
static bool follow_one(struct tail *t, struct followed *f)
{
	struct stat st;
	off_t at;
	uint64_t copied = 0;
	char probe;
	ssize_t n;

	if (f->fd < 0)
		return true;
	at = lseek(f->fd, 0, SEEK_CUR);
	if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && at > st.st_size) {
		(void)shcmd_err(t->io, "%s: file truncated", f->name); /* a notice, no failure */
		if (lseek(f->fd, 0, SEEK_SET) != 0)
			return false;
	}
	n = shcmd_read(t->io, f->fd, &probe, 1);
	if (n <= 0)
		return n == 0 && S_ISREG(st.st_mode); /* a pipe that ended stays ended */
	if (t->last_shown != f->name)
		put_header(t, f->name);
	shcmd_put(t->io, &probe, 1);
	return copy_rest(t, f->fd, &copied) == 0;
}

/* -F: the name may mean another file by now. */
static void follow_name(struct tail *t, struct followed *f)
{
	const char *path = shcmd_path(t->io, f->name);
	struct files_stat st;
	int fd;

	if (path == NULL || strcmp(f->name, "-") == 0)
		return;
	if (files_stat(t->io->files, path, true, &st) != 0) {
		if (f->fd >= 0 && files_error(t->io->files)->sys == ENOENT) {
			(void)shcmd_err(t->io, "'%s' has become inaccessible: %s", f->name,
			    files_error(t->io->files)->text); /* a notice, no failure */
			fd_drop(&f->fd);
		}
		return;
	}
	if (f->fd >= 0 && st.dev == f->dev && st.ino == f->ino)
		return;
	fd = shcmd_open_read(t->io, f->name);
	if (fd < 0)
		return;
	(void)shcmd_err(t->io,
	    f->fd >= 0 ? "'%s' has been replaced;  following new file"
	               : "'%s' has appeared;  following new file",
	    f->name); /* a notice, no failure */
	fd_drop(&f->fd);
	f->fd = fd;
	f->dev = st.dev;
	f->ino = st.ino;
}

static bool reader_gone(struct tail *t)
{
	struct pollfd p = { .fd = t->io->out->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void follow_all(struct tail *t)
{
	for (;;) {
		bool any = t->by_name;

		for (size_t i = 0; i < t->files_n; i++) {
			struct followed *f = &t->files[i];

			if (t->by_name)
				follow_name(t, f);
			if (!follow_one(t, f))
				fd_drop(&f->fd);
			any = any || f->fd >= 0;
		}
		if (shcmd_flush(t->io) != 0 || shcmd_out_dead(t->io) || !any || reader_gone(t) ||
		    shcmd_interrupted(t->io) || shcmd_sleep(t->io, t->interval_ns) != 0)
			return;
	}
}

static int tail_main(struct tail *t, char **names, int n)
{
	static char dash[] = "-";
	char *only[] = { dash, NULL };
	int status = 0;

	if (n == 0) {
		names = only;
		n = 1;
	}
	t->files = shcmd_alloc(t->io, (size_t)n, sizeof(*t->files));
	if (t->files == NULL)
		return 1;
	for (int i = 0; i < n && !shcmd_interrupted(t->io) && !shcmd_out_dead(t->io); i++) {
		int fd = text_open(t->io, names[i], TEXT_OPEN_READING);
		int r =
		    fd < 0 ? (t->io->last.why == FILES_BROKEN ? 125 : 1) : show(t, fd, names[i]);

		status = r > status ? r : status;
		if (status == 125) {
			fd_drop(&fd);
			break;
		}
		if (t->follow && (fd >= 0 || t->by_name))
			remember(t, names[i], fd);
		else
			fd_drop(&fd);
	}
	if (t->files_n != 0 && status != 125) {
		follow_all(t);
	} else if (t->follow && status != 125) {
		(void)shcmd_err(t->io, "no files remaining"); /* status 1 by the failed opens */
	}
	for (size_t i = 0; i < t->files_n; i++)
		fd_drop(&t->files[i].fd);
	return status;
}

static int parse_count(struct tail *t, const char *s, bool bytes)
{
	t->bytes = bytes;
	t->from_start = *s == '+';
	if (text_count(*s == '+' || *s == '-' ? s + 1 : s, &t->count))
		return 0;
	return shcmd_err(t->io, "invalid number of %s: '%s'", bytes ? "bytes" : "lines", s);
}

/* "-5", "-5f", "+3", "-20c" as the first of at most two arguments (POSIX 1992). */
static bool obsolete(struct tail *t, int argc, char **argv)
{
	char digits[24];
	const char *s = argv[1];
	size_t n;
	bool bytes = false, follow = false;

	if (argc < 2 || (s[0] != '-' && s[0] != '+') || argc > 3 ||
	    (argc == 3 && argv[2][0] == '-' && argv[2][1] != '\0'))
		return false;
	n = strspn(s + 1, "0123456789");
	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, s + 1, n);
	digits[n] = '\0';
	s += 1 + n;
	if (*s == 'b' || *s == 'c' || *s == 'l')
		bytes = *s++ != 'l';
	if (*s == 'f') {
		follow = true;
		s++;
	}
	if (*s != '\0')
		return false;
	t->bytes = bytes;
	t->follow = follow;
	t->from_start = argv[1][0] == '+';
	(void)text_count(digits, &t->count); /* digits only */
	if (argv[1][1 + n] == 'b' && __builtin_mul_overflow(t->count, 512, &t->count))
		t->count = INT64_MAX;
	return true;
}

/* "-s 0.5": seconds with a fraction. */
static int parse_interval(struct tail *t, const char *s)
{
	char *end;
	double v = strtod(s, &end); /* the "C" locale */

	if (end == s || *end != '\0' || !(v >= 0) || v > 1e9)
		return shcmd_err(t->io, "invalid number of seconds: '%s'", s);
	t->interval_ns = (int64_t)(v * 1e9);
	return 0;
}

enum { OPT_RETRY = 256, OPT_FOLLOW };

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'n', "lines", SH_OPT_REQUIRED },
		{ 'c', "bytes", SH_OPT_REQUIRED },
		{ 'q', "quiet", SH_OPT_NONE },
		{ 'q', "silent", SH_OPT_NONE },
		{ 'v', "verbose", SH_OPT_NONE },
		{ 'z', "zero-terminated", SH_OPT_NONE },
		{ 'f', NULL, SH_OPT_NONE },
		{ OPT_FOLLOW, "follow", SH_OPT_OPTIONAL },
		{ 'F', NULL, SH_OPT_NONE },
		{ OPT_RETRY, "retry", SH_OPT_NONE },
		{ 's', "sleep-interval", SH_OPT_REQUIRED },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct tail t = { .io = io, .count = 10, .delim = '\n', .interval_ns = NS_PER_SEC };
	int c, verbose = -1, shift = 0;

	if (obsolete(&t, argc, argv))
		shift = 1;
	struct sh_getopt g = { .argc = argc - shift, .argv = argv + shift, .opts = opts };

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'n':
		case 'c':
			if (parse_count(&t, g.arg, c == 'c') != 0)
				return 1;
			break;
		case 'z':
			t.delim = '\0';
			break;
		case 'F':
		case 'f':
		case OPT_FOLLOW:
			t.follow = true;
			t.by_name = c == 'F' || (g.arg != NULL && strcmp(g.arg, "name") == 0);
			if (g.arg != NULL && !t.by_name && strcmp(g.arg, "descriptor") != 0)
				return shcmd_usage_err(
				    io, "invalid argument '%s' for '--follow'", g.arg);
			break;
		case OPT_RETRY:
			break; /* -F retries; with -f it says nothing */
		case 's':
			if (parse_interval(&t, g.arg) != 0)
				return 1;
			break;
		default:
			verbose = c == 'v';
		}
	}
	t.headers = verbose >= 0 ? verbose : g.argc - g.i > 1;
	return tail_main(&t, g.argv + g.i, g.argc - g.i);
}

const struct sh_cmd sh_cmd_tail = {
	.name = "tail",
	.usage =
	    "tail [-qvzfF] [-n [+]LINES | -c [+]BYTES] [-s SECONDS] [FILE]...\n"
	    "  -n N  the last N lines (10); -n +N from line N on    -c  bytes instead of lines\n"
	    "  -f  follow the file    -F  follow the name    -q  no headers    -v  always "
	    "headers\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
