/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/memory_return.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

struct memory_return {
    struct event_loop *loop;
    struct event_timer *timer;
    struct duration delay;
    size_t bytes;
    size_t most; /* since memory was given back */
    bool is_due; /* the timer runs */
    size_t count;
};

static void give_back(void *context) {
    struct memory_return *memory_return = context;
    memory_return->is_due = false;
    memory_return->most = memory_return->bytes;
    memory_return->count++;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

struct memory_return *memory_return_new(struct event_loop *loop, struct duration delay) {
    struct memory_return *memory_return = memory_allocate(sizeof *memory_return);
    memory_return->loop = loop;
    memory_return->timer = event_timer_new(loop, give_back, memory_return);
    memory_return->delay = delay;
    return memory_return;
}

void memory_return_free(struct memory_return *memory_return) {
    if (memory_return != NULL) {
        event_timer_free(memory_return->timer);
        free(memory_return);
    }
}

void memory_return_note(struct memory_return *memory_return, size_t bytes) {
    memory_return->bytes = bytes;
    if (bytes > memory_return->most) {
        memory_return->most = bytes;
    }
    size_t freed = memory_return->most - bytes;
    if (!memory_return->is_due && freed >= MEMORY_RETURN_LEAST_BYTES &&
        freed >= memory_return->most / 4) {
        memory_return->is_due = true;
        event_timer_set(memory_return->timer,
            instant_after(event_loop_now(memory_return->loop), memory_return->delay));
    }
}

size_t memory_return_count(const struct memory_return *memory_return) {
    return memory_return->count;
}
