/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_record.h"

#include <stdlib.h>
#include <string.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "agent/rendezvous/agent_store_host.h"
#include "agent/rendezvous/agent_succession.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_key.h"
#include "host/process/guardian.h"
#include "wire/failure/failure_json.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* What the workers of a job have imported, as its nodes give it to each other: a text in the store,
 * beside the record. A new node makes its standby workers ready with it before it joins. The text
 * itself is core/standby's; here it is bytes. */

struct agent_learned_list_settings {
    const char *run_id; /* borrowed */
    struct duration answer_timeout;
    /* Answers a look; borrowed for the call. Empty: there is no list. Perhaps from inside. */
    void (*answered)(void *context, struct slice text);
    void *context;
};

struct agent_learned_list {
    struct rendezvous_backend *backend;
    struct agent_learned_list_settings settings;
    struct text key;
};

/* `backend` is borrowed. Never NULL. */
static struct agent_learned_list *agent_learned_list_new(
    struct rendezvous_backend *backend, const struct agent_learned_list_settings *settings) {
    struct agent_learned_list initial = {.backend = backend, .settings = *settings};
    rendezvous_key_write_learned_list(settings->run_id, &initial.key);
    return memory_duplicate(&initial, sizeof initial);
}

/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
static void agent_learned_list_free(struct agent_learned_list *list) {
    if (list != NULL) {
        text_clear(&list->key);
        free(list);
    }
}

static struct slice own_key(const struct agent_learned_list *list) {
    return slice_from_string(text_string(&list->key));
}

static bool learned_list_ask(struct agent_learned_list *list, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = list->settings.answer_timeout,
        .done = answered,
        .context = list,
    };
    return rendezvous_backend_ask(list->backend, &call);
}

static void answer(struct agent_learned_list *list, struct slice text) {
    list->settings.answered(list->settings.context, text);
}

/* Puts the text in the place of any other. It is lost without a connection: the next one follows.
 * Longer texts than the largest are neither written nor believed. */
static void agent_learned_list_publish(struct agent_learned_list *list, struct slice text) {
    if (text.length <= LEARNED_LIST_SHARED_MAXIMUM) {
        (void)learned_list_ask(list,
            (struct store_request){.operation = STORE_SET, .key = own_key(list), .value = text},
            NULL);
    }
}

/* Reading: a GET of what is not there would wait. */

static void read_text(void *context, const struct store_client_result *result) {
    bool is_list =
        result->code == FAILURE_NONE && result->reply->blob.length <= LEARNED_LIST_SHARED_MAXIMUM;
    answer(context, is_list ? result->reply->blob : (struct slice){0});
}

static void learned_list_checked(void *context, const struct store_client_result *result) {
    struct agent_learned_list *list = context;
    bool is_there = result->code == FAILURE_NONE && result->reply->byte == STORE_READY;
    if (!is_there ||
        !learned_list_ask(list,
            (struct store_request){.operation = STORE_GET, .key = own_key(list)}, read_text)) {
        answer(list, (struct slice){0});
    }
}

/* Looks whether there is one. Only one look at a time. */
static void agent_learned_list_look(struct agent_learned_list *list) {
    struct slice keys[] = {own_key(list)};
    if (!learned_list_ask(list,
            (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
            learned_list_checked)) {
        answer(list, (struct slice){0});
    }
}

/* Root cause. */

/* Which worker failed first in a round, over all nodes: the first account that reaches the store is
 * the root cause, and every node reads the same one. */

struct agent_root_cause_settings {
    const char *run_id; /* borrowed */
    const struct log *log;
    struct duration answer_timeout;
    /* Another node's failure came first; borrowed for the call. */
    void (*learnt)(void *context, const struct failure_account *account);
    /* The look asked for last is over: what there was has been learnt. Perhaps from inside. */
    void (*looked)(void *context);
    void *context;
};

struct agent_root_cause {
    struct rendezvous_backend *backend;
    struct agent_root_cause_settings settings;
    struct text written; /* this node's own account */
    struct text key;     /* of the round looked at */
    int looks_under_way; /* the answers to all but the last are too late */
};

/* `backend` is borrowed. Never NULL. */
static struct agent_root_cause *agent_root_cause_new(
    struct rendezvous_backend *backend, const struct agent_root_cause_settings *settings) {
    struct agent_root_cause initial = {.backend = backend, .settings = *settings};
    return memory_duplicate(&initial, sizeof initial);
}

/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
static void agent_root_cause_free(struct agent_root_cause *root_cause) {
    if (root_cause != NULL) {
        text_clear(&root_cause->written);
        text_clear(&root_cause->key);
        free(root_cause);
    }
}

static void learn(struct agent_root_cause *root_cause, struct slice json) {
    struct failure_account account = {0};
    if (json.length == 0) {
        return; /* the round's keys were cleared away since its account was found */
    }
    if (failure_json_read(json, &account) == FAILURE_NONE) {
        root_cause->settings.learnt(root_cause->settings.context, &account);
    } else {
        log_warning(root_cause->settings.log,
            "what another node wrote about the first failure makes no sense, and is left out");
    }
    failure_account_clear(&account);
}

static bool root_cause_ask(struct agent_root_cause *root_cause, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = root_cause->settings.answer_timeout,
        .done = answered,
        .context = root_cause,
    };
    return rendezvous_backend_ask(root_cause->backend, &call);
}

/* Writing. */

