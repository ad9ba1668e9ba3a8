/* box_schema: what an agent in a box can do, as data: the action schema and the event schema that
 * Box's policies are checked against (box-config-and-policy.md 2.1, 2.2; dogwood-language.md 9.4).
 * A box adds the actions generated for its MCP tools to the text. */
#pragma once

/* Ten actions of namespace Box, their exact types, no action groups. Cedar schema, human syntax. */
extern const char dw_box_actions[];
/* Events request (decides), response, error; no pins; windows up to 24 h. */
extern const char dw_box_events[];

#define DW_BOX_PRINCIPAL_TYPE "Box::Agent"
#define DW_BOX_PRINCIPAL_ID   "self"
#define DW_BOX_RESOURCE_TYPE  "Box::Resource"
#define DW_BOX_RESOURCE_ID    "unused"
#define DW_BOX_ACTION_TYPE    "Box::Action"
