/* load: from the command line to a plan. */
#pragma once

#include "config/plan.h"
#include "monitor/monitor.h"

/* Read box.toml for this user and directory. *p is always safe to plan_fini. */
int monitor_load(const struct monitor_options *o, struct plan *p, struct box_err *err);
