/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_round.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "agent/rendezvous/agent_store_host.h"
#include "base/memory.h"
#include "core/round/round_key.h"
#include "core/store/store_request.h"
#include "host/network/network_address.h"
#include "host/store/store_client.h"
#include "wire/round/round_exchange_store.h"

/* The workers' own store (MASTER_ADDR, MASTER_PORT) of a dynamic rendezvous, on the node that
 * serves it: a fresh one for every round, so that no worker meets what an earlier one left behind.
 */

/* `opened` is called with the port; `failed` with the reason. Perhaps from inside open. */
struct agent_worker_store_observer {
    void (*opened)(void *context, int port);
    void (*failed)(void *context, const char *reason);
    void *context;
};

/* What it points to outlives the object. */
struct agent_worker_store_settings {
    const struct launch_config *config;
    const char *name; /* of this node, as workers get it in MASTER_ADDR */
    const struct log *log;
    struct store_admission *admission; /* of other machines; outlives it; NULL: all are served */
    struct tally *operations; /* that the stores of all rounds carry out; NULL: nobody counts */
    struct agent_worker_store_observer observer;
};

struct agent_worker_store {
    struct event_loop *loop;
    struct agent_worker_store_settings settings;
    struct store_thread *server; /* NULL until it is opened */
};

static struct agent_worker_store *agent_worker_store_new(
    struct event_loop *loop, const struct agent_worker_store_settings *settings) {
    struct agent_worker_store initial = {.loop = loop, .settings = *settings};
    return memory_duplicate(&initial, sizeof initial);
}

/* NULL is fine. */
static void agent_worker_store_free(struct agent_worker_store *store) {
    if (store != NULL) {
        store_thread_stop(store->server);
        free(store);
    }
}

static void tell_opened(void *context) {
    struct agent_worker_store *store = context;
    store->settings.observer.opened(
        store->settings.observer.context, store_thread_port(store->server));
}

