/* Walks over condition trees: numbering, canonical text, printing. See cond.h. */
#include "dogwood/cond.h"

#include "base/ban.h"

const char *dw_cmp_text(enum dw_cmp op)
{
	static const char *const names[] = { "<", "<=", "==", "!=", ">=", ">" };

	return names[op];
}

int64_t dw_window_seconds(const struct dw_window *w)
{
	uint64_t unit = w->unit == 's' ? 1 : w->unit == 'm' ? 60 : w->unit == 'h' ? 3600 : 86400, s;

	if (w->too_large || __builtin_mul_overflow(w->amount, unit, &s) || s > (uint64_t)INT64_MAX)
		return INT64_MAX;
	return (int64_t)s;
}

bool dw_term_same(const struct dw_term *a, const struct dw_term *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case DW_TERM_LIT:
		return dw_val_eq(&a->lit, &b->lit);
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		if (a->path.n != b->path.n)
			return false;
		for (uint32_t i = 0; i < a->path.n; i++) {
			if (!sv_eq(a->path.v[i], b->path.v[i]))
				return false;
		}
		return true;
	case DW_TERM_VAR:
		return a->var.slot != DW_NO_SLOT && a->var.slot == b->var.slot;
	case DW_TERM_ARRAY:
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_AGG:
	case DW_TERM_CALL:
		return false;
	}
	return false;
}

/* ---- numbering ---- */

struct scope {
	const struct scope *up;
	const struct dw_binder *b;
	uint32_t n;
};

struct numbering {
	struct arena *a;
	struct dw_names *out;
	uint32_t cap_slot, cap_req, cap_pred;
	bool bad;
};

static void *append(struct numbering *x, void *v, uint32_t n, uint32_t *cap, size_t size)
{
	if (n == *cap) {
		uint32_t c = *cap != 0 ? *cap * 2 : 8;

		v = arena_grow(x->a, v, n, c, size);
		if (v == NULL)
			x->bad = true;
		*cap = c;
	}
	return v;
}

static uint32_t find_slot(const struct scope *s, sv name)
{
	for (; s != NULL; s = s->up) {
		/* The last of equal names hides the others. */
		for (uint32_t i = s->n; i-- != 0;) {
			if (sv_eq(s->b[i].name, name))
				return s->b[i].slot;
		}
	}
	return DW_NO_SLOT;
}

static void new_slot(struct numbering *x, struct dw_binder *b)
{
	const struct dw_binder **v =
	    append(x, x->out->slot, x->out->nslots, &x->cap_slot, sizeof(struct dw_binder *));

	if (x->bad)
		return;
	b->slot = x->out->nslots;
	v[x->out->nslots++] = b;
	x->out->slot = v;
}

static void number_cond(struct numbering *x, const struct scope *s, struct dw_cond *c);

static void number_term(struct numbering *x, const struct scope *s, struct dw_term *t)
{
	struct scope in = { s, NULL, 0 };
	struct dw_term **v;

	if (x->bad)
		return;
	switch (t->kind) {
	case DW_TERM_LIT:
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return;
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++)
			number_term(x, s, t->items.v[i]);
		return;
	case DW_TERM_VAR:
		t->var.slot = find_slot(s, t->var.name);
		return;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		for (uint32_t i = 0; i < x->out->nreq; i++) {
			if (dw_term_same(x->out->req[i], t)) {
				t->path.req = i;
				return;
			}
		}
		v = append(x, x->out->req, x->out->nreq, &x->cap_req, sizeof(struct dw_term *));
		if (x->bad)
			return;
		t->path.req = x->out->nreq;
		v[x->out->nreq++] = t;
		x->out->req = v;
		return;
	case DW_TERM_AGG:
		for (uint32_t i = 0; i < t->agg.nvars; i++)
			new_slot(x, &t->agg.vars[i]);
		in.b = t->agg.vars;
		in.n = t->agg.nvars;
		if (t->agg.sum) {
			struct scope own = { NULL, in.b, in.n };

			t->agg.summed_slot = find_slot(&own, t->agg.summed);
		}
		number_cond(x, &in, t->agg.body);
		return;
	}
}