static void published(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    if (result->code == FAILURE_NONE &&
        !slice_equals(result->reply->blob, slice_from_string(text_string(&root_cause->written)))) {
        learn(root_cause, result->reply->blob);
    }
}

/* Writes the account down unless another one is there, which is learnt then. */
static void agent_root_cause_publish(
    struct agent_root_cause *root_cause, int64_t round, const struct failure_account *account) {
    struct text key = {0};
    text_clear(&root_cause->written);
    failure_json_write(account, &root_cause->written);
    rendezvous_key_write_root_cause(root_cause->settings.run_id, round, &key);
    (void)root_cause_ask(root_cause,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(&key)),
            .value = slice_from_string(text_string(&root_cause->written))},
        published);
    text_clear(&key);
}

/* Reading. What is not there is empty for an agent's store. For another one a GET of it is a fault,
 * so that a CHECK goes before. */

static void end_look(struct agent_root_cause *root_cause) {
    root_cause->looks_under_way--;
    if (root_cause->looks_under_way == 0) {
        root_cause->settings.looked(root_cause->settings.context);
    }
}

/* What a later look has taken the place of is another round's, perhaps. */
static void read_account(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    if (result->code == FAILURE_NONE && root_cause->looks_under_way == 1) {
        learn(root_cause, result->reply->blob);
    }
    end_look(root_cause);
}

static bool get(struct agent_root_cause *root_cause) {
    return root_cause_ask(root_cause,
        (struct store_request){
            .operation = STORE_GET, .key = slice_from_string(text_string(&root_cause->key))},
        read_account);
}

static void root_cause_checked(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    bool is_there = result->code == FAILURE_NONE && result->reply->byte == STORE_READY;
    if (!is_there || root_cause->looks_under_way > 1 || !get(root_cause)) {
        end_look(root_cause);
    }
}

static bool check(struct agent_root_cause *root_cause) {
    struct slice keys[] = {slice_from_string(text_string(&root_cause->key))};
    return root_cause_ask(root_cause,
        (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
        root_cause_checked);
}

/* Looks whether the round has one; answered by looked. Takes the place of a look under way. */
static void agent_root_cause_look(struct agent_root_cause *root_cause, int64_t round) {
    text_clear(&root_cause->key);
    rendezvous_key_write_root_cause(root_cause->settings.run_id, round, &root_cause->key);
    root_cause->looks_under_way++;
    bool is_asked =
        rendezvous_backend_is_at_agent(root_cause->backend) ? get(root_cause) : check(root_cause);
    if (!is_asked) {
        end_look(root_cause);
    }
}

/* Neighbours. */

/* How many jobs are looked at, of those that were listed last. */
#define AGENT_NEIGHBOURS_MAXIMUM 4

/* A GET of what is not there would wait. A COMPARE_SET of what no key has reads as well: a store
 * answers with the value that is there, or with this one. */
#define NO_VALUE "?"

/* The other jobs that wait for nodes at the same store: of two nodes with different names for one
 * job, each would wait for the other. An agent that waits lists its job in the store, reads the
 * records of those listed before, and says in the log which of them wait, too. It reads each record
 * twice, as agents that live write a sign of life into theirs: of a job whose agents were all
 * killed the record still says that it waits. Any store will do; a job of torchrun's nodes alone is
 * not listed. Nothing follows from it. */

struct agent_neighbours_settings {
    const char *run_id; /* borrowed, as the log */
    const struct log *log;
    struct duration answer_timeout;
    struct duration rest; /* between the two readings: longer than agents leave a record alone */
};

struct agent_neighbours {
    struct event_loop *loop;
    struct event_timer *timer; /* ends the rest between the two readings */
    struct rendezvous_backend *backend;
    struct agent_neighbours_settings settings;
    struct text key;          /* of the list */
    struct text_list run_ids; /* the other jobs that are looked at, … */
    size_t asked;             /* … so many of them so far */
    /* Of the first reading: the record of each in short, or 0 where it does not wait. */
    uint64_t prints[AGENT_NEIGHBOURS_MAXIMUM];
    bool is_looking;
    bool is_resting; /* between the two readings of a look */
    bool is_second;
    bool is_over; /* the look goes on to no end */
};

static void read_again(void *context);

/* `backend` is borrowed. Never NULL. */
static struct agent_neighbours *agent_neighbours_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings) {
    struct agent_neighbours *neighbours = memory_allocate(sizeof *neighbours);
    *neighbours =
        (struct agent_neighbours){.loop = loop, .backend = backend, .settings = *settings};
    neighbours->timer = event_timer_new(loop, read_again, neighbours);
    rendezvous_key_write_waiting(&neighbours->key);
    return neighbours;
}

/* This and the next two accept NULL. Only after the backend has been freed, so that nothing is
 * under way. */
static void agent_neighbours_free(struct agent_neighbours *neighbours) {
    if (neighbours != NULL) {
        event_timer_free(neighbours->timer);
        text_list_clear(&neighbours->run_ids);
        text_clear(&neighbours->key);
        free(neighbours);
    }
}

static bool neighbours_ask(struct agent_neighbours *neighbours, const struct text *key,
    struct slice expected, struct slice value,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = {.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(key)),
            .expected = expected,
            .value = value},
        .is_raw = true,
        .timeout = neighbours->settings.answer_timeout,
        .done = answered,
        .context = neighbours,
    };
    return rendezvous_backend_ask(neighbours->backend, &call);
}

