/* The ELF reader on made-up images, the loader cache, #! lines, and the closure of a real program.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "contain/loader.h"
#include "contain/script.h"
#include "failmalloc.h"
#include "base/ban.h"

#if defined(__x86_64__)
#define MACHINE    EM_X86_64
#define CACHE_FLAG 0x0303
#else
#define MACHINE    EM_AARCH64
#define CACHE_FLAG 0x0a03
#endif

struct mem {
	const uint8_t *p;
	size_t n;
};

static bool read_mem(void *arg, uint64_t off, void *p, size_t n)
{
	const struct mem *m = arg;

	if (off > m->n || m->n - off < n)
		return false;
	memcpy(p, m->p + off, n);
	return true;
}

static int parse(
    const void *p, size_t n, struct arena *a, struct elf_image *out, struct box_err *err)
{
	struct mem m = { p, n };

	return elf_parse(&(struct elf_source){ read_mem, &m }, a, out, err);
}

/* A small shared object: interpreter, two libraries, RUNPATH. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3];
	Elf64_Dyn dyn[6];
	char interp[16];
	char str[48];
};

static struct image sample(void)
{
	struct image m;

	memset(&m, 0, sizeof(m));
	memcpy(m.eh.e_ident, ELFMAG, SELFMAG);
	m.eh.e_ident[EI_CLASS] = ELFCLASS64;
	m.eh.e_ident[EI_DATA] = ELFDATA2LSB;
	m.eh.e_machine = MACHINE;
	m.eh.e_phoff = offsetof(struct image, ph);
	m.eh.e_phentsize = sizeof(Elf64_Phdr);
	m.eh.e_phnum = 3;
	m.ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = 0x10000, .p_filesz = sizeof(m) };
	m.ph[1] = (Elf64_Phdr){
		.p_type = PT_INTERP, .p_offset = offsetof(struct image, interp), .p_filesz = 12
	};
	m.ph[2] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
		.p_offset = offsetof(struct image, dyn),
		.p_filesz = sizeof(m.dyn) };
	memcpy(m.interp, "/lib/ld.so", 11);
	memcpy(m.str, "\0liba.so\0libb.so.1\0$ORIGIN/../lib:/opt/l", 41);
	m.dyn[0] = (Elf64_Dyn){ DT_NEEDED, { 1 } };
	m.dyn[1] = (Elf64_Dyn){ DT_NEEDED, { 9 } };
	m.dyn[2] = (Elf64_Dyn){ DT_STRTAB, { 0x10000 + offsetof(struct image, str) } };
	m.dyn[3] = (Elf64_Dyn){ DT_STRSZ, { sizeof(m.str) } };
	m.dyn[4] = (Elf64_Dyn){ DT_RUNPATH, { 19 } };
	return m;
}

static void test_image(void **state)
{
	struct image m = sample();
	AUTO_ARENA a = { .limit = 1 << 20 };
	struct elf_image e;
	struct box_err err = { 0 };

	(void)state;
	if (parse(&m, sizeof(m), &a, &e, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(e.is_elf);
	assert_string_equal(e.interp, "/lib/ld.so");
	assert_int_equal(e.needed_n, 2);
	assert_string_equal(e.needed[0], "liba.so");
	assert_string_equal(e.needed[1], "libb.so.1");
	assert_string_equal(e.runpath, "$ORIGIN/../lib:/opt/l");
}

static void test_not_elf(void **state)
{
	AUTO_ARENA a = { .limit = 1 << 20 };
	struct elf_image e;

	(void)state;
	assert_int_equal(parse("#!/bin/sh\n", 10, &a, &e, NULL), 0);
	assert_false(e.is_elf);
	assert_int_equal(parse("", 0, &a, &e, NULL), 0);
	assert_false(e.is_elf);
}

static void test_malformed(void **state)
{
	AUTO_ARENA a = { .limit = 1 << 20 };
	struct elf_image e;
	struct image m;

	(void)state;
#define BAD(change)                                                                                \
	m = sample();                                                                              \
	change;                                                                                    \
	assert_int_equal(parse(&m, sizeof(m), &a, &e, NULL), -1)
	BAD(m.eh.e_ident[EI_CLASS] = ELFCLASS32);
	BAD(m.eh.e_ident[EI_DATA] = ELFDATA2MSB);
	BAD(m.eh.e_machine = EM_386);
	BAD(m.eh.e_phentsize = 8);
	BAD(m.eh.e_phnum = 5000);
	BAD(m.eh.e_phoff = UINT64_MAX - 4);
	BAD(m.eh.e_phoff = sizeof(m));
	BAD(m.ph[1].p_offset = UINT64_MAX);
	BAD(m.ph[1].p_filesz = 1 << 20);
	BAD(m.interp[0] = 'l');
	BAD(m.ph[2].p_offset = UINT64_MAX - 8);
	BAD(m.ph[2].p_filesz = UINT64_MAX);
	BAD(m.dyn[2].d_un.d_ptr = 1);
	BAD(m.dyn[0].d_un.d_val = 1000);
	BAD(m.dyn[0].d_un.d_val = 0); /* an empty name */
	BAD(m.dyn[4].d_un.d_val = 1000);
	BAD(m.ph[0].p_offset = UINT64_MAX - 16);
#undef BAD
}

