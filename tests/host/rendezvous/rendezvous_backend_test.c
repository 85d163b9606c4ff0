/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/rendezvous_backend_fixture.h"

FIXTURE_TEST_AFTER(who_connects_in_vain_is_sent_to_where_the_store_is, set_up(&fixture, true)) {
    int fd;
    int port;
    struct node *node = &fixture->nodes[0];
    rendezvous_backend_disconnect(node->backend);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    begin_to_connect(node, port); /* no store listens there */
    (void)event_loop_run_ready(fixture->loop);
    rendezvous_backend_redirect(node->backend, "127.0.0.1", store_thread_port(fixture->store));
    await(fixture, 1);
    assert_null(node->trouble);
    fetch(node);
    assert_false(node->has_state);
    close(fd);
}

FIXTURE_TEST_AFTER(each_connection_may_lead_to_another_store, set_up(&fixture, true)) {
    struct store_thread *second;
    int fd;
    int port;
    struct node *node = &fixture->nodes[0];
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &(struct store_server_settings){0}, &second, NULL),
        FAILURE_NONE);
    fetch(node);
    write_round(node, 1, true, 1);
    begin_to_connect(node, port);
    await(fixture, 1);
    fetch(node);
    assert_false(node->has_state);
    connect_node(node);
    fetch(node);
    assert_true(node->has_state);
    store_thread_stop(second);
}

FIXTURE_TEST_AFTER(a_roll_that_is_called_off_is_not_answered, set_up(&fixture, true)) {
    rendezvous_backend_call_roll(fixture->nodes[0].backend, 3, 1);
    rendezvous_backend_cancel_waits(fixture->nodes[0].backend);
    rendezvous_backend_call_roll(fixture->nodes[0].backend, 4, 1);
    rendezvous_backend_answer_roll(fixture->nodes[1].backend, 3, 0);
    rendezvous_backend_answer_roll(fixture->nodes[1].backend, 4, 0);
    await(fixture, 1);
    fetch(&fixture->nodes[0]);
    assert_int_equal(fixture->nodes[0].rolls_answered, 1);
    assert_null(fixture->nodes[0].trouble);
}

FIXTURE_TEST_AFTER(a_job_with_other_sizes_under_the_same_id_is_refused, set_up(&fixture, true)) {
    rendezvous_backend_free(fixture->nodes[1].backend);
    fixture->nodes[1].backend = make_backend(&fixture->nodes[1], 5);
    connect_node(&fixture->nodes[1]);
    assert_non_null(strstr(fixture->nodes[1].trouble, "1:4"));
    assert_non_null(strstr(fixture->nodes[1].trouble, "1:5"));
}

FIXTURE_TEST_AFTER(
    a_node_that_is_gone_is_told_of_where_presence_is_served, set_up(&fixture, true)) {
    struct node_identity identity;
    assert_true(fixture->nodes[0].has_presence);
    node_identity_init(&identity, "host_a", 12, 34);
    rendezvous_backend_present(
        fixture->nodes[0].backend, &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                                       .present = {identity, false, NULL}});
    rendezvous_backend_present(
        fixture->nodes[0].backend, &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                                       .present = {identity, true, NULL}});
    fetch(&fixture->nodes[0]);
    rendezvous_backend_disconnect(fixture->nodes[0].backend);
    await(fixture, 1);
    assert_string_equal(text_string(&fixture->gone), "host_a_12_34 finished;");
}

FIXTURE_TEST_AFTER(a_server_of_another_kind_serves_no_presence, set_up(&fixture, false)) {
    assert_false(fixture->nodes[0].has_presence);
}

FIXTURE_TEST_AFTER(nodes_in_an_exit_barrier_are_counted, set_up(&fixture, true)) {
    ask_bare(fixture,
        (struct store_request){.operation = STORE_ADD,
            .key = slice_from_string("/torch.rendezvous.a job/with a name.3/torchelastic/agent/"
                                     "terminal_state/num_members"),
            .number = 2});
    rendezvous_backend_count_finished(fixture->nodes[0].backend, 3);
    await(fixture, 1);
    assert_int_equal(fixture->nodes[0].finished_count, 2);
}

FIXTURE_TEST_AFTER(the_end_of_the_store_is_told_once_and_is_no_silence, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    rendezvous_backend_disconnect(fixture->nodes[1].backend);
    store_thread_stop(fixture->store);
    fixture->store = NULL;
    await(fixture, 1);
    assert_non_null(fixture->nodes[0].trouble);
    assert_null(fixture->nodes[1].trouble);
    assert_false(fixture->nodes[0].is_silent);
}

static void answered(void *context, const struct store_client_result *result) {
    struct node *node = context;
    node->answers[result->code == FAILURE_NONE ? 0 : 1]++;
    node->last_answer = result->code;
    report(node->fixture);
}