static bool read_key(struct agent_neighbours *neighbours, const struct text *key,
    void (*answered)(void *context, const struct store_client_result *result)) {
    return neighbours_ask(
        neighbours, key, slice_from_string(NO_VALUE), slice_from_string(NO_VALUE), answered);
}

static struct slice value_of(const struct store_client_result *result) {
    bool is_there = !slice_equals(result->reply->blob, slice_from_string(NO_VALUE));
    return is_there ? result->reply->blob : (struct slice){0};
}

/* The records of the others, one after the other, and twice. */

static void record_read(void *context, const struct store_client_result *result);

/* Returns false when none is left, or the connection is lost. */
static bool read_next(struct agent_neighbours *neighbours) {
    bool is_asked = false;
    while (neighbours->is_second && neighbours->asked < neighbours->run_ids.count &&
           neighbours->prints[neighbours->asked] == 0) {
        neighbours->asked++;
    }
    if (neighbours->asked < neighbours->run_ids.count) {
        struct text key = {0};
        rendezvous_key_write_record(neighbours->run_ids.items[neighbours->asked++], &key);
        is_asked = read_key(neighbours, &key, record_read);
        text_clear(&key);
    }
    return is_asked;
}

static bool has_found_any(const struct agent_neighbours *neighbours) {
    for (size_t i = 0; i < neighbours->asked; i++) {
        if (neighbours->prints[i] != 0) {
            return true;
        }
    }
    return false;
}

static void go_on(struct agent_neighbours *neighbours) {
    if (neighbours->is_over) {
        neighbours->is_looking = false;
        return;
    }
    if (read_next(neighbours)) {
        return;
    }
    neighbours->is_resting = !neighbours->is_second && has_found_any(neighbours);
    neighbours->is_looking = neighbours->is_resting;
    if (neighbours->is_resting) {
        event_timer_set(neighbours->timer,
            instant_after(event_loop_now(neighbours->loop), neighbours->settings.rest));
    }
}

static void read_again(void *context) {
    struct agent_neighbours *neighbours = context;
    neighbours->is_resting = false;
    neighbours->is_second = true;
    neighbours->asked = 0;
    go_on(neighbours);
}

/* Appends what there is to say of a job that waits. A record that makes no sense is its own job's
 * business. */
static bool describe(const struct agent_neighbours *neighbours, const char *theirs,
    struct slice record, struct text *out_line) {
    struct rendezvous_state state = {0};
    struct text why = {0};
    bool is_absent = true;
    bool waits = rendezvous_state_read_text(record, &is_absent, &state, &why) == FAILURE_NONE &&
                 !is_absent &&
                 rendezvous_waiting_describe_neighbour(
                     &state, theirs, neighbours->settings.run_id, out_line);
    text_clear(&why);
    rendezvous_state_clear(&state);
    return waits;
}

/* Never 0. */
static uint64_t print_of(struct slice record) {
    static const uint64_t key[2];
    return keyed_hash(key, record) | 1;
}

/* Each job that lives writes the times of its nodes' last signs of life, so its record changes. */
static void judge(struct agent_neighbours *neighbours, struct slice record) {
    size_t place = neighbours->asked - 1;
    struct text line = {0};
    uint64_t print = describe(neighbours, neighbours->run_ids.items[place], record, &line)
                         ? print_of(record)
                         : 0;
    if (!neighbours->is_second) {
        neighbours->prints[place] = print;
    } else if (print != 0 && print != neighbours->prints[place] && !neighbours->is_over) {
        log_warning(neighbours->settings.log, "%s", text_string(&line));
    }
    text_clear(&line);
}

static void record_read(void *context, const struct store_client_result *result) {
    struct agent_neighbours *neighbours = context;
    if (result->code != FAILURE_NONE) {
        neighbours->is_looking = false;
        return;
    }
    judge(neighbours, value_of(result));
    go_on(neighbours);
}

/* The list. Where another agent writes at the same time, the next look makes up for it. */

static void add_own(struct agent_neighbours *neighbours, struct slice list) {
    struct text longer = {0};
    if (waiting_list_add(list, neighbours->settings.run_id, &longer)) {
        struct slice value = {(const uint8_t *)longer.data, longer.length};
        (void)neighbours_ask(neighbours, &neighbours->key, list, value, NULL);
    }
    text_clear(&longer);
}

static void list_read(void *context, const struct store_client_result *result) {
    struct agent_neighbours *neighbours = context;
    if (result->code != FAILURE_NONE) {
        neighbours->is_looking = false;
        return;
    }
    text_list_clear(&neighbours->run_ids);
    neighbours->asked = 0;
    neighbours->is_second = false;
    waiting_list_read(value_of(result), neighbours->settings.run_id, AGENT_NEIGHBOURS_MAXIMUM,
        &neighbours->run_ids);
    add_own(neighbours, value_of(result));
    go_on(neighbours);
}

/* Does nothing while a look is under way, or without a connection. */
static void agent_neighbours_look(struct agent_neighbours *neighbours) {
    if (neighbours != NULL && !neighbours->is_looking) {
        neighbours->is_over = false;
        neighbours->is_looking = read_key(neighbours, &neighbours->key, list_read);
    }
}

/* This job waits no longer: nothing more is said of the look that is under way. */
static void agent_neighbours_stop(struct agent_neighbours *neighbours) {
    if (neighbours == NULL) {
        return;
    }
    neighbours->is_over = true;
    if (neighbours->is_resting) {
        event_timer_stop(neighbours->timer);
        neighbours->is_resting = false;
        neighbours->is_looking = false;
    }
}

