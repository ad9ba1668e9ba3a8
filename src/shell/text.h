/* text: what the text utilities (cut, grep, head, sed, sort, tail, tr, uniq, wc) share. Their input
 * is hostile text, their memory is bounded by SHCMD_MEM_MAX. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shell/command.h"

/* Characters are bytes, or UTF-8 when the exported LC_ALL, LC_CTYPE or LANG says so, as it is for
 * the tools of the system. While one is begun, mbrtowc, iswprint and the regular expressions of
 * libc of this thread follow it. */
struct text_locale {
	locale_t mine, before;
	bool utf8;
};
void text_locale_begin(struct text_locale *l, struct sh_io *io);
void text_locale_end(struct text_locale *l);

/* The operands behind the options; none means standard input. on() gets an open descriptor, closed
 * for it, and the name to show ("-" stays "-"). What cannot be opened is reported as `how` says and
 * makes the status 1. on() returns a status; the largest of all is the result. */
enum text_open_words {
	TEXT_OPEN_PLAIN,   /* "cut: x: No such file or directory" */
	TEXT_OPEN_READING, /* "head: cannot open 'x' for reading: No such file or directory" */
};
int text_open(struct sh_io *io, const char *name, enum text_open_words how);
int text_each(struct sh_io *io, char **names, enum text_open_words how,
    int (*on)(void *arg, int fd, const char *name), void *arg);

/* Report a failed read of `name` ("cut: x: Is a directory"). Returns 1. */
int text_read_err(struct sh_io *io, const char *name, int sys);

/* A count with a multiplier suffix: b 512, kB 1000, K or KiB 1024, and so on to Y. Larger than
 * INT64_MAX is clipped. */
bool text_count(const char *s, int64_t *out);

/* A growing list of pointers or bytes outside the arena, for what is dropped while the command
 * runs. NULL at SHCMD_MEM_MAX, after a message. */
void *text_grow(struct sh_io *io, void *p, size_t *cap, size_t need, size_t size);

/* A queue of bytes, cut into pieces: the last lines of a stream. */
struct text_queue {
	char *p;
	size_t cap, from, to; /* bytes [from, to) are queued */
	size_t *len;          /* ring of piece lengths */
	size_t len_cap, len_from, len_n;
};
/* 0, or -1 after a message. */
int text_queue_put(struct sh_io *io, struct text_queue *q, sv piece);
/* The oldest piece, borrowed until the next put. False when empty. */
bool text_queue_take(struct text_queue *q, sv *piece);
void text_queue_fini(struct text_queue *q);
