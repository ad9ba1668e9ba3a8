/* box-dial: resolves names and connects to decided addresses. Started by the monitor with its
 * channel on MON_FD; confines itself before it reads a byte. Knows no policy and reads no protocol
 * but our frames. */
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "contain/worker.h"
#include "dial/dial.h"

#include "base/ban.h"

int main(void)
{
	struct box_err err = { 0 };
	struct event_base *base;
	struct dial *d;
	int status = 1;

	(void)clearenv(); /* RES_OPTIONS, LOCALDOMAIN, HOSTALIASES and the like */
	log_init("box-dial", LOG_WARNING);
	(void)signal(SIGPIPE, SIG_IGN);
	if (worker_confine(WORKER_DIAL, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	base = event_base_new();
	d = base != NULL ? dial_new(base, MON_FD, resolver_system, NULL, &err) : NULL;
	if (d == NULL) {
		log_error("cannot start: %s", err.msg);
		return 1;
	}
	(void)event_base_dispatch(base);
	status = dial_error(d)->code != BOX_OK;
	if (status != 0)
		log_error("%s", dial_error(d)->msg);
	/* A lookup may hang for half a minute; nothing of it is worth waiting for. */
	_exit(status);
}
