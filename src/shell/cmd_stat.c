/* stat. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum { OPT_PRINTF = 256 };

static const struct sh_opt opts[] = {
	{ 'c', "format", SH_OPT_REQUIRED },
	{ OPT_PRINTF, "printf", SH_OPT_REQUIRED },
	{ 'L', "dereference", SH_OPT_NONE },
	{ 't', "terse", SH_OPT_NONE },
	{ 0 },
};

#define DEFAULT_HEAD                                                                               \
	"  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\n"                             \
	"Device: %Hd,%Ld\tInode: %-11i Links: "
#define DEFAULT_TAIL                                                                               \
	"\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n"                              \
	"Access: %x\nModify: %y\nChange: %z\n Birth: %w\n"
#define TERSE "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"

struct object {
	struct sh_io *io;
	const char *arg;
	const char *path;
	struct files_stat st;
	bool bare; /* the default form: names without quotes where they need none */
};

/* The flags, width and precision between % and the letter, for text and numbers alike. */
struct spec {
	char flags[8];
	int width, precision;
	char part; /* H or L of %Hd */
};

static const char *parse_spec(const char *s, struct spec *p)
{
	size_t n = strspn(s, "#-+ 0'");

	*p = (struct spec){ .width = -1, .precision = -1 };
	memcpy(p->flags, s, n < sizeof(p->flags) ? n : sizeof(p->flags) - 1);
	s += n;
	if (*s >= '0' && *s <= '9') {
		p->width = 0;
		for (; *s >= '0' && *s <= '9' && p->width < 4096; s++)
			p->width = p->width * 10 + (*s - '0');
	}
	if (*s == '.') {
		p->precision = 0;
		for (s++; *s >= '0' && *s <= '9' && p->precision < 4096; s++)
			p->precision = p->precision * 10 + (*s - '0');
	}
	if ((*s == 'H' || *s == 'L') && (s[1] == 'd' || s[1] == 'r'))
		p->part = *s++;
	return s;
}

static void pad(struct buf *out, const struct spec *p, const char *text, bool number)
{
	size_t n = strlen(text);
	size_t width = p->width > 0 ? (size_t)p->width : 0;
	bool left = strchr(p->flags, '-') != NULL;
	bool zero = number && !left && strchr(p->flags, '0') != NULL;

	if (!number && p->precision >= 0 && (size_t)p->precision < n)
		n = (size_t)p->precision;
	for (size_t i = n; !left && i < width; i++)
		buf_put_byte(out, zero ? '0' : ' ');
	buf_put(out, text, n);
	for (size_t i = n; left && i < width; i++)
		buf_put_byte(out, ' ');
}

static void put_num(struct buf *out, const struct spec *p, const char *fmt, uint64_t v)
{
	AUTO_BUF b = buf_with(64);

	if (strcmp(fmt, "o") == 0)
		buf_putf(
		    &b, strchr(p->flags, '#') != NULL ? "0%llo" : "%llo", (unsigned long long)v);
	else if (strcmp(fmt, "x") == 0)
		buf_putf(
		    &b, strchr(p->flags, '#') != NULL ? "0x%llx" : "%llx", (unsigned long long)v);
	else
		buf_putf(&b, "%llu", (unsigned long long)v);
	pad(out, p, buf_cstr(&b), true);
}

static void put_when(struct buf *out, const struct spec *p, struct timespec t, bool seconds)
{
	AUTO_BUF b = buf_with(128);

	if (seconds) {
		buf_putf(&b, "%lld", (long long)t.tv_sec);
		if (p->precision > 0) {
			AUTO_BUF ns = buf_with(16);

			buf_putf(&ns, "%09ld", t.tv_nsec);
			buf_put_byte(&b, '.');
			buf_put(&b, ns.p, p->precision < 9 ? (size_t)p->precision : 9);
		}
	} else {
		shf_time(&b, "%Y-%m-%d %H:%M:%S.%N %z", t);
	}
	pad(out, p, buf_cstr(&b), false);
}

static void put_quoted(struct buf *out, const struct object *o, sv name)
{
	bool plain = o->bare && name.n != 0;

	for (size_t i = 0; i < name.n && plain; i++) {
		unsigned char c = (unsigned char)name.p[i];

		plain = c >= 0x80 ||
		        (c > ' ' && c < 0x7f && strchr("\"'`$&*()[]{}|;<>?!\\~#=^", c) == NULL);
	}
	if (!plain)
		buf_put_byte(out, '\'');
	buf_put_sv(out, name);
	if (!plain)
		buf_put_byte(out, '\'');
}

/* %N: the name in quotes, with what a link says. */
static int put_quoted_name(struct buf *out, const struct spec *p, struct object *o)
{
	AUTO_BUF b = buf_with(4 * SHCMD_PATH_MAX);

	put_quoted(&b, o, sv_c(o->arg));
	if (S_ISLNK(o->st.mode)) {
		AUTO_BUF text = buf_with(SHCMD_PATH_MAX);

		if (files_readlink(o->io->files, o->path, &text) != 0)
			return shf_fail(o->io, "cannot read symbolic link", o->arg);
		buf_put_c(&b, " -> ");
		put_quoted(&b, o, buf_sv(&text));
	}
	pad(out, p, buf_cstr(&b) != NULL ? buf_cstr(&b) : "", false);
	return 0;
}

