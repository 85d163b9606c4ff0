/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h: making and freeing stores, and their requests in general. What waits for one
 * answer is in store_calls.c. */
#include <muster/store.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "library/library_failure.h"
#include "library/library_memory.h"
#include "library/library_settings.h"
#include "library/store_connection.h"
#include "library/store_wording.h"

/* TCPStore's own (c10d Store::kDefaultTimeout). */
#define DEFAULT_SECONDS 300
#define DEFAULT_TIMEOUT duration_from_seconds(DEFAULT_SECONDS)
#define LARGEST_VALUE ((size_t)1 << 30)
#define HOST_MAXIMUM 1024

struct muster_store {
    struct store_connection *connection;
    char *prefix; /* what goes before every key, with its '/'; or "" */
    struct duration timeout;
    size_t value_maximum;
    bool is_freed; /* its requests are being called back */
    void (*connected)(void *context, enum muster_error error, const char *message);
    void (*lost)(void *context, enum muster_error error, const char *message);
    void *context;
};

static void tell(void (*callback)(void *context, enum muster_error error, const char *message),
    void *context, const struct failure *failure) {
    if (callback != NULL) {
        callback(context, failure == NULL ? MUSTER_OK : library_error(failure->code),
            failure == NULL ? "" : failure->message);
    }
}

static void take_connected(void *context, const struct failure *failure) {
    const struct muster_store *store = context;
    tell(store->connected, store->context, failure);
}

static void take_lost(void *context, const struct failure *failure) {
    const struct muster_store *store = context;
    tell(store->lost, store->context, failure);
}

static struct store_connection_observer observer_of(struct muster_store *store) {
    return (struct store_connection_observer){take_connected, take_lost, store};
}

static enum muster_error hand_out(struct muster_store *store_taken, enum failure_code code,
    const struct failure *failure, struct muster_store **out_store,
    struct muster_failure *out_failure) {
    if (code != FAILURE_NONE) {
        free(store_taken->prefix);
        free(store_taken);
        return library_pass_on(out_failure, failure);
    }
    *out_store = store_taken;
    return MUSTER_OK;
}

