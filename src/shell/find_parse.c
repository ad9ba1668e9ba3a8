/* find: reading the expression (POSIX find, with GNU's additions). See find.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/find.h"
#include "shell/text_re.h"
#include "base/ban.h"

struct parser {
	struct find *f;
	char **argv;
	int argc, i;
	int nest, terms;
	int regex_flags; /* REG_EXTENDED or 0; -1: emacs, GNU's default */
	int status;
};

static struct find_expr *parse_comma(struct parser *p);

static struct find_expr *fail(struct parser *p)
{
	if (p->status == 0)
		p->status = 1;
	return NULL;
}

static struct find_expr *new_expr(struct parser *p, enum find_kind kind)
{
	struct find_expr *e = shcmd_alloc(p->f->io, 1, sizeof(*e));

	if (e == NULL)
		return fail(p);
	if (++p->terms > FIND_EXPR_MAX) {
		(void)shcmd_err(p->f->io, "the expression is too long");
		return fail(p);
	}
	e->kind = kind;
	e->next = p->f->all;
	p->f->all = e;
	return e;
}

static const char *argument(struct parser *p, const char *pred)
{
	if (p->i >= p->argc) {
		(void)shcmd_err(p->f->io, "missing argument to `%s'", pred);
		(void)fail(p);
		return NULL;
	}
	return p->argv[p->i++];
}

static struct find_expr *bad_argument(struct parser *p, const char *pred, const char *arg)
{
	(void)shcmd_err(p->f->io, "invalid argument `%s' to `%s'", arg, pred);
	return fail(p);
}

/* "+N", "-N", "N". */
static bool read_number(const char *s, char *cmp, uint64_t *out)
{
	*cmp = '=';
	if (*s == '+' || *s == '-')
		*cmp = *s++;
	return sv_to_u64(sv_c(s), 10, UINT64_MAX / 2, out);
}

static struct find_expr *number_test(struct parser *p, const char *pred, enum find_kind kind)
{
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, kind) : NULL;

	if (e == NULL)
		return NULL;
	p->f->needs_stat = true;
	return read_number(arg, &e->cmp, &e->number) ? e : bad_argument(p, pred, arg);
}

static struct find_expr *text_test(
    struct parser *p, const char *pred, enum find_kind kind, bool icase)
{
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, kind) : NULL;

	if (e != NULL) {
		e->text = arg;
		e->icase = icase;
	}
	return e;
}

/* -mtime, -amin and their kin. */
static struct find_expr *time_test(struct parser *p, const char *pred)
{
	struct find_expr *e = number_test(p, pred, FIND_TIME);

	if (e != NULL) {
		e->which = pred[1];
		e->unit = strcmp(pred + 2, "min") == 0 ? 60 : 86400;
	}
	return e;
}

static struct find_expr *size_test(struct parser *p, const char *pred)
{
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, FIND_SIZE) : NULL;
	static const char letters[] = "bcwkMG";
	static const uint64_t units[] = { 512, 1, 2, 1024, 1048576, 1073741824 };
	size_t n;
	char *copy;

	if (e == NULL)
		return NULL;
	p->f->needs_stat = true;
	n = strlen(arg);
	copy = arena_dup(p->f->io->arena, sv_c(arg)).p != NULL ? shf_strip(p->f->io, arg) : NULL;
	if (copy == NULL)
		return fail(p);
	e->unit = 512;
	if (n != 0 && strchr(letters, arg[n - 1]) != NULL) {
		e->unit = units[strchr(letters, arg[n - 1]) - letters];
		copy[n - 1] = '\0';
	}
	return read_number(copy, &e->cmp, &e->number) ? e : bad_argument(p, pred, arg);
}