/* Unready. */

/* Which nodes are not ready for a round that has all its nodes, where the nodes exchange their
 * roles: those that have not published theirs, perhaps because their old workers take long to end.
 * Nothing follows from it but what a node that waits says. */

struct agent_unready {
    struct rendezvous_backend *backend;
    const char *run_id;
    struct duration answer_timeout;
    bool is_asked;
    int64_t asked_round;
    struct text_list asked; /* the addresses of the nodes of the round asked about, by rank */
    int64_t round;          /* of the last answer */
    struct text_list names; /* of those that were not ready then */
};

/* `backend` and `run_id` are borrowed. Never NULL. */
static struct agent_unready *agent_unready_new(
    struct rendezvous_backend *backend, const char *run_id, struct duration answer_timeout) {
    struct agent_unready initial = {
        .backend = backend, .run_id = run_id, .answer_timeout = answer_timeout};
    return memory_duplicate(&initial, sizeof initial);
}

/* Only after the backend has been freed, so that nothing is under way. Accepts NULL. */
static void agent_unready_free(struct agent_unready *unready) {
    if (unready != NULL) {
        text_list_clear(&unready->asked);
        text_list_clear(&unready->names);
        free(unready);
    }
}

static void answered(void *context, const struct store_client_result *result) {
    struct agent_unready *unready = context;
    unready->is_asked = false;
    if (result->code != FAILURE_NONE || result->reply->list.count != unready->asked.count) {
        return;
    }
    text_list_clear(&unready->names);
    unready->round = unready->asked_round;
    for (size_t i = 0; i < unready->asked.count; i++) {
        if (result->reply->list.items[i].length == 0) {
            text_list_add(&unready->names, unready->asked.items[i]);
        }
    }
}

static const char *address_of_rank(const struct rendezvous_state *record, int64_t rank) {
    for (size_t i = 0; i < record->count; i++) {
        if (record->nodes[i].is_participant && record->nodes[i].rank == rank) {
            return record->nodes[i].identity.address;
        }
    }
    return "?";
}

/* Each node that waits asks for the keys of all nodes, so nobody asks in larger rounds. */
#define AGENT_UNREADY_NODES_MAXIMUM ((size_t)64)

/* What is not there is empty for an agent's store. */
static bool unready_ask(struct agent_unready *unready, size_t count) {
    const struct round_key group = {
        .kind = ROUND_KEY_ALL_ROLE_INFOS, .round = unready->asked_round, .node = (int)count};
    struct text_list keys = {0};
    struct slice slices[AGENT_UNREADY_NODES_MAXIMUM];
    round_key_list(&group, unready->run_id, &keys);
    for (size_t i = 0; i < count; i++) {
        slices[i] = slice_from_string(keys.items[i]);
    }
    const struct store_client_call call = {
        .request = {.operation = STORE_MULTI_GET, .keys = slices, .count = count},
        .is_raw = true,
        .timeout = unready->answer_timeout,
        .done = answered,
        .context = unready,
    };
    bool is_asked = rendezvous_backend_ask(unready->backend, &call);
    text_list_clear(&keys);
    return is_asked;
}

/* Asks the store about the round of this record, in which this node is. Returns false, and does
 * nothing, while it is asked already, without a connection, at a store that is no agent's, where
 * the host tells the ranks, and in rounds of too many nodes. */
static bool agent_unready_look(
    struct agent_unready *unready, const struct rendezvous_state *record) {
    size_t count = rendezvous_state_participants(record);
    if (unready->is_asked || count == 0 || count > AGENT_UNREADY_NODES_MAXIMUM ||
        rendezvous_state_is_ranked(record) || !rendezvous_backend_is_at_agent(unready->backend)) {
        return false;
    }
    text_list_clear(&unready->asked);
    for (size_t rank = 0; rank < count; rank++) {
        text_list_add(&unready->asked, address_of_rank(record, (int64_t)rank));
    }
    unready->asked_round = record->round;
    unready->is_asked = unready_ask(unready, count);
    return unready->is_asked;
}

/* Adds the addresses of the nodes that were not ready at the last look, if that was at this round.
 */
static void agent_unready_list(
    const struct agent_unready *unready, int64_t round, struct text_list *out_names) {
    for (size_t i = 0; round == unready->round && i < unready->names.count; i++) {
        text_list_add(out_names, unready->names.items[i]);
    }
}

/* Record. */

struct agent_record {
    struct event_loop *loop;
    const struct agent_rendezvous_settings *settings;
    struct rendezvous_backend *backend;
    struct agent_store_host *host; /* perhaps of no store: another node's then; or NULL, and … */
    struct agent_succession *succession; /* … a register decides who hosts it */
    struct agent_root_cause *root_cause;
    struct agent_learned_list *learned_list;
    struct agent_program *program;
    struct agent_admission *admission;
    struct agent_unready *unready;
    struct agent_neighbours *neighbours; /* NULL: with a register each job has a store of its own */
    struct event_timer *timer;
    struct text tried;                /* the address that agent_record_reached_name told last */
    void (*connected)(void *context); /* anew, to whichever host; NULL: nobody wants to know */
    void *connected_context;
    uint64_t connections;    /* that there have been */
    void *kept;              /* the record, where a program has it; else NULL */
    bool is_kept_open;       /* it was asked for on this connection */
    struct instant deadline; /* of the last CONNECT */
    bool was_connected;      /* to the store, at some time */
    bool is_lost;            /* the connection was lost, and there is no new one yet */
    bool is_calling_roll;    /* and waits for the answers */
    bool is_freed;           /* the end of a look that is cut short by it is no news */
};

