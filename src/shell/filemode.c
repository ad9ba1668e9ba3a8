/* chmod's MODE (POSIX chmod, and GNU's X, s, t and copies of u, g, o). See fileutil.h. */
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

#define CLAUSES_MAX 64

/* One "who op perms". */
struct clause {
	uint32_t who;  /* bits it may touch */
	char op;       /* + - = */
	uint32_t bits; /* what it grants, all of ugo */
	bool x_if_dir; /* X */
	char copy;     /* u, g, o: take these bits; else 0 */
	bool masked;   /* nobody was named: the umask counts */
};

struct shf_mode {
	bool octal;
	uint32_t value;
	uint32_t umask;
	struct clause c[CLAUSES_MAX];
	size_t n;
};

static uint32_t who_bits(char c)
{
	switch (c) {
	case 'u':
		return S_ISUID | S_IRWXU;
	case 'g':
		return S_ISGID | S_IRWXG;
	case 'o':
		return S_ISVTX | S_IRWXO;
	case 'a':
		return 07777;
	}
	return 0;
}

/* The permissions of one clause. Returns where they end, or NULL. */
static const char *parse_perms(const char *s, struct clause *c)
{
	if (*s == 'u' || *s == 'g' || *s == 'o') {
		c->copy = *s;
		return s + 1;
	}
	for (;; s++) {
		switch (*s) {
		case 'r':
			c->bits |= 0444;
			break;
		case 'w':
			c->bits |= 0222;
			break;
		case 'x':
			c->bits |= 0111;
			break;
		case 'X':
			c->x_if_dir = true;
			break;
		case 's':
			c->bits |= S_ISUID | S_ISGID;
			break;
		case 't':
			c->bits |= S_ISVTX;
			break;
		default:
			return s;
		}
	}
}

static bool parse_symbolic(struct shf_mode *m, const char *s)
{
	for (;;) {
		uint32_t who = 0;

		for (uint32_t w; (w = who_bits(*s)) != 0; s++)
			who |= w;
		if (strchr("+-=", *s) == NULL || *s == '\0')
			return false;
		while (*s != '\0' && strchr("+-=", *s) != NULL) {
			struct clause *c = &m->c[m->n];

			if (m->n == CLAUSES_MAX)
				return false;
			*c = (struct clause){
				.who = who != 0 ? who : 07777, .op = *s, .masked = who == 0
			};
			s = parse_perms(s + 1, c);
			m->n++;
		}
		if (*s == '\0')
			return true;
		if (*s++ != ',')
			return false;
	}
}

struct shf_mode *shf_mode_parse(struct sh_io *io, const char *text, mode_t umask)
{
	struct shf_mode *m = shcmd_alloc(io, 1, sizeof(*m));
	uint64_t v;

	if (m == NULL)
		return NULL;
	m->umask = umask;
	if (sv_to_u64(sv_c(text), 8, 07777, &v)) {
		m->octal = true;
		m->value = (uint32_t)v;
		return m;
	}
	return parse_symbolic(m, text) ? m : NULL;
}

static uint32_t spread(uint32_t three)
{
	return three << 6 | three << 3 | three;
}

static uint32_t apply_clause(const struct clause *c, uint32_t umask, uint32_t mode, bool is_dir)
{
	uint32_t bits = c->bits, who = c->who;

	if (c->copy != 0)
		bits = spread(mode >> (c->copy == 'u' ? 6 : c->copy == 'g' ? 3 : 0) & 7);
	if (c->x_if_dir && (is_dir || (mode & 0111) != 0))
		bits |= 0111;
	bits &= who;
	if (c->masked)
		bits &= ~umask;
	switch (c->op) {
	case '+':
		return mode | bits;
	case '-':
		return mode & ~bits;
	}
	/* '=' without who clears what the umask does not hold; a folder keeps its set-id bits
	 * unless named. */
	if (is_dir)
		who &= ~(uint32_t)(S_ISUID | S_ISGID) | c->bits;
	return (mode & ~(c->masked ? who & ~umask : who)) | bits;
}

uint32_t shf_mode_apply(const struct shf_mode *m, uint32_t old)
{
	bool is_dir = S_ISDIR(old);
	uint32_t mode = old & 07777;

	if (m->octal)
		return m->value;
	for (size_t i = 0; i < m->n; i++)
		mode = apply_clause(&m->c[i], m->umask, mode, is_dir);
	return mode;
}

bool shf_mode_is_plain(const struct shf_mode *m, mode_t *set, mode_t *clear, mode_t *x_if_dir)
{
	bool x_touched = false; /* an earlier clause changes x by itself: X would see that */

	*set = *clear = *x_if_dir = 0;
	if (m->octal) {
		*clear = 0777;
		*set = m->value;
		return true;
	}
	for (size_t i = 0; i < m->n; i++) {
		const struct clause *c = &m->c[i];
		uint32_t may = c->who & (c->masked ? ~m->umask : ~0u), bits = c->bits & may;

		if (c->copy != 0 || (c->x_if_dir && (c->op == '-' || x_touched)))
			return false; /* differs by object */
		if (c->op == '+') {
			*set |= bits;
		} else {
			uint32_t gone = c->op == '-' ? bits : may & 0777;

			*clear |= gone;
			*set = (*set & ~gone) | (c->op == '=' ? bits : 0);
			*x_if_dir &= ~gone;
		}
		if (c->x_if_dir)
			*x_if_dir |= 0111 & may;
		else
			x_touched = x_touched || c->op == '=' || (bits & 0111) != 0;
	}
	return true;
}
