/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded before a program (LD_PRELOAD): its calendar clock is $CLOCK_AHEAD seconds ahead. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *out_time) {
    static int (*real)(clockid_t clock, struct timespec * out_time);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    int result = real(clock, out_time);
    const char *ahead = getenv("CLOCK_AHEAD");
    if (result == 0 && clock == CLOCK_REALTIME && ahead != NULL) {
        out_time->tv_sec += atol(ahead);
    }
    return result;
}
