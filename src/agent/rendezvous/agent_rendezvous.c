/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_rendezvous.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/rendezvous/agent_record.h"
#include "agent/rendezvous/agent_round.h"
#include "agent/rendezvous/agent_store_host.h"
#include "base/memory.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_key.h"
#include "host/network/network_address.h"
#include "host/store/store_thread.h"

/* Of this node's own to the store: one for requests, one for WAITs. */
#define FIXED_NODE_CONNECTIONS 2

struct agent_rendezvous {
    const struct agent_rendezvous_settings settings;
    struct agent_record *record;     /* nodes that come and go; else NULL */
    struct agent_fixed_nodes *fixed; /* fixed nodes; else NULL */
    struct agent_round *round;       /* of both; else NULL */
    struct store_thread *store;      /* fixed nodes or alone; NULL on nodes that do not host it */
    struct event_timer *timer;       /* the membership's */
    size_t connection_count;         /* of the store, this node's own included */
    bool is_lingering;               /* LEFT is to be told when nobody else is connected */
    struct rendezvous_diary diary;
    struct node_identity me; /* alone, for the diary … */
    int64_t round_count;     /* … which counts the rounds */
    bool is_stopped;         /* by a signal: then torchrun's node does not close its rendezvous */
};

static void post_membership(
    struct agent_rendezvous *rendezvous, struct membership_event membership) {
    agent_mailbox_post(&rendezvous->settings.mailbox,
        &(struct node_event){.part = NODE_MEMBERSHIP, .membership = membership});
}

/* The store of fixed nodes, while this node stays for the others. */

static void tell_left_when_alone(struct agent_rendezvous *rendezvous) {
    if (rendezvous->is_lingering && rendezvous->connection_count <= FIXED_NODE_CONNECTIONS) {
        rendezvous->is_lingering = false;
        post_membership(rendezvous, (struct membership_event){.kind = MEMBERSHIP_EVENT_LEFT});
    }
}

static void connections_changed(void *context, size_t count) {
    struct agent_rendezvous *rendezvous = context;
    rendezvous->connection_count = count;
    tell_left_when_alone(rendezvous);
}

static void linger(struct agent_rendezvous *rendezvous, struct duration patience) {
    if (rendezvous->settings.leaving != NULL) {
        rendezvous->settings.leaving(rendezvous->settings.reached_context);
    }
    if (rendezvous->record != NULL) {
        agent_record_linger(rendezvous->record, patience);
    } else { /* fixed nodes have no end of patience */
        rendezvous->is_lingering = true;
        tell_left_when_alone(rendezvous);
    }
}

static void timer_fired(void *context) {
    post_membership(context, (struct membership_event){.kind = MEMBERSHIP_EVENT_TIMER_FIRED});
}

/* Life. */

static enum failure_code serve_store(struct event_loop *loop, struct agent_rendezvous *rendezvous,
    struct store_server_settings *server, struct failure *failure) {
    const struct launch_config *config = rendezvous->settings.config;
    int wanted = config->rendezvous == LAUNCH_RENDEZVOUS_STATIC ? config->master_port : 0;
    int fd;
    enum failure_code code = agent_listener_open(
        config, rendezvous->settings.preparation->master_address, wanted, server, &fd, failure);
    if (code != FAILURE_NONE) {
        return wanted == 0 ? code
                           : failure_wrap(failure, "this node hosts the job's store; is another "
                                                   "job's there? give all nodes another port, "
                                                   "with --rdzv-endpoint or --master-port");
    }
    return store_thread_start(loop, fd, server, &rendezvous->store, failure);
}

