/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store/store_proof.h"
#include "wire/store_proof_key.h"

static const struct slice everything = {0};

struct fixture {
    struct plain_key plain;
    struct store_key key;
    struct store_proof client;
    struct store_proof server;
    struct bytes sent;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    fixture->key = plain_store_key(&fixture->plain);
    fixture->key.kind = STORE_KEY_MUNGE;
}

static void tear_down(struct fixture *fixture) {
    bytes_clear(&fixture->sent);
}

static struct slice reply_of(const struct store_proof_step *step) {
    return (struct slice){step->reply, step->reply_length};
}

static const struct store_credential_answer made = {.credential = {(const uint8_t *)"MINE", 4}};

/* Up to the client's credential, which is in `sent`. */
static void challenge(struct fixture *fixture) {
    struct store_proof_step hello = store_proof_begin(&fixture->client, &fixture->key);
    struct store_proof_step nonce =
        store_proof_serve(&fixture->server, &fixture->key, everything, reply_of(&hello));
    assert_int_equal(nonce.outcome, STORE_PROOF_REPLIED);
    struct store_proof_step asked =
        store_proof_continue(&fixture->client, &fixture->key, reply_of(&nonce));
    assert_int_equal(asked.outcome, STORE_PROOF_ASKED);
    assert_int_equal(asked.consumed, nonce.reply_length);
    assert_int_equal(asked.presented.length, 0);
    assert_int_equal(store_credential_answered(&fixture->client, &made, &fixture->sent).outcome,
        STORE_PROOF_REPLIED);
}

static void present_to_server(struct fixture *fixture) {
    struct store_proof_step asked =
        store_proof_serve(&fixture->server, &fixture->key, everything, bytes_slice(&fixture->sent));
    assert_int_equal(asked.outcome, STORE_PROOF_ASKED);
    assert_int_equal(asked.consumed, fixture->sent.length);
    assert_true(slice_equals(asked.presented, slice_from_string("MINE")));
    bytes_clear(&fixture->sent);
}

FIXTURE_TEST(both_sides_prove_themselves) {
    memset(fixture->server.client_address, 9, STORE_PROOF_ADDRESS_BYTES);
    challenge(fixture);
    present_to_server(fixture);
    const struct store_credential_answer right = {.credential = slice_from_string("THEIRS")};
    assert_int_equal(
        store_credential_verdict_given(&fixture->server, &right, &fixture->sent).outcome,
        STORE_PROOF_DONE);
    assert_int_equal(fixture->server.stage, STORE_PROOF_STAGE_PROVEN);
    struct store_proof_step asked =
        store_proof_continue(&fixture->client, &fixture->key, bytes_slice(&fixture->sent));
    assert_int_equal(asked.outcome, STORE_PROOF_ASKED);
    assert_true(slice_equals(asked.presented, slice_from_string("THEIRS")));
    assert_int_equal(asked.consumed, fixture->sent.length);
    assert_memory_equal(
        fixture->client.client_address, fixture->server.client_address, STORE_PROOF_ADDRESS_BYTES);
    assert_int_not_equal(fixture->client.stage, STORE_PROOF_STAGE_PROVEN);
    bytes_clear(&fixture->sent);
    assert_int_equal(store_credential_answered(
                         &fixture->client, &(struct store_credential_answer){0}, &fixture->sent)
                         .outcome,
        STORE_PROOF_DONE);
    assert_int_equal(fixture->client.stage, STORE_PROOF_STAGE_PROVEN);
    assert_int_equal(fixture->sent.length, 0);
}

/* Each verdict has words on the server, on the client that it is sent to, and on a client that
 * finds the same of the server. Only what may pass may be tried again. */
