/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_under_test.h"

#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "host/network/tcp_listener.h"
#include "host/store/store_thread.h"
#include "temporary_tree.h"

/* What the command line chose. */
static const char *host;
static int port;
static const char *path;
static bool has_own_file;
static struct temporary_tree own_tree;
static struct store_thread *own_server;

bool store_under_test_parse(int argument_count, char **arguments) {
    const char *kind = argument_count > 1 ? arguments[1] : "";
    if (text_equals(kind, "own") && argument_count == 2) {
        host = "127.0.0.1";
        return true;
    }
    if (text_equals(kind, "tcp") && argument_count == 4) {
        host = arguments[2];
        port = atoi(arguments[3]);
        return port > 0;
    }
    if (text_equals(kind, "file") && (argument_count == 2 || argument_count == 3)) {
        has_own_file = argument_count == 2;
        path = arguments[2];
        return true;
    }
    (void)fprintf(stderr, "usage: %s own | tcp HOST PORT | file [PATH]\n", arguments[0]);
    return false;
}

static void start_own_server(struct event_loop *loop) {
    int fd;
    assert_int_equal(tcp_listener_open(host, 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(loop, fd, &(struct store_server_settings){0}, &own_server, NULL),
        FAILURE_NONE);
}

int store_under_test_set_up(void **state) {
    struct store_under_test *store = calloc(1, sizeof *store);
    assert_int_equal(event_loop_new(&store->loop, NULL), FAILURE_NONE);
    if (has_own_file) {
        temporary_tree_init(&own_tree);
        path = temporary_tree_path(&own_tree, "store");
    } else if (path == NULL && port == 0) {
        start_own_server(store->loop);
    }
    store->first = store_client_open(store);
    store->second = store_client_open(store);
    *state = store;
    return 0;
}

int store_under_test_tear_down(void **state) {
    struct store_under_test *store = *state;
    store_access_free(store->first);
    store_access_free(store->second);
    store_thread_stop(own_server);
    bool is_clean = event_loop_free(store->loop);
    if (has_own_file) {
        temporary_tree_clear(&own_tree);
    }
    free(store);
    return is_clean ? 0 : 1;
}

struct store_access *store_client_open(struct store_under_test *store) {
    if (path != NULL) {
        return store_access_over_file(
            store->loop, &(struct file_store_settings){.path = path, .connect_timeout = PATIENCE});
    }
    return store_access_over_tcp(store->loop,
        &(struct store_client_settings){.host = host, .port = port, .connect_timeout = PATIENCE});
}

struct store_place store_under_test_place(void) {
    return (struct store_place){path, host, port};
}

char *unused_key(const char *name) {
    static int count;
    return text_format("conformance.%ld.%d/%s", (long)getpid(), count++, name);
}

void answer_clear(struct answer *answer) {
    bytes_clear(&answer->blob);
    *answer = (struct answer){0};
}

static void append(struct answer *answer, struct slice blob) {
    assert_int_equal(bytes_append(&answer->blob, blob.data, blob.length), FAILURE_NONE);
}

static void take(void *context, const struct store_client_result *result) {
    struct answer *answer = context;
    answer->calls++;
    answer->code = result->code;
    if (result->code != FAILURE_NONE) {
        if (result->code != FAILURE_CANCELLED) {
            print_error("%s: %s\n", answer->operation, result->message);
        }
        return;
    }
    answer->reply = *result->reply;
    if (answer->reply.kind == STORE_REPLY_BLOB) {
        append(answer, answer->reply.blob);
    } else if (answer->reply.kind == STORE_REPLY_BLOBS) {
        size_t room = sizeof answer->lengths / sizeof answer->lengths[0];
        assert_true(answer->reply.list.count <= room);
        for (size_t i = 0; i < answer->reply.list.count; i++) {
            answer->lengths[i] = answer->reply.list.items[i].length;
            append(answer, answer->reply.list.items[i]);
        }
    }
}

static void send_request(struct store_access *client, const struct store_request *request,
    bool waits_first, struct answer *answer) {
    *answer = (struct answer){.operation = store_operation_name(request->operation)};
    store_access_send(client, &(struct store_client_call){.request = *request,
                                  .waits_first = waits_first,
                                  .timeout = PATIENCE,
                                  .done = take,
                                  .context = answer});
}

void begin(
    struct store_access *client, const struct store_request *request, struct answer *answer) {
    send_request(client, request, false, answer);
}

void begin_get(
    struct store_access *client, const struct store_request *request, struct answer *answer) {
    send_request(client, request, true, answer);
}

void await(struct store_under_test *store, struct answer *answer) {
    while (answer->calls == 0) {
        (void)event_loop_run_ready(store->loop);
    }
    assert_int_equal(answer->calls, 1);
    assert_int_equal(answer->code, FAILURE_NONE);
}

static struct answer ask(struct store_under_test *store, struct store_access *client,
    const struct store_request *request) {
    struct answer answer;
    begin(client, request, &answer);
    await(store, &answer);
    return answer;
}

void expect_stored(struct store_under_test *store, struct store_access *client, const char *key,
    const char *expected) {
    struct answer answer;
    begin_get(client,
        &(struct store_request){.operation = STORE_GET, .key = slice_from_string(key)}, &answer);
    await(store, &answer);
    assert_true(slice_equals(bytes_slice(&answer.blob), slice_from_string(expected)));
    answer_clear(&answer);
}

int64_t add(
    struct store_under_test *store, struct store_access *client, const char *key, int64_t number) {
    struct answer answer = ask(store, client,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(key), .number = number});
    return answer.reply.integer;
}

bool exists(struct store_under_test *store, struct store_access *client, const char *key) {
    struct slice keys[] = {slice_from_string(key)};
    struct answer answer = ask(
        store, client, &(struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1});
    return answer.reply.byte == STORE_READY;
}

void set(struct store_under_test *store, struct store_access *client, const char *key,
    const char *value) {
    struct answer answer = ask(store, client,
        &(struct store_request){.operation = STORE_SET,
            .key = slice_from_string(key),
            .value = slice_from_string(value)});
    assert_int_equal(answer.reply.kind, STORE_REPLY_NONE);
    assert_true(exists(store, client, key));
}

bool remove_key(struct store_under_test *store, struct store_access *client, const char *key) {
    struct answer answer = ask(store, client,
        &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string(key)});
    return answer.reply.integer == 1;
}

struct answer compare_set(struct store_under_test *store, struct store_access *client,
    const char *key, struct slice expected, struct slice desired) {
    return ask(store, client,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(key),
            .expected = expected,
            .value = desired});
}
