/* date: the box has one time zone, UTC (no file of the host describes another); TZ=UTC0 and -u say
 * what is done anyway. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "shell/command.h"
#include "base/ban.h"

/* --- reading dates: -d --- */

struct when {
	const char *p;
	int64_t sec;
	long nsec;
};

static bool number(const char **p, int min_digits, int max_digits, int *out)
{
	int n = 0, v = 0;

	while (n < max_digits && isdigit((unsigned char)**p)) {
		v = v * 10 + (*(*p)++ - '0');
		n++;
	}
	*out = v;
	return n >= min_digits;
}

static int month(const char *s)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";

	for (int i = 0; i < 12; i++) {
		if (strncasecmp(s, names + 3 * i, 3) == 0)
			return i;
	}
	return -1;
}

static bool clock_text(const char **p, struct tm *tm, long *nsec)
{
	if (!number(p, 1, 2, &tm->tm_hour) || **p != ':')
		return false;
	(*p)++;
	if (!number(p, 2, 2, &tm->tm_min))
		return false;
	tm->tm_sec = 0;
	if (**p == ':') {
		(*p)++;
		if (!number(p, 2, 2, &tm->tm_sec))
			return false;
	}
	if (**p == '.' || **p == ',') {
		long unit = 100000000;

		*nsec = 0;
		for ((*p)++; isdigit((unsigned char)**p); (*p)++) {
			*nsec += (**p - '0') * unit;
			unit /= 10;
		}
	}
	while (**p == ' ')
		(*p)++;
	if (strncasecmp(*p, "am", 2) == 0 || strncasecmp(*p, "pm", 2) == 0) {
		tm->tm_hour = tm->tm_hour % 12 + (tolower((unsigned char)**p) == 'p' ? 12 : 0);
		*p += 2;
	}
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

static bool zone(const char **p, long *offset)
{
	int h, m = 0, sign;

	*offset = 0;
	if (strncasecmp(*p, "utc", 3) == 0 || strncasecmp(*p, "gmt", 3) == 0) {
		*p += 3;
		return true;
	}
	if ((**p == 'Z' || **p == 'z') && !isalpha((unsigned char)(*p)[1])) {
		(*p)++;
		return true;
	}
	if ((**p != '+' && **p != '-') || !isdigit((unsigned char)(*p)[1]))
		return false;
	sign = *(*p)++ == '-' ? -1 : 1;
	if (!number(p, 1, 2, &h))
		return false;
	if (**p == ':')
		(*p)++;
	(void)number(p, 0, 2, &m);
	*offset = sign * (h * 3600L + m * 60L);
	return true;
}

/* "3 days ago", "next week", "+2 hours": changes tm or the offset in seconds. */
static bool relative(const char **p, struct tm *tm, int64_t *add)
{
	static const struct {
		const char *name;
		int64_t sec;
		int months;
	} units[] = { { "second", 1, 0 }, { "sec", 1, 0 }, { "minute", 60, 0 }, { "min", 60, 0 },
		{ "hour", 3600, 0 }, { "day", 86400, 0 }, { "week", 604800, 0 },
		{ "fortnight", 1209600, 0 }, { "month", 0, 1 }, { "year", 0, 12 } };
	const char *q = *p;
	char *end;
	long n = 1, sign = 1;
	bool ago = false;

	if (strncasecmp(q, "next ", 5) == 0) {
		q += 5;
	} else if (strncasecmp(q, "last ", 5) == 0) {
		n = -1;
		q += 5;
	} else {
		if ((*q == '+' || *q == '-') && q[1] == ' ') {
			sign = *q == '-' ? -1 : 1;
			q += strspn(q + 1, " ") + 1;
		}
		n = strtol(q, &end, 10);
		if (end == q)
			n = 1;
		if (n > 100000000 || n < -100000000)
			return false;
		n *= sign;
		q = end != q ? end : q;
	}
	while (*q == ' ')
		q++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].name);

		if (strncasecmp(q, units[i].name, len) != 0)
			continue;
		q += len;
		if (*q == 's' || *q == 'S')
			q++;
		if (isalpha((unsigned char)*q))
			return false;
		while (*q == ' ')
			q++;
		if (strncasecmp(q, "ago", 3) == 0) {
			ago = true;
			q += 3;
		}
		if (ago)
			n = -n;
		/* Several of them may be added; a text is shorter than what add can hold. */
		*add += n * units[i].sec;
		n = tm->tm_mon + n * units[i].months;
		if (n > INT32_MAX || n < INT32_MIN)
			return false;
		tm->tm_mon = (int)n;
		*p = q;
		return true;
	}
	return false;
}