static struct find_expr *type_test(struct parser *p, const char *pred)
{
	static const char letters[] = "fdlpsbc";
	static const uint8_t types[] = { DT_REG, DT_DIR, DT_LNK, DT_FIFO, DT_SOCK, DT_BLK, DT_CHR };
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, FIND_TYPE) : NULL;

	if (e == NULL)
		return NULL;
	e->follow = pred[1] == 'x';
	p->f->needs_stat = p->f->needs_stat || e->follow;
	for (const char *s = arg;; s++) {
		const char *at = *s != '\0' ? strchr(letters, *s) : NULL;

		if (at == NULL) {
			(void)shcmd_err(p->f->io,
			    *s == '\0' ? "Arguments to %s should contain at least one letter"
			               : "Unknown argument to %s: %c",
			    pred, *s);
			return fail(p);
		}
		e->types |= 1u << types[at - letters];
		if (s[1] == '\0')
			return e;
		if (*++s != ',') {
			(void)shcmd_err(
			    p->f->io, "Must separate multiple arguments to %s using: ','", pred);
			return fail(p);
		}
	}
}

static struct find_expr *perm_test(struct parser *p, const char *pred)
{
	const char *arg = argument(p, pred), *s = arg;
	struct find_expr *e = arg != NULL ? new_expr(p, FIND_PERM) : NULL;
	struct shf_mode *m;

	if (e == NULL)
		return NULL;
	p->f->needs_stat = true;
	e->cmp = *s == '-' || *s == '/' ? *s++ : '=';
	m = shf_mode_parse(p->f->io, s, 0);
	if (m == NULL) {
		(void)shcmd_err(p->f->io, "invalid mode `%s'", arg);
		return fail(p);
	}
	e->mode = shf_mode_apply(m, 0);
	return e;
}

/* -user, -group: root, our own name, or a number. */
static struct find_expr *owner_test(struct parser *p, const char *pred, enum find_kind kind)
{
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, kind) : NULL;
	char own[64];

	if (e == NULL)
		return NULL;
	p->f->needs_stat = true;
	e->cmp = '=';
	if (kind == FIND_UID)
		shf_user(p->f->io, geteuid(), own);
	else
		shf_group(p->f->io, getegid(), own);
	if (strcmp(arg, "root") == 0)
		return e;
	if (strcmp(arg, own) == 0) {
		e->number = kind == FIND_UID ? geteuid() : getegid();
		return e;
	}
	if (sv_to_u64(sv_c(arg), 10, UINT32_MAX, &e->number))
		return e;
	(void)shcmd_err(p->f->io, "`%s' is not the name of a known %s", arg,
	    kind == FIND_UID ? "user" : "group");
	return fail(p);
}

static bool stat_argument(struct parser *p, const char *arg, struct files_stat *st)
{
	const char *path = shcmd_path(p->f->io, arg);

	if (path != NULL && files_stat(p->f->io->files, path, true, st) == 0)
		return true;
	if (path == NULL)
		(void)shcmd_err(p->f->io, "'%s': %s", arg, box_strerror(ENAMETOOLONG));
	else if (files_error(p->f->io->files)->why == FILES_ERRNO)
		(void)shcmd_err(p->f->io, "'%s': %s", arg, files_error(p->f->io->files)->text);
	else
		(void)shcmd_files_err(p->f->io, arg, files_error(p->f->io->files));
	(void)fail(p);
	return false;
}

/* -newer, -anewer, -cnewer, -newerXY. */
static struct find_expr *newer_test(struct parser *p, const char *pred)
{
	const char *arg = argument(p, pred);
	struct find_expr *e = arg != NULL ? new_expr(p, FIND_NEWER) : NULL;
	const char *xy = strncmp(pred, "-newer", 6) == 0 && pred[6] != '\0' ? pred + 6 : NULL;
	struct files_stat st;
	char y;

	if (e == NULL)
		return NULL;
	p->f->needs_stat = true;
	e->which = xy != NULL ? xy[0] : pred[1] == 'n' ? 'm' : pred[1];
	y = xy != NULL ? xy[1] : 'm';
	if (y == 't')
		return shf_parse_time(p->f->io, arg, &e->ts) ? e : bad_argument(p, pred, arg);
	if (!stat_argument(p, arg, &st))
		return NULL;
	e->ts = y == 'a' ? st.atime : y == 'c' ? st.ctime : st.mtime;
	return e;
}

/* GNU's default syntax: + and ? as in ERE, but groups and alternation with a backslash, braces
 * ordinary. As an ERE. */
