/* dogwood log: what a store holds, also while somebody writes to it. Reads files only; takes no
 * lock. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood/trace.h"
#include "engine/build.h"
#include "engine/change.h"
#include "engine/codec.h"
#include "engine/scan.h"
#include "engine/snapshot.h"
#include "engine/valjson.h"

#include "base/ban.h"

static const char help_text[] =
    "Usage: dogwood log [OPTIONS] STORE\n\n"
    "Events of a store with their verdicts, oldest first. The store may be in use.\n\n"
    "  -j, --json          one JSON object a line, with everything that is stored\n"
    "  -t, --trace         events as a trace for `dogwood replay` (stamps in seconds)\n"
    "  -f, --from N        begin at record N\n"
    "  -n, --last N        only the last N records\n"
    "  -d, --denied        only denials and faults\n\n"
    "Examples:\n"
    "  dogwood log ~/boxes/oncall/private/history\n"
    "  dogwood log --json --last 100 STORE | jq 'select(.verdict.cause == \"forbid\")'\n\n"
    "Exit status: 0 all of it was read, 2 the store is damaged (see `dogwood fsck`).\n";

static const struct option options[] = { { "json", no_argument, NULL, 'j' },
	{ "trace", no_argument, NULL, 't' }, { "from", required_argument, NULL, 'f' },
	{ "last", required_argument, NULL, 'n' }, { "denied", no_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

enum form { TABLE, JSON, TRACE };

struct view {
	enum form form;
	bool denied;
	uint64_t from;
	struct eng_set *set; /* in force at the record that is printed; NULL: not known */
	uint64_t set_at;     /* offset from which a snapshot's set is known */
	struct eng_set *snap_set;
	struct buf out;
	bool head;
};

static void put_rule(struct view *v, uint32_t i)
{
	if (v->set != NULL && i < v->set->n && v->set->rules[i].id.n != 0)
		buf_put_escaped(&v->out, eng_sv(v->set->rules[i].id));
	else
		buf_putf(&v->out, "policy_%u", i);
}

static void put_time(struct buf *b, int64_t ts)
{
	char t[CLOCK_TEXT_MAX];

	clock_format(ts, t);
	buf_put_c(b, t);
}

/* Number and time of a row, below the names of the columns. */
static void table_head(struct view *v, const struct wal_rec *r)
{
	if (!v->head)
		buf_putf(&v->out, "%-8s %-30s %-9s %-28s %s\n", "record", "time", "verdict",
		    "action::kind", "rules, fields");
	v->head = true;
	buf_putf(&v->out, "%-8" PRIu64 " ", r->offset);
	put_time(&v->out, r->ts);
}

static void table_event(
    struct view *v, const struct wal_rec *r, const struct dw_event *e, const struct eng_stored *s)
{
	AUTO_BUF what = buf_with(DOGWOOD_EVENT_MAX * 8);
	const struct dw_val *in = dw_get(&e->logged, SV("input")),
	                    *out = dw_get(&e->logged, SV("output"));
	size_t cut = 160;

	table_head(v, r);
	buf_putf(&v->out, " %-9s ", eng_cause_name(s->cause));
	buf_put_escaped(&what, e->id);
	buf_put_c(&what, "::");
	buf_put_escaped(&what, e->kind);
	buf_put_sv(&v->out, buf_sv(&what));
	for (size_t n = what.n; n < 28; n++)
		buf_put_byte(&v->out, ' ');
	buf_put_c(&v->out, " [");
	for (size_t i = 0; i < s->nrules; i++) {
		if (i != 0)
			buf_put_c(&v->out, ", ");
		put_rule(v, s->rules[i]);
	}
	buf_put_c(&v->out, "]");
	buf_clear(&what);
	dw_val_print(&what, in != NULL ? in : &e->logged);
	if (out != NULL) {
		buf_put_c(&what, " -> ");
		dw_val_print(&what, out);
	}
	if (s->fault.n != 0) {
		buf_put_c(&what, " fault: ");
		buf_put_sv(&what, s->fault);
	}
	buf_put_byte(&v->out, ' ');
	/* Not in the middle of a character. */
	while (cut < what.n && (what.p[cut] & 0xc0) == 0x80)
		cut++;
	buf_put_escaped(&v->out, sv_sub(buf_sv(&what), 0, cut));
	buf_put_c(&v->out, cut < what.n ? "...\n" : "\n");
}

static void json_head(struct view *v, const struct wal_rec *r, const char *kind)
{
	buf_putf(
	    &v->out, "{\"record\":%" PRIu64 ",\"ts_ns\":%" PRId64 ",\"time\":\"", r->offset, r->ts);
	put_time(&v->out, r->ts);
	buf_putf(&v->out, "\",\"type\":\"%s\"", kind);
}

