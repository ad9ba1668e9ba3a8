/* lint: characters in a source that a reader cannot see, or takes for others. */
#pragma once

#include "cedar/diag.h"

#define CEDAR_LINT_MAX 50 /* findings of one text */

/* Add warnings (code "lint") to ds for the strings and comments of a policy or schema text
 * (identifiers are ASCII by the grammar). In both: bidirectional controls, and characters without
 * a shape. In strings also: letters of two scripts in one word, words that are spelled with
 * letters of another script but look Latin, and forms that look like ASCII. What is written as an
 * escape (`\u{202e}`) can be seen and is no finding. Text that is not UTF-8 has no findings. */
void cedar_lint(sv text, struct cedar_diags *ds);
