/* Hosts, authorities, targets, paths: what is accepted is canonical already when it is read
 * again. */
#include <stdlib.h>

#include "gateway/authority.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv in = { (const char *)d, n };
	struct authority a, b;
	struct target t;
	AUTO_BUF text = buf_with(8192), twice = buf_with(8192), path = buf_with(1 << 16);

	if (authority_parse(in, 443, &a, NULL) == 0) {
		authority_put(&text, &a, 443);
		CHECK(authority_parse(buf_sv(&text), 443, &b, NULL) == 0 && authority_eq(&a, &b));
		authority_put(&twice, &b, 443);
		CHECK(sv_eq(buf_sv(&text), buf_sv(&twice)));
		CHECK(!sv_has_ctl(host_sv(&a.host)) && a.host.n == strlen(a.host.text));
	}
	(void)target_absolute(in, &t, NULL);
	(void)target_origin(in, SV("GET"), &t, NULL);
	(void)query_check(in, NULL);
	if (path_canon(in, &path, NULL) == 0) {
		buf_clear(&text);
		buf_clear(&twice);
		if (path.n < 8000) {
			CHECK(path_canon(buf_sv(&path), &twice, NULL) == 0);
			CHECK(sv_eq(buf_sv(&path), buf_sv(&twice)));
		}
		CHECK(sv_find_sv(buf_sv(&path), SV("/../")) < 0 &&
		      sv_find_sv(buf_sv(&path), SV("/./")) < 0);
	}
	return 0;
}