/* A request of the caller's own: SET, or WAIT, of the key. */
static bool ask(struct node *node, enum store_operation operation, const char *key) {
    struct slice keys[] = {slice_from_string(key)};
    const struct store_client_call call = {
        .request = {.operation = operation, .key = keys[0], .keys = keys, .count = 1},
        .timeout = operation == STORE_WAIT ? DURATION_FOREVER : duration_from_seconds(20),
        .done = answered,
        .context = node,
    };
    return operation == STORE_WAIT ? rendezvous_backend_wait(node->backend, &call)
                                   : rendezvous_backend_ask(node->backend, &call);
}

FIXTURE_TEST_AFTER(
    what_waits_holds_up_nothing_and_a_disconnected_backend_takes_nothing, set_up(&fixture, true)) {
    struct node *node = &fixture->nodes[0];
    assert_int_equal(rendezvous_backend_connection_count(node->backend), 3);
    assert_true(ask(node, STORE_WAIT, "a") && ask(node, STORE_SET, "a"));
    await(fixture, 2);
    assert_int_equal(node->answers[0], 2);
    assert_true(ask(node, STORE_WAIT, "b"));
    rendezvous_backend_disconnect(node->backend);
    assert_int_equal(node->last_answer, FAILURE_CANCELLED);
    assert_int_equal(rendezvous_backend_connection_count(node->backend), 0);
    assert_false(ask(node, STORE_WAIT, "b") || ask(node, STORE_SET, "b"));
    assert_int_equal(node->answers[1], 1);
}

/* What is opened later is where the first connection is, and a wait that was cancelled does not
 * open another. */
FIXTURE_TEST_AFTER(
    a_node_that_delegates_opens_another_connection_when_it_waits, set_up(&fixture, true)) {
    struct text reached = {0};
    struct node *node = &fixture->nodes[0];
    rendezvous_backend_free(node->backend);
    node->backend = make_backend_of(node, 4, true);
    connect_node(node);
    assert_int_equal(rendezvous_backend_connection_count(node->backend), 1);
    rendezvous_backend_write_reached(node->backend, &reached);
    assert_string_equal(text_string(&reached), "127.0.0.1");
    assert_true(ask(node, STORE_WAIT, "b"));
    rendezvous_backend_cancel_waits(node->backend);
    assert_int_equal(node->last_answer, FAILURE_CANCELLED);
    assert_int_equal(rendezvous_backend_connection_count(node->backend), 1);
    assert_true(ask(node, STORE_WAIT, "a") && ask(node, STORE_SET, "a"));
    await(fixture, 2);
    assert_int_equal(node->answers[0], 2);
    assert_int_equal(rendezvous_backend_connection_count(node->backend), 2);
    assert_null(node->trouble);
    text_clear(&reached);
}

/* Rendezvous backend record. */

FIXTURE_TEST_AFTER(others_are_told_of_the_last_word_of_a_node_that_goes, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    fixture->nodes[0].goes_when_it_has_written = true;
    write_round(
        &fixture->nodes[0], 1, false, 2); /* the node's "written" and the other node's "changed" */
    assert_int_equal(fixture->nodes[1].changes, 1);
}

FIXTURE_TEST_AFTER(a_quiet_change_wakes_nobody, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    write_round(&fixture->nodes[0], 1, true, 1);
    write_round(&fixture->nodes[0], 2, false, 2);
    assert_int_equal(fixture->nodes[1].changes, 1);
}

/* A record cannot hold an address that is not UTF-8, because Python could not read it. */
static void write_what_cannot_be_spelled(struct node *node) {
    struct rendezvous_state state = {0};
    struct node_identity identity = {.address = "\xff", .pid = 1};
    rendezvous_state_obtain(&state, &identity)->is_waiting = true;
    node->is_inside = true;
    rendezvous_backend_write(node->backend, &state, false);
    node->is_inside = false;
    rendezvous_state_clear(&state);
}

FIXTURE_TEST_AFTER(a_write_that_cannot_be_spelled_is_told_from_the_loop, set_up(&fixture, true)) {
    struct node *node = &fixture->nodes[0];
    fixture->awaited = 1;
    write_what_cannot_be_spelled(node);
    assert_null(node->trouble);
    await(fixture, 1);
    assert_non_null(strstr(node->trouble, "cannot be written"));
    assert_false(node->was_told_inside);
}

FIXTURE_TEST_AFTER(nothing_is_told_once_the_backend_is_disconnected, set_up(&fixture, true)) {
    write_what_cannot_be_spelled(&fixture->nodes[0]);
    rendezvous_backend_disconnect(fixture->nodes[0].backend);
    fetch(&fixture->nodes[1]);
    assert_null(fixture->nodes[0].trouble);
}