static void number_pred(struct numbering *x, const struct scope *s, struct dw_pred *p)
{
	struct dw_pred **v =
	    append(x, x->out->pred, x->out->npred, &x->cap_pred, sizeof(struct dw_pred *));

	if (x->bad)
		return;
	p->number = x->out->npred;
	v[x->out->npred++] = p;
	x->out->pred = v;
	for (uint32_t i = 0; i < p->nargs; i++)
		number_term(x, s, p->args[i].term);
}

static void number_cond(struct numbering *x, const struct scope *s, struct dw_cond *c)
{
	struct scope in = { s, NULL, 0 };

	if (x->bad)
		return;
	switch (c->kind) {
	case DW_C_PRED:
		number_pred(x, s, &c->pred);
		return;
	case DW_C_TP:
		c->tp.slot = find_slot(s, c->tp.name);
		return;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			number_cond(x, s, c->all.v[i]);
		return;
	case DW_C_NOT:
		number_cond(x, s, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		number_cond(x, s, c->once.body);
		return;
	case DW_C_SINCE:
		number_cond(x, s, c->since.left);
		number_cond(x, s, c->since.right);
		return;
	case DW_C_EXISTS:
		new_slot(x, &c->exists.var);
		in.b = &c->exists.var;
		in.n = 1;
		number_cond(x, &in, c->exists.body);
		return;
	case DW_C_CMP:
		number_term(x, s, c->cmp.l);
		number_term(x, s, c->cmp.r);
		return;
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

/* ---- the free slots of each node ---- */

struct slots {
	uint32_t *v;
	uint32_t n, cap;
};

static void slot_add(struct numbering *x, struct slots *s, uint32_t slot)
{
	if (slot == DW_NO_SLOT || x->bad)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->v[i] == slot)
			return;
	}
	s->v = append(x, s->v, s->n, &s->cap, sizeof(*s->v));
	if (!x->bad)
		s->v[s->n++] = slot;
}

static void slots_of(struct numbering *x, struct dw_cond *c, struct slots *out);

static void slots_of_term(struct numbering *x, struct dw_term *t, struct slots *out)
{
	struct slots in = { 0 };

	if (t->kind == DW_TERM_VAR)
		slot_add(x, out, t->var.slot);
	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++)
			slots_of_term(x, t->items.v[i], out);
	}
	if (t->kind != DW_TERM_AGG)
		return;
	slots_of(x, t->agg.body, &in);
	for (uint32_t i = 0; i < in.n; i++) {
		bool own = false;

		for (uint32_t k = 0; k < t->agg.nvars; k++)
			own = own || t->agg.vars[k].slot == in.v[i];
		if (!own)
			slot_add(x, out, in.v[i]);
	}
}

static void slots_of(struct numbering *x, struct dw_cond *c, struct slots *out)
{
	struct slots s = { 0 };

	if (x->bad)
		return;
	c->node = x->out->nnodes++;
	switch (c->kind) {
	case DW_C_PRED:
		for (uint32_t i = 0; i < c->pred.nargs; i++)
			slots_of_term(x, c->pred.args[i].term, &s);
		break;
	case DW_C_TP:
		slot_add(x, &s, c->tp.slot);
		break;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			slots_of(x, c->all.v[i], &s);
		break;
	case DW_C_NOT:
		slots_of(x, c->neg, &s);
		break;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		slots_of(x, c->once.body, &s);
		break;
	case DW_C_SINCE:
		slots_of(x, c->since.left, &s);
		slots_of(x, c->since.right, &s);
		break;
	case DW_C_EXISTS:
		slots_of(x, c->exists.body, &s);
		for (uint32_t i = 0; i < s.n; i++) {
			if (s.v[i] == c->exists.var.slot)
				s.v[i] = s.v[--s.n];
		}
		break;
	case DW_C_CMP:
		slots_of_term(x, c->cmp.l, &s);
		slots_of_term(x, c->cmp.r, &s);
		break;
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	c->vars = s.v;
	c->nvars = s.n;
	for (uint32_t i = 0; i < s.n; i++)
		slot_add(x, out, s.v[i]);
}

bool dw_cond_resolve(struct arena *a, struct dw_cond *c, struct dw_names *out)
{
	struct numbering x = { .a = a, .out = out };
	struct slots all = { 0 };

	*out = (struct dw_names){ 0 };
	number_cond(&x, NULL, c);
	slots_of(&x, c, &all);
	return !x.bad;
}

/* ---- closed? ---- */

static bool term_closed(const struct dw_term *t)
{
	switch (t->kind) {
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return false;
	case DW_TERM_VAR:
		return t->var.name.p[0] != '$';
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++) {
			if (!term_closed(t->items.v[i]))
				return false;
		}
		return true;
	case DW_TERM_AGG:
		return dw_cond_closed(t->agg.body);
	case DW_TERM_LIT:
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
	case DW_TERM_WILD:
		return true;
	}
	return false;
}

