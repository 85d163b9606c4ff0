/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: on which store for the workers all nodes of the round agree. The
 * rules are in core/round_exchange.h; what torchrun's nodes do is next_rendezvous in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_ROUND_ADDRESS_H
#define MUSTER_CORE_ROUND_ADDRESS_H

#include "core/round_step.h"

/* The round begins, or begins again after a connection was lost. */
void round_address_start(struct round_step *step);

/* Answers: this node's store is open; a role info that was listened for is there, or is not after
 * the time of grace; CHECK of ADDRESS or PUBLISHER; GET of PUBLISHER in this round, and of ADDRESS
 * or PUBLICATION in earlier ones. */
void round_address_take_opened(struct round_step *step);
void round_address_take_sign(struct round_step *step);
void round_address_take_silence(struct round_step *step);
void round_address_take_checked(struct round_step *step);
void round_address_take_publisher(struct round_step *step);
void round_address_take_found(struct round_step *step);

#endif
