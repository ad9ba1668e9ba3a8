/* The structure of a TOML document: keys, headers, arrays, inline tables, and who may add to which
 * table. See toml.h. Hostile input. */
#include "base/toml_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ban.h"

/* struct toml.state of a table: what made it, and so what may still add to it (TOML 1.0, "Table",
 * "Inline Table", "Array of Tables"). */
enum {
	BY_HEADER_PARENT =
	    1, /* only as a parent in [a.b]: a later [a] may define it, dotted keys may add to it */
	BY_HEADER, /* [a]: closed to a second [a] and to dotted keys from elsewhere */
	BY_DOTTED, /* a.b = 1: more dotted keys and [x.a.sub] may add, [x.a] may not */
	BY_INLINE, /* { … }: nothing may add */
	/* of an array */
	BY_BRACKETS, /* [ … ]: nothing may add */
	BY_HEADERS   /* [[a]]: more [[a]] may add */
};

const char *toml_kind_text(enum toml_kind k)
{
	switch (k) {
	case TOML_STRING:
		return "a string";
	case TOML_INT:
		return "an integer";
	case TOML_FLOAT:
		return "a float";
	case TOML_BOOL:
		return "a boolean";
	case TOML_DATETIME:
	case TOML_DATETIME_LOCAL:
	case TOML_DATE_LOCAL:
	case TOML_TIME_LOCAL:
		return "a date or time";
	case TOML_ARRAY:
		return "an array";
	case TOML_TABLE:
		return "a table";
	}
	return "a value";
}

struct toml_shown toml_show(sv s)
{
	struct toml_shown out = { "" };
	AUTO_BUF b = buf_with(4096);
	size_t n = s.n > 80 ? 80 : s.n;

	/* Do not cut inside a character. */
	while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	buf_put_escaped(&b, sv_sub(s, 0, n));
	(void)snprintf(out.t, sizeof(out.t), SV_FMT "%s", SV_ARG(buf_sv(&b)),
	    n < s.n ? "..." : ""); /* cut text is still a good message */
	return out;
}

struct toml_shown toml_here(const struct toml_in *in)
{
	size_t n = 1;

	while (n < 4 && (toml_peek(in, n) & 0xc0) == 0x80)
		n++;
	return toml_show(sv_sub(in->text, in->at, n));
}

int toml_fail_at(struct toml_in *in, int line, int col, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)box_vfail(in->err, BOX_EPARSE, 0, fmt, ap); /* always -1 */
	va_end(ap);
	return box_wrap(in->err, "%d:%d", line, col);
}

void toml_skip_ws(struct toml_in *in)
{
	while (toml_peek(in, 0) == ' ' || toml_peek(in, 0) == '\t')
		toml_step(in);
}

int toml_newline(struct toml_in *in)
{
	int c = toml_peek(in, 0);

	if (c == '\n') {
		toml_step(in);
		return 1;
	}
	if (c != '\r')
		return 0;
	if (toml_peek(in, 1) != '\n')
		return toml_fail_at(in, in->line, in->col,
		    "a carriage return without a line feed; lines end in LF or CR LF");
	toml_step(in);
	toml_step(in);
	return 1;
}

static int skip_comment(struct toml_in *in)
{
	if (toml_peek(in, 0) != '#')
		return 0;
	for (;;) {
		int c = toml_peek(in, 0);

		if (c < 0 || c == '\n' || (c == '\r' && toml_peek(in, 1) == '\n'))
			return 0;
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return toml_fail_at(in, in->line, in->col,
			    "control character 0x%02x in a comment; only tabs are allowed there",
			    (unsigned)c);
		toml_step(in);
	}
}

/* White space, comments and line ends inside [ … ]. */
static int skip_blank_lines(struct toml_in *in)
{
	int r;

	do {
		toml_skip_ws(in);
		if (skip_comment(in) != 0)
			return -1;
		r = toml_newline(in);
	} while (r > 0);
	return r;
}

