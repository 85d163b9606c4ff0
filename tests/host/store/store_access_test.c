/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/network/tcp_listener.h"
#include "host/store/store_access.h"
#include "host/store/store_server.h"
#include "host/store_answers.h"
#include "temporary_tree.h"

#define LONG duration_from_milliseconds(60000)

static void turn_until(struct event_loop *loop, const int *counter) {
    while (*counter == 0) {
        (void)event_loop_run_ready(loop);
    }
}

static struct store_answer ask(
    struct event_loop *loop, struct store_access *access, struct store_request request) {
    struct store_answer answer = {0};
    store_access_send(access, &(struct store_client_call){.request = request,
                                  .timeout = LONG,
                                  .done = store_answer_remember,
                                  .context = &answer});
    turn_until(loop, &answer.calls);
    return answer;
}

/* Asks the same questions whatever kind of store it is. */
static void assert_is_a_store(struct event_loop *loop, struct store_access *access) {
    struct store_request set = {
        .operation = STORE_SET, .key = slice_from_string("k"), .value = slice_from_string("v")};
    struct store_request get = {.operation = STORE_GET, .key = slice_from_string("k")};
    assert_int_equal(ask(loop, access, set).code, FAILURE_NONE);
    assert_string_equal(ask(loop, access, get).text, "v");
    struct store_answer waited = {0};
    struct slice missing = slice_from_string("missing");
    store_access_send(
        access, &(struct store_client_call){
                    .request = {.operation = STORE_WAIT, .keys = &missing, .count = 1},
                    .timeout = LONG,
                    .done = store_answer_remember,
                    .context = &waited});
    store_access_free(access);
    assert_int_equal(waited.code, FAILURE_CANCELLED);
}

TEST(a_server_is_asked_over_tcp) {
    struct event_loop *loop;
    struct store_server *server;
    int fd;
    int port;
    assert_int_equal(event_loop_new(&loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(store_server_new(loop, fd, &(struct store_server_settings){0}, &server, NULL),
        FAILURE_NONE);
    assert_is_a_store(loop, store_access_over_tcp(loop, &(struct store_client_settings){
                                                            .host = "127.0.0.1",
                                                            .port = port,
                                                            .connect_timeout = LONG,
                                                        }));
    store_server_free(server);
    assert_true(event_loop_free(loop));
}

TREE_TEST(a_file_is_asked_likewise) {
    struct event_loop *loop;
    char *path = temporary_tree_path(fixture, "store");
    assert_int_equal(event_loop_new(&loop, NULL), FAILURE_NONE);
    assert_is_a_store(loop, store_access_over_file(loop, &(struct file_store_settings){.path = path,
                                                             .connect_timeout = LONG}));
    assert_true(event_loop_free(loop));
    free(path);
}

TEST(freeing_nothing_is_fine) {
    store_access_free(NULL);
}
