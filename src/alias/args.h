/* The command line of an alias: the part of sh, bash and zsh's options that callers use to run a
 * command or a script. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct alias_args {
	const char *text;    /* -c text, or "" */
	const char *script;  /* script file, or NULL */
	const char *zero;    /* $0 */
	char *const *params; /* positional parameters, NULL-terminated */
	uint32_t flags;      /* ALIAS_F_* */
};

extern const char alias_usage[];

/* Parse argv. Pointers borrow from argv. -1 with a message for an option that this box's shell does
 * not have. */
int alias_parse(int argc, char *const *argv, struct alias_args *a, struct box_err *err);
