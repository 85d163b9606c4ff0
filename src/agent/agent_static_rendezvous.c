/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_static_rendezvous.h"

#include <stdlib.h>

#include "agent/agent_rendezvous.h"
#include "base/memory.h"
#include "core/static_rendezvous.h"
#include "core/static_transcript.h"
#include "host/store_client.h"
#include "wire/static_rendezvous_store.h"

/* Asked events that may wait while a step is carried out; the agent asks for one thing at a time.
 */
#define ASKED_MAXIMUM 4
/* How long the last announcements may take. */
#define SETTLING_PATIENCE_MILLISECONDS 1000

struct agent_static_rendezvous {
    const struct agent_rendezvous_settings *settings;
    struct event_loop *loop;
    struct store_thread *store; /* NULL on nodes that do not host it */
    struct static_rendezvous machine;
    struct event_timer *timer;
    struct event_timer *settling;
    struct store_client *asker;  /* for requests answered at once */
    struct store_client *waiter; /* for WAITs */
    int connected_count;
    int unanswered_count; /* of the asker's requests */
    void (*settled)(void *context);
    void *settled_context;
    bool is_lost;
    bool is_stepping;
    struct static_event asked[ASKED_MAXIMUM];
    int asked_count;
};

/* A request under way and the effect it carries out. */
struct pending {
    struct agent_static_rendezvous *rendezvous;
    struct static_effect effect;
};

static void feed(struct agent_static_rendezvous *rendezvous, struct static_event event);

static void lose(struct agent_static_rendezvous *rendezvous, const char *reason) {
    if (rendezvous->is_lost) {
        return;
    }
    rendezvous->is_lost = true;
    log_warning(rendezvous->settings->log, "the job's store at %s:%d cannot be used: %s",
        rendezvous->settings->config->master_host, rendezvous->settings->config->master_port,
        reason);
    feed(rendezvous, (struct static_event){.kind = STATIC_EVENT_CONNECTION_LOST});
}

static void tell_settled(struct agent_static_rendezvous *rendezvous) {
    void (*settled)(void *context) = rendezvous->settled;
    rendezvous->settled = NULL;
    event_timer_stop(rendezvous->settling);
    if (settled != NULL) {
        settled(rendezvous->settled_context);
    }
}

static void settling_took_too_long(void *context) {
    tell_settled(context);
}

/* Connecting. */

static void connected(void *context, const struct failure *failure) {
    struct agent_static_rendezvous *rendezvous = context;
    if (failure != NULL) {
        lose(rendezvous, failure->message);
    } else if (++rendezvous->connected_count == 2) {
        feed(rendezvous, (struct static_event){.kind = STATIC_EVENT_CONNECTED});
    }
}

static void connection_lost(void *context, const struct failure *failure) {
    lose(context, failure->message);
}

static void connect_to_store(struct agent_static_rendezvous *rendezvous) {
    const struct launch_config *config = rendezvous->settings->config;
    struct store_client_settings settings = {
        .host = config->master_host,
        .port =
            rendezvous->store != NULL ? store_thread_port(rendezvous->store) : config->master_port,
        .connect_timeout = config->store_timeout,
        .connected = connected,
        .lost = connection_lost,
        .context = rendezvous,
    };
    rendezvous->asker = store_client_new(rendezvous->loop, &settings);
    rendezvous->waiter = store_client_new(rendezvous->loop, &settings);
}

/* Requests. */

static void answered(void *context, const struct store_client_result *result) {
    struct pending *pending = context;
    struct agent_static_rendezvous *rendezvous = pending->rendezvous;
    struct static_answer answer = {0};
    bool is_wait = pending->effect.kind == STATIC_EFFECT_WAIT;
    rendezvous->unanswered_count -= is_wait ? 0 : 1;
    if (result->code == FAILURE_CANCELLED) {
        free(pending);
        return;
    }
    if (result->code != FAILURE_NONE) {
        lose(rendezvous, result->message);
    } else if (static_effect_wants_answer(&pending->effect)) {
        if (static_answer_read(&pending->effect, result->reply, &answer) == FAILURE_NONE) {
            feed(rendezvous, answer.event);
        } else {
            lose(rendezvous, "an answer makes no sense");
        }
        static_answer_clear(&answer);
    }
    free(pending);
    if (rendezvous->unanswered_count == 0) {
        tell_settled(rendezvous);
    }
}

static void send_request(
    struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    struct owned_request request = {0};
    struct pending *pending = memory_allocate(sizeof *pending);
    *pending = (struct pending){rendezvous, *effect};
    static_request_build(
        effect, &rendezvous->machine.settings, rendezvous->settings->preparation->run_id, &request);
    bool is_wait = effect->kind == STATIC_EFFECT_WAIT;
    rendezvous->unanswered_count += is_wait ? 0 : 1;
    struct store_client_call call = {
        .request = request.request,
        .is_raw = true,
        .timeout = is_wait ? DURATION_FOREVER : rendezvous->settings->config->store_timeout,
        .done = answered,
        .context = pending,
    };
    store_client_send(is_wait ? rendezvous->waiter : rendezvous->asker, &call);
    owned_request_clear(&request);
}

