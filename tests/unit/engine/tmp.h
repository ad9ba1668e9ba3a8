/* A private folder per test program, and what tests do to stores in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/io.h"

/* The folder's path; made at the first call. */
const char *tmp_root(void);
/* "<root>/<name>": a path for a new store, whatever was there is removed. The result lives until
 * the next four calls. */
const char *tmp_path(const char *name);
/* Remove the folder and all in it. */
void tmp_done(void);
/* Copy all files of one store into a new one. */
void tmp_copy(const char *from, const char *to);
/* A file of a store: whole content (free it), and writing it back. */
uint8_t *tmp_read(const char *store, const char *file, size_t *n);
void tmp_write(const char *store, const char *file, const uint8_t *p, size_t n);
/* Name of the newest segment. */
const char *tmp_newest(const char *store);

/* The real calls, of which one can fail: the `fail_at`-th (from 1; 0: none) with `error`; `stay`
 * makes all after it fail too. */
struct tmp_faults {
	_Atomic unsigned calls, fail_at; /* the helper thread calls too */
	int error;
	bool stay;
	bool short_write; /* the failing write writes half */
};
struct eng_io tmp_io(struct tmp_faults *f);

/* A small generator with a seed, so that a failure can be repeated. */
uint64_t tmp_rand(uint64_t *state);
