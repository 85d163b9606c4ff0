/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_succession.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_store_host.h"
#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "core/succession/succession_machine.h"
#include "host/loop/clock.h"
#include "host/network/network_address.h"
#include "host/register/register.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* How long the register may take for one answer. */
#define ANSWER_SECONDS 5
/* What stays wrong is asked again several times a second, and said again after so long. */
#define SAID_AGAIN_SECONDS 30

/* The register of a job as an agent uses it: what core/succession/succession_machine wants to read,
 * append and renew there, and the answers as its events. It keeps the entry known last, for what
 * the machine does not know: where the host of that entry listens. */

struct agent_register_settings {
    const struct agent_rendezvous_settings *agent; /* borrowed */
    void (*settled)(void *context);                /* no READ and no APPEND is under way any more */
    void *context;
};

struct agent_register {
    struct event_loop *loop;
    struct agent_register_settings settings;
    struct job_register *job_register;
    struct register_entry known;    /* the last entry read or won */
    struct register_entry appended; /* the one under way */
    uint64_t appending;             /* the request; 0: none */
    uint64_t looking;               /* the last LOOK */
    uint64_t watching;              /* the last WATCH; 0: over */
    uint64_t reading;               /* the same */
    char *sizes;                    /* --nnodes of this node, as an entry has them */
    char *place;                    /* of this node */
    char *name;                     /* of this node, as a host */
    char *said;                     /* the last failure that was logged, and when; NULL: none */
    struct instant said_at;
    char *trouble;                /* why the last READ or APPEND has failed; NULL: it has not */
    bool is_stuck;                /* the last renewal of this node's term has failed, … */
    struct instant stuck_said_at; /* … which was logged then */
};

/* Whether a READ or an APPEND is under way. An APPEND may have to wait for either. */
static bool agent_register_is_busy(const struct agent_register *reg) {
    return reg->appending != 0 || reg->reading != 0;
}

