/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_succession.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_handover.h"
#include "agent/rendezvous/agent_hosted_store.h"
#include "agent/rendezvous/agent_register.h"
#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "core/succession/succession_machine.h"
#include "host/network/local_address.h"
#include "wire/rendezvous/host_answer.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* How long the register may take for one answer. */
#define ANSWER_SECONDS 5
/* A process that listens refuses nobody. Two or three refusals in a row are no accident. */
#define REFUSAL_PATIENCE_MILLISECONDS 2
/* Beyond silence_timeout: how much longer a new host waits for the nodes of the world. */
#define GATHERING_SLACK_SECONDS 1
#define COMMITTED "1"
#define DONE "1"

struct agent_succession {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct agent_register *reg;
    struct event_timer *timer;
    struct rendezvous_backend *backend;
    struct agent_hosted_store *store; /* stands by, or is served */
    struct rendezvous_state gathered; /* as host: whose nodes are awaited … */
    struct event_timer *gathering;
    bool is_gathering; /* … now */
    bool is_connected;
    struct instant dial_end;
    int64_t dialled_term;
    struct text reached; /* the address at which a host was reached last, of those that it has … */
    int64_t reached_term; /* … in this term */
    struct agent_handover *handover;
};

static void post(struct agent_succession *succession, struct succession_event event) {
    agent_mailbox_post(&succession->settings->mailbox,
        &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void post_kind(struct agent_succession *succession, enum succession_event_kind kind) {
    post(succession, (struct succession_event){.kind = kind});
}

static void register_settled(void *context) {
    const struct agent_succession *succession = context;
    agent_handover_go_on(succession->handover);
}

static void timer_fired(void *context) {
    post_kind(context, SUCCESSION_EVENT_TIMER_FIRED);
}

/* The store. */

static void post_membership(
    struct agent_succession *succession, struct membership_event membership) {
    agent_mailbox_post(&succession->settings->mailbox,
        &(struct node_event){.part = NODE_MEMBERSHIP, .membership = membership});
}

static void post_gone(
    struct agent_succession *succession, const struct node_identity *identity, bool has_finished) {
    agent_mailbox_post(&succession->settings->mailbox,
        &(struct node_event){.part = NODE_RENDEZVOUS,
            .rendezvous = {.kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {*identity, has_finished}}});
}

static void node_gone(void *context, const struct node_identity *identity, bool has_finished) {
    struct agent_succession *succession = context;
    post_gone(succession, identity, has_finished);
    agent_handover_note_gone(succession->handover, identity);
}

static void node_silent(void *context, const struct node_identity *identity) {
    post(context,
        (struct succession_event){.kind = SUCCESSION_EVENT_NODE_SILENT, .silent = *identity});
}

static void node_wished(
    void *context, const struct node_identity *identity, const struct rendezvous_wish *wish) {
    struct agent_succession *succession = context;
    agent_mailbox_post(&succession->settings->mailbox,
        &(struct node_event){.part = NODE_RENDEZVOUS,
            .rendezvous = {.kind = RENDEZVOUS_EVENT_WISHED, .wished = {*identity, *wish}}});
}

static void stranger_wrote(void *context) {
    struct agent_succession *succession = context;
    agent_mailbox_post(&succession->settings->mailbox,
        &(struct node_event){
            .part = NODE_RENDEZVOUS, .rendezvous = {.kind = RENDEZVOUS_EVENT_STRANGER_WROTE}});
}

/* Nodes of the world that have not come to this host by now are lost. One that is done may be gone:
 * its silence means nothing. */
static void gathered(void *context) {
    struct agent_succession *succession = context;
    succession->is_gathering = false;
    for (size_t i = 0; i < succession->gathered.count; i++) {
        const struct rendezvous_node *node = &succession->gathered.nodes[i];
        if (agent_hosted_store_knows(succession->store, &node->identity)) {
            continue;
        }
        if (!node->is_done) {
            node_silent(succession, &node->identity);
        }
        post_gone(succession, &node->identity, false);
    }
}

/* Whose process was a host since the record was committed is known to be gone at once. */
static bool was_host(const struct succession_effect *effect, const struct node_identity *identity) {
    bool was = false;
    for (size_t i = 0; i < effect->host.former_count && !was; i++) {
        was = node_identity_is_same_process(identity, &effect->host.formers[i]);
    }
    return was;
}

static void await_nodes(
    struct agent_succession *succession, const struct rendezvous_state *record) {
    struct duration silence = succession->settings->config->dynamic.settings.silence_timeout;
    rendezvous_state_copy(record, &succession->gathered);
    if (!succession->is_gathering) {
        succession->is_gathering = true;
        event_timer_set(succession->gathering,
            instant_after(instant_after(event_loop_now(succession->loop), silence),
                duration_from_seconds(GATHERING_SLACK_SECONDS)));
    }
}

static void gather(struct agent_succession *succession, const struct succession_effect *effect) {
    const struct rendezvous_state *record = effect->host.record;
    for (size_t i = 0; i < record->count; i++) {
        if (was_host(effect, &record->nodes[i].identity)) {
            post_gone(succession, &record->nodes[i].identity, false);
        }
    }
    await_nodes(succession, record);
}

/* Who holds a later record than the committed one writes it again, with nodes that this host has
 * never seen. */
void agent_succession_see(
    struct agent_succession *succession, const struct rendezvous_state *record) {
    bool is_any_awaited = false;
    for (size_t i = 0; i < record->count && !is_any_awaited; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        is_any_awaited =
            !node->is_done && !agent_hosted_store_knows(succession->store, &node->identity);
    }
    if (is_any_awaited && agent_hosted_store_is_serving(succession->store)) {
        await_nodes(succession, record);
    }
}

static void host(struct agent_succession *succession, const struct succession_effect *effect) {
    const struct agent_rendezvous_settings *settings = succession->settings;
    struct store_seeds seeds = {0};
    struct bytes value = {0};
    struct text key = {0};
    struct text_list done = {0};
    log_info(settings->log, "this node hosts the store of job '%s' from now on (term %lld)",
        settings->preparation->run_id, (long long)effect->host.term);
    if (!agent_register_is_empty(effect->host.record) &&
        rendezvous_state_write_text(effect->host.record, &value) == FAILURE_NONE) {
        rendezvous_key_write_record(settings->preparation->run_id, &key);
        store_seeds_add(&seeds, text_string(&key), bytes_slice(&value));
    }
    round_key_list_noted(effect->host.record, settings->preparation->run_id, &done);
    for (size_t i = 0; i < done.count; i++) {
        store_seeds_add(&seeds, done.items[i], slice_from_string(DONE));
    }
    agent_hosted_store_serve(succession->store, &seeds, NULL, NULL);
    post_membership(succession, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING,
                                    .port = agent_hosted_store_port(succession->store)});
    gather(succession, effect);
    text_list_clear(&done);
    bytes_clear(&value);
    text_clear(&key);
}

static void end_hosting(struct agent_succession *succession) {
    struct host_answer answer = {.term = agent_register_term(succession->reg)};
    struct text text = {0};
    log_warning(succession->settings->log,
        "another node hosts the job's store from now on (term %lld); this one does not any more",
        (long long)answer.term);
    rendezvous_backend_disconnect(succession->backend);
    (void)agent_register_find_host(succession->reg, &answer.place);
    host_answer_write(&answer, &text);
    agent_hosted_store_stand_by(succession->store, text_string(&text), NULL, NULL);
    event_timer_stop(succession->gathering);
    succession->is_gathering = false;
    post_membership(succession, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING_OVER});
    host_answer_clear(&answer);
    text_clear(&text);
}