static void post(struct agent_record *record, struct rendezvous_event event) {
    agent_mailbox_post(&record->settings->mailbox,
        &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

static void post_kind(struct agent_record *record, enum rendezvous_event_kind kind) {
    post(record, (struct rendezvous_event){.kind = kind});
}

static void post_membership(struct agent_record *record, struct membership_event event) {
    agent_mailbox_post(&record->settings->mailbox,
        &(struct node_event){.part = NODE_MEMBERSHIP, .membership = event});
}

/* What the backend reports. */

static void take_connected(struct agent_record *record, struct rendezvous_event event) {
    record->was_connected = true;
    record->is_lost = false;
    agent_store_host_stop_asking(record->host);
    event.connected.is_host = record->kept == NULL && agent_store_host_is_hosting(record->host);
    agent_program_take_connected(record->program);
    post(record, event);
}

/* The caller frees it. */
static char *explain_loss(const struct agent_record *record, const char *reason) {
    const char *where = record->settings->node->membership.where;
    if (record->is_lost) {
        return text_format("the job's store at %s is lost, and the job with it: %s", where, reason);
    }
    if (record->was_connected) {
        return text_format("this node is cut off from the job's store at %s: %s", where, reason);
    }
    bool is_file = record->settings->config->dynamic.file != NULL;
    struct text hint = {0};
    if (record->host != NULL) {
        agent_store_host_write_hint(record->host, &hint);
    }
    char *text = text_format("%s%s%s", reason,
        is_file ? ""
                : "; is --rdzv-endpoint right, and has the node it names, which hosts the "
                  "store, been started?",
        text_string(&hint));
    text_clear(&hint);
    return text;
}

static void take_loss(struct agent_record *record, struct rendezvous_event event) {
    char *text = event.lost.is_own_doing ? memory_duplicate_string(event.lost.reason)
                                         : explain_loss(record, event.lost.reason);
    if (record->was_connected && !record->is_lost) {
        log_warning(record->settings->log, "%s", text);
    }
    record->is_lost = record->was_connected;
    record->is_kept_open = false;
    record->is_calling_roll = false;
    agent_store_host_stop_asking(record->host);
    event.lost.reason = text;
    post(record, event);
    free(text);
}

/* Where a register says who hosts the store, agent_succession sees it. */
static void see(struct agent_record *record, const struct rendezvous_event *event) {
    bool is_lost_write = event->kind == RENDEZVOUS_EVENT_WRITTEN && !event->written.has_won;
    const struct rendezvous_state *seen = event->kind == RENDEZVOUS_EVENT_RECORD ? event->state
                                          : is_lost_write ? event->written.state
                                                          : NULL;
    if (seen != NULL) {
        agent_store_host_see(record->host, seen);
    }
}

/* What a program has says of the record; what it says too late is not meant for this connection. */
static void kept_told(void *context, const struct rendezvous_event *event) {
    struct agent_record *record = context;
    if (record->is_freed || !record->is_kept_open) {
        return;
    }
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        take_connected(record, *event);
        return;
    }
    if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        log_warning(record->settings->log, "%s", event->lost.reason);
        record->is_lost = record->was_connected;
        record->is_kept_open = false;
        agent_record_disconnect(record);
    }
    see(record, event);
    post(record, *event);
}

/* The store is reached: now the record is, which the machine is told of. */
static void open_kept(struct agent_record *record) {
    record->is_kept_open = true;
    record->settings->kept_record->perform(
        record->kept, &(struct rendezvous_effect){
                          .kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = record->deadline});
}

static void note_connected(struct agent_record *record) {
    record->connections++;
    if (record->settings->reached != NULL) {
        record->settings->reached(record->settings->reached_context);
    }
}

static void told(void *context, const struct rendezvous_event *event) {
    struct agent_record *record = context;
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        note_connected(record);
    }
    if (record->kept != NULL && event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        open_kept(record);
    } else if (record->succession != NULL && agent_succession_take(record->succession, event)) {
        record->is_calling_roll = false;
        if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
            agent_program_take_connected(record->program);
            if (record->connected != NULL) {
                record->connected(record->connected_context);
            }
        }
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        take_connected(record, *event);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        take_loss(record, *event);
    } else {
        record->is_calling_roll &= event->kind != RENDEZVOUS_EVENT_ROLL_ANSWERED;
        see(record, event);
        post(record, *event);
    }
}

/* What the store's host and the root cause report. */

static void tell_hosting(struct agent_record *record) {
    post_membership(record, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING,
                                .port = agent_store_host_port(record->host)});
}

static void now_hosting(void *context) {
    struct agent_record *record = context;
    tell_hosting(record);
    rendezvous_backend_redirect(record->backend, agent_store_host_address(record->host),
        agent_store_host_port(record->host));
}

static void write_obstacle(void *context, struct text *out) {
    const struct agent_record *record = context;
    if (record->backend != NULL) {
        rendezvous_backend_write_obstacle(record->backend, out);
    }
}

/* By which others have come to this machine, or it has come to them. */
static void write_tried_address(const struct agent_record *record, struct text *out) {
    text_append(out, record->host != NULL ? agent_store_host_reached_address(record->host)
                                          : agent_succession_reached_address(record->succession));
    if (out->length == 0) {
        rendezvous_backend_write_own(record->backend, out);
    }
}

