/* SPDX-License-Identifier: BSD-3-Clause */
/* How a node describes a worker's failure to the other nodes: a core/failure/failure_report as
 * JSON. The format is Muster's own; no other launcher reads it. */
#ifndef MUSTER_WIRE_FAILURE_FAILURE_JSON_H
#define MUSTER_WIRE_FAILURE_FAILURE_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/failure/failure_report.h"

/* The most bytes of a traceback that are sent. The beginning of a longer one is left out, because
 * the end of a traceback says what happened. */
#define FAILURE_JSON_MESSAGE_MAXIMUM 65536u
/* The most bytes of any other text. */
#define FAILURE_JSON_TEXT_MAXIMUM 4096u
/* The most bytes of an account as JSON, whatever characters its texts contain. */
#define FAILURE_JSON_MAXIMUM_SIZE (768u * 1024)

/* Appends the account. Bytes that are not UTF-8 are replaced. */
void failure_json_write(const struct failure_account *account, struct text *out);

/* Reads an account. FAILURE_MALFORMED or FAILURE_LIMIT for input that cannot be used. Members with
 * unknown names are ignored. The caller clears the result with failure_account_clear. */
__attribute__((warn_unused_result)) enum failure_code failure_json_read(
    struct slice input, struct failure_account *out_account);

#endif
