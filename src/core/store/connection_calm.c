/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/connection_calm.h"

#include "core/store/connection_silence.h"

bool connection_calm_look(struct connection_calm *calm, struct connection_hearing hearing,
    struct duration after, struct instant now) {
    bool is_lossy =
        hearing.resent != calm->resent || connection_silence_is_unusual(hearing.silent_for);
    if (is_lossy || !calm->has_begun) {
        *calm = (struct connection_calm){now, hearing.resent, true};
    }
    return instant_until(calm->since, now).nanoseconds >= after.nanoseconds;
}