TEST(every_verdict_has_its_words) {
    for (int verdict = 1; verdict < STORE_CREDENTIAL_VERDICTS; verdict++) {
        struct fixture fixture;
        set_up(&fixture);
        challenge(&fixture);
        present_to_server(&fixture);
        const struct store_credential_answer wrong = {
            .verdict = (enum store_credential_verdict)verdict};
        struct store_proof_step step =
            store_credential_verdict_given(&fixture.server, &wrong, &fixture.sent);
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        assert_non_null(step.reason);
        assert_int_equal(fixture.sent.length, 1);
        assert_int_not_equal(fixture.server.stage, STORE_PROOF_STAGE_PROVEN);
        step = store_proof_continue(&fixture.client, &fixture.key, bytes_slice(&fixture.sent));
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        assert_non_null(step.reason);
        assert_int_equal(step.may_pass, verdict == STORE_CREDENTIAL_UNCHECKED);
        step = store_credential_answered(&fixture.client, &wrong, &fixture.sent);
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        assert_non_null(step.reason);
        assert_int_equal(step.may_pass, verdict == STORE_CREDENTIAL_UNCHECKED);
        tear_down(&fixture);
    }
}

FIXTURE_TEST(a_verdict_that_does_not_exist_is_a_refusal) {
    challenge(fixture);
    struct store_proof_step step =
        store_proof_continue(&fixture->client, &fixture->key, slice_from_string("\xff"));
    assert_int_equal(step.outcome, STORE_PROOF_FAILED);
    assert_false(step.may_pass);
}

/* Of what a stranger names, nothing is waited for beyond the limit. */
TEST(a_length_beyond_the_limit_is_refused_at_once) {
    static const uint8_t heads[][5] = {{0xf2, 1, 16, 0, 0}, {0xf2, 0, 0, 0, 0x80}, {0xf2}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct fixture fixture;
        set_up(&fixture);
        challenge(&fixture);
        struct store_proof_step step = store_proof_serve(
            &fixture.server, &fixture.key, everything, (struct slice){heads[i], sizeof heads[i]});
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        tear_down(&fixture);
    }
}

