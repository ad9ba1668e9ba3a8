/* The table of commands that run inside the shell, built from cmd_list.h. */
#include "shell/cmd_table.h"

#include <string.h>

#include "base/ban.h"

#define SH_CMD(id) extern const struct sh_cmd sh_cmd_##id;
#include "shell/cmd_list.h"
#undef SH_CMD

static const struct sh_cmd *const commands[] = {
#define SH_CMD(id) &sh_cmd_##id,
#include "shell/cmd_list.h"
#undef SH_CMD
	NULL
};

const struct sh_cmd *sh_cmd_find(const char *name)
{
	for (size_t i = 0; commands[i] != NULL; i++) {
		if (commands[i]->name[0] == name[0] && strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

const struct sh_cmd *const *sh_cmd_all(void)
{
	return commands;
}