/* The workers use it, too, so only the agents' keys are guarded. */
static enum failure_code open_store(
    struct event_loop *loop, struct agent_rendezvous *rendezvous, struct failure *failure) {
    const struct agent_rendezvous_settings *settings = &rendezvous->settings;
    struct text agents_prefix = {0};
    struct text claims = {0};
    round_key_write_prefix(settings->preparation->run_id, &agents_prefix);
    round_key_write_claims(settings->preparation->run_id, &claims);
    struct store_limits limits = agent_store_memory_limits(settings->config, settings->log);
    bool is_fixed = settings->node->membership.kind == MEMBERSHIP_FIXED;
    struct store_server_settings server = {
        .limits = &limits,
        .log = settings->log,
        .own_prefix = text_string(&agents_prefix),
        .presence_prefix = is_fixed ? text_string(&claims) : NULL,
        .ends_presence_with_connection_only = true,
        .operations = settings->worker_store_operations,
        .key = settings->key,
        .guards_only_own_keys = true,
        .is_for_this_user = !settings->config->is_store_for_every_user,
        .admission = settings->admission,
        .observer = {.connections = connections_changed, .context = rendezvous},
    };
    enum failure_code code = serve_store(loop, rendezvous, &server, failure);
    text_clear(&agents_prefix);
    text_clear(&claims);
    if (code == FAILURE_NONE) {
        int port = store_thread_port(rendezvous->store);
        agent_listener_warn(settings->config, &server, port, settings->log);
        agent_listener_warn_of_limit(
            settings->config, AGENT_FIXED_NODES_CONNECTIONS, settings->log);
        post_membership(
            rendezvous, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING, .port = port});
    }
    return code;
}

static void host_connected(void *context) {
    const struct agent_rendezvous *rendezvous = context;
    agent_round_say_again(rendezvous->round);
}

static const char *reached_name(void *context) {
    struct agent_rendezvous *rendezvous = context;
    return agent_record_reached_name(rendezvous->record);
}

static enum failure_code open_record(
    struct event_loop *loop, struct agent_rendezvous *rendezvous, struct failure *failure) {
    const struct agent_rendezvous_settings *settings = &rendezvous->settings;
    const struct node_identity *me = &settings->node->rendezvous.identity;
    enum failure_code code = agent_record_new(loop, settings, &rendezvous->record, failure);
    if (code != FAILURE_NONE) {
        rendezvous_diary_fail_to_host(&rendezvous->diary, me, failure->message);
        return code;
    }
    rendezvous->round = agent_round_new(
        loop, &rendezvous->settings, agent_record_backend(rendezvous->record), NULL);
    agent_round_ask_for_name(rendezvous->round, reached_name, rendezvous);
    agent_record_tell_connected(rendezvous->record, host_connected, rendezvous);
    return FAILURE_NONE;
}

/* torchrun's rendezvous, too, records what it does where there is one node, unless its backend is
 * the static one. */
static void open_diary(struct agent_rendezvous *rendezvous) {
    const struct agent_rendezvous_settings *settings = &rendezvous->settings;
    enum membership_kind kind = settings->node->membership.kind;
    bool is_static =
        !settings->config->is_placed && text_equals(settings->config->rdzv_backend, "static");
    if (kind == MEMBERSHIP_FIXED || (kind == MEMBERSHIP_ALONE && is_static)) {
        return;
    }
    rendezvous->diary = (struct rendezvous_diary){
        .run_id = settings->preparation->run_id,
        .record = settings->recorded,
        .context = settings->recorded_context,
    };
}

static void record_host_alone(struct agent_rendezvous *rendezvous) {
    struct failure ignored;
    char *name = NULL;
    const char *address = rendezvous->settings.config->local_address;
    if (rendezvous->diary.record == NULL) {
        return;
    }
    if (address == NULL && local_address_qualified_name(&name, &ignored) == FAILURE_NONE) {
        address = name;
    }
    node_identity_init(&rendezvous->me, address != NULL ? address : "", getpid(), 0);
    rendezvous_diary_host(&rendezvous->diary, &rendezvous->me);
    free(name);
}