static void register_post(struct agent_register *reg, struct succession_event event) {
    agent_mailbox_post(&reg->settings.agent->mailbox,
        &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void register_post_kind(struct agent_register *reg, enum succession_event_kind kind) {
    register_post(reg, (struct succession_event){.kind = kind});
}

static struct instant answer_deadline(const struct agent_register *reg) {
    return instant_after(event_loop_now(reg->loop), duration_from_seconds(ANSWER_SECONDS));
}

/* What the register says. */

static void warn(struct agent_register *reg, const char *reason) {
    struct instant now = event_loop_now(reg->loop);
    struct instant again = instant_after(reg->said_at, duration_from_seconds(SAID_AGAIN_SECONDS));
    if (reg->said != NULL && text_equals(reg->said, reason) && instant_is_before(now, again)) {
        return;
    }
    log_warning(reg->settings.agent->log, "the job's register: %s", reason);
    free(reg->said);
    reg->said = memory_duplicate_string(reason);
    reg->said_at = now;
}

static void set_trouble(struct agent_register *reg, const char *reason_or_null) {
    char *trouble = memory_duplicate_string(reason_or_null);
    free(reg->trouble);
    reg->trouble = trouble;
}

/* Appends why what was asked last of the register has failed, if it has. */
static void agent_register_write_obstacle(const struct agent_register *reg, struct text *out) {
    if (reg->trouble != NULL) {
        text_append_format(out, "the job's register: %s", reg->trouble);
    }
}

/* A node that has found no entry yet ends with a failure that is final, and says it then. */
static void fail(struct agent_register *reg, const char *reason, bool is_final) {
    set_trouble(reg, reason);
    if (!is_final || reg->known.number > 0) {
        warn(reg, reason);
    }
    register_post(reg,
        (struct succession_event){.kind = SUCCESSION_EVENT_FAILED, .failed = {reason, is_final}});
}

static bool read_host(const struct register_entry *entry, struct node_identity *out_host) {
    return node_identity_parse(entry->host, out_host) &&
           (entry->process[0] == '\0' || node_process_parse(entry->process, &out_host->process));
}

static bool read_record(const struct register_entry *entry, struct rendezvous_state *out_record) {
    struct slice bytes = bytes_slice(&entry->record);
    bool is_absent;
    return bytes.length == 0 ||
           rendezvous_state_read_text(bytes, &is_absent, out_record, NULL) == FAILURE_NONE;
}

/* The sizes may have been others when the job ran before, so a difference is no error. Nodes of one
 * job that differ are refused by the store of its host. */
static void compare_settings(struct agent_register *reg, const struct register_entry *entry) {
    if (entry->settings[0] != '\0' && !text_equals(entry->settings, reg->sizes)) {
        char *reason = text_format("its entry %lld is of a job with --nnodes %s, and this node was "
                                   "given %s; give all nodes of a job the same --nnodes",
            (long long)entry->number, entry->settings, reg->sizes);
        warn(reg, reason);
        free(reason);
    }
}

static void stop_watching(struct agent_register *reg) {
    register_cancel(reg->job_register, reg->watching);
    reg->watching = 0;
}

/* A read may be answered from before a later entry; this node dials the host of the latest. */
static void keep(struct agent_register *reg, const struct register_entry *entry) {
    if (entry->number > reg->known.number) {
        stop_watching(reg);
        compare_settings(reg, entry);
        register_entry_clear(&reg->known);
        register_entry_copy(entry, &reg->known);
    }
}

static void take_entry(struct agent_register *reg, enum succession_event_kind kind,
    const struct register_entry *entry) {
    struct rendezvous_state record = {0};
    struct succession_event event = {.kind = kind, .is_there = true, .record = &record};
    if (!read_host(entry, &event.entry.host) || !read_record(entry, &record)) {
        fail(reg,
            "its last entry is none of this version of Muster; was it written by another program?",
            true);
        return;
    }
    event.entry.number = entry->number;
    event.entry.term = entry->term;
    keep(reg, entry);
    register_post(reg, event);
    rendezvous_state_clear(&record);
}

static void take_read(struct agent_register *reg, const struct register_event *event) {
    if (event->entry != NULL) {
        take_entry(reg, SUCCESSION_EVENT_READ, event->entry);
    } else {
        register_post_kind(reg, SUCCESSION_EVENT_READ);
    }
}

static void take_won(struct agent_register *reg) {
    stop_watching(reg);
    register_entry_clear(&reg->known);
    register_entry_copy(&reg->appended, &reg->known);
    register_post_kind(reg, SUCCESSION_EVENT_WON);
}

static void note_unrenewed(struct agent_register *reg, const char *reason) {
    struct instant now = event_loop_now(reg->loop);
    struct instant again =
        instant_after(reg->stuck_said_at, duration_from_seconds(SAID_AGAIN_SECONDS));
    if (!reg->is_stuck || !instant_is_before(now, again)) {
        reg->stuck_said_at = now;
        log_warning(reg->settings.agent->log,
            "the job's register: this node's term is not renewed: %s; the job runs on, and no node "
            "is admitted meanwhile",
            reason);
    }
    reg->is_stuck = true;
    register_post(
        reg, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWED, .is_refused = true});
}

static void take_failed(
    struct agent_register *reg, const struct register_event *event, bool is_of_entries) {
    if (event->request == reg->watching) {
        reg->watching = 0; /* then it waits for its turn */
    } else if (event->request == reg->looking) {
        register_post(reg, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL});
    } else if (is_of_entries) {
        fail(reg, event->failure->message, event->is_final);
    } else {
        note_unrenewed(reg, event->failure->message);
    }
}

static void take_renewed(struct agent_register *reg) {
    if (reg->is_stuck) {
        log_info(reg->settings.agent->log,
            "the job's register: this node's term is renewed again; nodes that wait are admitted");
    }
    reg->is_stuck = false;
    register_post_kind(reg, SUCCESSION_EVENT_RENEWED);
}

/* Whether the request was a READ or an APPEND, which is over. */
static bool end_request(struct agent_register *reg, uint64_t request) {
    bool is_append = request == reg->appending;
    bool is_read = request == reg->reading;
    reg->appending = is_append ? 0 : reg->appending;
    reg->reading = is_read ? 0 : reg->reading;
    return is_append || is_read;
}

/* What the machine does upon the answer is under way when this returns: an entry that waited for it
 * is being appended. */