/* Where the name leads to the address, it is as good. */
static bool leads_to(const char *addresses_of_name, const char *address) {
    char *list = text_format(" %s", addresses_of_name);
    char *word = text_format(" %s ", address);
    bool is_there = strstr(list, word) != NULL;
    free(word);
    free(list);
    return is_there;
}

const char *agent_record_reached_name(struct agent_record *record) {
    const char *name = record->host != NULL ? agent_store_host_reached_name(record->host) : NULL;
    if (name != NULL || record->settings->config->dynamic.file != NULL) {
        return name;
    }
    text_clear(&record->tried);
    write_tried_address(record, &record->tried);
    bool is_better = record->tried.length > 0 &&
                     !leads_to(record->settings->name_leads_to, text_string(&record->tried));
    return is_better ? text_string(&record->tried) : NULL;
}

static void node_gone(void *context, const struct node_identity *identity, bool has_finished) {
    post(context, (struct rendezvous_event){
                      .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {*identity, has_finished}});
}

static void node_missed(void *context, const struct node_identity *identity, bool is_done) {
    (void)is_done;
    node_gone(context, identity, false);
}

static void node_wished(
    void *context, const struct node_identity *identity, const struct rendezvous_wish *wish) {
    post(context,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WISHED, .wished = {*identity, *wish}});
}

static void stranger_wrote(void *context) {
    post_kind(context, RENDEZVOUS_EVENT_STRANGER_WROTE);
}

static void root_cause_learnt(void *context, const struct failure_account *account) {
    post_membership(context,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, .account = account});
}

static void root_cause_looked(void *context) {
    struct agent_record *record = context;
    if (!record->is_freed) {
        post_membership(
            record, (struct membership_event){.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED});
    }
}

/* What is taken from others is imported here: that is only for nodes that prove themselves, over a
 * connection on which they have. A file needs no proof, but holds no list. */
static bool shares_list(const struct agent_record *record) {
    const struct agent_rendezvous_settings *settings = record->settings;
    return settings->key != NULL && settings->config->dynamic.file == NULL;
}

/* Where nobody warms, or the job has learned nothing yet, the node joins at once. */
static void list_looked_for(void *context, struct slice text) {
    struct agent_record *record = context;
    const struct agent_rendezvous_settings *settings = record->settings;
    bool is_warming = !record->is_freed && text.length > 0 && settings->warm != NULL &&
                      settings->warm(settings->warm_context, text);
    if (!record->is_freed && !is_warming) {
        post_kind(record, RENDEZVOUS_EVENT_WARMED);
    }
}

static void look_for_list(struct agent_record *record) {
    if (shares_list(record)) {
        agent_learned_list_look(record->learned_list);
        return;
    }
    if (record->settings->config->dynamic.file == NULL) {
        log_info(record->settings->log,
            "the job runs: this node joins it without standby workers, since what these would "
            "import is taken only from nodes that prove themselves (--token-file, or munge)");
    }
    post_kind(record, RENDEZVOUS_EVENT_WARMED);
}

static void doubted(void *context, bool is_doubted) {
    struct agent_record *record = context;
    agent_succession_doubt(record->succession, is_doubted);
}

static void judged(void *context, const char *misplaced) {
    post_membership(context,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_MISPLACED, .reason = misplaced});
}

static void left(void *context) {
    post_membership(context, (struct membership_event){.kind = MEMBERSHIP_EVENT_LEFT});
}

static void timer_fired(void *context) {
    post_kind(context, RENDEZVOUS_EVENT_TIMER_FIRED);
}

/* Life. */

static struct duration answer_timeout(const struct agent_record *record) {
    const struct rendezvous_settings *settings = &record->settings->config->dynamic.settings;
    return (struct duration){
        settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt};
}

/* Few nodes cost their host little, and they may meet over any network. */
static struct duration calm_after(const struct launch_config *config) {
    return config->dynamic.settings.delegates ? config->dynamic.settings.calm_after
                                              : (struct duration){0};
}

/* A host that hears rarely of each node would take long to find that one stands still. Its guardian
 * finds it at once. */
static bool is_heard_rarely(const struct rendezvous_settings *settings) {
    return rendezvous_settings_beat(settings).nanoseconds >
           settings->keep_alive_interval.nanoseconds;
}

static void held(void *context, int fd) {
    const struct agent_record *record = context;
    guardian_hold_connection(record->settings->guardian, fd);
}

static struct rendezvous_backend *make_backend(struct agent_record *record) {
    const struct launch_config *config = record->settings->config;
    struct rendezvous_backend_settings backend = {
        .path = config->dynamic.file,
        .run_id = record->settings->preparation->run_id,
        .key = record->settings->key,
        .minimum_nodes = config->minimum_nodes,
        .maximum_nodes = config->maximum_nodes,
        .silence_timeout = config->dynamic.settings.silence_timeout,
        .answer_timeout = answer_timeout(record),
        .calm_after = calm_after(config),
        .delegates = config->dynamic.settings.delegates,
        .follows = record->succession != NULL,
        .observer = {.told = told,
            .doubted = record->succession != NULL ? doubted : NULL,
            .held = is_heard_rarely(&config->dynamic.settings) ? held : NULL,
            .context = record},
    };
    return rendezvous_backend_new(record->loop, &backend);
}

