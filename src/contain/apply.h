/* apply: execute what spec.h describes. Used by box-launch for sandboxes and by worker_confine for
 * our own programs; the steps assume a fresh user and mount namespace with every capability in it,
 * and a single thread. Internal to src/contain and src/launch. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "contain/spec.h"

/* No mount event passes between this mount namespace and its parent any more. Part of apply_view.
 */
int apply_private(struct box_err *err);
/* Build the view in an empty tmpfs by executing ops in order, then make it the root (pivot_root)
 * and let the old one go. The working directory is "/" afterwards. tty_fd: descriptor of the
 * terminal for SANDBOX_CONSOLE, or -1. On -1 the process must exit. */
int apply_view(const struct sandbox_op *ops, size_t n, int tty_fd, struct box_err *err);
/* Put an empty read-only tmpfs over an existing directory of the present view; a directory that is
 * not there is fine. */
int apply_hide(const char *path, struct box_err *err);
/* Restrict this process and its children with Landlock to the rules, in the present view;
 * no_new_privs must be set. Abstract sockets and signals are scoped where the kernel can (ABI 6).
 */
int apply_landlock(const struct sandbox_rule *rules, size_t n, struct box_err *err);