static void renewed(void *context) {
    feed(context, (struct static_event){.kind = STATIC_EVENT_RENEWED});
}

static void renew_store(struct agent_static_rendezvous *rendezvous) {
    char *agents_prefix = text_format("/%s/", rendezvous->settings->preparation->run_id);
    store_thread_renew(rendezvous->store, agents_prefix, renewed, rendezvous);
    free(agents_prefix);
}

/* What the machine tells the agent. */

static void tell_joined(
    struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    const struct launch_config *config = rendezvous->settings->config;
    const struct agent_preparation *preparation = rendezvous->settings->preparation;
    struct node_placement placement = {
        .run_id = preparation->run_id,
        .master_address = preparation->master_address,
        .master_port =
            rendezvous->store != NULL ? store_thread_port(rendezvous->store) : config->master_port,
        .group_rank = config->node_rank,
        .group_world_size = effect->joined.node_count,
        .local_world_size = preparation->worker_count,
        .ranks = effect->joined.ranks,
        .attempt = effect->joined.attempt,
    };
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    observer->joined(observer->context, rendezvous->machine.ticket, &placement);
}

/* The machine knows nodes; users know addresses too. The caller frees it. */
static char *failure_reason(
    const struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    const struct launch_config *config = rendezvous->settings->config;
    struct text reason = {0};
    text_append(&reason, effect->failed.reason);
    if (effect->failed.node >= 0) {
        text_append_format(&reason, " (node %d)", effect->failed.node);
    }
    if (rendezvous->connected_count < 2) {
        text_append_format(&reason, ": no connection to the job's store at %s:%d",
            config->master_host, config->master_port);
    } else if (effect->failed.is_late) {
        text_append_format(&reason,
            ": the job needs all of its %d nodes (--nnodes), with ranks from 0 to %d "
            "(--node-rank), "
            "within %g s (--rdzv-conf timeout)",
            config->maximum_nodes, config->maximum_nodes - 1,
            duration_seconds(config->store_timeout));
    }
    return text_take(&reason);
}

static void tell_failed(
    struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    char *reason = failure_reason(rendezvous, effect);
    if (effect->kind == STATIC_EFFECT_JOIN_FAILED) {
        observer->join_failed(observer->context, rendezvous->machine.ticket, reason);
    } else {
        observer->peer_failed(observer->context, reason);
    }
    free(reason);
}

static void perform(
    struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings->observer;
    switch (effect->kind) {
    case STATIC_EFFECT_CONNECT:
        connect_to_store(rendezvous);
        break;
    case STATIC_EFFECT_RENEW_WORKER_STORE:
        renew_store(rendezvous);
        break;
    case STATIC_EFFECT_ARM_TIMER:
        event_timer_set(rendezvous->timer, effect->deadline);
        break;
    case STATIC_EFFECT_DISARM_TIMER:
        event_timer_stop(rendezvous->timer);
        break;
    case STATIC_EFFECT_JOINED:
        tell_joined(rendezvous, effect);
        break;
    case STATIC_EFFECT_JOIN_FAILED:
    case STATIC_EFFECT_PEER_FAILED:
        tell_failed(rendezvous, effect);
        break;
    case STATIC_EFFECT_BARRIER_PASSED:
        observer->barrier_ended(observer->context, true);
        break;
    case STATIC_EFFECT_BARRIER_FAILED:
        observer->barrier_ended(observer->context, false);
        break;
    case STATIC_EFFECT_PEER_RESTART:
        observer->peer_restart(observer->context, effect->attempt);
        break;
    case STATIC_EFFECT_ADD:
    case STATIC_EFFECT_SET:
    case STATIC_EFFECT_COMPARE_SET:
    case STATIC_EFFECT_GET:
    case STATIC_EFFECT_CHECK:
    case STATIC_EFFECT_WAIT:
    case STATIC_EFFECT_SET_ROLE_INFO:
    case STATIC_EFFECT_GET_ROLE_INFOS:
    case STATIC_EFFECT_SET_ASSIGNMENTS:
    case STATIC_EFFECT_GET_ASSIGNMENT:
        send_request(rendezvous, effect);
        break;
    case STATIC_EFFECT_KIND_COUNT:
        break;
    }
}

static bool is_debugging(const struct agent_static_rendezvous *rendezvous) {
    const struct log *log = rendezvous->settings->log;
    return log != NULL && log->threshold <= LOG_LEVEL_DEBUG;
}

static void log_event(
    const struct agent_static_rendezvous *rendezvous, const struct static_event *event) {
    struct text line = {0};
    static_event_describe(event, &line);
    log_debug(rendezvous->settings->log, "rendezvous <- %s", text_string(&line));
    text_clear(&line);
}