/* Connections. */

static void note_reached(struct agent_succession *succession) {
    text_clear(&succession->reached);
    rendezvous_backend_write_reached(succession->backend, &succession->reached);
    succession->reached_term = succession->dialled_term;
}

/* Who was connected to this host looks there again and nowhere else: whether its other addresses
 * refuse, or answer at all, says nothing. */
static const char *names_to_dial(
    const struct agent_succession *succession, const struct host_place *place) {
    bool is_known =
        succession->reached.length > 0 && succession->reached_term == succession->dialled_term;
    return is_known ? text_string(&succession->reached) : place->names;
}

static void dial(struct agent_succession *succession, const struct succession_effect *effect) {
    struct host_place place = {0};
    bool is_self = effect->dial.is_self;
    succession->is_connected = false;
    succession->dial_end = effect->dial.deadline;
    succession->dialled_term = agent_register_term(succession->reg);
    if (!is_self && !agent_register_find_host(succession->reg, &place)) {
        post(succession, (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST,
                             .loss = SUCCESSION_LOSS_OTHER});
        return;
    }
    rendezvous_backend_connect(succession->backend,
        &(struct rendezvous_backend_trying){
            .host = is_self ? "127.0.0.1" : names_to_dial(succession, &place),
            .port = is_self ? agent_hosted_store_port(succession->store) : place.port,
            .deadline = effect->dial.deadline,
            .refusal_patience = duration_from_milliseconds(REFUSAL_PATIENCE_MILLISECONDS),
        });
    host_place_clear(&place);
}

