/* /proc/net/unix: the names in it are chosen by whoever binds a socket, line ends included. */
#include "contain/sockets.c"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv all = { (const char *)d, n }, rest = all, name;
	struct walk w = { .table = buf_with(TABLE_MAX) };
	AUTO_BUF path = buf_with(PATH_MAX);

	buf_put_sv(&w.table, all);
	while (next_name(&rest, &name)) {
		CHECK(name.n != 0 && name.p[0] != '@' && sv_find(name, '\n') < 0);
		CHECK(name.p > all.p && name.p + name.n <= all.p + all.n);
		buf_clear(&path);
		buf_put_sv(&path, name);
		/* What the table names is bound, when the name has no NUL. */
		if (buf_ok(&path) && sv_find(name, '\0') < 0)
			CHECK(bound(&w, buf_cstr(&path)));
	}
	buf_fini(&w.table);
	return 0;
}
