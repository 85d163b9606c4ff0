/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_wish.h"

#include <string.h>

struct rendezvous_wish rendezvous_wish_of(enum rendezvous_wish_kind kind) {
    return (struct rendezvous_wish){.kind = kind,
        .finished_round = RENDEZVOUS_WISH_NO_ROUND,
        .ended_round = RENDEZVOUS_WISH_NO_ROUND,
        .doubted_round = RENDEZVOUS_WISH_NO_ROUND};
}

bool rendezvous_wish_equals(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    return left->kind == right->kind && left->finished_round == right->finished_round &&
           left->ended_round == right->ended_round && left->is_charged == right->is_charged &&
           left->doubted_round == right->doubted_round && left->signal == right->signal &&
           left->local_world_size == right->local_world_size &&
           strcmp(left->role, right->role) == 0 && strcmp(left->reason, right->reason) == 0;
}