static enum failure_code start_server(struct agent_worker_store *store, struct failure *failure) {
    struct store_limits limits =
        agent_store_memory_limits(store->settings.config, store->settings.log);
    struct store_server_settings server = {
        .limits = &limits,
        .log = store->settings.log,
        .operations = store->settings.operations,
        .admission = store->settings.admission,
        .kept_descriptors =
            (uint64_t)store->settings.config->maximum_nodes * STORE_DESCRIPTORS_OF_NODE,
        .is_for_this_user = !store->settings.config->is_store_for_every_user,
    };
    int fd;
    enum failure_code code =
        agent_listener_open(store->settings.config, store->settings.name, 0, &server, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    return store_thread_start(store->loop, fd, &server, &store->server, failure);
}

/* Fresh: a new server on a new port; the old one ends with all its connections. Otherwise the one
 * there is keeps its port, and forgets everything. */
static void agent_worker_store_open(struct agent_worker_store *store, bool is_fresh) {
    struct failure failure = {0};
    if (store->server != NULL && !is_fresh) {
        store_thread_renew(store->server, NULL, tell_opened, store);
        return;
    }
    store_thread_stop(store->server);
    store->server = NULL;
    if (start_server(store, &failure) == FAILURE_NONE) {
        tell_opened(store);
    } else {
        store->settings.observer.failed(store->settings.observer.context, failure.message);
    }
}

/* Fixed nodes. */

struct agent_fixed_nodes {
    const struct agent_rendezvous_settings *settings;
    struct event_loop *loop;
    struct store_thread *store; /* NULL on nodes that do not host it */
    struct event_timer *flushing;
    struct store_client *asker;  /* for requests answered at once */
    struct store_client *waiter; /* for WAITs */
    int connected_count;
    int unanswered_count; /* of the asker's requests */
    bool is_lost;
    bool is_flushing; /* LEFT is to be told */
};

static void fixed_nodes_post(struct agent_fixed_nodes *nodes, enum round_event_kind kind) {
    agent_mailbox_post(
        &nodes->settings->mailbox, &(struct node_event){.part = NODE_ROUND,
                                       .round = {.kind = kind, .round = ROUND_OF_FIXED_NODES}});
}

static void lose(struct agent_fixed_nodes *nodes, const char *reason) {
    if (nodes->is_lost) {
        return;
    }
    nodes->is_lost = true;
    log_warning(nodes->settings->log, "the job's store at %s cannot be used: %s",
        nodes->settings->node->membership.where, reason);
    fixed_nodes_post(nodes, ROUND_EVENT_CONNECTION_LOST);
}

bool agent_fixed_nodes_are_connected(const struct agent_fixed_nodes *nodes) {
    return nodes->connected_count == 2 && !nodes->is_lost;
}

/* The end. */

static void tell_left(struct agent_fixed_nodes *nodes) {
    if (nodes->is_flushing) {
        nodes->is_flushing = false;
        event_timer_stop(nodes->flushing);
        agent_mailbox_post(
            &nodes->settings->mailbox, &(struct node_event){.part = NODE_MEMBERSHIP,
                                           .membership = {.kind = MEMBERSHIP_EVENT_LEFT}});
    }
}

static void flushing_took_too_long(void *context) {
    tell_left(context);
}

void agent_fixed_nodes_flush(struct agent_fixed_nodes *nodes, struct duration patience) {
    nodes->is_flushing = true;
    if (nodes->unanswered_count == 0 || !agent_fixed_nodes_are_connected(nodes)) {
        tell_left(nodes);
    } else {
        event_timer_set(nodes->flushing, instant_after(event_loop_now(nodes->loop), patience));
    }
}

/* Connecting. */

static void ask_who_says(struct agent_fixed_nodes *nodes) {
    struct text key = {0};
    if (nodes->settings->said != NULL) {
        round_key_write_said(nodes->settings->preparation->run_id, &key);
        struct store_client_call call =
            agent_said_call(nodes->settings->said, &key, nodes->settings->config->store_timeout);
        store_client_send(nodes->asker, &call);
    }
    text_clear(&key);
}

static void connected(void *context, const struct failure *failure) {
    struct agent_fixed_nodes *nodes = context;
    if (failure != NULL) {
        lose(nodes, failure->message);
    } else if (++nodes->connected_count == 2) {
        ask_who_says(nodes);
        if (nodes->settings->reached != NULL) {
            nodes->settings->reached(nodes->settings->reached_context);
        }
        fixed_nodes_post(nodes, ROUND_EVENT_CONNECTED);
    }
}

static void connection_lost(void *context, const struct failure *failure) {
    lose(context, failure->message);
}

/* CONNECTED or CONNECTION_LOST follows. */
static void agent_fixed_nodes_connect(struct agent_fixed_nodes *nodes) {
    const struct launch_config *config = nodes->settings->config;
    struct store_client_settings settings = {
        .host = config->master_host,
        .port = nodes->store != NULL ? store_thread_port(nodes->store) : config->master_port,
        .connect_timeout = config->store_timeout,
        .key = nodes->settings->key,
        .connected = connected,
        .lost = connection_lost,
        .context = nodes,
    };
    nodes->asker = store_client_new(nodes->loop, &settings);
    nodes->waiter = store_client_new(nodes->loop, &settings);
}

/* Requests. */

/* Sends on the connection for requests, or on the one for WAITs. Connecting must have begun.
 * `call->done` calls agent_fixed_nodes_answered, except for FAILURE_CANCELLED. If it says what is
 * wrong with the answer, both connections count as lost. */
static void agent_fixed_nodes_send(
    struct agent_fixed_nodes *nodes, const struct store_client_call *call, bool is_wait) {
    nodes->unanswered_count += is_wait ? 0 : 1;
    store_client_send(is_wait ? nodes->waiter : nodes->asker, call);
}

static void agent_fixed_nodes_answered(
    struct agent_fixed_nodes *nodes, bool is_wait, const char *trouble_or_null) {
    nodes->unanswered_count -= is_wait ? 0 : 1;
    if (trouble_or_null != NULL) {
        lose(nodes, trouble_or_null);
    }
    if (nodes->unanswered_count == 0) {
        tell_left(nodes);
    }
}

bool agent_fixed_nodes_ask(struct agent_fixed_nodes *nodes, const struct store_client_call *call) {
    bool is_connected = agent_fixed_nodes_are_connected(nodes);
    if (is_connected) {
        store_client_send(nodes->asker, call);
    }
    return is_connected;
}

static void renewed(void *context) {
    fixed_nodes_post(context, ROUND_EVENT_STORE_OPENED);
}

/* On the host of the store: deletes every key but the agents'. STORE_OPENED follows. */
static void agent_fixed_nodes_renew_store(struct agent_fixed_nodes *nodes) {
    struct text agents_prefix = {0};
    round_key_write_prefix(nodes->settings->preparation->run_id, &agents_prefix);
    store_thread_renew(nodes->store, text_string(&agents_prefix), renewed, nodes);
    text_clear(&agents_prefix);
}

/* Life. */

struct agent_fixed_nodes *agent_fixed_nodes_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store) {
    struct agent_fixed_nodes *nodes = memory_allocate(sizeof *nodes);
    nodes->settings = settings;
    nodes->loop = loop;
    nodes->store = store;
    nodes->flushing = event_timer_new(loop, flushing_took_too_long, nodes);
    return nodes;
}

