/* Frames. See wire.h. */
#include "dogwood-cmd/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rd.h"
#include "engine/valjson.h"

#include "base/ban.h"

/* n bytes; 1, 0 at the end before the first byte or after a silence, -1 in the middle. */
static int get(int fd, uint8_t *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = recv(fd, p + got, n - got, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return got == 0 || r < 0 ? 0 : -1;
		got += (size_t)r;
	}
	return 1;
}

enum wire_got wire_read(int fd, struct buf *b, struct box_err *err)
{
	uint8_t head[4], *p;
	struct rd r = rd_of(head, sizeof(head));
	uint32_t n;
	int rc = get(fd, head, sizeof(head));

	if (rc == 0)
		return WIRE_CLOSED;
	n = rd_u32(&r);
	if (rc > 0 && n > WIRE_MAX) {
		(void)box_fail(err, BOX_EPARSE, 0, "frame of %u bytes exceeds the %zu-byte limit",
		    n, WIRE_MAX);
		return WIRE_BAD;
	}
	buf_clear(b);
	p = rc > 0 ? buf_room(b, (size_t)n + 1) : NULL;
	if (rc > 0 && p == NULL) {
		(void)box_nomem(err, "a frame");
		return WIRE_BAD;
	}
	if (rc < 0 || (n != 0 && get(fd, p, n) <= 0)) {
		(void)box_fail(
		    err, BOX_EPARSE, 0, "connection closed mid-frame (truncated request)");
		return WIRE_BAD;
	}
	b->n = n;
	return WIRE_FRAME;
}

static int put(int fd, const uint8_t *p, size_t n)
{
	while (n != 0) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int wire_write(int fd, const struct buf *b)
{
	uint8_t head[4] = { (uint8_t)(b->n >> 24), (uint8_t)(b->n >> 16), (uint8_t)(b->n >> 8),
		(uint8_t)b->n };

	if (!buf_ok(b) || b->n > WIRE_MAX)
		return -1;
	return put(fd, head, sizeof(head)) < 0 ? -1 : put(fd, b->p, b->n);
}

int wire_parse(struct arena *a, sv text, struct dw_val *out, struct box_err *err)
{
	if (eng_json_get(a, text, 0, out, err) < 0)
		return box_wrap(err, "malformed request");
	if (out->tag != DW_OBJECT)
		return box_fail(err, BOX_EPARSE, 0, "malformed request: not an object");
	return 0;
}

int wire_only(const struct dw_val *obj, const char *const *names, struct box_err *err)
{
	for (size_t i = 0; i < obj->u.obj.n; i++) {
		size_t k = 0;

		while (names[k] != NULL && !sv_eq(sv_c(names[k]), obj->u.obj.m[i].name))
			k++;
		if (names[k] == NULL)
			return box_fail(err, BOX_EPARSE, 0,
			    "malformed request: unknown field `" SV_FMT "`",
			    SV_ARG(sv_sub(obj->u.obj.m[i].name, 0, 100)));
	}
	return 0;
}

bool wire_str(const struct dw_val *obj, const char *name, sv *out)
{
	const struct dw_val *v = dw_get(obj, sv_c(name));

	*out = v != NULL && v->tag == DW_STRING ? v->u.s : (sv){ NULL, 0 };
	return v != NULL && v->tag == DW_STRING;
}

void wire_error(struct buf *b, const char *message)
{
	buf_clear(b);
	buf_put_c(b, "{\"status\":\"error\",\"message\":");
	buf_put_json(b, sv_c(message));
	buf_put_byte(b, '}');
}
