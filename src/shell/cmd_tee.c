/* tee: every file is decided and opened before the first byte is read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/command.h"
#include "base/ban.h"

#define FILES_MAX 128

struct target {
	const char *name;
	int fd;
	bool failed;
};

/* Open what box-files must decide together, and what is a descriptor of our own. 0, or a status
 * after a message; *n counts the targets. */
static int open_all(struct sh_io *io, char **names, int count, int flags, struct target *t, int *n)
{
	struct files_open_req req[FILES_MAX];
	int fds[FILES_MAX], slot[FILES_MAX];
	size_t m = 0, bad = 0;
	int r = 0;

	for (int i = 0; i < count; i++) {
		int fd = shcmd_open_special(io, names[i]);
		const char *path;

		if (fd == -1) {
			r = shcmd_open_err(io, names[i]);
			continue;
		}
		t[*n] = (struct target){ .name = names[i], .fd = fd };
		if (fd == -2) {
			path = shcmd_path(io, names[i]);
			if (path == NULL) {
				r = shcmd_open_err(io, names[i]);
				continue;
			}
			slot[m] = *n;
			req[m++] = (struct files_open_req){ path, flags, 0666 & ~io->umask };
		}
		(*n)++;
	}
	while (m != 0 && files_open_all(io->files, req, m, fds, &bad) != 0) {
		int k = bad < m ? (int)bad : 0;

		r = shcmd_files_err(io, t[slot[k]].name, files_error(io->files));
		t[slot[k]].failed = true;
		t[slot[k]].fd = -1;
		if (r == 125)
			return r;
		/* As POSIX has it, the others are written all the same. */
		m--;
		memmove(&req[k], &req[k + 1], (m - (size_t)k) * sizeof(req[0]));
		memmove(&slot[k], &slot[k + 1], (m - (size_t)k) * sizeof(slot[0]));
	}
	for (size_t i = 0; i < m; i++)
		t[slot[i]].fd = fds[i];
	return r;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = { { 'a', "append", SH_OPT_NONE },
		{ 'i', "ignore-interrupts", SH_OPT_NONE }, { 'p', NULL, SH_OPT_NONE }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct target *t;
	bool append = false;
	struct sh_in in;
	sv chunk;
	int o, r, n = 0, got;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (o == SH_OPT_HELP)
			return 0;
		if (o == SH_OPT_ERROR)
			return shcmd_bad_option(io, &g);
		append = append || o == 'a';
	}
	if (argc - g.i > FILES_MAX)
		return shcmd_err(io, "more than %d files", FILES_MAX);
	t = shcmd_alloc(io, FILES_MAX, sizeof(*t));
	if (t == NULL)
		return 1;
	r = open_all(
	    io, argv + g.i, argc - g.i, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), t, &n);
	if (r == 125)
		return r;
	shcmd_in_init(&in, io, 0);
	while ((got = shcmd_getchunk(&in, &chunk)) > 0) {
		if (!shcmd_out_dead(io)) {
			shcmd_put(io, chunk.p, chunk.n);
			(void)shcmd_flush(io);
		}
		for (int i = 0; i < n; i++) {
			if (t[i].fd >= 0 && !t[i].failed &&
			    fd_write_full(t[i].fd, chunk.p, chunk.n) != 0) {
				r = shcmd_err(io, "%s: %s", t[i].name, box_strerror(errno));
				t[i].failed = true;
			}
		}
	}
	if (got < 0)
		r = shcmd_err(io, "read error: %s", box_strerror(in.err));
	shcmd_in_fini(&in);
	for (int i = 0; i < n; i++)
		fd_drop(&t[i].fd);
	return r;
}

const struct sh_cmd sh_cmd_tee = { "tee",
	"tee [-a] [FILE]...\n  -a append to the files instead of overwriting them\n", SHCMD_UTILITY,
	1, run };
