/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobs that have waited for nodes at one store, as a value in it: their run ids, one a line,
 * the latest last. Agents add theirs, and nobody removes any: the record of a job says whether it
 * still waits. Every program that reaches the store can write the value, so it is believed as far
 * as it makes sense, and it never grows beyond its limit. */
#ifndef MUSTER_WIRE_RENDEZVOUS_WAITING_LIST_H
#define MUSTER_WIRE_RENDEZVOUS_WAITING_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/text.h"

/* Of the whole value. Earlier lines make room for the latest. */
#define WAITING_LIST_BYTES 4096
/* Longer run ids, and those that are no line of text, are not listed. */
#define WAITING_LIST_ID_BYTES 256

/* Appends the list with `run_id` as its last line. Returns false, and appends nothing, where it is
 * listed already, or cannot be. */
bool waiting_list_add(struct slice list, const char *run_id, struct text *out_list);

/* Adds the run ids of other jobs than `run_id`, the latest first, `maximum` of them at most. */
void waiting_list_read(
    struct slice list, const char *run_id, size_t maximum, struct text_list *out_run_ids);

#endif
