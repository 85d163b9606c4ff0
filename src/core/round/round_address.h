/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: by it all nodes of the round agree on one store for the workers.
 * core/round_exchange.h has the rules. What torchrun's nodes do is next_rendezvous in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_ROUND_ROUND_ADDRESS_H
#define MUSTER_CORE_ROUND_ROUND_ADDRESS_H

#include "core/round/round_step.h"

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
