/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of the library in one process, in one loop: at a store of the library's own, or by a
 * backend that keeps its record in memory. */
#ifndef MUSTER_TESTS_LIBRARY_RENDEZVOUS_FIXTURE_H
#define MUSTER_TESTS_LIBRARY_RENDEZVOUS_FIXTURE_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/rendezvous.h>
#include <muster/store.h>
#include <muster/store_server.h>

#define LONG_MILLISECONDS 60000
#define MOST_NODES 4

/* What one node was told. */
struct seen {
    struct muster_rendezvous *rendezvous;
    int answers;
    enum muster_error error;
    char message[MUSTER_FAILURE_MESSAGE_SIZE];
    struct muster_rendezvous_info info;
    char prefix[300];
    char master[300];
    int rounds_over;
    char reason[300];
};

struct memory {
    char *state;
    size_t length;
    int version; /* 0: there is no record */
    int gets;
    enum muster_error trouble; /* what the functions return, as often as … */
    int troubles;
    int is_damaged;
};

struct fixture {
    struct muster_store_server *server;
    char endpoint[64];
    struct memory memory;
    struct muster_rendezvous_backend backend;
    struct seen nodes[MOST_NODES];
    int count;
};

static inline void take_round(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *info) {
    struct seen *seen = context;
    seen->answers++;
    seen->error = error;
    snprintf(seen->message, sizeof seen->message, "%s", message);
    if (info != NULL) {
        seen->info = *info;
        snprintf(seen->prefix, sizeof seen->prefix, "%s", info->store_prefix);
        snprintf(seen->master, sizeof seen->master, "%s",
            info->master_addr != NULL ? info->master_addr : "");
    }
}

static inline void take_end_of_round(void *context, const char *reason) {
    struct seen *seen = context;
    seen->rounds_over++;
    snprintf(seen->reason, sizeof seen->reason, "%s", reason);
}

/* The backend in memory. */

static inline enum muster_error fill_in(
    struct memory *memory, struct muster_rendezvous_record *record) {
    record->exists = memory->version > 0;
    record->state = memory->is_damaged ? "damaged" : memory->state;
    record->state_length = memory->is_damaged ? 7 : memory->length;
    record->token = &memory->version;
    record->token_length = sizeof memory->version;
    return MUSTER_OK;
}

static inline enum muster_error be_away(struct memory *memory, struct muster_failure *failure) {
    memory->troubles--;
    snprintf(failure->message, sizeof failure->message, "the disk is away");
    return memory->trouble;
}

static inline enum muster_error get_state(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    struct memory *memory = context;
    memory->gets++;
    return memory->troubles > 0 ? be_away(memory, failure) : fill_in(memory, record);
}

static inline enum muster_error set_state(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    struct memory *memory = context;
    int expected = 0;
    if (memory->troubles > 0) {
        return be_away(memory, failure);
    }
    if (token_length > 0) {
        assert_int_equal(token_length, sizeof expected);
        memcpy(&expected, token, sizeof expected);
    }
    if (expected == memory->version) {
        memory->state = realloc(memory->state, length);
        assert_non_null(memory->state);
        memcpy(memory->state, state, length);
        memory->length = length;
        memory->version++;
        record->is_set = 1;
    }
    return fill_in(memory, record);
}

/* Life. */

static inline void set_up(struct fixture *fixture) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    *fixture = (struct fixture){.backend = MUSTER_RENDEZVOUS_BACKEND};
    settings.host = "127.0.0.1";
    assert_int_equal(muster_store_server_new(&settings, &fixture->server, NULL), MUSTER_OK);
    snprintf(fixture->endpoint, sizeof fixture->endpoint, "127.0.0.1:%d",
        muster_store_server_port(fixture->server));
    fixture->backend.get_state = get_state;
    fixture->backend.set_state = set_state;
    fixture->backend.name = "memory";
    fixture->backend.context = &fixture->memory;
}

static inline void tear_down(struct fixture *fixture) {
    for (int i = 0; i < fixture->count; i++) {
        muster_rendezvous_free(fixture->nodes[i].rendezvous);
    }
    muster_store_server_free(fixture->server);
    free(fixture->memory.state);
}

static inline struct muster_rendezvous_settings settings_of(
    struct fixture *fixture, int min_nodes, int max_nodes) {
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    settings.run_id = "job";
    settings.endpoint = fixture->endpoint;
    settings.is_host = -1;
    settings.local_addr = "127.0.0.1";
    settings.min_nodes = min_nodes;
    settings.max_nodes = max_nodes;
    settings.last_call_timeout = 0.05;
    settings.round_over = take_end_of_round;
    settings.context = &fixture->nodes[fixture->count];
    return settings;
}

static inline struct seen *add_node(
    struct fixture *fixture, const struct muster_rendezvous_settings *settings) {
    struct muster_failure failure = {0};
    struct seen *seen = &fixture->nodes[fixture->count];
    assert_true(fixture->count < MOST_NODES);
    if (muster_rendezvous_new(settings, &seen->rendezvous, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
    fixture->count++;
    return seen;
}

static inline struct seen *add(struct fixture *fixture, int min_nodes, int max_nodes) {
    const struct muster_rendezvous_settings settings = settings_of(fixture, min_nodes, max_nodes);
    return add_node(fixture, &settings);
}

static inline struct seen *add_by_backend(struct fixture *fixture, int min_nodes, int max_nodes) {
    struct muster_rendezvous_settings settings = settings_of(fixture, min_nodes, max_nodes);
    settings.endpoint = NULL;
    settings.backend = &fixture->backend;
    return add_node(fixture, &settings);
}

static inline void ask(struct seen *seen) {
    struct muster_failure failure = {0};
    if (muster_rendezvous_submit_next(seen->rendezvous, take_round, seen, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
}

static inline void drop(struct seen *seen) {
    muster_rendezvous_free(seen->rendezvous);
    seen->rendezvous = NULL;
}

/* One turn of the program's loop. */
static inline void turn(struct fixture *fixture) {
    struct pollfd polled[MOST_NODES];
    for (int i = 0; i < fixture->count; i++) {
        polled[i] = (struct pollfd){
            .fd = muster_rendezvous_fd(fixture->nodes[i].rendezvous), .events = POLLIN};
    }
    assert_true(poll(polled, (nfds_t)fixture->count, LONG_MILLISECONDS) > 0);
    for (int i = 0; i < fixture->count; i++) {
        if (fixture->nodes[i].rendezvous != NULL && polled[i].revents != 0) {
            (void)muster_rendezvous_process(fixture->nodes[i].rendezvous, NULL);
        }
    }
}

static inline void await(struct fixture *fixture, const int *number, int least) {
    while (*number < least) {
        turn(fixture);
    }
}

static inline void await_round(struct fixture *fixture, struct seen *seen, int answers) {
    await(fixture, &seen->answers, answers);
    if (seen->error != MUSTER_OK) {
        fail_msg("%s", seen->message);
    }
}

/* A client of the fixture's store. The caller frees it. */
static inline struct muster_store *open_store(const struct fixture *fixture) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.host = "127.0.0.1";
    settings.port = muster_store_server_port(fixture->server);
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    return store;
}

#endif
