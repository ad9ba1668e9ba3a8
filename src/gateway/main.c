/* box-gateway: TLS and HTTP of everything that leaves the box. Started by the monitor with its
 * channel on MON_FD; confines itself before it reads a byte. Uses no environment variable and opens
 * no file. */
#include <event2/event.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "contain/worker.h"
#include "gateway/gw.h"
#include "monitor/proto.h"

#include "base/ban.h"

int main(void)
{
	struct box_err err = { 0 };
	struct rlimit files;
	struct event_base *base;
	struct gw *g;
	int status = 1;

	(void)clearenv();
	log_init("box-gateway", LOG_WARNING);
	(void)signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer connections otherwise */
	}
	if (worker_confine(WORKER_GATEWAY, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	base = event_base_new();
	g = base != NULL ? gw_new(base, MON_FD, clock_mono(), &err) : NULL;
	if (g == NULL) {
		log_error("cannot start: %s", err.msg);
	} else {
		(void)event_base_dispatch(base);
		status = gw_error(g)->code != BOX_OK;
		if (status != 0)
			log_error("%s", gw_error(g)->msg);
		gw_free(g);
	}
	if (base != NULL)
		event_base_free(base);
	return status;
}
