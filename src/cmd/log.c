/* box log: the decisions of a box as a table. Reads records.jsonl, which is the operator's own
 * file; targets in it came from inside the box and are printed escaped. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/records.h"
#include "cmd/verb.h"
#include "monitor/monitor.h"
#include "base/ban.h"

struct options {
	const char *records;
	bool json, denied, all_runs;
};

/* Display width of UTF-8 text: its characters. Escaped text has no combining or control characters
 * that matter here. */
static size_t width(sv s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0U) != 0x80;
	return n;
}

/* At most max characters, the middle cut out: the ends of a path say most. */
static void put_cell(struct buf *b, sv s, size_t max)
{
	size_t w = width(s), keep = max - 1, head = keep / 2, seen = 0, i = 0;

	if (w <= max) {
		buf_put_sv(b, s);
		return;
	}
	for (; i < s.n && seen < head; seen++)
		do
			i++;
		while (i < s.n && ((unsigned char)s.p[i] & 0xc0U) == 0x80);
	buf_put_sv(b, sv_sub(s, 0, i));
	buf_put_c(b, "…");
	for (; i < s.n && seen < w - (keep - head); seen++)
		do
			i++;
		while (i < s.n && ((unsigned char)s.p[i] & 0xc0U) == 0x80);
	buf_put_sv(b, sv_sub(s, i, s.n));
}

enum { COL_TIME, COL_ACTION, COL_TARGET, COL_VERDICT, COL_RULE, COL_SEEN, COLS };
#define GAP 2 /* between columns */

static const char *const titles[COLS] = { "TIME", "ACTION", "TARGET", "VERDICT", "RULE",
	"WHAT THE AGENT SAW" };
static const size_t max_width[COLS] = { 12, 13, 52, 7, 28, 60 };

/* The record's word for a result, in an operator's words. */
static const char *plain_result(const char *result)
{
	static const char *const words[][2] = { { "descriptor_issued", "opened" },
		{ "completed", "done" }, { "failed", "failed" }, { "indeterminate", "unknown" } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(result, words[i][0]) == 0)
			return words[i][1];
	return result;
}

/* What the agent got: the status of a permitted action, or the refusal in its form. */
static void put_seen(const struct record_row *r, struct buf *b)
{
	if (!r->permit) {
		if (sv_starts(sv_c(r->action), SV("http")) || sv_starts(sv_c(r->action), SV("net")))
			buf_put_c(b, "403 ");
		else if (sv_starts(sv_c(r->action), SV("shell")))
			buf_put_c(b, "status 126 ");
		if (r->description[0] != '\0')
			buf_put_escaped(b, sv_c(r->description));
		else
			buf_put_escaped(b, sv_c(r->reason));
		return;
	}
	if (r->has_status)
		buf_putf(b, sv_starts(sv_c(r->action), SV("shell")) ? "status %lld" : "%lld",
		    (long long)r->status);
	else
		buf_put_escaped(b, sv_c(plain_result(r->result)));
}

static void row_cells(const struct record_row *r, struct buf cells[COLS])
{
	char stamp[CLOCK_TEXT_MAX];

	for (int c = 0; c < COLS; c++)
		cells[c] = buf_with((size_t)1 << 16);
	clock_format(r->ts_ns, stamp);
	buf_put_sv(&cells[COL_TIME], sv_sub(sv_c(stamp), 11, 12)); /* hh:mm:ss.mmm */
	buf_put_escaped(&cells[COL_ACTION], sv_c(r->action));
	buf_put_escaped(&cells[COL_TARGET], sv_c(r->target));
	if (sv_starts(sv_c(r->action), SV("http"))) {
		/* The method tells more than the port. */
		buf_clear(&cells[COL_TARGET]);
		buf_putf(&cells[COL_TARGET], "%s ", r->method);
		buf_put_escaped(&cells[COL_TARGET], sv_c(r->target));
	}
	buf_put_c(&cells[COL_VERDICT], r->permit ? "permit" : "DENY");
	buf_put_escaped(&cells[COL_RULE], sv_c(r->rule));
	put_seen(r, &cells[COL_SEEN]);
}

/* On a terminal a row is one line: what is too wide is taken from the three columns that hold free
 * text, in turn from the widest. */
static void fit(size_t w[COLS])
{
	static const int elastic[] = { COL_TARGET, COL_RULE, COL_SEEN };
	static const size_t least[COLS] = { [COL_TARGET] = 14, [COL_RULE] = 8, [COL_SEEN] = 10 };
	struct winsize ws = { 0 };
	size_t sum = (COLS - 1) * GAP;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0 || ws.ws_col == 0)
		return; /* a file or a pipe: whole */
	for (int c = 0; c < COLS; c++)
		sum += w[c];
	while (sum > ws.ws_col) {
		int widest = -1;

		for (size_t k = 0; k < sizeof(elastic) / sizeof(elastic[0]); k++)
			if (w[elastic[k]] > least[elastic[k]] &&
			    (widest < 0 || w[elastic[k]] > w[widest]))
				widest = elastic[k];
		if (widest < 0)
			return; /* narrower than a table can be */
		w[widest]--;
		sum--;
	}
}