static char *emacs_to_ere(struct parser *p, const char *s)
{
	char *out = shcmd_alloc(p->f->io, 2 * strlen(s) + 3, 1), *o = out;

	if (out == NULL)
		return NULL;
	while (*s != '\0') {
		if (*s == '[') {
			/* A bracket expression is copied whole. */
			*o++ = *s++;
			if (*s == '^')
				*o++ = *s++;
			if (*s == ']')
				*o++ = *s++;
			while (*s != '\0' && *s != ']')
				*o++ = *s++;
			continue;
		}
		if (*s == '\\' && s[1] != '\0') {
			if (strchr("()|", s[1]) == NULL)
				*o++ = '\\';
			*o++ = s[1];
			s += 2;
			continue;
		}
		if (strchr("(){}|", *s) != NULL)
			*o++ = '\\';
		*o++ = *s++;
	}
	return out;
}

static struct find_expr *regex_test(struct parser *p, const char *pred, bool icase)
{
	const char *arg = argument(p, pred), *body;
	struct find_expr *e;
	char *full;
	int flags = p->regex_flags < 0 ? REG_EXTENDED : p->regex_flags, r;

	body = arg == NULL ? NULL : p->regex_flags < 0 ? emacs_to_ere(p, arg) : arg;
	if (body == NULL)
		return fail(p);
	/* The whole path has to match. */
	full = shcmd_alloc(p->f->io, strlen(body) + 8, 1);
	if (full == NULL)
		return fail(p);
	(void)snprintf(full, strlen(body) + 8, flags != 0 ? "^(%s)$" : "^\\(%s\\)$", body);
	if (text_re_too_big(sv_c(full), (flags & REG_EXTENDED) != 0)) {
		(void)shcmd_err(
		    p->f->io, "failed to compile regular expression '%s': " TEXT_RE_TOO_BIG, arg);
		return fail(p);
	}
	e = new_expr(p, FIND_TRUE);
	if (e == NULL)
		return NULL;
	r = regcomp(&e->re, full, flags | REG_NOSUB | (icase ? REG_ICASE : 0));
	if (r != 0) {
		char text[256];

		(void)regerror(r, &e->re, text, sizeof(text));
		(void)shcmd_err(
		    p->f->io, "failed to compile regular expression '%s': %s", arg, text);
		return fail(p);
	}
	e->kind = FIND_REGEX;
	return e;
}

static struct find_expr *exec_action(struct parser *p, const char *pred)
{
	struct find_expr *e = new_expr(p, FIND_EXEC);
	int from = p->i;

	if (e == NULL)
		return NULL;
	p->f->has_action = true;
	e->in_dir = strstr(pred, "dir") != NULL;
	e->ask = pred[1] == 'o';
	e->batch_arena.limit = SHCMD_MEM_MAX;
	for (; p->i < p->argc; p->i++) {
		const char *w = p->argv[p->i];

		if (strcmp(w, ";") == 0)
			break;
		if (strcmp(w, "+") == 0 && p->i > from && strcmp(p->argv[p->i - 1], "{}") == 0 &&
		    !e->ask) {
			e->plus = true;
			break;
		}
	}
	if (p->i == p->argc || p->i == from) {
		(void)shcmd_err(p->f->io, "missing argument to `%s'", pred);
		return fail(p);
	}
	e->argv = &p->argv[from];
	e->argc = p->i - from - (e->plus ? 1 : 0); /* without {} + */
	p->i++;
	if (e->plus) {
		for (int k = 0; k < e->argc; k++) {
			if (strstr(e->argv[k], "{}") != NULL) {
				(void)shcmd_err(p->f->io,
				    "Only one instance of {} is supported with %s ... +", pred);
				return fail(p);
			}
		}
		e->batch = shcmd_alloc(p->f->io, FIND_BATCH_MAX, sizeof(*e->batch));
		if (e->batch == NULL)
			return fail(p);
	}
	return e;
}

