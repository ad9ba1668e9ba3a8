/* loader: what a dynamic program needs to start: its interpreter and the libraries its headers
 * name. A bounded reader of hostile files: only headers, the program header table and the dynamic
 * section's strings are looked at, never sections, never the whole image. Internal to src/contain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sv.h"

#define ELF_NEEDED_MAX  512  /* DT_NEEDED entries of one image */
#define ELF_CLOSURE_MAX 1024 /* files of one closure */

struct elf_image {
	bool is_elf; /* false: not ELF (a script, data); the rest is empty */
	bool is_64;
	uint16_t machine;          /* EM_* */
	const char *interp;        /* PT_INTERP, or NULL */
	const char *const *needed; /* DT_NEEDED, in order */
	size_t needed_n;
	const char *runpath; /* DT_RUNPATH, else DT_RPATH, colon-separated as written; NULL */
};

/* Reads `n` bytes at `off` into p; returns false when they are not there. */
struct elf_source {
	bool (*read)(void *arg, uint64_t off, void *p, size_t n);
	void *arg;
};
/* Parse one image; strings are copied into a. -1 with a message for an ELF file that is malformed
 * or for another word size than the machine's. */
int elf_parse(
    const struct elf_source *src, struct arena *a, struct elf_image *out, struct box_err *err);
/* The same for an open file. */
int elf_parse_fd(int fd, struct arena *a, struct elf_image *out, struct box_err *err);

struct elf_file {
	const char *path; /* as the loader will open it: may lead through links */
	bool interp;      /* a PT_INTERP: must be executable, not only readable */
};
/* Everything that starting `program` loads: the interpreter, and each library in DT_NEEDED order,
 * breadth first, without the program itself. Search order as ld.so(8) without LD_LIBRARY_PATH:
 * RUNPATH or RPATH with $ORIGIN of the image, RPATH-like of the program, /etc/ld.so.cache, the
 * default directories. A library that is found nowhere is an error that names it and who needs it.
 * Not an ELF file: *n is 0. */
int elf_closure(
    const char *program, struct arena *a, struct elf_file **out, size_t *n, struct box_err *err);

/* One lookup in the bytes of a glibc /etc/ld.so.cache ("glibc-ld.so.cache1.1"): the first entry for
 * this soname that suits a 64-bit library of this machine without hardware capabilities. NULL when
 * there is none or the bytes are malformed. The result borrows from the bytes. */
sv elf_cache_find(sv cache, sv soname, uint16_t machine);
