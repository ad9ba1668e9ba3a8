/* loader.h. Offsets and counts come from the file: every range is checked against overflow and a
 * fixed bound before it is read. */
#include "contain/loader.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define PHDR_MAX   128
#define DYN_MAX    4096
#define INTERP_MAX 4096
#define NAME_MAX_  4096 /* one string of the dynamic section */

#if defined(__x86_64__)
#define MACHINE    EM_X86_64
#define TRIPLET    "x86_64-linux-gnu"
#define CACHE_FLAG 0x0303 /* FLAG_X8664_LIB64 | FLAG_ELF_LIBC6 */
#elif defined(__aarch64__)
#define MACHINE    EM_AARCH64
#define TRIPLET    "aarch64-linux-gnu"
#define CACHE_FLAG 0x0a03
#else
#error "only x86-64 and arm64 are supported"
#endif

struct image_rd {
	const struct elf_source *src;
	struct arena *a;
	Elf64_Phdr ph[PHDR_MAX];
	size_t ph_n;
};

/* File offset of a virtual address, by the PT_LOAD that holds it. */
static bool addr_to_off(const struct image_rd *g, uint64_t addr, uint64_t *off)
{
	for (size_t i = 0; i < g->ph_n; i++) {
		const Elf64_Phdr *p = &g->ph[i];

		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_filesz &&
		    !__builtin_add_overflow(p->p_offset, addr - p->p_vaddr, off))
			return true;
	}
	return false;
}

/* A NUL-terminated string of at most max bytes at off, copied; NULL when it is not there. */
static const char *read_str(const struct image_rd *g, uint64_t off, size_t max)
{
	char text[NAME_MAX_];
	size_t n = 0;

	if (max > sizeof(text))
		max = sizeof(text);
	while (n < max) {
		size_t step = max - n < 64 ? max - n : 64;
		const char *z;
		uint64_t at;

		if (__builtin_add_overflow(off, n, &at))
			return NULL;
		while (step != 0 && !g->src->read(g->src->arg, at, text + n, step))
			step /= 2; /* near the end of the file */
		if (step == 0)
			return NULL;
		z = memchr(text + n, '\0', step);
		n += step;
		if (z != NULL)
			return arena_dup(g->a, (sv){ text, (size_t)(z - text) }).p;
	}
	return NULL;
}

static int parse_dynamic(
    struct image_rd *g, const Elf64_Phdr *dyn, struct elf_image *out, struct box_err *err)
{
	size_t n = dyn->p_filesz / sizeof(Elf64_Dyn);
	uint64_t strtab = 0, stroff, strsz = 0, runpath = 0, rpath = 0, needed[ELF_NEEDED_MAX];
	bool has_runpath = false, has_rpath = false;
	size_t needed_n = 0;
	const char **v;

	if (n > DYN_MAX)
		return box_fail(err, BOX_EPARSE, 0, "its dynamic section is too large");
	for (size_t i = 0; i < n; i++) {
		Elf64_Dyn d;

		if (!g->src->read(g->src->arg, dyn->p_offset + i * sizeof(d), &d, sizeof(d)))
			return box_fail(err, BOX_EPARSE, 0, "its dynamic section is cut off");
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			strtab = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			strsz = d.d_un.d_val;
		else if (d.d_tag == DT_RUNPATH) {
			runpath = d.d_un.d_val;
			has_runpath = true;
		} else if (d.d_tag == DT_RPATH) {
			rpath = d.d_un.d_val;
			has_rpath = true;
		} else if (d.d_tag == DT_NEEDED) {
			if (needed_n == ELF_NEEDED_MAX)
				return box_fail(err, BOX_ELIMIT, 0, "it needs too many libraries");
			needed[needed_n++] = d.d_un.d_val;
		}
	}
	if (needed_n == 0 && !has_runpath && !has_rpath)
		return 0;
	if (!addr_to_off(g, strtab, &stroff))
		return box_fail(err, BOX_EPARSE, 0, "its dynamic strings are nowhere");
	v = ARENA_VEC(g->a, const char *, needed_n);
	if (v == NULL && needed_n != 0)
		return box_nomem(err, "the names of its libraries");
	for (size_t i = 0; i < needed_n; i++) {
		uint64_t at;

		if (needed[i] >= strsz || __builtin_add_overflow(stroff, needed[i], &at) ||
		    (v[i] = read_str(g, at, NAME_MAX_)) == NULL || v[i][0] == '\0')
			return box_fail(err, BOX_EPARSE, 0, "the name of a library is malformed");
	}
	out->needed = v;
	out->needed_n = needed_n;
	if (has_runpath || has_rpath) {
		uint64_t idx = has_runpath ? runpath : rpath, at;

		if (idx >= strsz || __builtin_add_overflow(stroff, idx, &at) ||
		    (out->runpath = read_str(g, at, NAME_MAX_)) == NULL)
			return box_fail(err, BOX_EPARSE, 0, "its library path is malformed");
	}
	return 0;
}