static void json_uid(struct view *v, const char *name, const struct dw_uid *u)
{
	AUTO_BUF text = buf_with(DOGWOOD_EVENT_MAX * 8);

	buf_putf(&v->out, ",\"%s\":", name);
	if (dw_uid_is_none(u)) {
		buf_put_c(&v->out, "null");
		return;
	}
	eng_uid_put(&text, u);
	buf_put_json(&v->out, buf_sv(&text));
}

static void json_verdict(struct view *v, const struct eng_stored *s)
{
	buf_putf(&v->out, ",\"verdict\":{\"cause\":\"%s\",\"permit\":%s,\"rules\":[",
	    eng_cause_name(s->cause), s->cause == DOGWOOD_PERMITTED ? "true" : "false");
	for (size_t i = 0; i < s->nrules; i++) {
		uint32_t k = s->rules[i];
		bool named = v->set != NULL && k < v->set->n && v->set->rules[k].id.n != 0;

		buf_putf(&v->out, "%s{\"index\":%u,\"id\":", i != 0 ? "," : "", k);
		if (named)
			buf_put_json(&v->out, eng_sv(v->set->rules[k].id));
		else
			buf_put_c(&v->out, "null");
		buf_put_byte(&v->out, '}');
	}
	buf_put_c(&v->out, "],\"errors\":[");
	for (size_t i = 0; i < s->nerrors; i++) {
		if (i != 0)
			buf_put_byte(&v->out, ',');
		buf_put_json(&v->out, s->errors[i]);
	}
	buf_put_c(&v->out, "],\"fault\":");
	if (s->fault.n != 0)
		buf_put_json(&v->out, s->fault);
	else
		buf_put_c(&v->out, "null");
	buf_put_byte(&v->out, '}');
}

static void json_event(struct view *v, const struct wal_rec *r, const struct dw_event *e, sv token,
    const struct eng_stored *s)
{
	struct dw_uid action = { e->ns, e->id };

	json_head(v, r, "event");
	json_uid(v, "action", &action);
	buf_put_c(&v->out, ",\"kind\":");
	buf_put_json(&v->out, e->kind);
	json_uid(v, "principal", &e->principal);
	json_uid(v, "resource", &e->resource);
	buf_put_c(&v->out, ",\"logged\":");
	eng_json_put(&v->out, &e->logged);
	buf_put_c(&v->out, ",\"context\":");
	eng_json_put(&v->out, &e->context);
	if (token.n != 0) {
		buf_put_c(&v->out, ",\"token\":");
		buf_put_json(&v->out, token);
	}
	if (s->cause != DOGWOOD_RECORDED)
		json_verdict(v, s);
	buf_put_c(&v->out, "}\n");
}

static int on_event(struct view *v, const struct wal_rec *r, struct box_err *err)
{
	AUTO_ARENA a = { .limit = (size_t)64 << 20 };
	struct eng_stored s;
	struct dw_event e;
	sv token;

	if (eng_event_get(r->body, &a, &e, &token, &s, err) < 0)
		return -1;
	if (v->denied && (s.cause == DOGWOOD_PERMITTED || s.cause == DOGWOOD_RECORDED))
		return 0;
	if (v->form == JSON) {
		json_event(v, r, &e, token, &s);
	} else if (v->form == TRACE) {
		e.ts = r->ts / NS_PER_SEC;
		dw_trace_put(&v->out, &e);
		buf_put_byte(&v->out, '\n');
	} else {
		table_event(v, r, &e, &s);
	}
	return 0;
}

static int on_install(struct view *v, const struct wal_rec *r, bool shown, struct box_err *err)
{
	AUTO_ARENA a = { .limit = (size_t)64 << 20 };
	struct dogwood_policy_set in;
	sv sources;
	struct box_err why;
	struct eng_set *set = NULL;

	if (eng_change_sources(r->body, &sources, err) < 0 ||
	    eng_install_get(sources, &a, &in, err) < 0)
		return -1;
	/* Only for the names of rules: a set that this version cannot read is no reason to stop. */
	(void)eng_set_decode(sources, &set, &why);
	eng_set_unref(v->set);
	v->set = set;
	if (!shown || v->form == TRACE)
		return 0;
	if (v->form == JSON) {
		json_head(v, r, "install");
		buf_put_c(&v->out, ",\"policies\":[");
	} else {
		table_head(v, r);
		buf_put_c(&v->out, " installed ");
	}
	for (size_t i = 0; i < in.n_policies; i++) {
		if (i != 0)
			buf_put_c(&v->out, v->form == JSON ? "," : ", ");
		if (v->form == JSON)
			buf_put_json(&v->out, eng_sv(in.policies[i].name));
		else
			buf_put_escaped(&v->out, eng_sv(in.policies[i].name));
	}
	if (v->form == JSON)
		buf_putf(&v->out, "],\"rules\":%zu}\n", set != NULL ? set->n : 0);
	else
		buf_putf(&v->out, " (%zu rules)\n", set != NULL ? set->n : 0);
	return 0;
}