bool dw_cond_closed(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED:
		for (uint32_t i = 0; i < c->pred.nargs; i++) {
			if (!term_closed(c->pred.args[i].term))
				return false;
		}
		return true;
	case DW_C_TP:
		return c->tp.name.p[0] != '$' && c->tp.name.p[0] != '?';
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!dw_cond_closed(c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return dw_cond_closed(c->neg);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return c->once.w->unit != 0 && dw_cond_closed(c->once.body);
	case DW_C_SINCE:
		return c->since.w->unit != 0 && dw_cond_closed(c->since.left) &&
		       dw_cond_closed(c->since.right);
	case DW_C_EXISTS:
		return dw_cond_closed(c->exists.body);
	case DW_C_CMP:
		return term_closed(c->cmp.l) && term_closed(c->cmp.r);
	case DW_C_CALL:
	case DW_C_PARAM:
		return false;
	}
	return false;
}

/* ---- canonical text ---- */

static void key_str(struct buf *b, sv s)
{
	buf_putf(b, "%zu:", s.n);
	buf_put_sv(b, s);
}

static void key_path(struct buf *b, const sv *v, uint32_t n)
{
	buf_putf(b, "%u", n);
	for (uint32_t i = 0; i < n; i++) {
		buf_put_byte(b, '.');
		key_str(b, v[i]);
	}
}

/* A variable is named by its binder's number, so that a rule keeps its history when text before a
 * macro call moves. */
static void key_var(struct buf *b, uint32_t slot, sv name)
{
	if (slot != DW_NO_SLOT) {
		buf_putf(b, "v%u", slot);
	} else {
		buf_put_byte(b, 'n');
		key_str(b, name);
	}
}

static void key_binder(struct buf *b, const struct dw_binder *v)
{
	key_var(b, v->slot, v->name);
	buf_putf(b, "/%d", (int)v->type);
	if (v->type == DW_T_NAMED)
		key_str(b, v->type_name);
}

void dw_term_key(struct buf *b, const struct dw_term *t)
{
	switch (t->kind) {
	case DW_TERM_LIT:
		buf_put_byte(b, '=');
		if (t->lit.tag == DW_ENTITY) {
			buf_put_byte(b, 'e');
			key_str(b, t->lit.u.ent.type);
			key_str(b, t->lit.u.ent.id);
		} else if (t->lit.tag == DW_STRING || t->lit.tag == DW_DECIMAL) {
			buf_put_byte(b, t->lit.tag == DW_STRING ? 's' : 'd');
			key_str(b, t->lit.u.s);
		} else {
			dw_val_print(b, &t->lit);
			buf_put_byte(b, ';');
		}
		return;
	case DW_TERM_ARRAY:
		buf_putf(b, "[%u", t->items.n);
		for (uint32_t i = 0; i < t->items.n; i++)
			dw_term_key(b, t->items.v[i]);
		buf_put_byte(b, ']');
		return;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		buf_put_byte(b, t->kind == DW_TERM_CONTEXT     ? 'C'
		                : t->kind == DW_TERM_PRINCIPAL ? 'P'
		                                               : 'R');
		key_path(b, t->path.v, t->path.n);
		return;
	case DW_TERM_WILD:
		buf_put_byte(b, '*');
		return;
	case DW_TERM_VAR:
	case DW_TERM_PARAM:
		key_var(b, t->var.slot, t->var.name);
		return;
	case DW_TERM_AGG:
		buf_put_c(b, t->agg.sum ? "sum(" : "count(");
		if (t->agg.sum)
			key_var(b, t->agg.summed_slot, t->agg.summed);
		for (uint32_t i = 0; i < t->agg.nvars; i++) {
			buf_put_byte(b, ',');
			key_binder(b, &t->agg.vars[i]);
		}
		buf_put_byte(b, '|');
		dw_cond_key(b, t->agg.body);
		buf_put_byte(b, ')');
		return;
	case DW_TERM_CALL:
		buf_put_byte(b, '#');
		key_str(b, t->call->name);
		return;
	}
}

