/* Actions to be decided. See ask.h. Fields come from workers that parse hostile input. */
#include "monitor/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

static const struct {
	const char *action, *type, *operation;
} fs_ops[] = {
	[FS_READ_CONTENT] = { "fs:read", "Box::FsReadOperation", "read_content" },
	[FS_READ_METADATA] = { "fs:read", "Box::FsReadOperation", "read_metadata" },
	[FS_ENUMERATE] = { "fs:read", "Box::FsReadOperation", "enumerate" },
	[FS_READ_LINK] = { "fs:read", "Box::FsReadOperation", "read_link" },
	[FS_CHANGE_DIR] = { "fs:read", "Box::FsReadOperation", "change_dir" },
	[FS_EXEC] = { "fs:read", "Box::FsReadOperation", "exec" },
	[FS_WRITE_CONTENT] = { "fs:write", "Box::FsWriteOperation", "write_content" },
	[FS_CREATE_DIR] = { "fs:write", "Box::FsWriteOperation", "create_dir" },
	[FS_SET_PERMISSIONS] = { "fs:write", "Box::FsWriteOperation", "set_permissions" },
	[FS_SYMLINK] = { "fs:write", "Box::FsWriteOperation", "symlink" },
	[FS_REMOVE_FILE] = { "fs:delete", "Box::FsDeleteOperation", "remove_file" },
	[FS_REMOVE_DIR] = { "fs:delete", "Box::FsDeleteOperation", "remove_dir" },
	[FS_RENAME] = { "fs:move", "Box::FsMoveOperation", "rename" },
};

static bool is_fs_op(enum mon_fs_op op)
{
	return op >= FS_READ_CONTENT && op <= FS_RENAME;
}

const char *ask_fs_operation(enum mon_fs_op op)
{
	return is_fs_op(op) ? fs_ops[op].operation : NULL;
}

const char *ask_fs_type(enum mon_fs_op op)
{
	return is_fs_op(op) ? fs_ops[op].type : NULL;
}

const char *ask_action(const struct ask *a)
{
	switch (a->kind) {
	case ASK_FS:
		return is_fs_op(a->op) ? fs_ops[a->op].action : "fs:other";
	case ASK_EXEC:
		return "shell:exec";
	case ASK_SPAWN:
		return "shell:spawn";
	case ASK_CONNECT:
		return "net:connect";
	case ASK_HTTP:
		return "http:request";
	}
	return "fs:other"; /* no such kind; a reserved action that no rule can permit */
}

const char *ask_category(const struct ask *a)
{
	switch (a->kind) {
	case ASK_FS:
		return "fs";
	case ASK_EXEC:
	case ASK_SPAWN:
		return "shell";
	case ASK_CONNECT:
		return "net";
	case ASK_HTTP:
		return "http";
	}
	return "fs"; /* as above */
}

static void put_target(const struct ask *a, struct buf *out, void (*put)(struct buf *, sv))
{
	switch (a->kind) {
	case ASK_FS:
		put(out, a->path);
		break;
	case ASK_EXEC:
		put(out, a->program);
		break;
	case ASK_SPAWN:
		put(out, a->program_path);
		break;
	case ASK_CONNECT:
	case ASK_HTTP:
		if (sv_find(a->host, ':') >=
		    0) { /* an IPv6 literal: brackets, or the port is unreadable */
			buf_put_byte(out, '[');
			put(out, a->host);
			buf_put_byte(out, ']');
		} else {
			put(out, a->host);
		}
		buf_putf(out, ":%u", a->port);
		if (a->kind == ASK_HTTP)
			put(out, a->path);
		break;
	}
}

void ask_put_target(const struct ask *a, struct buf *out)
{
	put_target(a, out, buf_put_sv);
}

void ask_put_target_escaped(const struct ask *a, struct buf *out)
{
	put_target(a, out, buf_put_escaped);
}

bool ask_read_command(struct rd *r, struct arena *arena, struct ask *a)
{
	a->command = rd_str(r, MON_TEXT_MAX);
	a->program = rd_str(r, MON_PATH_MAX);
	a->args_n = rd_u32(r);
	if (r->bad || a->args_n > MON_ARGS_MAX)
		return false;
	a->args = ARENA_VEC(arena, struct ask_arg, a->args_n);
	if (a->args == NULL)
		return false;
	for (uint32_t i = 0; i < a->args_n; i++) {
		a->args[i].literal = rd_u8(r) == 1;
		a->args[i].text = rd_str(r, MON_TEXT_MAX);
	}
	a->args_kept = a->args_n;
	a->cwd = rd_str(r, MON_PATH_MAX);
	return !r->bad;
}

/* Copy the bytes of *s to *at and point *s there. */
static void move_to(char **at, sv *s)
{
	if (s->n != 0)
		memcpy(*at, s->p, s->n);
	s->p = *at;
	*at += s->n;
}

struct ask *ask_dup(const struct ask *a)
{
	/* Events have the first two arguments; a program is started from all of them. */
	uint32_t keep = a->kind != ASK_SPAWN && a->args_n > 2 ? 2 : a->args_n;
	size_t head = sizeof(struct ask) + keep * sizeof(struct ask_arg);
	size_t bytes = a->path.n + a->command.n + a->program.n + a->program_path.n + a->cwd.n +
	               a->host.n + a->ip.n + a->method.n;
	struct ask *copy;
	char *at;

	for (uint32_t i = 0; i < keep; i++)
		bytes += a->args[i].text.n;
	/* Every view is bounded by the frame it came in and args_n by MON_ARGS_MAX: no overflow. */
	copy = malloc(head + bytes);
	if (copy == NULL)
		return NULL;
	*copy = *a;
	copy->args = (struct ask_arg *)(copy + 1);
	copy->args_kept = keep;
	at = (char *)copy + head;
	move_to(&at, &copy->path);
	move_to(&at, &copy->command);
	move_to(&at, &copy->program);
	move_to(&at, &copy->program_path);
	move_to(&at, &copy->cwd);
	move_to(&at, &copy->host);
	move_to(&at, &copy->ip);
	move_to(&at, &copy->method);
	for (uint32_t i = 0; i < keep; i++) {
		copy->args[i] = a->args[i];
		move_to(&at, &copy->args[i].text);
	}
	return copy;
}