static int put_field(struct buf *out, const struct spec *p, char c, struct object *o)
{
	const struct files_stat *st = &o->st;
	char text[64];

	switch (c) {
	case 'a':
		put_num(out, p, "o", st->mode & 07777);
		return 0;
	case 'A':
		shf_mode_text(st->mode, text);
		pad(out, p, text, false);
		return 0;
	case 'b':
		put_num(out, p, "u", st->blocks);
		return 0;
	case 'B':
		put_num(out, p, "u", 512);
		return 0;
	case 'd':
		put_num(out, p, "u",
		    p->part == 'H'   ? major(st->dev)
		    : p->part == 'L' ? minor(st->dev)
		                     : st->dev);
		return 0;
	case 'D':
		put_num(out, p, "x", st->dev);
		return 0;
	case 'f':
		put_num(out, p, "x", st->mode);
		return 0;
	case 'F':
		pad(out, p, shf_type_name(st->mode, st->size), false);
		return 0;
	case 'g':
		put_num(out, p, "u", st->gid);
		return 0;
	case 'G':
		shf_group(o->io, st->gid, text);
		pad(out, p, text, false);
		return 0;
	case 'h':
		put_num(out, p, "u", st->nlink);
		return 0;
	case 'i':
		put_num(out, p, "u", st->ino);
		return 0;
	case 'n':
		pad(out, p, o->arg, false);
		return 0;
	case 'N':
		return put_quoted_name(out, p, o);
	case 'o':
		put_num(out, p, "u", st->blksize);
		return 0;
	case 'r':
		put_num(out, p, "u",
		    p->part == 'H'   ? major(st->rdev)
		    : p->part == 'L' ? minor(st->rdev)
		                     : st->rdev);
		return 0;
	case 's':
		put_num(out, p, "u", st->size);
		return 0;
	case 't':
		put_num(out, p, "x", major(st->rdev));
		return 0;
	case 'T':
		put_num(out, p, "x", minor(st->rdev));
		return 0;
	case 'u':
		put_num(out, p, "u", st->uid);
		return 0;
	case 'U':
		shf_user(o->io, st->uid, text);
		pad(out, p, text, false);
		return 0;
	case 'w':
		pad(out, p, "-", false); /* box-files does not tell the time of birth */
		return 0;
	case 'W':
		put_num(out, p, "u", 0);
		return 0;
	case 'x':
	case 'X':
		put_when(out, p, st->atime, c == 'X');
		return 0;
	case 'y':
	case 'Y':
		put_when(out, p, st->mtime, c == 'Y');
		return 0;
	case 'z':
	case 'Z':
		put_when(out, p, st->ctime, c == 'Z');
		return 0;
	default:
		buf_put_byte(out, '?');
		return 0;
	}
}

/* One backslash sequence of --printf. Returns where it ends. */
static const char *put_escape(struct buf *out, const char *s)
{
	static const char from[] = "abfnrtv\\\"", to[] = "\a\b\f\n\r\t\v\\\"";
	const char *at = *s != '\0' ? strchr(from, *s) : NULL;

	if (at != NULL) {
		buf_put_byte(out, (uint8_t)to[at - from]);
		return s + 1;
	}
	if (*s >= '0' && *s <= '7') {
		unsigned v = 0;

		for (int i = 0; i < 3 && *s >= '0' && *s <= '7'; i++)
			v = v * 8 + (unsigned)(*s++ - '0');
		buf_put_byte(out, (uint8_t)v);
		return s;
	}
	buf_put_byte(out, '\\');
	return s;
}

static int put_format(struct object *o, const char *f, bool escapes)
{
	AUTO_BUF out = buf_with((size_t)1 << 20);

	while (*f != '\0') {
		struct spec p;

		if (escapes && *f == '\\') {
			f = put_escape(&out, f + 1);
			continue;
		}
		if (*f != '%') {
			buf_put_byte(&out, (uint8_t)*f++);
			continue;
		}
		if (*++f == '%') {
			buf_put_byte(&out, (uint8_t)*f++);
			continue;
		}
		f = parse_spec(f, &p);
		if (*f == '\0') {
			buf_put_byte(&out, '%');
			break;
		}
		if (put_field(&out, &p, *f++, o) != 0)
			return 1;
	}
	if (!escapes)
		buf_put_byte(&out, '\n');
	if (!buf_ok(&out))
		return shcmd_err(o->io, "%s: %s", o->arg, box_strerror(ENOMEM));
	shcmd_put(o->io, out.p, out.n);
	return 0;
}

static int put_default(struct object *o)
{
	bool device = S_ISCHR(o->st.mode) || S_ISBLK(o->st.mode);

	o->bare = true;
	if (put_format(o, device ? DEFAULT_HEAD "%-5h Device type: %Hr,%Lr" : DEFAULT_HEAD "%h",
	        true) != 0)
		return 1;
	return put_format(o, DEFAULT_TAIL, true);
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	bool follow = false, escapes = false;
	const char *format = NULL;
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'c':
			format = g.arg;
			escapes = false;
			break;
		case OPT_PRINTF:
			format = g.arg;
			escapes = true;
			break;
		case 'L':
			follow = true;
			break;
		case 't':
			format = TERSE;
			escapes = true;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	for (int i = g.i; i < argc; i++) {
		struct object o = { .io = io, .arg = argv[i] };
		int r;

		o.path = argv[i][0] != '\0' ? shf_path(io, "cannot statx", argv[i]) : "";
		if (o.path == NULL)
			r = 1;
		else if (files_stat(io->files, o.path, follow, &o.st) != 0)
			r = shf_fail(io, "cannot statx", argv[i]);
		else
			r = format != NULL ? put_format(&o, format, escapes) : put_default(&o);
		if (r != 0)
			status = r;
	}
	return status;
}

const struct sh_cmd sh_cmd_stat = {
	.name = "stat",
	.usage =
	    "stat [-Lt] [-c FORMAT | --printf=FORMAT] FILE...\n"
	    "  %a %A %b %B %d %D %f %F %g %G %h %i %n %N %o %s %t %T %u %U %x %X %y %Y %z %Z\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
