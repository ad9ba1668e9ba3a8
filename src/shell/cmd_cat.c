/* cat */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/command.h"
#include "base/ban.h"

struct cat {
	struct sh_io *io;
	bool number, nonblank, ends, tabs, nonprinting, squeeze;
	uint64_t line;
	bool mid_line;   /* the last byte written was no newline */
	unsigned blanks; /* empty lines in a row */
};

/* One byte in the notation of -v. */
static void visible(struct cat *c, unsigned char b)
{
	if (b >= 128) {
		shcmd_puts(c->io, "M-");
		b = (unsigned char)(b - 128);
	}
	if (b < 32) {
		shcmd_putc(c->io, '^');
		b = (unsigned char)(b + 64);
	} else if (b == 127) {
		shcmd_putc(c->io, '^');
		b = '?';
	}
	shcmd_putc(c->io, (char)b);
}

static void format(struct cat *c, sv chunk)
{
	for (size_t i = 0; i < chunk.n; i++) {
		unsigned char b = (unsigned char)chunk.p[i];

		if (!c->mid_line) {
			bool empty = b == '\n';

			c->blanks = empty ? c->blanks + 1 : 0;
			if (c->squeeze && c->blanks > 1)
				continue;
			if (c->nonblank ? !empty : c->number)
				shcmd_printf(c->io, "%6llu\t", (unsigned long long)++c->line);
		}
		c->mid_line = b != '\n';
		if (b == '\n') {
			if (c->ends)
				shcmd_putc(c->io, '$');
			shcmd_putc(c->io, '\n');
		} else if (b == '\t') {
			if (c->tabs)
				shcmd_puts(c->io, "^I");
			else
				shcmd_putc(c->io, '\t');
		} else if (c->nonprinting) {
			visible(c, b);
		} else {
			shcmd_putc(c->io, (char)b);
		}
	}
}

static int copy(struct cat *c, int fd, const char *shown)
{
	bool plain =
	    !(c->number || c->nonblank || c->ends || c->tabs || c->nonprinting || c->squeeze);
	struct sh_in in;
	sv chunk;
	int r;

	shcmd_in_init(&in, c->io, fd);
	while ((r = shcmd_getchunk(&in, &chunk)) > 0 && !shcmd_out_dead(c->io)) {
		if (plain) {
			shcmd_put(c->io, chunk.p, chunk.n);
			/* Somebody may be waiting for what came down a pipe. */
			if (chunk.n < 65536)
				(void)shcmd_flush(c->io);
		} else {
			format(c, chunk);
		}
	}
	if (r < 0)
		(void)shcmd_err(c->io, "%s: %s", shown, box_strerror(in.err));
	shcmd_in_fini(&in);
	return r < 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 'A', "show-all", SH_OPT_NONE },
		{ 'b', "number-nonblank", SH_OPT_NONE }, { 'e', NULL, SH_OPT_NONE },
		{ 'E', "show-ends", SH_OPT_NONE }, { 'n', "number", SH_OPT_NONE },
		{ 's', "squeeze-blank", SH_OPT_NONE }, { 't', NULL, SH_OPT_NONE },
		{ 'T', "show-tabs", SH_OPT_NONE }, { 'u', NULL, SH_OPT_NONE },
		{ 'v', "show-nonprinting", SH_OPT_NONE }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	struct cat c = { .io = io };
	int o, r = 0;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (o == SH_OPT_HELP)
			return 0;
		if (o == SH_OPT_ERROR)
			return shcmd_bad_option(io, &g);
		c.number = c.number || o == 'n';
		c.nonblank = c.nonblank || o == 'b';
		c.squeeze = c.squeeze || o == 's';
		c.ends = c.ends || o == 'E' || o == 'e' || o == 'A';
		c.tabs = c.tabs || o == 'T' || o == 't' || o == 'A';
		c.nonprinting = c.nonprinting || o == 'v' || o == 'e' || o == 't' || o == 'A';
	}
	if (g.i == argc)
		return copy(&c, 0, "-");
	for (int i = g.i; i < argc && !shcmd_out_dead(io) && !shcmd_interrupted(io); i++) {
		int fd = shcmd_open_read(io, argv[i]);

		if (fd < 0) {
			int s = shcmd_open_err(io, argv[i]);

			r = s > r ? s : r;
			continue;
		}
		if (copy(&c, fd, argv[i]) != 0)
			r = r != 0 ? r : 1;
		(void)close(fd);
	}
	return r;
}

const struct sh_cmd sh_cmd_cat = { "cat",
	"cat [-AbeEnstTuv] [FILE]...\n"
	"  -n number lines  -b number non-blank lines  -s squeeze blank lines\n"
	"  -E show line ends as $  -T show tabs as ^I  -v show other control bytes  -A all three\n",
	SHCMD_UTILITY, 1, run };