void agent_fixed_nodes_free(struct agent_fixed_nodes *nodes) {
    if (nodes == NULL) {
        return;
    }
    nodes->is_lost = true; /* what the clients say from here on is no news */
    store_client_free(nodes->asker);
    store_client_free(nodes->waiter);
    event_timer_free(nodes->flushing);
    free(nodes);
}

/* Appends this node's address as the store sees it, where it has proved itself to a store on
 * another machine. */
static void agent_fixed_nodes_write_address(
    const struct agent_fixed_nodes *nodes, struct text *out) {
    if (nodes->asker != NULL) {
        store_client_write_address(nodes->asker, out);
    }
}

void agent_fixed_nodes_write_obstacle(const struct agent_fixed_nodes *nodes, struct text *out) {
    if (nodes->asker != NULL) {
        store_client_write_obstacle(nodes->asker, out);
    }
}

/* Round. */

struct agent_round {
    const struct agent_rendezvous_settings *settings;
    struct rendezvous_backend *backend; /* nodes that come and go … */
    struct agent_fixed_nodes *fixed;    /* … or not */
    struct agent_worker_store *store;
    struct event_timer *timer;
    int64_t number; /* of the round that asked last */
    /* Where another node may come to host the store: of the round, in their order, what was said,
     * and what was asked and is not answered. */
    struct pending *kept;
    const char *(*reached)(void *context); /* by which name; NULL: nobody knows */
    void *reached_context;
};

/* A request under way, or one that is kept. */
struct pending {
    struct agent_round *round;
    struct round_question question;
    struct owned_request request;
    bool is_kept; /* in the list above */
    bool is_under_way;
    bool is_asked_again; /* a GET: what it asks for was there, and will be there again */
    struct pending *next;
};

static void post(struct agent_round *round, struct round_event event) {
    agent_mailbox_post(
        &round->settings->mailbox, &(struct node_event){.part = NODE_ROUND, .round = event});
}

/* Whether another node may come to host the store. */
static bool has_succession(const struct agent_round *round) {
    return round->settings->config->dynamic.register_engine != NULL;
}

/* Requests. */

/* Returns what is wrong with the answer, or NULL. */
static const char *take_answer(struct pending *pending, const struct store_client_result *result) {
    struct round_answer answer = {0};
    if (result->code != FAILURE_NONE) {
        return result->message;
    }
    if (round_effect_wants_answer(pending->question.kind)) {
        if (round_answer_read(&pending->question, result->reply, &answer) != FAILURE_NONE) {
            return "an answer makes no sense";
        }
        post(pending->round, answer.event);
        round_answer_clear(&answer);
    }
    return NULL;
}

