/* Values, entities and requests in JSON. Hostile text; limits and duplicate keys in jtree.h.
 * Formats: Cedar's JSON for entities and context.
 *
 * With a schema the wrappers may be left out where the expected type says what a plain string or
 * object is. */
#include "cedar/json.h"
#include "cedar/jtree.h"
#include "cedar/prog.h"
#include "cedar/validate.h"

#include <inttypes.h>

#include "base/ban.h"

struct jr {
	const struct cedar_syms *t;
	struct arena *a;
	sv text;
	struct box_err *err;
};

static int bad(struct jr *r, const struct jnode *j, const char *what)
{
	struct cedar_span at = cedar_span_at(r->text, j->off, j->len);

	return box_fail(r->err, BOX_EPARSE, 0, "%u:%u: %s", at.line, at.col, what);
}

static int no_room(struct jr *r)
{
	return box_fail(r->err, BOX_ELIMIT, 0, "the JSON value needs more memory than is allowed");
}

/* A name with namespaces, or a reference written T::"id". */
static bool is_path(sv s)
{
	sv rest = s, part;

	for (;;) {
		ptrdiff_t c = sv_find_sv(rest, SV("::"));

		part = c < 0 ? rest : sv_sub(rest, 0, (size_t)c);
		if (!cedar_is_ident(part) || cedar_is_reserved(part))
			return false;
		if (c < 0)
			return true;
		rest = sv_sub(rest, (size_t)c + 2, SIZE_MAX);
	}
}

static int make_uid(struct jr *r, const struct jnode *j, sv type, sv id, struct cedar_uid *out)
{
	if (!is_path(type))
		return bad(r, j, "`type` must be the name of an entity type");
	out->type = cedar_str_new(r->t, r->a, type);
	out->id = cedar_str_new(r->t, r->a, id);
	return out->type != NULL && out->id != NULL ? 0 : no_room(r);
}

static int uid_text(struct jr *r, const struct jnode *j, struct cedar_uid *out)
{
	ptrdiff_t q = sv_find(j->s, '"');
	sv type, id, bad_part;
	size_t i;

	if (q < 3 || j->s.p[j->s.n - 1] != '"' || (size_t)q == j->s.n - 1 || j->s.p[q - 1] != ':' ||
	    j->s.p[q - 2] != ':')
		return bad(r, j, "an entity is written {\"type\": …, \"id\": …} or T::\\\"id\\\"");
	type = sv_sub(j->s, 0, (size_t)q - 2);
	id = sv_sub(j->s, (size_t)q + 1, j->s.n - (size_t)q - 2);
	for (i = 0; i < id.n; i++) {
		if (id.p[i] == '\\')
			i++;
		else if (id.p[i] == '"')
			return bad(r, j, "a quote in an id must be escaped");
	}
	id = cedar_unescape(r->a, id, &bad_part);
	if (id.p == NULL)
		return bad_part.n != 0 ? bad(r, j, "this id holds no valid escape") : no_room(r);
	return make_uid(r, j, type, id, out);
}

/* {"type","id"}, also within {"__entity": …}; with text, also T::"id". */
static int uid_node(struct jr *r, const struct jnode *j, bool text, struct cedar_uid *out)
{
	const struct jnode *in = jtree_get(j, SV("__entity")), *type, *id;

	if (j->kind == J_STR && text)
		return uid_text(r, j, out);
	if (in != NULL) {
		if (j->n != 1)
			return bad(r, j, "`__entity` must be the only key");
		j = in;
	}
	type = jtree_get(j, SV("type"));
	id = jtree_get(j, SV("id"));
	if (j->kind != J_OBJ || j->n != 2 || type == NULL || id == NULL || type->kind != J_STR ||
	    id->kind != J_STR)
		return bad(r, j, "an entity must be an object with the strings `type` and `id`");
	return make_uid(r, j, type->s, id->s, out);
}

static int value(
    struct jr *r, const struct jnode *j, const struct cedar_type *ty, struct cedar_value *out);

static int call(struct jr *r, const struct jnode *j, enum cedar_ext x, const struct cedar_value *v,
    size_t n, struct cedar_value *out)
{
	struct box_err why = { 0 };

	if (cedar_ext_call(r->a, x, v, n, out, &why) == 0)
		return 0;
	return why.code == BOX_ENOMEM ? no_room(r) : bad(r, j, why.msg);
}

