/* advice: what to write instead, for words and signs that come from other languages. Constant
 * texts, or NULL when there is nothing to say. */
#pragma once

#include "base/sv.h"

enum cedar_place {
	CEDAR_AT_TOKEN,    /* a token that cannot stand where it stands */
	CEDAR_AT_VARIABLE, /* a name that is no variable */
	CEDAR_AT_EFFECT,   /* in place of permit or forbid */
	CEDAR_AT_KEYWORD,  /* in place of when or unless */
	CEDAR_AT_METHOD,   /* a method that does not exist */
	CEDAR_AT_TEMPORAL  /* a token in a temporal condition; ask before CEDAR_AT_TOKEN */
};
const char *cedar_advice(enum cedar_place place, sv text);
