/* What the file commands share. See fileutil.h. */
#include "shell/fileutil.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ban.h"

/* --- messages --- */

int shf_fail_err(struct sh_io *io, const char *what, const char *arg, const struct files_err *e)
{
	if (e->why != FILES_ERRNO)
		return shcmd_files_err(io, arg, e);
	return shcmd_err(io, "%s '%s': %s", what, arg, e->text);
}

int shf_fail(struct sh_io *io, const char *what, const char *arg)
{
	return shf_fail_err(io, what, arg, files_error(io->files));
}

int shf_fail_named(struct sh_io *io, const char *what, const char *arg, const struct files_err *e)
{
	if (e->why == FILES_DENIED || e->why == FILES_FLOOR)
		return shcmd_err(io, "%s: %s", arg, e->text);
	return shf_fail_err(io, what, arg, e);
}

const char *shf_path(struct sh_io *io, const char *what, const char *arg)
{
	const char *p = shcmd_path(io, arg);

	if (p == NULL)
		(void)shcmd_err(io, "%s '%s': %s", what, arg, box_strerror(ENAMETOOLONG));
	return p;
}

bool shf_confirm(struct sh_io *io, const char *fmt, ...)
{
	char text[2 * SHCMD_PATH_MAX], c, first = 0;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)shcmd_flush(io);
	sh_out_put(io->err, io->name, strlen(io->name));
	sh_out_put(io->err, ": ", 2);
	sh_out_put(io->err, text, strlen(text));
	(void)sh_out_flush(io->err);
	/* A byte at a time: what follows the line belongs to others. */
	while (io->in >= 0 && shcmd_read(io, io->in, &c, 1) == 1 && c != '\n') {
		if (first == 0)
			first = c;
	}
	return first == 'y' || first == 'Y';
}

/* --- numbers and names --- */

void shf_mode_text(uint32_t mode, char out[11])
{
	static const char types[] = "?pc?d?b?-?l?s???";
	static const char bits[] = "rwxrwxrwx";

	out[0] = types[mode >> 12 & 15];
	for (int i = 0; i < 9; i++)
		out[1 + i] = (mode & (0400u >> i)) != 0 ? bits[i] : '-';
	if ((mode & S_ISUID) != 0)
		out[3] = (mode & S_IXUSR) != 0 ? 's' : 'S';
	if ((mode & S_ISGID) != 0)
		out[6] = (mode & S_IXGRP) != 0 ? 's' : 'S';
	if ((mode & S_ISVTX) != 0)
		out[9] = (mode & S_IXOTH) != 0 ? 't' : 'T';
	out[10] = '\0';
}

const char *shf_type_name(uint32_t mode, uint64_t size)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return size == 0 ? "regular empty file" : "regular file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symbolic link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "character special file";
	case S_IFBLK:
		return "block special file";
	}
	return "weird file";
}

void shf_human(uint64_t n, bool si, char out[24])
{
	static const char units[] = "KMGTPE";
	uint64_t base = si ? 1000 : 1024, div = 1;
	int u = -1;

	while (n / div >= base && u < 5) {
		div *= base;
		u++;
	}
	if (u < 0) {
		(void)snprintf(out, 24, "%llu", (unsigned long long)n);
		return;
	}
	/* Rounded up, as GNU does: 1.1K for 1025 bytes. */
	uint64_t whole = n / div, rest = n % div;
	uint64_t tenths =
	    whole * 10 + (rest != 0 ? (uint64_t)(((__uint128_t)rest * 10 + div - 1) / div) : 0);

	if (tenths >= 100) {
		whole += rest != 0;
		if (whole >= base && u < 5) {
			u++;
			(void)snprintf(out, 24, "1.0%c", si && u == 0 ? 'k' : units[u]);
			return;
		}
		(void)snprintf(
		    out, 24, "%llu%c", (unsigned long long)whole, si && u == 0 ? 'k' : units[u]);
	} else {
		(void)snprintf(out, 24, "%llu.%llu%c", (unsigned long long)tenths / 10,
		    (unsigned long long)tenths % 10, si && u == 0 ? 'k' : units[u]);
	}
}

