/* dogwood translate: policies from text to Cedar's JSON form and back. */
#include <stdio.h>
#include <string.h>

#include "cedar/format.h"
#include "cedar/json.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood/diags.h"

#include "base/ban.h"

#define ARENA_LIMIT ((size_t)1 << 30)
#define SYMS_LIMIT  ((size_t)256 << 20)
#define OUT_MAX     ((size_t)256 << 20)
#define MAX_INDENT  60

static const char help_text[] =
    "Usage: dogwood translate [OPTIONS] FILE\n\n"
    "Write policies in the other form: text to Cedar's JSON form of policies, JSON to text. A "
    "file\n"
    "that begins with `{` is JSON (one policy, or a set with staticPolicies and templates); `-` "
    "is\n"
    "standard input.\n\n"
    "  -t, --to text|json    the form to write; default: the other one\n\n"
    "What the forms cannot carry:\n"
    "  JSON  temporal blocks, macros (`def` and their calls), providers and guardrails: the file\n"
    "        is refused and each place shown. `dogwood expand` shows the plain Cedar of a set.\n"
    "        Comments and the order of scope elements are lost.\n"
    "  text  links of templates: refused. Ids: policies in text are numbered, policy0, policy1 …\n"
    "        (an @id annotation is kept in both forms).\n\n"
    "Examples:\n"
    "  dogwood translate policy.cedar > policy.json\n"
    "  dogwood translate policy.json\n"
    "  dogwood translate --to text policy.cedar      as Cedar writes it, in its scope order\n\n"
    "Exit status: 0 done; 2 the policies were refused; 1 wrong command line or unreadable file.\n";

