/* test: the primaries that `test`, `[` and `[[ ]]` share. */
#pragma once

#include "shell/shell.h"

/* -x ARG. 1 true, 0 false. */
int sh_test_unary(struct shell *sh, char op, const char *arg);
bool sh_test_is_unary(const char *s);
bool sh_test_is_binary(const char *s);
/* a OP b without patterns: 1, 0, or -1 after a message (not a number). name prefixes messages;
 * arith: numbers are expressions ([[ ]]). */
int sh_test_binary(
    struct shell *sh, const char *name, const char *a, const char *op, const char *b, bool arith);