/* What must stand behind a key and value or a header: nothing but a comment. */
static int end_of_line(struct toml_in *in)
{
	int r;

	toml_skip_ws(in);
	if (skip_comment(in) != 0)
		return -1;
	if (toml_peek(in, 0) < 0)
		return 0;
	r = toml_newline(in);
	if (r < 0)
		return -1;
	if (r == 0)
		return toml_fail_at(in, in->line, in->col,
		    "\"%s\" where the line should end; one key and value, or one [header], a line",
		    toml_here(in).t);
	return 0;
}

static uint64_t slot_hash(const struct toml_in *in, const struct toml *parent, sv key)
{
	return sip_hash(in->sip, key) ^
	       sip_hash(in->sip, (sv){ (const char *)&parent, sizeof(parent) });
}

static struct toml *find(const struct toml_in *in, const struct toml *t, sv key)
{
	uint64_t h = slot_hash(in, t, key);

	if (in->slots_cap == 0)
		return NULL;
	for (size_t i = h & (in->slots_cap - 1); in->slots[i].node != NULL;
	     i = (i + 1) & (in->slots_cap - 1))
		if (in->slots[i].hash == h && in->slots[i].parent == t &&
		    sv_eq(in->slots[i].node->key, key))
			return in->slots[i].node;
	return NULL;
}

static void slot_put(struct toml_slot *slots, size_t cap, struct toml_slot s)
{
	size_t i = s.hash & (cap - 1);

	while (slots[i].node != NULL)
		i = (i + 1) & (cap - 1);
	slots[i] = s;
}

static int slots_grow(struct toml_in *in)
{
	size_t cap = in->slots_cap != 0 ? in->slots_cap * 2 : 32;
	struct toml_slot *bigger = ARENA_VEC(in->a, struct toml_slot, cap);

	if (bigger == NULL)
		return box_nomem(in->err, "a TOML table");
	for (size_t i = 0; i < in->slots_cap; i++)
		if (in->slots[i].node != NULL)
			slot_put(bigger, cap, in->slots[i]);
	in->slots = bigger;
	in->slots_cap = cap;
	return 0;
}

static void append(struct toml *parent, struct toml *v)
{
	if (parent->last != NULL)
		parent->last->next = v;
	else
		parent->first = v;
	parent->last = v;
	parent->n++;
}

/* One part of a key, with its place. */
struct part {
	sv text;
	int line, col;
};

/* A new value under `key` of table t, which has none. */
static struct toml *add(struct toml_in *in, struct toml *t, const struct part *key)
{
	struct toml *v = ARENA_NEW(in->a, struct toml);

	if (v == NULL || (in->slots_n >= in->slots_cap / 2 && slots_grow(in) != 0)) {
		(void)box_nomem(in->err, "a TOML value"); /* always -1 */
		return NULL;
	}
	v->key = key->text;
	v->line = v->key_line = key->line;
	v->col = v->key_col = key->col;
	append(t, v);
	slot_put(in->slots, in->slots_cap, (struct toml_slot){ t, v, slot_hash(in, t, key->text) });
	in->slots_n++;
	return v;
}

static struct toml *add_table(
    struct toml_in *in, struct toml *t, const struct part *key, unsigned state)
{
	struct toml *v = add(in, t, key);

	if (v != NULL) {
		v->kind = TOML_TABLE;
		v->state = state;
	}
	return v;
}

static bool is_bare(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '-';
}

static int read_key_part(struct toml_in *in, struct part *p)
{
	int c = toml_peek(in, 0);
	size_t from = in->at;

	p->line = in->line;
	p->col = in->col;
	if (c == '"' || c == '\'')
		return toml_read_string(in, false, &p->text);
	while (is_bare(toml_peek(in, 0)))
		toml_step(in);
	if (in->at == from) {
		if (c < 0 || c == '\n' || c == '\r')
			return toml_fail_at(in, in->line, in->col, "a key is missing here");
		return toml_fail_at(in, in->line, in->col,
		    "\"%s\" cannot stand in a bare key (letters, digits, _ and - can); quote the "
		    "key: "
		    "\"...\"",
		    toml_here(in).t);
	}
	p->text = arena_dup(in->a, sv_sub(in->text, from, in->at - from));
	if (p->text.p == NULL)
		return box_nomem(in->err, "a TOML key");
	return 0;
}