static enum succession_loss loss_of(
    const struct agent_succession *succession, const struct rendezvous_event *event) {
    if (succession->is_connected) {
        return event->lost.is_silent ? SUCCESSION_LOSS_SILENT : SUCCESSION_LOSS_ENDED;
    }
    return instant_is_before(event_loop_now(succession->loop), succession->dial_end)
               ? SUCCESSION_LOSS_REFUSED
               : SUCCESSION_LOSS_SILENT;
}

static void lose(struct agent_succession *succession, enum succession_loss loss) {
    if (!succession->is_connected && loss != SUCCESSION_LOSS_REFUSED) {
        text_clear(&succession->reached);
    }
    succession->is_connected = false;
    post(succession,
        (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = loss});
}

static void hear_of_leaving(struct agent_succession *succession, bool is_successor) {
    log_info(succession->settings->log, "the host of the job's store leaves: %s",
        is_successor ? "this node takes over the job's store" : "the store moves to another node");
    post_kind(succession, is_successor ? SUCCESSION_EVENT_NAMED : SUCCESSION_EVENT_MOVED);
}

bool agent_succession_take(
    struct agent_succession *succession, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        succession->is_connected = true;
        note_reached(succession);
        post(succession, (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTED,
                             .offers_delegation = event->connected.offers_delegation});
        return true;
    }
    if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        if (succession->is_connected) {
            log_warning(succession->settings->log,
                "the connection to the host of the job's store is lost: %s; another node follows "
                "it, if it has ended",
                event->lost.reason);
        }
        lose(succession, loss_of(succession, event));
        return true;
    }
    if (event->kind == RENDEZVOUS_EVENT_HOST_LEAVES) {
        hear_of_leaving(succession, event->is_successor);
        return true;
    }
    if (event->kind == RENDEZVOUS_EVENT_RECORD && event->state != NULL) {
        agent_succession_see(succession, event->state);
    }
    return false;
}

void agent_succession_doubt(struct agent_succession *succession, bool is_doubted) {
    post(succession,
        (struct succession_event){.kind = SUCCESSION_EVENT_DOUBTED, .is_doubted = is_doubted});
}

void agent_succession_give_up(struct agent_succession *succession) {
    lose(succession, SUCCESSION_LOSS_ENDED);
}

static void tell_committed(struct agent_succession *succession, int64_t round) {
    struct round_key key = {.kind = ROUND_KEY_COMMITTED, .round = round};
    struct text_list keys = {0};
    round_key_list(&key, succession->settings->preparation->run_id, &keys);
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string(keys.items[0]),
            .value = slice_from_string(COMMITTED)},
        .is_raw = true,
        .timeout = duration_from_seconds(ANSWER_SECONDS),
    };
    (void)rendezvous_backend_ask(succession->backend, &call);
    text_list_clear(&keys);
}

void agent_succession_perform(
    struct agent_succession *succession, const struct succession_effect *effect) {
    switch (effect->kind) {
    case SUCCESSION_EFFECT_READ:
    case SUCCESSION_EFFECT_APPEND:
    case SUCCESSION_EFFECT_RENEW:
    case SUCCESSION_EFFECT_LOOK:
    case SUCCESSION_EFFECT_WATCH:
        agent_register_perform(succession->reg, effect);
        break;
    case SUCCESSION_EFFECT_DIAL:
        dial(succession, effect);
        break;
    case SUCCESSION_EFFECT_HOST:
        host(succession, effect);
        break;
    case SUCCESSION_EFFECT_END_HOSTING:
        end_hosting(succession);
        break;
    case SUCCESSION_EFFECT_TELL_COMMITTED:
        tell_committed(succession, effect->round);
        break;
    case SUCCESSION_EFFECT_NAME:
        agent_handover_name(succession->handover, &effect->successor);
        break;
    case SUCCESSION_EFFECT_DISMISS:
        rendezvous_backend_disconnect(succession->backend);
        agent_handover_dismiss(succession->handover, effect->has_successor);
        break;
    case SUCCESSION_EFFECT_ARM_TIMER:
        event_timer_set(succession->timer, effect->deadline);
        break;
    case SUCCESSION_EFFECT_TELL_LOST:
    case SUCCESSION_EFFECT_TELL_CONNECTED:
    case SUCCESSION_EFFECT_FENCED:
    case SUCCESSION_EFFECT_TELL_REGISTER:
    case SUCCESSION_EFFECT_GAVE_UP:
    case SUCCESSION_EFFECT_KIND_COUNT:
        break; /* the node's own */
    }
}

