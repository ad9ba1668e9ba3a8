/* uniq: report or leave out repeated neighbouring lines (POSIX uniq, GNU -D -i -w -z). Memory for
 * two lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/text.h"
#include "base/ban.h"

enum all_repeated { ALL_NO, ALL_NONE, ALL_PREPEND, ALL_SEPARATE };

struct uniq {
	struct sh_io *io;
	struct sh_out *out;
	bool count, repeated, unique, nocase;
	enum all_repeated all;
	uint64_t skip_fields, skip_chars, width;
	char delim;
	/* the group being read */
	char *line;
	size_t n, cap;
	uint64_t times;
	bool have, any_group;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* The part that is compared. */
static sv key_of(const struct uniq *u, sv s)
{
	size_t i = 0;

	for (uint64_t f = u->skip_fields; f > 0 && i < s.n; f--) {
		while (i < s.n && is_blank(s.p[i]))
			i++;
		while (i < s.n && !is_blank(s.p[i]))
			i++;
	}
	i += u->skip_chars < s.n - i ? (size_t)u->skip_chars : s.n - i;
	return sv_sub(s, i, u->width < s.n - i ? (size_t)u->width : s.n - i);
}

static bool same(const struct uniq *u, sv a, sv b)
{
	sv x = key_of(u, a), y = key_of(u, b);

	return u->nocase ? sv_eq_nocase(x, y) : sv_eq(x, y);
}

static void put_line(struct uniq *u, sv s)
{
	sh_out_put(u->out, s.p, s.n);
	sh_out_put(u->out, &u->delim, 1);
}

/* The group that ended: its first line, by its number of members. With -D the members were printed
 * as they came. */
static void end_group(struct uniq *u)
{
	char count[32];
	int n;

	if (!u->have || u->all != ALL_NO)
		return;
	if ((u->repeated && u->times == 1) || (u->unique && u->times != 1))
		return;
	if (u->count) {
		n = snprintf(count, sizeof(count), "%7llu ", (unsigned long long)u->times);
		sh_out_put(u->out, count, (size_t)n);
	}
	put_line(u, (sv){ u->line, u->n });
}

static int keep(struct uniq *u, sv s)
{
	char *p = text_grow(u->io, u->line, &u->cap, s.n + 1, 1);

	if (p == NULL)
		return -1;
	u->line = p;
	memcpy(u->line, s.p, s.n);
	u->n = s.n;
	u->times = 1;
	u->have = true;
	return 0;
}

/* One more member of the group, for -D: the second brings the first with it. */
static void show_member(struct uniq *u, sv s)
{
	if (u->times == 2) {
		if (u->all == ALL_PREPEND || (u->all == ALL_SEPARATE && u->any_group))
			sh_out_put(u->out, &u->delim, 1);
		u->any_group = true;
		if (!u->unique) /* -u leaves out the first of a group */
			put_line(u, (sv){ u->line, u->n });
	}
	put_line(u, s);
}

static int filter(struct uniq *u, int fd, const char *name)
{
	struct sh_in in;
	int r, status = 0;
	sv s;

	shcmd_in_init(&in, u->io, fd);
	while ((r = shcmd_getline(&in, u->delim, &s)) > 0 && u->out->err == 0) {
		if (s.p[s.n - 1] == u->delim)
			s.n--;
		if (u->have && same(u, (sv){ u->line, u->n }, s)) {
			u->times++;
			if (u->all != ALL_NO)
				show_member(u, s);
			continue;
		}
		end_group(u);
		if (keep(u, s) != 0) {
			status = 1;
			break;
		}
	}
	if (r < 0)
		status = shcmd_err(u->io, "error reading '%s': %s", name, box_strerror(in.err));
	else if (status == 0)
		end_group(u);
	shcmd_in_fini(&in);
	free(u->line);
	return status;
}

/* -1 after a message, -2 for a folder. */
static int open_input(struct sh_io *io, const char *name)
{
	int fd = shcmd_open_read(io, name);

	if (fd < 0 && io->last.why == FILES_ERRNO && io->last.sys == EISDIR)
		return -2;
	if (fd < 0)
		(void)shcmd_open_err(io, name); /* the caller's status */
	return fd;
}

