/* SPDX-License-Identifier: BSD-3-Clause */
/* When processes whose timers have expired are ended. Workers that hang, hang together as a rule,
 * in one collective operation, and the end of one is the end of all: the group is stopped. So each
 * is looked at first, and they are ended together, once all have been looked at; also those whose
 * timers expire a moment later. Who they are and how they are ended is not known here. */
#ifndef MUSTER_CORE_JOINT_ENDING_H
#define MUSTER_CORE_JOINT_ENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"

/* How long after the first a timer expires together with it. Workers come to a collective operation
 * at slightly different times. */
#define JOINT_ENDING_WINDOW_MILLISECONDS 250

/* A zeroed struct has nobody to end. */
struct joint_ending {
    bool is_begun;
    struct instant window_end; /* what expires until then belongs to it */
    struct instant end;        /* of all looks */
    size_t look_count;         /* under way */
};

/* A process is to be looked at, for the time that is returned: `bound` is what all of them together
 * may take, counted from the first. */
struct duration joint_ending_begin_look(
    struct joint_ending *ending, struct instant now, struct duration bound);

/* One has been looked at. */
void joint_ending_end_look(struct joint_ending *ending);

/* When to end all of them, if nothing else happens before; it may have passed. `next` is when the
 * next timer expires, NULL: there is none. Never, while some are being looked at. */
struct instant joint_ending_due(const struct joint_ending *ending, const struct instant *next);

#endif