/* A dotted key, white space around the dots allowed and skipped behind it. */
static int read_key(struct toml_in *in, struct part parts[TOML_MAX_DEPTH], size_t *n)
{
	*n = 0;
	for (;;) {
		if (*n == TOML_MAX_DEPTH)
			return toml_fail_at(
			    in, in->line, in->col, "a key of more than %d parts", TOML_MAX_DEPTH);
		toml_skip_ws(in);
		if (read_key_part(in, &parts[*n]) != 0)
			return -1;
		(*n)++;
		toml_skip_ws(in);
		if (toml_peek(in, 0) != '.')
			return 0;
		toml_step(in);
	}
}

static int fail_duplicate(struct toml_in *in, const struct part *p, const struct toml *first)
{
	return toml_fail_at(in, p->line, p->col,
	    "`%s` is defined a second time; the first is at %d:%d, keep one", toml_show(p->text).t,
	    first->key_line, first->key_col);
}

static int read_value(struct toml_in *in, struct toml *v, int depth);

/* key = value, into table t; the cursor is on the key. */
static int read_pair(struct toml_in *in, struct toml *t, int depth)
{
	struct part parts[TOML_MAX_DEPTH];
	struct toml *v;
	size_t n;

	if (read_key(in, parts, &n) != 0)
		return -1;
	for (size_t i = 0; i + 1 < n; i++) {
		v = find(in, t, parts[i].text);
		if (v == NULL)
			v = add_table(in, t, &parts[i], BY_DOTTED);
		else if (v->kind != TOML_TABLE ||
		         (v->state != BY_DOTTED && v->state != BY_HEADER_PARENT))
			return toml_fail_at(in, parts[i].line, parts[i].col,
			    "`%s` is already %s (at %d:%d), so a dotted key cannot add to it",
			    toml_show(parts[i].text).t,
			    v->kind == TOML_TABLE ? "a complete table" : toml_kind_text(v->kind),
			    v->key_line, v->key_col);
		if (v == NULL)
			return -1;
		/* A later [header] may no longer define it. */
		v->state = BY_DOTTED;
		t = v;
	}
	v = find(in, t, parts[n - 1].text);
	if (v != NULL)
		return fail_duplicate(in, &parts[n - 1], v);
	if (toml_peek(in, 0) != '=')
		return toml_fail_at(in, in->line, in->col, "`=` is missing behind the key `%s`",
		    toml_show(parts[n - 1].text).t);
	toml_step(in);
	toml_skip_ws(in);
	v = add(in, t, &parts[n - 1]);
	return v == NULL ? -1 : read_value(in, v, depth);
}

/* The cursor is behind the '['. */
static int read_array(struct toml_in *in, struct toml *v, int depth)
{
	int line = v->line, col = v->col;

	v->kind = TOML_ARRAY;
	v->state = BY_BRACKETS;
	for (;;) {
		struct toml *e;

		if (skip_blank_lines(in) != 0)
			return -1;
		if (toml_peek(in, 0) == ']')
			break;
		if (toml_peek(in, 0) < 0)
			return toml_fail_at(
			    in, line, col, "this array is never closed; close it with ]");
		e = ARENA_NEW(in->a, struct toml);
		if (e == NULL)
			return box_nomem(in->err, "a TOML array");
		if (read_value(in, e, depth) != 0)
			return -1;
		append(v, e);
		if (skip_blank_lines(in) != 0)
			return -1;
		if (toml_peek(in, 0) == ',')
			toml_step(in);
		else if (toml_peek(in, 0) < 0)
			return toml_fail_at(
			    in, line, col, "this array is never closed; close it with ]");
		else if (toml_peek(in, 0) != ']')
			return toml_fail_at(in, in->line, in->col,
			    "\"%s\" where `,` or `]` should follow an array element",
			    toml_here(in).t);
	}
	toml_step(in);
	return 0;
}