int elf_parse(
    const struct elf_source *src, struct arena *a, struct elf_image *out, struct box_err *err)
{
	struct image_rd g = { .src = src, .a = a };
	const Elf64_Phdr *dyn = NULL;
	Elf64_Ehdr eh;

	*out = (struct elf_image){ 0 };
	if (!src->read(src->arg, 0, eh.e_ident, EI_NIDENT) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	out->is_elf = true;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return box_fail(err, BOX_EPARSE, 0, "it is not a 64-bit program of this machine");
	out->is_64 = true;
	if (!src->read(src->arg, 0, &eh, sizeof(eh)) || eh.e_phentsize != sizeof(Elf64_Phdr) ||
	    eh.e_phnum > PHDR_MAX)
		return box_fail(err, BOX_EPARSE, 0, "its ELF header is malformed");
	out->machine = eh.e_machine;
	if (eh.e_machine != MACHINE)
		return box_fail(err, BOX_EPARSE, 0, "it is a program for another kind of machine");
	for (size_t i = 0; i < eh.e_phnum; i++) {
		uint64_t off;

		if (__builtin_add_overflow(eh.e_phoff, i * sizeof(Elf64_Phdr), &off) ||
		    !src->read(src->arg, off, &g.ph[i], sizeof(g.ph[i])))
			return box_fail(err, BOX_EPARSE, 0, "its program headers are cut off");
		g.ph_n = i + 1;
	}
	for (size_t i = 0; i < g.ph_n; i++) {
		const Elf64_Phdr *p = &g.ph[i];

		if (p->p_type == PT_INTERP && out->interp == NULL) {
			if (p->p_filesz > INTERP_MAX ||
			    (out->interp = read_str(&g, p->p_offset, (size_t)p->p_filesz)) ==
			        NULL ||
			    out->interp[0] != '/')
				return box_fail(err, BOX_EPARSE, 0, "its interpreter is malformed");
		} else if (p->p_type == PT_DYNAMIC && dyn == NULL) {
			dyn = p;
		}
	}
	return dyn != NULL ? parse_dynamic(&g, dyn, out, err) : 0;
}

/* A window over a file: headers are read in many small pieces that lie close together. */
struct window {
	int fd;
	uint64_t off;
	size_t n;
	char data[4096];
};

static bool read_window(void *arg, uint64_t off, void *p, size_t n)
{
	struct window *w = arg;
	ssize_t got;

	if (n > sizeof(w->data) || off > INT64_MAX - sizeof(w->data))
		return false;
	if (off < w->off || off - w->off > w->n || w->n - (off - w->off) < n) {
		w->off = off;
		w->n = 0;
		do {
			got = pread(w->fd, w->data, sizeof(w->data), (off_t)off);
		} while (got < 0 && errno == EINTR);
		if (got < 0)
			return false;
		w->n = (size_t)got;
	}
	if (w->n - (off - w->off) < n)
		return false;
	memcpy(p, w->data + (off - w->off), n);
	return true;
}

int elf_parse_fd(int fd, struct arena *a, struct elf_image *out, struct box_err *err)
{
	struct window w = { .fd = fd };

	return elf_parse(&(struct elf_source){ read_window, &w }, a, out, err);
}

/* --- /etc/ld.so.cache (glibc, elf/dl-cache.h) --- */

struct cache_hdr {
	char magic[20]; /* "glibc-ld.so.cache1.1" */
	uint32_t nlibs, len_strings;
	uint8_t flags, pad[3];
	uint32_t ext_off, unused[3];
};
struct cache_entry {
	int32_t flags;
	uint32_t key, value; /* offsets from the header */
	uint32_t osversion;
	uint64_t hwcap;
};

static sv cache_str(sv file, uint32_t off)
{
	const char *z;

	if (off >= file.n)
		return (sv){ NULL, 0 };
	z = memchr(file.p + off, '\0', file.n - off);
	return z != NULL ? (sv){ file.p + off, (size_t)(z - (file.p + off)) } : (sv){ NULL, 0 };
}

sv elf_cache_find(sv cache, sv soname, uint16_t machine)
{
	static const sv magic = SV_INIT("glibc-ld.so.cache1.1");
	struct cache_hdr h;
	ptrdiff_t at = sv_starts(cache, magic) ? 0 : sv_find_sv(cache, magic);
	sv file;

	/* An old-format table may come first; offsets count from the new header. */
	if (at < 0 || machine != MACHINE)
		return (sv){ NULL, 0 };
	file = sv_sub(cache, (size_t)at, cache.n);
	if (file.n < sizeof(h))
		return (sv){ NULL, 0 };
	memcpy(&h, file.p, sizeof(h));
	if (h.nlibs > (file.n - sizeof(h)) / sizeof(struct cache_entry))
		return (sv){ NULL, 0 };
	for (uint32_t i = 0; i < h.nlibs; i++) {
		struct cache_entry e;

		memcpy(&e, file.p + sizeof(h) + (size_t)i * sizeof(e), sizeof(e));
		if (e.flags != CACHE_FLAG || e.hwcap != 0 || !sv_eq(cache_str(file, e.key), soname))
			continue;
		return cache_str(file, e.value);
	}
	return (sv){ NULL, 0 };
}

/* --- closure --- */

static const char *const default_dirs[] = { "/lib/" TRIPLET, "/usr/lib/" TRIPLET, "/lib64",
	"/usr/lib64", "/lib", "/usr/lib" };

struct closure {
	struct arena *a;
	struct elf_file *v;
	struct elf_image *img; /* of v[i] */
	size_t n;
	struct buf cache;
	const char *program_dir; /* for the program's own RUNPATH-as-RPATH */
	const struct elf_image *program;
};

static int closure_add(struct closure *c, const char *path, bool interp, struct box_err *err)
{
	if (c->n == ELF_CLOSURE_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "it needs too many libraries");
	c->v[c->n++] = (struct elf_file){ path, interp };
	return 0;
}

/* Is this a library we can load? Opens it, checks that it is ELF for this machine. */
static bool try_library(struct closure *c, const char *path, struct elf_image *img)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct box_err ignored;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       elf_parse_fd(fd, c->a, img, &ignored) == 0 && img->is_elf;
}

