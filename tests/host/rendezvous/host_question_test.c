/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/network/tcp_listener.h"
#include "host/rendezvous/host_question.h"
#include "host/store/store_thread.h"

#define KEY "/torch.rendezvous.job/muster/host"
#define ANSWER "{\"muster_host\": 1, \"term\": 3, \"place\": \"29400 node7\"}"

struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct host_question *question;
    int port;
    int told;
    enum host_question_outcome outcome;
    int64_t term;
    char *names; /* of the host; NULL: none */
    char *reason;
};

static void go_on(void *context) {
    struct fixture *fixture = context;
    event_loop_stop(fixture->loop);
}

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void open_store(struct fixture *fixture, const char *standby_key, const char *answer) {
    int fd;
    struct store_server_settings settings = {.standby_key = standby_key};
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture->port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    if (answer != NULL) {
        store_thread_stand_by(fixture->store, answer, go_on, fixture);
        event_loop_run(fixture->loop);
    }
}

static void end(struct fixture *fixture) {
    host_question_free(fixture->question);
    store_thread_stop(fixture->store);
    free(fixture->names);
    free(fixture->reason);
    assert_true(event_loop_free(fixture->loop));
}

static void done(void *context, enum host_question_outcome outcome,
    const struct host_answer *answer, const char *reason) {
    struct fixture *fixture = context;
    fixture->told++;
    fixture->outcome = outcome;
    assert_int_equal(answer != NULL, outcome == HOST_QUESTION_ANSWERED);
    assert_int_equal(reason != NULL, outcome != HOST_QUESTION_ANSWERED);
    if (answer != NULL) {
        fixture->term = answer->term;
        fixture->names = memory_duplicate_string(answer->place.names);
    }
    fixture->reason = memory_duplicate_string(reason);
    host_question_free(fixture->question); /* it may be freed from inside */
    fixture->question = NULL;
    event_loop_stop(fixture->loop);
}

static void begin_to_ask(struct fixture *fixture, int64_t milliseconds) {
    char names[] = "127.0.0.1";
    const struct host_place place = {fixture->port, names};
    struct host_question_settings settings = {
        .place = &place,
        .run_id = "job",
        .patience = duration_from_milliseconds(milliseconds),
        .done = done,
        .context = fixture,
    };
    fixture->question = host_question_ask(fixture->loop, &settings);
}

static enum host_question_outcome ask(struct fixture *fixture, int64_t milliseconds) {
    begin_to_ask(fixture, milliseconds);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->told, 1);
    return fixture->outcome;
}

static void who_stands_by_says_who_hosts(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    open_store(&fixture, KEY, ANSWER);
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_ANSWERED);
    assert_int_equal(fixture.term, 3);
    assert_string_equal(fixture.names, "node7");
    end(&fixture);
}

static void who_knows_of_no_host_says_so(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    open_store(&fixture, KEY, "{\"muster_host\": 1, \"term\": 0}");
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_ANSWERED);
    assert_int_equal(fixture.term, 0);
    assert_null(fixture.names);
    end(&fixture);
}

static void who_hosts_says_so_in_its_store(void **state) {
    (void)state;
    struct fixture fixture;
    struct store_seeds seeds = {0};
    begin(&fixture);
    open_store(&fixture, KEY, NULL);
    store_seeds_add(&seeds, KEY, slice_from_string(ANSWER));
    store_thread_serve(fixture.store, &seeds, NULL, NULL);
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_ANSWERED);
    assert_int_equal(fixture.term, 3);
    end(&fixture);
}

static void a_port_without_a_process_refuses(void **state) {
    (void)state;
    struct fixture fixture;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    begin(&fixture);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0); /* nobody else gets it */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    fixture.port = ntohs(address.sin_port);
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_REFUSED);
    close(fd);
    end(&fixture);
}

/* The kernel accepts for it, and nobody answers. */
static void a_process_that_stands_still_is_silent(void **state) {
    (void)state;
    struct fixture fixture;
    int fd;
    begin(&fixture);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &fixture.port, NULL), FAILURE_NONE);
    assert_int_equal(ask(&fixture, 50), HOST_QUESTION_SILENT);
    close(fd);
    end(&fixture);
}

static void a_store_of_something_else_is_foreign(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    open_store(&fixture, NULL, NULL);
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_FOREIGN);
    assert_non_null(strstr(fixture.reason, "does not say who hosts"));
    end(&fixture);
}

static void a_node_of_another_job_is_foreign(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    open_store(&fixture, "/torch.rendezvous.other/muster/host", ANSWER);
    assert_int_equal(ask(&fixture, 30000), HOST_QUESTION_FOREIGN);
    end(&fixture);
}

static void a_question_that_is_given_up_tells_nothing(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    open_store(&fixture, KEY, ANSWER);
    begin_to_ask(&fixture, 30000);
    host_question_free(fixture.question);
    fixture.question = NULL;
    begin_to_ask(&fixture, 30000);
    (void)event_loop_run_ready(fixture.loop);
    host_question_free(fixture.question);
    fixture.question = NULL;
    (void)event_loop_run_ready(fixture.loop);
    assert_int_equal(fixture.told, 0);
    end(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_stands_by_says_who_hosts),
    cmocka_unit_test(who_knows_of_no_host_says_so),
    cmocka_unit_test(who_hosts_says_so_in_its_store),
    cmocka_unit_test(a_port_without_a_process_refuses),
    cmocka_unit_test(a_process_that_stands_still_is_silent),
    cmocka_unit_test(a_store_of_something_else_is_foreign),
    cmocka_unit_test(a_node_of_another_job_is_foreign),
    cmocka_unit_test(a_question_that_is_given_up_tells_nothing),
};

TEST_MAIN(tests)
