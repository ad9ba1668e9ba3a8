/* test, [ (POSIX) and the evaluation of [[ ]]. A file whose metadata policy refuses is, to a test,
 * a file that does not exist. */
#include "shell/test.h"

#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/parse.h"
#include "shell/pattern.h"
#include "shell/text_re.h"
#include "base/ban.h"

#define DEPTH_MAX 200

/* --- primaries --- */

static bool stat_of(struct shell *sh, const char *arg, bool follow, struct files_stat *st)
{
	AUTO_ARENA a = { .limit = SHCMD_PATH_MAX * 4 };
	int e = 0, fd = sh_open_special(sh, arg, &e);
	char *path;

	if (fd >= 0) {
		struct stat s;
		bool ok = fstat(fd, &s) == 0;

		(void)close(fd);
		*st = (struct files_stat){ .mode = s.st_mode,
			.size = (uint64_t)s.st_size,
			.ino = s.st_ino,
			.dev = s.st_dev,
			.mtime = s.st_mtim,
			.atime = s.st_atim };
		return ok;
	}
	if (fd == -1)
		return false;
	path = sh_path(sh, &a, arg);
	return path != NULL && files_stat(sh->files, path, follow, st) == 0;
}

static bool access_of(struct shell *sh, const char *arg, int mode)
{
	AUTO_ARENA a = { .limit = SHCMD_PATH_MAX * 4 };
	int e = 0, fd = sh_open_special(sh, arg, &e);
	char *path;

	if (fd >= 0) {
		(void)close(fd);
		return mode != X_OK;
	}
	path = fd == -1 ? NULL : sh_path(sh, &a, arg);
	return path != NULL && files_access(sh->files, path, mode) == 0;
}

static bool option_set(struct shell *sh, const char *name)
{
	unsigned bit = sh_option_bit(name);

	return bit != 0 && (sh->opts & bit) != 0;
}

static bool variable_set(struct shell *sh, const char *name)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	const char *base;
	struct sh_word *sub;
	struct sh_var *v;
	int64_t index;
	char *text;

	if (sh_parse_lvalue(&a, name, &base, &sub) != 0)
		return false;
	v = sh_var_find(sh, base);
	if (v == NULL)
		return false;
	if (sub == NULL)
		return sh_var_get(sh, base) != NULL;
	text = sh_expand_str(sh, &a, sub, SH_X_STRING);
	if (text == NULL)
		return false;
	if (strcmp(text, "@") == 0 || strcmp(text, "*") == 0)
		return v->nelem != 0 || v->value != NULL;
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_key(v, text) != NULL;
	if (sh_arith(sh, text, &index) != 0)
		return false;
	return sh_var_index(v, sh_var_from_end(v, index)) != NULL;
}

bool sh_test_is_unary(const char *s)
{
	return s[0] == '-' && s[1] != '\0' && s[2] == '\0' &&
	       strchr("abcdefghknoprstuvwxzGLNORS", s[1]) != NULL;
}

bool sh_test_is_binary(const char *s)
{
	static const char *const ops[] = { "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le",
		"-gt", "-ge", "-nt", "-ot", "-ef", NULL };

	for (size_t i = 0; ops[i] != NULL; i++) {
		if (strcmp(s, ops[i]) == 0)
			return true;
	}
	return false;
}

