/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_joining.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_waiting.h"
#include "options/slurm/hostlist.h"

/* What is asked for before something is said has been answered after so long, as a rule. */
#define ANSWER_MILLISECONDS 200

struct agent_joining {
    struct agent_joining_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct instant begun;
    int count; /* how often it was said */
    bool has_asked;
    bool has_named; /* the node that speaks for all */
};

static void set_timer(struct agent_joining *joining) {
    event_timer_set(
        joining->timer, instant_after(joining->begun, joining->settings.moment(joining->count)));
}

/* What the record says is waited for. */
static void describe_record(
    const struct agent_joining *joining, struct duration waited, struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    const struct rendezvous_state *state = settings->state(settings->context);
    struct text_list unready = {0};
    if (settings->in_round != NULL && settings->in_round(settings->context, &unready)) {
        rendezvous_waiting_describe_round(state, &unready, waited, out);
    } else {
        rendezvous_waiting_describe(state, settings->rendezvous, settings->expected, waited,
            event_loop_wall_time(joining->loop), out);
        if (settings->admission != NULL && state->is_complete) {
            settings->admission(settings->context, out);
        }
    }
    text_list_clear(&unready);
}

/* Whether another node says what is waited for. */
static bool names_speaker(
    const struct agent_joining *joining, struct duration waited, struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    bool is_host_of_delegates = false;
    if (settings->fixed != NULL) {
        return rendezvous_waiting_describe_fixed_speaker(settings->fixed, waited, out);
    }
    if (settings->me == NULL) {
        return false;
    }
    const struct node_identity *me = settings->me(settings->context, &is_host_of_delegates);
    return rendezvous_waiting_describe_speaker(
        settings->state(settings->context), me, is_host_of_delegates, waited, out);
}

/* Returns false when another node says it, and `out` names that one. */
static bool describe(const struct agent_joining *joining, struct duration waited, bool is_terminal,
    struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    struct text obstacle = {0};
    bool is_own = true;
    if (settings->obstacle != NULL) {
        settings->obstacle(settings->context, &obstacle);
    }
    if (obstacle.length > 0) {
        rendezvous_waiting_describe_obstacle(
            settings->fixed, settings->rendezvous, text_string(&obstacle), waited, out);
    } else if (!is_terminal && names_speaker(joining, waited, out)) {
        is_own = false;
    } else if (settings->fixed != NULL) {
        rendezvous_waiting_describe_fixed(settings->fixed, waited, out);
    } else {
        describe_record(joining, waited, out);
    }
    text_clear(&obstacle);
    return is_own;
}

/* Whole seconds, on which the line is renewed. */
static struct duration waited_for(const struct agent_joining *joining, struct instant now) {
    int64_t waited = instant_until(joining->begun, now).nanoseconds;
    return (struct duration){waited - waited % NANOSECONDS_PER_SECOND};
}

/* On a terminal the moments pass between the renewals. */
static void pass_moment(struct agent_joining *joining) {
    joining->count++;
    if (joining->settings.waited != NULL) {
        joining->settings.waited(joining->settings.context);
    }
}

static bool is_past_moment(const struct agent_joining *joining) {
    int64_t moment = joining->settings.moment(joining->count).nanoseconds;
    return instant_until(joining->begun, event_loop_now(joining->loop)).nanoseconds >= moment;
}

/* Returns false where stderr is no terminal. */
static bool renew_line(struct agent_joining *joining) {
    struct log_sink *sink = joining->settings.sink;
    struct duration waited = waited_for(joining, event_loop_now(joining->loop));
    struct text line = {0};
    if (sink == NULL) {
        return false;
    }
    (void)describe(joining, waited, true, &line);
    bool is_shown = log_sink_show_status(sink, text_string(&line));
    text_clear(&line);
    if (is_shown) {
        waited.nanoseconds += NANOSECONDS_PER_SECOND;
        event_timer_set(joining->timer, instant_after(joining->begun, waited));
    }
    return is_shown;
}

/* Returns whether an answer is waited for. */
static bool ask_before(struct agent_joining *joining) {
    const struct agent_joining_settings *settings = &joining->settings;
    joining->has_asked = !joining->has_asked && settings->ask_before != NULL &&
                         settings->ask_before(settings->context);
    if (joining->has_asked) {
        event_timer_set(joining->timer, instant_after(event_loop_now(joining->loop),
                                            duration_from_milliseconds(ANSWER_MILLISECONDS)));
    }
    return joining->has_asked;
}

static void say(void *context) {
    struct agent_joining *joining = context;
    struct text line = {0};
    if (ask_before(joining)) {
        return;
    }
    if (renew_line(joining)) {
        if (is_past_moment(joining)) {
            pass_moment(joining);
        }
        return;
    }
    bool is_own = describe(joining, joining->settings.moment(joining->count), false, &line);
    if (is_own || !joining->has_named) {
        log_warning(joining->settings.log, "%s", text_string(&line));
    }
    joining->has_named = joining->has_named || !is_own;
    text_clear(&line);
    pass_moment(joining);
    set_timer(joining);
}

static void fall_silent(struct agent_joining *joining) {
    event_timer_stop(joining->timer);
    if (joining->settings.sink != NULL) {
        (void)log_sink_show_status(joining->settings.sink, NULL);
    }
}

void agent_joining_expect(const struct launch_config *config, const struct text_list *environment,
    struct text_list *out_expected) {
    const char *list = text_list_variable(environment, "SLURM_STEP_NODELIST");
    const char *host = config->dynamic.host;
    if (list == NULL || host == NULL || hostlist_expand(list, out_expected) != FAILURE_NONE ||
        out_expected->count != (size_t)config->maximum_nodes ||
        !text_equals(out_expected->items[0], host)) {
        text_list_clear(out_expected);
    }
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
        fall_silent(joining);
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
        joining->has_asked = false;
        joining->has_named = false;
        set_timer(joining);
    } else {
        fall_silent(joining);
        if (before == AGENT_JOINING && joining->settings.ended != NULL) {
            joining->settings.ended(joining->settings.context);
        }
    }
}
