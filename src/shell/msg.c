/* Messages of the shell on descriptor 2. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "shell/shell.h"
#include "base/ban.h"

#define MSG_MAX 16384

__attribute__((format(printf, 1, 0))) static void vmsg(const char *fmt, va_list ap)
{
	AUTO_BUF b = buf_with(MSG_MAX);
	char text[4096];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	buf_put_c(&b, "strands-shell: ");
	/* The text may hold words of a script: no control byte but newline and tab reaches a
	 * terminal as it is. */
	for (int i = 0; i < n && i < (int)sizeof(text) - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			buf_putf(&b, "\\x%02x", c);
		else
			buf_put_byte(&b, c);
	}
	buf_put_byte(&b, '\n');
	if (buf_ok(&b))
		(void)fd_write_full(
		    2, b.p, b.n); /* a closed descriptor 2 is not an error of ours */
}

void sh_msg(struct shell *sh, const char *fmt, ...)
{
	va_list ap;

	(void)sh;
	va_start(ap, fmt);
	vmsg(fmt, ap);
	va_end(ap);
}

void sh_error(struct shell *sh, bool fatal, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmsg(fmt, ap);
	va_end(ap);
	/* As in bash, which leaves -c with 127 after a fatal expansion error. */
	if (fatal && status == 1 && (sh->opts & SH_O_COMMAND) != 0 && sh->subshell == 0)
		status = 127;
	sh->status = status;
	if (sh->flow != SH_FLOW_EXIT)
		sh->flow = fatal ? SH_FLOW_EXIT : SH_FLOW_ABORT;
}

int sh_files_msg(struct shell *sh, const char *what, const struct files_err *e)
{
	switch (e->why) {
	case FILES_BROKEN:
		sh_msg(sh, "effect interception failed: %s", e->text);
		return 125;
	case FILES_FLOOR:
		sh_msg(sh, "%s", e->text);
		return 1;
	case FILES_DENIED:
	case FILES_ERRNO:
	case FILES_OK:
		break;
	}
	sh_msg(sh, "%s: %s", what, e->text);
	return 1;
}
