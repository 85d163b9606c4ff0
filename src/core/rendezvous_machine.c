/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous_doubt.h"
#include "core/rendezvous_evaluation.h"
#include "core/rendezvous_losses.h"
#include "core/rendezvous_step.h"

/* How long a store may be gone whose process has ended (its host refuses or has closed the
 * connection): it takes the record with it, so waiting longer would only delay the bad news. */
#define HOST_PATIENCE_SECONDS 5
/* torchrun's nodes tell nobody what they write. */
#define POLL_INTERVAL_SECONDS 1
#define RETRY_FIRST_MILLISECONDS 1
#define RETRY_DOUBLINGS_MAXIMUM 6
#define RETRY_LONGEST_SECONDS 5

static void ask_join(struct rendezvous_step *step);
static void ask_restart(struct rendezvous_step *step);
static void ask_failure(struct rendezvous_step *step);
static void ask_done(struct rendezvous_step *step);
static void ask_close(struct rendezvous_step *step);
static void ask_leave(struct rendezvous_step *step);
static void take_connected(struct rendezvous_step *step);
static void take_lost(struct rendezvous_step *step);
static void take_record(struct rendezvous_step *step);
static void take_written(struct rendezvous_step *step);
static void take_changed(struct rendezvous_step *step);
static void take_strangers_write(struct rendezvous_step *step);
static void take_gone(struct rendezvous_step *step);
static void take_finished_count(struct rendezvous_step *step);
static void take_roll(struct rendezvous_step *step);
static void take_broken(struct rendezvous_step *step);
static void take_timer(struct rendezvous_step *step);

static void (*const handlers[RENDEZVOUS_EVENT_KIND_COUNT])(struct rendezvous_step *step) = {
    [RENDEZVOUS_EVENT_JOIN_ASKED] = ask_join,
    [RENDEZVOUS_EVENT_RESTART_ASKED] = ask_restart,
    [RENDEZVOUS_EVENT_FAILURE_ASKED] = ask_failure,
    [RENDEZVOUS_EVENT_DONE_ASKED] = ask_done,
    [RENDEZVOUS_EVENT_CLOSE_ASKED] = ask_close,
    [RENDEZVOUS_EVENT_LEAVE_ASKED] = ask_leave,
    [RENDEZVOUS_EVENT_CONNECTED] = take_connected,
    [RENDEZVOUS_EVENT_CONNECTION_LOST] = take_lost,
    [RENDEZVOUS_EVENT_RECORD] = take_record,
    [RENDEZVOUS_EVENT_WRITTEN] = take_written,
    [RENDEZVOUS_EVENT_CHANGED] = take_changed,
    [RENDEZVOUS_EVENT_STRANGER_WROTE] = take_strangers_write,
    [RENDEZVOUS_EVENT_NODE_GONE] = take_gone,
    [RENDEZVOUS_EVENT_FINISHED_COUNT] = take_finished_count,
    [RENDEZVOUS_EVENT_ROLL_ANSWERED] = take_roll,
    [RENDEZVOUS_EVENT_BROKEN] = take_broken,
    [RENDEZVOUS_EVENT_TIMER_FIRED] = take_timer,
};

struct rendezvous_machine *rendezvous_machine_new(
    const struct rendezvous_machine_settings *settings) {
    struct rendezvous_machine *machine = memory_allocate(sizeof *machine);
    machine->settings = settings->rendezvous;
    machine->me = settings->identity;
    machine->world_round = RENDEZVOUS_NO_ROUND;
    machine->ended_round = RENDEZVOUS_NO_ROUND;
    machine->round_of_began = RENDEZVOUS_NO_ROUND;
    machine->answered_round = RENDEZVOUS_NO_ROUND;
    random_init(&machine->random, settings->seed);
    return machine;
}

void rendezvous_machine_free(struct rendezvous_machine *machine) {
    if (machine == NULL) {
        return;
    }
    rendezvous_state_clear(&machine->seen);
    rendezvous_state_clear(&machine->draft);
    rendezvous_state_clear(&machine->world);
    heartbeat_watch_clear(&machine->heartbeats);
    free(machine->gone);
    free(machine);
}

