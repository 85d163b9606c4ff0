/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h when it is used wrongly, and when the server goes: an error, and nothing else. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "library/store_fixture.h"

TEST(a_place_where_no_file_can_be_is_an_error_of_the_connection) {
    struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.path = "/nowhere/file";
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_ERROR_SYSTEM);
    assert_int_equal(muster_store_set(store, "k", "v", 1, NULL), MUSTER_ERROR_DISCONNECTED);
    muster_store_free(store);
}

TEST(nobody_at_the_port_is_an_error_of_every_later_call) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    struct muster_failure failure = {0};
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    /* Nobody can listen at a port that is bound here. */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    settings.host = "127.0.0.1";
    settings.port = ntohs(address.sin_port);
    settings.timeout = 0.05;
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_connect(store, &failure), MUSTER_ERROR_TIMEOUT);
    assert_non_null(strstr(failure.message, "127.0.0.1"));
    assert_int_equal(muster_store_set(store, "k", "v", 1, NULL), MUSTER_ERROR_TIMEOUT);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_ERROR_TIMEOUT);
    muster_store_free(store);
    close(fd);
}

TEST(server_that_ends_is_an_error_and_no_signal) {
    struct fixture fixture;
    struct muster_failure failure = {0};
    enum muster_error error = MUSTER_OK;
    int64_t sum;
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    set_up(&fixture);
    set_text(fixture.store, "key", "value");
    assert_text(fixture.store, "key", "value");
    stop_server(&fixture);
    error = muster_store_add(fixture.store, "k", 1, &sum, &failure);
    assert_int_equal(error, MUSTER_ERROR_DISCONNECTED);
    assert_string_not_equal(failure.message, "");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            muster_store_set(fixture.store, "k", "v", 1, NULL), MUSTER_ERROR_DISCONNECTED);
    }
    tear_down(&fixture);
}
