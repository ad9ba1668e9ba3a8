/* parse_cmd: the grammar of commands, between parse.c (lists) and parse_word.c (words). */
#pragma once

#include "shell/parse_int.h"

struct sh_node *sh_p_node(struct sh_parser *p, enum sh_node_kind kind, int line);
/* Skip newlines (linebreak of the grammar). */
void sh_p_newlines(struct sh_parser *p);
_Noreturn void sh_p_unexpected(struct sh_parser *p, const struct token *t);
/* One command: simple, compound or function definition, with its redirections. */
struct sh_node *sh_p_command(struct sh_parser *p);
/* The next word must be this reserved word, and is taken. */
void sh_p_expect(struct sh_parser *p, const char *reserved);
/* parse_cond.c: [[ ... ]], with the cursor at "[[". */
struct sh_node *sh_p_cond_command(struct sh_parser *p);