/* The cursor is behind the '{'. On one line, no trailing comma (TOML 1.0). */
static int read_inline(struct toml_in *in, struct toml *v, int depth)
{
	v->kind = TOML_TABLE;
	/* Open to its own dotted keys while it is being read. */
	v->state = BY_DOTTED;
	toml_skip_ws(in);
	while (toml_peek(in, 0) != '}' || v->n != 0) {
		int c;

		if (read_pair(in, v, depth) != 0)
			return -1;
		toml_skip_ws(in);
		c = toml_peek(in, 0);
		if (c == '}')
			break;
		if (c != ',')
			return toml_fail_at(in, in->line, in->col,
			    "%s where `,` or `}` should follow; an inline table stands on one line",
			    c < 0 || c == '\n' || c == '\r' ? "the line ends"
			    : c == '#'                      ? "a comment"
			                                    : "something else");
		toml_step(in);
		toml_skip_ws(in);
		if (toml_peek(in, 0) == '}')
			return toml_fail_at(in, in->line, in->col,
			    "a comma before `}`; an inline table has none behind its last value");
	}
	toml_step(in);
	v->state = BY_INLINE;
	return 0;
}

static int read_value(struct toml_in *in, struct toml *v, int depth)
{
	int c = toml_peek(in, 0);

	v->line = in->line;
	v->col = in->col;
	if (c == '"' || c == '\'') {
		sv s;

		if (toml_read_string(in, true, &s) != 0)
			return -1;
		v->kind = TOML_STRING;
		v->text = s;
		return 0;
	}
	if (c != '[' && c != '{')
		return toml_read_scalar(in, v);
	if (depth == TOML_MAX_DEPTH)
		return toml_fail_at(in, in->line, in->col,
		    "arrays and inline tables are nested more than %d deep", TOML_MAX_DEPTH);
	toml_step(in);
	return c == '[' ? read_array(in, v, depth + 1) : read_inline(in, v, depth + 1);
}

/* Follow or make the parents that a header names. */
static struct toml *header_parent(
    struct toml_in *in, struct toml *root, const struct part *parts, size_t n)
{
	struct toml *t = root;

	for (size_t i = 0; i + 1 < n; i++) {
		struct toml *v = find(in, t, parts[i].text);

		if (v == NULL) {
			v = add_table(in, t, &parts[i], BY_HEADER_PARENT);
			if (v == NULL)
				return NULL;
		}
		if (v->kind == TOML_ARRAY && v->state == BY_HEADERS)
			v = v->last; /* the table that was opened last */
		if (v->kind != TOML_TABLE || v->state == BY_INLINE) {
			(void)toml_fail_at(in, parts[i].line, parts[i].col,
			    "`%s` is already %s (at %d:%d), so a header cannot add to it",
			    toml_show(parts[i].text).t,
			    v->kind == TOML_TABLE ? "an inline table" : toml_kind_text(v->kind),
			    v->line, v->col); /* always -1 */
			return NULL;
		}
		t = v;
	}
	return t;
}

/* [[key]]: one more table of the array. */
static struct toml *open_element(struct toml_in *in, struct toml *parent, const struct part *key)
{
	struct toml *v = find(in, parent, key->text), *e;

	if (v == NULL) {
		v = add(in, parent, key);
		if (v == NULL)
			return NULL;
		v->kind = TOML_ARRAY;
		v->state = BY_HEADERS;
	} else if (v->kind != TOML_ARRAY || v->state != BY_HEADERS) {
		(void)toml_fail_at(in, key->line, key->col,
		    "`%s` is already %s (at %d:%d), so [[...]] cannot add a table to it",
		    toml_show(key->text).t,
		    v->kind == TOML_ARRAY ? "a complete array" : toml_kind_text(v->kind),
		    v->key_line, v->key_col); /* always -1 */
		return NULL;
	}
	e = ARENA_NEW(in->a, struct toml);
	if (e == NULL) {
		(void)box_nomem(in->err, "a TOML table"); /* always -1 */
		return NULL;
	}
	e->kind = TOML_TABLE;
	append(v, e);
	return e;
}

static struct toml *open_table(struct toml_in *in, struct toml *parent, const struct part *key)
{
	struct toml *v = find(in, parent, key->text);