static enum muster_error check_tcp(struct muster_tcp_store_settings *settings,
    struct duration *out_timeout, struct duration *out_silence, struct muster_failure *failure) {
    enum muster_error error = library_host_check("host", settings->host, HOST_MAXIMUM, failure);
    if (error == MUSTER_OK && settings->token_file != NULL) {
        error = library_path_check("token file", settings->token_file, failure);
    }
    if (error == MUSTER_OK) {
        error = library_time_read(settings->timeout, DEFAULT_TIMEOUT, out_timeout, failure);
    }
    if (error == MUSTER_OK) {
        error = library_silence_read(settings->silence_timeout, out_silence, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (settings->port < 1 || settings->port > 65535) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no port; 1 to 65535 are", settings->port);
    }
    if (settings->value_maximum == 0) {
        settings->value_maximum = MUSTER_STORE_VALUE_MAXIMUM;
    }
    if (settings->value_maximum > LARGEST_VALUE) {
        return library_fail(
            failure, MUSTER_ERROR_LIMIT, "the largest value may have %zu bytes", LARGEST_VALUE);
    }
    return MUSTER_OK;
}

static struct muster_store *new_store(struct duration timeout, size_t value_maximum) {
    struct muster_store *store = memory_allocate(sizeof *store);
    store->prefix = memory_duplicate_string("");
    store->timeout = timeout;
    store->value_maximum = value_maximum;
    return store;
}

enum muster_error muster_store_new_tcp(const struct muster_tcp_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *out_failure) {
    struct muster_tcp_store_settings own;
    struct duration timeout;
    struct duration silence;
    struct job_token *token = NULL;
    struct failure failure = {0};
    if (out_store == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the store");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = check_tcp(&own, &timeout, &silence, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error == MUSTER_OK && own.token_file != NULL &&
        job_token_open(NULL, own.token_file, &token, &failure) != FAILURE_NONE) {
        error = library_pass_on(out_failure, &failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_store *store = new_store(timeout, own.value_maximum);
    const struct store_connection_observer observer = observer_of(store);
    const struct store_client_settings client = {
        .host = own.host,
        .port = own.port,
        .connect_timeout = timeout,
        .silence_timeout = silence,
    };
    store->connected = own.connected;
    store->lost = own.lost;
    store->context = own.context;
    enum failure_code code =
        store_connection_over_tcp(&client, token, &observer, store, &store->connection, &failure);
    return hand_out(store, code, &failure, out_store, out_failure);
}

enum muster_error muster_store_new_file(const struct muster_file_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *out_failure) {
    struct muster_file_store_settings own;
    struct duration timeout;
    struct failure failure = {0};
    if (out_store == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the store");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = library_path_check("path", own.path, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_time_read(own.timeout, DEFAULT_TIMEOUT, &timeout, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_store *store = new_store(timeout, LARGEST_VALUE);
    const struct store_connection_observer observer = observer_of(store);
    const struct file_store_settings file = {
        .path = own.path, .is_visitor = own.is_visitor != 0, .connect_timeout = timeout};
    store->connected = own.connected;
    store->lost = own.lost;
    store->context = own.context;
    enum failure_code code =
        store_connection_over_file(&file, &observer, store, &store->connection, &failure);
    return hand_out(store, code, &failure, out_store, out_failure);
}

static bool is_of_this_process(const struct muster_store *store) {
    return embedded_loop_is_of_this_process(store_connection_loop(store->connection));
}

/* What every function asks first. */
static enum muster_error check_store(
    const struct muster_store *store, struct muster_failure *failure) {
    if (store == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the store is NULL");
    }
    if (!is_of_this_process(store)) {
        return library_fail(
            failure, MUSTER_ERROR_FORKED, "the store belongs to the process that has made it");
    }
    if (store->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the store is being freed");
    }
    return MUSTER_OK;
}

/* What functions ask that do something. */
static enum muster_error check_able(
    const struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_store(store, failure);
    return error == MUSTER_OK ? library_memory_check(failure) : error;
}

/* What functions ask that let the loop run. */
static enum muster_error check_idle(
    const struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_able(store, failure);
    if (error == MUSTER_OK && embedded_loop_is_running(store_connection_loop(store->connection))) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    return error;
}

enum muster_error muster_store_new_prefix(struct muster_store *base, const char *prefix,
    struct muster_store **out_store, struct muster_failure *failure) {
    enum muster_error error = check_able(base, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (prefix == NULL || out_store == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            prefix == NULL ? "the prefix is NULL" : "there is no place for the store");
    }
    size_t length = strlen(base->prefix) + strnlen(prefix, MUSTER_STORE_KEY_MAXIMUM) + 1;
    if (length > MUSTER_STORE_KEY_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "the prefix has more bytes than a key: %d",
            MUSTER_STORE_KEY_MAXIMUM);
    }
    struct muster_store *store = memory_allocate(sizeof *store);
    store->connection = store_connection_share(base->connection);
    store->prefix = text_format("%s%s/", base->prefix, prefix);
    store->timeout = base->timeout;
    store->value_maximum = base->value_maximum;
    *out_store = store;
    return MUSTER_OK;
}

void muster_store_free(struct muster_store *store) {
    if (store == NULL || store->is_freed || !is_of_this_process(store)) {
        return;
    }
    store->is_freed = true; /* for the callbacks that follow */
    store_connection_leave(store->connection, store);
    free(store->prefix);
    free(store);
}

enum muster_error muster_store_connect(
    struct muster_store *store, struct muster_failure *out_failure) {
    struct failure failure = {0};
    enum muster_error error = check_idle(store, out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    return store_connection_settle(store->connection, &failure) == FAILURE_NONE
               ? MUSTER_OK
               : library_pass_on(out_failure, &failure);
}

enum muster_error muster_store_set_timeout(
    struct muster_store *store, double seconds, struct muster_failure *failure) {
    struct duration timeout;
    enum muster_error error = check_store(store, failure);
    if (error == MUSTER_OK) {
        error = library_time_read(seconds, (struct duration){0}, &timeout, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (timeout.nanoseconds == 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the time limit is zero");
    }
    store->timeout = timeout;
    return MUSTER_OK;
}

double muster_store_timeout(const struct muster_store *store) {
    bool is_limited = store != NULL && store->timeout.nanoseconds != DURATION_FOREVER.nanoseconds;
    return is_limited ? duration_seconds(store->timeout) : -1;
}

/* One request of the program, until it is answered. */
struct asked {
    void (*done)(void *context, const struct muster_store_result *result);
    void *context;
};

static void answer(void *context, const struct store_client_result *result, int system_error) {
    struct asked *asked = context;
    struct muster_slice *values = NULL;
    struct muster_store_result told = {
        .error = library_error(result->code),
        .message = result->message != NULL ? result->message : "",
        .system_error = system_error,
        .is_over = result->is_over,
    };
    if (result->reply != NULL) {
        values = memory_allocate(store_wording_value_count(result->reply) * sizeof *values);
        store_wording_of_reply(result->reply, values, &told);
    }
    if (told.error == MUSTER_ERROR_SYSTEM && system_error == ENOMEM) {
        told.error = MUSTER_ERROR_MEMORY;
    }
    if (asked->done != NULL) {
        asked->done(asked->context, &told);
    }
    free(values);
    free(asked);
}

enum muster_error muster_store_submit(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure) {
    struct store_wording wording;
    enum muster_error error = check_able(store, failure);
    if (error == MUSTER_OK) {
        error = store_wording_of_request(
            request, store->prefix, store->value_maximum, store->timeout, &wording, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct asked *asked = memory_allocate(sizeof *asked);
    asked->done = done;
    asked->context = context;
    store_connection_send(store->connection, store, &wording.call, answer, asked);
    store_wording_clear(&wording);
    return MUSTER_OK;
}

/* A request that is waited for. */
struct awaited {
    struct store_connection *connection;
    void (*done)(void *context, const struct muster_store_result *result);
    void *context;
    struct muster_failure failure;
    bool is_done;
};

static void take_awaited(void *context, const struct muster_store_result *result) {
    struct awaited *awaited = context;
    if (awaited->done != NULL) {
        awaited->done(awaited->context, result);
    }
    awaited->is_done = true;
    library_fail(&awaited->failure, result->error, "%s", result->message);
    awaited->failure.system_error = result->system_error;
    store_connection_wake(awaited->connection);
}

enum muster_error muster_store_call(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure) {
    enum muster_error error = check_idle(store, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    struct awaited awaited = {.connection = store->connection, .done = done, .context = context};
    error = muster_store_submit(store, request, take_awaited, &awaited, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    store_connection_run_until(awaited.connection, &awaited.is_done);
    if (awaited.failure.error != MUSTER_OK && failure != NULL) {
        *failure = awaited.failure;
    }
    return awaited.failure.error;
}

int muster_store_fd(const struct muster_store *store) {
    return check_store(store, NULL) == MUSTER_OK
               ? embedded_loop_fd(store_connection_loop(store->connection))
               : -1;
}

enum muster_error muster_store_process(struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_idle(store, failure);
    if (error == MUSTER_OK) {
        store_connection_process(store->connection);
    }
    return error;
}
