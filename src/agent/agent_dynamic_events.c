/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_dynamic_events.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous_transcript.h"

/* How long the host of the store stays for others when it could leave itself. */
#define LINGERING_SECONDS 30
#define LINGERING_AFTER_FAILURE_SECONDS 5
#define LINGERING_AFTER_LEAVING_SECONDS 1

static void feed_kind(
    struct agent_dynamic_rendezvous *rendezvous, enum rendezvous_event_kind kind) {
    agent_dynamic_take(rendezvous, (struct rendezvous_event){.kind = kind});
}

static void feed_reason(struct agent_dynamic_rendezvous *rendezvous,
    enum rendezvous_event_kind kind, const char *reason) {
    agent_dynamic_take(rendezvous, (struct rendezvous_event){.kind = kind, .reason = reason});
}

/* The end. */

static void tell_settled(void *context) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    void (*settled)(void *context) = rendezvous->settled;
    rendezvous->settled = NULL;
    if (settled != NULL) {
        settled(rendezvous->settled_context);
    }
}

static int lingering_seconds(const struct agent_dynamic_rendezvous *rendezvous) {
    if (rendezvous->is_leaving) {
        return LINGERING_AFTER_LEAVING_SECONDS;
    }
    return rendezvous->has_failed ? LINGERING_AFTER_FAILURE_SECONDS : LINGERING_SECONDS;
}

/* This node has said what it had to say. */
void agent_dynamic_settle_if_ready(struct agent_dynamic_rendezvous *rendezvous) {
    if (rendezvous->settled == NULL || (rendezvous->is_ending && !rendezvous->is_settled)) {
        return;
    }
    rendezvous_backend_disconnect(rendezvous->backend);
    if (rendezvous->host == NULL) {
        tell_settled(rendezvous);
        return;
    }
    agent_store_host_linger(rendezvous->host, duration_from_seconds(lingering_seconds(rendezvous)),
        tell_settled, rendezvous);
}

/* What the machines tell, for the agent. */

static void tell_join_failed(struct agent_dynamic_rendezvous *rendezvous, const char *reason) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    rendezvous->stage = STAGE_GIVEN_UP;
    rendezvous->is_leaving = true;
    observer->join_failed(observer->context, rendezvous->ticket, reason);
}

static void tell_peer_failed(struct agent_dynamic_rendezvous *rendezvous, const char *reason) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    rendezvous->stage = STAGE_IDLE;
    observer->peer_failed(observer->context, reason);
}

static void tell_barrier_ended(struct agent_dynamic_rendezvous *rendezvous, bool has_passed) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    rendezvous->has_passed = has_passed;
    rendezvous->stage = STAGE_IDLE;
    observer->barrier_ended(observer->context, has_passed);
}

static void enter_world(
    struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    log_info(rendezvous->settings->log,
        "round %lld of job '%s': this node is rank %d of %d nodes%s%s",
        (long long)effect->world.round, rendezvous->settings->preparation->run_id,
        effect->world.group_rank, effect->world.node_count,
        effect->world.state->reason[0] != '\0' ? "; " : "", effect->world.state->reason);
    rendezvous->round_number = effect->world.round;
    agent_round_begin(rendezvous->round, &(struct agent_round_world){
                                             .state = effect->world.state,
                                             .identity = &effect->world.identity,
                                             .round = effect->world.round,
                                             .group_rank = effect->world.group_rank,
                                             .node_count = effect->world.node_count,
                                         });
}