static void test_cut_off(void **state)
{
	struct image m = sample();
	AUTO_ARENA a = { .limit = 16 << 20 };

	(void)state;
	for (size_t n = 4; n < sizeof(m); n++) {
		/* An own copy, so that the sanitizer sees a read past its end. */
		uint8_t *copy = malloc(n);
		struct elf_image e;

		assert_non_null(copy);
		memcpy(copy, &m, n);
		(void)parse(copy, n, &a, &e, NULL);
		free(copy);
	}
}

static void test_image_no_memory(void **state)
{
	struct image m = sample();
	int r = -1;
	size_t n;

	(void)state;
	for (n = 1; n < 100 && r < 0; n++) {
		AUTO_ARENA a = { .limit = 1 << 20 };
		struct elf_image e;

		fail_after(n);
		r = parse(&m, sizeof(m), &a, &e, NULL);
		fail_after(0);
	}
	assert_in_range(n, 2, 99);
}

static size_t put_cache(uint8_t *out, uint32_t nlibs)
{
	struct {
		int32_t flags;
		uint32_t key, value, os;
		uint64_t hwcap;
	} e[3];
	static const char text[] =
	    "libc.so.6\0/lib/x/libc.so.6\0/lib/hw/libc.so.6\0/lib32/libc.so.6";
	const uint32_t base = 48 + sizeof(e);

	memset(out, 0, 48);
	memcpy(out, "glibc-ld.so.cache1.1", 20);
	memcpy(out + 20, &nlibs, 4);
	memset(e, 0, sizeof(e));
	e[0].flags = CACHE_FLAG;
	e[0].key = base;
	e[0].value = base + 27;
	e[0].hwcap = 4; /* for other processors only */
	e[1].flags = 3; /* another word size */
	e[1].key = base;
	e[1].value = base + 45;
	e[2].flags = CACHE_FLAG;
	e[2].key = base;
	e[2].value = base + 10;
	memcpy(out + 48, e, sizeof(e));
	memcpy(out + base, text, sizeof(text));
	return base + sizeof(text);
}

static void test_cache(void **state)
{
	uint8_t b[512];
	size_t n = put_cache(b, 3);
	sv file = { (const char *)b, n };

	(void)state;
	assert_true(sv_eq(elf_cache_find(file, SV("libc.so.6"), MACHINE), SV("/lib/x/libc.so.6")));
	assert_int_equal(elf_cache_find(file, SV("libm.so.6"), MACHINE).n, 0);
	assert_int_equal(elf_cache_find(file, SV("libc.so.6"), EM_386).n, 0);
	(void)put_cache(b, 1000000); /* more entries than there are bytes */
	assert_int_equal(elf_cache_find(file, SV("libc.so.6"), MACHINE).n, 0);
	(void)put_cache(b, 3);
	for (size_t k = 0; k < n; k++) {
		uint8_t *copy = malloc(k + 1);

		assert_non_null(copy);
		memcpy(copy, b, k);
		(void)elf_cache_find((sv){ (const char *)copy, k }, SV("libc.so.6"), MACHINE);
		free(copy);
	}
}

static void test_closure(void **state)
{
	AUTO_ARENA a = { .limit = 8 << 20 };
	struct elf_file *v;
	struct box_err err = { 0 };
	bool interp = false, libc = false;
	size_t n;

	(void)state;
	if (elf_closure("/bin/sh", &a, &v, &n, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].path[0], '/');
		assert_int_equal(access(v[i].path, R_OK), 0);
		interp = interp || v[i].interp;
		libc = libc || strstr(v[i].path, "/libc.so") != NULL;
	}
	assert_true(interp && libc);
	assert_int_equal(elf_closure("/etc/hosts", &a, &v, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(elf_closure("/nonexistent", &a, &v, &n, &err), -1);
}

static void test_scripts(void **state)
{
	static const struct {
		const char *head, *interp, *name;
		int r;
	} t[] = { { "#!/bin/sh\necho", "/bin/sh", NULL, 0 },
		{ "#! /bin/sh -e", "/bin/sh", NULL, 0 },
		{ "#!\t/usr/bin/env  python3 \n", "/usr/bin/env", "python3", 0 },
		{ "#!/usr/bin/env -S node --x\n", "/usr/bin/env", "node", 0 },
		{ "#!/usr/bin/env -Snode\n", "/usr/bin/env", "node", 0 },
		{ "#!/usr/bin/env -i A=b perl\n", "/usr/bin/env", "perl", 0 },
		{ "#!/usr/bin/env\n", "/usr/bin/env", NULL, 0 },
		{ "#!/usr/bin/env ./x\n", "/usr/bin/env", NULL, 0 }, { "#!sh\n", NULL, NULL, -1 },
		{ "#!\n", NULL, NULL, -1 }, { "#!", NULL, NULL, -1 }, { "#!   \n", NULL, NULL, -1 },
		{ "", NULL, NULL, 0 }, { "#", NULL, NULL, 0 },
		{ "\x7f"
		  "ELF",
		    NULL, NULL, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		AUTO_ARENA a = { .limit = 65536 };
		struct script s;

		assert_int_equal(
		    script_parse("f", t[i].head, strlen(t[i].head), &a, &s, NULL), t[i].r);
		if (t[i].interp != NULL)
			assert_string_equal(s.interp, t[i].interp);
		else
			assert_null(s.interp);
		if (t[i].name != NULL)
			assert_string_equal(s.env_name, t[i].name);
		else
			assert_null(s.env_name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_image),
		cmocka_unit_test(test_not_elf), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_cut_off), cmocka_unit_test(test_image_no_memory),
		cmocka_unit_test(test_cache), cmocka_unit_test(test_closure),
		cmocka_unit_test(test_scripts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
