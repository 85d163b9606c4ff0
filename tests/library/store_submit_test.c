/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h in a program with a loop of its own: requests that are not waited for, and stores
 * that are freed in every state. */
#include "unit.h"

#include <poll.h>

#include "library/store_fixture.h"

/* What the callbacks were told. */
struct told {
    int calls;
    enum muster_error error;
    char value[64];
    int64_t number;
    struct muster_store *store;    /* to be freed from inside the callback; or NULL */
    enum muster_error from_inside; /* of a function that waits, called from inside */
    int connected;
    int lost;
};

static void note(void *context, const struct muster_store_result *result) {
    struct told *told = context;
    told->calls++;
    told->error = result->error;
    told->number = result->number;
    size_t length = result->value.length < 63 ? result->value.length : 63;
    if (length > 0) {
        memcpy(told->value, result->value.data, length);
    }
    told->value[length] = '\0';
    if (told->store != NULL) {
        told->from_inside = muster_store_set(told->store, "k", "v", 1, NULL);
        assert_int_equal(muster_store_process(told->store, NULL), told->from_inside);
        muster_store_free(told->store);
        muster_store_free(NULL);
        told->store = NULL;
    }
}

static void submit(struct muster_store *store, enum muster_store_operation operation,
    const char *key, const char *value, struct told *told) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    const char *const keys[] = {key};
    request.operation = operation;
    request.key = key;
    request.keys = keys;
    request.count = 1;
    request.value = (struct muster_slice){value, value == NULL ? 0 : strlen(value)};
    assert_int_equal(muster_store_submit(store, &request, note, told, NULL), MUSTER_OK);
}

/* One turn of the program's own loop. */
static void turn(int fd, struct muster_store *store) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, LONG_MILLISECONDS), 1);
    assert_int_equal(muster_store_process(store, NULL), MUSTER_OK);
}

FIXTURE_TEST(requests_are_answered_in_a_loop_of_the_program) {
    struct told set = {0};
    struct told get = {0};
    submit(fixture->store, MUSTER_STORE_SET, "key", "value", &set);
    submit(fixture->store, MUSTER_STORE_GET, "key", NULL, &get);
    assert_int_equal(set.calls, 0); /* never from inside the function */
    while (get.calls == 0) {
        turn(muster_store_fd(fixture->store), fixture->store);
    }
    assert_int_equal(set.calls, 1);
    assert_int_equal(get.error, MUSTER_OK);
    assert_string_equal(get.value, "value");
}

FIXTURE_TEST(wait_ends_when_another_sets_the_key) {
    struct told waiting = {0};
    struct muster_store *other = open_store(fixture);
    submit(fixture->store, MUSTER_STORE_WAIT, "key", NULL, &waiting);
    assert_int_equal(muster_store_process(fixture->store, NULL), MUSTER_OK);
    set_text(other, "key", "value");
    while (waiting.calls == 0) {
        turn(muster_store_fd(fixture->store), fixture->store);
    }
    assert_int_equal(waiting.error, MUSTER_OK);
    muster_store_free(other);
}

FIXTURE_TEST(waiting_function_also_answers_what_was_submitted) {
    struct told set = {0};
    submit(fixture->store, MUSTER_STORE_SET, "key", "value", &set);
    assert_text(fixture->store, "key", "value");
    assert_int_equal(set.calls, 1);
}

FIXTURE_TEST(time_limit_passes_in_a_loop_of_the_program) {
    struct told told = {0};
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = MUSTER_STORE_GET;
    request.key = "never";
    request.timeout = 0.02;
    assert_int_equal(muster_store_submit(fixture->store, &request, note, &told, NULL), MUSTER_OK);
    while (told.calls == 0) {
        turn(muster_store_fd(fixture->store), fixture->store);
    }
    assert_int_equal(told.error, MUSTER_ERROR_TIMEOUT);
}

FIXTURE_TEST(freed_store_calls_back_what_waits) {
    struct told told[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        submit(fixture->store, MUSTER_STORE_GET, "never", NULL, &told[i]);
    }
    for (int i = 0; i < 5; i++) { /* before, while and after it connects */
        assert_int_equal(muster_store_process(fixture->store, NULL), MUSTER_OK);
    }
    muster_store_free(fixture->store);
    fixture->store = NULL;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(told[i].calls, 1);
        assert_int_equal(told[i].error, MUSTER_ERROR_CANCELLED);
    }
}

FIXTURE_TEST(store_may_be_freed_from_inside_its_callback) {
    struct told first = {0};
    struct told second = {0};
    first.store = fixture->store;
    submit(fixture->store, MUSTER_STORE_SET, "key", "value", &first);
    submit(fixture->store, MUSTER_STORE_GET, "never", NULL, &second);
    while (first.calls == 0) {
        turn(muster_store_fd(fixture->store), fixture->store);
    }
    fixture->store = NULL;
    assert_int_equal(first.error, MUSTER_OK);
    assert_int_equal(first.from_inside, MUSTER_ERROR_STATE);
    assert_int_equal(second.calls, 1);
    assert_int_equal(second.error, MUSTER_ERROR_CANCELLED);
}

FIXTURE_TEST(prefixed_store_outlives_what_it_was_made_of) {
    struct muster_store *prefixed;
    struct told of_base = {0};
    struct told of_prefixed = {0};
    assert_int_equal(muster_store_new_prefix(fixture->store, "p", &prefixed, NULL), MUSTER_OK);
    submit(fixture->store, MUSTER_STORE_SET, "p/key", "value", &of_base);
    submit(prefixed, MUSTER_STORE_GET, "key", NULL, &of_prefixed);
    assert_int_equal(muster_store_fd(prefixed), muster_store_fd(fixture->store));
    muster_store_free(fixture->store);
    fixture->store = NULL;
    assert_int_equal(of_base.error, MUSTER_ERROR_CANCELLED);
    assert_int_equal(of_prefixed.calls, 0);
    while (of_prefixed.calls == 0) {
        turn(muster_store_fd(prefixed), prefixed);
    }
    assert_string_equal(of_prefixed.value, "value"); /* the request was on its way, though */
    muster_store_free(prefixed);
}

static void note_connected(void *context, enum muster_error error, const char *message) {
    struct told *told = context;
    assert_non_null(message);
    told->connected++;
    told->error = error;
}

static void note_lost(void *context, enum muster_error error, const char *message) {
    struct told *told = context;
    assert_string_not_equal(message, "");
    told->lost++;
    told->error = error;
}

FIXTURE_TEST(connection_and_its_loss_are_told) {
    struct told told = {0};
    struct muster_store *store = NULL;
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    settings.host = "127.0.0.1";
    settings.port = fixture->port;
    settings.connected = note_connected;
    settings.lost = note_lost;
    settings.context = &told;
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    while (told.connected == 0) {
        turn(muster_store_fd(store), store);
    }
    assert_int_equal(told.error, MUSTER_OK);
    stop_server(fixture);
    while (told.lost == 0) {
        turn(muster_store_fd(store), store);
    }
    assert_int_equal(told.error, MUSTER_ERROR_DISCONNECTED);
    muster_store_free(store);
    assert_int_equal(told.connected + told.lost, 2);
}

FIXTURE_TEST(raw_keys_are_those_of_the_server) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    struct told told = {0};
    set_text(fixture->store, "key", "value");
    request.operation = MUSTER_STORE_GET;
    request.key = "/key";
    request.is_raw = 1;
    assert_int_equal(muster_store_call(fixture->store, &request, note, &told, NULL), MUSTER_OK);
    assert_string_equal(told.value, "value");
}
