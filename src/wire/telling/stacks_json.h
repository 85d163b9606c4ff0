/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent answers to the question what its workers do: one JSON object a line, for the ranks
 * that are at the same place. Reading trusts nothing in it. */
#ifndef MUSTER_WIRE_TELLING_STACKS_JSON_H
#define MUSTER_WIRE_TELLING_STACKS_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/folded_stacks.h"
#include "core/telling/job_hang.h"

#define STACKS_SCHEMA "muster.stacks/1"
/* Of all that an agent says. */
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

/* What a node whose workers stand still tells the host of the job's store, and what the host says
 * when the whole job hangs (core/telling/job_hang). Reading trusts nothing in it. */

/* Of one telling. Places for which there is no room are left out. */
#define STANDSTILL_JSON_MAXIMUM ((size_t)32 * 1024)
/* It begins with this, as nothing else does that is told to the host. */
#define STANDSTILL_JSON_MARK '{'

/* {"schema":"muster.standstill/1","round":3,"silence":61.2,"node":0}
 * and a line of wire/telling/stacks_json for each place */
void standstill_json_write(const struct standstill *standstill, struct text *out);
/* FAILURE_MALFORMED: it is none. The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code standstill_json_read(
    struct slice text, struct standstill *out_standstill);

/* {"schema":"muster.hang/1","round":3,"rank":417,"silence":61.2,"what":"…","where":"…"} */
void job_hang_json_write(const struct job_hang *hang, struct text *out);
__attribute__((warn_unused_result)) enum failure_code job_hang_json_read(
    struct slice text, struct job_hang *out_hang);

#endif