static void told(void *context, const struct register_event *event) {
    struct agent_register *reg = context;
    bool is_of_entries = end_request(reg, event->request);
    if (is_of_entries) {
        set_trouble(reg, NULL);
    }
    switch (event->kind) {
    case REGISTER_READ:
        take_read(reg, event);
        break;
    case REGISTER_WON:
        take_won(reg);
        break;
    case REGISTER_LOST:
        take_entry(reg, SUCCESSION_EVENT_LOST, event->entry);
        break;
    case REGISTER_UNKNOWN:
        warn(reg, event->failure->message);
        set_trouble(reg, event->failure->message);
        register_post_kind(reg, SUCCESSION_EVENT_UNKNOWN);
        break;
    case REGISTER_RENEWED:
        take_renewed(reg);
        break;
    case REGISTER_RENEWAL:
        register_post(reg,
            (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL, .renewal = event->renewal});
        break;
    case REGISTER_NEWS:
        reg->watching = 0;
        take_entry(reg, SUCCESSION_EVENT_NEWS, event->entry);
        break;
    case REGISTER_FAILED:
        take_failed(reg, event, is_of_entries);
        break;
    }
    if (!agent_register_is_busy(reg)) {
        reg->settings.settled(reg->settings.context);
    }
}

/* What is asked. */

/* Whether there is nothing to be kept of the record. */
static bool agent_register_is_empty(const struct rendezvous_state *record) {
    return record->count == 0 && record->round == 0 && !record->is_complete && !record->is_closed;
}

static enum register_entry_kind kind_of(const struct succession_effect *effect) {
    if (effect->append.is_claim) {
        return effect->append.is_named ? REGISTER_ENTRY_HANDOVER : REGISTER_ENTRY_CLAIM;
    }
    return effect->append.record->is_closed ? REGISTER_ENTRY_CLOSE : REGISTER_ENTRY_COMMIT;
}

static void append(struct agent_register *reg, const struct succession_effect *effect) {
    const struct rendezvous_state *record = effect->append.record;
    struct register_entry *entry = &reg->appended;
    register_entry_clear(entry);
    *entry = (struct register_entry){
        .number = effect->append.number,
        .kind = kind_of(effect),
        .term = effect->append.term,
        .host = memory_duplicate_string(reg->name),
        .addresses = memory_duplicate_string(reg->place),
        .settings = memory_duplicate_string(reg->sizes),
    };
    node_process_write(&reg->settings.agent->node->succession.identity.process, entry->process);
    register_entry_write_nonce(random_seed(), random_seed(), entry->nonce);
    if ((!agent_register_is_empty(record) &&
            rendezvous_state_write_text(record, &entry->record) != FAILURE_NONE) ||
        register_entry_check(entry) != FAILURE_NONE) {
        fail(reg, "the record of the round is too long for an entry", true);
        return;
    }
    reg->appending = register_append(reg->job_register, entry, answer_deadline(reg));
}

/* Carries out READ, APPEND, RENEW, LOOK and WATCH. */
static void agent_register_perform(
    struct agent_register *reg, const struct succession_effect *effect) {
    if (effect->kind == SUCCESSION_EFFECT_READ) {
        reg->reading = register_read(reg->job_register, answer_deadline(reg));
    } else if (effect->kind == SUCCESSION_EFFECT_APPEND) {
        append(reg, effect);
    } else if (effect->kind == SUCCESSION_EFFECT_RENEW) {
        (void)register_renew(reg->job_register, effect->term, answer_deadline(reg));
    } else if (effect->kind == SUCCESSION_EFFECT_LOOK) {
        reg->looking = register_renewal(reg->job_register, effect->term, answer_deadline(reg));
    } else if (effect->kind == SUCCESSION_EFFECT_WATCH) {
        stop_watching(reg);
        reg->watching = register_watch(reg->job_register, effect->number, answer_deadline(reg));
    }
}

static int64_t agent_register_term(const struct agent_register *reg) {
    return reg->known.term;
}

/* Where the host of the entry known last listens. False: nowhere that can be read. The caller
 * clears the place. */
static bool agent_register_find_host(
    const struct agent_register *reg, struct host_place *out_place) {
    const char *addresses = reg->known.addresses;
    return addresses != NULL && host_place_parse(addresses, out_place) == FAILURE_NONE;
}

/* Where this node listens; copied. Before it appends. */
static void agent_register_set_place(struct agent_register *reg, const char *place) {
    free(reg->place);
    reg->place = memory_duplicate_string(place);
}

/* Life. */

static enum failure_code open_register(struct agent_register *reg, struct failure *failure) {
    const struct agent_rendezvous_settings *settings = reg->settings.agent;
    const struct launch_dynamic *dynamic = &settings->config->dynamic;
    struct register_settings opened = {
        .endpoint = dynamic->register_endpoint,
        .run_id = settings->preparation->run_id,
        .node_name = settings->node->membership.address,
        .conf = &settings->config->rdzv_conf,
        .observer = {told, reg},
    };
    return register_open(reg->loop, register_engine_named(dynamic->register_engine), &opened,
        &reg->job_register, failure);
}

