/* See table.h. */
#include "dogwood/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

/* Records are aligned for any type: the header is padded. */
#define HDR ((sizeof(struct dw_rec_hdr) + 15) & ~(size_t)15)

static void *data(struct dw_rec_hdr *h)
{
	return (char *)h + HDR;
}

static struct dw_rec_hdr *hdr(const void *record)
{
	const char *p = (const char *)record - HDR;
	struct dw_rec_hdr *h;

	/* The record was handed out const only as a promise not to change it. */
	memcpy(&h, &p, sizeof(h));
	return h;
}

static sv key_of(const struct dw_table *t, struct dw_rec_hdr *h)
{
	return (sv){ (char *)h + HDR + t->record, h->key_n };
}

void dw_table_init(struct dw_table *t, size_t record)
{
	dw_table_init_with(t, record, sip_key_random());
}

void dw_table_init_with(struct dw_table *t, size_t record, struct sip_key k)
{
	*t = (struct dw_table){ .sip = k, .record = (record + 15) & ~(size_t)15 };
}

static void unlink_touch(struct dw_table *t, struct dw_rec_hdr *h)
{
	if (h->older != NULL)
		h->older->newer = h->newer;
	else
		t->oldest = h->newer;
	if (h->newer != NULL)
		h->newer->older = h->older;
	else
		t->newest = h->older;
}

static void link_newest(struct dw_table *t, struct dw_rec_hdr *h)
{
	h->newer = NULL;
	h->older = t->newest;
	if (t->newest != NULL)
		t->newest->newer = h;
	else
		t->oldest = h;
	t->newest = h;
}

void dw_table_fini(struct dw_table *t, void (*fini)(void *record))
{
	struct dw_rec_hdr *h = t->oldest, *next;

	for (; h != NULL; h = next) {
		next = h->newer;
		if (fini != NULL)
			fini(data(h));
		free(h);
	}
	free(t->bucket);
	t->bucket = NULL;
	t->nbuckets = t->n = t->bytes = 0;
	t->oldest = t->newest = NULL;
}

static struct dw_rec_hdr *find(const struct dw_table *t, uint64_t hash, sv key)
{
	struct dw_rec_hdr *h;

	if (t->nbuckets == 0)
		return NULL;
	for (h = t->bucket[hash & (t->nbuckets - 1)]; h != NULL; h = h->chain) {
		if (h->hash == hash && sv_eq(key_of(t, h), key))
			return h;
	}
	return NULL;
}

void *dw_table_find(const struct dw_table *t, sv key)
{
	struct dw_rec_hdr *h = t->n != 0 ? find(t, sip_hash(t->sip, key), key) : NULL;

	return h != NULL ? data(h) : NULL;
}

static bool grow(struct dw_table *t)
{
	size_t n = t->nbuckets != 0 ? t->nbuckets * 2 : 16;
	struct dw_rec_hdr **v = calloc(n, sizeof(*v));

	if (v == NULL)
		return false;
	for (struct dw_rec_hdr *h = t->oldest; h != NULL; h = h->newer) {
		h->chain = v[h->hash & (n - 1)];
		v[h->hash & (n - 1)] = h;
	}
	free(t->bucket);
	t->bucket = v;
	t->nbuckets = n;
	return true;
}

void *dw_table_put(struct dw_table *t, sv key, int64_t ts)
{
	uint64_t hash = sip_hash(t->sip, key);
	struct dw_rec_hdr *h = find(t, hash, key);
	size_t all;

	if (h != NULL)
		return data(h);
	if (key.n > UINT32_MAX || (t->n >= t->nbuckets && !grow(t)))
		return NULL;
	all = HDR + t->record + key.n;
	h = calloc(1, all);
	if (h == NULL)
		return NULL;
	h->hash = hash;
	h->ts = ts;
	h->key_n = (uint32_t)key.n;
	if (key.n != 0)
		memcpy((char *)h + HDR + t->record, key.p, key.n);
	h->chain = t->bucket[hash & (t->nbuckets - 1)];
	t->bucket[hash & (t->nbuckets - 1)] = h;
	link_newest(t, h);
	t->n++;
	t->bytes += all;
	return data(h);
}

void dw_table_touch(struct dw_table *t, void *record, int64_t ts)
{
	struct dw_rec_hdr *h = hdr(record);

	h->ts = ts;
	if (t->newest == h)
		return;
	unlink_touch(t, h);
	link_newest(t, h);
}

void dw_table_drop(struct dw_table *t, void *record, void (*fini)(void *record))
{
	struct dw_rec_hdr *h = hdr(record), **p = &t->bucket[h->hash & (t->nbuckets - 1)];

	while (*p != h)
		p = &(*p)->chain;
	*p = h->chain;
	unlink_touch(t, h);
	t->n--;
	t->bytes -= HDR + t->record + h->key_n;
	if (fini != NULL)
		fini(record);
	free(h);
}

void *dw_table_oldest(const struct dw_table *t)
{
	return t->oldest != NULL ? data(t->oldest) : NULL;
}

void *dw_table_newest(const struct dw_table *t)
{
	return t->newest != NULL ? data(t->newest) : NULL;
}

void *dw_table_newer(const void *record)
{
	struct dw_rec_hdr *h = hdr(record)->newer;

	return h != NULL ? data(h) : NULL;
}

void *dw_table_older(const void *record)
{
	struct dw_rec_hdr *h = hdr(record)->older;

	return h != NULL ? data(h) : NULL;
}

int64_t dw_table_ts(const void *record)
{
	return hdr(record)->ts;
}

sv dw_table_key(const struct dw_table *t, const void *record)
{
	return key_of(t, hdr(record));
}
