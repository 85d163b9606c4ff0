/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of libmuster, through the public headers alone: several at once, freed in every
 * state, and made so often that whatever is left behind would be seen. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/store.h>
#include <muster/store_server.h>
#include <muster/timer_server.h>

#include "library/process_look.h"

#define LONG_MILLISECONDS 60000
#define CYCLES 10000
#define WARM_CYCLES 1000
/* Less than a byte for each further cycle would be more than this. */
#define GROWTH_BYTES (1 << 20)

/* Two of each kind, all in the loop of one program. */
struct fixture {
    char directory[32];
    struct muster_store_server *servers[2];
    struct muster_store *stores[2];
    struct muster_timer_server *timers;
};

static struct muster_store_server *serve(void) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    struct muster_store_server *server = NULL;
    struct muster_failure failure = {0};
    settings.host = "127.0.0.1";
    settings.is_polled = 1;
    if (muster_store_server_new(&settings, &server, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
    return server;
}

static struct muster_store *open_store(int port) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.host = "127.0.0.1";
    settings.port = port;
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    return store;
}

static struct muster_store *open_file(const char *directory) {
    char path[64];
    struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
    struct muster_store *store = NULL;
    snprintf(path, sizeof path, "%s/file", directory);
    settings.path = path;
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_OK);
    return store;
}

static struct muster_timer_server *serve_timers(const char *directory) {
    char path[64];
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    struct muster_timer_server *server = NULL;
    snprintf(path, sizeof path, "%s/timers", directory);
    settings.path = path;
    assert_int_equal(muster_timer_server_new(&settings, &server, NULL), MUSTER_OK);
    return server;
}

static void make_directory(char directory[32]) {
    snprintf(directory, 32, "/tmp/muster-library-XXXXXX");
    assert_non_null(mkdtemp(directory));
}

static void set_up(struct fixture *fixture) {
    make_directory(fixture->directory);
    for (int i = 0; i < 2; i++) {
        fixture->servers[i] = serve();
        fixture->stores[i] = open_store(muster_store_server_port(fixture->servers[i]));
    }
    fixture->timers = serve_timers(fixture->directory);
    assert_int_equal(muster_timer_server_start(fixture->timers, NULL), MUSTER_OK);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 2; i++) {
        muster_store_free(fixture->stores[i]);
        muster_store_server_free(fixture->servers[i]);
    }
    muster_timer_server_free(fixture->timers);
    assert_int_equal(rmdir(fixture->directory), 0);
}

/* One turn of a loop that polls everything. */
static void turn(const struct fixture *fixture) {
    struct pollfd waiting[5] = {
        {.fd = muster_store_fd(fixture->stores[0]), .events = POLLIN},
        {.fd = muster_store_fd(fixture->stores[1]), .events = POLLIN},
        {.fd = muster_store_server_fd(fixture->servers[0]), .events = POLLIN},
        {.fd = muster_store_server_fd(fixture->servers[1]), .events = POLLIN},
        {.fd = muster_timer_server_fd(fixture->timers), .events = POLLIN},
    };
    assert_true(poll(waiting, 5, LONG_MILLISECONDS) > 0);
    for (int i = 0; i < 2; i++) {
        if (waiting[i].revents != 0) {
            assert_int_equal(muster_store_process(fixture->stores[i], NULL), MUSTER_OK);
        }
        if (waiting[i + 2].revents != 0) {
            assert_int_equal(muster_store_server_process(fixture->servers[i], NULL), MUSTER_OK);
        }
    }
    if (waiting[4].revents != 0) {
        assert_int_equal(muster_timer_server_process(fixture->timers, NULL), MUSTER_OK);
    }
}

struct answers {
    int count;
    int cancelled;
    int lost;
    char value[16];
};

static void take_answer(void *context, const struct muster_store_result *result) {
    struct answers *answers = context;
    answers->count++;
    answers->cancelled += result->error == MUSTER_ERROR_CANCELLED;
    answers->lost += result->is_over;
    size_t length = result->value.length < sizeof answers->value ? result->value.length : 0;
    if (length > 0) {
        memcpy(answers->value, result->value.data, length);
    }
    answers->value[length] = '\0';
}

static void submit(struct muster_store *store, enum muster_store_operation operation,
    const char *key, const char *value, struct answers *answers) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = operation;
    request.key = key;
    request.value = (struct muster_slice){value, strlen(value)};
    assert_int_equal(muster_store_submit(store, &request, take_answer, answers, NULL), MUSTER_OK);
}

