/* The tree of a shell pattern: its pieces in one pass, parentheses paired with a stack, then groups
 * and alternatives. See pattern_int.h. */
#include <stdlib.h>

#include "shell/mem.h"
#include "shell/pattern_int.h"
#include "base/ban.h"

enum piece_kind { CHAR, BRACKET, OPEN, CLOSE, BAR };

struct piece {
	enum piece_kind kind;
	bool escaped;
	sv text;
	size_t pair; /* OPEN: so many pieces on is its CLOSE; 0: none */
};

/* A range of pieces. */
struct pieces {
	const struct piece *v;
	size_t n;
};

static struct sh_pat_elem *new_elem(struct sh_pat_tree *t, enum sh_pat_kind kind)
{
	struct sh_pat_elem *e;

	/* One for each byte of the pattern and one for the whole are enough: a group is three
	 * bytes and has an alternative more than bars. */
	if (t->nelem == t->cap) {
		t->too_much = true;
		return NULL;
	}
	e = &t->elem[t->nelem++];
	e->kind = kind;
	return e;
}

/* --- pieces --- */

/* The piece at the front of p. */
static struct piece piece_of(sv p, unsigned *open)
{
	struct piece k = { .kind = CHAR };
	size_t n = 0;
	uint32_t c;

	if (p.p[0] == '(' || p.p[0] == ')' || p.p[0] == '|') {
		k.kind = p.p[0] == '(' ? OPEN : p.p[0] == ')' ? CLOSE : BAR;
		n = 1;
	} else if (p.p[0] == '\\' && p.n > 1) {
		k.escaped = true;
		n = 1 + sh_utf8_step(sv_sub(p, 1, p.n), &c);
	} else if (p.p[0] == '[') {
		n = sh_pat_bracket(0, p, 0, NULL);
		if (n != 0)
			k.kind = BRACKET;
		else
			(*open)++;
	}
	if (n == 0)
		n = sh_utf8_step(p, &c);
	k.text = sv_sub(p, 0, n);
	return k;
}

/* All of them; their number, or 0 with t->too_much. */
static size_t pieces_of(struct sh_pat_tree *t, sv p, struct piece *out)
{
	size_t *stack = sh_xalloc(p.n + 1, sizeof(*stack)), depth = 0, n = 0;
	unsigned open = 0;

	while (p.n != 0 && open <= SH_PAT_OPEN_MAX) {
		out[n] = piece_of(p, &open);
		p = sv_sub(p, out[n].text.n, p.n);
		if (out[n].kind == OPEN) {
			stack[depth++] = n;
		} else if (out[n].kind == CLOSE && depth != 0) {
			depth--;
			out[stack[depth]].pair = n - stack[depth];
		}
		n++;
	}
	free(stack);
	t->too_much = open > SH_PAT_OPEN_MAX;
	return t->too_much ? 0 : n;
}

/* --- the tree --- */

static struct sh_pat_elem *alternatives(struct sh_pat_tree *t, struct pieces p, int depth);

static bool is_group(struct pieces p)
{
	sv s = p.v[0].text;

	return p.n > 1 && p.v[1].kind == OPEN && p.v[1].pair != 0 && s.n == 1 &&
	       (s.p[0] == '?' || s.p[0] == '*' || s.p[0] == '+' || s.p[0] == '@' || s.p[0] == '!');
}

/* The element that p begins with; *len receives how many pieces it is. NULL: too much. */
static struct sh_pat_elem *element(
    struct sh_pat_tree *t, struct pieces p, bool extglob, int depth, size_t *len)
{
	sv s = p.v[0].text;
	struct sh_pat_elem *e;

	*len = 1;
	if (extglob && is_group(p)) {
		size_t body = p.v[1].pair - 1;

		e = new_elem(t, SH_PE_GROUP);
		if (e == NULL || depth == SH_PAT_DEPTH_MAX) {
			t->too_much = true;
			return NULL;
		}
		t->groups = true;
		e->group = s.p[0];
		e->first = alternatives(t, (struct pieces){ p.v + 2, body }, depth + 1);
		*len = body + 3;
		return e;
	}
	if (p.v[0].kind == BRACKET) {
		e = new_elem(t, SH_PE_BRACKET);
		if (e != NULL)
			e->text = s;
		return e;
	}
	if (s.n == 1 && (s.p[0] == '*' || s.p[0] == '?'))
		return new_elem(t, s.p[0] == '*' ? SH_PE_STAR : SH_PE_ANY);
	e = new_elem(t, SH_PE_LIT);
	if (e != NULL)
		(void)sh_utf8_step(p.v[0].escaped ? sv_sub(s, 1, s.n) : s, &e->c);
	return e;
}

static struct sh_pat_elem *sequence(struct sh_pat_tree *t, struct pieces p, bool extglob, int depth)
{
	struct sh_pat_elem *alt = new_elem(t, SH_PE_ALT);

	while (p.n != 0 && !t->too_much) {
		size_t n;
		struct sh_pat_elem *e = element(t, p, extglob, depth, &n);

		if (e == NULL)
			break;
		e->prev = alt->last;
		if (alt->last != NULL)
			alt->last->next = e;
		else
			alt->first = e;
		alt->last = e;
		p.v += n;
		p.n -= n;
	}
	return alt;
}

/* "a|b|c": a bar inside other parentheses is ordinary. */
static struct sh_pat_elem *alternatives(struct sh_pat_tree *t, struct pieces p, int depth)
{
	struct sh_pat_elem *first = NULL, **tail = &first;
	size_t from = 0;

	for (size_t i = 0; i <= p.n && !t->too_much; i++) {
		if (i < p.n && p.v[i].kind == OPEN) {
			i += p.v[i].pair;
		} else if (i == p.n || p.v[i].kind == BAR) {
			struct pieces one = { p.v + from, i - from };

			*tail = sequence(t, one, true, depth);
			if (*tail != NULL)
				tail = &(*tail)->next;
			from = i + 1;
		}
	}
	return first;
}

void sh_pat_tree_init(struct sh_pat_tree *t, sv pattern, unsigned flags)
{
	struct piece *v = sh_xalloc(pattern.n + 1, sizeof(*v));
	size_t n;

	*t = (struct sh_pat_tree){ .cap = pattern.n + 2 };
	t->elem = sh_xalloc(t->cap, sizeof(*t->elem));
	n = pieces_of(t, pattern, v);
	t->root = sequence(t, (struct pieces){ v, n }, (flags & SH_PAT_EXTGLOB) != 0, 0);
	free(v);
}

void sh_pat_tree_fini(struct sh_pat_tree *t)
{
	free(t->elem);
}
