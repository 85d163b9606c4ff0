/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_delegating.h"

void rendezvous_delegating_begin(
    struct rendezvous_delegating *delegating, bool is_on, bool says_role, bool is_new) {
    *delegating = (struct rendezvous_delegating){
        .is_on = is_on, .says_role = is_on && says_role, .is_new = is_new};
}

void rendezvous_delegating_take_answer(struct rendezvous_delegating *delegating, int64_t answered) {
    delegating->answered = answered;
}

void rendezvous_delegating_take_ranks(struct rendezvous_delegating *delegating, int64_t round,
    bool is_held, const struct rank_assignment *ranks, const struct rendezvous_meeting *meeting) {
    delegating->ranked_round = round;
    delegating->is_held = is_held;
    delegating->ranks = *ranks;
    delegating->meeting = *meeting;
}

bool rendezvous_delegating_is_held(const struct rendezvous_delegating *delegating, int64_t round) {
    return delegating->is_held && delegating->ranked_round == round;
}

void rendezvous_delegating_end(struct rendezvous_delegating *delegating) {
    *delegating = (struct rendezvous_delegating){0};
}

bool rendezvous_delegating_wish(
    struct rendezvous_delegating *delegating, const struct rendezvous_wish *wish) {
    int64_t sequence = delegating->wish.sequence;
    if (sequence > 0 && rendezvous_wish_equals(&delegating->wish, wish)) {
        return false;
    }
    delegating->wish = *wish;
    delegating->wish.sequence = sequence + 1;
    return true;
}

bool rendezvous_delegating_may_settle(const struct rendezvous_delegating *delegating) {
    return !delegating->is_on || (delegating->wish.kind == RENDEZVOUS_WISH_LEAVE &&
                                     delegating->answered >= delegating->wish.sequence);
}