static enum failure_code open_membership(
    struct event_loop *loop, struct agent_rendezvous *rendezvous, struct failure *failure) {
    const struct agent_rendezvous_settings *settings = &rendezvous->settings;
    enum failure_code code = FAILURE_NONE;
    open_diary(rendezvous);
    switch (settings->node->membership.kind) {
    case MEMBERSHIP_CHANGING:
        return open_record(loop, rendezvous, failure);
    case MEMBERSHIP_FIXED:
        if (settings->config->node_rank == 0) {
            code = open_store(loop, rendezvous, failure);
        }
        rendezvous->fixed = agent_fixed_nodes_new(loop, settings, rendezvous->store);
        rendezvous->round = agent_round_new(loop, settings, NULL, rendezvous->fixed);
        break;
    case MEMBERSHIP_ALONE:
        code = open_store(loop, rendezvous, failure);
        record_host_alone(rendezvous);
        break;
    case MEMBERSHIP_KIND_COUNT:
        break;
    }
    return code;
}

/* Fixed nodes meet at the store that their workers use, so it is open to all of them at first. */
static struct store_admission *make_admission(const struct agent_rendezvous_settings *settings) {
    return settings->node->round.is_store_for_round
               ? store_admission_new(settings->node->membership.kind == MEMBERSHIP_FIXED)
               : NULL;
}

enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure) {
    struct agent_rendezvous_settings completed = *settings;
    completed.admission = make_admission(settings);
    struct agent_rendezvous initial = {.settings = completed};
    struct agent_rendezvous *rendezvous = memory_duplicate(&initial, sizeof initial);
    rendezvous->timer = event_timer_new(loop, timer_fired, rendezvous);
    enum failure_code code = open_membership(loop, rendezvous, failure);
    if (code != FAILURE_NONE) {
        agent_rendezvous_free(rendezvous);
        return code;
    }
    *out_rendezvous = rendezvous;
    return FAILURE_NONE;
}

void agent_rendezvous_free(struct agent_rendezvous *rendezvous) {
    if (rendezvous == NULL) {
        return;
    }
    agent_record_free(rendezvous->record);
    agent_fixed_nodes_free(rendezvous->fixed);
    agent_round_free(rendezvous->round);
    store_thread_stop(rendezvous->store);
    store_admission_free(rendezvous->settings.admission);
    event_timer_free(rendezvous->timer);
    rendezvous_diary_clear(&rendezvous->diary);
    free(rendezvous);
}

/* What is recorded. */

void agent_rendezvous_note_event(
    struct agent_rendezvous *rendezvous, const struct node_event *event) {
    if (event->part == NODE_RENDEZVOUS) {
        rendezvous_diary_take(&rendezvous->diary,
            node_machine_rendezvous(rendezvous->settings.machine), &event->rendezvous);
    } else if (rendezvous->record != NULL && event->part == NODE_MEMBERSHIP &&
               event->membership.kind == MEMBERSHIP_EVENT_HOSTING) {
        rendezvous_diary_host(&rendezvous->diary,
            rendezvous_machine_identity(node_machine_rendezvous(rendezvous->settings.machine)));
    }
}

/* A node alone has no rendezvous machine to listen to. */
static void note_effect_alone(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect) {
    struct rendezvous_diary *diary = &rendezvous->diary;
    bool is_agents = effect->part == NODE_AGENT;
    bool is_memberships = effect->part == NODE_MEMBERSHIP;
    if (is_agents && effect->agent.kind == AGENT_EFFECT_JOIN) {
        rendezvous_diary_attempt(diary, &rendezvous->me);
    } else if (is_agents && effect->agent.kind == AGENT_EFFECT_START_WORKERS) {
        rendezvous_diary_join(diary, &rendezvous->me, rendezvous->round_count++, 0, 1);
    } else if (is_agents && effect->agent.kind == AGENT_EFFECT_FINISH) {
        rendezvous->is_stopped = effect->agent.outcome.kind == AGENT_OUTCOME_SIGNALLED;
    } else if (is_memberships && effect->membership.kind == MEMBERSHIP_EFFECT_SETTLED &&
               !rendezvous->is_stopped) {
        rendezvous_diary_close(diary, &rendezvous->me, true);
    }
}

