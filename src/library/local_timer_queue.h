/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of muster/local_timer.h share. */
#ifndef MUSTER_LIBRARY_LOCAL_TIMER_QUEUE_H
#define MUSTER_LIBRARY_LOCAL_TIMER_QUEUE_H

#include <stdbool.h>

#include "host/watchdog/timer_queue.h"
#include <muster/local_timer.h>

struct muster_local_timer_queue {
    struct timer_queue *requests; /* NULL: the program's own functions */
    struct muster_local_timer_queue_functions functions;
};

/* Whether requests can be got from it. */
bool local_timer_queue_can_be_served(const struct muster_local_timer_queue *queue);

/* Sets errno and returns -1. */
int local_timer_failed(int error);

#endif