static struct agent_root_cause *make_root_cause(struct agent_record *record) {
    struct agent_root_cause_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .learnt = root_cause_learnt,
        .looked = root_cause_looked,
        .context = record,
    };
    return agent_root_cause_new(record->backend, &settings);
}

static struct agent_learned_list *make_learned_list(struct agent_record *record) {
    struct agent_learned_list_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .answer_timeout = answer_timeout(record),
        .answered = list_looked_for,
        .context = record,
    };
    return agent_learned_list_new(record->backend, &settings);
}

static struct agent_program *make_program(struct agent_record *record) {
    struct agent_program_settings settings = {
        .config = record->settings->config,
        .run_id = record->settings->preparation->run_id,
        .where = record->settings->node->membership.where,
        .address = record->settings->node->membership.address,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .judged = judged,
        .context = record,
        .said = record->settings->said,
    };
    return agent_program_new(record->backend, &settings);
}

static struct agent_admission *make_admission(struct agent_record *record) {
    struct agent_admission_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
    };
    return agent_admission_new(record->loop, record->backend, &settings);
}

/* Half as long again as an agent waits before it writes its next sign of life. */
static struct agent_neighbours *make_neighbours(struct agent_record *record) {
    int64_t interval = record->settings->config->dynamic.settings.keep_alive_interval.nanoseconds;
    struct agent_neighbours_settings settings = {
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .answer_timeout = answer_timeout(record),
        .rest = {interval + interval / 2},
    };
    return record->succession != NULL
               ? NULL
               : agent_neighbours_new(record->loop, record->backend, &settings);
}

static enum failure_code host_store(struct agent_record *record, struct failure *failure) {
    if (record->settings->config->dynamic.register_engine != NULL) {
        return agent_succession_new(record->loop, record->settings, &record->succession, failure);
    }
    struct agent_store_host_settings settings = {
        .config = record->settings->config,
        .run_id = record->settings->preparation->run_id,
        .log = record->settings->log,
        .key = record->settings->key,
        .operations = record->settings->record_store_operations,
        .now_hosting = now_hosting,
        .gone = node_gone,
        .missed = node_missed,
        .record_written = stranger_wrote,
        .wished = node_wished,
        .write_obstacle = write_obstacle,
        .context = record,
    };
    enum failure_code code = agent_store_host_new(record->loop, &settings, &record->host, failure);
    if (code == FAILURE_NONE && agent_store_host_is_hosting(record->host)) {
        tell_hosting(record);
    }
    return code;
}

enum failure_code agent_record_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_record **out_record,
    struct failure *failure) {
    struct agent_record initial = {.loop = loop, .settings = settings};
    struct agent_record *record = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = host_store(record, failure);
    *out_record = record;
    if (code != FAILURE_NONE) {
        return code;
    }
    record->timer = event_timer_new(loop, timer_fired, record);
    record->backend = make_backend(record);
    if (record->succession != NULL) {
        agent_succession_use(record->succession, record->backend);
    }
    record->root_cause = make_root_cause(record);
    record->learned_list = make_learned_list(record);
    record->neighbours = make_neighbours(record);
    record->program = make_program(record);
    record->admission = make_admission(record);
    record->unready =
        agent_unready_new(record->backend, settings->preparation->run_id, answer_timeout(record));
    const struct agent_kept_record *kept = settings->kept_record;
    return kept == NULL ? FAILURE_NONE
                        : kept->open(kept->context, loop, settings->log, kept_told, record,
                              &record->kept, failure);
}

void agent_record_free(struct agent_record *record) {
    if (record == NULL) {
        return;
    }
    record->is_freed = true;
    if (record->kept != NULL) {
        record->settings->kept_record->close(record->kept);
    }
    rendezvous_backend_free(record->backend);
    agent_root_cause_free(record->root_cause);
    agent_learned_list_free(record->learned_list);
    agent_neighbours_free(record->neighbours);
    agent_program_free(record->program);
    agent_admission_free(record->admission);
    agent_unready_free(record->unready);
    agent_store_host_free(record->host);
    agent_succession_free(record->succession);
    event_timer_free(record->timer);
    text_clear(&record->tried);
    free(record);
}

void agent_record_tell_connected(
    struct agent_record *record, void (*connected)(void *context), void *context) {
    record->connected = connected;
    record->connected_context = context;
}

static void write_obstacle_of_store(const struct agent_record *record, struct text *out) {
    size_t length = out->length;
    rendezvous_backend_write_obstacle(record->backend, out);
    if (out->length > length && record->host != NULL) {
        agent_store_host_write_hint(record->host, out);
    }
}

void agent_record_write_obstacle(const struct agent_record *record, struct text *out) {
    size_t length = out->length;
    if (record->succession != NULL) {
        agent_succession_write_obstacle(record->succession, out);
    }
    if (out->length == length) {
        write_obstacle_of_store(record, out);
    }
}

uint64_t agent_record_connection(const struct agent_record *record) {
    return rendezvous_backend_connection_count(record->backend) > 0 ? record->connections : 0;
}

struct rendezvous_backend *agent_record_backend(const struct agent_record *record) {
    return record->backend;
}

/* What is asked. */

static void connect_to_store(struct agent_record *record, const struct rendezvous_effect *effect) {
    record->deadline = effect->deadline;
    record->is_kept_open = false;
    rendezvous_backend_connect(record->backend, &(struct rendezvous_backend_trying){
                                                    .host = agent_store_host_address(record->host),
                                                    .port = agent_store_host_port(record->host),
                                                    .deadline = effect->deadline,
                                                    .refusal_patience = effect->refusal_patience,
                                                });
}

