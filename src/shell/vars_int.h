/* What the files of the variables share: vars.c, vars_array.c. See vars.h. */
#pragma once

#include "shell/vars.h"

/* The variable of this name in the innermost scope that has one, made where there is none. Never
 * NULL. */
struct sh_var *sh_var_make(struct shell *sh, const char *name);
/* -1 with a message when it is readonly, else 0. */
int sh_var_is_readonly(struct shell *sh, const struct sh_var *v);
/* The value as the attributes make it (integer, upper case, …); for += behind the old one. To be
 * freed; NULL after a message. */
char *sh_var_filtered(struct shell *sh, const struct sh_var *v, const char *value);
char *sh_var_appended(struct shell *sh, const struct sh_var *v, const char *old, const char *value);