void agent_rendezvous_note_effect(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect) {
    if (effect->part == NODE_RENDEZVOUS) {
        rendezvous_diary_follow(&rendezvous->diary,
            node_machine_rendezvous(rendezvous->settings.machine), &effect->rendezvous);
        if (effect->rendezvous.kind == RENDEZVOUS_EFFECT_WORLD) {
            agent_record_note_world(rendezvous->record, &effect->rendezvous);
        }
    } else if (rendezvous->settings.node->membership.kind == MEMBERSHIP_ALONE) {
        note_effect_alone(rendezvous, effect);
    }
}

void agent_rendezvous_note_step(
    struct agent_rendezvous *rendezvous, const struct node_event *event) {
    if (event->part != NODE_RENDEZVOUS || rendezvous->record == NULL) {
        return;
    }
    const struct rendezvous_machine *machine =
        node_machine_rendezvous(rendezvous->settings.machine);
    struct rendezvous_admission planned =
        rendezvous_machine_admission(machine, event->rendezvous.now);
    agent_record_note_parking(rendezvous->record, rendezvous_machine_parking(machine));
    agent_record_note_admission(rendezvous->record, &planned);
}

/* What is carried out. */

static void store_renewed(void *context) {
    post_membership(context, (struct membership_event){.kind = MEMBERSHIP_EVENT_STORE_RENEWED});
}

static void perform_membership(
    struct agent_rendezvous *rendezvous, const struct membership_effect *effect) {
    switch (effect->kind) {
    case MEMBERSHIP_EFFECT_NOTE:
        log_record(
            rendezvous->settings.log, effect->note.level, LOG_ORIGIN, "%s", effect->note.text);
        break;
    case MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE:
        agent_record_publish_root_cause(
            rendezvous->record, effect->root_cause.round, effect->root_cause.account);
        break;
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
        agent_record_look_for_root_cause(rendezvous->record, effect->root_cause.round);
        break;
    case MEMBERSHIP_EFFECT_ARM_TIMER:
        event_timer_set(rendezvous->timer, effect->deadline);
        break;
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
        agent_record_cancel_roll(rendezvous->record);
        break;
    case MEMBERSHIP_EFFECT_RENEW_WORKER_STORE:
        store_thread_renew(rendezvous->store, NULL, store_renewed, rendezvous);
        break;
    case MEMBERSHIP_EFFECT_DISCONNECT:
        agent_record_disconnect(rendezvous->record);
        break;
    case MEMBERSHIP_EFFECT_LINGER:
        linger(rendezvous, effect->patience);
        break;
    case MEMBERSHIP_EFFECT_FLUSH:
        agent_fixed_nodes_flush(rendezvous->fixed, effect->patience);
        break;
    case MEMBERSHIP_EFFECT_ASK_PROGRAM:
    case MEMBERSHIP_EFFECT_SETTLED:
        break; /* the agent's */
    case MEMBERSHIP_EFFECT_TELL_AGENT:
    case MEMBERSHIP_EFFECT_TELL_RENDEZVOUS:
    case MEMBERSHIP_EFFECT_TELL_ROUND:
    case MEMBERSHIP_EFFECT_KIND_COUNT:
        break; /* the node's own */
    }
}

void agent_rendezvous_perform(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect) {
    switch (effect->part) {
    case NODE_MEMBERSHIP:
        perform_membership(rendezvous, &effect->membership);
        break;
    case NODE_RENDEZVOUS:
        agent_record_perform(rendezvous->record, &effect->rendezvous);
        break;
    case NODE_ROUND:
        agent_round_perform(rendezvous->round, &effect->round);
        break;
    case NODE_SUCCESSION:
        agent_record_perform_succession(rendezvous->record, &effect->succession);
        break;
    case NODE_STANDBY:
    case NODE_AGENT:
    case NODE_PART_COUNT:
        break; /* the agent's */
    }
}

