/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_round.h"

#include <stdlib.h>

#include "agent/agent_rendezvous.h"
#include "agent/agent_worker_store.h"
#include "base/memory.h"
#include "core/round_exchange.h"
#include "core/round_transcript.h"
#include "wire/round_exchange_store.h"

/* Asked events that may wait while a step is carried out; the agent asks for one thing at a time,
 * and abandons at any time. */
#define ASKED_MAXIMUM 4

struct agent_round {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct rendezvous_backend *backend;
    const char *address;
    struct agent_round_observer observer;
    struct round_exchange *machine;
    struct agent_worker_store *store;
    struct event_timer *timer;
    int64_t number;       /* of the round begun last */
    char *node;           /* this node's name in it */
    char *master_address; /* of the placement told last */
    bool is_stepping;
    struct round_event asked[ASKED_MAXIMUM];
    int asked_count;
};

/* A request under way. */
struct pending {
    struct agent_round *round;
    struct round_question question;
};

static void feed(struct agent_round *round, struct round_event event);

/* Requests. */

static void answered(void *context, const struct store_client_result *result) {
    struct pending *pending = context;
    struct round_answer answer = {0};
    if (result->code == FAILURE_NONE && round_effect_wants_answer(pending->question.kind) &&
        round_answer_read(&pending->question, result->reply, &answer) == FAILURE_NONE) {
        feed(pending->round, answer.event);
    }
    round_answer_clear(&answer);
    free(pending);
}

static void send_request(struct agent_round *round, const struct round_effect *effect) {
    struct owned_request request = {0};
    struct pending *pending = memory_allocate(sizeof *pending);
    *pending = (struct pending){round, round_question_of(effect)};
    round_request_build(effect, round->settings->preparation->run_id, &request);
    bool is_wait = effect->kind == ROUND_EFFECT_WAIT;
    struct store_client_call call = {
        .request = request.request,
        .is_raw = true,
        .timeout = is_wait ? DURATION_FOREVER : round->settings->config->dynamic.read_timeout,
        .done = answered,
        .context = pending,
    };
    bool is_sent = is_wait ? rendezvous_backend_wait(round->backend, &call)
                           : rendezvous_backend_ask(round->backend, &call);
    if (!is_sent) {
        free(pending); /* the connection's end is told elsewhere, and ends this round */
    }
    owned_request_clear(&request);
}

/* The workers' store. */

static void store_opened(void *context, int port) {
    struct agent_round *round = context;
    feed(round, (struct round_event){.kind = ROUND_EVENT_STORE_OPENED,
                    .round = round->number,
                    .opened = {round->address, port}});
}

static void store_failed(void *context, const char *reason) {
    struct agent_round *round = context;
    char *text = text_format("the workers' store cannot be opened: %s", reason);
    feed(round, (struct round_event){
                    .kind = ROUND_EVENT_STORE_FAILED, .round = round->number, .reason = text});
    free(text);
}

/* What the machine tells. */

static void tell_joined(struct agent_round *round, const struct round_effect *effect) {
    const struct agent_preparation *preparation = round->settings->preparation;
    free(round->master_address);
    round->master_address = memory_duplicate_string(effect->joined.master_address);
    struct node_placement placement = {
        .run_id = preparation->run_id,
        .node = round->node,
        .master_address = round->master_address,
        .master_port = effect->joined.master_port,
        .group_rank = effect->joined.group_rank,
        .group_world_size = effect->joined.node_count,
        .local_world_size = preparation->worker_count,
        .ranks = effect->joined.ranks,
        .attempt = (int)effect->joined.restarts,
        .round = effect->round,
    };
    round->observer.joined(round->observer.context, &placement);
}

/* A store in a file would only grow by it. */
static void clear(struct agent_round *round, const struct round_effect *effect) {
    struct text_list keys = {0};
    if (round->settings->config->dynamic.file != NULL) {
        return;
    }
    for (int64_t old = effect->clear.first; old <= effect->clear.last; old++) {
        round_key_list_all(
            old, effect->clear.node_count, round->settings->preparation->run_id, &keys);
    }
    for (size_t i = 0; i < keys.count; i++) {
        rendezvous_backend_delete(round->backend, keys.items[i]);
    }
    text_list_clear(&keys);
}

