/* Idempotency tokens. See tokens.h. */
#include "engine/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

void eng_tokens_init(struct eng_tokens *t, size_t max)
{
	*t = (struct eng_tokens){ .max = max };
}

static void drop(struct eng_token *k)
{
	free(k->text);
	eng_set_unref(k->set);
	*k = (struct eng_token){ 0 };
}

void eng_tokens_fini(struct eng_tokens *t)
{
	for (size_t i = 0; t->ring != NULL && i < t->max; i++)
		drop(&t->ring[i]);
	free(t->ring);
	free(t->bucket);
	*t = (struct eng_tokens){ 0 };
}

static uint32_t *chain(const struct eng_tokens *t, sv token)
{
	return &t->bucket[sip_hash(t->key, token) & (t->nbuckets - 1)];
}

static sv text_of(const struct eng_token *k)
{
	return (sv){ k->text, k->ntoken };
}

const struct eng_token *eng_tokens_find(const struct eng_tokens *t, sv token)
{
	if (t->ring == NULL)
		return NULL;
	for (uint32_t i = *chain(t, token); i != 0; i = t->ring[i - 1].next)
		if (sv_eq(text_of(&t->ring[i - 1]), token))
			return &t->ring[i - 1];
	return NULL;
}

static int start(struct eng_tokens *t, struct box_err *err)
{
	t->nbuckets = 16;
	while (t->nbuckets < t->max)
		t->nbuckets *= 2;
	t->ring = calloc(t->max, sizeof(*t->ring));
	t->bucket = calloc(t->nbuckets, sizeof(*t->bucket));
	t->key = sip_key_random();
	if (t->ring != NULL && t->bucket != NULL)
		return 0;
	free(t->ring);
	free(t->bucket);
	t->ring = NULL;
	t->bucket = NULL;
	return box_nomem(err, "the tokens");
}

/* Take the oldest out of its chain. */
static void forget(struct eng_tokens *t, uint32_t i)
{
	struct eng_token *k = &t->ring[i];
	uint32_t *p = chain(t, text_of(k));

	while (*p != i + 1)
		p = &t->ring[*p - 1].next;
	*p = k->next;
	drop(k);
}

int eng_tokens_add(struct eng_tokens *t, sv token, sv verdict, struct eng_set *set, uint64_t offset,
    int64_t ts, struct box_err *err)
{
	struct eng_token *k;
	uint32_t *p;
	char *text;

	if (t->max == 0)
		return 0;
	if (t->ring == NULL && start(t, err) < 0)
		return -1;
	text = malloc(token.n + verdict.n + 1);
	if (text == NULL)
		return box_nomem(err, "a token");
	memcpy(text, token.p, token.n);
	if (verdict.n != 0)
		memcpy(text + token.n, verdict.p, verdict.n);
	k = &t->ring[t->at];
	if (k->text != NULL)
		forget(t, (uint32_t)t->at);
	*k = (struct eng_token){ .text = text,
		.ntoken = token.n,
		.nverdict = verdict.n,
		.offset = offset,
		.ts = ts,
		.set = set != NULL ? eng_set_ref(set) : NULL };
	p = chain(t, token);
	k->next = *p;
	*p = (uint32_t)t->at + 1;
	t->at = (t->at + 1) % t->max;
	return 0;
}

const struct eng_token *eng_tokens_at(const struct eng_tokens *t, size_t i)
{
	const struct eng_token *k = &t->ring[(t->at + i) % t->max];

	return k->text != NULL ? k : NULL;
}

size_t eng_tokens_count(const struct eng_tokens *t)
{
	size_t n = 0;

	for (size_t i = 0; i < eng_tokens_room(t); i++)
		n += t->ring[i].text != NULL;
	return n;
}

void eng_tokens_keep(struct eng_tokens *t, size_t n)
{
	size_t have = eng_tokens_count(t);

	for (size_t i = 0; i < eng_tokens_room(t) && have > n; i++) {
		if (eng_tokens_at(t, i) == NULL)
			continue;
		forget(t, (uint32_t)((t->at + i) % t->max));
		have--;
	}
}