void agent_rendezvous_publish_learned_list(struct agent_rendezvous *rendezvous, struct slice text) {
    if (rendezvous->record != NULL) {
        agent_record_publish_learned_list(rendezvous->record, text);
    }
}

void agent_rendezvous_write_obstacle(const struct agent_rendezvous *rendezvous, struct text *out) {
    if (rendezvous->record != NULL) {
        agent_record_write_obstacle(rendezvous->record, out);
    } else if (rendezvous->fixed != NULL) {
        agent_fixed_nodes_write_obstacle(rendezvous->fixed, out);
    }
}

void agent_rendezvous_look_for_neighbours(struct agent_rendezvous *rendezvous) {
    if (rendezvous->record != NULL) {
        agent_record_look_for_neighbours(rendezvous->record);
    }
}

void agent_rendezvous_stop_looking_for_neighbours(struct agent_rendezvous *rendezvous) {
    if (rendezvous->record != NULL) {
        agent_record_stop_looking_for_neighbours(rendezvous->record);
    }
}

bool agent_rendezvous_is_in_round(
    const struct agent_rendezvous *rendezvous, struct text_list *out_unready) {
    const struct rendezvous_machine *machine =
        node_machine_rendezvous(rendezvous->settings.machine);
    bool is_in = rendezvous->record != NULL && rendezvous_machine_is_in_round(machine);
    if (is_in) {
        rendezvous_machine_list_unready(machine, out_unready);
        agent_record_list_unready(
            rendezvous->record, rendezvous_machine_state(machine)->round, out_unready);
    }
    return is_in;
}

void agent_rendezvous_describe_admission(
    const struct agent_rendezvous *rendezvous, struct text *out) {
    if (rendezvous->record != NULL) {
        agent_record_describe_admission(rendezvous->record, out);
    }
}

bool agent_rendezvous_look_for_unready(struct agent_rendezvous *rendezvous) {
    const struct rendezvous_machine *machine =
        node_machine_rendezvous(rendezvous->settings.machine);
    if (rendezvous->record != NULL &&
        rendezvous_machine_parking(machine) == RENDEZVOUS_WAITS_FOR_ROUND) {
        return agent_record_look_for_admission(rendezvous->record);
    }
    return rendezvous->record != NULL && rendezvous_machine_is_in_round(machine) &&
           agent_record_look_for_unready(rendezvous->record, rendezvous_machine_state(machine));
}

uint64_t agent_rendezvous_connection(const struct agent_rendezvous *rendezvous) {
    return rendezvous->record != NULL ? agent_record_connection(rendezvous->record)
           : rendezvous->fixed != NULL && agent_fixed_nodes_are_connected(rendezvous->fixed) ? 1
                                                                                             : 0;
}

bool agent_rendezvous_ask(
    struct agent_rendezvous *rendezvous, const struct store_client_call *call) {
    return rendezvous->record != NULL
               ? rendezvous_backend_ask(agent_record_backend(rendezvous->record), call)
               : rendezvous->fixed != NULL && agent_fixed_nodes_ask(rendezvous->fixed, call);
}

bool agent_rendezvous_find_store(
    const struct agent_rendezvous *rendezvous, const char **out_host, int *out_port) {
    const struct launch_config *config = rendezvous->settings.config;
    if (rendezvous->record != NULL) {
        return rendezvous_backend_find_store(
            agent_record_backend(rendezvous->record), out_host, out_port);
    }
    *out_host = config->master_host;
    *out_port = config->master_port;
    return rendezvous->fixed != NULL && agent_fixed_nodes_are_connected(rendezvous->fixed);
}

void agent_rendezvous_give_up(struct agent_rendezvous *rendezvous, const char *reason) {
    if (rendezvous->record != NULL) {
        agent_record_give_up(rendezvous->record, reason);
    }
}
