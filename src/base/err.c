/* Error values. See err.h. No allocation, no global state. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/ban.h"

const char *box_strerror(int sys)
{
	/* strerrordesc_np returns a constant string and is thread-safe (glibc 2.32). */
	const char *s = strerrordesc_np(sys);

	return s != NULL ? s : "unknown error";
}

static void cut_mark(char *msg, size_t cap)
{
	memcpy(msg + cap - 4, "...", 4);
}

int box_vfail(struct box_err *err, enum box_code code, int sys, const char *fmt, va_list ap)
{
	char text[BOX_ERR_MSG_MAX];
	int n;

	if (err == NULL)
		return -1;
	/* The arguments may point into err->msg itself, so the text is built beside it. */
	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(text)) {
		cut_mark(text, sizeof(text));
	} else if (sys != 0) {
		int m = snprintf(text + n, sizeof(text) - (size_t)n, ": %s", box_strerror(sys));

		if (m > 0 && (size_t)m >= sizeof(text) - (size_t)n)
			cut_mark(text, sizeof(text));
	}
	memcpy(err->msg, text, sizeof(text));
	err->code = code;
	err->sys = sys;
	return -1;
}

int box_fail(struct box_err *err, enum box_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)box_vfail(err, code, sys, fmt, ap); /* always -1 */
	va_end(ap);
	return -1;
}

int box_wrap(struct box_err *err, const char *fmt, ...)
{
	char text[BOX_ERR_MSG_MAX];
	va_list ap;
	int n, m;

	if (err == NULL)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(text))
		n = (int)sizeof(text) - 1;
	m = snprintf(text + n, sizeof(text) - (size_t)n, ": %s", err->msg);
	if (m > 0 && (size_t)m >= sizeof(text) - (size_t)n)
		cut_mark(text, sizeof(text));
	memcpy(err->msg, text, sizeof(text));
	return -1;
}

int box_nomem(struct box_err *err, const char *what)
{
	return box_fail(err, BOX_ENOMEM, 0, "out of memory for %s", what);
}
