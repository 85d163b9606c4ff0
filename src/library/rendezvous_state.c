/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous_state.h: the record of a job, for those who only look at it. */
#include <muster/rendezvous_state.h>

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "library/library_settings.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* What is read takes no more than so many times its length, next to which the rest is small. */
#define MEMORY_FACTOR 16

/* What a program gets points into the house's own record. */
struct owned_state {
    struct muster_rendezvous_state shown;
    struct rendezvous_state state;
    struct muster_rendezvous_node nodes[];
};

static double seconds_of(bool is_there, struct wall_time time) {
    return is_there ? (double)time.nanoseconds / NANOSECONDS_PER_SECOND : 0;
}

static struct muster_rendezvous_node show_node(
    const struct rendezvous_state *state, const struct rendezvous_node *node) {
    return (struct muster_rendezvous_node){
        .addr = node->identity.address,
        .pid = node->identity.pid,
        .local_id = node->identity.local_id,
        .is_muster = node_identity_is_muster(&node->identity),
        .is_participant = node->is_participant,
        .is_waiting = node->is_waiting,
        .is_redundant = node->is_redundant,
        .is_done = node->is_done,
        .rank = state->is_complete && node->is_participant ? node->rank : -1,
        .last_heartbeat = seconds_of(node->has_heartbeat, node->heartbeat),
    };
}

static struct muster_rendezvous_state show_state(
    const struct rendezvous_state *state, const struct muster_rendezvous_node *nodes) {
    return (struct muster_rendezvous_state){
        .round = state->round,
        .is_complete = state->is_complete,
        .is_closed = state->is_closed,
        .deadline = seconds_of(state->has_deadline, state->deadline),
        .nodes = nodes,
        .node_count = state->count,
        .participant_count = rendezvous_state_participants(state),
        .waiting_count = rendezvous_state_waiting(state),
        .redundant_count = rendezvous_state_redundant(state),
        .reason = state->reason,
        .has_failed = state->has_failed,
        .restarts = state->restarts,
        .next_restarts = state->next_restarts,
        .wanted = state->wanted,
        .signal = state->signal,
        .is_draining = state->is_draining,
        .is_doubted = state->is_doubted,
        .is_ranked = rendezvous_state_is_ranked(state),
    };
}

static struct muster_rendezvous_state *keep(struct rendezvous_state *state_taken) {
    struct owned_state *owned =
        memory_allocate(sizeof *owned + state_taken->count * sizeof owned->nodes[0]);
    owned->state = *state_taken;
    for (size_t i = 0; i < owned->state.count; i++) {
        owned->nodes[i] = show_node(&owned->state, &owned->state.nodes[i]);
    }
    owned->shown = show_state(&owned->state, owned->nodes);
    return &owned->shown;
}

void muster_rendezvous_state_free(struct muster_rendezvous_state *state) {
    struct owned_state *owned = (struct owned_state *)state; /* it begins with what is shown */
    if (owned != NULL) {
        rendezvous_state_clear(&owned->state);
        free(owned);
    }
}

/* The record of `whose`, as a text of base64 or bare. */
static enum muster_error read_state(struct slice input, bool is_text, const char *whose,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure) {
    struct rendezvous_state state = {0};
    struct text why = {0};
    bool is_absent = input.length == 0;
    enum failure_code code = FAILURE_NONE;
    if (!spare_memory_is_enough_for(input.length, MEMORY_FACTOR)) {
        return library_fail(failure, MUSTER_ERROR_MEMORY, "there is no memory for the record");
    }
    if (!is_absent && is_text) {
        code = rendezvous_state_read_text(input, &is_absent, &state, &why);
    } else if (!is_absent) {
        code = rendezvous_state_read_pickle(input, &state, &why);
    }
    enum muster_error error = MUSTER_OK;
    if (code != FAILURE_NONE) {
        error = library_fail(
            failure, library_error(code), "%s cannot be read: %s", whose, text_string(&why));
    } else if (is_absent) {
        error = library_fail(failure, MUSTER_ERROR_MISSING, "%s is empty", whose);
    } else {
        *out_state = keep(&state);
    }
    text_clear(&why);
    return error;
}

enum muster_error muster_rendezvous_state_read(const void *state, size_t length,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure) {
    if (state == NULL || out_state == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no %s",
            state == NULL ? "record" : "place for the state");
    }
    if (length > RENDEZVOUS_STATE_TEXT_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "the record is longer than %zu bytes",
            RENDEZVOUS_STATE_TEXT_MAXIMUM);
    }
    enum muster_error error = library_memory_check(failure);
    if (error != MUSTER_OK) {
        return error;
    }
    return read_state((struct slice){state, length}, false, "the record", out_state, failure);
}

/* From a store. */

struct reading {
    const char *run_id;
    struct muster_rendezvous_state *state;
    enum muster_error error;
    struct muster_failure failure;
};

static enum muster_error say_missing(const char *run_id, struct muster_failure *failure) {
    return library_fail(failure, MUSTER_ERROR_MISSING,
        "the store has no record of job '%s' (key " MUSTER_RENDEZVOUS_STATE_KEY "%s)", run_id,
        run_id);
}

static void take_record(void *context, const struct muster_store_result *result) {
    struct reading *reading = context;
    if (result->error != MUSTER_OK) {
        return;
    }
    char *whose = text_format("the record of job '%s' (key " MUSTER_RENDEZVOUS_STATE_KEY "%s)",
        reading->run_id, reading->run_id);
    reading->error = read_state((struct slice){result->value.data, result->value.length}, true,
        whose, &reading->state, &reading->failure);
    free(whose);
    if (reading->error == MUSTER_ERROR_MISSING) {
        say_missing(reading->run_id, &reading->failure);
    }
}

static enum muster_error get_state(struct muster_store *store, const char *key, const char *run_id,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure) {
    struct reading reading = {.run_id = run_id};
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    int exists = 0;
    request.operation = MUSTER_STORE_GET;
    request.key = key;
    enum muster_error error = muster_store_check(store, &key, 1, &exists, failure);
    if (error == MUSTER_OK && !exists) {
        return say_missing(run_id, failure);
    }
    if (error == MUSTER_OK) {
        error = muster_store_call(store, &request, take_record, &reading, failure);
    }
    if (error == MUSTER_OK && reading.error != MUSTER_OK && failure != NULL) {
        *failure = reading.failure;
    }
    if (error == MUSTER_OK && reading.error == MUSTER_OK) {
        *out_state = reading.state;
    }
    return error == MUSTER_OK ? reading.error : error;
}

enum muster_error muster_rendezvous_state_get(struct muster_store *store, const char *run_id,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure) {
    if (store == NULL || out_state == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no %s",
            store == NULL ? "store" : "place for the state");
    }
    enum muster_error error =
        library_text_check("run id", run_id, MUSTER_STORE_KEY_MAXIMUM, failure);
    if (error == MUSTER_OK) {
        error = library_memory_check(failure);
    }
    if (error == MUSTER_OK) {
        char *key = text_format(MUSTER_RENDEZVOUS_STATE_KEY "%s", run_id);
        error = get_state(store, key, run_id, out_state, failure);
        free(key);
    }
    return error;
}