/* NULL is fine. An append under way may still take effect. */
static void agent_register_free(struct agent_register *reg) {
    if (reg == NULL) {
        return;
    }
    register_free(reg->job_register);
    register_entry_clear(&reg->known);
    register_entry_clear(&reg->appended);
    free(reg->sizes);
    free(reg->place);
    free(reg->name);
    free(reg->said);
    free(reg->trouble);
    free(reg);
}

/* Failures as register_open. */
static enum failure_code agent_register_new(struct event_loop *loop,
    const struct agent_register_settings *settings, struct agent_register **out_register,
    struct failure *failure) {
    struct agent_register initial = {.loop = loop, .settings = *settings};
    struct agent_register *reg = memory_duplicate(&initial, sizeof initial);
    struct text name = {0};
    node_identity_describe(&settings->agent->node->succession.identity, &name);
    reg->name = text_take(&name);
    reg->sizes = text_format(
        "%d:%d", settings->agent->config->minimum_nodes, settings->agent->config->maximum_nodes);
    enum failure_code code = open_register(reg, failure);
    if (code != FAILURE_NONE) {
        agent_register_free(reg);
        return code;
    }
    *out_register = reg;
    return FAILURE_NONE;
}

/* Handover. */

/* How long a host that has a successor waits until the others have left its store. */
#define DISMISSAL_MILLISECONDS 250
/* How long a host stays for a register that does not take the end of the job. */
#define CLOSING_SECONDS 30

/* How a host of the job's store leaves, as core/succession/succession_machine wants it: the
 * successor is told, then the others; the store stays until they have left it; and nothing that is
 * being appended to the register is left behind. */

struct agent_handover {
    struct event_loop *loop;
    struct agent_mailbox mailbox;
    struct agent_hosted_store *store;
    struct agent_register *reg;
    struct event_timer *timer;
    bool is_begun;               /* the machine wants to know who leaves */
    bool has_lingered;           /* nothing is left to wait for but the register */
    bool is_owing;               /* the register has refused the end of the job, … */
    struct instant owing_until;  /* … which is tried again until then */
    void (*done)(void *context); /* NULL: nobody waits */
    void *context;
};