static void print_table(const struct record_rows *rows, const struct options *o)
{
	bool colour = log_colour_on(STDOUT_FILENO);
	size_t w[COLS];
	AUTO_BUF out = buf_with((size_t)256 << 20);

	for (int c = 0; c < COLS; c++)
		w[c] = width(sv_c(titles[c]));
	for (size_t pass = 0; pass < 2; pass++) {
		if (pass == 1) {
			fit(w);
			for (int c = 0; c < COLS; c++)
				buf_putf(&out, "%-*.*s%s", c + 1 < COLS ? (int)w[c] : 0, (int)w[c],
				    titles[c], c + 1 < COLS ? "  " : "\n");
		}
		for (size_t i = 0; i < rows->n; i++) {
			const struct record_row *r = &rows->v[i];
			struct buf cells[COLS];

			if (o->denied && r->permit)
				continue;
			row_cells(r, cells);
			for (int c = 0; c < COLS; c++) {
				AUTO_BUF cell = buf_with((size_t)1 << 16);

				put_cell(&cell, buf_sv(&cells[c]),
				    pass == 1 && w[c] < max_width[c] ? w[c] : max_width[c]);
				if (pass == 0) {
					size_t n = width(buf_sv(&cell));

					w[c] = n > w[c] ? n : w[c];
				} else {
					if (colour && c == COL_VERDICT)
						buf_put_c(
						    &out, r->permit ? "\033[32m" : "\033[31m");
					buf_put_sv(&out, buf_sv(&cell));
					if (colour && c == COL_VERDICT)
						buf_put_c(&out, "\033[0m");
					for (size_t k = width(buf_sv(&cell));
					     c + 1 < COLS && k < w[c] + GAP; k++)
						buf_put_byte(&out, ' ');
				}
				buf_fini(&cells[c]);
			}
			if (pass == 1)
				buf_put_byte(&out, '\n');
		}
	}
	(void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe ends us by SIGPIPE */
}

static void print_json(const struct record_rows *rows, const struct options *o)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct record_row *r = &rows->v[i];
		AUTO_BUF b = buf_with((size_t)1 << 20);
		char stamp[CLOCK_TEXT_MAX];

		if (o->denied && r->permit)
			continue;
		clock_format(r->ts_ns, stamp);
		buf_putf(&b, "{\"time\":\"%s\",\"run\":", stamp);
		buf_put_json(&b, sv_c(r->run));
		buf_put_c(&b, ",\"action\":");
		buf_put_json(&b, sv_c(r->action));
		buf_put_c(&b, ",\"target\":");
		buf_put_json(&b, sv_c(r->target));
		buf_putf(&b, ",\"verdict\":\"%s\",\"cause\":", r->permit ? "permit" : "deny");
		buf_put_json(&b, sv_c(r->cause));
		buf_put_c(&b, ",\"rule\":");
		buf_put_json(&b, sv_c(r->rule));
		if (r->method[0] != '\0') {
			buf_put_c(&b, ",\"method\":");
			buf_put_json(&b, sv_c(r->method));
		}
		if (r->reason[0] != '\0') {
			buf_put_c(&b, ",\"reason\":");
			buf_put_json(&b, sv_c(r->reason));
		}
		if (r->description[0] != '\0') {
			buf_put_c(&b, ",\"description\":");
			buf_put_json(&b, sv_c(r->description));
		}
		if (r->result[0] != '\0') {
			buf_put_c(&b, ",\"result\":");
			buf_put_json(&b, sv_c(r->result));
		}
		if (r->has_status)
			buf_putf(&b, ",\"status\":%lld", (long long)r->status);
		buf_put_c(&b, "}\n");
		(void)fwrite(b.p, 1, b.n, stdout); /* as above */
	}
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	struct record_rows rows = { 0 };
	struct box_err err = { 0 };
	const char *config = NULL;
	char *path = NULL;
	int missing = 0, status = 1;

	for (int i = 1; i < argc; i++) {
		const char *v;

		if (strcmp(argv[i], "--json") == 0)
			o.json = true;
		else if (strcmp(argv[i], "--denied") == 0)
			o.denied = true;
		else if (strcmp(argv[i], "--all") == 0)
			o.all_runs = true;
		else if ((v = verb_option(argc, argv, &i, "--config", &missing)) != NULL)
			config = v;
		else if (!missing &&
		         (v = verb_option(argc, argv, &i, "--records", &missing)) != NULL)
			o.records = v;
		else if (missing)
			return verb_usage(&verb_log, "%s needs a file", argv[i]);
		else
			return verb_stray(&verb_log, argv[i], "; the box is named with --config");
	}
	if ((config == NULL) == (o.records == NULL))
		return verb_usage(&verb_log, "one of --config FILE and --records FILE is required");
	if (config != NULL && monitor_records_path(config, &path, &err) != 0) {
		log_error("%s", err.msg);
		return 1;
	}
	if (path != NULL && access(path, F_OK) != 0 && errno == ENOENT) {
		log_error("%s has no records yet: this box has not run", config);
		free(path);
		return 1;
	}
	if (records_read(path != NULL ? path : o.records, !o.all_runs, &rows, &err) != 0) {
		log_error("%s", err.msg);
	} else {
		if (o.json)
			print_json(&rows, &o);
		else
			print_table(&rows, &o);
		status = 0;
	}
	records_fini(&rows);
	free(path);
	return status;
}

const struct verb verb_log = {
	.name = "log",
	.summary = "show the decisions of a box as a table",
	.help = "usage: box log --config FILE [--all] [--denied] [--json]\n"
	        "       box log --records FILE [--all] [--denied] [--json]\n"
	        "\n"
	        "Shows what was decided, in order: time (UTC), action, target, verdict, the rule "
	        "that governed,\n"
	        "and what the agent saw. Works while the box runs.\n"
	        "\n"
	        "  --config FILE   the box's configuration; its default records are read\n"
	        "  --records FILE  a records.jsonl\n"
	        "  --all           every run in the file, not only the last\n"
	        "  --denied        refusals only\n"
	        "  --json          one JSON object a line\n"
	        "\n"
	        "examples:\n"
	        "  box log --config box.toml --denied\n"
	        "  box log --config box.toml --json | jq 'select(.rule == "
	        "\"rate_limit_slack_posts\")'\n",
	.run = run,
};
