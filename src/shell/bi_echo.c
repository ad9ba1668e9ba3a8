/* echo and printf (POSIX; bash's options and conversions). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shell/escape.h"
#include "shell/pattern.h"
#include "shell/shell.h"
#include "base/ban.h"

static int run_echo(struct sh_io *io, int argc, char **argv)
{
	bool newline = true, escapes = (io->sh->shopts & SH_S_XPG_ECHO) != 0;
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strspn(argv[i] + 1, "neE") != strlen(argv[i] + 1))
			break;
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'n')
				newline = false;
			else
				escapes = *c == 'e';
		}
	}
	for (int k = i; k < argc; k++) {
		if (k != i)
			shcmd_putc(io, ' ');
		if (escapes && strchr(argv[k], '\\') != NULL) {
			AUTO_BUF b = buf_with(SH_EXPAND_MAX);
			bool more = sh_unescape(&b, sv_c(argv[k]), SH_ESC_ECHO);

			shcmd_put(io, b.p, b.n);
			if (!more)
				return 0;
		} else {
			shcmd_puts(io, argv[k]);
		}
	}
	if (newline)
		shcmd_putc(io, '\n');
	return 0;
}

const struct sh_cmd sh_cmd_echo = { "echo", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 1, run_echo };

/* --- printf --- */

struct pf {
	struct sh_io *io;
	struct buf *out;
	char **arg;
	int n, i;
	bool stop, bad;
	bool used; /* a conversion took an argument */
};

struct spec {
	char flags[8];
	int width, prec; /* -1: none */
	char conv;
};

static const char *next(struct pf *p)
{
	p->used = true;
	return p->i < p->n ? p->arg[p->i++] : NULL;
}

static void pad(struct pf *p, const struct spec *s, sv text)
{
	size_t len = sh_utf8_len(text), width = s->width > 0 ? (size_t)s->width : 0;
	bool left = strchr(s->flags, '-') != NULL;

	for (size_t i = len; !left && i < width; i++)
		buf_put_byte(p->out, ' ');
	buf_put_sv(p->out, text);
	for (size_t i = len; left && i < width; i++)
		buf_put_byte(p->out, ' ');
}

/* At most prec characters. */
static sv cut(sv text, int prec)
{
	size_t n = 0;
	uint32_t c;

	if (prec < 0)
		return text;
	for (int i = 0; i < prec && n < text.n; i++)
		n += sh_utf8_step(sv_sub(text, n, text.n), &c);
	return sv_sub(text, 0, n);
}

/* An integer argument: decimal, 0x, 0, or 'c for a character's code. Bad ones count as far as they
 * go and give status 1. */
static int64_t integer(struct pf *p, bool is_unsigned)
{
	const char *a = next(p);
	char *end;
	int64_t v;
	uint32_t c;

	if (a == NULL)
		return 0;
	if (*a == '\'' || *a == '"') {
		if (a[1] == '\0')
			return 0;
		(void)sh_utf8_step(sv_c(a + 1), &c);
		return c;
	}
	while (*a == ' ' || *a == '\t' || *a == '\n')
		a++;
	if (*a == '\0')
		return 0;
	errno = 0;
	if (is_unsigned && *a != '-')
		v = (int64_t)strtoull(a, &end, 0);
	else
		v = strtoll(a, &end, 0);
	if (errno == ERANGE) {
		(void)shcmd_err(p->io, "%s: Numerical result out of range", a);
		p->bad = true;
	} else if (end == a || *end != '\0') {
		(void)shcmd_err(p->io, "%s: invalid number", a);
		p->bad = true;
	}
	return v;
}

static long double real(struct pf *p)
{
	const char *a = next(p);
	char *end;
	long double v;
	uint32_t c;

	if (a == NULL)
		return 0;
	if (*a == '\'' || *a == '"') {
		if (a[1] == '\0')
			return 0;
		(void)sh_utf8_step(sv_c(a + 1), &c);
		return c;
	}
	v = strtold(a, &end);
	if (end == a || *end != '\0') {
		(void)shcmd_err(p->io, "%s: invalid number", a);
		p->bad = true;
	}
	return v;
}

