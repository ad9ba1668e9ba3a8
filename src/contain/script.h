/* script: the "#!" line of a file, as the kernel reads it (fs/binfmt_script.c): 256 bytes, one
 * interpreter, one argument. Internal to src/contain. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define SCRIPT_HOPS_MAX 5 /* as many as the kernel follows */

struct script {
	const char *interp;   /* absolute; NULL: not a script */
	const char *env_name; /* interpreter is …/env: the program it looks up; NULL otherwise */
};
/* Read the first line of a file. -1 with a message for a script whose interpreter is relative, or
 * when the file cannot be read. */
int script_read(const char *path, struct arena *a, struct script *out, struct box_err *err);
/* The same for the first bytes of a file; `path` is for messages. */
int script_parse(const char *path, const char *head, size_t n, struct arena *a, struct script *out,
    struct box_err *err);