const struct rendezvous_state *rendezvous_machine_state(const struct rendezvous_machine *machine) {
    return &machine->seen;
}

const struct node_identity *rendezvous_machine_identity(const struct rendezvous_machine *machine) {
    return &machine->me;
}

/* The earlier of two, as a time to wake up: one that has come was acted upon if it could be. */
static void wake_at(
    struct moment *next, const struct moment *moment, const struct rendezvous_step *step) {
    if (moment->is_set && instant_is_before(step->event->now, moment->at) &&
        (!next->is_set || instant_is_before(moment->at, next->at))) {
        *next = *moment;
    }
}

static void connect_until(struct rendezvous_step *step, struct instant deadline) {
    step->machine->link = RENDEZVOUS_LINK_CONNECTING;
    rendezvous_step_push(
        step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = deadline});
}

/* Asked by the agent. */

static void ask_join(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->goal == RENDEZVOUS_GOAL_OVER) {
        rendezvous_repeat_end(step);
        return;
    }
    machine->is_join_asked = true;
    rendezvous_need_world(step);
    if (machine->goal == RENDEZVOUS_GOAL_NONE) {
        machine->goal = RENDEZVOUS_GOAL_TAKE_PART;
        connect_until(step, machine->join_deadline.at);
    }
}

static void ask_restart(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->world_round == RENDEZVOUS_NO_ROUND) {
        return;
    }
    machine->is_restart_wanted = true;
    snprintf(machine->restart_reason, sizeof machine->restart_reason, "%s", step->event->reason);
    rendezvous_leave_world(step);
}

static void ask_failure(struct rendezvous_step *step) {
    rendezvous_doubt_begin(step, step->event->reason);
}

static void ask_done(struct rendezvous_step *step) {
    if (step->machine->world_round != RENDEZVOUS_NO_ROUND) {
        step->machine->is_finished = true;
        rendezvous_step_present(step);
    }
}

static void ask_close(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    snprintf(machine->message, sizeof machine->message, "%s", step->event->reason);
    rendezvous_end_part(step, RENDEZVOUS_GOAL_CLOSE);
}

static void ask_leave(struct rendezvous_step *step) {
    rendezvous_end_part(step, RENDEZVOUS_GOAL_LEAVE);
}

/* Told by the backend. */

/* What the others know of the old connection's node must not be believed of this one. Without a
 * host that sees connections end, it is this node that knows who is gone: its former self. */
static void rename_node(struct rendezvous_machine *machine) {
    if (!machine->has_presence) {
        rendezvous_losses_note(machine, &machine->me, false);
    }
    machine->me.local_id = node_identity_muster_local_id((uint32_t)random_next(&machine->random));
    machine->ended_round = RENDEZVOUS_NO_ROUND;
}

static void fetch(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    machine->link = RENDEZVOUS_LINK_FETCHING;
    machine->is_refetch_wanted = false;
    moment_set_after(&machine->poll_at, step, duration_from_seconds(POLL_INTERVAL_SECONDS));
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_FETCH);
}

static void take_connected(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->link != RENDEZVOUS_LINK_CONNECTING || machine->goal == RENDEZVOUS_GOAL_OVER) {
        return;
    }
    machine->link = RENDEZVOUS_LINK_READY;
    machine->has_presence = step->event->connected.has_presence;
    machine->is_host = step->event->connected.is_host;
    machine->has_record = false;
    machine->is_refetch_wanted = true;
    machine->has_untold_news = false;
    machine->lost_writes = 0;
    if (machine->was_connected) {
        rename_node(machine);
    }
    machine->was_connected = true;
    moment_clear(&machine->retry_at);
    moment_set_after(&machine->beat_at, step, machine->settings.keep_alive_interval);
    moment_set_after(&machine->heartbeat_at, step, machine->settings.keep_alive_interval);
    rendezvous_step_present(step);
}

static void reconnect(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct instant deadline = machine->join_deadline.at;
    struct instant soon =
        instant_after(step->event->now, duration_from_seconds(HOST_PATIENCE_SECONDS));
    if (!step->event->lost.is_silent && instant_is_before(soon, deadline)) {
        deadline = soon;
    }
    connect_until(step, deadline);
}