/* {"fn": …, "arg": …} or with "args". */
static int extension(struct jr *r, const struct jnode *j, struct cedar_value *out)
{
	const struct jnode *fn = jtree_get(j, SV("fn")), *arg = jtree_get(j, SV("arg")),
	                   *args = jtree_get(j, SV("args"));
	struct cedar_value v[4];
	enum cedar_ext x;
	uint32_t i, n = 1;

	if (j->kind != J_OBJ || j->n != 2 || fn == NULL || fn->kind != J_STR ||
	    (arg == NULL) == (args == NULL) || (args != NULL && args->kind != J_ARR))
		return bad(r, j, "an extension value must be {\"fn\": name, \"arg\": value}");
	if (!cedar_ext_find(fn->s, &x))
		return bad(r, fn, "there is no extension function of this name");
	if (args != NULL)
		n = args->n;
	if (n > 4)
		return bad(r, j, "too many arguments");
	for (i = 0; i < n; i++)
		if (value(r, args != NULL ? args->item[i] : arg, NULL, &v[i]) < 0)
			return -1;
	return call(r, j, x, v, n, out);
}

static int array(
    struct jr *r, const struct jnode *j, const struct cedar_type *ty, struct cedar_value *out)
{
	struct cedar_value *v = ARENA_VEC(r->a, struct cedar_value, j->n);
	uint32_t i;

	if (v == NULL)
		return no_room(r);
	for (i = 0; i < j->n; i++)
		if (value(r, j->item[i], ty != NULL && ty->kind == CEDAR_TY_SET ? ty->elem : NULL,
		        &v[i]) < 0)
			return -1;
	return cedar_set_make(r->a, v, j->n, out) < 0 ? no_room(r) : 0;
}

static int record(
    struct jr *r, const struct jnode *j, const struct cedar_type *ty, struct cedar_value *out)
{
	struct cedar_field *f = ARENA_VEC(r->a, struct cedar_field, j->n);
	uint32_t i;

	if (f == NULL)
		return no_room(r);
	for (i = 0; i < j->n; i++) {
		const struct cedar_attr *at;

		f[i].key = cedar_str_new(r->t, r->a, j->key[i]);
		if (f[i].key == NULL)
			return no_room(r);
		at = ty != NULL && ty->kind == CEDAR_TY_RECORD ? cedar_type_attr(ty, f[i].key)
		                                               : NULL;
		if (value(r, j->item[i], at != NULL ? at->type : NULL, &f[i].v) < 0)
			return -1;
	}
	return cedar_record_make(r->a, f, j->n, out, NULL) < 0 ? no_room(r) : 0;
}

/* A plain string where an extension value is expected. */
static bool implicit(const struct cedar_type *ty, enum cedar_ext *x)
{
	if (ty == NULL)
		return false;
	switch (ty->kind) {
	case CEDAR_TY_DECIMAL:
		*x = CEDAR_X_DECIMAL;
		return true;
	case CEDAR_TY_IP:
		*x = CEDAR_X_IP;
		return true;
	case CEDAR_TY_DATETIME:
		*x = CEDAR_X_DATETIME;
		return true;
	case CEDAR_TY_DURATION:
		*x = CEDAR_X_DURATION;
		return true;
	default:
		return false;
	}
}

static int value(
    struct jr *r, const struct jnode *j, const struct cedar_type *ty, struct cedar_value *out)
{
	enum cedar_ext x;
	struct cedar_uid u;
	cedar_sym s;

	switch (j->kind) {
	case J_NULL:
		return bad(r, j, "null is no value of Cedar");
	case J_BOOL:
		*out = cedar_bool(j->b);
		return 0;
	case J_INT:
		*out = cedar_long(j->i);
		return 0;
	case J_REAL:
		return bad(
		    r, j, "this number is no 64-bit integer; a decimal is written {\"__extn\": …}");
	case J_STR:
		s = cedar_str_new(r->t, r->a, j->s);
		if (s == NULL)
			return no_room(r);
		*out = cedar_string(s);
		return implicit(ty, &x) ? call(r, j, x, out, 1, out) : 0;
	case J_ARR:
		return array(r, j, ty, out);
	case J_OBJ:
		break;
	}
	if (jtree_get(j, SV("__expr")) != NULL)
		return bad(r, j, "the `__expr` escape is no longer supported");
	if (jtree_get(j, SV("__extn")) != NULL) {
		if (j->n != 1)
			return bad(r, j, "`__extn` must be the only key");
		return extension(r, j->item[0], out);
	}
	if (jtree_get(j, SV("__entity")) != NULL || (ty != NULL && ty->kind == CEDAR_TY_ENTITY)) {
		if (uid_node(r, j, false, &u) < 0)
			return -1;
		*out = cedar_entity(u);
		return 0;
	}
	/* {"fn","arg"} without its wrapper, where the type tells. */
	if (implicit(ty, &x))
		return extension(r, j, out);
	return record(r, j, ty, out);
}

