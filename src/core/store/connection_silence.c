/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/connection_silence.h"

bool connection_silence_look(struct connection_silence *silence, struct duration silent_for,
    struct duration limit, struct instant now) {
    if (silent_for.nanoseconds <= limit.nanoseconds) {
        silence->is_doubted = false;
        return false;
    }
    if (!silence->is_doubted) {
        silence->is_doubted = true;
        silence->doubted_at = now;
        return false;
    }
    return instant_until(silence->doubted_at, now).nanoseconds >=
           duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS).nanoseconds;
}
