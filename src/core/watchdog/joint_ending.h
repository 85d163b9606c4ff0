/* SPDX-License-Identifier: BSD-3-Clause */
/* When processes are ended whose timers have expired. Workers usually hang together, in one
 * collective operation. When one of them is ended, the whole worker group is stopped, and evidence
 * of the others is lost. So every such worker is looked at first, and they are all ended together
 * after the last look. This includes workers whose timers expire a moment later. This module does
 * not know the processes, and does not end them. */
#ifndef MUSTER_CORE_WATCHDOG_JOINT_ENDING_H
#define MUSTER_CORE_WATCHDOG_JOINT_ENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"

/* A timer that expires within this time after the first one belongs to the same ending. Workers
 * enter a collective operation at slightly different times. */
#define JOINT_ENDING_WINDOW_MILLISECONDS 250

/* A zeroed struct is valid: there is no process to end. */
struct joint_ending {
    bool is_begun;
    struct instant window_end; /* timers that expire before it belong to this ending */
    struct instant end;        /* the end of all looks */
    size_t look_count;         /* looks under way */
};

/* Begins a look at a process. Returns how long it may take: `bound` is the time for all looks
 * together, and begins with the first one. */
struct duration joint_ending_begin_look(
    struct joint_ending *ending, struct instant now, struct duration bound);

/* A look is over. */
void joint_ending_end_look(struct joint_ending *ending);

/* When all these processes are to be ended, if no event comes before. The time may have passed
 * already. It is never while a look is under way. `next` is when the next timer expires, or NULL
 * when there is no timer. */
struct instant joint_ending_due(const struct joint_ending *ending, const struct instant *next);

#endif
