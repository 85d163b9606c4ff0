/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes JSON text that Python writes or reads acceptable to a strict parser, and measures its
 * nesting before any parser recurses. Python spells bytes that are no text as lone surrogates
 * (\udc80 … \udcff), and a worker may die in the middle of a character; U+FFFD takes their
 * place. Python also writes NaN, which becomes null, and Infinity and -Infinity, which become the
 * largest and the smallest number there is. Grammar is the parser's business. */
#ifndef MUSTER_WIRE_JSON_REPAIR_H
#define MUSTER_WIRE_JSON_REPAIR_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Appends the repaired text. FAILURE_LIMIT when objects and arrays nest deeper than
 * `maximum_depth`; `out` may then hold a part. */
__attribute__((warn_unused_result)) enum failure_code json_repair(
    struct slice input, int maximum_depth, struct text *out);

/* Appends plain text with every byte that is not part of a UTF-8 character replaced, and NUL too.
 */
void json_repair_text(struct slice input, struct text *out);

#endif
