/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

/* How long the agent lives on what is left of the first reserve. */
#define PATIENCE_SECONDS 3
#define LOOK_MILLISECONDS 100
#define TELL_MILLISECONDS 1000

struct agent_memory {
    struct event_loop *loop;
    struct event_wake *wake;
    struct event_timer *timer;
    pid_t owner;
    bool is_short; /* since: */
    struct instant since;
    void (*exhausted)(void *context);
    void *context;
};

/* Any thread. A worker that is forked without exec is no agent. */
static void given_up(void *context) {
    const struct agent_memory *memory = context;
    if (getpid() == memory->owner) {
        event_wake_send(memory->wake);
    }
}

static bool is_over(const struct agent_memory *memory, struct instant now) {
    struct instant end = instant_after(memory->since, duration_from_seconds(PATIENCE_SECONDS));
    return !spare_memory_has_last_reserve() || !instant_is_before(now, end);
}

/* Where the agent ends, what it calls and what knows no reserve has the second one, too. */
static void look(void *context) {
    struct agent_memory *memory = context;
    struct instant now = event_loop_now(memory->loop);
    bool was_short = memory->is_short;
    memory->is_short = !spare_memory_keep_reserve();
    if (!memory->is_short) {
        (void)spare_memory_keep_last_reserve();
        return;
    }
    memory->since = was_short ? memory->since : now;
    bool is_exhausted = is_over(memory, now);
    event_timer_set(memory->timer,
        instant_after(
            now, duration_from_milliseconds(is_exhausted ? TELL_MILLISECONDS : LOOK_MILLISECONDS)));
    if (is_exhausted) {
        (void)spare_memory_give_up_reserve();
        memory->exhausted(memory->context);
    }
}

enum failure_code agent_memory_new(struct event_loop *loop, void (*exhausted)(void *context),
    void *context, struct agent_memory **out_memory, struct failure *failure) {
    if (!spare_memory_keep_reserve() || !spare_memory_keep_last_reserve()) {
        return failure_set_system(failure, ENOMEM, "cannot begin");
    }
    struct agent_memory *memory = memory_allocate(sizeof *memory);
    *memory = (struct agent_memory){
        .loop = loop, .owner = getpid(), .exhausted = exhausted, .context = context};
    enum failure_code code = event_wake_new(loop, look, memory, &memory->wake, failure);
    if (code != FAILURE_NONE) {
        free(memory);
        return code;
    }
    memory->timer = event_timer_new(loop, look, memory);
    spare_memory_watch(given_up, memory);
    *out_memory = memory;
    return FAILURE_NONE;
}

void agent_memory_free(struct agent_memory *memory) {
    if (memory == NULL) {
        return;
    }
    spare_memory_watch(NULL, NULL);
    event_timer_free(memory->timer);
    event_wake_free(memory->wake);
    free(memory);
}
