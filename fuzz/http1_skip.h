/* What came to an origin, read back: the body behind a head. */
#pragma once

#include <stdlib.h>

#include "gateway/http1.h"

/* Skip the body that h announces at the front of *in. false: it goes on behind what is there. A
 * body of ours that does not read as one is a find. */
static inline bool http1_skip_body(const struct http1_head *h, sv *in)
{
	enum http1_step step;
	struct http1_body b;
	struct box_err err;
	size_t used;
	sv data;

	http1_body_init(&b, h);
	do {
		step = http1_body_step(&b, *in, &used, &data, &err);
		if (step == HTTP1_BAD)
			abort();
		*in = sv_sub(*in, used, in->n);
	} while (step == HTTP1_DATA || (step == HTTP1_MORE && used != 0));
	http1_body_fini(&b);
	return step != HTTP1_MORE;
}
