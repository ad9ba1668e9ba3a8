/* Protected pages for secrets. See secret.h. */
#include "base/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/ban.h"

struct secret {
	size_t map_len, n;
	char bytes[];
};

struct secret *secret_new(sv s, struct box_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len;
	struct secret *x;

	if (!add_sz(s.n, sizeof(*x) + page - 1, &len)) {
		(void)box_nomem(err, "a secret"); /* always -1 */
		return NULL;
	}
	len -= len % page;
	x = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x == MAP_FAILED) {
		(void)box_fail(err, BOX_ENOMEM, errno, "map memory for a secret"); /* always -1 */
		return NULL;
	}
	(void)mlock(x, len);                  /* best effort: RLIMIT_MEMLOCK may be 0 */
	(void)madvise(x, len, MADV_DONTDUMP); /* best effort: the process is not dumpable anyway */
	(void)madvise(x, len, MADV_DONTFORK); /* best effort */
	x->map_len = len;
	x->n = s.n;
	if (s.n != 0)
		memcpy(x->bytes, s.p, s.n);
	return x;
}

sv secret_sv(const struct secret *s)
{
	return (sv){ s->bytes, s->n };
}

void secret_free(struct secret *s)
{
	size_t len;

	if (s == NULL)
		return;
	len = s->map_len;
	explicit_bzero(s, len);
	(void)munmap(s, len); /* our own mapping */
}