int sh_test_unary(struct shell *sh, char op, const char *arg)
{
	struct files_stat st;
	int64_t fd;

	switch (op) {
	case 'n':
		return arg[0] != '\0';
	case 'z':
		return arg[0] == '\0';
	case 'o':
		return option_set(sh, arg);
	case 'v':
		return variable_set(sh, arg);
	case 'R': {
		struct sh_var *v = sh_var_raw(sh, arg);

		return v != NULL && (v->flags & SH_V_NAMEREF) != 0;
	}
	case 't':
		return sv_to_i64(sv_c(arg), 10, 0, SH_FD_USER_MAX - 1, &fd) && isatty((int)fd);
	case 'r':
		return access_of(sh, arg, R_OK);
	case 'w':
		return access_of(sh, arg, W_OK);
	case 'x':
		return access_of(sh, arg, X_OK);
	default:
		break;
	}
	if (!stat_of(sh, arg, op != 'L' && op != 'h', &st))
		return 0;
	switch (op) {
	case 'a':
	case 'e':
		return 1;
	case 'f':
		return S_ISREG(st.mode);
	case 'd':
		return S_ISDIR(st.mode);
	case 'L':
	case 'h':
		return S_ISLNK(st.mode);
	case 'p':
		return S_ISFIFO(st.mode);
	case 'S':
		return S_ISSOCK(st.mode);
	case 'b':
		return S_ISBLK(st.mode);
	case 'c':
		return S_ISCHR(st.mode);
	case 's':
		return st.size > 0;
	case 'u':
		return (st.mode & S_ISUID) != 0;
	case 'g':
		return (st.mode & S_ISGID) != 0;
	case 'k':
		return (st.mode & S_ISVTX) != 0;
	case 'O':
		return st.uid == geteuid();
	case 'G':
		return st.gid == getegid();
	case 'N':
		return st.mtime.tv_sec > st.atime.tv_sec ||
		       (st.mtime.tv_sec == st.atime.tv_sec && st.mtime.tv_nsec > st.atime.tv_nsec);
	default:
		return 0;
	}
}

static int number(struct shell *sh, const char *name, const char *s, bool arith, int64_t *out)
{
	sv t = sv_trim(sv_c(s));

	if (arith)
		return sh_arith(sh, s, out);
	if (t.n > 1 && t.p[0] == '+')
		t = sv_sub(t, 1, t.n);
	if (sv_to_i64(t, 10, INT64_MIN, INT64_MAX, out))
		return 0;
	sh_msg(sh, "%s: %s: integer expression expected", name, s);
	return -1;
}

static int compare_files(struct shell *sh, const char *a, const char *op, const char *b)
{
	struct files_stat x, y;
	bool ha = stat_of(sh, a, true, &x), hb = stat_of(sh, b, true, &y);
	int64_t d;

	if (strcmp(op, "-ef") == 0)
		return ha && hb && x.ino == y.ino && x.dev == y.dev;
	if (!ha || !hb)
		return strcmp(op, "-nt") == 0 ? ha && !hb : hb && !ha;
	d = x.mtime.tv_sec != y.mtime.tv_sec ? x.mtime.tv_sec - y.mtime.tv_sec
	                                     : x.mtime.tv_nsec - y.mtime.tv_nsec;
	return strcmp(op, "-nt") == 0 ? d > 0 : d < 0;
}

int sh_test_binary(
    struct shell *sh, const char *name, const char *a, const char *op, const char *b, bool arith)
{
	int64_t x, y;

	if (strcmp(op, "=") == 0 || strcmp(op, "==") == 0)
		return strcmp(a, b) == 0;
	if (strcmp(op, "!=") == 0)
		return strcmp(a, b) != 0;
	if (strcmp(op, "<") == 0)
		return strcmp(a, b) < 0;
	if (strcmp(op, ">") == 0)
		return strcmp(a, b) > 0;
	if (strcmp(op, "-nt") == 0 || strcmp(op, "-ot") == 0 || strcmp(op, "-ef") == 0)
		return compare_files(sh, a, op, b);
	if (number(sh, name, a, arith, &x) != 0 || number(sh, name, b, arith, &y) != 0)
		return -1;
	if (strcmp(op, "-eq") == 0)
		return x == y;
	if (strcmp(op, "-ne") == 0)
		return x != y;
	if (strcmp(op, "-lt") == 0)
		return x < y;
	if (strcmp(op, "-le") == 0)
		return x <= y;
	if (strcmp(op, "-gt") == 0)
		return x > y;
	return x >= y;
}

/* --- test --- */

struct tst {
	struct sh_io *io;
	char **v;
	int n, i;
	int depth;
	bool bad;
};

static int test_or(struct tst *t);

static int complain(struct tst *t, const char *what, const char *arg)
{
	if (!t->bad)
		(void)shcmd_err(
		    t->io, "%s%s%s", arg != NULL ? arg : "", arg != NULL ? ": " : "", what);
	t->bad = true;
	return 0;
}

