/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_diary.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

#define HANDLER "dynamic_rendezvous.py:DynamicRendezvousHandler."
#define EXECUTOR "dynamic_rendezvous.py:_DistributedRendezvousOpExecutor."
#define HOLDER "dynamic_rendezvous.py:_BackendRendezvousStateHolder."
#define BACKEND "c10d_rendezvous_backend.py:"

void rendezvous_diary_clear(struct rendezvous_diary *diary) {
    free(diary->lost);
    diary->lost = NULL;
}

static struct event_rendezvous record_of(const struct rendezvous_diary *diary,
    const struct node_identity *me, const char *name, const char *message) {
    return (struct event_rendezvous){
        .run_id = diary->run_id,
        .name = name,
        .message = message,
        .trouble = "",
        .host_name = me->address,
        .pid = me->pid,
        .state = EVENT_NODE_RUNNING,
        .has_local_id = true,
        .local_id = me->local_id,
    };
}

static void write_record(struct rendezvous_diary *diary, const struct event_rendezvous *record) {
    diary->count++;
    diary->record(diary->context, record);
}

/* "The node 'host_1_0' MIDDLE 'run id'END" */
static char *describe(const struct rendezvous_diary *diary, const struct node_identity *me,
    const char *middle, const char *end) {
    struct text message = {0};
    text_append(&message, "The node '");
    node_identity_describe(me, &message);
    text_append_format(&message, "' %s '%s'%s", middle, diary->run_id, end);
    return text_take(&message);
}

static void tell(struct rendezvous_diary *diary, const struct node_identity *me, const char *name,
    enum event_node_state state, const char *middle, const char *end) {
    char *message = describe(diary, me, middle, end);
    struct event_rendezvous record = record_of(diary, me, name, message);
    record.state = state;
    write_record(diary, &record);
    free(message);
}

/* torchrun has a traceback in the place of `trouble`. */
static void tell_failure(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *name, const char *message, const char *trouble) {
    struct event_rendezvous record = record_of(diary, me, name, message);
    record.state = EVENT_NODE_FAILED;
    record.trouble = trouble;
    write_record(diary, &record);
}

/* The message has the form in which Python shows an exception. */
static void tell_exception(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *kind, const char *reason) {
    const char *name = diary->is_joining ? HANDLER "next_rendezvous" : HANDLER "num_nodes_waiting";
    char *message = text_format("%s: %s", kind, reason);
    tell_failure(diary, me, name, message, reason);
    free(message);
    diary->is_joining = false;
}

