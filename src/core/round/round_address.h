/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: by it all nodes of the round agree on one store for the workers.
 * core/round_exchange.h has the rules. What torchrun's nodes do is next_rendezvous in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_ROUND_ROUND_ADDRESS_H
#define MUSTER_CORE_ROUND_ROUND_ADDRESS_H

#include "core/round/round_step.h"

/* A part of the round exchange: what the host of the job's store tells the nodes of a round, which
 * then exchange nothing. It tells the ranks when the round begins; or, when nodes of the round may
 * still end their old workers, it holds the round, and tells them when all are ready. */

/* The round begins. Returns whether it goes on: what it was told makes sense. */
bool round_told_begin(struct round_step *step);
/* All nodes of the round, which was held, are ready. */
void round_told_take_release(struct round_step *step);

/* The round begins. */
void round_address_start(struct round_step *step);
/* The round begins, and the host of the job's store has told the address with it. */
void round_address_be_told(struct round_step *step, const char *told, int port);

/* Answers:
 * - `opened`: this node's store is open;
 * - `sign`: the role info for which this node listens is there;
 * - `silence`: it is not there after the time of grace;
 * - `checked`: CHECK of ADDRESS or PUBLISHER;
 * - `publisher`: GET of PUBLISHER in this round;
 * - `found`: GET of ADDRESS or PUBLICATION in an earlier round. */
void round_address_take_opened(struct round_step *step);
void round_address_take_sign(struct round_step *step);
void round_address_take_silence(struct round_step *step);
void round_address_take_checked(struct round_step *step);
void round_address_take_publisher(struct round_step *step);
void round_address_take_found(struct round_step *step);

#endif
