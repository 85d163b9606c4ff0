/* SPDX-License-Identifier: BSD-3-Clause */
/* When the performer looks at what the workers have recorded, and whether they are quiet: none of
 * them has imported anything for a while. What follows from that is the plan's. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_LOOKING_H
#define MUSTER_CORE_STANDBY_STANDBY_LOOKING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"

/* The longest time between two looks. */
#define STANDBY_LOOK_SECONDS 300

struct standby_looking {
    bool is_running;       /* workers run, and there may be another attempt */
    bool is_quiet;         /* they were at the last look */
    struct instant next;   /* look; INT64_MAX: none is planned */
    struct duration after; /* for how long quiet workers have imported nothing */
    struct duration pause;
    size_t modules; /* that were imported, at the last look */
    int silent_looks;
    bool has_told_silent;
};

void standby_looking_init(struct standby_looking *looking, struct duration after);

/* The workers run. `may_restart`: there may be another attempt; else nobody looks. */
void standby_looking_begin(struct standby_looking *looking, struct instant now, bool may_restart);
void standby_looking_end(struct standby_looking *looking);

/* Whether it is time for a look. If so, none is planned until its result is taken. */
bool standby_looking_is_due(struct standby_looking *looking, struct instant now);

/* The result of a look: the time since the last import of any worker, and how many modules were
 * imported. Returns whether the workers run and are quiet. */
bool standby_looking_take(
    struct standby_looking *looking, struct instant now, struct duration quiet, size_t modules);

/* The workers are quiet, and none has said hello. Returns true once, when that has been so several
 * times. */
bool standby_looking_note_silence(struct standby_looking *looking);

#endif