static void handover_post(struct agent_handover *handover, struct succession_event event) {
    agent_mailbox_post(
        &handover->mailbox, &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void handover_post_gone(
    struct agent_handover *handover, const struct node_identity *identity) {
    handover_post(
        handover, (struct succession_event){.kind = SUCCESSION_EVENT_NODE_GONE, .gone = *identity});
}

/* The machine tries it again shortly. Without that entry who comes next would begin the job anew.
 */
static bool owes_end(struct agent_handover *handover) {
    const struct node_machine *node = handover->reg->settings.agent->machine;
    struct instant now = event_loop_now(handover->loop);
    if (node == NULL || !node_machine_owes_end(node)) {
        return false;
    }
    if (!handover->is_owing) {
        handover->is_owing = true;
        handover->owing_until = instant_after(now, duration_from_seconds(CLOSING_SECONDS));
    }
    if (instant_is_before(now, handover->owing_until)) {
        return true;
    }
    log_warning(handover->reg->settings.agent->log,
        "the job's register has not taken in %d s that the job is over; give the next job another "
        "--rdzv-id, or it goes on where this one was",
        CLOSING_SECONDS);
    return false;
}

/* What this node has seen last may have to become an entry before it goes: that the job is over, or
 * that it goes on without this node. */
static void go_on(void *context) {
    struct agent_handover *handover = context;
    void (*done)(void *context) = handover->done;
    if (done == NULL || !handover->has_lingered || agent_register_is_busy(handover->reg)) {
        return;
    }
    if (owes_end(handover)) {
        event_timer_set(handover->timer, instant_after(event_loop_now(handover->loop),
                                             duration_from_milliseconds(DISMISSAL_MILLISECONDS)));
        return;
    }
    handover->done = NULL;
    done(handover->context);
}

/* Nothing is being appended any more. */
static void agent_handover_go_on(struct agent_handover *handover) {
    go_on(handover);
}

/* The machine has yet to be told of what was seen: it is in the queue. */
static void lingered(void *context) {
    struct agent_handover *handover = context;
    handover->has_lingered = true;
    event_timer_set(handover->timer, event_loop_now(handover->loop));
}

/* This node leaves the store that it serves. Calls `done`, perhaps at once, when nothing is being
 * appended, and no other node is connected or `patience` is over. Without any patience the store is
 * handed over: LEAVE is told to the machine, and DISMISS is awaited. */
static void agent_handover_begin(struct agent_handover *handover, struct duration patience,
    void (*done)(void *context), void *context) {
    handover->done = done;
    handover->context = context;
    if (patience.nanoseconds > 0) {
        agent_hosted_store_linger(handover->store, 0, patience, lingered, handover);
    } else {
        handover->is_begun = true;
        handover_post(handover, (struct succession_event){.kind = SUCCESSION_EVENT_LEAVE});
    }
}

/* A node has left the store. */
static void agent_handover_note_gone(
    struct agent_handover *handover, const struct node_identity *identity) {
    if (handover->is_begun) {
        handover_post_gone(handover, identity);
    }
}

/* A node that is gone already is no successor. */
static void agent_handover_name(
    struct agent_handover *handover, const struct node_identity *successor) {
    if (!agent_hosted_store_name(handover->store, successor)) {
        handover_post_gone(handover, successor);
    }
}

static void agent_handover_dismiss(struct agent_handover *handover, bool has_successor) {
    handover->is_begun = false;
    if (has_successor && agent_hosted_store_is_serving(handover->store)) {
        agent_hosted_store_tell_moved(handover->store);
        agent_hosted_store_linger(handover->store, 0,
            duration_from_milliseconds(DISMISSAL_MILLISECONDS), lingered, handover);
    } else {
        lingered(handover);
    }
}

/* Life. */

/* The store and the register are borrowed. */
static struct agent_handover *agent_handover_new(struct event_loop *loop,
    struct agent_mailbox mailbox, struct agent_hosted_store *store, struct agent_register *reg) {
    struct agent_handover initial = {.loop = loop, .mailbox = mailbox, .store = store, .reg = reg};
    struct agent_handover *handover = memory_duplicate(&initial, sizeof initial);
    handover->timer = event_timer_new(loop, go_on, handover);
    return handover;
}

/* NULL is fine. */
static void agent_handover_free(struct agent_handover *handover) {
    if (handover != NULL) {
        event_timer_free(handover->timer);
        free(handover);
    }
}

/* Succession. */
/* A process that listens refuses nobody. Two or three refusals in a row are no accident. */
#define REFUSAL_PATIENCE_MILLISECONDS 2
#define COMMITTED "1"
#define DONE "1"

struct agent_succession {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct agent_register *reg;
    struct event_timer *timer;
    struct rendezvous_backend *backend;
    struct agent_hosted_store *store; /* stands by, or is served */
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

/* It is lost. One that is done may be gone: its silence means nothing. */
static void node_missed(void *context, const struct node_identity *identity, bool is_done) {
    struct agent_succession *succession = context;
    if (!is_done) {
        node_silent(succession, identity);
    }
    post_gone(succession, identity, false);
}

/* Whose process was a host since the record was committed is known to be gone at once. */
static bool was_host(const struct succession_effect *effect, const struct node_identity *identity) {
    bool was = false;
    for (size_t i = 0; i < effect->host.former_count && !was; i++) {
        was = node_identity_is_same_process(identity, &effect->host.formers[i]);
    }
    return was;
}

static void gather(struct agent_succession *succession, const struct succession_effect *effect) {
    const struct rendezvous_state *record = effect->host.record;
    for (size_t i = 0; i < record->count; i++) {
        if (was_host(effect, &record->nodes[i].identity)) {
            post_gone(succession, &record->nodes[i].identity, false);
        }
    }
    agent_hosted_store_see(succession->store, record);
}

/* Who holds a later record than the committed one writes it again, with nodes that this host has
 * never seen. */
void agent_succession_see(
    struct agent_succession *succession, const struct rendezvous_state *record) {
    if (agent_hosted_store_is_serving(succession->store)) {
        agent_hosted_store_see(succession->store, record);
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
        .environment = settings->environment,
        .gone = node_gone,
        .silent = node_silent,
        .missed = node_missed,
        .record_written = stranger_wrote,
        .wished = node_wished,
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
    text_clear(&succession->reached);
    free(succession);
}
