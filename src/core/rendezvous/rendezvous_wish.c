/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_wish.h"

#include <stdio.h>
#include <string.h>

struct rendezvous_meeting rendezvous_meeting_at(int64_t round, const char *address, int port) {
    struct rendezvous_meeting meeting = {.round = round};
    if (address != NULL && address[0] != '\0' && strlen(address) < sizeof meeting.address) {
        meeting.port = port;
        snprintf(meeting.address, sizeof meeting.address, "%s", address);
    }
    return meeting;
}

bool rendezvous_meeting_equals(
    const struct rendezvous_meeting *left, const struct rendezvous_meeting *right) {
    return left->round == right->round && left->port == right->port &&
           strcmp(left->address, right->address) == 0;
}

struct rendezvous_wish rendezvous_wish_of(enum rendezvous_wish_kind kind) {
    return (struct rendezvous_wish){.kind = kind,
        .finished_round = RENDEZVOUS_WISH_NO_ROUND,
        .ended_round = RENDEZVOUS_WISH_NO_ROUND,
        .doubted_round = RENDEZVOUS_WISH_NO_ROUND,
        .meeting = {.round = RENDEZVOUS_WISH_NO_ROUND}};
}

bool rendezvous_wish_wants_the_same(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    return left->kind == right->kind && left->finished_round == right->finished_round &&
           left->ended_round == right->ended_round && left->is_charged == right->is_charged &&
           left->doubted_round == right->doubted_round && left->signal == right->signal &&
           left->local_world_size == right->local_world_size &&
           strcmp(left->role, right->role) == 0 && strcmp(left->reason, right->reason) == 0;
}

bool rendezvous_wish_equals(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    return rendezvous_wish_wants_the_same(left, right) &&
           rendezvous_meeting_equals(&left->meeting, &right->meeting);
}
