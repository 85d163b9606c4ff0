/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_joining.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_waiting.h"

struct agent_joining {
    struct agent_joining_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct instant begun;
    int count; /* how often it was said */
};

static void set_timer(struct agent_joining *joining) {
    event_timer_set(
        joining->timer, instant_after(joining->begun, joining->settings.moment(joining->count)));
}

static void say(void *context) {
    struct agent_joining *joining = context;
    const struct agent_joining_settings *settings = &joining->settings;
    struct text line = {0};
    rendezvous_waiting_describe(settings->state(settings->context), settings->rendezvous,
        settings->expected, joining->settings.moment(joining->count), &line);
    log_warning(settings->log, "%s", text_string(&line));
    text_clear(&line);
    joining->count++;
    set_timer(joining);
}

struct agent_joining *agent_joining_new(
    struct event_loop *loop, const struct agent_joining_settings *settings) {
    struct agent_joining *joining = memory_allocate(sizeof *joining);
    *joining = (struct agent_joining){.settings = *settings, .loop = loop};
    if (settings->moment == NULL) {
        joining->settings.moment = rendezvous_waiting_moment;
    }
    joining->timer = event_timer_new(loop, say, joining);
    return joining;
}

void agent_joining_free(struct agent_joining *joining) {
    if (joining != NULL) {
        event_timer_free(joining->timer);
        free(joining);
    }
}

void agent_joining_follow(
    struct agent_joining *joining, enum agent_phase before, enum agent_phase after) {
    if (joining == NULL || before == after) {
        return;
    }
    if (after == AGENT_JOINING) {
        joining->begun = event_loop_now(joining->loop);
        joining->count = 0;
        set_timer(joining);
    } else {
        event_timer_stop(joining->timer);
    }
}
