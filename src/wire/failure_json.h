/* SPDX-License-Identifier: BSD-3-Clause */
/* How a node tells the others of a worker's failure: a core/failure_account as JSON. Muster's own;
 * no other launcher reads it. */
#ifndef MUSTER_WIRE_FAILURE_JSON_H
#define MUSTER_WIRE_FAILURE_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/failure_account.h"

/* Bytes of a traceback that are told; of a longer one the beginning is left out, since a traceback
 * ends with what happened. */
#define FAILURE_JSON_MESSAGE_MAXIMUM 65536u
/* Bytes of every other text. */
#define FAILURE_JSON_TEXT_MAXIMUM 4096u
/* No account is longer, whatever characters its texts are made of. */
#define FAILURE_JSON_MAXIMUM_SIZE (768u * 1024)

/* Appends the account; what is not UTF-8 is repaired. */
void failure_json_write(const struct failure_account *account, struct text *out);

/* FAILURE_MALFORMED or FAILURE_LIMIT for anything odd; members of unknown names are passed over.
 * failure_account_clear when done. */
__attribute__((warn_unused_result)) enum failure_code failure_json_read(
    struct slice input, struct failure_account *out_account);

#endif
