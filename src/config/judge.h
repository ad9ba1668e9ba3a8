/* Private to src/config: the parts of config_judge. */
#pragma once

#include "config/keys.h"

/* program.c: command[0] -> program, program_route, interpreters (1.3). */
int judge_program(struct cfg *c, struct plan_process *proc);
/* grants.c: every entry of the filesystem lists (1.4, 1.5), and the implied denials. */
int judge_grants(struct cfg *c, struct plan_process *proc);
