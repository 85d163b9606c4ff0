/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes JSON text that Python can write or read so that a strict parser accepts it, and checks
 * its nesting before a parser recurses. Lone surrogates (\udc80 … \udcff, which Python uses for
 * undecodable bytes) and invalid UTF-8 (a worker may die in the middle of a character) become
 * U+FFFD. NaN becomes null. Infinity and -Infinity become the largest and the smallest number. The
 * grammar is not checked here; the parser does that. */
#ifndef MUSTER_WIRE_JSON_JSON_REPAIR_H
#define MUSTER_WIRE_JSON_JSON_REPAIR_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Appends the repaired text. FAILURE_LIMIT when objects and arrays nest deeper than
 * `maximum_depth`; `out` may then hold a part of the text. */
__attribute__((warn_unused_result)) enum failure_code json_repair(
    struct slice input, int maximum_depth, struct text *out);

/* Appends plain text, with U+FFFD in place of each NUL and each byte that is not part of a UTF-8
 * character. */
void json_repair_text(struct slice input, struct text *out);

#endif
