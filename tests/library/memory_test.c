/* SPDX-License-Identifier: BSD-3-Clause */
/* libmuster in a process that has no memory left, as under `ulimit -v`: each function says so, does
 * nothing else, and works again when there is memory. The limit is the kernel's, so what libuv and
 * the C library take counts, too. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <muster/agent.h>
#include <muster/health.h>
#include <muster/local_timer.h>
#include <muster/rendezvous_state.h>
#include <muster/store.h>
#include <muster/timer_server.h>

#include "library/memory_fixture.h"
#include "library/rendezvous_fixture.h"

#define LARGE_BYTES ((size_t)4 << 20)

static char *large;

static int begin(void **state) {
    (void)state;
    leave_memory_alone();
    large = calloc(1, LARGE_BYTES);
    return large == NULL;
}

static int end(void **state) {
    (void)state;
    free(large);
    return 0;
}

/* A skipped test makes nothing that would have to be freed. */
static void set_up_or_skip(struct fixture *fixture) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    set_up(fixture);
}

#define MEMORY_TEST(name) FIXTURE_TEST_AFTER(name, set_up_or_skip(&fixture))

/* With an object that was made before. */

static struct muster_store *connect_store(const struct fixture *fixture) {
    struct muster_store *store = open_store(fixture);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_OK);
    return store;
}

MEMORY_TEST(store_is_useless_without_memory_and_useful_again) {
    struct muster_failure failure = {0};
    struct muster_store *prefixed = NULL;
    struct muster_bytes value = {0};
    const struct muster_store_request ping = MUSTER_STORE_REQUEST;
    struct muster_store *store = connect_store(fixture);
    exhaust(0);
    enum muster_error errors[] = {muster_store_set(store, "key", "value", 5, &failure),
        muster_store_get(store, "key", &value, NULL), muster_store_process(store, NULL),
        muster_store_submit(store, &ping, NULL, NULL, NULL),
        muster_store_new_prefix(store, "p", &prefixed, NULL), muster_store_connect(store, NULL)};
    relieve();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        assert_int_equal(errors[i], MUSTER_ERROR_MEMORY);
    }
    assert_int_equal(failure.error, MUSTER_ERROR_MEMORY);
    assert_string_equal(failure.message, "there is no memory");
    assert_null(prefixed);
    assert_null(value.data);
    assert_int_equal(muster_store_set(store, "key", "value", 5, NULL), MUSTER_OK);
    assert_int_equal(muster_store_get(store, "key", &value, NULL), MUSTER_OK);
    assert_memory_equal(value.data, "value", 5);
    muster_bytes_clear(&value);
    muster_store_free(store);
}

/* It is the connection's end: what was sent already would have to be skipped. */
MEMORY_TEST(answer_that_finds_no_memory_is_told_as_such) {
    struct muster_failure failure = {0};
    struct muster_bytes value = {0};
    struct muster_store *store = connect_store(fixture);
    assert_int_equal(muster_store_set(store, "large", large, LARGE_BYTES, NULL), MUSTER_OK);
    assert_int_equal(muster_store_get(store, "large", &value, NULL), MUSTER_OK);
    muster_bytes_clear(&value);
    exhaust(LARGE_BYTES * 3 / 2); /* of which the server's buffers take one time */
    enum muster_error error = muster_store_get(store, "large", &value, &failure);
    relieve();
    assert_int_equal(error, MUSTER_ERROR_MEMORY);
    assert_int_equal(failure.system_error, ENOMEM);
    assert_non_null(strstr(failure.message, "no memory for what it sends"));
    assert_null(value.data);
    muster_store_free(store);
}

#define VERY_MANY 100000

TEST(server_without_memory_for_a_list_drops_only_who_asks) {
    struct loop loop;
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    open_loop(&loop);
    fill(&loop, 0, VERY_MANY);
    request.operation = MUSTER_STORE_LIST_KEYS;
    exhaust(256 << 10);
    ask_and_wait(&loop, 0, &request);
    enum muster_error error = loop.error;
    relieve();
    assert_int_equal(error, MUSTER_ERROR_DISCONNECTED);
    request.operation = MUSTER_STORE_NUM_KEYS;
    ask_and_wait(&loop, 1, &request);
    assert_int_equal(loop.error, MUSTER_OK);
    close_loop(&loop);
}

/* Making objects. */

static int64_t alive(void *context) {
    (void)context;
    return 0;
}

