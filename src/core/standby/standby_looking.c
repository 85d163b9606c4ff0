/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_looking.h"

/* Looks at quiet workers of which none has said hello, before that is told. */
#define SILENT_LOOKS 3
/* Between a look at workers that import and the next one, at least. */
#define SHORTEST_PAUSE_MILLISECONDS 100
/* When they have imported last is known as exactly as they are looked at: so often while they may
 * become quiet. */
#define LOOKS_UNTIL_QUIET 4

#define NEVER ((struct instant){INT64_MAX})

void standby_looking_init(struct standby_looking *looking, struct duration after) {
    *looking = (struct standby_looking){.after = after};
    looking->next = NEVER;
}

static struct duration short_pause(const struct standby_looking *looking, int64_t missing) {
    int64_t shortest = duration_from_milliseconds(SHORTEST_PAUSE_MILLISECONDS).nanoseconds;
    int64_t pause = looking->after.nanoseconds / LOOKS_UNTIL_QUIET;
    pause = missing < pause ? missing : pause;
    return (struct duration){pause > shortest ? pause : shortest};
}

void standby_looking_begin(struct standby_looking *looking, struct instant now, bool may_restart) {
    looking->is_running = may_restart;
    looking->is_quiet = false;
    looking->pause = looking->after;
    looking->next =
        may_restart ? instant_after(now, short_pause(looking, looking->after.nanoseconds)) : NEVER;
}

void standby_looking_end(struct standby_looking *looking) {
    looking->is_running = false;
    looking->is_quiet = false;
    looking->next = NEVER;
}

bool standby_looking_is_due(struct standby_looking *looking, struct instant now) {
    if (instant_is_before(now, looking->next)) {
        return false;
    }
    looking->next = NEVER;
    return true;
}

static struct duration longer(struct duration pause) {
    struct duration longest = duration_from_seconds(STANDBY_LOOK_SECONDS);
    bool is_longest = pause.nanoseconds >= longest.nanoseconds / 2;
    return is_longest ? longest : (struct duration){2 * pause.nanoseconds};
}

bool standby_looking_take(
    struct standby_looking *looking, struct instant now, struct duration quiet, size_t modules) {
    int64_t missing = looking->after.nanoseconds - quiet.nanoseconds;
    if (!looking->is_running) {
        return false;
    }
    looking->modules = modules;
    if (missing > 0) {
        looking->next = instant_after(now, short_pause(looking, missing));
        return false;
    }
    looking->is_quiet = true;
    looking->pause = longer(looking->pause);
    looking->next = instant_after(now, looking->pause);
    return true;
}

bool standby_looking_note_silence(struct standby_looking *looking) {
    if (looking->has_told_silent || ++looking->silent_looks < SILENT_LOOKS) {
        return false;
    }
    looking->has_told_silent = true;
    return true;
}
