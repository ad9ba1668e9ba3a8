/* The client of whole-tree operations: operands out in as many frames as they need, notes in
 * until the end. See client.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "files/client_int.h"
#include "files/proto.h"
#include "base/ban.h"

#define ADD_BYTES ((size_t)100 * 1024)

static uint32_t flag_bits(const struct files_tree_opts *o)
{
	const struct {
		bool on;
		uint32_t bit;
	} map[] = {
		{ o->recursive, FILES_TF_RECURSIVE },
		{ o->force, FILES_TF_FORCE },
		{ o->dir, FILES_TF_DIR },
		{ o->preserve, FILES_TF_PRESERVE },
		{ o->no_clobber, FILES_TF_NO_CLOBBER },
		{ o->update, FILES_TF_UPDATE },
		{ o->no_deref, FILES_TF_NO_DEREF },
		{ o->target_is_dir, FILES_TF_TARGET_IS_DIR },
		{ o->one_file_system, FILES_TF_ONE_FS },

		{ o->verbose, FILES_TF_VERBOSE },
	};
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
		bits |= map[i].on ? map[i].bit : 0;
	return bits;
}

static int send_plan(struct files *f, const struct files_tree_opts *o, const char *const *src,
    size_t n, const char *dst)
{
	files_begin(f);
	buf_put_byte(&f->body, (uint8_t)o->op);
	buf_put_u32(&f->body, flag_bits(o));
	buf_put_u32(&f->body, (uint32_t)o->mode_set | (uint32_t)(o->mode_x_if_dir & 0111) << 16);
	buf_put_u32(&f->body, (uint32_t)o->mode_clear);
	if (dst == NULL)
		buf_put_str(&f->body, SV(""));
	else if (files_put_path(f, dst) != 0)
		return -1;
	if (files_send(f, FILES_TREE_BEGIN) != 0)
		return -1;
	for (size_t i = 0; i < n;) {
		uint16_t count = 0;

		files_begin(f);
		buf_put_u16(&f->body, 0); /* set below */
		for (; i < n && f->body.n < ADD_BYTES && count < UINT16_MAX; i++, count++)
			buf_put_str(&f->body, sv_c(src[i]));
		if (!buf_ok(&f->body))
			return files_fail_broken(f, "no memory for a request to the file service");
		f->body.p[0] = (uint8_t)(count >> 8);
		f->body.p[1] = (uint8_t)count;
		if (files_send(f, FILES_TREE_ADD) != 0)
			return -1;
	}
	files_begin(f);
	return files_send(f, FILES_TREE_GO);
}

/* "<as typed>/<below>". */
static void join_shown(struct buf *out, const char *shown, sv below)
{
	buf_clear(out);
	buf_put_c(out, shown);
	if (below.n != 0) {
		if (out->n != 0 && out->p[out->n - 1] != '/')
			buf_put_byte(out, '/');
		buf_put_sv(out, below);
	}
}

static int one_note(struct files *f, const char *const *shown, size_t n,
    void (*on)(void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e),
    void *arg, bool *failed)
{
	AUTO_BUF name = buf_with(IPC_BODY_MAX);
	struct files_err e = { 0 };
	uint8_t ev = rd_u8(&f->msg.body);
	uint32_t operand = rd_u32(&f->msg.body);
	sv below = rd_str(&f->msg.body, FILES_PATH_MAX);
	size_t index;
	bool bad = f->msg.body.bad || operand >= n || ev > FILES_TREE_ERROR;

	if (!bad) {
		join_shown(&name, shown[operand], below);
		if (ev == FILES_TREE_ERROR) {
			bad = files_read_fail(f, &f->msg.body, &e, &index) != 0;
		} else {
			e = (struct files_err){ FILES_OK, rd_u8(&f->msg.body) != 0, NULL, "" };
			bad = !rd_done(&f->msg.body);
		}
	}
	if (bad || buf_cstr(&name) == NULL)
		return files_fail_broken(f, "a malformed answer of the file service");
	if (ev == FILES_TREE_ERROR) {
		*failed = true;
		f->err = e;
	}
	on(arg, (enum files_tree_event)ev, buf_cstr(&name), &e);
	return 0;
}

int files_tree(struct files *f, const struct files_tree_opts *o, const char *const *src,
    const char *const *shown, size_t n, const char *dst,
    void (*on)(void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e),
    void *arg)
{
	bool failed = false;
	int t;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(src[i]);

		if (len == 0 || len >= FILES_PATH_MAX) {
			(void)files_fail_sys(f, len == 0 ? ENOENT : ENAMETOOLONG);
			on(arg, FILES_TREE_ERROR, shown[i], &f->err);
			return -1;
		}
	}
	if (n == 0)
		return 0;
	if (send_plan(f, o, src, n, dst) != 0) {
		on(arg, FILES_TREE_ERROR, shown[0], &f->err);
		return -1;
	}
	f->slow = true;
	while ((t = files_next(f)) == FILES_NOTE) {
		if (one_note(f, shown, n, on, arg, &failed) != 0) {
			t = -1;
			break;
		}
	}
	if (t >= 0 && t != FILES_DONE)
		t = files_fail_broken(f, "a malformed answer of the file service");
	if (t < 0) {
		on(arg, FILES_TREE_ERROR, shown[0], &f->err);
		return -1;
	}
	return failed ? -1 : 0;
}