static void leave_world(struct agent_dynamic_rendezvous *rendezvous, const char *reason) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    bool is_joining = rendezvous->stage == STAGE_JOINING;
    agent_round_abandon(rendezvous->round);
    if (rendezvous->is_calling_roll) {
        rendezvous->is_calling_roll = false;
        rendezvous_backend_cancel_waits(rendezvous->backend);
    }
    if (is_joining) {
        feed_kind(rendezvous, RENDEZVOUS_EVENT_JOIN_ASKED);
    } else if (rendezvous->stage == STAGE_BARRIER && rendezvous->is_cut_off) {
        tell_barrier_ended(rendezvous, false);
    } else if (rendezvous->stage == STAGE_JOINED || rendezvous->stage == STAGE_BARRIER) {
        rendezvous->stage = STAGE_IDLE;
        agent_root_cause_look(rendezvous->root_cause, rendezvous->round_number, NULL);
        observer->round_over(observer->context, reason);
    }
}

static void tell_failure_stands(struct agent_dynamic_rendezvous *rendezvous) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    rendezvous->has_failed = true;
    rendezvous->is_ending = true;
    observer->failure_stands(observer->context);
}

static void learn_of_failure(struct agent_dynamic_rendezvous *rendezvous, const char *reason) {
    if (rendezvous->stage == STAGE_JOINING) {
        tell_join_failed(rendezvous, reason);
    } else if (rendezvous->stage != STAGE_GIVEN_UP) {
        tell_peer_failed(rendezvous, reason);
    }
}

/* The job has failed, and the first failure was looked for. */
static void tell_end(void *context) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    char *reason = rendezvous->end;
    rendezvous->end = NULL;
    learn_of_failure(rendezvous, reason);
    free(reason);
}

static void tell_too_late(struct agent_dynamic_rendezvous *rendezvous) {
    bool has_taken_part = agent_round_node(rendezvous->round) != NULL;
    char *text = text_format("job '%s' at %s is over: its record is closed; %s",
        rendezvous->settings->preparation->run_id, rendezvous->where,
        has_taken_part ? "another node has ended, and workers cannot be started again"
                       : "a new job needs another --rdzv-id");
    tell_join_failed(rendezvous, text);
    free(text);
}

/* A record that is closed without a failure lets workers finish, as among torchrun's nodes. */
static void learn_of_closing(
    struct agent_dynamic_rendezvous *rendezvous, const char *reason, bool is_spare) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    if (*reason != '\0') {
        rendezvous->has_failed = true;
        free(rendezvous->end);
        rendezvous->end = memory_duplicate_string(reason);
        agent_root_cause_look(rendezvous->root_cause, rendezvous->round_number, tell_end);
    } else if (rendezvous->stage == STAGE_BARRIER) {
        tell_barrier_ended(rendezvous, true);
    } else if (rendezvous->stage == STAGE_JOINING && is_spare) {
        rendezvous->stage = STAGE_GIVEN_UP;
        observer->job_over(observer->context);
    } else if (rendezvous->stage == STAGE_JOINING) {
        tell_too_late(rendezvous);
    } else {
        log_info(rendezvous->settings->log,
            "the job's record was closed; workers here may finish, but not restart");
    }
}

/* Effects. */