static void perform(struct agent_round *round, const struct round_effect *effect) {
    void *context = round->observer.context;
    switch ((int)effect->kind) {
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        agent_worker_store_open(round->store, effect->is_fresh);
        break;
    case ROUND_EFFECT_CLEAR:
        clear(round, effect);
        break;
    case ROUND_EFFECT_CANCEL_WAIT:
        rendezvous_backend_cancel_waits(round->backend);
        break;
    case ROUND_EFFECT_ARM_TIMER:
        event_timer_set(round->timer, effect->deadline);
        break;
    case ROUND_EFFECT_DISARM_TIMER:
        event_timer_stop(round->timer);
        break;
    case ROUND_EFFECT_JOINED:
        tell_joined(round, effect);
        break;
    case ROUND_EFFECT_JOIN_FAILED:
        round->observer.failed(context, effect->reason);
        break;
    case ROUND_EFFECT_BARRIER_PASSED:
        round->observer.barrier_ended(context, true);
        break;
    case ROUND_EFFECT_BARRIER_FAILED:
        log_warning(round->settings->log, "%s", effect->reason);
        round->observer.barrier_ended(context, false);
        break;
    default:
        send_request(round, effect);
        break;
    }
}

static bool is_debugging(const struct agent_round *round) {
    const struct log *log = round->settings->log;
    return log != NULL && log->threshold <= LOG_LEVEL_DEBUG;
}

static void log_event(const struct agent_round *round, const struct round_event *event) {
    struct text line = {0};
    round_event_describe(event, &line);
    log_debug(round->settings->log, "round <- %s", text_string(&line));
    text_clear(&line);
}

static void log_effect(const struct agent_round *round, const struct round_effect *effect) {
    struct text line = {0};
    round_effect_describe(effect, &line);
    log_debug(round->settings->log, "round -> %s", text_string(&line));
    text_clear(&line);
}

static void step(struct agent_round *round, struct round_event event) {
    struct round_effects effects;
    event.now = event_loop_now(round->loop);
    if (is_debugging(round)) {
        log_event(round, &event);
    }
    round_exchange_step(round->machine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (is_debugging(round)) {
            log_effect(round, &effects.items[i]);
        }
        perform(round, &effects.items[i]);
    }
}

/* What is asked or answered from inside a step waits until its other effects are done. */
static void feed(struct agent_round *round, struct round_event event) {
    if (round->is_stepping) {
        if (round->asked_count < ASKED_MAXIMUM) {
            round->asked[round->asked_count++] = event;
        }
        return;
    }
    round->is_stepping = true;
    step(round, event);
    while (round->asked_count > 0) {
        struct round_event next = round->asked[0];
        round->asked_count--;
        for (int i = 0; i < round->asked_count; i++) {
            round->asked[i] = round->asked[i + 1];
        }
        step(round, next);
    }
    round->is_stepping = false;
}

static void timer_fired(void *context) {
    struct agent_round *round = context;
    feed(round, (struct round_event){.kind = ROUND_EVENT_TIMER_FIRED, .round = round->number});
}

/* Life. */

struct agent_round *agent_round_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct rendezvous_backend *backend,
    const char *address, const struct agent_round_observer *observer) {
    struct agent_round *round = memory_allocate(sizeof *round);
    const struct rendezvous_settings *rendezvous = &settings->config->dynamic.settings;
    const char *uniform =
        text_list_variable(settings->environment, "TORCH_ELASTIC_WORKER_IDENTICAL");
    struct round_settings machine_settings = {
        .role = settings->config->role,
        .local_world_size = settings->preparation->worker_count,
        .is_uniform = uniform != NULL && text_equals(uniform, "1"),
        .timeout = rendezvous->join_timeout,
        .exit_barrier_timeout = rendezvous->exit_barrier_timeout,
    };
    struct agent_worker_store_observer store_observer = {store_opened, store_failed, round};
    round->loop = loop;
    round->settings = settings;
    round->backend = backend;
    round->address = address;
    round->observer = *observer;
    round->machine = round_exchange_new(&machine_settings);
    round->store = agent_worker_store_new(
        loop, settings->log, settings->worker_store_operations, &store_observer);
    round->timer = event_timer_new(loop, timer_fired, round);
    return round;
}

void agent_round_free(struct agent_round *round) {
    if (round == NULL) {
        return;
    }
    agent_worker_store_free(round->store);
    event_timer_free(round->timer);
    round_exchange_free(round->machine);
    free(round->node);
    free(round->master_address);
    free(round);
}

/* Asked. */

void agent_round_begin(struct agent_round *round, const struct agent_round_world *world) {
    struct text node = {0};
    node_identity_describe(world->identity, &node);
    free(round->node);
    round->node = text_take(&node);
    round->number = world->round;
    feed(
        round, (struct round_event){.kind = ROUND_EVENT_BEGIN,
                   .round = world->round,
                   .begin = {world->group_rank, world->node_count, world->state, world->identity}});
}

const char *agent_round_node(const struct agent_round *round) {
    return round->node;
}

void agent_round_abandon(struct agent_round *round) {
    feed(round, (struct round_event){.kind = ROUND_EVENT_ABANDON, .round = round->number});
}

void agent_round_enter_barrier(struct agent_round *round) {
    feed(round, (struct round_event){.kind = ROUND_EVENT_BARRIER_ASKED, .round = round->number});
}
