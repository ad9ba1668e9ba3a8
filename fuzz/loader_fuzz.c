/* ELF headers, the loader cache and #! lines: files that the operator names but others may have
 * written. The first byte picks which. */
#include <elf.h>
#include <string.h>

#include "contain/loader.h"
#include "contain/script.h"
#include "base/ban.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	AUTO_ARENA a = { .limit = 1 << 20 };
	struct elf_image e;
	struct script s;

	if (n == 0)
		return 0;
	struct mem m = { d + 1, n - 1 };

	if (d[0] % 3 == 0)
		(void)elf_parse(&(struct elf_source){ read_mem, &m }, &a, &e, NULL);
	else if (d[0] % 3 == 1)
		(void)elf_cache_find((sv){ (const char *)m.p, m.n }, SV("libc.so.6"), EM_X86_64);
	else
		(void)script_parse("f", (const char *)m.p, m.n, &a, &s, NULL);
	return 0;
}