static void perform_on_backend(
    struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    struct rendezvous_backend *backend = rendezvous->backend;
    switch ((int)effect->kind) {
    case RENDEZVOUS_EFFECT_CONNECT:
        rendezvous_backend_connect(backend, effect->deadline);
        break;
    case RENDEZVOUS_EFFECT_PRESENT:
        rendezvous_backend_present(
            backend, &effect->present.identity, effect->present.has_finished);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
        rendezvous_backend_beat(backend);
        break;
    case RENDEZVOUS_EFFECT_FETCH:
        rendezvous_backend_fetch(backend);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        rendezvous_backend_write(backend, effect->write.state, effect->write.is_quiet);
        break;
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
        rendezvous_backend_tell_watchers(backend);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        rendezvous_backend_count_finished(backend, effect->round);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
        rendezvous->is_calling_roll = true;
        rendezvous_backend_call_roll(backend, effect->roll.round, effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        rendezvous_backend_answer_roll(backend, effect->roll.round, effect->roll.number);
        break;
    default:
        break;
    }
}

static void perform(
    struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    switch ((int)effect->kind) {
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        event_timer_set(rendezvous->timer, effect->deadline);
        break;
    case RENDEZVOUS_EFFECT_WORLD:
        enter_world(rendezvous, effect);
        break;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
        leave_world(rendezvous, effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
        learn_of_closing(rendezvous, effect->told.reason, effect->told.is_spare);
        break;
    case RENDEZVOUS_EFFECT_FAILED:
        rendezvous->is_leaving = true;
        learn_of_failure(rendezvous, effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
        tell_failure_stands(rendezvous);
        break;
    case RENDEZVOUS_EFFECT_SETTLED:
        rendezvous->is_settled = true;
        agent_dynamic_settle_if_ready(rendezvous);
        break;
    default:
        perform_on_backend(rendezvous, effect);
        break;
    }
}

static bool is_debugging(const struct agent_dynamic_rendezvous *rendezvous) {
    const struct log *log = rendezvous->settings->log;
    return log != NULL && log->threshold <= LOG_LEVEL_DEBUG;
}

static void log_event(
    const struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_event *event) {
    struct text line = {0};
    rendezvous_event_describe(event, &line);
    log_debug(rendezvous->settings->log, "rendezvous <- %s", text_string(&line));
    text_clear(&line);
}

static void log_effect(
    const struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    struct text line = {0};
    rendezvous_effect_describe(effect, &line);
    log_debug(rendezvous->settings->log, "rendezvous -> %s", text_string(&line));
    text_clear(&line);
}

static void step(
    struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_event *event) {
    struct rendezvous_effects effects;
    if (is_debugging(rendezvous)) {
        log_event(rendezvous, event);
    }
    rendezvous_diary_take(&rendezvous->diary, rendezvous->machine, event);
    rendezvous_machine_step(rendezvous->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (is_debugging(rendezvous)) {
            log_effect(rendezvous, &effects.items[i]);
        }
        rendezvous_diary_follow(&rendezvous->diary, rendezvous->machine, &effects.items[i]);
        perform(rendezvous, &effects.items[i]);
    }
}

/* What comes from inside a step waits until its other effects are done. */
static void enqueue(
    struct agent_dynamic_rendezvous *rendezvous, const struct rendezvous_event *event) {
    bool has_reason = event->kind == RENDEZVOUS_EVENT_RESTART_ASKED ||
                      event->kind == RENDEZVOUS_EVENT_FAILURE_ASKED ||
                      event->kind == RENDEZVOUS_EVENT_CLOSE_ASKED ||
                      event->kind == RENDEZVOUS_EVENT_BROKEN;
    rendezvous->queue = memory_reserve(rendezvous->queue, &rendezvous->queue_capacity,
        rendezvous->queue_length + 1, sizeof *rendezvous->queue);
    struct dynamic_queued_event *queued = &rendezvous->queue[rendezvous->queue_length++];
    *queued = (struct dynamic_queued_event){.event = *event};
    if (has_reason) {
        queued->reason = memory_duplicate_string(event->reason);
        queued->event.reason = queued->reason;
    }
}

void agent_dynamic_take(
    struct agent_dynamic_rendezvous *rendezvous, struct rendezvous_event event) {
    event.now = event_loop_now(rendezvous->loop);
    event.wall_now = event_loop_wall_time(rendezvous->loop);
    if (rendezvous->is_stepping) {
        enqueue(rendezvous, &event);
        return;
    }
    rendezvous->is_stepping = true;
    step(rendezvous, &event);
    for (size_t i = 0; i < rendezvous->queue_length; i++) {
        struct dynamic_queued_event queued = rendezvous->queue[i];
        step(rendezvous, &queued.event);
        free(queued.reason);
    }
    rendezvous->queue_length = 0;
    rendezvous->is_stepping = false;
}

/* News from below. */

static void connected(void *context, bool has_presence) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    rendezvous->was_connected = true;
    agent_dynamic_take(rendezvous, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                                       .connected = {has_presence, rendezvous->host != NULL}});
}

/* The caller frees it. */
static char *explain_no_store(
    const struct agent_dynamic_rendezvous *rendezvous, const char *reason) {
    bool is_file = rendezvous->settings->config->dynamic.file != NULL;
    return text_format("%s%s", reason,
        is_file ? ""
                : "; is --rdzv-endpoint right, and has the node it names, which hosts the "
                  "store, been started?");
}

static void lost(void *context, const char *reason, bool is_silent) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    char *text = rendezvous->was_connected
                     ? text_format("this node is cut off from the job's store at %s: %s",
                           rendezvous->where, reason)
                     : explain_no_store(rendezvous, reason);
    if (rendezvous->was_connected) {
        log_warning(rendezvous->settings->log, "%s", text);
    }
    rendezvous->is_cut_off = true;
    agent_dynamic_take(
        rendezvous, (struct rendezvous_event){
                        .kind = RENDEZVOUS_EVENT_CONNECTION_LOST, .lost = {text, is_silent}});
    rendezvous->is_cut_off = false;
    free(text);
}