uint64_t shf_units(uint64_t bytes, uint64_t unit)
{
	return bytes / unit + (bytes % unit != 0);
}

bool shf_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGTPE";
	size_t digits = strspn(s, "0123456789");
	const char *u, *suffix = s + digits;
	uint64_t n = 1, base = 1024;

	if (digits != 0 && !sv_to_u64((sv){ s, digits }, 10, UINT64_MAX, &n))
		return false;
	if (*suffix != '\0') {
		char c = *suffix == 'k' ? 'K' : *suffix;

		u = strchr(units, c);
		if (u == NULL)
			return false;
		suffix++;
		if (strcmp(suffix, "B") == 0)
			base = 1000;
		else if (*suffix != '\0' && strcmp(suffix, "iB") != 0)
			return false;
		for (const char *k = units; k <= u; k++) {
			if (__builtin_mul_overflow(n, base, &n))
				return false;
		}
	} else if (digits == 0) {
		return false;
	}
	*out = n;
	return n != 0;
}

/* There is no user database in the box's shell; the names that matter are root's and our own. */
static void name_of(struct sh_io *io, uint32_t id, uint32_t own, char out[64])
{
	const char *user = shcmd_env(io, "USER");

	if (id == 0)
		(void)snprintf(out, 64, "root");
	else if (id == own && user != NULL && user[0] != '\0' && strlen(user) < 64)
		(void)snprintf(out, 64, "%s", user);
	else
		(void)snprintf(out, 64, "%u", id);
}

void shf_user(struct sh_io *io, uint32_t uid, char out[64])
{
	name_of(io, uid, geteuid(), out);
}

void shf_group(struct sh_io *io, uint32_t gid, char out[64])
{
	name_of(io, gid, getegid(), out);
}

/* --- times --- */

void shf_time(struct buf *out, const char *format, struct timespec t)
{
	struct tm tm;
	char piece[512];

	if (gmtime_r(&t.tv_sec, &tm) == NULL) {
		buf_putf(out, "%lld", (long long)t.tv_sec);
		return;
	}
	while (*format != '\0') {
		const char *pct = strchr(format, '%');
		size_t n = pct != NULL ? (size_t)(pct - format) : strlen(format);
		char spec[4] = "%", c;

		buf_put(out, format, n);
		format += n;
		if (*format == '\0')
			break;
		c = format[1];
		if (c == '\0') {
			buf_put_byte(out, '%');
			break;
		}
		format += 2;
		if (c == 'N') {
			buf_putf(out, "%09ld", t.tv_nsec);
		} else if (c == 's') {
			buf_putf(out, "%lld", (long long)t.tv_sec);
		} else if (c == 'z') {
			buf_put_c(out, "+0000");
		} else if (c == 'Z') {
			buf_put_c(out, "UTC");
		} else {
			spec[1] = c;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			n = strftime(piece, sizeof(piece), spec, &tm);
#pragma GCC diagnostic pop
			buf_put(out, piece, n);
		}
	}
}

static bool parse_iso(const char *s, struct timespec *out)
{
	struct tm tm = { 0 };
	int n = 0, year, mon, day, hour = 0, min = 0, sec = 0;
	long frac = 0;

	if (sscanf(s, "%4d-%2d-%2d%n", &year, &mon, &day, &n) != 3)
		return false;
	s += n;
	if (*s == 'T' || (*s == ' ' && s[1] >= '0' && s[1] <= '9')) {
		if (sscanf(++s, "%2d:%2d%n", &hour, &min, &n) != 2)
			return false;
		s += n;
		if (*s == ':') {
			if (sscanf(++s, "%2d%n", &sec, &n) != 1)
				return false;
			s += n;
		}
		if (*s == '.') {
			long unit = 100000000;

			for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
				frac += (*s - '0') * unit;
		}
	}
	if (strcmp(s, "Z") != 0 && strcmp(s, " UTC") != 0 && strcmp(s, " +0000") != 0 && *s != '\0')
		return false;
	if (mon < 1 || mon > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || min < 0 ||
	    min > 59 || sec < 0 || sec > 60)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = mon - 1;
	tm.tm_mday = day;
	tm.tm_hour = hour;
	tm.tm_min = min;
	tm.tm_sec = sec;
	out->tv_sec = timegm(&tm);
	out->tv_nsec = frac;
	return true;
}

