/* Private to toml*.c: the cursor over the document and the scalar readers. */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "base/toml.h"

struct toml_slot {
	const struct toml *parent;
	struct toml *node;
	uint64_t hash;
};

/* at <= text.n always; only toml_step moves it. */
struct toml_in {
	sv text;
	size_t at;
	int line, col;
	struct arena *a;
	struct box_err *err;
	struct buf tmp; /* the string being decoded */
	/* Every (table, key) seen: open addressing, a power of two, at most half full. A list alone
	 * would make the search for a duplicate quadratic. */
	struct toml_slot *slots;
	size_t slots_cap, slots_n;
	struct sip_key sip;
};

/* The byte k places ahead, or -1 behind the end. */
static inline int toml_peek(const struct toml_in *in, size_t k)
{
	return k < in->text.n - in->at ? (unsigned char)in->text.p[in->at + k] : -1;
}

/* Go one byte on, keeping line and column. */
static inline void toml_step(struct toml_in *in)
{
	unsigned char c = (unsigned char)in->text.p[in->at++];

	if (c == '\n') {
		in->line++;
		in->col = 1;
	} else if ((c & 0xc0) != 0x80) {
		in->col++;
	}
}

/* Room for a message about text of the document: escaped and cut. */
struct toml_shown {
	char t[112];
};
struct toml_shown toml_show(sv s);
/* The character at the cursor; empty at the end. */
struct toml_shown toml_here(const struct toml_in *in);
/* "LINE:COL: text", -1. */
int toml_fail_at(struct toml_in *in, int line, int col, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Skip spaces and tabs. */
void toml_skip_ws(struct toml_in *in);
/* Step over LF or CRLF. 1: done, 0: something else is here, -1: a bare CR. */
int toml_newline(struct toml_in *in);

/* A string of any of the four kinds at the cursor (on its first quote). allow_multi = false: keys,
 * where the three-quote forms are errors. */
int toml_read_string(struct toml_in *in, bool allow_multi, sv *out);
/* A boolean, number, date or time at the cursor. */
int toml_read_scalar(struct toml_in *in, struct toml *v);
