/* records.jsonl. By the first byte: any file ends in rows or an error; or a decision about an
 * action that the agent named, and its outcome, are written by the monitor's recorder and read
 * back as they were, whatever the name holds. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/records.h"
#include "monitor/record.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

static char path[] = "/dev/shm/records-fuzz-XXXXXX"; /* it is synced each time */

static void any_file(int fd, sv text, bool last_run)
{
	struct record_rows rows;
	struct box_err err = { 0 };

	CHECK(fd_write_full(fd, text.p, text.n) == 0);
	if (records_read(path, last_run, &rows, &err) != 0)
		CHECK(err.code != BOX_OK);
	for (size_t i = 0; i < rows.n; i++)
		CHECK(rows.v[i].action != NULL && rows.v[i].result != NULL);
	records_fini(&rows);
}

/* Text up to the next NUL; what is no UTF-8 or has a NUL cannot be expected back as it was. */
static sv cut(sv *in)
{
	sv head;

	(void)sv_cut(*in, '\0', &head, in);
	return sv_sub(head, 0, 500);
}

static void there_and_back(sv in)
{
	static int64_t now = 1;
	struct box_err err = { 0 };
	struct recorder *r = record_open(path, "box-0000000000000000", clock_fixed(&now), &err);
	struct ask ask = { .kind = ASK_CONNECT, .port = 443 };
	struct record_decision d = {
		.ask = &ask, .ts_ns = 7, .permit = true, .cause = RECORD_PERMITTED, .rule = SV("r")
	};
	AUTO_BUF target = buf_with(4096);
	struct record_rows rows;

	CHECK(r != NULL);
	ask.host = cut(&in);
	d.reason = cut(&in);
	d.description = cut(&in);
	record_trace_new(r, in, &d.trace);
	record_decision(r, &d);
	record_outcome(r, &ask, &d.trace, "completed", -3, true);
	record_close(r);
	CHECK(records_read(path, false, &rows, &err) == 0);
	CHECK(rows.n == 1 && rows.v[0].permit && rows.v[0].ts_ns == 7);
	CHECK(strcmp(rows.v[0].action, "net:connect") == 0 && strcmp(rows.v[0].rule, "r") == 0);
	CHECK(strcmp(rows.v[0].result, "completed") == 0 && rows.v[0].status == -3);
	buf_putf(&target, SV_FMT ":443", SV_ARG(ask.host));
	if (sv_is_utf8(ask.host) && sv_find(ask.host, ':') < 0) /* which gets brackets */
		CHECK(strcmp(rows.v[0].target, buf_cstr(&target)) == 0);
	if (sv_is_utf8(d.description))
		CHECK(sv_eq(sv_c(rows.v[0].description), d.description));
	records_fini(&rows);
}

static void clean_up(void)
{
	(void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static int fd = -1;

	if (n == 0)
		return 0;
	if (fd < 0) {
		fd = mkostemp(path, O_CLOEXEC | O_APPEND);
		CHECK(atexit(clean_up) == 0);
	}
	CHECK(fd >= 0 && ftruncate(fd, 0) == 0);
	if (d[0] % 4 == 0)
		there_and_back((sv){ (const char *)d + 1, n - 1 });
	else
		any_file(fd, (sv){ (const char *)d + 1, n - 1 }, d[0] % 2 != 0);
	return 0;
}