static void serve_others(struct agent_record *record, const struct rendezvous_effect *effect) {
    if (record->succession != NULL) {
        agent_succession_serve(record->succession, effect);
    } else {
        agent_store_host_tell(record->host, effect);
    }
}

/* What a program does in the place of the store; its presence is beside the store's. */
static bool perform_kept(struct agent_record *record, const struct rendezvous_effect *effect) {
    bool is_of_record =
        effect->kind == RENDEZVOUS_EFFECT_FETCH || effect->kind == RENDEZVOUS_EFFECT_WRITE;
    if (record->kept == NULL || (!is_of_record && effect->kind != RENDEZVOUS_EFFECT_PRESENT)) {
        return false;
    }
    if (record->is_kept_open) {
        record->settings->kept_record->perform(record->kept, effect);
    }
    return is_of_record;
}

void agent_record_perform(struct agent_record *record, const struct rendezvous_effect *effect) {
    struct rendezvous_backend *backend = record->backend;
    if (perform_kept(record, effect)) {
        return;
    }
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_CONNECT:
        connect_to_store(record, effect);
        break;
    case RENDEZVOUS_EFFECT_PRESENT:
        rendezvous_backend_present(backend, effect);
        break;
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
        serve_others(record, effect);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
        rendezvous_backend_beat(backend);
        break;
    case RENDEZVOUS_EFFECT_FETCH:
        rendezvous_backend_fetch(backend);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        if (record->succession != NULL) {
            agent_succession_see(record->succession, effect->write.state);
        }
        agent_store_host_see_draft(record->host, effect->write.state);
        rendezvous_backend_write(backend, effect->write.state, effect->write.is_quiet);
        break;
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
        rendezvous_backend_tell_watchers(backend);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        rendezvous_backend_count_finished(backend, effect->round);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
        record->is_calling_roll = true;
        rendezvous_backend_call_roll(backend, effect->roll.round, effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        rendezvous_backend_answer_roll(backend, effect->roll.round, effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        event_timer_set(record->timer, effect->deadline);
        break;
    case RENDEZVOUS_EFFECT_WARM:
        look_for_list(record);
        break;
    case RENDEZVOUS_EFFECT_WORLD:
    case RENDEZVOUS_EFFECT_RELEASED:
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_EXCLUDED:
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_SETTLED:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break; /* the membership's */
    }
}

void agent_record_perform_succession(
    struct agent_record *record, const struct succession_effect *effect) {
    agent_succession_perform(record->succession, effect);
}

void agent_record_publish_root_cause(
    struct agent_record *record, int64_t round, const struct failure_account *account) {
    agent_root_cause_publish(record->root_cause, round, account);
}

void agent_record_publish_learned_list(struct agent_record *record, struct slice text) {
    if (shares_list(record)) {
        agent_learned_list_publish(record->learned_list, text);
    }
}

void agent_record_note_world(struct agent_record *record, const struct rendezvous_effect *effect) {
    agent_program_take_world(record->program, effect);
}

void agent_record_note_parking(struct agent_record *record, enum rendezvous_parking parking) {
    agent_program_take_parking(record->program, parking);
}

void agent_record_note_admission(
    struct agent_record *record, const struct rendezvous_admission *planned) {
    agent_admission_note(record->admission, planned);
}

bool agent_record_look_for_admission(struct agent_record *record) {
    return agent_admission_look(record->admission);
}

void agent_record_describe_admission(const struct agent_record *record, struct text *out) {
    agent_admission_describe(record->admission, out);
}

void agent_record_look_for_neighbours(struct agent_record *record) {
    agent_neighbours_look(record->neighbours);
}

void agent_record_stop_looking_for_neighbours(struct agent_record *record) {
    agent_neighbours_stop(record->neighbours);
}

bool agent_record_look_for_unready(
    struct agent_record *record, const struct rendezvous_state *state) {
    return agent_unready_look(record->unready, state);
}

void agent_record_list_unready(
    const struct agent_record *record, int64_t round, struct text_list *out_names) {
    agent_unready_list(record->unready, round, out_names);
}

void agent_record_look_for_root_cause(struct agent_record *record, int64_t round) {
    agent_root_cause_look(record->root_cause, round);
}

void agent_record_cancel_roll(struct agent_record *record) {
    if (record->is_calling_roll) {
        record->is_calling_roll = false;
        rendezvous_backend_cancel_waits(record->backend);
    }
}

void agent_record_disconnect(struct agent_record *record) {
    record->is_kept_open = false;
    rendezvous_backend_disconnect(record->backend);
}

void agent_record_give_up(struct agent_record *record, const char *reason) {
    rendezvous_backend_disconnect(record->backend);
    if (record->succession != NULL) {
        agent_succession_give_up(record->succession);
        post(record, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FENCED, .reason = reason});
        return;
    }
    take_loss(record, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = reason, .is_silent = true, .is_own_doing = true}});
}

void agent_record_linger(struct agent_record *record, struct duration patience) {
    size_t own = rendezvous_backend_connection_count(record->backend);
    if (record->succession != NULL) {
        agent_succession_linger(record->succession, patience, left, record);
        return;
    }
    agent_store_host_linger(record->host, own, patience, left, record);
}
