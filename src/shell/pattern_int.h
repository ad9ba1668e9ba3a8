/* pattern_int: a pattern as a tree, between pattern.c, pattern_tree.c and pattern_match.c. Patterns
 * are hostile text: making the tree costs no more than their length, within the limits here. */
#pragma once

#include "shell/pattern.h"

/* Groups within groups, and brackets that do not close: ordinary text, but each was looked for to
 * the end of the pattern. A pattern with more matches nothing. */
#define SH_PAT_DEPTH_MAX 200
#define SH_PAT_OPEN_MAX  1000

enum sh_pat_kind { SH_PE_LIT, SH_PE_ANY, SH_PE_BRACKET, SH_PE_STAR, SH_PE_GROUP, SH_PE_ALT };

struct sh_pat_elem {
	enum sh_pat_kind kind;
	char group;                       /* GROUP: one of ? * + @ ! */
	uint32_t c;                       /* LIT */
	sv text;                          /* BRACKET: in the pattern */
	struct sh_pat_elem *next, *prev;  /* in a sequence; of an ALT: the next alternative */
	struct sh_pat_elem *first, *last; /* ALT: its sequence; GROUP: its first alternative */
};

struct sh_pat_tree {
	struct sh_pat_elem *root; /* an ALT */
	struct sh_pat_elem *elem; /* owns all */
	size_t nelem, cap;
	bool groups;   /* there are some */
	bool too_much; /* beyond the limits: the tree is not whole */
};

/* The pattern must outlive the tree. */
void sh_pat_tree_init(struct sh_pat_tree *t, sv pattern, unsigned flags);
void sh_pat_tree_fini(struct sh_pat_tree *t);

/* Are the two characters the same, under SH_PAT_NOCASE also when only their case differs? */
bool sh_pat_same(unsigned flags, uint32_t a, uint32_t b);
/* Is there a complete bracket expression at p.p[0] == '['? Returns its length, 0 when it is an
 * ordinary '['. With hit != NULL also whether it matches c. */
size_t sh_pat_bracket(unsigned flags, sv p, uint32_t c, bool *hit);
