/* dogwood format: policy files laid out anew, comments kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood/format.h"

#include "base/ban.h"

static const char help_text[] =
    "Usage: dogwood format [OPTIONS] FILE...\n\n"
    "Lay policies out anew: one statement after the other, long groups broken at their commas and\n"
    "operators. Comments stay where they are, and so does the meaning: only white space changes.\n"
    "The result goes to standard output; `-` is standard input. A file that does not parse is\n"
    "left alone and its errors are shown.\n\n"
    "  -w, --write         put the result into the file (if it differs), in one step\n"
    "  -c, --check         print the names of files that would change, and change nothing\n"
    "  -W, --width N       longest line, in columns; default: 100\n\n"
    "Examples:\n"
    "  dogwood format policy.dw              show it\n"
    "  dogwood format --write *.dw           do it\n"
    "  dogwood format --check *.dw           in CI: fails when somebody forgot to\n"
    "  dogwood format - < policy.dw          as an editor calls it\n\n"
    "Exit status: 0 done (--check: nothing differs); 1 --check: something differs, or a file\n"
    "cannot be read or written; 2 a file is no policy source.\n";

static const struct option options[] = { { "write", no_argument, NULL, 'w' },
	{ "check", no_argument, NULL, 'c' }, { "width", required_argument, NULL, 'W' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

struct format {
	bool write, check, differs;
	unsigned width;
};

/* Replace the file itself, not a link to it; its mode stays. */
static int put_back(const char *path, sv text)
{
	char *real = realpath(path, NULL);
	struct box_err err = { 0 };
	struct stat st;
	int rc = CMD_OK;

	if (real == NULL || stat(real, &st) != 0)
		rc = cmd_error("writing %s: %m", path);
	else if (fd_write_file_atomic(real, st.st_mode & 07777, text, &err) < 0)
		rc = cmd_failed(&err);
	free(real);
	return rc;
}

static int one(struct format *f, const char *path)
{
	AUTO_ARENA a = { 0 };
	AUTO_BUF out = buf_with(8 * DW_SOURCE_MAX);
	AUTO_DW_DIAGS found = { 0 };
	bool input = strcmp(path, "-") == 0;
	const char *name = input ? "<stdin>" : path;
	sv text;
	int rc = cmd_read(&a, path, DW_SOURCE_MAX, &text);

	if (rc != CMD_OK)
		return rc;
	if (dw_format(sv_c(name), text, f->width, &out, &found) < 0)
		return cmd_findings(&found);
	if (!f->write && !f->check)
		return cmd_print(&out);
	if (sv_eq(buf_sv(&out), text))
		return CMD_OK;
	if (f->write)
		return input ? cmd_print(&out) : put_back(path, buf_sv(&out));
	f->differs = true;
	(void)printf("%s\n", name);
	return CMD_OK;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	struct format f = { 0 };
	uint64_t width = 0;
	int opt, rc, worst = CMD_OK;

	while ((opt = getopt_long(argc, argv, "hwcW:", options, NULL)) != -1) {
		if (opt == 'w')
			f.write = true;
		else if (opt == 'c')
			f.check = true;
		else if (opt != 'W')
			return cmd_usage(self, opt);
		else if (!sv_to_u64(sv_c(optarg), 10, 1000, &width) || width < 20)
			return cmd_error("--width wants 20 to 1000 columns, not `%s`", optarg);
	}
	f.width = (unsigned)width;
	if (f.write && f.check)
		return cmd_error("--check changes nothing and --write does: give one of them");
	if (optind == argc)
		return cmd_error("no policy file is named; try `dogwood format --help`");
	for (int i = optind; i < argc; i++) {
		rc = one(&f, argv[i]);
		worst = rc > worst ? rc : worst;
	}
	if (fflush(stdout) != 0)
		return cmd_error("writing to standard output: %m");
	return worst == CMD_OK && f.differs ? CMD_USAGE : worst;
}

const struct cmd cmd_format = { "format", "lay policy files out anew, comments kept", help_text,
	run };
