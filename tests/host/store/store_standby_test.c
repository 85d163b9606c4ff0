/* SPDX-License-Identifier: BSD-3-Clause */
/* A store that stands by, is served, and stands by again. */
#include "unit.h"

#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store/store_thread.h"

#define HOST_KEY "/job/host"

struct fixture {
    struct event_loop *loop;
    struct store_thread *thread;
    struct remembered_log log;
    struct text news; /* the calls of the observer */
    int port;
};

static void hear_gone(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s is gone %s;", name, value);
}

static void set_up(struct fixture *fixture, const char *standby_key) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    int fd;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    struct store_server_settings settings = {
        .log = &fixture->log.log,
        .presence_prefix = "/p/",
        .standby_key = standby_key,
        .offered_key = "/job/offer",
        .observer = {.gone = hear_gone, .context = fixture},
    };
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->thread, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    store_thread_stop(fixture->thread);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
    text_clear(&fixture->news);
}

static void go_on(void *context) {
    struct fixture *fixture = context;
    event_loop_stop(fixture->loop);
}

static void stand_by(struct fixture *fixture, const char *answer) {
    store_thread_stand_by(fixture->thread, answer, go_on, fixture);
    event_loop_run(fixture->loop);
}

static void serve(struct fixture *fixture, const char *key, const char *value) {
    struct store_seeds seeds = {0};
    store_seeds_add(&seeds, key, slice_from_string(value));
    store_thread_serve(fixture->thread, &seeds, go_on, fixture);
    assert_int_equal(seeds.count, 0);
    event_loop_run(fixture->loop);
}

FIXTURE_TEST_AFTER(it_tells_who_hosts_and_nothing_else, set_up(&fixture, HOST_KEY)) {
    int early = client_open(fixture->port);
    client_expect_value(NULL, early, HOST_KEY, "");
    stand_by(fixture, "nobody");
    stand_by(fixture, "the third"); /* connections stay */
    client_expect_value(NULL, early, HOST_KEY, "the third");
    int client = client_open(fixture->port);
    client_expect_ping(NULL, client, 7);
    client_expect_value(NULL, client, HOST_KEY, "the third");
    client_ask(client,
        &(struct store_request){.operation = STORE_GET, .key = slice_from_string("/p/served")});
    client_expect_close(NULL, client);
    client_expect_ping(NULL, early, 8);
    close(early);
    close(client);
    store_thread_stop(fixture->thread); /* so that its log is read by nobody else */
    fixture->thread = NULL;
    assert_non_null(strstr(text_string(&fixture->log.text),
        "turned away: this node does not host the job's store at present"));
}

FIXTURE_TEST_AFTER(a_client_of_a_store_is_turned_away, set_up(&fixture, HOST_KEY)) {
    static const struct store_request requests[] = {
        {.operation = STORE_SET, .key = {(const uint8_t *)HOST_KEY, sizeof HOST_KEY - 1}},
        {.operation = STORE_COMPARE_SET, .key = {(const uint8_t *)HOST_KEY, sizeof HOST_KEY - 1}},
        {.operation = STORE_SET, .key = {(const uint8_t *)"/p/n", 4}},
        {.operation = STORE_ADD, .key = {(const uint8_t *)"/init/", 6}, .number = 1},
        {.operation = STORE_COUNT_KEYS},
        {.operation = STORE_LIST_KEYS},
        {.operation = STORE_CANCEL_WAIT},
    };
    stand_by(fixture, "nobody");
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        int client = client_open(fixture->port);
        client_ask(client, &requests[i]);
        client_expect_close(NULL, client);
        close(client);
    }
    int asker = client_open(fixture->port);
    client_expect_value(NULL, asker, HOST_KEY, "nobody");
    close(asker);
    assert_string_equal(text_string(&fixture->news), "");
}

FIXTURE_TEST_AFTER(it_begins_to_serve_what_it_is_given, set_up(&fixture, HOST_KEY)) {
    stand_by(fixture, "nobody");
    int early = client_open(fixture->port);
    client_expect_ping(NULL, early, 1);
    serve(fixture, "/job/record", "of the last term");
    client_expect_value(NULL, early, "/job/record", "of the last term");
    client_set(early, "/job/record", "of this term");
    int late = client_open(fixture->port);
    client_expect_ping(NULL, early, 2);
    client_expect_value(NULL, late, "/job/record", "of this term");
    close(early);
    close(late);
}

FIXTURE_TEST_AFTER(
    a_store_that_is_deposed_forgets_everything_and_everyone, set_up(&fixture, HOST_KEY)) {
    stand_by(fixture, "nobody");
    serve(fixture, "/job/record", "of term 1");
    int node = client_open(fixture->port);
    client_set(node, "/p/n", "runs");
    client_expect_ping(NULL, node, 1);
    stand_by(fixture, "the second");
    client_expect_close(NULL, node);
    assert_string_equal(text_string(&fixture->news), "n is gone runs;");
    int asker = client_open(fixture->port);
    client_expect_value(NULL, asker, HOST_KEY, "the second");
    serve(fixture, "/job/other", "of term 3");
    client_expect_value(NULL, asker, "/job/record", "");
    client_expect_value(NULL, asker, "/p/n", "");
    client_expect_value(NULL, asker, "/p/served", "1");
    client_expect_value(NULL, asker, "/job/other", "of term 3");
    close(node);
    close(asker);
}

static void assert_offered(int client) {
    client_ask(client, &(struct store_request){.operation = STORE_QUEUE_LENGTH,
                           .key = slice_from_string("/job/offer")});
    const uint8_t one[8] = {1};
    client_expect(NULL, client, one, sizeof one);
}

/* Else whoever comes first would not see the offer, and take no part in what is offered. */
FIXTURE_TEST_AFTER(
    what_is_offered_is_there_from_before_the_first_client_on, set_up(&fixture, NULL)) {
    int client = client_open(fixture->port);
    assert_offered(client);
    close(client);
    tear_down(fixture);
    set_up(fixture, HOST_KEY);
    stand_by(fixture, "nobody");
    for (int term = 0; term < 2; term++) {
        serve(fixture, "/job/record", "of a term");
        client = client_open(fixture->port);
        assert_offered(client);
        close(client);
        stand_by(fixture, "another");
    }
}

FIXTURE_TEST_AFTER(many_terms_follow_each_other, set_up(&fixture, HOST_KEY)) {
    for (int term = 0; term < 100; term++) {
        char *answer = text_format("term %d", term);
        stand_by(fixture, answer);
        int client = client_open(fixture->port);
        client_expect_value(NULL, client, HOST_KEY, answer);
        serve(fixture, "/job/term", answer);
        client_expect_value(NULL, client, "/job/term", answer);
        close(client);
        free(answer);
    }
}

/* Nobody waits: what is asked is carried out in its order all the same. */
FIXTURE_TEST_AFTER(it_may_be_told_at_any_time, set_up(&fixture, HOST_KEY)) {
    struct store_seeds seeds = {0};
    store_thread_stand_by(fixture->thread, "nobody", NULL, NULL);
    store_seeds_add(&seeds, "/job/record", slice_from_string("twice"));
    store_thread_serve(fixture->thread, &seeds, NULL, NULL);
    store_thread_stand_by(fixture->thread, "the second", NULL, NULL);
    stand_by(fixture, "the third");
    int client = client_open(fixture->port);
    client_expect_value(NULL, client, HOST_KEY, "the third");
    close(client);
    store_seeds_add(&seeds, "/job/record", slice_from_string("never served"));
    store_thread_serve(fixture->thread, &seeds, go_on, fixture);
}
