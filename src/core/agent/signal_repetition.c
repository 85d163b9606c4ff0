/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/signal_repetition.h"

#include "core/workers/signal_name.h"

bool signal_repetition_is_from_keyboard(int signal) {
    return signal == SIGNAL_NUMBER_INTERRUPT || signal == SIGNAL_NUMBER_QUIT;
}

static bool is_within(struct instant since, struct duration bound, struct instant now) {
    return instant_is_before(now, instant_after(since, bound));
}

static bool is_repetition(
    const struct signal_repetition *repetition, int signal, struct instant now) {
    struct duration same = duration_from_milliseconds(SIGNAL_REPETITION_SAME_MILLISECONDS);
    if (signal == repetition->meant && is_within(repetition->meant_at, same, now)) {
        return true;
    }
    return !signal_repetition_is_from_keyboard(signal) &&
           is_within(repetition->first_at, duration_from_seconds(SIGNAL_REPETITION_SECONDS), now);
}

bool signal_repetition_take(struct signal_repetition *repetition, int signal, struct instant now) {
    bool is_first = repetition->first == 0;
    if (!is_first && is_repetition(repetition, signal, now)) {
        return true;
    }
    if (is_first) {
        repetition->first = signal;
        repetition->first_at = now;
    }
    repetition->meant = signal;
    repetition->meant_at = now;
    return false;
}