/* 2024-01-31, 2024/1/31, 01/31/2024, 20240131, 31 Jan 2024, Jan 31 2024. */
static bool day_text(const char **p, struct tm *tm)
{
	const char *q = *p;
	int a, b, c, m;

	if (isalpha((unsigned char)*q)) {
		m = month(q);
		if (m < 0)
			return false;
		while (isalpha((unsigned char)*q) || *q == '.')
			q++;
		while (*q == ' ')
			q++;
		if (!number(&q, 1, 2, &a))
			return false;
		tm->tm_mon = m;
		tm->tm_mday = a;
		while (*q == ' ' || *q == ',')
			q++;
		if (isdigit((unsigned char)*q)) {
			const char *r = q;

			if (number(&r, 4, 4, &a) && *r != ':') {
				tm->tm_year = a - 1900;
				q = r;
			}
		}
		*p = q;
		return true;
	}
	if (!number(&q, 1, 8, &a))
		return false;
	if (*q == '-' || *q == '/') {
		char sep = *q++;

		if (!number(&q, 1, 2, &b) || *q++ != sep || !number(&q, 1, 4, &c))
			return false;
		if (a > 31) {
			tm->tm_year = a - 1900;
			tm->tm_mon = b - 1;
			tm->tm_mday = c;
		} else {
			tm->tm_year = c - 1900;
			tm->tm_mon = a - 1;
			tm->tm_mday = b;
		}
	} else if (q - *p == 8) {
		tm->tm_year = a / 10000 - 1900;
		tm->tm_mon = a / 100 % 100 - 1;
		tm->tm_mday = a % 100;
	} else if (q - *p == 4) {
		tm->tm_year = a - 1900; /* a year behind the rest, as date itself prints it */
	} else {
		while (*q == ' ')
			q++;
		m = month(q);
		if (m < 0 || a > 31)
			return false;
		while (isalpha((unsigned char)*q))
			q++;
		while (*q == ' ')
			q++;
		tm->tm_mon = m;
		tm->tm_mday = a;
		if (number(&q, 4, 4, &c))
			tm->tm_year = c - 1900;
	}
	*p = q;
	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static bool word(const char **p, const char *w)
{
	size_t n = strlen(w);

	if (strncasecmp(*p, w, n) != 0 || isalpha((unsigned char)(*p)[n]))
		return false;
	*p += n;
	return true;
}

static bool weekday(const char **p)
{
	static const char names[] = "sunmontuewedthufrisat";

	for (int i = 0; i < 7; i++) {
		if (strncasecmp(*p, names + 3 * i, 3) == 0) {
			while (isalpha((unsigned char)**p))
				(*p)++;
			return true;
		}
	}
	return false;
}

static bool parse(const char *s, int64_t now, int64_t *sec, long *nsec)
{
	struct tm tm;
	time_t t = (time_t)now;
	int64_t add = 0;
	long offset = 0;
	const char *p = s;

	if (s[0] == '@') {
		char *end;

		*sec = strtoll(s + 1, &end, 10);
		return end != s + 1 && (*end == '\0' || *end == '.');
	}
	if (gmtime_r(&t, &tm) == NULL)
		return false;
	for (;;) {
		const char *q;

		while (*p == ' ' || *p == ',' || *p == '\t')
			p++;
		if (*p == '\0')
			break;
		q = p;
		if (word(&p, "now") || word(&p, "today"))
			continue;
		if (word(&p, "yesterday")) {
			add -= 86400;
			continue;
		}
		if (word(&p, "tomorrow")) {
			add += 86400;
			continue;
		}
		if (word(&p, "midnight")) {
			tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
			continue;
		}
		if (clock_text(&p, &tm, nsec)) {
			const char *z = p;

			while (*z == ' ')
				z++;
			if (zone(&z, &offset))
				p = z;
			continue;
		}
		p = q;
		if (relative(&p, &tm, &add))
			continue;
		p = q;
		if (zone(&p, &offset))
			continue;
		p = q;
		if (day_text(&p, &tm)) {
			if (strchr(s, ':') == NULL) {
				tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
				*nsec = 0;
			}
			if (*p == 'T')
				p++;
			continue;
		}
		p = q;
		if (weekday(&p))
			continue;
		return false;
	}
	t = timegm(&tm);
	*sec = (int64_t)t + add - offset;
	return true;
}

/* --- writing --- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_format(struct sh_io *io, const char *f, int64_t sec, long nsec)
{
	time_t t = (time_t)sec;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL)
		return;
	for (; *f != '\0'; f++) {
		char spec[16] = "%", text[256];
		size_t n = 1;

		if (*f != '%' || f[1] == '\0') {
			shcmd_putc(io, *f);
			continue;
		}
		f++;
		while (strchr("-_0^#:", *f) != NULL && *f != '\0' && n + 2 < sizeof(spec)) {
			if (*f != ':')
				spec[n++] = *f;
			f++;
		}
		if (*f >= '1' && *f <= '9') {
			int width = *f++ - '0';

			while (isdigit((unsigned char)*f))
				f++;
			if (*f == 'N') {
				char digits[12];

				(void)snprintf(digits, sizeof(digits), "%09ld", nsec);
				shcmd_put(io, digits, (size_t)(width > 9 ? 9 : width));
				continue;
			}
		}
		switch (*f) {
		case 'N':
			shcmd_printf(io, "%09ld", nsec);
			continue;
		case 'z':
			shcmd_puts(io, f[-1] == ':' ? "+00:00" : "+0000");
			continue;
		case 'Z':
			shcmd_puts(io, "UTC");
			continue;
		case 's':
			shcmd_printf(io, "%lld", (long long)sec);
			continue;
		case 'q':
			shcmd_printf(io, "%d", tm.tm_mon / 3 + 1);
			continue;
		case 'P':
			shcmd_puts(io, tm.tm_hour < 12 ? "am" : "pm");
			continue;
		case '\0':
			return;
		default:
			break;
		}
		if (strchr("aAbBcCdDeFgGhHIjklmMnprRStTuUVwWxXyY%", *f) == NULL) {
			shcmd_putc(io, '%');
			shcmd_putc(io, *f);
			continue;
		}
		spec[n++] = *f;
		spec[n] = '\0';
		n = strftime(text, sizeof(text), spec, &tm);
		shcmd_put(io, text, n);
	}
	shcmd_putc(io, '\n');
}
#pragma GCC diagnostic pop

static const char *iso_format(const char *what)
{
	static const struct {
		const char *name, *format;
	} t[] = { { "date", "%Y-%m-%d" }, { "hours", "%Y-%m-%dT%H%:z" },
		{ "minutes", "%Y-%m-%dT%H:%M%:z" }, { "seconds", "%Y-%m-%dT%H:%M:%S%:z" },
		{ "ns", "%Y-%m-%dT%H:%M:%S,%N%:z" } };

	if (what == NULL)
		return t[0].format;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		if (what[0] != '\0' && strncmp(t[i].name, what, strlen(what)) == 0)
			return t[i].format;
	}
	return NULL;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	enum { OPT_RFC3339 = 256 };
	static const struct sh_opt t[] = { { 'u', "utc", SH_OPT_NONE },
		{ 'u', "universal", SH_OPT_NONE }, { 'd', "date", SH_OPT_REQUIRED },
		{ 'r', "reference", SH_OPT_REQUIRED }, { 'I', "iso-8601", SH_OPT_OPTIONAL },
		{ 'R', "rfc-email", SH_OPT_NONE }, { OPT_RFC3339, "rfc-3339", SH_OPT_REQUIRED },
		{ 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	int64_t now = clock_now(&io->wall), sec = now / NS_PER_SEC;
	long nsec = (long)(now % NS_PER_SEC);
	const char *format = "%a %b %e %H:%M:%S UTC %Y";
	struct files_stat st;
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'u':
			break;
		case 'd':
			if (!parse(g.arg, now / NS_PER_SEC, &sec, &nsec))
				return shcmd_err(io, "invalid date '%s'", g.arg);
			if (strcasecmp(g.arg, "now") != 0)
				nsec = 0;
			break;
		case 'r':
			if (shcmd_path(io, g.arg) == NULL ||
			    files_stat(io->files, shcmd_path(io, g.arg), true, &st) != 0)
				return shcmd_files_err(io, g.arg, files_error(io->files));
			sec = st.mtime.tv_sec;
			nsec = st.mtime.tv_nsec;
			break;
		case 'I':
			format = iso_format(g.arg);
			if (format == NULL)
				return shcmd_err(
				    io, "invalid argument '%s' for '--iso-8601'", g.arg);
			break;
		case 'R':
			format = "%a, %d %b %Y %H:%M:%S %z";
			break;
		case OPT_RFC3339:
			format = strncmp(g.arg, "date", 4) == 0 ? "%Y-%m-%d"
			         : strcmp(g.arg, "ns") == 0     ? "%Y-%m-%d %H:%M:%S.%N%:z"
			                                        : "%Y-%m-%d %H:%M:%S%:z";
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (argc - g.i > 1)
		return shcmd_usage_err(io, "extra operand '%s'", argv[g.i + 1]);
	if (g.i < argc) {
		if (argv[g.i][0] != '+')
			return shcmd_err(
			    io, "invalid date '%s'; the clock cannot be set here", argv[g.i]);
		format = argv[g.i] + 1;
	}
	put_format(io, format, sec, nsec);
	return 0;
}

const struct sh_cmd sh_cmd_date = { "date",
	"date [-u] [-d TEXT | -r FILE] [-I[WHAT] | -R | --rfc-3339=WHAT | +FORMAT]\n",
	SHCMD_UTILITY, 1, run };