void agent_succession_write_obstacle(const struct agent_succession *succession, struct text *out) {
    if (!succession->is_connected || agent_hosted_store_is_serving(succession->store)) {
        agent_register_write_obstacle(succession->reg, out);
    }
}

void agent_succession_serve(
    struct agent_succession *succession, const struct rendezvous_effect *effect) {
    if (!agent_hosted_store_is_serving(succession->store)) {
        return; /* another node hosts it by now */
    }
    if (effect->kind == RENDEZVOUS_EFFECT_TELL_STANDINGS) {
        agent_hosted_store_tell(succession->store, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_CUT_OFF) {
        agent_hosted_store_cut_off(succession->store, &effect->cut_off);
    }
}

void agent_succession_linger(struct agent_succession *succession, struct duration patience,
    void (*done)(void *context), void *context) {
    if (!agent_hosted_store_is_serving(succession->store)) {
        done(context);
        return;
    }
    agent_handover_begin(succession->handover, patience, done, context);
}

const char *agent_succession_reached_address(const struct agent_succession *succession) {
    bool is_host = agent_hosted_store_is_serving(succession->store);
    return is_host ? agent_hosted_store_reached(succession->store) : "";
}

/* Life. */

void agent_succession_use(struct agent_succession *succession, struct rendezvous_backend *backend) {
    succession->backend = backend;
}

/* An address that the user gives is tried first. A name that this machine has found itself may not
 * be known everywhere, and is tried last. */
static void write_names(const struct agent_succession *succession, struct text *names) {
    const char *address = succession->settings->node->membership.address;
    bool is_given = succession->settings->config->local_address != NULL;
    struct text interfaces = {0};
    local_address_write_interfaces(HOST_PLACE_TEXT_MAXIMUM / 2, &interfaces);
    bool has_more = interfaces.length > 0;
    text_append_format(names, "%s%s%s", is_given ? address : text_string(&interfaces),
        has_more ? " " : "", is_given ? text_string(&interfaces) : address);
    text_clear(&interfaces);
}

static void write_place(struct agent_succession *succession) {
    struct text names = {0};
    struct text place = {0};
    write_names(succession, &names);
    host_place_write(agent_hosted_store_port(succession->store), text_string(&names), &place);
    agent_register_set_place(succession->reg, text_string(&place));
    text_clear(&names);
    text_clear(&place);
}

static enum failure_code stand_by(struct agent_succession *succession, struct failure *failure) {
    const struct agent_rendezvous_settings *settings = succession->settings;
    struct agent_hosted_store_settings store = {
        .config = settings->config,
        .run_id = settings->preparation->run_id,
        .log = settings->log,
        .key = settings->key,
        .operations = settings->record_store_operations,
        .stands_by = true,
        .gone = node_gone,
        .silent = node_silent,
        .record_written = stranger_wrote,
        .wished = settings->config->dynamic.settings.delegates ? node_wished : NULL,
        .context = succession,
    };
    enum failure_code code = agent_hosted_store_open(succession->loop, &store,
        settings->node->membership.address, 0, &succession->store, failure);
    if (code == FAILURE_NONE) {
        write_place(succession);
    }
    return code;
}

enum failure_code agent_succession_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_succession **out_succession,
    struct failure *failure) {
    struct agent_succession *succession = memory_allocate(sizeof *succession);
    struct agent_register_settings opened = {settings, register_settled, succession};
    succession->loop = loop;
    succession->settings = settings;
    succession->timer = event_timer_new(loop, timer_fired, succession);
    succession->gathering = event_timer_new(loop, gathered, succession);
    enum failure_code code = agent_register_new(loop, &opened, &succession->reg, failure);
    if (code == FAILURE_NONE) {
        code = stand_by(succession, failure);
    }
    if (code == FAILURE_NONE) {
        succession->handover =
            agent_handover_new(loop, settings->mailbox, succession->store, succession->reg);
    }
    if (code != FAILURE_NONE) {
        agent_succession_free(succession);
        return code;
    }
    *out_succession = succession;
    return FAILURE_NONE;
}

void agent_succession_free(struct agent_succession *succession) {
    if (succession == NULL) {
        return;
    }
    agent_handover_free(succession->handover);
    agent_register_free(succession->reg);
    agent_hosted_store_free(succession->store);
    event_timer_free(succession->timer);
    event_timer_free(succession->gathering);
    rendezvous_state_clear(&succession->gathered);
    text_clear(&succession->reached);
    free(succession);
}
