/* policy: the engine of one run: opened over <BD>/private/history, with Box's schema and the
 * operator's rules installed. */
#pragma once

#include "monitor/internal.h"

/* Open the store and install the policy of the plan (no policy: deny everything). On refusal the
 * findings are printed with carets, and err holds "policy file <path> will not load: <first
 * finding>". Sets m->engine and records policy_installed or policy_refused. text receives the
 * policy's source. */
#define POLICY_MAX ((size_t)4 << 20)
int policy_open(struct monitor *m, struct buf *text, struct box_err *err);
/* Print the findings of a policy that loaded. */
void policy_print_warnings(struct monitor *m);
void policy_close(struct monitor *m);
/* The same checks without a store. */
int policy_check(const struct plan *p, struct box_err *err);