int cedar_json_value(const struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_type *ty, struct cedar_value *out, struct box_err *err)
{
	struct jr r = { t, a, text, err };
	struct jnode *j = jtree_parse(a, text, err);

	return j != NULL ? value(&r, j, ty, out) : -1;
}

/* ---- entities ------------------------------------------------------------------------------ */

static int parents(struct jr *r, const struct jnode *j, struct cedar_entity_data *e)
{
	struct cedar_uid *v;
	uint32_t i;

	if (j == NULL)
		return 0;
	if (j->kind != J_ARR)
		return bad(r, j, "`parents` must be an array");
	v = ARENA_VEC(r->a, struct cedar_uid, j->n);
	if (v == NULL)
		return no_room(r);
	for (i = 0; i < j->n; i++)
		if (uid_node(r, j->item[i], false, &v[i]) < 0)
			return -1;
	e->parents = v;
	e->n_parents = j->n;
	return 0;
}

/* attrs or tags. For tags every value has the type of tags. */
static int members(struct jr *r, const struct jnode *j, const struct cedar_type *ty, bool tags,
    const struct cedar_record **out)
{
	struct cedar_field *f;
	struct cedar_value v;
	uint32_t i;

	if (j == NULL)
		return 0;
	if (j->kind != J_OBJ)
		return bad(r, j, "`attrs` and `tags` must be objects");
	if (!tags) {
		if (record(r, j, ty, &v) < 0)
			return -1;
	} else {
		f = ARENA_VEC(r->a, struct cedar_field, j->n);
		if (f == NULL)
			return no_room(r);
		for (i = 0; i < j->n; i++) {
			f[i].key = cedar_str_new(r->t, r->a, j->key[i]);
			if (f[i].key == NULL)
				return no_room(r);
			if (value(r, j->item[i], ty, &f[i].v) < 0)
				return -1;
		}
		if (cedar_record_make(r->a, f, j->n, &v, NULL) < 0)
			return no_room(r);
	}
	*out = v.rec;
	return 0;
}

static int entity(
    struct jr *r, const struct jnode *j, const struct cedar_schema *s, struct cedar_entities *store)
{
	static const sv known[] = { SV_INIT("uid"), SV_INIT("attrs"), SV_INIT("parents"),
		SV_INIT("tags") };
	const struct jnode *u = jtree_get(j, SV("uid"));
	const struct cedar_entity_type *t = NULL;
	struct cedar_entity_data e = { 0 };
	uint32_t i, k;

	if (j->kind != J_OBJ || u == NULL)
		return bad(r, j, "an entity must be an object with `uid`, `attrs` and `parents`");
	for (i = 0; i < j->n; i++) {
		for (k = 0; k < 4 && !sv_eq(j->key[i], known[k]); k++)
			;
		if (k == 4)
			return bad(r, j->item[i],
			    "an entity has only `uid`, `attrs`, `parents` and `tags`");
	}
	if (uid_node(r, u, false, &e.uid) < 0 || parents(r, jtree_get(j, SV("parents")), &e) < 0)
		return -1;
	if (s != NULL)
		t = cedar_schema_etype(s, e.uid.type);
	if (members(r, jtree_get(j, SV("attrs")), t != NULL ? t->shape : NULL, false, &e.attrs) <
	        0 ||
	    members(r, jtree_get(j, SV("tags")), t != NULL ? t->tags : NULL, true, &e.tags) < 0)
		return -1;
	/* An action of the schema listed again is the schema's. */
	if (t != NULL && t->is_action && cedar_schema_action(s, e.uid) != NULL)
		return cedar_entity_conforms(s, &e, r->err);
	return cedar_entities_add(store, &e, r->err);
}

int cedar_json_entities(const struct cedar_syms *t, sv text, const struct cedar_schema *s,
    struct cedar_entities *store, struct box_err *err)
{
	struct jr r = { t, store->a, text, err };
	struct jnode *j = jtree_parse(store->a, text, err);
	uint32_t i;

