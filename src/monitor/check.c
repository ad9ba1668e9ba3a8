/* box check, and where the records are: the parts of a run that create nothing. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "monitor/monitor.h"
#include "monitor/policy.h"
#include "base/ban.h"
