/* The frame that starts a box-dial: one name that [resolve] maps, no more (monitor/proto.h). */
#pragma once

#include "base/buf.h"

static inline void put_dial_start(struct buf *b, sv host, uint16_t port, sv ip, uint16_t at)
{
	buf_put_u32(b, 1);
	buf_put_str(b, host);
	buf_put_u16(b, port);
	buf_put_str(b, ip);
	buf_put_u16(b, at);
	buf_put_u32(b, 0);
	buf_put_u32(b, 0);
}
