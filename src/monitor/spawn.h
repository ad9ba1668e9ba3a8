/* spawn: what a decision about a host program says about itself. The shell that asks parses hostile
 * text and is taken to be hostile: policy judges the file that will run, under a name that leads to
 * it, and the words it will get. */
#pragma once

#include "base/arena.h"
#include "monitor/ask.h"

/* Make the fields of an ASK_SPAWN true. file: canonical, absolute path of the program (program_path
 * without "~"); home: what "~" stands for; path_var: the operator's PATH. program  stays as typed
 * when it leads to file: a name with a slash from cwd, a bare name through path_var. Any other name
 * (a link in a folder that the agent put on its PATH, a lie) becomes program_path. command  is
 * built anew from program and the arguments, quoted like the shell does. false without memory, or
 * when the text is longer than a frame holds: refuse. */
bool spawn_settle(struct ask *a, struct arena *arena, sv file, sv home, sv path_var);

/* argv[0] of the program, from a settled question: programs that are several (busybox) choose by
 * it, so it is what was decided. .p NULL: no memory. */
sv spawn_argv0(const struct ask *a, struct arena *arena, sv home);

/* "~/x" back to the path it stands for; anything else as it is. .p NULL: no memory. */
sv spawn_expand_home(struct arena *arena, sv path, sv home);