	if (v == NULL)
		return add_table(in, parent, key, BY_HEADER);
	if (v->kind != TOML_TABLE || v->state != BY_HEADER_PARENT) {
		(void)fail_duplicate(in, key, v); /* always -1 */
		return NULL;
	}
	return v;
}

/* The cursor is on the '['. Returns the table that the following lines fill. */
static struct toml *read_header(struct toml_in *in, struct toml *root)
{
	int line = in->line, col = in->col;
	struct part parts[TOML_MAX_DEPTH];
	struct toml *parent, *t;
	bool array;
	size_t n;

	toml_step(in);
	array = toml_peek(in, 0) == '[';
	if (array)
		toml_step(in);
	if (read_key(in, parts, &n) != 0)
		return NULL;
	if (toml_peek(in, 0) != ']' || (array && toml_peek(in, 1) != ']')) {
		(void)toml_fail_at(in, in->line, in->col,
		    "the header is not closed; close it with %s",
		    array ? "]]" : "]"); /* always -1 */
		return NULL;
	}
	toml_step(in);
	if (array)
		toml_step(in);
	parent = header_parent(in, root, parts, n);
	if (parent == NULL)
		return NULL;
	t = array ? open_element(in, parent, &parts[n - 1]) : open_table(in, parent, &parts[n - 1]);
	if (t == NULL)
		return NULL;
	t->state = BY_HEADER;
	t->header = true;
	t->line = line;
	t->col = col;
	return end_of_line(in) == 0 ? t : NULL;
}

static int read_document(struct toml_in *in, struct toml *root)
{
	struct toml *t = root;

	for (;;) {
		if (skip_blank_lines(in) != 0)
			return -1;
		if (toml_peek(in, 0) < 0)
			return 0;
		if (toml_peek(in, 0) == '[') {
			t = read_header(in, root);
			if (t == NULL)
				return -1;
		} else if (read_pair(in, t, 0) != 0 || end_of_line(in) != 0) {
			return -1;
		}
	}
}

/* Where the text stops being UTF-8. */
static int fail_utf8(struct toml_in *in)
{
	while (in->at < in->text.n) {
		size_t k = 1;

		while (
		    k <= 4 && k <= in->text.n - in->at && !sv_is_utf8(sv_sub(in->text, in->at, k)))
			k++;
		if (k > 4 || k > in->text.n - in->at)
			break;
		while (k-- > 0)
			toml_step(in);
	}
	return toml_fail_at(in, in->line, in->col,
	    "byte 0x%02x is not UTF-8; save the file as UTF-8", (unsigned)toml_peek(in, 0));
}

int toml_parse(struct arena *a, sv text, const struct toml **root, struct box_err *err)
{
	struct toml_in in = { .text = text, .line = 1, .col = 1, .a = a, .err = err };
	struct toml *t;
	int r;

	if (text.n > TOML_MAX_BYTES)
		return box_fail(
		    err, BOX_ELIMIT, 0, "the document is larger than %zu bytes", TOML_MAX_BYTES);
	if (!sv_is_utf8(text))
		return fail_utf8(&in);
	if (sv_starts(text, SV("\xef\xbb\xbf")))
		return toml_fail_at(&in, 1, 1,
		    "the file begins with a byte-order mark; save it as UTF-8 without one");
	t = ARENA_NEW(a, struct toml);
	if (t == NULL)
		return box_nomem(err, "a TOML table");
	t->kind = TOML_TABLE;
	t->state = BY_HEADER;
	t->line = t->col = 1;
	in.sip = sip_key_random();
	in.tmp = buf_with(TOML_MAX_BYTES + 8);
	r = read_document(&in, t);
	buf_fini(&in.tmp);
	if (r == 0)
		*root = t;
	return r;
}

const struct toml *toml_get(const struct toml *t, sv key)
{
	if (t->kind != TOML_TABLE)
		return NULL;
	for (const struct toml *v = t->first; v != NULL; v = v->next)
		if (sv_eq(v->key, key))
			return v;
	return NULL;
}
