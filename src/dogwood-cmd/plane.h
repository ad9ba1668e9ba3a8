/* plane: what a server answers. The data plane takes events and nothing else; the control plane
 * changes policies and never takes an event. A request is one JSON object, the answer another;
 * neither knows about sockets. */
#pragma once

#include <dogwood/dogwood.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/sv.h"

struct plane {
	dogwood_engine *engine;
	const uid_t *control_uids; /* for `status` */
	size_t n_control_uids;
};

/* Answer one request into out. false: it was malformed, and the connection must end after the
 * answer. */
bool plane_data(const struct plane *p, sv request, struct buf *out);
bool plane_control(const struct plane *p, sv request, struct buf *out);
