/* Between eschema.c and derive.c only: an event schema as written. */
#pragma once

#include "dogwood/eschema.h"

enum dw_es_sel { DW_ES_INPUTS, DW_ES_OUTPUTS, DW_ES_PRINCIPAL, DW_ES_RESOURCE };

struct dw_es_item {
	enum { DW_ES_SPREAD, DW_ES_SELECTED, DW_ES_NAMED, DW_ES_GROUP } is;
	sv name;
	enum dw_es_sel sel;
	sv type;
	struct dw_es_item *sub;
	uint32_t nsub;
	bool pin;
	struct dw_term *value;
	struct cedar_span at;
};

struct dw_es_event {
	bool decision;
	sv kind;
	struct dw_es_item *items;
	uint32_t nitems;
	struct cedar_span at;
};

bool dw_eschema_derive(struct arena *a, const struct dw_es_event *v, uint32_t n,
    const struct cedar_schema *schema, struct dw_eschema *out, struct cedar_diags *ds);