static sv dir_of(const char *path)
{
	ptrdiff_t i = sv_rfind(sv_c(path), '/');

	return i > 0 ? (sv){ path, (size_t)i } : SV("/");
}

/* Try soname in each directory of a RUNPATH; $ORIGIN and ${ORIGIN} are the directory of its image,
 * $LIB and $PLATFORM are left out (no distribution uses them). A relative directory is skipped:
 * what it means depends on the caller. */
static const char *search_runpath(
    struct closure *c, const char *runpath, sv origin, const char *soname, struct elf_image *img)
{
	sv rest = sv_c(runpath), dir;
	bool more;

	do {
		const char *path = NULL;

		more = sv_cut(rest, ':', &dir, &rest);
		if (sv_starts(dir, SV("$ORIGIN")))
			path = arena_printf(c->a, SV_FMT SV_FMT "/%s", SV_ARG(origin),
			    SV_ARG(sv_sub(dir, 7, dir.n)), soname);
		else if (sv_starts(dir, SV("${ORIGIN}")))
			path = arena_printf(c->a, SV_FMT SV_FMT "/%s", SV_ARG(origin),
			    SV_ARG(sv_sub(dir, 9, dir.n)), soname);
		else if (dir.n != 0 && dir.p[0] == '/')
			path = arena_printf(c->a, SV_FMT "/%s", SV_ARG(dir), soname);
		if (path != NULL && sv_find(sv_c(path), '$') < 0 && try_library(c, path, img))
			return path;
	} while (more);
	return NULL;
}

