/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_dynamic_rendezvous.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_dynamic_events.h"
#include "base/memory.h"
#include "host/local_address.h"
#include "host/random_seed.h"

/* Life. */

static struct duration answer_timeout(const struct agent_dynamic_rendezvous *rendezvous) {
    const struct rendezvous_settings *settings = &rendezvous->settings->config->dynamic.settings;
    return (struct duration){
        settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt};
}

static struct rendezvous_backend *make_backend(struct agent_dynamic_rendezvous *rendezvous) {
    const struct launch_config *config = rendezvous->settings->config;
    const struct rendezvous_settings *settings = &config->dynamic.settings;
    struct rendezvous_backend_settings backend = {
        .path = config->dynamic.file,
        .host = rendezvous->host != NULL ? "127.0.0.1" : config->dynamic.host,
        .port = config->dynamic.port,
        .run_id = rendezvous->settings->preparation->run_id,
        .minimum_nodes = config->minimum_nodes,
        .maximum_nodes = config->maximum_nodes,
        .silence_timeout = settings->silence_timeout,
        .answer_timeout = {settings->keep_alive_interval.nanoseconds *
                           settings->keep_alive_max_attempt},
        .observer = agent_dynamic_backend_events(rendezvous),
    };
    return rendezvous_backend_new(rendezvous->loop, &backend);
}

static struct agent_root_cause *make_root_cause(struct agent_dynamic_rendezvous *rendezvous) {
    struct agent_root_cause_settings settings = {
        .run_id = rendezvous->settings->preparation->run_id,
        .log = rendezvous->settings->log,
        .answer_timeout = answer_timeout(rendezvous),
        .learnt = agent_dynamic_root_cause_learnt,
        .context = rendezvous,
    };
    return agent_root_cause_new(rendezvous->backend, &settings);
}

static enum failure_code find_address(
    struct agent_dynamic_rendezvous *rendezvous, struct failure *failure) {
    const struct launch_config *config = rendezvous->settings->config;
    if (config->local_address != NULL) {
        rendezvous->address = memory_duplicate_string(config->local_address);
        return FAILURE_NONE;
    }
    return local_address_for_many_nodes(&rendezvous->address, failure);
}

static struct rendezvous_machine *make_machine(struct agent_dynamic_rendezvous *rendezvous) {
    struct rendezvous_machine_settings settings = {
        .rendezvous = rendezvous->settings->config->dynamic.settings,
        .seed = random_seed(),
    };
    struct random random;
    random_init(&random, settings.seed);
    node_identity_init(&settings.identity, rendezvous->address, getpid(),
        node_identity_muster_local_id((uint32_t)random_next(&random)));
    return rendezvous_machine_new(&settings);
}

static void open_diary(struct agent_dynamic_rendezvous *rendezvous) {
    rendezvous->diary = (struct rendezvous_diary){
        .run_id = rendezvous->settings->preparation->run_id,
        .record = rendezvous->settings->observer.recorded,
        .context = rendezvous->settings->observer.context,
    };
}

static enum failure_code host_store(
    struct agent_dynamic_rendezvous *rendezvous, struct failure *failure) {
    const struct node_identity *me = rendezvous_machine_identity(rendezvous->machine);
    struct agent_store_host_settings settings = {
        .config = rendezvous->settings->config,
        .run_id = rendezvous->settings->preparation->run_id,
        .log = rendezvous->settings->log,
        .operations = rendezvous->settings->record_store_operations,
        .gone = agent_dynamic_node_gone,
        .record_written = agent_dynamic_record_written,
        .context = rendezvous,
    };
    enum failure_code code =
        agent_store_host_new(rendezvous->loop, &settings, &rendezvous->host, failure);
    if (code != FAILURE_NONE) {
        rendezvous_diary_fail_to_host(&rendezvous->diary, me, failure->message);
    } else if (rendezvous->host != NULL) {
        rendezvous_diary_host(&rendezvous->diary, me);
    }
    return code;
}

enum failure_code agent_dynamic_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings,
    struct agent_dynamic_rendezvous **out_rendezvous, struct failure *failure) {
    const struct launch_dynamic *dynamic = &settings->config->dynamic;
    struct agent_dynamic_rendezvous *rendezvous = memory_allocate(sizeof *rendezvous);
    rendezvous->loop = loop;
    rendezvous->settings = settings;
    rendezvous->where = dynamic->file != NULL ? memory_duplicate_string(dynamic->file)
                                              : text_format("%s:%d", dynamic->host, dynamic->port);
    enum failure_code code = find_address(rendezvous, failure);
    if (code == FAILURE_NONE) {
        rendezvous->machine = make_machine(rendezvous);
        open_diary(rendezvous);
        code = host_store(rendezvous, failure);
    }
    if (code != FAILURE_NONE) {
        agent_dynamic_rendezvous_free(rendezvous);
        return code;
    }
    rendezvous->timer = event_timer_new(loop, agent_dynamic_timer_fired, rendezvous);
    rendezvous->backend = make_backend(rendezvous);
    rendezvous->root_cause = make_root_cause(rendezvous);
    struct agent_round_observer round = agent_dynamic_round_events(rendezvous);
    rendezvous->round =
        agent_round_new(loop, settings, rendezvous->backend, rendezvous->address, &round);
    *out_rendezvous = rendezvous;
    return FAILURE_NONE;
}