static void take_lost(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool was_established = rendezvous_is_connected(machine);
    machine->link = RENDEZVOUS_LINK_NONE;
    machine->is_restart_wanted = false;
    machine->gone_count = 0;
    if (machine->goal == RENDEZVOUS_GOAL_CLOSE || machine->goal == RENDEZVOUS_GOAL_LEAVE) {
        rendezvous_settle(step);
    } else if (machine->goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, step->event->lost.reason);
        rendezvous_need_world(step);
        if (was_established && !machine->is_host) {
            reconnect(step);
        } else {
            rendezvous_fail(step, step->event->lost.reason);
        }
    }
}

/* Whether both say the same but for heartbeats. */
static bool is_old_news(const struct rendezvous_state *left, const struct rendezvous_state *right) {
    if (left->round != right->round || left->is_complete != right->is_complete ||
        left->is_closed != right->is_closed || left->count != right->count) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        const struct rendezvous_node *one = &left->nodes[i];
        const struct rendezvous_node *other = rendezvous_state_find(right, &one->identity);
        if (other == NULL || one->is_participant != other->is_participant ||
            one->is_waiting != other->is_waiting || one->is_redundant != other->is_redundant) {
            return false;
        }
    }
    return true;
}

/* What a watchkeeper finds before anybody has told of it, it tells: torchrun's nodes tell nobody
 * what they write, and a writer may die before it can. */
static void see(struct rendezvous_machine *machine, const struct rendezvous_state *state_or_null) {
    static const struct rendezvous_state empty;
    const struct rendezvous_state *state = state_or_null != NULL ? state_or_null : &empty;
    if (machine->has_record && rendezvous_is_watchkeeper(machine) &&
        !is_old_news(&machine->seen, state)) {
        machine->has_untold_news = true;
    }
    rendezvous_state_copy(state, &machine->seen);
    machine->has_record = true;
}

static void take_record(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->link != RENDEZVOUS_LINK_FETCHING) {
        return;
    }
    machine->link = RENDEZVOUS_LINK_READY;
    see(machine, step->event->state);
    if (machine->has_untold_news && !machine->is_change_told) {
        rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    }
    machine->has_untold_news = false;
    machine->is_change_told = machine->is_refetch_wanted && machine->is_change_told;
}

static int64_t within(int64_t value, int64_t least, int64_t most) {
    if (value < least) {
        return least;
    }
    return value < most ? value : most;
}

/* Who loses against others again and again waits longer and longer, each for a time of its own: for
 * multiples of what a write takes, since those who lost to the same one hear of it together. */
static void wait_after_lost_write(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    int doublings = machine->lost_writes++ - 1;
    if (doublings < 0) {
        return;
    }
    if (doublings > RETRY_DOUBLINGS_MAXIMUM) {
        doublings = RETRY_DOUBLINGS_MAXIMUM;
    }
    int64_t least = duration_from_milliseconds(RETRY_FIRST_MILLISECONDS).nanoseconds;
    int64_t most = duration_from_seconds(RETRY_LONGEST_SECONDS).nanoseconds;
    int64_t taken = instant_until(machine->write_began, step->event->now).nanoseconds;
    int64_t range = within(within(taken / 2, least, most) << doublings, least, most);
    struct duration delay = {1 + (int64_t)random_below(&machine->random, (uint64_t)range)};
    moment_set_after(&machine->retry_at, step, delay);
}

static void take_written(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->link != RENDEZVOUS_LINK_WRITING) {
        return;
    }
    machine->link = RENDEZVOUS_LINK_READY;
    moment_clear(&machine->retry_at);
    if (step->event->written.has_won) {
        struct rendezvous_state written = machine->draft;
        machine->draft = machine->seen;
        machine->seen = written;
        machine->lost_writes = 0;
        if (machine->is_writing_heartbeats) {
            moment_set_after(&machine->heartbeat_at, step, machine->settings.keep_alive_interval);
        }
        return;
    }
    see(machine, step->event->written.state);
    if (machine->has_untold_news) { /* its writer may be about to tell */
        moment_set_after(&machine->poll_at, step, duration_from_seconds(POLL_INTERVAL_SECONDS));
    }
    wait_after_lost_write(step);
}

