/* find: -printf and -ls. See find.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/find.h"
#include "base/ban.h"

#define HALF_A_YEAR ((int64_t)31556952 / 2)

static char type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	case S_IFBLK:
		return 'b';
	case S_IFCHR:
		return 'c';
	}
	return 'U';
}

static uint32_t mode_of(const struct find_node *v)
{
	return v->has_stat ? v->st.mode : (uint32_t)v->type << 12; /* DTTOIF */
}

/* %Y: what a link leads to. */
static char target_letter(struct find *f, const struct find_node *v)
{
	struct files_stat st;

	if (!S_ISLNK(mode_of(v)))
		return type_letter(mode_of(v));
	if (files_stat(f->io->files, v->abs, true, &st) == 0)
		return type_letter(st.mode);
	switch (files_error(f->io->files)->sys) {
	case ENOENT:
	case ENOTDIR:
		return 'N';
	case ELOOP:
		return 'L';
	}
	return '?';
}

/* %Ak: one field of a time. */
static void put_time_field(struct buf *out, struct timespec t, char k)
{
	char format[3] = { '%', k, '\0' };

	switch (k) {
	case '@':
		buf_putf(out, "%lld.%09ld0", (long long)t.tv_sec, t.tv_nsec);
		break;
	case '+':
		shf_time(out, "%Y-%m-%d+%H:%M:%S.%N0", t);
		break;
	case 'S':
		shf_time(out, "%S.%N0", t);
		break;
	case 'T':
	case 'X':
		shf_time(out, "%H:%M:%S.%N0", t);
		break;
	default:
		shf_time(out, format, t);
	}
}

struct spec {
	bool left, zero, plus;
	int width, precision;
};

static void put_padded(struct buf *out, const struct spec *s, sv text, bool number)
{
	size_t width = s->width > 0 ? (size_t)s->width : 0;

	if (!number && s->precision >= 0)
		text = sv_sub(text, 0, (size_t)s->precision);
	for (size_t i = text.n; i < width && !s->left; i++)
		buf_put_byte(out, number && s->zero ? '0' : ' ');
	buf_put_sv(out, text);
	for (size_t i = text.n; i < width && s->left; i++)
		buf_put_byte(out, ' ');
}

static const char *parse_spec(const char *p, struct spec *s)
{
	*s = (struct spec){ .width = -1, .precision = -1 };
	for (;; p++) {
		if (*p == '-')
			s->left = true;
		else if (*p == '0')
			s->zero = true;
		else if (*p == '+')
			s->plus = true;
		else if (*p != ' ' && *p != '#')
			break;
	}
	if (*p >= '0' && *p <= '9')
		s->width = 0;
	for (; *p >= '0' && *p <= '9' && s->width < 4096; p++)
		s->width = s->width * 10 + (*p - '0');
	if (*p == '.') {
		s->precision = 0;
		for (p++; *p >= '0' && *p <= '9' && s->precision < 4096; p++)
			s->precision = s->precision * 10 + (*p - '0');
	}
	return p;
}

static sv below_start(const struct find_node *v)
{
	sv s = sv_sub(sv_c(v->path), strlen(v->start), SIZE_MAX);

	while (s.n != 0 && s.p[0] == '/')
		s = sv_sub(s, 1, s.n);
	return s;
}

static sv leading(const struct find_node *v)
{
	sv s = sv_c(v->path);
	ptrdiff_t cut;

	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	cut = sv_rfind(s, '/');
	if (cut < 0)
		return SV(".");
	return sv_sub(s, 0, (size_t)cut);
}