static void free_pending(struct pending *pending) {
    owned_request_clear(&pending->request);
    free(pending);
}

/* What is under way is freed when it is answered. */
static void drop(struct pending **place) {
    struct pending *pending = *place;
    *place = pending->next;
    pending->is_kept = false;
    if (!pending->is_under_way) {
        free_pending(pending);
    }
}

/* A GET that waits would hold up what is waited for next. */
static void stop_asking_again(struct agent_round *round) {
    for (const struct pending *pending = round->kept; pending != NULL; pending = pending->next) {
        if (pending->is_under_way && pending->is_asked_again) {
            rendezvous_backend_cancel_waits(round->backend);
            return; /* the list may have changed */
        }
    }
}

static void drop_kept(struct agent_round *round, bool only_waits) {
    struct pending **place = &round->kept;
    while (*place != NULL) {
        if (only_waits && (*place)->question.kind != ROUND_EFFECT_WAIT) {
            place = &(*place)->next;
        } else {
            drop(place);
        }
    }
}

static void drop_answered(struct pending *pending) {
    struct pending **place = &pending->round->kept;
    while (*place != pending) {
        place = &(*place)->next;
    }
    drop(place);
}

/* What was said is kept, as is what the store did not answer because the connection has ended. */
static void end_kept(struct pending *pending, enum failure_code code) {
    pending->is_under_way = false;
    if (code == FAILURE_NONE && round_effect_wants_answer(pending->question.kind)) {
        drop_answered(pending);
    }
}

/* The backend tells of the end of its connection itself. */
static void answered(void *context, const struct store_client_result *result) {
    struct pending *pending = context;
    struct agent_fixed_nodes *fixed = pending->round->fixed;
    if (result->code != FAILURE_CANCELLED) {
        const char *trouble = take_answer(pending, result);
        if (fixed != NULL) {
            agent_fixed_nodes_answered(fixed, pending->question.kind == ROUND_EFFECT_WAIT, trouble);
        }
    }
    if (pending->is_kept) {
        end_kept(pending, result->code);
    } else {
        free_pending(pending);
    }
}

/* False: there is no connection, so there will be no answer. */
static bool pass_on(struct agent_round *round, const struct store_client_call *call, bool is_wait) {
    if (round->fixed != NULL) {
        agent_fixed_nodes_send(round->fixed, call, is_wait);
        return true;
    }
    return is_wait ? rendezvous_backend_wait(round->backend, call)
                   : rendezvous_backend_ask(round->backend, call);
}

static struct duration patience_of(const struct agent_round *round) {
    const struct launch_config *config = round->settings->config;
    return round->fixed != NULL ? config->store_timeout : config->dynamic.read_timeout;
}

/* Whether there will be an answer. */
static bool send_pending(struct agent_round *round, struct pending *pending) {
    bool is_wait = pending->question.kind == ROUND_EFFECT_WAIT || pending->is_asked_again;
    struct store_client_call call = {
        .request = pending->request.request,
        .is_raw = true,
        .waits_first = pending->is_asked_again,
        .timeout = is_wait ? DURATION_FOREVER : patience_of(round),
        .done = answered,
        .context = pending,
    };
    pending->is_under_way = true;
    pending->is_under_way = pass_on(round, &call, is_wait);
    return pending->is_under_way;
}

static void keep(struct agent_round *round, struct pending *pending) {
    struct pending **place = &round->kept;
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = pending;
    pending->is_kept = true;
}

static void send_request(struct agent_round *round, const struct round_effect *effect) {
    struct pending *pending = memory_allocate(sizeof *pending);
    pending->round = round;
    pending->question = round_question_of(effect);
    round_request_build(effect, round->settings->preparation->run_id, &pending->request);
    if (has_succession(round)) {
        keep(round, pending);
    }
    if (!send_pending(round, pending) && !pending->is_kept) {
        free_pending(pending); /* the connection's end is told elsewhere, and ends this round */
    }
}