static const struct option options[] = { { "to", required_argument, NULL, 't' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

struct job {
	struct cedar_syms *t;
	struct arena a;
	struct cedar_diags ds;
	sv text;
	struct cedar_source src;
	size_t renamed; /* policies whose JSON id text does not keep */
};

/* ---- what JSON has no form for ---- */

static int refuse(struct job *j, const struct cedar_span *at, const char *what, const char *hint)
{
	(void)cedar_diag_add(&j->ds, CEDAR_ERROR, "translate", at, hint,
	    "the JSON form of policies has no place for %s", what);
	return 0; /* go on: all of them are shown */
}

static int see(void *ctx, struct cedar_expr **node)
{
	static const char hint[] = "`dogwood expand` shows the plain Cedar policies of a set";
	const struct cedar_expr *e = *node;

	switch (e->kind) {
	case CEDAR_E_LEAF:
		return refuse(ctx, &e->span, "a temporal block", hint);
	case CEDAR_E_CALL:
		return refuse(ctx, &e->span, "a call of a macro or an information provider", hint);
	case CEDAR_E_METHOD:
		return refuse(ctx, &e->span, "a method of an information provider", hint);
	default:
		return 0;
	}
}

/* Cedar as it is; else Dogwood, whose scopes are freer, and whose other additions are refused. */
static void read_text(struct job *j)
{
	struct cedar_parse_opts o = { .dogwood = true };

	if (cedar_parse(j->t, &j->a, j->text, NULL, &j->src, &j->ds) == 0)
		return;
	j->ds = cedar_diags_in(&j->a);
	if (cedar_parse(j->t, &j->a, j->text, &o, &j->src, &j->ds) < 0)
		return;
	for (size_t i = 0; i < j->src.n_def; i++)
		refuse(j, &j->src.def[i].name_at, "a macro definition",
		    "write the condition out where the macro is called");
	for (size_t i = 0; i < j->src.n_policy; i++) {
		struct cedar_policy *p = &j->src.policy[i];

		for (uint32_t k = 0; k < p->n_cond; k++) {
			if (p->cond[k].guardrails)
				refuse(j, &p->cond[k].span, "guardrails", NULL);
			(void)cedar_expr_walk(&p->cond[k].e, see, j);
		}
	}
	cedar_diags_sort(&j->ds);
}

/* ---- JSON to policies ---- */

static void json_set(struct job *j)
{
	struct cedar_json_set set = { 0 };

	if (cedar_json_policies(j->t, &j->a, j->text, &set, &j->ds) < 0)
		return;
	for (size_t i = 0; i < set.n_link; i++) {
		const struct cedar_policy *p = set.link[i].policy;

		if (cedar_policy_is_template(p))
			(void)cedar_diag_add(&j->ds, CEDAR_ERROR, "translate", NULL,
			    "write a policy for it, with the entities in place of the slots",
			    "the text form of policies has no place for links: `" SV_FMT
			    "` is one of the template `" SV_FMT "`",
			    SV_ARG(cedar_sv(set.link[i].id)), SV_ARG(cedar_sv(p->id)));
	}
	j->src = set.src;
	for (size_t i = 0; i < j->src.n_policy; i++) {
		const char *id = arena_printf(&j->a, "policy%zu", i);

		if (!sv_eq(cedar_sv(j->src.policy[i].id), sv_c(id)))
			j->renamed++;
	}
}

static void put_text(struct job *j, struct buf *out)
{
	AUTO_BUF flat = buf_with(OUT_MAX);

	for (size_t i = 0; i < j->src.n_policy; i++) {
		cedar_put_policy(&flat, &j->src.policy[i], false, NULL);
		buf_put_byte(&flat, '\n');
	}
	if (!buf_ok(&flat))
		out->bad = true;
	else
		(void)cedar_layout(&j->a, buf_sv(&flat), 0, out, &j->ds);
}

/* ---- JSON for people ---- */

static void line(struct buf *out, unsigned level)
{
	buf_put_byte(out, '\n');
	/* A long chain of && is as deep; the margin need not be. */
	for (level = level < MAX_INDENT ? level : MAX_INDENT; level > 0; level--)
		buf_put_c(out, "  ");
}

/* The quote that ends the string that begins at i. */
static size_t string_end(sv json, size_t i)
{
	while (++i < json.n && json.p[i] != '"')
		i += json.p[i] == '\\';
	return i;
}

static size_t next_bracket(sv json, size_t i)
{
	for (; i < json.n && strchr("{[]}", json.p[i]) == NULL; i++)
		if (json.p[i] == '"')
			i = string_end(json, i);
	return i;
}

/* Our own well-formed JSON with a line for each member. Groups without groups in them stay on a
 * line. */
static void put_indented(sv json, struct buf *out)
{
	unsigned level = 0;

	for (size_t i = 0; i < json.n; i++) {
		char c = json.p[i];
		size_t k;

		if (c == '"') {
			k = string_end(json, i);
			buf_put_sv(out, sv_sub(json, i, k + 1 - i));
			i = k;
		} else if (c == '{' || c == '[') {
			k = next_bracket(json, i + 1);
			if (k < json.n && (json.p[k] == '}' || json.p[k] == ']')) {
				buf_put_sv(out, sv_sub(json, i, k + 1 - i));
				i = k;
				continue;
			}
			buf_put_byte(out, (uint8_t)c);
			line(out, ++level);
		} else if (c == '}' || c == ']') {
			line(out, --level);
			buf_put_byte(out, (uint8_t)c);
		} else if (c == ',') {
			buf_put_byte(out, ',');
			line(out, level);
		} else if (c == ':') {
			buf_put_c(out, ": ");
		} else if (c != ' ' && c != '\n') {
			buf_put_byte(out, (uint8_t)c);
		}
	}
	buf_put_byte(out, '\n');
}

static int work(struct job *j, const char *path, const char *to, struct buf *out)
{
	struct dw_source from = { strcmp(path, "-") == 0 ? SV("<stdin>") : sv_c(path), j->text };
	bool json = sv_starts(sv_trim(j->text), SV("{")), to_json;
	AUTO_BUF flat = buf_with(OUT_MAX);
	AUTO_DW_DIAGS found = { 0 };

	to_json = to != NULL ? strcmp(to, "json") == 0 : !json;
	if (json)
		json_set(j);
	else
		read_text(j);
	if (j->ds.errors == 0 && to_json) {
		cedar_put_source_json(&flat, &j->src, NULL);
		put_indented(buf_sv(&flat), out);
		out->bad = out->bad || !buf_ok(&flat);
	} else if (j->ds.errors == 0) {
		put_text(j, out);
	}
	dw_diags_take(&found, &j->ds, &from, NULL);
	if (found.n != 0)
		(void)cmd_findings(&found);
	if (j->ds.errors == 0 && !to_json && j->renamed != 0)
		(void)fprintf(stderr,
		    "note: policies in text are numbered; %zu id%s of the JSON %s not kept\n",
		    j->renamed, j->renamed == 1 ? "" : "s", j->renamed == 1 ? "is" : "are");
	return j->ds.errors == 0 ? CMD_OK : CMD_REFUSED;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	struct job j = { .a = { .limit = ARENA_LIMIT } };
	AUTO_BUF out = buf_with(OUT_MAX);
	const char *to = NULL;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "ht:", options, NULL)) != -1) {
		if (opt != 't')
			return cmd_usage(self, opt);
		to = optarg;
		if (strcmp(to, "text") != 0 && strcmp(to, "json") != 0)
			return cmd_error("--to wants `text` or `json`, not `%s`", to);
	}
	if (optind + 1 != argc)
		return cmd_error("one policy file is needed; try `dogwood translate --help`");
	j.ds = cedar_diags_in(&j.a);
	j.t = cedar_syms_new(SYMS_LIMIT);
	rc = j.t == NULL ? cmd_error("no memory")
	                 : cmd_read(&j.a, argv[optind], DW_SOURCE_MAX, &j.text);
	if (rc == CMD_OK)
		rc = work(&j, argv[optind], to, &out);
	if (rc == CMD_OK)
		rc = cmd_print(&out);
	cedar_syms_free(j.t);
	arena_free(&j.a);
	return rc;
}

const struct cmd cmd_translate = { "translate", "policies: text to JSON and back", help_text, run };