static const char *find_library(struct closure *c, const char *soname, const struct elf_image *by,
    const char *by_path, struct elf_image *img)
{
	const char *path;
	sv hit;

	if (strchr(soname, '/') != NULL)
		return soname[0] == '/' && try_library(c, soname, img) ? soname : NULL;
	if (by->runpath != NULL &&
	    (path = search_runpath(c, by->runpath, dir_of(by_path), soname, img)) != NULL)
		return path;
	if (by != c->program && c->program->runpath != NULL &&
	    (path = search_runpath(c, c->program->runpath, sv_c(c->program_dir), soname, img)) !=
	        NULL)
		return path;
	hit = elf_cache_find(buf_sv(&c->cache), sv_c(soname), MACHINE);
	if (hit.n != 0 && hit.p[0] == '/' && (path = arena_dup(c->a, hit).p) != NULL &&
	    try_library(c, path, img))
		return path;
	for (size_t i = 0; i < sizeof(default_dirs) / sizeof(default_dirs[0]); i++) {
		path = arena_printf(c->a, "%s/%s", default_dirs[i], soname);
		if (path != NULL && try_library(c, path, img))
			return path;
	}
	return NULL;
}

static bool seen(const char *const *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i], name) == 0)
			return true;
	return false;
}

static int closure_walk(struct closure *c, const char *program, struct box_err *err)
{
	const char **names = ARENA_VEC(c->a, const char *, ELF_CLOSURE_MAX);
	size_t names_n = 0, next = c->n;
	const struct elf_image *by = c->program;
	const char *by_path = program;

	if (names == NULL)
		return box_nomem(err, "the libraries of a program");
	for (;;) {
		for (size_t i = 0; i < by->needed_n; i++) {
			const char *path;

			if (seen(names, names_n, by->needed[i]))
				continue;
			if (names_n == ELF_CLOSURE_MAX || c->n == ELF_CLOSURE_MAX)
				return box_fail(err, BOX_ELIMIT, 0, "it needs too many libraries");
			path = find_library(c, by->needed[i], by, by_path, &c->img[c->n]);
			if (path == NULL)
				return box_fail(err, BOX_ECONFIG, 0,
				    "library %s, needed by %s, was not found; is it installed?",
				    by->needed[i], by_path);
			names[names_n++] = by->needed[i];
			if (closure_add(c, path, false, err) < 0)
				return -1;
		}
		if (next == c->n)
			return 0;
		by = &c->img[next];
		by_path = c->v[next].path;
		next++;
	}
}

static int realpath_dir(const char *program, char *real, sv *dir)
{
	if (realpath(program, real) == NULL)
		return -1;
	*dir = dir_of(real);
	return 0;
}

int elf_closure(
    const char *program, struct arena *a, struct elf_file **out, size_t *n, struct box_err *err)
{
	AUTO_FD fd = open(program, O_RDONLY | O_CLOEXEC);
	struct closure c = { .a = a, .cache = buf_with((size_t)16 << 20) };
	struct elf_image img;
	char real[PATH_MAX];
	sv dir;
	int r = -1;

	*out = NULL;
	*n = 0;
	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", program);
	if (elf_parse_fd(fd, a, &img, err) < 0)
		return box_wrap(err, "%s", program);
	if (!img.is_elf)
		return 0;
	c.v = ARENA_VEC(a, struct elf_file, ELF_CLOSURE_MAX);
	c.img = ARENA_VEC(a, struct elf_image, ELF_CLOSURE_MAX);
	if (c.v == NULL || c.img == NULL)
		return box_nomem(err, "the libraries of a program");
	/* $ORIGIN is the directory of the file itself, links resolved. */
	if (realpath_dir(program, real, &dir) < 0)
		return box_fail(err, BOX_ESYS, errno, "resolve %s", program);
	c.program_dir = arena_dup(a, dir).p;
	c.program = &img;
	if (c.program_dir == NULL)
		return box_nomem(err, "a path");
	if (img.needed_n != 0)
		(void)fd_read_file("/etc/ld.so.cache", c.cache.max, &c.cache, NULL);
	if (img.interp != NULL && closure_add(&c, img.interp, true, err) < 0)
		goto out;
	if (closure_walk(&c, program, err) < 0) {
		(void)box_wrap(err, "%s", program);
		goto out;
	}
	*out = c.v;
	*n = c.n;
	r = 0;
out:
	buf_fini(&c.cache);
	return r;
}
