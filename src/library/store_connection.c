/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/store_connection.h"

#include <stdlib.h>

#include "base/memory.h"

/* A request under way. */
struct pending {
    struct pending *next;
    struct pending *previous;
    struct store_connection *connection;
    const void *user;
    store_connection_done *done; /* NULL: nobody wants the answer any more */
    void *context;
};

struct store_connection {
    struct embedded_loop *embedded;
    struct job_token *token; /* or NULL */
    struct store_access *access;
    size_t references;
    struct pending *first;
    struct pending *last;
    struct store_connection_observer observer;
    const void *observing_user;
    bool is_settled;     /* there is a connection, or there will be none */
    struct failure over; /* why there is none; its code is FAILURE_NONE as long as there may be */
};

static void keep_end(struct store_connection *connection, const struct failure *failure) {
    connection->is_settled = true;
    if (failure != NULL) {
        connection->over = *failure;
    }
    event_loop_stop(embedded_loop_inside(connection->embedded));
}

static void take_connected(void *context, const struct failure *failure) {
    struct store_connection *connection = context;
    keep_end(connection, failure);
    if (connection->observer.connected != NULL) {
        connection->observer.connected(connection->observer.context, failure);
    }
}

static void take_lost(void *context, const struct failure *failure) {
    struct store_connection *connection = context;
    keep_end(connection, failure);
    if (connection->observer.lost != NULL) {
        connection->observer.lost(connection->observer.context, failure);
    }
}

static enum failure_code begin(const struct store_connection_observer *observer, const void *user,
    struct store_connection **out_connection, struct failure *failure) {
    struct store_connection *connection = memory_allocate(sizeof *connection);
    connection->observer = *observer;
    connection->observing_user = user;
    connection->references = 1;
    enum failure_code code = embedded_loop_new(&connection->embedded, failure);
    if (code != FAILURE_NONE) {
        free(connection);
        return code;
    }
    *out_connection = connection;
    return FAILURE_NONE;
}

enum failure_code store_connection_over_tcp(const struct store_client_settings *settings,
    struct job_token *token_taken, const struct store_connection_observer *observer,
    const void *user, struct store_connection **out_connection, struct failure *failure) {
    struct store_connection *connection = NULL;
    enum failure_code code = begin(observer, user, &connection, failure);
    if (code != FAILURE_NONE) {
        job_token_free(token_taken);
        return code;
    }
    struct store_client_settings own = *settings;
    own.key = job_token_key(token_taken);
    own.connected = take_connected;
    own.lost = take_lost;
    own.context = connection;
    connection->token = token_taken;
    connection->access = store_access_over_tcp(embedded_loop_inside(connection->embedded), &own);
    embedded_loop_note(connection->embedded);
    *out_connection = connection;
    return FAILURE_NONE;
}

enum failure_code store_connection_over_file(const struct file_store_settings *settings,
    const struct store_connection_observer *observer, const void *user,
    struct store_connection **out_connection, struct failure *failure) {
    struct store_connection *connection = NULL;
    enum failure_code code = begin(observer, user, &connection, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct file_store_settings own = *settings;
    own.connected = take_connected;
    own.lost = take_lost;
    own.context = connection;
    connection->access = store_access_over_file(embedded_loop_inside(connection->embedded), &own);
    embedded_loop_note(connection->embedded);
    *out_connection = connection;
    return FAILURE_NONE;
}

struct store_connection *store_connection_share(struct store_connection *connection) {
    connection->references++;
    return connection;
}

static void release(struct store_connection *connection) {
    connection->references--;
    if (connection->references > 0) {
        return;
    }
    store_access_free(connection->access); /* calls back what nobody wants any more */
    embedded_loop_free(connection->embedded);
    job_token_free(connection->token);
    free(connection);
}

static struct pending *first_of(const struct store_connection *connection, const void *user) {
    struct pending *pending = connection->first;
    while (pending != NULL && (pending->user != user || pending->done == NULL)) {
        pending = pending->next;
    }
    return pending;
}

void store_connection_leave(struct store_connection *connection, const void *user) {
    static const struct store_client_result cancelled = {
        .code = FAILURE_CANCELLED, .message = "the store was freed"};
    struct pending *pending;
    if (connection->observing_user == user) {
        connection->observer = (struct store_connection_observer){0};
    }
    while ((pending = first_of(connection, user)) != NULL) {
        store_connection_done *done = pending->done;
        pending->done = NULL;
        done(pending->context, &cancelled, 0);
    }
    release(connection);
}

static void link_pending(struct store_connection *connection, struct pending *pending) {
    pending->previous = connection->last;
    if (connection->last != NULL) {
        connection->last->next = pending;
    } else {
        connection->first = pending;
    }
    connection->last = pending;
}

static void unlink_pending(struct store_connection *connection, struct pending *pending) {
    if (pending->previous != NULL) {
        pending->previous->next = pending->next;
    } else {
        connection->first = pending->next;
    }
    if (pending->next != NULL) {
        pending->next->previous = pending->previous;
    } else {
        connection->last = pending->previous;
    }
}

static void answered(void *context, const struct store_client_result *result) {
    struct pending *pending = context;
    struct store_connection *connection = pending->connection;
    unlink_pending(connection, pending);
    if (pending->done != NULL) {
        pending->done(pending->context, result, result->system_error);
    }
    free(pending);
}

void store_connection_send(struct store_connection *connection, const void *user,
    const struct store_client_call *call, store_connection_done *done, void *context) {
    struct pending *pending = memory_allocate(sizeof *pending);
    struct store_client_call own = *call;
    pending->connection = connection;
    pending->user = user;
    pending->done = done;
    pending->context = context;
    link_pending(connection, pending);
    own.done = answered;
    own.context = pending;
    store_access_send(connection->access, &own);
    if (!embedded_loop_is_running(connection->embedded)) {
        embedded_loop_note(connection->embedded);
    }
}

struct embedded_loop *store_connection_loop(struct store_connection *connection) {
    return connection->embedded;
}

void store_connection_process(struct store_connection *connection) {
    store_connection_share(connection);
    embedded_loop_process(connection->embedded);
    release(connection);
}

void store_connection_run_until(struct store_connection *connection, const bool *is_done) {
    store_connection_share(connection);
    embedded_loop_run_until(connection->embedded, is_done);
    release(connection);
}

void store_connection_wake(struct store_connection *connection) {
    event_loop_stop(embedded_loop_inside(connection->embedded));
}

enum failure_code store_connection_settle(
    struct store_connection *connection, struct failure *failure) {
    store_connection_share(connection);
    embedded_loop_run_until(connection->embedded, &connection->is_settled);
    if (connection->over.code != FAILURE_NONE && failure != NULL) {
        *failure = connection->over;
    }
    enum failure_code code = connection->over.code;
    release(connection);
    return code;
}
