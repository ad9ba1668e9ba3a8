/* keys: reading typed keys out of a TOML table, and refusing what is not known. Private to
 * src/config.
 *
 * Every refusal names file, line and column. Two shapes: what a TOML reader with a schema would say
 * ("cannot parse config file FILE:L:C: …": wrong types, unknown keys), and the rules of single keys
 * ("FILE:L:C: …"). */
#pragma once

#include "base/host.h"
#include "base/toml.h"
#include "config/config.h"

struct cfg {
	struct plan *p;
	struct box_err *err;
};

/* What may stand under a key. */
enum cfg_fate {
	CFG_TAKEN,       /* read elsewhere */
	CFG_UNSUPPORTED, /* of the file format, but not in this build */
	CFG_REFUSED,     /* known and never allowed here; hint says what to do */
};
struct cfg_key {
	const char *name; /* NULL ends the table */
	enum cfg_fate fate;
	const char *hint;
};

/* Both return -1. */
int cfg_fail(struct cfg *c, struct plan_at at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int cfg_fail_parse(struct cfg *c, struct plan_at at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int cfg_nomem(struct cfg *c);
/* Text of the file, or a path, made safe for one line; in the plan's arena, never NULL. */
const char *cfg_shown(struct cfg *c, sv s);

static inline struct plan_at cfg_at(const struct toml *v)
{
	return (struct plan_at){ v->line, v->col };
}
static inline struct plan_at cfg_at_key(const struct toml *v)
{
	return (struct plan_at){ v->key_line, v->key_col };
}

/* Refuse every key of t that is not in the table. where: "`[agent]`", "the top level". */
int cfg_check_keys(
    struct cfg *c, const struct toml *t, const struct cfg_key *keys, const char *where);
/* The value is of this kind; name is how messages call it ("`box_dir`"). */
int cfg_want(struct cfg *c, const struct toml *v, enum toml_kind kind, const char *name);
/* A string key: *out stays as it is when the key is absent. A NUL inside is refused. */
int cfg_string(struct cfg *c, const struct toml *t, const char *key, sv *out, struct plan_at *at);
/* A string without NUL, copied to the plan. */
int cfg_take(struct cfg *c, const struct toml *v, const char *name, sv *out);
/* The known key closest to a wrong one, or NULL when none is close. */
const char *cfg_nearest(sv wrong, const struct cfg_key *keys);
/* Why a name of 1.1 (name, labels) is not one: text in the arena, or NULL when it is fine. max 0:
 * any length. */
const char *cfg_name_reason(struct arena *a, sv name, size_t max);

/* process.c: [agent] and [tool.*]; the env table's rule for names is used for secrets too. */
int cfg_read_processes(struct cfg *c, const struct toml *root, char *const *args);
enum cfg_env_name { CFG_ENV_OK, CFG_ENV_INVALID, CFG_ENV_RESERVED };
enum cfg_env_name cfg_env_name(sv name);
/* egress.c */
int cfg_read_egress(struct cfg *c, const struct toml *root);
/* resolve.c */
int cfg_read_resolve(struct cfg *c, const struct toml *root);
/* A port number 1 to 65535. */
bool cfg_port(sv s, uint16_t *out);
/* dest.c: parse one destination; on false *reason says why (static or in the arena). */
bool cfg_dest_parse(struct arena *a, sv text, struct plan_dest *out, const char **reason);
/* A host name or address for patterns and [resolve], canonical (base/host.h), brackets removed, in
 * the arena. false: not one. */
bool cfg_host(struct arena *a, sv text, sv *out, enum host_kind *kind);