struct made {
    struct muster_store *store;
    struct muster_store_server *server;
    struct muster_health_server *health;
    struct muster_timer_server *timers;
    struct muster_rendezvous *rendezvous;
    struct muster_rendezvous_state *record;
    struct muster_agent *agent;
};

static void make_all(
    struct fixture *fixture, bool starts_agent, struct made *made, enum muster_error errors[7]) {
    struct muster_tcp_store_settings tcp = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store_server_settings server = MUSTER_STORE_SERVER_SETTINGS;
    struct muster_health_settings health = MUSTER_HEALTH_SETTINGS;
    struct muster_timer_server_settings timers = MUSTER_TIMER_SERVER_SETTINGS;
    struct muster_agent_settings agent = MUSTER_AGENT_SETTINGS;
    const struct muster_rendezvous_settings rendezvous = settings_of(fixture, 1, 1);
    tcp.host = "127.0.0.1";
    tcp.port = 1;
    health.alive = alive;
    timers.path = "/tmp/muster-memory-test-is-not-made";
    agent.entrypoint = "true";
    agent.local_world_size = starts_agent ? 1 : 0; /* which is refused */
    errors[0] = muster_store_new_tcp(&tcp, &made->store, NULL);
    errors[1] = muster_store_server_new(&server, &made->server, NULL);
    errors[2] = muster_health_server_new(&health, &made->health, NULL);
    errors[3] = muster_timer_server_new(&timers, &made->timers, NULL);
    errors[4] = muster_rendezvous_new(&rendezvous, &made->rendezvous, NULL);
    errors[5] = muster_rendezvous_state_read("x", 1, &made->record, NULL);
    errors[6] = muster_agent_start(&agent, &made->agent, NULL);
}

MEMORY_TEST(nothing_is_made_without_memory) {
    struct made made = {0};
    static const struct made none;
    enum muster_error errors[7];
    exhaust(0);
    make_all(fixture, true, &made, errors);
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    int error = errno;
    relieve();
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(errors[i], MUSTER_ERROR_MEMORY);
    }
    assert_null(queue);
    assert_int_equal(error, ENOMEM);
    assert_memory_equal(&made, &none, sizeof made);
}

/* With more and more memory. */

static void free_all(struct made *made) {
    muster_store_free(made->store);
    muster_store_server_free(made->server);
    muster_health_server_free(made->health);
    muster_timer_server_free(made->timers);
    muster_rendezvous_free(made->rendezvous);
}

TEST(what_is_made_is_whole) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < STEPS; i++) {
        struct fixture fixture;
        struct made made = {0};
        enum muster_error errors[7];
        set_up(&fixture);
        exhaust(steps[i] << 10);
        make_all(&fixture, false, &made, errors);
        relieve();
        assert_true((errors[0] == MUSTER_OK) == (made.store != NULL));
        assert_true((errors[1] == MUSTER_OK) == (made.server != NULL));
        assert_true((errors[2] == MUSTER_OK) == (made.health != NULL));
        assert_true((errors[3] == MUSTER_OK) == (made.timers != NULL));
        assert_true((errors[4] == MUSTER_OK) == (made.rendezvous != NULL));
        assert_true(i < STEPS - 1 || (errors[0] == MUSTER_OK && errors[1] == MUSTER_OK));
        assert_true(i < STEPS - 1 || (errors[3] == MUSTER_OK && errors[4] == MUSTER_OK));
        free_all(&made);
        tear_down(&fixture);
    }
}

/* A failure of this kind is one that a program can go on after. */
static void assert_told(enum muster_error error) {
    assert_true(
        error == MUSTER_OK || error == MUSTER_ERROR_MEMORY || error == MUSTER_ERROR_DISCONNECTED);
}

#define MANY 2000

static void use(struct muster_store *store, enum muster_error errors[6]) {
    static char names[MANY][16];
    static const char *keys[MANY];
    static struct muster_slice values[MANY];
    struct muster_bytes value = {0};
    struct muster_store_request list = MUSTER_STORE_REQUEST;
    list.operation = MUSTER_STORE_LIST_KEYS;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "key %d", i);
        keys[i] = names[i];
        values[i] = (struct muster_slice){"v", 1};
    }
    errors[0] = muster_store_set(store, "small", "value", 5, NULL);
    errors[1] = muster_store_set(store, "large", large, LARGE_BYTES, NULL);
    errors[2] = muster_store_multi_set(store, keys, values, MANY, NULL);
    errors[3] = muster_store_call(store, &list, NULL, NULL, NULL);
    errors[4] = errors[1] == MUSTER_OK ? muster_store_get(store, "large", &value, NULL) : MUSTER_OK;
    muster_bytes_clear(&value);
    errors[5] = errors[0] == MUSTER_OK ? muster_store_get(store, "small", &value, NULL) : MUSTER_OK;
    muster_bytes_clear(&value);
}