FIXTURE_TEST(two_stores_and_two_servers_live_in_one_loop) {
    struct answers answers[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        submit(
            fixture->stores[i], MUSTER_STORE_SET, "key", i == 0 ? "first" : "second", &answers[i]);
        submit(fixture->stores[i], MUSTER_STORE_GET, "key", "", &answers[i]);
    }
    while (answers[0].count < 2 || answers[1].count < 2) {
        turn(fixture);
    }
    assert_string_equal(answers[0].value, "first");
    assert_string_equal(answers[1].value, "second");
}

/* A store is freed after so many turns, with a request that waits: while it connects, greets, has
 * sent, waits. The server is freed before it or after it. */
TEST(objects_are_freed_in_every_state) {
    for (int round = 0; round < 2 * 12; round++) {
        struct fixture fixture;
        struct answers waiting = {0};
        struct answers other = {0};
        set_up(&fixture);
        submit(fixture.stores[0], MUSTER_STORE_GET, "missing", "", &waiting);
        submit(fixture.stores[1], MUSTER_STORE_SET, "key", "value", &other);
        for (int i = 0; i < round / 2 && other.count == 0; i++) {
            turn(&fixture);
        }
        if (round % 2 == 0) {
            muster_store_server_free(fixture.servers[0]);
            fixture.servers[0] = NULL;
        }
        muster_store_free(fixture.stores[0]);
        fixture.stores[0] = NULL;
        assert_int_equal(waiting.count, 1);
        assert_int_equal(waiting.cancelled, 1);
        tear_down(&fixture);
    }
}

TEST(a_server_that_goes_is_told_and_raises_no_signal) {
    struct fixture fixture;
    struct answers answers = {0};
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    set_up(&fixture);
    submit(fixture.stores[0], MUSTER_STORE_SET, "key", "value", &answers);
    while (answers.count == 0) {
        turn(&fixture);
    }
    muster_store_server_free(fixture.servers[0]);
    fixture.servers[0] = NULL;
    for (int i = 0; i < 100; i++) { /* into a connection that nobody reads */
        submit(fixture.stores[0], MUSTER_STORE_SET, "key", "value", &answers);
    }
    while (answers.count < 101) {
        turn(&fixture);
    }
    assert_true(answers.lost > 0);
    tear_down(&fixture);
}

FIXTURE_TEST(a_child_frees_nothing_of_its_parents) {
    struct answers answers = {0};
    int status;
    submit(fixture->stores[0], MUSTER_STORE_GET, "key", "", &answers);
    turn(fixture);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 2; i++) {
            muster_store_free(fixture->stores[i]);
            muster_store_server_free(fixture->servers[i]);
        }
        muster_timer_server_free(fixture->timers);
        _exit(answers.count); /* nothing was called back */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The waiting one is answered, by a connection of another store. */
    struct muster_store *other = open_store(muster_store_server_port(fixture->servers[0]));
    struct muster_store *first = fixture->stores[0];
    struct answers set = {0};
    submit(other, MUSTER_STORE_SET, "key", "value", &set);
    muster_store_free(fixture->stores[1]);
    fixture->stores[1] = other;
    while (answers.count == 0) {
        turn(fixture);
    }
    assert_ptr_equal(first, fixture->stores[0]);
    assert_string_equal(answers.value, "value");
}

static void make_and_free_all(const char *directory) {
    struct muster_store *prefixed = NULL;
    struct muster_store *file = open_file(directory);
    struct muster_store *tcp = open_store(1);
    struct muster_store_server *server = serve();
    struct muster_timer_server *timers = serve_timers(directory);
    assert_int_equal(muster_store_new_prefix(file, "p", &prefixed, NULL), MUSTER_OK);
    muster_store_free(file);
    muster_store_free(prefixed);
    muster_store_free(tcp);
    muster_store_server_free(server);
    muster_timer_server_free(timers);
}

TEST(ten_thousand_of_each_leave_nothing_behind) {
    char directory[32];
    char path[64];
    long warm = 0;
    make_directory(directory);
    size_t before = process_descriptors();
    int cycles = PROCESS_IS_SANITIZED ? WARM_CYCLES : CYCLES; /* one would show a leak there */
    for (int i = 0; i < cycles; i++) {
        make_and_free_all(directory);
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    assert_int_equal(process_descriptors(), before);
    if (!PROCESS_IS_SANITIZED) { /* they keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
    snprintf(path, sizeof path, "%s/file", directory);
    (void)unlink(path);
    assert_int_equal(rmdir(directory), 0);
}