static void take_changed(struct rendezvous_step *step) {
    step->machine->is_refetch_wanted = true;
    step->machine->is_change_told = true;
}

/* Which the other watchers are still to be told of. */
static void take_strangers_write(struct rendezvous_step *step) {
    step->machine->is_refetch_wanted = true;
}

static void take_gone(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (node_identity_equals(&step->event->gone.identity, &machine->me)) {
        return;
    }
    rendezvous_losses_note(machine, &step->event->gone.identity, step->event->gone.has_finished);
    machine->is_refetch_wanted = true; /* its last write may not have been seen yet */
}

static void take_finished_count(struct rendezvous_step *step) {
    step->machine->is_finished_count_known = true;
    step->machine->finished_count = step->event->finished_count;
}

static void take_roll(struct rendezvous_step *step) {
    step->machine->is_roll_answered = step->machine->is_roll_called;
}

static void take_broken(struct rendezvous_step *step) {
    if (step->machine->goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_fail(step, step->event->reason);
    } else if (step->machine->goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_settle(step);
    }
}

/* Time passes with every event, not only with this one. */
static void take_timer(struct rendezvous_step *step) {
    (void)step;
}

/* After every event. */

static void end_patience(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (moment_has_come(&machine->retry_at, step->event->now)) {
        moment_clear(&machine->retry_at);
        machine->is_refetch_wanted = true; /* what was seen before the pause is old by now */
    }
    if (moment_has_come(&machine->settle_deadline, step->event->now) &&
        machine->goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_settle(step);
    }
}

static void beat(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (rendezvous_is_connected(machine) && moment_has_come(&machine->beat_at, step->event->now)) {
        machine->is_finished_count_known = false;
        moment_set_after(&machine->beat_at, step, machine->settings.keep_alive_interval);
        rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_BEAT);
    }
}

/* torchrun's nodes tell nobody what they write. Where presence is served, its host hears of it from
 * the store and tells the others, but may be done before them: once such a node is there everybody
 * looks. Without such a host nobody can be relied on. And whoever knows what nobody has told of
 * looks before telling it. */
static bool wants_poll(const struct rendezvous_machine *machine) {
    return !machine->has_presence || machine->has_untold_news ||
           rendezvous_state_has_foreign_node(&machine->seen);
}

static void use_link(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->link == RENDEZVOUS_LINK_READY && machine->is_refetch_wanted) {
        fetch(step);
    }
    if (machine->link == RENDEZVOUS_LINK_READY && machine->has_record) {
        rendezvous_evaluate(step);
    }
    if (machine->link == RENDEZVOUS_LINK_READY && machine->goal != RENDEZVOUS_GOAL_OVER &&
        wants_poll(machine) && moment_has_come(&machine->poll_at, step->event->now)) {
        fetch(step);
    }
}

static void arm_timer(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct moment next = {0};
    if (machine->goal != RENDEZVOUS_GOAL_OVER && rendezvous_is_connected(machine)) {
        const struct moment *moments[] = {&machine->beat_at, &machine->settle_deadline,
            &machine->retry_at, &machine->last_call, &machine->admission_at, &machine->heartbeat_at,
            &machine->poll_at, &machine->join_deadline, &machine->rollback_deadline,
            &machine->doubt_deadline};
        for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
            wake_at(&next, moments[i], step);
        }
    }
    if (next.is_set) {
        rendezvous_step_push(step,
            (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ARM_TIMER, .deadline = next.at});
    }
}

void rendezvous_machine_step(struct rendezvous_machine *machine,
    const struct rendezvous_event *event, struct rendezvous_effects *effects) {
    effects->count = 0;
    struct rendezvous_step step = {.machine = machine, .event = event, .effects = effects};
    handlers[event->kind](&step);
    end_patience(&step);
    if (machine->goal != RENDEZVOUS_GOAL_OVER) {
        beat(&step);
        use_link(&step);
    }
    arm_timer(&step);
}