TEST(store_and_its_server_live_on_what_there_is) {
    enum muster_error errors[6];
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < STEPS; i++) {
        struct fixture fixture;
        struct muster_bytes value = {0};
        set_up(&fixture);
        struct muster_store *store = connect_store(&fixture);
        assert_int_equal(muster_store_set_timeout(store, 60, NULL), MUSTER_OK);
        exhaust(steps[i] << 10);
        use(store, errors);
        relieve();
        for (size_t each = 0; each < 6; each++) {
            assert_told(errors[each]);
            assert_true(i > 0 || errors[each] == MUSTER_ERROR_MEMORY || each > 3);
            assert_true(i < STEPS - 1 || errors[each] == MUSTER_OK);
        }
        muster_store_free(store);
        store = connect_store(&fixture);
        assert_int_equal(muster_store_set(store, "key", "value", 5, NULL), MUSTER_OK);
        assert_int_equal(muster_store_get(store, "key", &value, NULL), MUSTER_OK);
        muster_bytes_clear(&value);
        muster_store_free(store);
        tear_down(&fixture);
    }
}

static void set(struct loop *loop, const char *key, size_t length) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = MUSTER_STORE_SET;
    request.key = key;
    request.value = (struct muster_slice){large, length};
    ask_and_wait(loop, 0, &request);
}

TEST(server_in_a_loop_lives_on_what_there_is) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < STEPS; i++) {
        struct loop loop;
        struct muster_store_request request = MUSTER_STORE_REQUEST;
        open_loop(&loop);
        exhaust(steps[i] << 10);
        set(&loop, "small", 5);
        set(&loop, "large", LARGE_BYTES);
        request.operation = MUSTER_STORE_LIST_KEYS;
        ask_and_wait(&loop, 0, &request);
        relieve();
        assert_true(i < STEPS - 1 || loop.error == MUSTER_OK);
        request.operation = MUSTER_STORE_NUM_KEYS;
        ask_and_wait(&loop, 1, &request);
        assert_int_equal(loop.error, MUSTER_OK);
        close_loop(&loop);
    }
}

static enum muster_error live_a_while(struct muster_rendezvous *node) {
    enum muster_error error = MUSTER_OK;
    for (int turns = 0; turns < 5; turns++) {
        struct pollfd place = {.fd = muster_rendezvous_fd(node), .events = POLLIN};
        enum muster_error next = muster_rendezvous_process(node, NULL);
        error = next != MUSTER_OK ? next : error;
        (void)poll(&place, 1, 1);
    }
    return error;
}

TEST(node_takes_part_when_there_is_memory_again) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    for (size_t i = 0; i < STEPS; i++) {
        struct fixture fixture;
        set_up(&fixture);
        fixture.memory.state = malloc(1 << 16); /* where the backend has room for its record */
        struct seen *node = add_by_backend(&fixture, 1, 1);
        ask(node);
        exhaust(steps[i] << 10);
        enum muster_error error = live_a_while(node->rendezvous);
        relieve();
        assert_true(error == MUSTER_ERROR_MEMORY || (i > 0 && error == MUSTER_OK));
        await_round(&fixture, node, 1);
        tear_down(&fixture);
    }
}

/* Timers between a program and its children, and those of a FIFO. */

static void ignore_request(void *context, const struct muster_local_timer_request *request) {
    (void)request;
    ++*(int *)context;
}

TEST(local_timers_are_asked_for_again) {
    int seen = 0;
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    assert_non_null(queue);
    exhaust(0);
    int result = muster_local_timer_acquire(queue, "scope", 100);
    int error = errno;
    relieve();
    assert_int_equal(result, -1);
    assert_int_equal(error, ENOMEM);
    assert_int_equal(muster_local_timer_acquire(queue, "scope", 100), 0);
    assert_int_equal(muster_local_timer_queue_get(queue, 1, 1, ignore_request, &seen), 1);
    assert_int_equal(seen, 1);
    muster_local_timer_queue_free(queue);
}

TESTS_WITHIN(begin, end)
