/* sed: options (POSIX -n -e -f, GNU -E -r -i -s -z -u -l). See sed.h for the parts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/sed.h"
#include "base/ban.h"

static int add_source(struct sed *s, const char *file)
{
	struct sed_source *v =
	    text_grow(s->io, s->sources, &s->sources_cap, s->sources_n + 1, sizeof(*v));
	int number = 1;

	if (v == NULL)
		return 1;
	s->sources = v;
	for (size_t i = 0; i < s->sources_n; i++)
		number += v[i].file == NULL;
	/* Pieces are lines: `-e 'a\' -e text` is one command. */
	if (s->sources_n != 0)
		buf_put_byte(&s->script, '\n');
	v[s->sources_n++] = (struct sed_source){ s->script.n, file, number };
	return 0;
}

static int add_text(struct sed *s, const char *text)
{
	if (add_source(s, NULL) != 0)
		return 1;
	buf_put_c(&s->script, text);
	return 0;
}

static int add_file(struct sed *s, const char *name)
{
	AUTO_FD fd = shcmd_open_read(s->io, name);
	struct sh_in in;
	int r;
	sv chunk;

	if (fd < 0) {
		if (s->io->last.why == FILES_ERRNO)
			return shcmd_err(
			    s->io, "couldn't open file %s: %s", name, s->io->last.text);
		return shcmd_open_err(s->io, name);
	}
	if (add_source(s, name) != 0)
		return 1;
	shcmd_in_init(&in, s->io, fd);
	while ((r = shcmd_getchunk(&in, &chunk)) > 0)
		buf_put_sv(&s->script, chunk);
	r = r < 0 ? text_read_err(s->io, name, in.err) : 0;
	shcmd_in_fini(&in);
	/* The newline that ends the file ends no command twice. */
	if (s->script.n != 0 && s->script.p[s->script.n - 1] == '\n')
		s->script.n--;
	return r;
}

enum { OPT_SANDBOX = 256, OPT_IGNORED };

static const struct sh_opt opts[] = {
	{ 'n', "quiet", SH_OPT_NONE },
	{ 'n', "silent", SH_OPT_NONE },
	{ 'e', "expression", SH_OPT_REQUIRED },
	{ 'f', "file", SH_OPT_REQUIRED },
	{ 'E', "regexp-extended", SH_OPT_NONE },
	{ 'r', NULL, SH_OPT_NONE },
	{ 'i', "in-place", SH_OPT_OPTIONAL },
	{ 's', "separate", SH_OPT_NONE },
	{ 'z', "null-data", SH_OPT_NONE },
	{ 'z', "zero-terminated", SH_OPT_NONE },
	{ 'u', "unbuffered", SH_OPT_NONE },
	{ 'l', "line-length", SH_OPT_REQUIRED },
	{ 'b', "binary", SH_OPT_NONE },
	{ OPT_IGNORED, "follow-symlinks", SH_OPT_NONE },
	{ OPT_SANDBOX, "sandbox", SH_OPT_NONE },
	{ 0, NULL, SH_OPT_NONE },
};

static int take_option(struct sed *s, int c, const char *arg)
{
	switch (c) {
	case 'n':
		s->quiet = true;
		return 0;
	case 'e':
		return add_text(s, arg);
	case 'f':
		return add_file(s, arg);
	case 'E':
	case 'r':
		s->extended = true;
		return 0;
	case 'i':
		s->in_place = s->separate = true;
		s->suffix = arg != NULL && *arg != '\0' ? arg : NULL;
		return 0;
	case 's':
		s->separate = true;
		return 0;
	case 'z':
		s->delim = '\0';
		return 0;
	case 'u':
		s->unbuffered = true;
		return 0;
	case 'l':
		if (!shcmd_number(arg, 0, INT32_MAX, &s->line_len))
			return shcmd_usage_err(s->io, "invalid line length: %s", arg);
		return 0;
	case OPT_SANDBOX:
		s->sandbox = true;
		return 0;
	default:
		return 0; /* -b, --follow-symlinks: as it is anyway */
	}
}

static int usage(struct sed *s)
{
	static const char text[] =
	    "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n";

	sh_out_put(s->io->err, text, sizeof(text) - 1);
	(void)sh_out_flush(s->io->err);
	return 1;
}

static int sed_main(struct sed *s, char **names)
{
	struct text_locale loc;
	int status;

	if (!buf_ok(&s->script))
		return shcmd_err(s->io, "the script is too long");
	text_locale_begin(&loc, s->io);
	s->utf8 = loc.utf8;
	status = sed_parse(s);
	if (status == 0)
		status = sed_run(s, names);
	text_locale_end(&loc);
	return status;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct sed s = {
		.io = io, .line_len = 70, .delim = '\n', .script = { .max = SHCMD_LINE_MAX }
	};
	int c, status = 0;

	while (status == 0 && (c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (c == SH_OPT_HELP) {
			sed_free(&s);
			return 0;
		}
		status = c == SH_OPT_ERROR ? shcmd_bad_option(io, &g) : take_option(&s, c, g.arg);
	}
	if (status == 0 && s.sources_n == 0)
		status = g.i == argc ? usage(&s) : add_text(&s, argv[g.i++]);
	if (status == 0)
		status = sed_main(&s, argv + g.i);
	sed_free(&s);
	return status;
}

const struct sh_cmd sh_cmd_sed = {
	.name = "sed",
	.usage =
	    "sed [-nErsuz] [-i[SUFFIX]] [-l N] [-e SCRIPT] [-f FILE] [SCRIPT] [FILE]...\n"
	    "  -n  print only what p, P and the like print    -E, -r  extended expressions    -i  "
	    "edit files in place\n"
	    "  -s  files are separate    -z  lines end in NUL    -u  unbuffered    -l  width of l\n"
	    "  the command e and the flag e of s are refused: nothing is run out of data\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
