/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of muster/local_timer.h share. */
#ifndef MUSTER_LIBRARY_LOCAL_TIMER_QUEUE_H
#define MUSTER_LIBRARY_LOCAL_TIMER_QUEUE_H

#include "host/watchdog/timer_queue.h"
#include <muster/local_timer.h>

struct muster_local_timer_queue {
    struct timer_queue *requests;
};

/* Sets errno and returns -1. */
int local_timer_failed(int error);

#endif