static int uniq_main(struct uniq *u, char **names, int n)
{
	const char *from = n > 0 ? names[0] : "-";
	struct sh_out file;
	int status, e;

	if (n > 2)
		return shcmd_usage_err(u->io, "extra operand '%s'", names[2]);
	if (u->count && u->all != ALL_NO)
		return shcmd_usage_err(
		    u->io, "printing all duplicated lines and repeat counts is meaningless");
	AUTO_FD in = open_input(u->io, from);

	if (in == -2)
		return shcmd_err(u->io, "error reading '%s'", from);
	if (in < 0)
		return u->io->last.why == FILES_BROKEN ? 125 : 1;
	if (n < 2 || strcmp(names[1], "-") == 0)
		return filter(u, in, from);
	AUTO_FD out = shcmd_open_write(u->io, names[1], O_CREAT | O_TRUNC);

	if (out < 0)
		return shcmd_open_err(u->io, names[1]);
	sh_out_init(&file, out);
	u->out = &file;
	status = filter(u, in, from);
	e = sh_out_fini(&file);
	return e != 0 ? shcmd_err(u->io, "write error: %s", box_strerror(e)) : status;
}

static int parse_all(struct uniq *u, const char *how)
{
	if (how == NULL || strcmp(how, "none") == 0)
		u->all = ALL_NONE;
	else if (strcmp(how, "prepend") == 0)
		u->all = ALL_PREPEND;
	else if (strcmp(how, "separate") == 0)
		u->all = ALL_SEPARATE;
	else
		return shcmd_usage_err(u->io, "invalid argument '%s' for '--all-repeated'", how);
	return 0;
}

static bool parse_number(const char *s, uint64_t *out)
{
	int64_t v;

	if (!text_count(s, &v))
		return false;
	*out = (uint64_t)v;
	return true;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'c', "count", SH_OPT_NONE },
		{ 'd', "repeated", SH_OPT_NONE },
		{ 'D', NULL, SH_OPT_NONE },
		{ 256, "all-repeated", SH_OPT_OPTIONAL },
		{ 'u', "unique", SH_OPT_NONE },
		{ 'i', "ignore-case", SH_OPT_NONE },
		{ 'f', "skip-fields", SH_OPT_REQUIRED },
		{ 's', "skip-chars", SH_OPT_REQUIRED },
		{ 'w', "check-chars", SH_OPT_REQUIRED },
		{ 'z', "zero-terminated", SH_OPT_NONE },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct uniq u = { .io = io, .out = io->out, .width = UINT64_MAX, .delim = '\n' };
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'c':
			u.count = true;
			break;
		case 'd':
			u.repeated = true;
			break;
		case 'D':
		case 256:
			if (parse_all(&u, g.arg) != 0)
				return 1;
			break;
		case 'u':
			u.unique = true;
			break;
		case 'i':
			u.nocase = true;
			break;
		case 'f':
			if (!parse_number(g.arg, &u.skip_fields))
				return shcmd_err(io, "%s: invalid number of fields to skip", g.arg);
			break;
		case 's':
			if (!parse_number(g.arg, &u.skip_chars))
				return shcmd_err(io, "%s: invalid number of bytes to skip", g.arg);
			break;
		case 'w':
			if (!parse_number(g.arg, &u.width))
				return shcmd_err(
				    io, "%s: invalid number of bytes to compare", g.arg);
			break;
		default:
			u.delim = '\0';
		}
	}
	return uniq_main(&u, argv + g.i, argc - g.i);
}

const struct sh_cmd sh_cmd_uniq = {
	.name = "uniq",
	.usage = "uniq [-cdDuiz] [-f FIELDS] [-s CHARS] [-w CHARS] [IN [OUT]]\n"
	         "  -c  prefix lines by their count    -d  only repeated, one a group    -D  all "
	         "repeated    -u  only unique\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