static void record(void *context, const struct rendezvous_state *state) {
    agent_dynamic_take(
        context, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = state});
}

static void written(void *context, bool has_won, const struct rendezvous_state *state) {
    agent_dynamic_take(context,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {has_won, state}});
}

static void changed(void *context) {
    feed_kind(context, RENDEZVOUS_EVENT_CHANGED);
}

static void finished_count(void *context, int64_t count) {
    agent_dynamic_take(context, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT,
                                    .finished_count = count});
}

static void roll_answered(void *context) {
    ((struct agent_dynamic_rendezvous *)context)->is_calling_roll = false;
    feed_kind(context, RENDEZVOUS_EVENT_ROLL_ANSWERED);
}

static void broken(void *context, const char *reason) {
    feed_reason(context, RENDEZVOUS_EVENT_BROKEN, reason);
}

void agent_dynamic_node_gone(
    void *context, const struct node_identity *identity, bool has_finished) {
    agent_dynamic_take(context, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                                    .gone = {*identity, has_finished}});
}

void agent_dynamic_record_written(void *context) {
    feed_kind(context, RENDEZVOUS_EVENT_STRANGER_WROTE);
}

void agent_dynamic_timer_fired(void *context) {
    feed_kind(context, RENDEZVOUS_EVENT_TIMER_FIRED);
}

/* What this node has written itself is no news to it. */
void agent_dynamic_root_cause_learnt(void *context, const struct failure_account *account) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    const char *me = agent_round_node(rendezvous->round);
    if (account->node == NULL || me == NULL || !text_equals(account->node, me)) {
        observer->root_cause_learnt(observer->context, account);
    }
}

static void round_joined(void *context, const struct node_placement *placement) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    rendezvous->stage = STAGE_JOINED;
    observer->joined(observer->context, rendezvous->ticket, placement);
}

static void round_failed(void *context, const char *reason) {
    tell_join_failed(context, reason);
}

static void round_barrier_ended(void *context, bool has_passed) {
    struct agent_dynamic_rendezvous *rendezvous = context;
    if (rendezvous->stage == STAGE_BARRIER) {
        tell_barrier_ended(rendezvous, has_passed);
    }
}

struct rendezvous_backend_observer agent_dynamic_backend_events(
    struct agent_dynamic_rendezvous *rendezvous) {
    return (struct rendezvous_backend_observer){connected, lost, record, written, changed,
        finished_count, roll_answered, broken, rendezvous};
}

struct agent_round_observer agent_dynamic_round_events(
    struct agent_dynamic_rendezvous *rendezvous) {
    return (struct agent_round_observer){
        round_joined, round_failed, round_barrier_ended, rendezvous};
}