void rendezvous_diary_host(struct rendezvous_diary *diary, const struct node_identity *me) {
    if (diary->record == NULL) {
        return;
    }
    char *message = text_format(
        "Process %" PRId64 " hosts the TCP store for the C10d rendezvous backend.", me->pid);
    struct event_rendezvous record = record_of(diary, me, BACKEND "_create_tcp_store", message);
    record.state = EVENT_NODE_INIT;
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

void rendezvous_diary_fail_to_host(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason) {
    if (diary->record == NULL) {
        return;
    }
    char *message = text_format("RendezvousConnectionError: %s", reason);
    struct event_rendezvous record = record_of(diary, me, BACKEND "create_backend", message);
    record.state = EVENT_NODE_FAILED;
    record.trouble = reason;
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

void rendezvous_diary_attempt(struct rendezvous_diary *diary, const struct node_identity *me) {
    if (diary->record != NULL) {
        diary->is_joining = true;
        tell(diary, me, HANDLER "next_rendezvous", EVENT_NODE_RUNNING,
            "attempts to join the next round of the rendezvous", ".");
    }
}

void rendezvous_diary_join(struct rendezvous_diary *diary, const struct node_identity *me,
    int64_t round, int rank, int count) {
    if (diary->record == NULL) {
        return;
    }
    char *middle = text_format("has joined round %" PRId64 " of the rendezvous", round);
    char *end = text_format(" as rank %d in a world of size %d.", rank, count);
    char *message = describe(diary, me, middle, end);
    struct event_rendezvous record = record_of(diary, me, HANDLER "next_rendezvous", message);
    record.has_rank = true;
    record.rank = rank;
    diary->is_joining = false;
    write_record(diary, &record);
    free(message);
    free(end);
    free(middle);
}

void rendezvous_diary_close(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_closed) {
    if (diary->record == NULL) {
        return;
    }
    if (has_closed) {
        tell(diary, me, HANDLER "_close", EVENT_NODE_SUCCEEDED, "has closed the rendezvous", ".");
        return;
    }
    const char *kind = diary->is_connected ? "RendezvousTimeoutError" : "RendezvousConnectionError";
    char *end = text_format(" due to an error of type %s.", kind);
    char *message = describe(diary, me, "has failed to shutdown the rendezvous", end);
    tell_failure(diary, me, HANDLER "shutdown", message, kind);
    free(message);
    free(end);
}

/* The changes of a write. */

static void tell_change(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *name, const char *what, int64_t round) {
    char *middle = text_format("%s of round %" PRId64 " of the rendezvous", what, round);
    tell(diary, me, name, EVENT_NODE_RUNNING, middle, ". Pending sync.");
    free(middle);
}

/* Only called when the node has left the record. For a node that moves from one list to another
 * only the new list is recorded. */
static void tell_of_my_leaving(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_node *mine) {
    if (mine->is_participant) {
        tell_change(diary, me, EXECUTOR "_remove_from_participants",
            "removed itself from the participants", before->round);
    } else if (mine->is_waiting) {
        tell_change(diary, me, EXECUTOR "_remove_from_wait_list",
            "removed itself from the wait list", before->round + 1);
    } else if (mine->is_redundant) {
        tell_change(diary, me, EXECUTOR "_remove_from_redundancy_list",
            "removed itself from the redundant list", before->round + 1);
    }
}

static void tell_of_my_coming(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *after, const struct rendezvous_node *mine) {
    if (mine->is_participant) {
        tell_change(diary, me, EXECUTOR "_add_to_participants", "added itself to the participants",
            after->round);
    } else if (mine->is_waiting) {
        tell_change(diary, me, EXECUTOR "_add_to_wait_list", "added itself to the wait list",
            after->round + 1);
    } else if (mine->is_redundant) {
        tell_change(diary, me, EXECUTOR "_add_to_redundancy_list",
            "added itself to the redundancy list", after->round + 1);
    }
}

/* Both may be NULL: the node is not in the record. */
static bool is_same_place(const struct rendezvous_node *left, const struct rendezvous_node *right) {
    return left != NULL && right != NULL && left->is_participant == right->is_participant &&
           left->is_waiting == right->is_waiting && left->is_redundant == right->is_redundant;
}

static void tell_of_my_place(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_state *after) {
    const struct rendezvous_node *old = rendezvous_state_find(before, me);
    const struct rendezvous_node *mine = rendezvous_state_find(after, me);
    bool is_in_another_round =
        mine != NULL && mine->is_participant && before->round != after->round;
    if (mine == NULL && old != NULL) {
        tell_of_my_leaving(diary, me, before, old);
    } else if (mine != NULL && (is_in_another_round || !is_same_place(old, mine))) {
        tell_of_my_coming(diary, me, after, mine);
    }
    if (mine != NULL && mine->has_heartbeat &&
        (old == NULL || old->heartbeat.nanoseconds != mine->heartbeat.nanoseconds)) {
        tell(diary, me, EXECUTOR "_keep_alive", EVENT_NODE_RUNNING,
            "updated its keep-alive heartbeat time for the rendezvous", ". Pending sync.");
    }
}

/* For example "'a_1_0', 'b_1_0'"; NULL when there is none. */
static char *name_lost(const struct node_identity *me, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    struct text names = {0};
    struct node_table places = rendezvous_state_places(after);
    for (size_t i = 0; i < before->count; i++) {
        const struct node_identity *identity = &before->nodes[i].identity;
        if (!node_identity_equals(identity, me) &&
            node_table_find(&places, identity) == NODE_TABLE_ABSENT) {
            text_append(&names, names.length > 0 ? ", '" : "'");
            node_identity_describe(identity, &names);
            text_append(&names, "'");
        }
    }
    node_table_clear(&places);
    return names.length > 0 ? text_take(&names) : NULL;
}

static void tell_of_write(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_state *after) {
    uint64_t count = diary->count;
    tell_of_my_place(diary, me, before, after);
    if (after->is_complete && (!before->is_complete || before->round != after->round)) {
        char *middle = text_format("marked round %" PRId64 " of the rendezvous", after->round);
        tell(diary, me, EXECUTOR "_mark_rendezvous_complete", EVENT_NODE_SUCCEEDED, middle,
            " as complete. Pending sync.");
        free(middle);
    }
    if (after->is_closed && !before->is_closed) {
        tell(diary, me, EXECUTOR "_mark_rendezvous_closed", EVENT_NODE_SUCCEEDED,
            "marked the rendezvous", " as closed. Pending sync.");
    }
    free(diary->lost);
    diary->lost = name_lost(me, before, after);
    diary->is_change_told = diary->count > count || diary->lost != NULL;
}

/* torchrun's message ends in "since they had no heartbeat". Its record names no node, so it has no
 * local id. */
static void tell_of_lost_nodes(struct rendezvous_diary *diary, const struct node_identity *me) {
    char *message = text_format("As part of the sync operation the node(s) %s have been removed "
                                "from the rendezvous '%s' since they are gone.",
        diary->lost, diary->run_id);
    struct event_rendezvous record = record_of(diary, me, HOLDER "sync", message);
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

/* A write that changes only what torchrun's record does not have gives no record. */
static void tell_of_sync(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_won) {
    if (!diary->is_change_told) {
        return;
    }
    if (has_won && diary->lost != NULL) {
        tell_of_lost_nodes(diary, me);
    }
    rendezvous_diary_clear(diary);
    diary->is_change_told = false;
    tell(diary, me, EXECUTOR "run", EVENT_NODE_RUNNING,
        has_won ? "has successfully synced its local changes with other nodes in the rendezvous"
                : "has a stale state and failed to sync its local changes with other nodes in the "
                  "rendezvous",
        ".");
}

/* Muster notices a lost connection not only by a heartbeat, but gives torchrun's record of a failed
 * heartbeat. */
static void tell_of_lost_connection(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason) {
    rendezvous_diary_clear(diary);
    if (diary->is_connected) {
        char *message =
            describe(diary, me, "has failed to send a keep-alive heartbeat to the rendezvous",
                " due to an error of type RendezvousConnectionError.");
        tell_failure(diary, me, HANDLER "_keep_alive", message, reason);
        free(message);
    }
    diary->is_connected = false;
}

void rendezvous_diary_take(struct rendezvous_diary *diary, const struct rendezvous_machine *machine,
    const struct rendezvous_event *event) {
    const struct node_identity *me = rendezvous_machine_identity(machine);
    if (diary->record == NULL) {
        return;
    }
    switch (event->kind) {
    case RENDEZVOUS_EVENT_JOIN_ASKED:
        rendezvous_diary_attempt(diary, me);
        break;
    case RENDEZVOUS_EVENT_CONNECTED:
        diary->is_connected = true;
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        tell_of_lost_connection(diary, me, event->lost.reason);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        tell_of_sync(diary, me, event->written.has_won);
        break;
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
        diary->is_closing = true;
        break;
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_OPENED:
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_RECORD:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_NODE_GONE:
    case RENDEZVOUS_EVENT_WISHED:
    case RENDEZVOUS_EVENT_STANDING:
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
    case RENDEZVOUS_EVENT_REGISTER:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

void rendezvous_diary_follow(struct rendezvous_diary *diary,
    const struct rendezvous_machine *machine, const struct rendezvous_effect *effect) {
    const struct node_identity *me = rendezvous_machine_identity(machine);
    const struct rendezvous_state *seen = rendezvous_machine_state(machine);
    if (diary->record == NULL) {
        return;
    }
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_BEAT:
        tell(diary, me, HANDLER "_keep_alive", EVENT_NODE_RUNNING,
            "has sent a keep-alive heartbeat to the rendezvous", ".");
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        tell_of_write(diary, me, seen, effect->write.state);
        break;
    case RENDEZVOUS_EFFECT_WORLD:
        rendezvous_diary_join(
            diary, me, effect->world.round, effect->world.group_rank, effect->world.node_count);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
        if (diary->is_joining) {
            tell_exception(diary, me,
                effect->told.is_spare ? "RendezvousGracefulExitError" : "RendezvousClosedError",
                effect->told.reason);
        }
        break;
    case RENDEZVOUS_EFFECT_FAILED:
        tell_exception(diary, me,
            diary->is_connected ? "RendezvousError" : "RendezvousConnectionError",
            effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_SETTLED:
        if (diary->is_closing) {
            rendezvous_diary_close(diary, me, seen->is_closed);
        }
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
    case RENDEZVOUS_EFFECT_PRESENT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
    case RENDEZVOUS_EFFECT_RELEASED:
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    }
}