static void key_args(struct buf *b, const struct dw_arg *v, uint32_t n)
{
	buf_put_byte(b, '{');
	for (uint32_t i = 0; i < n; i++) {
		key_path(b, v[i].path, v[i].npath);
		buf_put_byte(b, '~');
		dw_term_key(b, v[i].term);
	}
	buf_put_byte(b, '}');
}

void dw_cond_key(struct buf *b, const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED:
		buf_put_byte(b, 'p');
		key_str(b, c->pred.ns);
		key_str(b, c->pred.id);
		key_str(b, c->pred.kind);
		key_args(b, c->pred.args, c->pred.nargs);
		return;
	case DW_C_TP:
		buf_put_byte(b, 't');
		key_var(b, c->tp.slot, c->tp.name);
		return;
	case DW_C_AND:
		buf_putf(b, "&%u(", c->all.n);
		for (uint32_t i = 0; i < c->all.n; i++)
			dw_cond_key(b, c->all.v[i]);
		buf_put_byte(b, ')');
		return;
	case DW_C_NOT:
		buf_put_byte(b, '!');
		dw_cond_key(b, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		buf_putf(b, "%c%lld:", c->kind == DW_C_FORMERLY ? 'f' : 'y',
		    (long long)dw_window_seconds(c->once.w));
		dw_cond_key(b, c->once.body);
		return;
	case DW_C_SINCE:
		buf_putf(b, "s%lld:", (long long)dw_window_seconds(c->since.w));
		dw_cond_key(b, c->since.left);
		dw_cond_key(b, c->since.right);
		return;
	case DW_C_EXISTS:
		buf_put_byte(b, 'x');
		key_binder(b, &c->exists.var);
		buf_put_byte(b, '.');
		dw_cond_key(b, c->exists.body);
		return;
	case DW_C_CMP:
		buf_putf(b, "c%d", (int)c->cmp.op);
		dw_term_key(b, c->cmp.l);
		dw_term_key(b, c->cmp.r);
		return;
	case DW_C_CALL:
		buf_put_byte(b, '#');
		key_str(b, c->call->name);
		return;
	case DW_C_PARAM:
		buf_put_byte(b, '?');
		key_str(b, c->param.name);
		key_args(b, c->param.args, c->param.nargs);
		return;
	}
}

/* ---- text ---- */

static void print_binder(struct buf *b, const struct dw_binder *v)
{
	buf_putf(b, "(" SV_FMT ": " SV_FMT ")", SV_ARG(v->name), SV_ARG(v->type_name));
}

static void print_call(struct buf *b, const struct dw_call *k)
{
	buf_put_sv(b, k->name);
	buf_put_byte(b, '(');
	for (uint32_t i = 0; i < k->nargs; i++) {
		if (i != 0)
			buf_put_c(b, ", ");
		if (k->args[i].window != NULL)
			buf_put_sv(b, k->args[i].window->text);
		else if (k->args[i].term != NULL)
			dw_term_print(b, k->args[i].term);
		else if (k->args[i].cond != NULL)
			dw_cond_print(b, k->args[i].cond);
	}
	buf_put_byte(b, ')');
}

