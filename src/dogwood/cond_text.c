/* Conditions as text: the canonical form by which equal ones are known, and the form that people
 * read. See cond.h. */
#include "dogwood/cond.h"

#include "base/ban.h"

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