	if (j == NULL)
		return -1;
	if (j->kind != J_ARR)
		return bad(&r, j, "the entities must be an array");
	for (i = 0; i < j->n; i++)
		if (entity(&r, j->item[i], s, store) < 0)
			return -1;
	return cedar_entities_close(store, err);
}

int cedar_json_request(const struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_schema *s, struct cedar_request *out, struct box_err *err)
{
	struct jr r = { t, a, text, err };
	struct jnode *j = jtree_parse(a, text, err), *k;
	const struct cedar_action *x = NULL;
	struct cedar_value v;

	if (j == NULL)
		return -1;
	k = jtree_get(j, SV("principal"));
	if (j->kind != J_OBJ || k == NULL || jtree_get(j, SV("action")) == NULL ||
	    jtree_get(j, SV("resource")) == NULL)
		return bad(
		    &r, j, "a request must be an object with `principal`, `action` and `resource`");
	if (uid_node(&r, k, true, &out->principal) < 0 ||
	    uid_node(&r, jtree_get(j, SV("action")), true, &out->action) < 0 ||
	    uid_node(&r, jtree_get(j, SV("resource")), true, &out->resource) < 0)
		return -1;
	if (s != NULL)
		x = cedar_schema_action(s, out->action);
	k = jtree_get(j, SV("context"));
	if (k == NULL)
		return 0;
	if (k->kind != J_OBJ)
		return bad(&r, k, "`context` must be an object");
	if (value(&r, k, x != NULL ? x->context : NULL, &v) < 0)
		return -1;
	if (v.kind != CEDAR_RECORD)
		return bad(&r, k, "`context` must be a record");
	out->context = v.rec;
	return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put_uid(struct buf *b, struct cedar_uid u)
{
	buf_put_sv(b, SV("{\"type\": "));
	buf_put_json(b, cedar_sv(u.type));
	buf_put_sv(b, SV(", \"id\": "));
	buf_put_json(b, cedar_sv(u.id));
	buf_put_byte(b, '}');
}

/* The text of a constructor's argument is what its Cedar form has between the quotes. */
static void put_extension(struct buf *b, const struct cedar_value *v)
{
	AUTO_BUF t = buf_with(256);
	sv s, fn, arg;

	if (v->kind == CEDAR_DATETIME) {
		buf_putf(b,
		    "{\"__extn\": {\"fn\": \"offset\", \"args\": [{\"__extn\": {\"fn\": "
		    "\"datetime\", \"arg\": "
		    "\"1970-01-01\"}}, {\"__extn\": {\"fn\": \"duration\", \"arg\": \"%" PRId64
		    "ms\"}}]}}",
		    v->i);
		return;
	}
	cedar_put_value(&t, v);
	s = buf_sv(&t);
	if (!sv_cut(s, '(', &fn, &arg) || arg.n < 3) {
		b->bad = true;
		return;
	}
	buf_put_sv(b, SV("{\"__extn\": {\"fn\": "));
	buf_put_json(b, fn);
	buf_put_sv(b, SV(", \"arg\": "));
	buf_put_json(b, sv_sub(arg, 1, arg.n - 3));
	buf_put_sv(b, SV("}}"));
}

void cedar_put_value_json(struct buf *b, const struct cedar_value *v)
{
	uint32_t i;

	switch (v->kind) {
	case CEDAR_BOOL:
		buf_put_c(b, v->b ? "true" : "false");
		break;
	case CEDAR_LONG:
		buf_putf(b, "%" PRId64, v->i);
		break;
	case CEDAR_STRING:
		buf_put_json(b, cedar_sv(v->s));
		break;
	case CEDAR_ENTITY:
		buf_put_sv(b, SV("{\"__entity\": "));
		put_uid(b, v->uid);
		buf_put_byte(b, '}');
		break;
	case CEDAR_SET:
		buf_put_byte(b, '[');
		for (i = 0; i < v->set->n; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			cedar_put_value_json(b, &v->set->v[i]);
		}
		buf_put_byte(b, ']');
		break;
	case CEDAR_RECORD:
		buf_put_byte(b, '{');
		for (i = 0; i < v->rec->n; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			buf_put_json(b, cedar_sv(v->rec->f[i].key));
			buf_put_sv(b, SV(": "));
			cedar_put_value_json(b, &v->rec->f[i].v);
		}
		buf_put_byte(b, '}');
		break;
	case CEDAR_DECIMAL:
	case CEDAR_IP:
	case CEDAR_DATETIME:
	case CEDAR_DURATION:
		put_extension(b, v);
		break;
	}
}