static bool at(struct tst *t, const char *s)
{
	return t->i < t->n && strcmp(t->v[t->i], s) == 0;
}

static int binary(struct tst *t, const char *a, const char *op, const char *b)
{
	int r = sh_test_binary(t->io->sh, t->io->name, a, op, b, false);

	if (r < 0)
		t->bad = true;
	return r > 0;
}

static int primary(struct tst *t)
{
	const char *s;
	int r;

	if (t->bad)
		return 0;
	if (t->i >= t->n)
		return complain(t, "argument expected", NULL);
	s = t->v[t->i];
	if (t->i + 2 < t->n && sh_test_is_binary(t->v[t->i + 1])) {
		t->i += 3;
		return binary(t, s, t->v[t->i - 2], t->v[t->i - 1]);
	}
	if (strcmp(s, "(") == 0) {
		t->i++;
		r = test_or(t);
		if (!at(t, ")"))
			return complain(t, "`)' expected", NULL);
		t->i++;
		return r;
	}
	if (sh_test_is_unary(s) && t->i + 1 < t->n) {
		t->i += 2;
		return sh_test_unary(t->io->sh, s[1], t->v[t->i - 1]);
	}
	t->i++;
	return s[0] != '\0';
}

static int test_not(struct tst *t)
{
	int r;

	if (++t->depth > DEPTH_MAX)
		return complain(t, "expression too deep", NULL);
	if (at(t, "!") && t->i + 1 < t->n &&
	    !(t->i + 2 < t->n && sh_test_is_binary(t->v[t->i + 1]) && t->i + 3 >= t->n)) {
		t->i++;
		r = !test_not(t);
	} else {
		r = primary(t);
	}
	t->depth--;
	return r;
}

static int test_and(struct tst *t)
{
	int r = test_not(t);

	while (!t->bad && at(t, "-a")) {
		t->i++;
		r = test_not(t) && r;
	}
	return r;
}

static int test_or(struct tst *t)
{
	int r;

	if (++t->depth > DEPTH_MAX)
		return complain(t, "expression too deep", NULL);
	r = test_and(t);
	while (!t->bad && at(t, "-o")) {
		t->i++;
		r = test_and(t) || r;
	}
	t->depth--;
	return r;
}

/* POSIX decides up to four arguments by their number; beyond that by grammar. */
static int evaluate(struct tst *t)
{
	char **v = t->v;

	switch (t->n) {
	case 0:
		return 0;
	case 1:
		return v[0][0] != '\0';
	case 2:
		if (strcmp(v[0], "!") == 0)
			return v[1][0] == '\0';
		if (sh_test_is_unary(v[0]))
			return sh_test_unary(t->io->sh, v[0][1], v[1]);
		return complain(t, "unary operator expected", v[0]);
	case 3:
		if (sh_test_is_binary(v[1]))
			return binary(t, v[0], v[1], v[2]);
		if (strcmp(v[1], "-a") == 0)
			return v[0][0] != '\0' && v[2][0] != '\0';
		if (strcmp(v[1], "-o") == 0)
			return v[0][0] != '\0' || v[2][0] != '\0';
		if (strcmp(v[0], "!") == 0) {
			t->v++;
			t->n--;
			return !evaluate(t);
		}
		if (strcmp(v[0], "(") == 0 && strcmp(v[2], ")") == 0)
			return v[1][0] != '\0';
		return complain(t, "binary operator expected", v[1]);
	case 4:
		if (strcmp(v[0], "!") == 0) {
			t->v++;
			t->n--;
			return !evaluate(t);
		}
		if (strcmp(v[0], "(") == 0 && strcmp(v[3], ")") == 0) {
			t->v++;
			t->n -= 2;
			return evaluate(t);
		}
		break;
	default:
		break;
	}
	{
		int r = test_or(t);

		if (!t->bad && t->i < t->n)
			return complain(t, "too many arguments", NULL);
		return r;
	}
}

