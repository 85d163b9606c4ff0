/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent answers to the question what its workers do: one JSON object a line, for the ranks
 * that are at the same place. Reading trusts nothing in it. */
#ifndef MUSTER_WIRE_TELLING_STACKS_JSON_H
#define MUSTER_WIRE_TELLING_STACKS_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/folded_stacks.h"

#define STACKS_SCHEMA "muster.stacks/1"
/* Of one line, and of all that an agent says. */
#define STACKS_LINE_MAXIMUM ((size_t)512 * 1024)
#define STACKS_ANSWER_MAXIMUM ((size_t)1024 * 1024)
/* Ranks in a line that is read. */
#define STACKS_RANKS_MAXIMUM ((size_t)16384)

/* {"schema":"muster.stacks/1","ranks":[0,2],"words":"sleeping in futex","stack":["a.py:1 in f"]} */
void stacks_json_write(const struct folded_stack *one, struct text *out);

/* The same without a schema, and with how often each rank was seen there. */
void stacks_json_write_counted(const struct folded_stack *one, struct text *out);

/* Adds what the line says. FAILURE_MALFORMED: it is no such line, or says too much. */
__attribute__((warn_unused_result)) enum failure_code stacks_json_read(
    struct slice line, bool by_place, struct folded_stacks *folded);

#endif