/* Rebuild "%<flags><width>.<prec><len><conv>" for the C library: every piece of it was checked. */
static void c_format(char *fmt, size_t n, const struct spec *s, const char *len)
{
	char w[16] = "", pr[16] = "";

	if (s->width >= 0)
		(void)snprintf(w, sizeof(w), "%d", s->width);
	if (s->prec >= 0)
		(void)snprintf(pr, sizeof(pr), ".%d", s->prec);
	(void)snprintf(fmt, n, "%%%s%s%s%s%c", s->flags, w, pr, len, s->conv);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number(struct pf *p, struct spec *s)
{
	char fmt[64];
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	char *text;
	int n;

	(void)b;
	if (strchr("diouxX", s->conv) != NULL) {
		c_format(fmt, sizeof(fmt), s, "ll");
		if (s->conv == 'd' || s->conv == 'i')
			n = asprintf(&text, fmt, (long long)integer(p, false));
		else
			n = asprintf(&text, fmt, (unsigned long long)integer(p, true));
	} else {
		c_format(fmt, sizeof(fmt), s, "L");
		n = asprintf(&text, fmt, real(p));
	}
	if (n < 0)
		sh_no_memory();
	buf_put(p->out, text, (size_t)n);
	free(text);
}

static void put_time(struct pf *p, const struct spec *s, sv format)
{
	const char *a = next(p);
	int64_t now = clock_now(&p->io->wall) / NS_PER_SEC, t = now;
	char text[1024], *fmt = sh_adup(p->io->arena, format);
	struct tm tm;
	time_t tt;
	size_t n;

	if (a != NULL && !sv_to_i64(sv_c(a), 10, INT64_MIN, INT64_MAX, &t)) {
		(void)shcmd_err(p->io, "%s: invalid number", a);
		p->bad = true;
		return;
	}
	if (t == -1 || t == -2)
		t = now;
	tt = (time_t)t;
	if (gmtime_r(&tt, &tm) == NULL)
		return;
	n = strftime(text, sizeof(text), format.n != 0 ? fmt : "%X", &tm);
	pad(p, s, (sv){ text, n });
}
#pragma GCC diagnostic pop

static void number_arg(struct pf *p, int *out)
{
	int64_t v = integer(p, false);

	*out = v > 65536 ? 65536 : v < -65536 ? -65536 : (int)v;
}

/* Flags, width and precision at f[*i]. false: too long to be meant. */
static bool parse_spec(struct pf *p, sv f, size_t *i, struct spec *s)
{
	size_t nf = 0;

	*s = (struct spec){ .width = -1, .prec = -1 };
	while (*i < f.n && strchr("-+ #0", f.p[*i]) != NULL) {
		if (strchr(s->flags, f.p[*i]) == NULL && nf + 1 < sizeof(s->flags))
			s->flags[nf++] = f.p[*i];
		(*i)++;
	}
	if (*i < f.n && f.p[*i] == '*') {
		number_arg(p, &s->width);
		if (s->width < 0) {
			s->width = -s->width;
			if (strchr(s->flags, '-') == NULL && nf + 1 < sizeof(s->flags))
				s->flags[nf++] = '-';
		}
		(*i)++;
	} else {
		for (; *i < f.n && f.p[*i] >= '0' && f.p[*i] <= '9'; (*i)++) {
			s->width = (s->width < 0 ? 0 : s->width) * 10 + (f.p[*i] - '0');
			if (s->width > 1 << 20)
				return false;
		}
	}
	if (*i < f.n && f.p[*i] == '.') {
		(*i)++;
		s->prec = 0;
		if (*i < f.n && f.p[*i] == '*') {
			number_arg(p, &s->prec);
			(*i)++;
		} else {
			for (; *i < f.n && f.p[*i] >= '0' && f.p[*i] <= '9'; (*i)++) {
				s->prec = s->prec * 10 + (f.p[*i] - '0');
				if (s->prec > 1 << 20)
					return false;
			}
		}
	}
	while (*i < f.n && strchr("hlLqjzt", f.p[*i]) != NULL && f.p[*i] != 'q')
		(*i)++;
	return true;
}

static void conversion(struct pf *p, sv f, size_t *i)
{
	struct spec s;
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	const char *a;

	if (!parse_spec(p, f, i, &s) || *i >= f.n) {
		(void)shcmd_err(p->io, "`%%': missing format character");
		p->bad = p->stop = true;
		return;
	}
	s.conv = f.p[(*i)++];
	switch (s.conv) {
	case '%':
		buf_put_byte(p->out, '%');
		break;
	case 's':
		a = next(p);
		pad(p, &s, cut(sv_c(a), s.prec));
		break;
	case 'q':
	case 'Q':
		a = next(p);
		sh_quote_backslash(&b, sv_c(a != NULL ? a : ""));
		pad(p, &s, buf_sv(&b));
		break;
	case 'b':
		a = next(p);
		if (!sh_unescape(&b, sv_c(a), SH_ESC_PRINTF_B))
			p->stop = true;
		pad(p, &s, cut(buf_sv(&b), s.prec));
		break;
	case 'c':
		a = next(p);
		pad(p, &s, sv_sub(sv_c(a), 0, 1));
		break;
	case '(': {
		ptrdiff_t e = sv_find_sv(sv_sub(f, *i, f.n), SV(")T"));

		if (e < 0) {
			(void)shcmd_err(p->io, "`%%(': invalid format");
			p->bad = p->stop = true;
			break;
		}
		put_time(p, &s, sv_sub(f, *i, (size_t)e));
		*i += (size_t)e + 2;
		break;
	}
	case 'd':
	case 'i':
	case 'o':
	case 'u':
	case 'x':
	case 'X':
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		put_number(p, &s);
		break;
	default:
		(void)shcmd_err(p->io, "`%c': invalid format character", s.conv);
		p->bad = p->stop = true;
		break;
	}
}

/* One pass over the format. */
static void pass(struct pf *p, sv f)
{
	for (size_t i = 0; i < f.n && !p->stop;) {
		size_t k = i;

		if (f.p[i] == '%') {
			i++;
			conversion(p, f, &i);
			continue;
		}
		while (k < f.n && f.p[k] != '%')
			k += f.p[k] == '\\' && k + 1 < f.n ? 2 : 1;
		if (k > f.n)
			k = f.n;
		(void)sh_unescape(p->out, sv_sub(f, i, k - i), SH_ESC_PRINTF);
		i = k;
	}
}

static int run_printf(struct sh_io *io, int argc, char **argv)
{
	AUTO_BUF out = buf_with(SH_EXPAND_MAX);
	struct pf p = { .io = io, .out = &out };
	const char *var = NULL;
	int i = 1;

	if (argc > 2 && strcmp(argv[1], "-v") == 0) {
		var = argv[2];
		i = 3;
	} else if (argc > 1 && strncmp(argv[1], "-v", 2) == 0 && argv[1][2] != '\0') {
		var = argv[1] + 2;
		i = 2;
	}
	if (i < argc && strcmp(argv[i], "--") == 0) {
		i++;
	} else if (i < argc && argv[i][0] == '-' && argv[i][1] != '\0' && i == 1 &&
	           argv[i][1] != '%') {
		/* bash takes an unknown option as an error; a lone "-text" format is rare */
		if (argv[i][2] == '\0') {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
	}
	if (i >= argc) {
		(void)shcmd_err(io, "usage: printf [-v var] format [arguments]");
		return 2;
	}
	p.arg = argv + i + 1;
	p.n = argc - i - 1;
	do {
		p.used = false;
		pass(&p, sv_c(argv[i]));
		if (!buf_ok(&out))
			return shcmd_err(io, "output too large");
		if (var == NULL) {
			shcmd_put(io, out.p, out.n);
			buf_clear(&out);
		}
	} while (!p.stop && p.i < p.n && p.used && !shcmd_out_dead(io));
	if (var != NULL) {
		const char *text = buf_cstr(&out);

		if (text == NULL || sh_assign_text(io->sh, var, text) != 0)
			return 2;
	}
	return p.bad ? 1 : 0;
}

const struct sh_cmd sh_cmd_printf = { "printf", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 2,
	run_printf };
