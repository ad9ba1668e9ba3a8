/* Diagnostics on stderr. See log.h. Each line is one write(2), so that lines of several processes
 * do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ban.h"

static const char *log_prefix = "box";
static enum log_level log_max = LOG_INFO;
static bool log_colour;

bool log_colour_on(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) == 1 && (no == NULL || *no == '\0') &&
	       (term == NULL || strcmp(term, "dumb") != 0);
}

void log_init(const char *prefix, enum log_level level)
{
	log_prefix = prefix;
	log_max = level;
	log_colour = log_colour_on(STDERR_FILENO);
}

static void __attribute__((format(printf, 3, 0)))
emit(const char *colour, const char *word, const char *fmt, va_list ap)
{
	char line[4096];
	int n = 0, m;

	n = log_colour && colour != NULL
	        ? snprintf(line, sizeof(line), "%s: %s%s\033[0m", log_prefix, colour, word)
	        : snprintf(line, sizeof(line), "%s: %s", log_prefix, word);
	if (n < 0 || (size_t)n >= sizeof(line) - 2)
		return;
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	if (m < 0)
		return;
	n = (size_t)m >= sizeof(line) - (size_t)n - 1 ? (int)sizeof(line) - 2 : n + m;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* stderr is gone; there is nobody to tell */
}

void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(NULL, "", fmt, ap);
	va_end(ap);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("\033[31m", "error: ", fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	if (log_max < LOG_WARNING)
		return;
	va_start(ap, fmt);
	emit("\033[33m", "warning: ", fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (log_max < LOG_DEBUG)
		return;
	va_start(ap, fmt);
	emit(NULL, "debug: ", fmt, ap);
	va_end(ap);
}
