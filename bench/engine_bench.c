/* The policy engine against its budgets (local-engine.md 18 and 19, design.md 8). Parts that meet
 * the disk measure a bare peer in the same run; published figures of the reference stand beside,
 * as reported by it on its own hardware, never measured by us.
 *
 * usage: engine_bench [quick] [PART...]; without a part all of them. Stores go to a folder below
 * $TMPDIR, which should be on a real disk. */
#include <stdlib.h>
#include <string.h>

#include "engine_rig.h"

#include "base/ban.h"

static const struct {
	const char *name;
	void (*run)(struct bench *b);
} parts[] = { { "policies", bench_policies }, { "windows", bench_windows },
	{ "components", bench_components }, { "shapes", bench_shapes }, { "one", bench_one_caller },
	{ "callers", bench_callers }, { "loop", bench_event_loop }, { "nosync", bench_no_sync },
	{ "load", bench_open_loop }, { "recovery", bench_recovery } };

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static bool chosen(int argc, char **argv, const char *name)
{
	bool any = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return true;
		any = any || strcmp(argv[i], "quick") != 0;
	}
	return !any;
}

int main(int argc, char **argv)
{
	const char *base = getenv("TMPDIR");
	char command[320];
	struct bench b = { .quick = argc > 1 && strcmp(argv[1], "quick") == 0 };

	(void)snprintf(
	    b.dir, sizeof(b.dir), "%s/engine-bench-XXXXXX", base != NULL ? base : "/var/tmp");
	MUST(mkdtemp(b.dir) != NULL);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < PARTS; i++) {
		if (!chosen(argc, argv, parts[i].name))
			continue;
		/* Rates of many callers are told as multiples of one. */
		if (b.one_us == 0 &&
		    (parts[i].run == bench_callers || parts[i].run == bench_event_loop))
			bench_one_caller(&b);
		parts[i].run(&b);
	}
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", b.dir);
	return system(command) == 0 ? 0 : 1;
}
