/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a rendezvous in words, for people. What others have written into it (addresses, the
 * reason) is made printable. */
#ifndef MUSTER_MAIN_RENDEZVOUS_RECORD_WORDS_H
#define MUSTER_MAIN_RENDEZVOUS_RECORD_WORDS_H

#include <time.h>

#include <muster/rendezvous_state.h>

#include "base/text.h"

/* Appends lines. Times are told as they are in the record, by the clocks of its nodes, and as
 * seconds from `now`, which is this machine's. */
void record_words_write(const struct muster_rendezvous_state *state, time_t now, struct text *out);

#endif
