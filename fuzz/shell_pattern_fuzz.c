/* Shell patterns: pattern and text, separated by a newline, end in an answer within the step
 * budget. */
#include <stddef.h>
#include <stdint.h>

#include "shell/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv all = { (const char *)d, n }, p, t;
	struct sh_pat_scan *scan;
	size_t at = 0, from, to;

	(void)sv_cut(all, '\n', &p, &t);
	/* Results are of no interest, only that there is one. */
	(void)sh_pat_match(p, t, SH_PAT_EXTGLOB | SH_PAT_NOCASE);
	(void)sh_pat_prefix(p, t, true, 0);
	(void)sh_pat_suffix(p, t, false, SH_PAT_EXTGLOB);
	scan = sh_pat_scan_new(p, t, SH_PAT_EXTGLOB);
	while (at < t.n && sh_pat_scan_next(scan, at, &from, &to))
		at = to > at ? to : at + 1;
	sh_pat_scan_free(scan);
	return 0;
}
