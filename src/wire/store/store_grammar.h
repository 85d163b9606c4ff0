/* SPDX-License-Identifier: BSD-3-Clause */
/* The operands of each TCPStore request, in the order in which they are sent. The decoder and the
 * encoder of requests share this table; other modules do not use it. */
#ifndef MUSTER_WIRE_STORE_STORE_GRAMMAR_H
#define MUSTER_WIRE_STORE_STORE_GRAMMAR_H

#include <stdint.h>

#include "core/store/store_request.h"

#define STORE_OPERANDS 4 /* the maximum number of operands of a request, plus one for the end */

enum store_operand {
    STORE_OPERAND_END = 0,
    STORE_OPERAND_MAGIC,    /* u32 */
    STORE_OPERAND_NONCE,    /* u32 */
    STORE_OPERAND_NUMBER,   /* i64 */
    STORE_OPERAND_KEY,      /* blob */
    STORE_OPERAND_VALUE,    /* blob */
    STORE_OPERAND_EXPECTED, /* blob */
    STORE_OPERAND_COUNT,    /* u64: the number of keys or pairs that follow */
    STORE_OPERAND_KEYS,     /* `count` blobs */
    STORE_OPERAND_PAIRS,    /* `count` times a key and a value */
};

static const uint8_t store_grammar[STORE_OPERATION_COUNT][STORE_OPERANDS] = {
    [STORE_VALIDATE] = {STORE_OPERAND_MAGIC},
    [STORE_SET] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_COMPARE_SET] = {STORE_OPERAND_KEY, STORE_OPERAND_EXPECTED, STORE_OPERAND_VALUE},
    [STORE_GET] = {STORE_OPERAND_KEY},
    [STORE_ADD] = {STORE_OPERAND_KEY, STORE_OPERAND_NUMBER},
    [STORE_CHECK] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_WAIT] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_COUNT_KEYS] = {STORE_OPERAND_END},
    [STORE_DELETE] = {STORE_OPERAND_KEY},
    [STORE_APPEND] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_MULTI_GET] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_MULTI_SET] = {STORE_OPERAND_COUNT, STORE_OPERAND_PAIRS},
    [STORE_CANCEL_WAIT] = {STORE_OPERAND_END},
    [STORE_PING] = {STORE_OPERAND_NONCE},
    [STORE_QUEUE_PUSH] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_QUEUE_POP] = {STORE_OPERAND_KEY},
    [STORE_QUEUE_LENGTH] = {STORE_OPERAND_KEY},
    [STORE_LIST_KEYS] = {STORE_OPERAND_END},
    [STORE_BARRIER] = {STORE_OPERAND_KEY, STORE_OPERAND_NUMBER},
};

#endif