void agent_round_say_again(struct agent_round *round) {
    for (struct pending *pending = round->kept; pending != NULL; pending = pending->next) {
        if (!pending->is_under_way) {
            pending->is_asked_again = pending->question.kind == ROUND_EFFECT_GET;
            (void)send_pending(round, pending);
        }
    }
}

/* Address translation on the way to the store makes another address of it than this machine knows.
 */
static void add_seen_address(const struct agent_round *round, struct text *addresses) {
    struct text seen = {0};
    if (round->fixed != NULL) {
        agent_fixed_nodes_write_address(round->fixed, &seen);
    } else {
        rendezvous_backend_write_address(round->backend, &seen);
    }
    if (seen.length > 0 &&
        addresses->length + 1 + seen.length <= RANK_JSON_ADDRESSES_MAXIMUM_SIZE) {
        text_append_format(addresses, "%s%s", addresses->length > 0 ? " " : "", text_string(&seen));
    }
    text_clear(&seen);
}

static void send_role_info(struct agent_round *round, const struct round_effect *effect) {
    struct text addresses = {0};
    struct round_effect completed = *effect;
    if (round->settings->admission != NULL) {
        local_address_write_interfaces(RANK_JSON_ADDRESSES_MAXIMUM_SIZE, &addresses);
        add_seen_address(round, &addresses);
        completed.addresses = text_string(&addresses);
    }
    send_request(round, &completed);
    text_clear(&addresses);
}

/* The workers' store. */

/* What others can reach is what they have reached, unless this node was given a name. A store that
 * only this machine reaches listens at the node's own. */
static const char *published_name(const struct agent_round *round) {
    const struct launch_config *config = round->settings->config;
    const char *reached = NULL;
    if (round->reached != NULL && config->local_address == NULL && !config->is_local) {
        reached = round->reached(round->reached_context);
    }
    return reached != NULL ? reached : round->settings->node->membership.address;
}

static void store_opened(void *context, int port) {
    struct agent_round *round = context;
    post(round, (struct round_event){.kind = ROUND_EVENT_STORE_OPENED,
                    .round = round->number,
                    .opened = {published_name(round), port}});
}

static void store_failed(void *context, const char *reason) {
    struct agent_round *round = context;
    char *text = text_format("the workers' store cannot be opened: %s", reason);
    post(round, (struct round_event){
                    .kind = ROUND_EVENT_STORE_FAILED, .round = round->number, .reason = text});
    free(text);
}

static void admit_everybody(struct agent_round *round, const char *why) {
    store_admission_open(round->settings->admission);
    log_warning(round->settings->log,
        "--worker-store-from round: %s, so the workers' store serves all other machines in this "
        "round",
        why);
}

static void admit(struct agent_round *round, const char *addresses, const char *silent) {
    struct store_admission *admission = round->settings->admission;
    if (addresses != NULL) {
        size_t count = store_admission_limit(admission, addresses);
        log_info(round->settings->log,
            "the workers' store serves this machine and the %zu addresses of the round's nodes",
            count);
    } else if (silent != NULL) {
        char *why = text_format(
            "%s does not tell the addresses of its machine (only nodes of Muster's with this "
            "option do)",
            silent);
        admit_everybody(round, why);
        free(why);
    } else {
        admit_everybody(round, "nodes tell no addresses with TORCH_ELASTIC_WORKER_IDENTICAL=1");
    }
}

/* A store that is not fresh is one that nodes of torchrun know. */
static void open_store(struct agent_round *round, bool is_fresh) {
    if (round->fixed != NULL) {
        agent_fixed_nodes_renew_store(round->fixed);
    } else {
        if (round->settings->admission != NULL && !is_fresh) {
            admit_everybody(round, "nodes of torchrun's take part, or did and may come back");
        }
        agent_worker_store_open(round->store, is_fresh);
    }
}