static void log_effect(
    const struct agent_static_rendezvous *rendezvous, const struct static_effect *effect) {
    struct text line = {0};
    static_effect_describe(effect, &line);
    log_debug(rendezvous->settings->log, "rendezvous -> %s", text_string(&line));
    text_clear(&line);
}

static void step(struct agent_static_rendezvous *rendezvous, struct static_event event) {
    struct static_effects effects;
    event.now = event_loop_now(rendezvous->loop);
    if (is_debugging(rendezvous)) {
        log_event(rendezvous, &event);
    }
    static_rendezvous_step(&rendezvous->machine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (is_debugging(rendezvous)) {
            log_effect(rendezvous, &effects.items[i]);
        }
        perform(rendezvous, &effects.items[i]);
    }
}

/* What the agent asks from inside an observer's call waits until the step's other effects are done.
 */
static void feed(struct agent_static_rendezvous *rendezvous, struct static_event event) {
    if (rendezvous->is_stepping) {
        if (rendezvous->asked_count < ASKED_MAXIMUM) {
            rendezvous->asked[rendezvous->asked_count++] = event;
        }
        return;
    }
    rendezvous->is_stepping = true;
    step(rendezvous, event);
    while (rendezvous->asked_count > 0) {
        struct static_event next = rendezvous->asked[0];
        rendezvous->asked_count--;
        for (int i = 0; i < rendezvous->asked_count; i++) {
            rendezvous->asked[i] = rendezvous->asked[i + 1];
        }
        step(rendezvous, next);
    }
    rendezvous->is_stepping = false;
}

static void timer_fired(void *context) {
    feed(context, (struct static_event){.kind = STATIC_EVENT_TIMER_FIRED});
}

/* What the agent asks. */

struct agent_static_rendezvous *agent_static_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store) {
    struct agent_static_rendezvous *rendezvous = memory_allocate(sizeof *rendezvous);
    const char *uniform =
        text_list_variable(settings->environment, "TORCH_ELASTIC_WORKER_IDENTICAL");
    struct static_settings machine_settings = {
        .node_rank = settings->config->node_rank,
        .node_count = settings->config->maximum_nodes,
        .role = settings->config->role,
        .local_world_size = settings->preparation->worker_count,
        .timeout = settings->config->store_timeout,
        .is_uniform = uniform != NULL && text_equals(uniform, "1"),
    };
    rendezvous->settings = settings;
    rendezvous->loop = loop;
    rendezvous->store = store;
    rendezvous->timer = event_timer_new(loop, timer_fired, rendezvous);
    rendezvous->settling = event_timer_new(loop, settling_took_too_long, rendezvous);
    static_rendezvous_init(&rendezvous->machine, &machine_settings);
    return rendezvous;
}

void agent_static_rendezvous_free(struct agent_static_rendezvous *rendezvous) {
    if (rendezvous == NULL) {
        return;
    }
    rendezvous->is_lost = true; /* what the clients say from here on is no news */
    store_client_free(rendezvous->asker);
    store_client_free(rendezvous->waiter);
    event_timer_free(rendezvous->timer);
    event_timer_free(rendezvous->settling);
    static_rendezvous_clear(&rendezvous->machine);
    free(rendezvous);
}

void agent_static_rendezvous_join(
    struct agent_static_rendezvous *rendezvous, int64_t ticket, int attempt) {
    feed(rendezvous,
        (struct static_event){.kind = STATIC_EVENT_JOIN_ASKED, .join = {ticket, attempt}});
}

void agent_static_rendezvous_enter_barrier(struct agent_static_rendezvous *rendezvous) {
    feed(rendezvous, (struct static_event){.kind = STATIC_EVENT_BARRIER_ASKED});
}

void agent_static_rendezvous_announce_restart(struct agent_static_rendezvous *rendezvous) {
    feed(rendezvous, (struct static_event){.kind = STATIC_EVENT_RESTART_ASKED});
}

void agent_static_rendezvous_announce_failure(struct agent_static_rendezvous *rendezvous) {
    feed(rendezvous, (struct static_event){.kind = STATIC_EVENT_FAILURE_ASKED});
}

void agent_static_rendezvous_settle(
    struct agent_static_rendezvous *rendezvous, void (*settled)(void *context), void *context) {
    rendezvous->settled = settled;
    rendezvous->settled_context = context;
    bool is_connected = rendezvous->connected_count == 2 && !rendezvous->is_lost;
    if (rendezvous->unanswered_count == 0 || !is_connected) {
        tell_settled(rendezvous);
        return;
    }
    struct duration patience = duration_from_milliseconds(SETTLING_PATIENCE_MILLISECONDS);
    event_timer_set(
        rendezvous->settling, instant_after(event_loop_now(rendezvous->loop), patience));
}
