/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/signal_repetition.h"

#include "core/workers/signal_name.h"

bool signal_repetition_is_from_keyboard(int signal) {
    return signal == SIGNAL_NUMBER_INTERRUPT || signal == SIGNAL_NUMBER_QUIT;
}

bool signal_repetition_take(struct signal_repetition *repetition, int signal, struct instant now) {
    if (repetition->first == 0) {
        *repetition = (struct signal_repetition){signal, now};
        return false;
    }
    struct instant end =
        instant_after(repetition->first_at, duration_from_seconds(SIGNAL_REPETITION_SECONDS));
    return !signal_repetition_is_from_keyboard(signal) && instant_is_before(now, end);
}