/* One directive: its text into t. false: unknown. *number says how it is padded. */
static bool field(struct find *f, const struct find_node *v, char c, struct buf *t, bool *number)
{
	const struct files_stat *st = &v->st;
	char text[64];

	*number = false;
	switch (c) {
	case 'p':
		buf_put_c(t, v->path);
		return true;
	case 'f':
		buf_put_sv(t, v->name);
		return true;
	case 'h':
		buf_put_sv(t, leading(v));
		return true;
	case 'H':
		buf_put_c(t, v->start);
		return true;
	case 'P':
		buf_put_sv(t, below_start(v));
		return true;
	case 'y':
		buf_put_byte(t, (uint8_t)type_letter(mode_of(v)));
		return true;
	case 'Y':
		buf_put_byte(t, (uint8_t)target_letter(f, v));
		return true;
	case 'M':
		shf_mode_text(st->mode, text);
		buf_put_c(t, text);
		return true;
	case 'u':
		shf_user(f->io, st->uid, text);
		buf_put_c(t, text);
		return true;
	case 'g':
		shf_group(f->io, st->gid, text);
		buf_put_c(t, text);
		return true;
	case 'l':
		if (S_ISLNK(mode_of(v)) && files_readlink(f->io->files, v->abs, t) != 0)
			f->status = shf_fail(f->io, "cannot read symbolic link", v->path);
		return true;
	case 't':
		shf_time(t, "%a %b %e %H:%M:%S.%N0 %Y", st->mtime);
		return true;
	case 'a':
		shf_time(t, "%a %b %e %H:%M:%S.%N0 %Y", st->atime);
		return true;
	case 'c':
		shf_time(t, "%a %b %e %H:%M:%S.%N0 %Y", st->ctime);
		return true;
	case 'F':
		buf_put_c(t, "unknown");
		return true;
	case 'Z':
		return true;
	}
	*number = true;
	switch (c) {
	case 's':
		buf_putf(t, "%llu", (unsigned long long)st->size);
		return true;
	case 'k':
		buf_putf(t, "%llu", (unsigned long long)shf_units(st->blocks, 2));
		return true;
	case 'b':
		buf_putf(t, "%llu", (unsigned long long)st->blocks);
		return true;
	case 'm':
		buf_putf(t, "%o", st->mode & 07777);
		return true;
	case 'n':
		buf_putf(t, "%llu", (unsigned long long)st->nlink);
		return true;
	case 'U':
		buf_putf(t, "%u", st->uid);
		return true;
	case 'G':
		buf_putf(t, "%u", st->gid);
		return true;
	case 'i':
		buf_putf(t, "%llu", (unsigned long long)st->ino);
		return true;
	case 'd':
		buf_putf(t, "%lld", (long long)v->depth);
		return true;
	case 'D':
		buf_putf(t, "%llu", (unsigned long long)st->dev);
		return true;
	case 'S':
		buf_putf(
		    t, "%g", st->size == 0 ? 1.0 : (double)st->blocks * 512.0 / (double)st->size);
		return true;
	}
	return false;
}

static const char *put_escape(struct buf *out, const char *s, bool *stop)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	const char *at = *s != '\0' ? strchr(from, *s) : NULL;
	unsigned v = 0;

	if (at != NULL) {
		buf_put_byte(out, (uint8_t)to[at - from]);
		return s + 1;
	}
	if (*s == 'c') {
		*stop = true;
		return s + 1;
	}
	if (*s < '0' || *s > '7') {
		buf_put_byte(out, '\\');
		return s;
	}
	for (int i = 0; i < 3 && *s >= '0' && *s <= '7'; i++)
		v = v * 8 + (unsigned)(*s++ - '0');
	buf_put_byte(out, (uint8_t)v);
	return s;
}

void find_printf(struct find *f, const struct find_node *v, const char *s)
{
	AUTO_BUF out = buf_with((size_t)1 << 20);
	bool stop = false;

	while (*s != '\0' && !stop) {
		AUTO_BUF t = buf_with((size_t)1 << 17);
		const char *begin = s;
		struct spec spec;
		bool number = false;

		if (*s == '\\') {
			s = put_escape(&out, s + 1, &stop);
			continue;
		}
		if (*s != '%') {
			buf_put_byte(&out, (uint8_t)*s++);
			continue;
		}
		s = parse_spec(s + 1, &spec);
		if (*s == '%') {
			buf_put_byte(&out, '%');
			s++;
		} else if ((*s == 'T' || *s == 'A' || *s == 'C') && s[1] != '\0') {
			put_time_field(&t,
			    *s == 'T'   ? v->st.mtime
			    : *s == 'A' ? v->st.atime
			                : v->st.ctime,
			    s[1]);
			put_padded(&out, &spec, buf_sv(&t), false);
			s += 2;
		} else if (*s != '\0' && field(f, v, *s, &t, &number)) {
			put_padded(&out, &spec, buf_sv(&t), number);
			s++;
		} else {
			buf_put(&out, begin, (size_t)(s - begin)); /* unknown: as it stands */
		}
	}
	shcmd_put(f->io, out.p, out.n);
}

void find_ls(struct find *f, const struct find_node *v)
{
	const struct files_stat *st = &v->st;
	AUTO_BUF when = buf_with(64);
	char mode[11], user[64], group[64];
	int64_t now = clock_now(&f->io->wall) / NS_PER_SEC;
	bool recent = st->mtime.tv_sec > now - HALF_A_YEAR && st->mtime.tv_sec <= now;

	shf_mode_text(st->mode, mode);
	shf_user(f->io, st->uid, user);
	shf_group(f->io, st->gid, group);
	shf_time(&when, recent ? "%b %e %H:%M" : "%b %e  %Y", st->mtime);
	shcmd_printf(f->io, "%9llu %6llu %s %3llu %-8s %-8s %8llu %s %s",
	    (unsigned long long)st->ino, (unsigned long long)shf_units(st->blocks, 2), mode,
	    (unsigned long long)st->nlink, user, group, (unsigned long long)st->size,
	    buf_cstr(&when), v->path);
	if (S_ISLNK(st->mode)) {
		AUTO_BUF text = buf_with(SHCMD_PATH_MAX);

		if (files_readlink(f->io->files, v->abs, &text) == 0)
			shcmd_printf(f->io, " -> %s", buf_cstr(&text));
	}
	shcmd_putc(f->io, '\n');
}
