/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that gives each of its steps a deadline:
 *
 *     TORCHELASTIC_ENABLE_FILE_TIMER=1 muster run --standalone --max-restarts 1 --no-python \
 *         build/examples/timed_steps 5 3
 *
 * It takes five steps. In the first attempt it hangs in the third step. The agent ends it, and the
 * second attempt succeeds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muster/timer.h"

static void take_step(struct muster_timer *timer, int step, int hangs) {
    MUSTER_TIMER_SCOPE(timer, MUSTER_TIMER_HERE, 0.3);
    printf("step %d\n", step);
    fflush(stdout);
    while (hangs) {
        pause();
    }
}

int main(int argument_count, char **arguments) {
    struct muster_timer timer;
    const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
    int steps = argument_count > 1 ? atoi(arguments[1]) : 5;
    int hanging_step = argument_count > 2 ? atoi(arguments[2]) : 0;
    if (muster_timer_open(&timer, NULL) != 0) {
        perror("no timers: is TORCHELASTIC_ENABLE_FILE_TIMER set?");
        return EXIT_FAILURE;
    }
    if (argument_count > 3) {
        timer.signal = atoi(arguments[3]);
    }
    for (int step = 1; step <= steps; step++) {
        int is_first_attempt = attempt == NULL || strcmp(attempt, "0") == 0;
        take_step(&timer, step, step == hanging_step && is_first_attempt);
    }
    muster_timer_close(&timer);
    return EXIT_SUCCESS;
}
