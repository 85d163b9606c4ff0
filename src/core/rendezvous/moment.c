/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/moment.h"

void moment_set(struct moment *moment, struct instant at) {
    *moment = (struct moment){.is_set = true, .at = at};
}

void moment_set_after(struct moment *moment, struct instant now, struct duration duration) {
    moment_set(moment, instant_after(now, duration));
}

void moment_clear(struct moment *moment) {
    moment->is_set = false;
}

bool moment_has_come(const struct moment *moment, struct instant now) {
    return moment->is_set && !instant_is_before(now, moment->at);
}

void moment_wake(const struct moment *moment, struct instant now, struct moment *next) {
    if (moment->is_set && instant_is_before(now, moment->at) &&
        (!next->is_set || instant_is_before(moment->at, next->at))) {
        *next = *moment;
    }
}
