/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_finish.h"

void rendezvous_finish_enter(struct rendezvous_finish *finish) {
    finish->is_here = true;
}

void rendezvous_finish_leave(struct rendezvous_finish *finish) {
    finish->is_here = false;
}

bool rendezvous_finish_ask(struct rendezvous_finish *finish, int64_t round) {
    if (finish->is_count_known && finish->round == round) {
        return false;
    }
    finish->is_count_known = true;
    finish->round = round;
    finish->count = 1; /* until the store answers */
    return true;
}

void rendezvous_finish_take_count(struct rendezvous_finish *finish, int64_t count) {
    finish->is_count_known = true;
    finish->count = count;
}

void rendezvous_finish_forget_count(struct rendezvous_finish *finish) {
    finish->is_count_known = false;
}

bool rendezvous_finish_is_anywhere(const struct rendezvous_finish *finish) {
    return finish->count > 0;
}
