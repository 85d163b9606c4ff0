/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store/store_proof.h"
#include "wire/store_proof_key.h"

/* What is guarded. */
static const struct slice everything = {0};

/* A client and a server, each with its own token. */
struct fixture {
    struct plain_key plain[2];
    struct store_key client_key;
    struct store_key server_key;
    struct store_proof client;
    struct store_proof server;
};

static void set_up(struct fixture *fixture, uint8_t client_token, uint8_t server_token) {
    *fixture =
        (struct fixture){.plain = {{.token = client_token}, {.token = server_token, .drawn = 100}}};
    fixture->client_key = plain_store_key(&fixture->plain[0]);
    fixture->server_key = plain_store_key(&fixture->plain[1]);
}

static struct slice reply_of(const struct store_proof_step *step) {
    return (struct slice){step->reply, step->reply_length};
}

/* Up to the server's verdict. */
static struct store_proof_step exchange(struct fixture *fixture) {
    struct store_proof_step hello = store_proof_begin(&fixture->client, &fixture->client_key);
    assert_int_equal(hello.outcome, STORE_PROOF_REPLIED);
    struct store_proof_step challenge =
        store_proof_serve(&fixture->server, &fixture->server_key, everything, reply_of(&hello));
    assert_int_equal(challenge.outcome, STORE_PROOF_REPLIED);
    assert_int_equal(challenge.consumed, hello.reply_length);
    struct store_proof_step proof =
        store_proof_continue(&fixture->client, &fixture->client_key, reply_of(&challenge));
    assert_int_equal(proof.outcome, STORE_PROOF_REPLIED);
    assert_int_equal(proof.consumed, challenge.reply_length);
    return store_proof_serve(&fixture->server, &fixture->server_key, everything, reply_of(&proof));
}

TEST(two_sides_with_one_token_prove_themselves) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step verdict = exchange(&fixture);
    assert_int_equal(verdict.outcome, STORE_PROOF_DONE);
    assert_int_equal(fixture.server.stage, STORE_PROOF_STAGE_PROVEN);
    struct store_proof_step end =
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&verdict));
    assert_int_equal(end.outcome, STORE_PROOF_DONE);
    assert_int_equal(end.consumed, verdict.reply_length);
    assert_int_equal(fixture.client.stage, STORE_PROOF_STAGE_PROVEN);
}

TEST(the_client_learns_its_address_from_a_server_that_has_proved_itself) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    memset(fixture.server.client_address, 9, STORE_PROOF_ADDRESS_BYTES);
    struct store_proof_step verdict = exchange(&fixture);
    struct store_proof_step end =
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&verdict));
    assert_int_equal(end.outcome, STORE_PROOF_DONE);
    assert_memory_equal(
        fixture.client.client_address, fixture.server.client_address, STORE_PROOF_ADDRESS_BYTES);
}

TEST(an_address_that_was_changed_on_its_way_is_no_proof) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step verdict = exchange(&fixture);
    verdict.reply[STORE_PROOF_REPLY_BYTES - 1] ^= 1;
    assert_int_equal(
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&verdict)).outcome,
        STORE_PROOF_FAILED);
}

TEST(another_token_is_refused_and_said_to_be) {
    struct fixture fixture;
    set_up(&fixture, 7, 8);
    struct store_proof_step verdict = exchange(&fixture);
    assert_int_equal(verdict.outcome, STORE_PROOF_FAILED);
    assert_non_null(strstr(verdict.reason, "token"));
    assert_int_not_equal(fixture.server.stage, STORE_PROOF_STAGE_PROVEN);
    assert_int_equal(verdict.reply_length, 1); /* no code of the server's */
    struct store_proof_step end =
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&verdict));
    assert_int_equal(end.outcome, STORE_PROOF_FAILED);
    assert_non_null(strstr(end.reason, "does not accept"));
}

TEST(a_server_that_cannot_prove_itself_gets_nothing) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step verdict = exchange(&fixture);
    uint8_t forged[STORE_PROOF_REPLY_BYTES];
    memcpy(forged, verdict.reply, sizeof forged);
    forged[20] ^= 1;
    struct store_proof_step end = store_proof_continue(
        &fixture.client, &fixture.client_key, (struct slice){forged, sizeof forged});
    assert_int_equal(end.outcome, STORE_PROOF_FAILED);
    assert_non_null(strstr(end.reason, "not proved"));
}

/* Who sends a client's own code back to it has proved nothing. */
TEST(a_reflected_code_is_no_proof) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    (void)store_proof_begin(&fixture.client, &fixture.client_key);
    struct store_proof_step proof = store_proof_continue(&fixture.client, &fixture.client_key,
        (struct slice){fixture.client.client_nonce, STORE_PROOF_NONCE_BYTES});
    proof.reply[0] = 1;
    proof.reply_length = STORE_PROOF_REPLY_BYTES; /* with an address */
    struct store_proof_step end =
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&proof));
    assert_int_equal(end.outcome, STORE_PROOF_FAILED);
}

