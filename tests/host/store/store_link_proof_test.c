/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and servers of a store that have a job token, another one, or none. */
#include "unit.h"

#include "host/remembered_log.h"
#include "host/store_client_fixture.h"
#include "wire/store_proof_key.h"

#define NO_TOKEN 0
/* Strangers are told something else in its place. */
#define RECORD "record"

/* A server and a client; NO_TOKEN: it has none. */
struct meeting {
    struct fixture fixture;
    struct plain_key plain[2];
    struct store_key keys[2];
    struct remembered_log log;
};

static void meet(
    struct meeting *meeting, uint8_t server, uint8_t client, const char *guarded_prefix) {
    *meeting = (struct meeting){.plain = {{.token = server}, {.token = client}}};
    remembered_log_init(&meeting->log);
    meeting->keys[0] = plain_store_key(&meeting->plain[0]);
    meeting->keys[1] = plain_store_key(&meeting->plain[1]);
    struct fixture *fixture = &meeting->fixture;
    open_port(fixture);
    struct store_server_settings settings = {
        .log = &meeting->log.log,
        .key = server == NO_TOKEN ? NULL : &meeting->keys[0],
        .watched_key = "/" RECORD,
        .stranger_answer = "turned away",
        .own_prefix = guarded_prefix,
        .guards_only_own_keys = guarded_prefix != NULL,
    };
    assert_int_equal(
        store_server_new(fixture->loop, fixture->listening_fd, &settings, &fixture->server, NULL),
        FAILURE_NONE);
    struct store_client_settings client_settings = {.host = fixture->host,
        .port = fixture->port,
        .connect_timeout = LONG,
        .key = client == NO_TOKEN ? NULL : &meeting->keys[1],
        .connected = connected,
        .lost = lost,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &client_settings);
    turn_until(fixture, &fixture->connected);
}

static void part(struct meeting *meeting) {
    tear_down(&meeting->fixture);
    text_clear(&meeting->log.text);
}

/* This machine's loopback address would be of no use to others. */
TEST(a_loopback_address_is_told_to_nobody) {
    struct meeting meeting;
    struct text address = {0};
    meet(&meeting, 7, 7, NULL);
    store_client_write_address(meeting.fixture.client, &address);
    assert_int_equal(address.length, 0);
    part(&meeting);
}

static void expect_final_failure(struct meeting *meeting, const char *words) {
    assert_int_equal(meeting->fixture.failure.code, FAILURE_INVALID);
    if (strstr(meeting->fixture.failure.message, words) == NULL) {
        fail_msg("%s", meeting->fixture.failure.message);
    }
    assert_non_null(strstr(meeting->fixture.failure.message, "the store at 127.0.0.1:"));
    assert_non_null(strstr(meeting->fixture.failure.message, "give all nodes the same"));
}

TEST_OF(meeting, a_client_without_a_token_is_told_that_one_is_wanted,
    meet(&fixture, 7, NO_TOKEN, NULL), part) {
    expect_final_failure(fixture, "it wants a job token, and none is given here");
}

TEST_OF(meeting, a_client_with_a_token_does_not_trust_a_store_without,
    meet(&fixture, NO_TOKEN, 7, NULL), part) {
    expect_final_failure(fixture, "it cannot prove that it is this job's");
}

/* As PyTorch's clients, which know nothing of tokens. */
TEST(who_has_proved_itself_is_no_stranger) {
    struct meeting meeting;
    meet(&meeting, 7, 7, NULL);
    struct answer answer;
    struct store_request request = {.operation = STORE_SET,
        .key = slice_from_string(RECORD),
        .value = slice_from_string("the record")};
    ask(&meeting.fixture, &request, LONG, &answer);
    request.operation = STORE_GET;
    ask(&meeting.fixture, &request, LONG, &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_string_equal(answer.text, "the record");
    part(&meeting);
}

TEST(strangers_may_use_other_keys_where_only_some_are_guarded) {
    struct meeting meeting;
    meet(&meeting, 7, 7, "/nodes/");
    struct fixture *fixture = &meeting.fixture;
    struct answer answer;
    ask(fixture,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string("nodes/1"), .number = 5},
        LONG, &answer);
    assert_int_equal(answer.reply.integer, 5);
    int stranger = client_open(fixture->port);
    client_set(stranger, "/k", "value");
    client_expect_value(fixture->loop, stranger, "/k", "value");
    client_set(stranger, "/nodes/1", "8");
    client_expect_close(fixture->loop, stranger);
    close(stranger);
    ask(fixture,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string("nodes/1"), .number = 1},
        LONG, &answer);
    assert_int_equal(answer.reply.integer, 6);
    part(&meeting);
}