/* "3 days ago", "2 hours", "-1 day": seconds from now. */
static bool parse_relative(const char *s, int64_t *seconds)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = { { "sec", 1 }, { "second", 1 }, { "min", 60 }, { "minute", 60 },
		{ "hour", 3600 }, { "day", 86400 }, { "week", 604800 } };
	char unit[16] = "", tail[8] = "";
	long long n;
	size_t len;

	if (sscanf(s, "%lld %15[a-z] %7[a-z]", &n, unit, tail) < 2 || n > INT32_MAX ||
	    n < INT32_MIN)
		return false;
	len = strlen(unit);
	if (len > 1 && unit[len - 1] == 's')
		unit[len - 1] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(unit, units[i].name) == 0) {
			*seconds = n * units[i].seconds * (strcmp(tail, "ago") == 0 ? -1 : 1);
			return tail[0] == '\0' || strcmp(tail, "ago") == 0;
		}
	}
	return false;
}

bool shf_parse_time(struct sh_io *io, const char *s, struct timespec *out)
{
	int64_t now = clock_now(&io->wall), off;
	static const struct {
		const char *name;
		int64_t days;
	} words[] = { { "now", 0 }, { "today", 0 }, { "yesterday", -1 }, { "tomorrow", 1 } };

	if (s[0] == '@') {
		int64_t v;

		if (!sv_to_i64(sv_c(s + 1), 10, INT64_MIN / 2, INT64_MAX / 2, &v))
			return false;
		*out = (struct timespec){ v, 0 };
		return true;
	}
	*out = (struct timespec){ now / NS_PER_SEC, now % NS_PER_SEC };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(s, words[i].name) == 0) {
			out->tv_sec += words[i].days * 86400;
			return true;
		}
	}
	if (parse_relative(s, &off)) {
		out->tv_sec += off;
		return true;
	}
	return parse_iso(s, out);
}

/* --- paths --- */

sv shf_base(const char *path)
{
	size_t n = strlen(path);
	ptrdiff_t cut;

	while (n > 1 && path[n - 1] == '/')
		n--;
	cut = sv_rfind((sv){ path, n }, '/');
	if (n == 1 && path[0] == '/')
		return (sv){ path, 1 };
	return (sv){ path + cut + 1, n - (size_t)(cut + 1) };
}

const char *shf_join(struct arena *a, const char *dir, sv name)
{
	size_t n = strlen(dir);

	return arena_printf(
	    a, "%s%s" SV_FMT, dir, n != 0 && dir[n - 1] != '/' ? "/" : "", SV_ARG(name));
}

char *shf_strip(struct sh_io *io, const char *arg)
{
	size_t n = strlen(arg);
	char *s = shcmd_alloc(io, n + 1, 1);

	if (s == NULL)
		return NULL;
	while (n > 1 && arg[n - 1] == '/')
		n--;
	memcpy(s, arg, n);
	return s;
}

/* --- listings --- */

static void on_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	struct shf_list *l = arg;

	if (l->n == l->cap) {
		size_t cap = l->cap != 0 ? l->cap * 2 : 32;
		struct shf_entry *p = arena_grow(l->a, l->v, l->n, cap, sizeof(struct shf_entry));

		if (p == NULL) {
			l->full = true;
			return;
		}
		l->v = p;
		l->cap = cap;
	}
	l->v[l->n] = (struct shf_entry){
		.name = arena_dup(l->a, sv_c(e->name)).p, .type = e->type, .has_stat = st != NULL
	};
	if (st != NULL)
		l->v[l->n].st = *st;
	if (l->v[l->n].name == NULL)
		l->full = true;
	else
		l->n++;
}

int shf_list(
    struct sh_io *io, struct arena *a, const char *path, bool stat_entries, struct shf_list *l)
{
	*l = (struct shf_list){ .a = a };
	if (files_list(io->files, path, stat_entries, on_entry, l) != 0)
		return -1;
	if (l->full)
		(void)shcmd_err(io, "%s: %s", path, box_strerror(ENOMEM));
	return 0;
}
