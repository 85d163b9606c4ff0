/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a store_link before it is ready: what the server answers to the greeting, and the
 * proof of both sides (wire/store/store_proof.h), for which munge may have to be asked. */
#ifndef MUSTER_HOST_STORE_STORE_LINK_PROOF_H
#define MUSTER_HOST_STORE_STORE_LINK_PROOF_H

#include "host/store/store_link_state.h"

/* The server repeats the number of the greeting, or says by another that it wants a proof. */
void store_link_take_greeting(struct store_link *link, uint32_t nonce);

/* Carries out one step of the proof. Returns how many bytes it took. */
size_t store_link_take_step(
    struct store_link *link, const struct store_proof_step *step, size_t *out_needed);

/* munge need not answer any more. */
void store_link_drop_question(struct store_link *link);

#endif