/* A proof that was overheard is of no use later, as the server draws another number. */
TEST(a_recorded_proof_is_refused) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step hello = store_proof_begin(&fixture.client, &fixture.client_key);
    struct store_proof_step challenge =
        store_proof_serve(&fixture.server, &fixture.server_key, everything, reply_of(&hello));
    struct store_proof_step proof =
        store_proof_continue(&fixture.client, &fixture.client_key, reply_of(&challenge));
    struct store_proof later = {0};
    (void)store_proof_serve(&later, &fixture.server_key, everything, reply_of(&hello));
    assert_int_equal(
        store_proof_serve(&later, &fixture.server_key, everything, reply_of(&proof)).outcome,
        STORE_PROOF_FAILED);
}

TEST(parts_may_come_byte_by_byte) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step hello = store_proof_begin(&fixture.client, &fixture.client_key);
    for (size_t length = 1; length < hello.reply_length; length++) {
        struct store_proof_step step = store_proof_serve(
            &fixture.server, &fixture.server_key, everything, (struct slice){hello.reply, length});
        assert_int_equal(step.outcome, STORE_PROOF_INCOMPLETE);
        assert_int_equal(step.needed, hello.reply_length);
    }
    assert_int_equal(
        store_proof_continue(&fixture.client, &fixture.client_key, (struct slice){0}).needed,
        STORE_PROOF_NONCE_BYTES);
    assert_int_equal(
        store_proof_continue(&fixture.client, &fixture.client_key, (struct slice){0}).outcome,
        STORE_PROOF_INCOMPLETE);
}

TEST(without_random_numbers_nothing_is_proved) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    struct store_proof_step hello = store_proof_begin(&fixture.client, &fixture.client_key);
    fixture.plain[0].cannot_draw = fixture.plain[1].cannot_draw = true;
    assert_int_equal(
        store_proof_serve(&fixture.server, &fixture.server_key, everything, reply_of(&hello))
            .outcome,
        STORE_PROOF_FAILED);
    assert_int_equal(
        store_proof_begin(&fixture.client, &fixture.client_key).outcome, STORE_PROOF_FAILED);
}

TEST(only_a_client_that_offers_a_proof_is_told_that_one_is_wanted) {
    struct store_proof proof = {0};
    struct plain_key plain = {.token = 7};
    const struct store_key key = plain_store_key(&plain);
    assert_int_equal(
        store_proof_ping_answer(&proof, &key, STORE_PROOF_OFFERED), STORE_PROOF_WANTED);
    assert_int_equal(store_proof_ping_answer(&proof, &key, 4194304), 4194304);
    proof.stage = STORE_PROOF_STAGE_PROVEN;
    assert_int_equal(
        store_proof_ping_answer(&proof, &key, STORE_PROOF_OFFERED), STORE_PROOF_OFFERED);
}

TEST(without_a_proof_a_connection_may_only_ping) {
    struct fixture fixture;
    set_up(&fixture, 7, 7);
    for (unsigned operation = 0; operation < 0xf0; operation++) {
        const uint8_t byte = (uint8_t)operation;
        bool is_free = operation == STORE_PING || operation == STORE_VALIDATE;
        struct store_proof_step step = store_proof_serve(
            &fixture.server, &fixture.server_key, everything, (struct slice){&byte, 1});
        assert_int_equal(step.outcome, is_free ? STORE_PROOF_NONE : STORE_PROOF_FAILED);
    }
    for (int operation = 0; operation < STORE_OPERATION_COUNT; operation++) {
        struct store_request request = {.operation = (enum store_operation)operation};
        bool is_free = operation == STORE_PING || operation == STORE_VALIDATE;
        assert_int_equal(store_proof_objection(&request, everything) == NULL, is_free);
    }
}

TEST(without_a_proof_the_nodes_keys_are_not_to_be_used) {
    const struct slice prefix = slice_from_string("/nodes/");
    struct slice keys[] = {slice_from_string("/other"), slice_from_string("/nodes/1")};
    struct store_request get = {.operation = STORE_GET, .key = slice_from_string("/nodes/1")};
    assert_non_null(store_proof_objection(&get, prefix));
    get.key = slice_from_string("/node");
    assert_null(store_proof_objection(&get, prefix));
    struct store_request check = {.operation = STORE_CHECK, .keys = keys, .count = 2};
    assert_non_null(store_proof_objection(&check, prefix));
    check.count = 1;
    assert_null(store_proof_objection(&check, prefix));
}