static int on_clock(struct view *v, const struct wal_rec *r, struct box_err *err)
{
	int64_t last, now;

	if (eng_clock_get(r->body, &last, &now, err) < 0)
		return -1;
	if (v->form == JSON) {
		json_head(v, r, "clock");
		buf_putf(&v->out, ",\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 "}\n", last, now);
	} else if (v->form == TABLE) {
		table_head(v, r);
		buf_putf(
		    &v->out, " the clock jumped by %" PRId64 " s\n", (now - last) / NS_PER_SEC);
	}
	return 0;
}

static int on_record(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct view *v = arg;
	bool shown = r->offset >= v->from;
	int rc = 0;

	if (v->set == NULL && v->snap_set != NULL && r->offset >= v->set_at)
		v->set = eng_set_ref(v->snap_set);
	if (r->kind == WAL_INSTALL)
		rc = on_install(v, r, shown && !v->denied, err);
	else if (r->kind == WAL_EVENT && shown)
		rc = on_event(v, r, err);
	else if (r->kind == WAL_CLOCK && shown && !v->denied)
		rc = on_clock(v, r, err);
	if (rc == 0 && v->out.n > 1 << 16) {
		if (cmd_print(&v->out) != CMD_OK)
			return box_fail(err, BOX_ESYS, 0, "standard output failed");
		buf_clear(&v->out);
	}
	return rc;
}

/* The oldest snapshot knows which set was in force there; the install record may be gone. */
static void oldest_set(int dir, struct view *v)
{
	uint64_t snaps[ENG_SNAPS_MAX];
	uint8_t id[WAL_ID];
	struct eng_state s;
	struct box_err err;
	size_t n;

	if (eng_snap_list(dir, snaps, &n, &err) < 0 || n == 0)
		return;
	eng_state_init(&s, 0);
	if (eng_snap_load_at(dir, snaps[n - 1], &s, NULL, id, &err) == 0) {
		v->snap_set = eng_set_ref(s.set);
		v->set_at = snaps[n - 1];
	}
	eng_state_fini(&s);
}

static int show(struct view *v, const char *path, uint64_t last)
{
	AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct box_err err = { 0 };
	struct wal_end end;
	int rc;

	if (dir < 0)
		return cmd_error("open the store %s: %s", path, box_strerror(errno));
	if (last != 0) {
		if (wal_scan(dir, UINT64_MAX, WAL_SCAN_LIVE, NULL, NULL, &end, &err) < 0)
			return cmd_failed(&err);
		if (end.next > last && v->from < end.next - last)
			v->from = end.next - last;
	}
	oldest_set(dir, v);
	/* From the beginning, for the sets; what is before v->from is not printed. */
	rc = wal_scan(dir, 0, WAL_SCAN_LIVE, on_record, v, &end, &err);
	(void)cmd_print(&v->out); /* a failure shows at the next line or in nothing */
	if (rc < 0)
		return cmd_failed(&err);
	return end.any ? CMD_OK : cmd_error("%s holds no log", path);
}

static int run(const struct cmd *self, int argc, char **argv)
{
	struct view v = { .out = buf_with((size_t)64 << 20) };
	uint64_t last = 0;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "hjtf:n:d", options, NULL)) != -1) {
		if (opt == 'j')
			v.form = JSON;
		else if (opt == 't')
			v.form = TRACE;
		else if (opt == 'd')
			v.denied = true;
		else if (opt != 'f' && opt != 'n')
			return cmd_usage(self, opt);
		else if (!sv_to_u64(sv_c(optarg), 10, UINT64_MAX, opt == 'f' ? &v.from : &last))
			return cmd_error("--%s wants a whole number, not `%s`",
			    opt == 'f' ? "from" : "last", optarg);
	}
	if (optind + 1 != argc)
		return cmd_error("one store is needed; try `dogwood log --help`");
	rc = show(&v, argv[optind], last);
	eng_set_unref(v.set);
	eng_set_unref(v.snap_set);
	buf_fini(&v.out);
	return rc;
}

const struct cmd cmd_log = { "log", "events and verdicts of a store", help_text, run };
