/* table: byte strings to fixed-size records, with a list of the records in order of last touch, so
 * that what is stale can be dropped from one end a few at a time. Keys hold values chosen by
 * agents: the hash is SipHash under a key of the table's own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/sv.h"

struct dw_rec_hdr {
	struct dw_rec_hdr *older, *newer; /* in order of touch */
	struct dw_rec_hdr *chain;         /* same bucket */
	uint64_t hash;
	int64_t ts; /* of the last touch */
	uint32_t key_n;
	/* The record follows (dw_rec_data), then the key. */
};

struct dw_table {
	struct sip_key sip;
	struct dw_rec_hdr **bucket;
	size_t nbuckets, n, bytes;
	size_t record; /* bytes of a record */
	struct dw_rec_hdr *oldest, *newest;
};

void dw_table_init(struct dw_table *t, size_t record);
/* The same with a given hash key: a table inside a table uses its parent's. */
void dw_table_init_with(struct dw_table *t, size_t record, struct sip_key k);
/* Free everything; fini (may be NULL) is called for each record. */
void dw_table_fini(struct dw_table *t, void (*fini)(void *record));
/* The record of a key, or NULL. */
void *dw_table_find(const struct dw_table *t, sv key);
/* The record of a key, made (zeroed, newest) if need be; NULL without memory. */
void *dw_table_put(struct dw_table *t, sv key, int64_t ts);
/* Make it the newest. */
void dw_table_touch(struct dw_table *t, void *record, int64_t ts);
void dw_table_drop(struct dw_table *t, void *record, void (*fini)(void *record));
/* The least recently touched record, or NULL; the next one in that order, or NULL. */
void *dw_table_oldest(const struct dw_table *t);
void *dw_table_newest(const struct dw_table *t);
void *dw_table_newer(const void *record);
void *dw_table_older(const void *record);
int64_t dw_table_ts(const void *record);
sv dw_table_key(const struct dw_table *t, const void *record);
