/* ast: a parsed command. Everything below lives in the arena of one struct sh_tree, which is
 * counted: a function definition keeps the tree it came from.
 *
 * Words are parsed completely: quoting, expansions and the commands inside substitutions are
 * already trees, so expansion never looks at program text again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/sv.h"

struct sh_node;
struct sh_word;

/* --- words --- */

enum sh_part_kind {
	SH_PT_LIT,    /* text: unquoted characters; *, ?, [ and ~ are active */
	SH_PT_QUOTED, /* text: characters that stand for themselves */
	SH_PT_DQUOTE, /* sub: what stood between double quotes (QUOTED, PARAM, CMD, ARITH) */
	SH_PT_PARAM,  /* param */
	SH_PT_CMD,    /* cmd: $(...) or `...`; NULL for an empty one */
	SH_PT_ARITH,  /* sub: the expression of $((...)) as if in double quotes */
	SH_PT_PROC    /* cmd: <(...) or >(...), the latter with `out` */
};

struct sh_part {
	struct sh_part *next;
	enum sh_part_kind kind;
	bool out;
	sv text;
	struct sh_part *sub;
	struct sh_param *param;
	struct sh_node *cmd;
};

enum sh_param_op {
	SH_OP_NONE,
	SH_OP_LENGTH,         /* ${#x} */
	SH_OP_MINUS,          /* ${x-w} ${x:-w} */
	SH_OP_ASSIGN,         /* = */
	SH_OP_ERROR,          /* ? */
	SH_OP_PLUS,           /* + */
	SH_OP_PREFIX,         /* # */
	SH_OP_PREFIX_LONG,    /* ## */
	SH_OP_SUFFIX,         /* % */
	SH_OP_SUFFIX_LONG,    /* %% */
	SH_OP_REPLACE,        /* /p/r */
	SH_OP_REPLACE_ALL,    /* //p/r */
	SH_OP_REPLACE_PREFIX, /* /#p/r */
	SH_OP_REPLACE_SUFFIX, /* /%p/r */
	SH_OP_SLICE,          /* :o:l */
	SH_OP_UPPER,          /* ^p */
	SH_OP_UPPER_ALL,      /* ^^p */
	SH_OP_LOWER,          /* ,p */
	SH_OP_LOWER_ALL,      /* ,,p */
	SH_OP_TOGGLE,         /* ~p */
	SH_OP_TOGGLE_ALL,     /* ~~p */
	SH_OP_AT,             /* @Q and the like: letter */
	SH_OP_NAMES,          /* ${!prefix*} and ${!prefix@}: letter */
	SH_OP_KEYS,           /* ${!a[@]} and ${!a[*]} */
	SH_OP_BAD /* not a parameter expansion: an error when it is expanded, as in other shells */
};

struct sh_param {
	const char *name; /* a variable's name, a number, or one of @ * # ? - $ ! */
	enum sh_param_op op;
	bool colon;                /* :- := :? :+ */
	bool indirect;             /* ${!x...} */
	char letter;               /* for @ and NAMES */
	char subscript_all;        /* '@' or '*' for ${a[@]} ${a[*]}, else 0 */
	struct sh_word *subscript; /* ${a[i]}, else NULL */
	struct sh_word *arg;       /* the word behind the operator; NULL: none */
	struct sh_word *arg2;      /* replacement or length; NULL: none */
	const char *text;          /* as written, for messages */
	int line;
};

struct sh_word {
	struct sh_word *next;
	struct sh_part *parts;
	bool braces; /* holds an unquoted { with , or ..: brace expansion looks at it */
	int line;
	/* An assignment among the arguments of declare and its kin; parts is then NULL and text is
	 * how it was written. */
	struct sh_assign *assign;
	const char *text;
};

/* --- assignments and redirections --- */

struct sh_assign {
	struct sh_assign *next;
	const char *name;
	struct sh_word *subscript; /* name[subscript]=, else NULL */
	bool append;               /* += */
	struct sh_word *value;     /* NULL: empty */
	bool is_array;             /* name=(...) */
	struct sh_assign *elems;   /* elements: subscript or NULL, value */
};

enum sh_redir_kind {
	SH_RD_IN,         /* < */
	SH_RD_OUT,        /* > */
	SH_RD_CLOBBER,    /* >| */
	SH_RD_APPEND,     /* >> */
	SH_RD_RDWR,       /* <> */
	SH_RD_DUP_IN,     /* <& */
	SH_RD_DUP_OUT,    /* >& */
	SH_RD_HERE,       /* << <<- <<< : word is the text */
	SH_RD_BOTH,       /* &> */
	SH_RD_BOTH_APPEND /* &>> */
};

struct sh_redir {
	struct sh_redir *next;
	enum sh_redir_kind kind;
	int fd;             /* the descriptor to the left; -1: the default */
	const char *fd_var; /* {name}>: a new descriptor, its number goes into the variable */
	struct sh_word *word;
	bool here_string; /* <<<: a newline is added */
	bool here_quoted; /* quoted delimiter */
	/* While parsing a here-document. */
	struct sh_redir *here_next;
	const char *delim;
	bool strip_tabs;
	int line;
};

/* --- commands --- */

enum sh_node_kind {
	SH_N_SIMPLE,
	SH_N_PIPE, /* kids: the stages */
	SH_N_NOT,  /* a */
	SH_N_AND,  /* a && b */
	SH_N_OR,
	SH_N_SEQ,      /* kids in order */
	SH_N_BG,       /* a & */
	SH_N_GROUP,    /* { a; } */
	SH_N_SUBSHELL, /* ( a ) */
	SH_N_IF,       /* a then b else c */
	SH_N_WHILE,    /* a do b */
	SH_N_UNTIL,
	SH_N_FOR, /* name in words do a */
	SH_N_SELECT,
	SH_N_ARITH_FOR, /* ((e1; e2; e3)) do a */
	SH_N_CASE,      /* word, items */
	SH_N_FUNC,      /* name, a */
	SH_N_COND,      /* [[ cond ]] */
	SH_N_ARITH,     /* (( e1 )) */
	SH_N_TIME       /* time a; posix_time */
};

struct sh_case_item {
	struct sh_case_item *next;
	struct sh_word *patterns;
	struct sh_node *body; /* NULL: empty */
	char end;             /* ';' for ;;   '&' for ;&   '+' for ;;& */
};

enum sh_cond_kind { SH_C_AND, SH_C_OR, SH_C_NOT, SH_C_UNARY, SH_C_BINARY, SH_C_WORD };
struct sh_cond {
	enum sh_cond_kind kind;
	struct sh_cond *a, *b;
	const char *op; /* "-f", "==", "=~", ... */
	struct sh_word *left, *right;
};

struct sh_node {
	struct sh_node *next; /* sibling in kids */
	enum sh_node_kind kind;
	int line;
	struct sh_redir *redirs; /* of a compound or simple command */
	/* simple */
	struct sh_assign *assigns;
	struct sh_word *words;
	/* compound */
	struct sh_node *a, *b, *c;
	struct sh_node *kids;
	const char *name;
	bool has_in;     /* for: `in` was there */
	bool posix_time; /* time -p */
	bool pipe_both;  /* |& behind this stage */
	struct sh_word *word;
	struct sh_case_item *items;
	struct sh_cond *cond;
	struct sh_word *e1, *e2, *e3;
};

/* One complete command and the memory it lives in. */
struct sh_tree {
	struct arena arena;
	unsigned refs;
	struct sh_node *node; /* NULL: an empty line */
};

struct sh_tree *sh_tree_ref(struct sh_tree *t);
void sh_tree_unref(struct sh_tree *t);
