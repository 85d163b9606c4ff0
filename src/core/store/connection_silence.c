/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/connection_silence.h"

/* With a sign of life in each second, a longer silence is not usual. */
#define USUAL_MILLISECONDS 1500
/* Looks at the end of the limit come a little later, because the silence is measured roughly. */
#define ROUGHLY_MILLISECONDS 10

bool connection_silence_is_unusual(struct duration silent_for) {
    return silent_for.nanoseconds > duration_from_milliseconds(USUAL_MILLISECONDS).nanoseconds;
}

bool connection_silence_rests(const struct connection_silence *silence, struct instant now) {
    struct instant next_look =
        instant_after(now, duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS));
    return instant_is_before(next_look, silence->heard_until);
}

bool connection_silence_look(struct connection_silence *silence, struct duration silent_for,
    struct duration limit, struct instant now) {
    if (silent_for.nanoseconds <= limit.nanoseconds) {
        silence->is_doubted = false;
        silence->heard_until =
            instant_after(now, (struct duration){limit.nanoseconds - silent_for.nanoseconds});
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

struct duration connection_silence_pause(const struct connection_silence *silence,
    struct duration silent_for, struct duration limit, struct instant now) {
    int64_t longest = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS).nanoseconds;
    if (silence->is_doubted) {
        struct instant end = instant_after(
            silence->doubted_at, duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS));
        int64_t left = instant_until(now, end).nanoseconds;
        return (struct duration){left > 0 ? left : longest};
    }
    int64_t left = limit.nanoseconds - silent_for.nanoseconds +
                   duration_from_milliseconds(ROUGHLY_MILLISECONDS).nanoseconds;
    int64_t shortest = connection_silence_is_unusual(silent_for) ? 0 : longest / 2;
    left = left < shortest ? shortest : left;
    return (struct duration){left < longest ? left : longest};
}

struct duration connection_silence_earliest(struct duration pause) {
    int64_t longest = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS).nanoseconds;
    return (struct duration){pause.nanoseconds < longest ? pause.nanoseconds : longest / 2};
}

/* Connection calm. */

bool connection_calm_look(struct connection_calm *calm, struct connection_hearing hearing,
    struct duration after, struct instant now) {
    bool is_lossy =
        hearing.resent != calm->resent || connection_silence_is_unusual(hearing.silent_for);
    if (is_lossy || !calm->has_begun) {
        *calm = (struct connection_calm){now, hearing.resent, true};
    }
    return instant_until(calm->since, now).nanoseconds >= after.nanoseconds;
}
