/* escape: backslash sequences of $'...', echo and printf; and quoting text so that the shell reads
 * it back. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum sh_esc {
	SH_ESC_ANSI_C,  /* $'...': \nnn \xHH \uHHHH \cX \e \' \" \? */
	SH_ESC_ECHO,    /* echo -e: \0nnn \xHH \e, \c ends all output */
	SH_ESC_PRINTF,  /* a printf format: \nnn \xHH \e */
	SH_ESC_PRINTF_B /* %b: \0nnn \nnn, \c ends all output */
};

/* Append text with its sequences replaced. false: \c was met, nothing more is to be printed. */
bool sh_unescape(struct buf *out, sv text, enum sh_esc mode);
/* Append text so that the shell reads it back as one word: as it is when that is safe, else in
 * single quotes, or $'...' with control bytes when ansi. */
void sh_quote(struct buf *out, sv text, bool ansi);
/* printf %q and ${x@Q}: backslashes where bash puts them. */
void sh_quote_backslash(struct buf *out, sv text);