static bool set_regextype(struct parser *p, const char *name)
{
	static const char *const basic[] = { "posix-basic", "ed", "sed", "grep",
		"posix-minimal-basic" };
	static const char *const extended[] = { "posix-extended", "egrep", "posix-egrep", "awk",
		"posix-awk", "gnu-awk" };

	for (size_t i = 0; i < sizeof(basic) / sizeof(*basic); i++) {
		if (strcmp(name, basic[i]) == 0) {
			p->regex_flags = 0;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(extended) / sizeof(*extended); i++) {
		if (strcmp(name, extended[i]) == 0) {
			p->regex_flags = REG_EXTENDED;
			return true;
		}
	}
	if (strcmp(name, "emacs") == 0 || strcmp(name, "findutils-default") == 0) {
		p->regex_flags = -1;
		return true;
	}
	return false;
}

/* Options inside the expression: always true. *known is false when it is none. */
static struct find_expr *option(struct parser *p, const char *w, bool *known)
{
	struct find *f = p->f;
	const char *arg;
	int64_t *depth = strcmp(w, "-maxdepth") == 0   ? &f->max_depth
	                 : strcmp(w, "-mindepth") == 0 ? &f->min_depth
	                                               : NULL;

	*known = true;
	if (depth != NULL) {
		arg = argument(p, w);
		if (arg == NULL)
			return NULL;
		if (!sv_to_i64(sv_c(arg), 10, 0, INT32_MAX, depth)) {
			(void)shcmd_err(f->io,
			    "Expected a positive decimal integer argument to %s, but got '%s'", w,
			    arg);
			return fail(p);
		}
	} else if (strcmp(w, "-depth") == 0 || strcmp(w, "-d") == 0) {
		f->depth_first = true;
	} else if (strcmp(w, "-xdev") == 0 || strcmp(w, "-mount") == 0) {
		f->one_fs = f->needs_stat = true;
	} else if (strcmp(w, "-follow") == 0) {
		f->follow = f->follow_args = f->needs_stat = true;
	} else if (strcmp(w, "-daystart") == 0) {
		f->now.tv_sec += 86400 - f->now.tv_sec % 86400;
		f->now.tv_nsec = 0;
	} else if (strcmp(w, "-regextype") == 0) {
		arg = argument(p, w);
		if (arg == NULL)
			return NULL;
		if (!set_regextype(p, arg)) {
			(void)shcmd_err(f->io, "Unknown regular expression type '%s'", arg);
			return fail(p);
		}
	} else if (strcmp(w, "-noleaf") != 0 && strcmp(w, "-warn") != 0 &&
	           strcmp(w, "-nowarn") != 0 && strcmp(w, "-ignore_readdir_race") != 0 &&
	           strcmp(w, "-noignore_readdir_race") != 0) {
		*known = false;
		return NULL;
	}
	return new_expr(p, FIND_TRUE);
}

static struct find_expr *action(struct parser *p, const char *w)
{
	struct find_expr *e;

	if (strcmp(w, "-print") == 0 || strcmp(w, "-print0") == 0) {
		e = new_expr(p, FIND_PRINT);
		if (e != NULL)
			e->end = w[6] == '0' ? '\0' : '\n';
	} else if (strcmp(w, "-printf") == 0) {
		e = text_test(p, w, FIND_PRINTF, false);
		p->f->needs_stat = p->f->needs_stat || e == NULL ||
		                   strpbrk(e->text, "sbkmMnuUgGitTaAcCDS") != NULL;
	} else if (strcmp(w, "-ls") == 0) {
		e = new_expr(p, FIND_LS);
		p->f->needs_stat = true;
	} else if (strcmp(w, "-delete") == 0) {
		e = new_expr(p, FIND_DELETE);
		p->f->depth_first = true;
	} else {
		return exec_action(p, w);
	}
	p->f->has_action = true;
	return e;
}

static bool is_one_of(const char *w, const char *const *list)
{
	for (; *list != NULL; list++) {
		if (strcmp(w, *list) == 0)
			return true;
	}
	return false;
}

static bool is_newer_xy(const char *w)
{
	return strncmp(w, "-newer", 6) == 0 && strlen(w) == 8 && strchr("acm", w[6]) != NULL &&
	       strchr("acmt", w[7]) != NULL;
}

static struct find_expr *primary(struct parser *p, const char *w)
{
	static const char *const actions[] = { "-print", "-print0", "-printf", "-ls", "-delete",
		"-exec", "-execdir", "-ok", "-okdir", NULL };
	static const char *const times[] = { "-mtime", "-atime", "-ctime", "-mmin", "-amin",
		"-cmin", NULL };
	static const char *const newer[] = { "-newer", "-anewer", "-cnewer", NULL };
	struct files_stat st;
	struct find_expr *e;
	bool known;

	e = option(p, w, &known);
	if (known)
		return e;
	if (is_one_of(w, actions))
		return action(p, w);
	if (is_one_of(w, times))
		return time_test(p, w);
	if (is_one_of(w, newer) || is_newer_xy(w))
		return newer_test(p, w);
	if (strcmp(w, "-name") == 0 || strcmp(w, "-iname") == 0)
		return text_test(p, w, FIND_NAME, w[1] == 'i');
	if (strcmp(w, "-path") == 0 || strcmp(w, "-wholename") == 0)
		return text_test(p, w, FIND_PATH, false);
	if (strcmp(w, "-ipath") == 0 || strcmp(w, "-iwholename") == 0)
		return text_test(p, w, FIND_PATH, true);
	if (strcmp(w, "-lname") == 0 || strcmp(w, "-ilname") == 0)
		return text_test(p, w, FIND_LNAME, w[1] == 'i');
	if (strcmp(w, "-regex") == 0 || strcmp(w, "-iregex") == 0)
		return regex_test(p, w, w[1] == 'i');
	if (strcmp(w, "-type") == 0 || strcmp(w, "-xtype") == 0)
		return type_test(p, w);
	if (strcmp(w, "-size") == 0)
		return size_test(p, w);
	if (strcmp(w, "-perm") == 0)
		return perm_test(p, w);
	if (strcmp(w, "-user") == 0)
		return owner_test(p, w, FIND_UID);
	if (strcmp(w, "-group") == 0)
		return owner_test(p, w, FIND_GID);
	if (strcmp(w, "-uid") == 0)
		return number_test(p, w, FIND_UID);
	if (strcmp(w, "-gid") == 0)
		return number_test(p, w, FIND_GID);
	if (strcmp(w, "-links") == 0)
		return number_test(p, w, FIND_LINKS);
	if (strcmp(w, "-inum") == 0)
		return number_test(p, w, FIND_INUM);
	if (strcmp(w, "-samefile") == 0) {
		e = text_test(p, w, FIND_SAME, false);
		if (e == NULL || !stat_argument(p, e->text, &st))
			return NULL;
		p->f->needs_stat = true;
		e->dev = st.dev;
		e->ino = st.ino;
		return e;
	}
	if (strcmp(w, "-empty") == 0) {
		p->f->needs_stat = true;
		return new_expr(p, FIND_EMPTY);
	}
	if (strcmp(w, "-readable") == 0 || strcmp(w, "-writable") == 0 ||
	    strcmp(w, "-executable") == 0) {
		e = new_expr(p, FIND_ACCESS);
		if (e != NULL)
			e->mode = w[1] == 'r' ? R_OK : w[1] == 'w' ? W_OK : X_OK;
		return e;
	}
	if (strcmp(w, "-prune") == 0)
		return new_expr(p, FIND_PRUNE);
	if (strcmp(w, "-quit") == 0)
		return new_expr(p, FIND_QUIT);
	if (strcmp(w, "-true") == 0)
		return new_expr(p, FIND_TRUE);
	if (strcmp(w, "-false") == 0 || strcmp(w, "-nouser") == 0 || strcmp(w, "-nogroup") == 0)
		return new_expr(p, FIND_FALSE);
	(void)shcmd_err(p->f->io,
	    w[0] == '-' ? "unknown predicate `%s'" : "paths must precede expression: `%s'", w);
	return fail(p);
}

/* --- operators --- */

static bool is_word(const struct parser *p, const char *a, const char *b)
{
	return p->i < p->argc &&
	       (strcmp(p->argv[p->i], a) == 0 || (b != NULL && strcmp(p->argv[p->i], b) == 0));
}

static struct find_expr *parse_unary(struct parser *p)
{
	struct find_expr *e = NULL;
	const char *w;

	if (p->i >= p->argc) {
		(void)shcmd_err(
		    p->f->io, "expected an expression after '%s'", p->argv[p->argc - 1]);
		return fail(p);
	}
	if (++p->nest > FIND_NEST_MAX) {
		(void)shcmd_err(p->f->io, "the expression is nested too deeply");
		return fail(p);
	}
	w = p->argv[p->i++];
	if (strcmp(w, "!") == 0 || strcmp(w, "-not") == 0) {
		struct find_expr *a = parse_unary(p);

		e = a != NULL ? new_expr(p, FIND_NOT) : NULL;
		if (e != NULL)
			e->a = a;
	} else if (strcmp(w, "(") == 0) {
		if (is_word(p, ")", NULL)) {
			(void)shcmd_err(
			    p->f->io, "invalid expression; empty parentheses are not allowed.");
			return fail(p);
		}
		e = parse_comma(p);
		if (e != NULL && !is_word(p, ")", NULL)) {
			(void)shcmd_err(p->f->io, "invalid expression; I was expecting to find a "
			                          "')' somewhere but did not see one.");
			return fail(p);
		}
		p->i++;
	} else if (strcmp(w, ")") == 0) {
		(void)shcmd_err(p->f->io, "invalid expression; you have too many ')'");
		return fail(p);
	} else {
		e = primary(p, w);
	}
	p->nest--;
	return e;
}

static struct find_expr *pair(
    struct parser *p, enum find_kind kind, struct find_expr *a, struct find_expr *b)
{
	struct find_expr *e = a != NULL && b != NULL ? new_expr(p, kind) : NULL;

	if (e != NULL) {
		e->a = a;
		e->b = b;
	}
	return e;
}

static struct find_expr *parse_and(struct parser *p)
{
	struct find_expr *e = parse_unary(p);

	while (e != NULL && p->i < p->argc && !is_word(p, ")", ",") && !is_word(p, "-o", "-or")) {
		if (is_word(p, "-a", "-and"))
			p->i++;
		e = pair(p, FIND_AND, e, parse_unary(p));
	}
	return e;
}

static struct find_expr *parse_or(struct parser *p)
{
	struct find_expr *e = parse_and(p);

	while (e != NULL && is_word(p, "-o", "-or")) {
		p->i++;
		e = pair(p, FIND_OR, e, parse_and(p));
	}
	return e;
}

static struct find_expr *parse_comma(struct parser *p)
{
	struct find_expr *e = parse_or(p);

	while (e != NULL && is_word(p, ",", NULL)) {
		p->i++;
		e = pair(p, FIND_COMMA, e, parse_or(p));
	}
	return e;
}

static bool begins_expression(const char *w)
{
	return (w[0] == '-' && w[1] != '\0') || strcmp(w, "!") == 0 || strcmp(w, "(") == 0 ||
	       strcmp(w, ")") == 0 || strcmp(w, ",") == 0;
}

int find_parse(struct find *f, int argc, char **argv, int *first, int *n)
{
	struct parser p = { .f = f, .argv = argv, .argc = argc, .i = 1, .regex_flags = -1 };
	struct find_expr *print;

	for (; p.i < argc; p.i++) {
		if (strcmp(argv[p.i], "-H") == 0)
			f->follow_args = true;
		else if (strcmp(argv[p.i], "-L") == 0)
			f->follow = f->follow_args = f->needs_stat = true;
		else if (strcmp(argv[p.i], "-P") == 0)
			f->follow = f->follow_args = false;
		else
			break;
	}
	if (p.i < argc && strcmp(argv[p.i], "--") == 0)
		p.i++;
	*first = p.i;
	while (p.i < argc && !begins_expression(argv[p.i]))
		p.i++;
	*n = p.i - *first;
	if (p.i < argc) {
		f->top = parse_comma(&p);
		if (f->top != NULL && p.i < argc) {
			(void)shcmd_err(f->io, strcmp(argv[p.i], ")") == 0
			                           ? "invalid expression; you have too many ')'"
			                           : "paths must precede expression");
			f->top = NULL;
		}
		if (f->top == NULL)
			return 1;
	}
	if (f->has_action)
		return 0;
	print = new_expr(&p, FIND_PRINT);
	if (print == NULL)
		return 1;
	print->end = '\n';
	f->top = f->top != NULL ? pair(&p, FIND_AND, f->top, print) : print;
	return f->top != NULL ? 0 : 1;
}

void find_free(struct find *f)
{
	for (struct find_expr *e = f->all; e != NULL; e = e->next) {
		if (e->kind == FIND_REGEX)
			regfree(&e->re);
		arena_free(&e->batch_arena);
	}
}