static void clear(struct agent_round *round, const struct round_effect *effect) {
    struct text_list keys = {0};
    const char *run_id = round->settings->preparation->run_id;
    for (int64_t old = effect->clear.first; old <= effect->clear.last; old++) {
        round_key_list_all(old, effect->clear.node_count, run_id, &keys);
        if (has_succession(round)) {
            round_key_list_of_succession(old, effect->clear.done_count, run_id, &keys);
        }
    }
    for (size_t i = 0; i < keys.count; i++) {
        rendezvous_backend_delete(round->backend, keys.items[i]);
    }
    text_list_clear(&keys);
}

void agent_round_perform(struct agent_round *round, const struct round_effect *effect) {
    if (round->number != effect->round) {
        stop_asking_again(round);
        drop_kept(round, false);
    }
    round->number = effect->round;
    switch (effect->kind) {
    case ROUND_EFFECT_CONNECT:
        agent_fixed_nodes_connect(round->fixed);
        break;
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        open_store(round, effect->is_fresh);
        break;
    case ROUND_EFFECT_ADMIT:
        admit(round, effect->admitted.addresses, effect->admitted.silent);
        break;
    case ROUND_EFFECT_SET_ROLE_INFO:
        send_role_info(round, effect);
        break;
    case ROUND_EFFECT_SET_ASSIGNMENTS:
    case ROUND_EFFECT_PUBLISH:
    case ROUND_EFFECT_SET:
    case ROUND_EFFECT_DECIDE:
    case ROUND_EFFECT_ADD:
    case ROUND_EFFECT_CHECK:
    case ROUND_EFFECT_GET:
    case ROUND_EFFECT_WAIT:
        send_request(round, effect);
        break;
    case ROUND_EFFECT_CLEAR:
        clear(round, effect);
        break;
    case ROUND_EFFECT_CANCEL_WAIT:
        drop_kept(round, true);
        rendezvous_backend_cancel_waits(round->backend);
        break;
    case ROUND_EFFECT_FORGET:
        stop_asking_again(round);
        drop_kept(round, false);
        break;
    case ROUND_EFFECT_ARM_TIMER:
        event_timer_set(round->timer, effect->deadline);
        break;
    case ROUND_EFFECT_DISARM_TIMER:
        event_timer_stop(round->timer);
        break;
    case ROUND_EFFECT_OPENED:
    case ROUND_EFFECT_JOINED:
    case ROUND_EFFECT_JOIN_FAILED:
    case ROUND_EFFECT_BARRIER_PASSED:
    case ROUND_EFFECT_BARRIER_FAILED:
    case ROUND_EFFECT_BARRIER_LATE:
    case ROUND_EFFECT_RANK_DISPUTED:
    case ROUND_EFFECT_PEER_RESTART:
    case ROUND_EFFECT_PEER_FAILED:
    case ROUND_EFFECT_KIND_COUNT:
        break; /* the membership's */
    }
}

static void timer_fired(void *context) {
    struct agent_round *round = context;
    post(round, (struct round_event){.kind = ROUND_EVENT_TIMER_FIRED, .round = round->number});
}

/* Life. */

struct agent_round *agent_round_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct rendezvous_backend *backend,
    struct agent_fixed_nodes *fixed) {
    struct agent_round *round = memory_allocate(sizeof *round);
    const struct agent_worker_store_settings store = {
        .config = settings->config,
        .name = settings->node->membership.address,
        .log = settings->log,
        .admission = settings->admission,
        .operations = settings->worker_store_operations,
        .observer = {store_opened, store_failed, round},
    };
    round->settings = settings;
    round->backend = backend;
    round->fixed = fixed;
    round->store = agent_worker_store_new(loop, &store);
    round->timer = event_timer_new(loop, timer_fired, round);
    return round;
}

void agent_round_ask_for_name(
    struct agent_round *round, const char *(*reached)(void *context), void *context) {
    round->reached = reached;
    round->reached_context = context;
}

void agent_round_free(struct agent_round *round) {
    if (round != NULL) {
        drop_kept(round, false);
        agent_worker_store_free(round->store);
        event_timer_free(round->timer);
        free(round);
    }
}