static int run_test(struct sh_io *io, int argc, char **argv)
{
	struct tst t = { .io = io, .v = argv + 1, .n = argc - 1 };
	int r;

	if (strcmp(argv[0], "[") == 0) {
		if (argc < 2 || strcmp(argv[argc - 1], "]") != 0) {
			(void)shcmd_err(io, "missing `]'");
			return 2;
		}
		t.n--;
	}
	r = evaluate(&t);
	return t.bad ? 2 : !r;
}

const struct sh_cmd sh_cmd_test = { "test", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 2, run_test };
const struct sh_cmd sh_cmd_bracket = { "[", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 2, run_test };

/* --- [[ ]] --- */

static int regex_match(struct shell *sh, const char *s, const char *pattern)
{
	regmatch_t m[64];
	regex_t re;
	int flags = REG_EXTENDED | ((sh->shopts & SH_S_NOCASEMATCH) != 0 ? REG_ICASE : 0);

	if (text_re_too_big(sv_c(pattern), true) || regcomp(&re, pattern, flags) != 0)
		return 2;
	(void)sh_var_unset(sh, "BASH_REMATCH");
	(void)sh_var_make_array(sh, "BASH_REMATCH", false);
	if (regexec(&re, s, 64, m, 0) != 0) {
		regfree(&re);
		return 1;
	}
	for (size_t i = 0; i <= re.re_nsub && i < 64; i++) {
		char *t = m[i].rm_so < 0
		              ? sh_xstrdup("")
		              : sh_xdup((sv){ s + m[i].rm_so, (size_t)(m[i].rm_eo - m[i].rm_so) });

		(void)sh_var_set_index(sh, "BASH_REMATCH", (int64_t)i, t, false);
		free(t);
	}
	regfree(&re);
	return 0;
}

static int cond_binary(struct shell *sh, const struct sh_cond *c)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	bool equal = strcmp(c->op, "=") == 0 || strcmp(c->op, "==") == 0;
	char *l = sh_expand_str(sh, &a, c->left, SH_X_STRING), *r;
	int t;

	if (l == NULL)
		return 1;
	if (strcmp(c->op, "=~") == 0) {
		r = sh_expand_str(sh, &a, c->right, SH_X_REGEX);
		return r != NULL ? regex_match(sh, l, r) : 1;
	}
	if (equal || strcmp(c->op, "!=") == 0) {
		bool m;

		r = sh_expand_str(sh, &a, c->right, SH_X_PATTERN);
		if (r == NULL)
			return 1;
		m = sh_pat_match(sv_c(r), sv_c(l),
		    SH_PAT_EXTGLOB | ((sh->shopts & SH_S_NOCASEMATCH) != 0 ? SH_PAT_NOCASE : 0u));
		return m == equal ? 0 : 1;
	}
	r = sh_expand_str(sh, &a, c->right, SH_X_STRING);
	if (r == NULL)
		return 1;
	t = sh_test_binary(sh, "[[", l, c->op, r, true);
	if (t < 0)
		return 1;
	return t > 0 ? 0 : 1;
}

int sh_eval_cond(struct shell *sh, const struct sh_cond *c)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	char *s;
	int r;

	switch (c->kind) {
	case SH_C_AND:
		r = sh_eval_cond(sh, c->a);
		return r == 0 && sh->flow == SH_FLOW_NONE ? sh_eval_cond(sh, c->b) : r;
	case SH_C_OR:
		r = sh_eval_cond(sh, c->a);
		return r != 0 && sh->flow == SH_FLOW_NONE ? sh_eval_cond(sh, c->b) : r;
	case SH_C_NOT:
		r = sh_eval_cond(sh, c->a);
		return r == 0 ? 1 : r == 1 ? 0 : r;
	case SH_C_WORD:
		s = sh_expand_str(sh, &a, c->right, SH_X_STRING);
		return s == NULL || s[0] == '\0';
	case SH_C_UNARY:
		s = sh_expand_str(sh, &a, c->right, SH_X_STRING);
		return s == NULL || sh_test_unary(sh, c->op[1], s) == 0;
	case SH_C_BINARY:
		return cond_binary(sh, c);
	}
	return 1;
}