/* munge reads a credential up to its first NUL: what stands behind it would be seen by nobody. */
TEST(a_credential_that_is_no_word_is_refused_unread) {
    static const char *const bodies[] = {"MUNGE:\0x", "MUNGE:x\n", "MUNGE: x", "MUNGE:\xc3\xa4"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct fixture fixture;
        set_up(&fixture);
        challenge(&fixture);
        uint8_t sent[] = {0xf2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        memcpy(sent + 5, bodies[i], 8);
        struct store_proof_step step = store_proof_serve(
            &fixture.server, &fixture.key, everything, (struct slice){sent, sizeof sent});
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        assert_non_null(strstr(step.reason, "no word"));
        tear_down(&fixture);
    }
}

FIXTURE_TEST(the_longest_credential_is_waited_for) {
    static const uint8_t head[] = {0xf2, 0, 16, 0, 0};
    challenge(fixture);
    struct store_proof_step step = store_proof_serve(
        &fixture->server, &fixture->key, everything, (struct slice){head, sizeof head});
    assert_int_equal(step.outcome, STORE_PROOF_INCOMPLETE);
    assert_int_equal(step.needed, sizeof head + STORE_CREDENTIAL_LONGEST);
    step = store_proof_serve(&fixture->server, &fixture->key, everything, (struct slice){head, 1});
    assert_int_equal(step.outcome, STORE_PROOF_INCOMPLETE);
    assert_int_equal(step.needed, sizeof head);
}

FIXTURE_TEST(nothing_may_come_while_munge_is_asked) {
    CLEARED_BY(bytes_clear) struct bytes credential = {0};
    challenge(fixture);
    assert_int_equal(
        bytes_append(&credential, fixture->sent.data, fixture->sent.length), FAILURE_NONE);
    present_to_server(fixture);
    assert_int_equal(
        store_proof_serve(&fixture->server, &fixture->key, everything, bytes_slice(&credential))
            .outcome,
        STORE_PROOF_FAILED);
    fixture->client.stage = STORE_PROOF_STAGE_MAKING;
    assert_int_equal(
        store_proof_continue(&fixture->client, &fixture->key, slice_from_string("x")).outcome,
        STORE_PROOF_FAILED);
}

/* A token's code is no credential, and the reverse. */
FIXTURE_TEST(the_other_kind_of_proof_is_refused) {
    challenge(fixture);
    uint8_t code[1 + STORE_PROOF_CODE_BYTES] = {0xf1};
    assert_int_equal(store_proof_serve(&fixture->server, &fixture->key, everything,
                         (struct slice){code, sizeof code})
                         .outcome,
        STORE_PROOF_FAILED);
    fixture->key.kind = STORE_KEY_TOKEN;
    assert_int_equal(
        store_proof_serve(&fixture->server, &fixture->key, everything, bytes_slice(&fixture->sent))
            .outcome,
        STORE_PROOF_FAILED);
}

FIXTURE_TEST(a_server_says_which_kind_it_wants) {
    assert_int_equal(store_proof_ping_answer(&fixture->server, &fixture->key, STORE_PROOF_OFFERED),
        STORE_PROOF_WANTED_CREDENTIAL);
    assert_int_equal(store_proof_ping_answer(&fixture->server, &fixture->key, 77), 77);
}

TEST(a_payload_names_side_challenge_and_job) {
    struct store_proof proof = {.client_nonce = {1}, .server_nonce = {2}};
    CLEARED_BY(bytes_clear) struct bytes client = {0};
    CLEARED_BY(bytes_clear) struct bytes server = {0};
    CLEARED_BY(bytes_clear) struct bytes other = {0};
    const struct slice job = slice_from_string("job");
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_CLIENT, &client);
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_SERVER, &server);
    assert_int_equal(store_credential_judge(bytes_slice(&client), bytes_slice(&client)),
        STORE_CREDENTIAL_ACCEPTED);
    assert_int_equal(store_credential_judge(bytes_slice(&server), bytes_slice(&client)),
        STORE_CREDENTIAL_OTHER_CHALLENGE);
    store_credential_payload(&proof, slice_from_string("jobs"), STORE_CREDENTIAL_OF_CLIENT, &other);
    assert_int_equal(store_credential_judge(bytes_slice(&other), bytes_slice(&client)),
        STORE_CREDENTIAL_OTHER_JOB);
    proof.client_address[15] = 1;
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_CLIENT, &other);
    assert_true(slice_equals(bytes_slice(&other), bytes_slice(&client)));
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_SERVER, &other);
    assert_int_not_equal(store_credential_judge(bytes_slice(&other), bytes_slice(&server)),
        STORE_CREDENTIAL_ACCEPTED);
    proof.server_nonce[0] = 3;
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_CLIENT, &other);
    assert_int_equal(store_credential_judge(bytes_slice(&other), bytes_slice(&client)),
        STORE_CREDENTIAL_OTHER_CHALLENGE);
    assert_int_equal(store_credential_judge((struct slice){0}, bytes_slice(&client)),
        STORE_CREDENTIAL_OTHER_CHALLENGE);
}

TEST(a_credential_that_cannot_be_sent_is_none) {
    static const uint8_t long_text[STORE_CREDENTIAL_LONGEST + 1];
    const struct store_credential_answer answers[] = {
        {.credential = {long_text, sizeof long_text}}, {.credential = {0}}};
    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;
        set_up(&fixture);
        challenge(&fixture);
        present_to_server(&fixture);
        assert_int_equal(
            store_credential_verdict_given(&fixture.server, &answers[i], &fixture.sent).outcome,
            STORE_PROOF_FAILED);
        fixture.client.stage = STORE_PROOF_STAGE_MAKING;
        struct store_proof_step step =
            store_credential_answered(&fixture.client, &answers[i], &fixture.sent);
        assert_int_equal(step.outcome, STORE_PROOF_FAILED);
        assert_true(step.may_pass);
        tear_down(&fixture);
    }
}
