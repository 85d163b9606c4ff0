/* SPDX-License-Identifier: BSD-3-Clause */
/* A server to test stores against: the house's own, on a thread. The stores themselves are those
 * of the library that programs link with. */
#ifndef MUSTER_TESTS_LIBRARY_STORE_FIXTURE_H
#define MUSTER_TESTS_LIBRARY_STORE_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include <muster/store.h>

#include "host/loop/event_loop.h"
#include "host/network/tcp_listener.h"
#include "host/store/store_thread.h"

#define LONG_MILLISECONDS 60000

struct fixture {
    struct event_loop *loop;
    struct store_thread *server;
    int port;
    struct muster_store *store;
    struct muster_failure failure;
    char directory[32];
    char path[64];
};

static inline struct muster_store *open_store(struct fixture *fixture) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.host = "127.0.0.1";
    settings.port = fixture->port;
    assert_int_equal(muster_store_new_tcp(&settings, &store, &fixture->failure), MUSTER_OK);
    return store;
}

static inline void stop_server(struct fixture *fixture) {
    store_thread_stop(fixture->server);
    fixture->server = NULL;
}

static inline void set_up(struct fixture *fixture) {
    int fd;
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    assert_int_equal(store_thread_start(fixture->loop, fd, &(struct store_server_settings){0},
                         &fixture->server, NULL),
        FAILURE_NONE);
    fixture->store = open_store(fixture);
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/muster-store-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->path, sizeof fixture->path, "%s/file", fixture->directory);
}

static inline void tear_down(struct fixture *fixture) {
    muster_store_free(fixture->store);
    stop_server(fixture);
    assert_true(event_loop_free(fixture->loop));
    (void)unlink(fixture->path);
    assert_int_equal(rmdir(fixture->directory), 0);
}

static inline struct muster_store *open_file(struct fixture *fixture) {
    struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.path = fixture->path;
    assert_int_equal(muster_store_new_file(&settings, &store, &fixture->failure), MUSTER_OK);
    return store;
}

static inline size_t count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static inline void set_text(struct muster_store *store, const char *key, const char *value) {
    struct muster_failure failure = {0};
    if (muster_store_set(store, key, value, strlen(value), &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
}

static inline void assert_text(struct muster_store *store, const char *key, const char *expected) {
    struct muster_bytes value = {0};
    struct muster_failure failure = {0};
    if (muster_store_get(store, key, &value, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
    assert_string_equal(value.data, expected);
    assert_int_equal(value.length, strlen(expected));
    muster_bytes_clear(&value);
}

#endif
