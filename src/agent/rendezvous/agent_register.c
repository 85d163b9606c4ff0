/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_register.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/random_seed.h"
#include "host/register/register.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* How long the register may take for one answer. */
#define ANSWER_SECONDS 5
/* What stays wrong is asked again several times a second, and said again after so long. */
#define SAID_AGAIN_SECONDS 30

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

static void post(struct agent_register *reg, struct succession_event event) {
    agent_mailbox_post(&reg->settings.agent->mailbox,
        &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void post_kind(struct agent_register *reg, enum succession_event_kind kind) {
    post(reg, (struct succession_event){.kind = kind});
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

void agent_register_write_obstacle(const struct agent_register *reg, struct text *out) {
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
    post(reg,
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
    post(reg, event);
    rendezvous_state_clear(&record);
}

static void take_read(struct agent_register *reg, const struct register_event *event) {
    if (event->entry != NULL) {
        take_entry(reg, SUCCESSION_EVENT_READ, event->entry);
    } else {
        post_kind(reg, SUCCESSION_EVENT_READ);
    }
}

static void take_won(struct agent_register *reg) {
    stop_watching(reg);
    register_entry_clear(&reg->known);
    register_entry_copy(&reg->appended, &reg->known);
    post_kind(reg, SUCCESSION_EVENT_WON);
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
    post(reg, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWED, .is_refused = true});
}

static void take_failed(
    struct agent_register *reg, const struct register_event *event, bool is_of_entries) {
    if (event->request == reg->watching) {
        reg->watching = 0; /* then it waits for its turn */
    } else if (event->request == reg->looking) {
        post(reg, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL});
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
    post_kind(reg, SUCCESSION_EVENT_RENEWED);
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
        post_kind(reg, SUCCESSION_EVENT_UNKNOWN);
        break;
    case REGISTER_RENEWED:
        take_renewed(reg);
        break;
    case REGISTER_RENEWAL:
        post(reg,
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

bool agent_register_is_empty(const struct rendezvous_state *record) {
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

void agent_register_perform(struct agent_register *reg, const struct succession_effect *effect) {
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

bool agent_register_is_busy(const struct agent_register *reg) {
    return reg->appending != 0 || reg->reading != 0;
}

int64_t agent_register_term(const struct agent_register *reg) {
    return reg->known.term;
}

bool agent_register_find_host(const struct agent_register *reg, struct host_place *out_place) {
    const char *addresses = reg->known.addresses;
    return addresses != NULL && host_place_parse(addresses, out_place) == FAILURE_NONE;
}

void agent_register_set_place(struct agent_register *reg, const char *place) {
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

enum failure_code agent_register_new(struct event_loop *loop,
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

void agent_register_free(struct agent_register *reg) {
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