void agent_dynamic_rendezvous_free(struct agent_dynamic_rendezvous *rendezvous) {
    if (rendezvous == NULL) {
        return;
    }
    agent_round_free(rendezvous->round);
    rendezvous_backend_free(rendezvous->backend);
    agent_root_cause_free(rendezvous->root_cause);
    free(rendezvous->end);
    agent_store_host_free(rendezvous->host);
    rendezvous_machine_free(rendezvous->machine);
    rendezvous_diary_clear(&rendezvous->diary);
    event_timer_free(rendezvous->timer);
    free(rendezvous->address);
    free(rendezvous->where);
    free(rendezvous->queue);
    free(rendezvous);
}

/* Asked by the agent. */

static void take_kind(
    struct agent_dynamic_rendezvous *rendezvous, enum rendezvous_event_kind kind) {
    agent_dynamic_take(rendezvous, (struct rendezvous_event){.kind = kind});
}

static void take_reason(struct agent_dynamic_rendezvous *rendezvous,
    enum rendezvous_event_kind kind, const char *reason) {
    agent_dynamic_take(rendezvous, (struct rendezvous_event){.kind = kind, .reason = reason});
}

void agent_dynamic_rendezvous_join(struct agent_dynamic_rendezvous *rendezvous, int64_t ticket) {
    rendezvous->ticket = ticket;
    rendezvous->stage = STAGE_JOINING;
    take_kind(rendezvous, RENDEZVOUS_EVENT_JOIN_ASKED);
}

/* Counted first, done then: whoever is known to be done is not missed, so a node that were gone
 * before it is counted would be waited for in vain. */
void agent_dynamic_rendezvous_enter_barrier(struct agent_dynamic_rendezvous *rendezvous) {
    rendezvous->stage = STAGE_BARRIER;
    agent_round_enter_barrier(rendezvous->round);
    take_kind(rendezvous, RENDEZVOUS_EVENT_DONE_ASKED);
}

/* Writes down who failed, before the record says that somebody did. */
static void blame(struct agent_dynamic_rendezvous *rendezvous,
    const struct failure_account *account, struct text *out_reason) {
    if (account == NULL) {
        text_append_format(out_reason, "node %s cannot go on", rendezvous->address);
        return;
    }
    agent_root_cause_publish(rendezvous->root_cause, rendezvous->round_number, account);
    failure_account_describe(account, out_reason);
}

void agent_dynamic_rendezvous_announce_restart(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account) {
    struct text reason = {0};
    rendezvous->stage = STAGE_IDLE;
    agent_round_abandon(rendezvous->round);
    blame(rendezvous, account, &reason);
    take_reason(rendezvous, RENDEZVOUS_EVENT_RESTART_ASKED, text_string(&reason));
    text_clear(&reason);
}

/* The store goes with the node that hosts it, and the job with the store: better that the others
 * are told than that they begin another round and find themselves cut off. */
void agent_dynamic_rendezvous_announce_leave(struct agent_dynamic_rendezvous *rendezvous) {
    rendezvous->is_leaving = true;
    rendezvous->is_ending = true;
    agent_round_abandon(rendezvous->round);
    if (rendezvous->host == NULL) {
        take_kind(rendezvous, RENDEZVOUS_EVENT_LEAVE_ASKED);
        return;
    }
    char *reason =
        text_format("node %s, which hosts the job's store, has left", rendezvous->address);
    take_reason(rendezvous, RENDEZVOUS_EVENT_CLOSE_ASKED, reason);
    free(reason);
}

/* The agent stays as it is until the failure stands, or turns out to be none of the job's. */
void agent_dynamic_rendezvous_doubt_failure(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account) {
    struct text reason = {0};
    agent_round_abandon(rendezvous->round);
    blame(rendezvous, account, &reason);
    take_reason(rendezvous, RENDEZVOUS_EVENT_FAILURE_ASKED, text_string(&reason));
    text_clear(&reason);
}

/* Who found no way in has nothing to say about the job of the others. */
void agent_dynamic_rendezvous_announce_failure(
    struct agent_dynamic_rendezvous *rendezvous, const struct failure_account *account) {
    struct text reason = {0};
    if (rendezvous->stage == STAGE_GIVEN_UP) {
        agent_dynamic_rendezvous_announce_leave(rendezvous);
        return;
    }
    rendezvous->has_failed = true;
    rendezvous->is_ending = true;
    agent_round_abandon(rendezvous->round);
    blame(rendezvous, account, &reason);
    take_reason(rendezvous, RENDEZVOUS_EVENT_CLOSE_ASKED, text_string(&reason));
    text_clear(&reason);
}

/* Who has not waited for the others leaves it to them to close the record. */
void agent_dynamic_rendezvous_announce_success(struct agent_dynamic_rendezvous *rendezvous) {
    if (rendezvous->has_passed) {
        rendezvous->is_ending = true;
        take_reason(rendezvous, RENDEZVOUS_EVENT_CLOSE_ASKED, "");
    }
}

void agent_dynamic_rendezvous_settle(
    struct agent_dynamic_rendezvous *rendezvous, void (*settled)(void *context), void *context) {
    rendezvous->settled = settled;
    rendezvous->settled_context = context;
    agent_dynamic_settle_if_ready(rendezvous);
}