void dw_term_print(struct buf *b, const struct dw_term *t)
{
	switch (t->kind) {
	case DW_TERM_LIT:
		if (t->lit.tag == DW_DECIMAL) {
			struct dw_val s = dw_str(t->lit.u.s);

			buf_put_c(b, "decimal(");
			dw_val_print(b, &s);
			buf_put_byte(b, ')');
		} else {
			dw_val_print(b, &t->lit);
		}
		return;
	case DW_TERM_ARRAY:
		buf_put_byte(b, '[');
		for (uint32_t i = 0; i < t->items.n; i++) {
			if (i != 0)
				buf_put_c(b, ", ");
			dw_term_print(b, t->items.v[i]);
		}
		buf_put_byte(b, ']');
		return;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		buf_put_c(b, t->kind == DW_TERM_CONTEXT     ? "context"
		             : t->kind == DW_TERM_PRINCIPAL ? "principal"
		                                            : "resource");
		for (uint32_t i = 0; i < t->path.n; i++) {
			buf_put_byte(b, '.');
			buf_put_sv(b, t->path.v[i]);
		}
		return;
	case DW_TERM_WILD:
		buf_put_byte(b, '*');
		return;
	case DW_TERM_VAR:
	case DW_TERM_PARAM:
		buf_put_sv(b, t->var.name);
		return;
	case DW_TERM_AGG:
		buf_put_byte(b, '(');
		if (t->agg.sum)
			buf_putf(b, "sum " SV_FMT " for ", SV_ARG(t->agg.summed));
		else
			buf_put_c(b, "count for ");
		for (uint32_t i = 0; i < t->agg.nvars; i++) {
			if (i != 0)
				buf_put_c(b, ", ");
			print_binder(b, &t->agg.vars[i]);
		}
		buf_put_c(b, ". where (");
		dw_cond_print(b, t->agg.body);
		buf_put_c(b, "))");
		return;
	case DW_TERM_CALL:
		print_call(b, t->call);
		return;
	}
}

static void print_args(struct buf *b, const struct dw_arg *v, uint32_t n)
{
	buf_put_byte(b, '{');
	for (uint32_t i = 0; i < n; i++) {
		buf_put_c(b, i != 0 ? ", " : " ");
		buf_put_sv(b, v[i].dotted);
		buf_put_c(b, ": ");
		dw_term_print(b, v[i].term);
	}
	buf_put_c(b, n != 0 ? " }" : "}");
}

static bool is_atom(const struct dw_cond *c)
{
	return c->kind == DW_C_PRED || c->kind == DW_C_TP || c->kind == DW_C_CALL ||
	       c->kind == DW_C_PARAM;
}

static void print_atom(struct buf *b, const struct dw_cond *c)
{
	if (!is_atom(c))
		buf_put_byte(b, '(');
	dw_cond_print(b, c);
	if (!is_atom(c))
		buf_put_byte(b, ')');
}

void dw_cond_print(struct buf *b, const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED: {
		struct dw_val e = dw_ent(c->pred.ns, c->pred.id);

		dw_val_print(b, &e);
		buf_put_c(b, "::");
		buf_put_sv(b, c->pred.kind);
		print_args(b, c->pred.args, c->pred.nargs);
		return;
	}
	case DW_C_TP:
		buf_putf(b, "tp(" SV_FMT ")", SV_ARG(c->tp.name));
		return;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			const struct dw_cond *m = c->all.v[i];

			if (i != 0)
				buf_put_c(b, " && ");
			if (m->kind == DW_C_EXISTS || m->kind == DW_C_SINCE)
				print_atom(b, m);
			else
				dw_cond_print(b, m);
		}
		return;
	case DW_C_NOT:
		buf_put_byte(b, '!');
		print_atom(b, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		buf_putf(b, "%s within " SV_FMT " ",
		    c->kind == DW_C_FORMERLY ? "formerly" : "previous", SV_ARG(c->once.w->text));
		print_atom(b, c->once.body);
		return;
	case DW_C_SINCE:
		if (c->since.left->kind == DW_C_NOT)
			dw_cond_print(b, c->since.left);
		else
			print_atom(b, c->since.left);
		buf_putf(b, " since within " SV_FMT " ", SV_ARG(c->since.w->text));
		print_atom(b, c->since.right);
		return;
	case DW_C_EXISTS:
		buf_put_c(b, "exists ");
		print_binder(b, &c->exists.var);
		buf_put_c(b, ". (");
		dw_cond_print(b, c->exists.body);
		buf_put_byte(b, ')');
		return;
	case DW_C_CMP:
		dw_term_print(b, c->cmp.l);
		buf_putf(b, " %s ", dw_cmp_text(c->cmp.op));
		dw_term_print(b, c->cmp.r);
		return;
	case DW_C_CALL:
		print_call(b, c->call);
		return;
	case DW_C_PARAM:
		buf_put_sv(b, c->param.name);
		if (c->param.refined)
			print_args(b, c->param.args, c->param.nargs);
		return;
	}
}
