/* cmd_table: find an in-process command by name. */
#pragma once

#include "shell/command.h"

/* The command of that exact name, or NULL. */
const struct sh_cmd *sh_cmd_find(const char *name);
/* All of them, NULL-terminated. */
const struct sh_cmd *const *sh_cmd_all(void);
