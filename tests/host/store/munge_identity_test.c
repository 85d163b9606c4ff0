/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/fake_munge.h"

#include "host/loop/event_loop.h"
#include "host/store/store_admission.h"

#define LONG duration_from_seconds(60)

struct fixture {
    struct temporary_tree tree;
    struct event_loop *loop;
    struct blocking_pool *pool;
    struct store_proof proof;
    enum store_credential_verdict verdict;
    struct bytes credential;
    char words[256];
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(blocking_pool_new(fixture->loop, &fixture->pool, NULL), FAILURE_NONE);
    memset(&fixture->proof.client_nonce, 1, sizeof fixture->proof.client_nonce);
    memset(&fixture->proof.server_nonce, 2, sizeof fixture->proof.server_nonce);
}

static void tear_down(struct fixture *fixture) {
    blocking_pool_free(fixture->pool);
    event_loop_free(fixture->loop);
    bytes_clear(&fixture->credential);
    temporary_tree_clear(&fixture->tree);
}

static enum failure_code try_to_open(struct fixture *fixture, const char *socket, const char *job,
    struct munge_identity **out_identity, struct failure *failure) {
    char *path = fake_munge_socket(&fixture->tree, socket);
    const struct munge_identity_settings settings = {
        .library = FAKE_MUNGE, .socket = path, .job = job, .patience = LONG};
    enum failure_code code = munge_identity_open(&settings, out_identity, failure);
    free(path);
    return code;
}

static struct munge_identity *open_identity(
    struct fixture *fixture, const char *socket, const char *job) {
    struct munge_identity *identity = NULL;
    assert_int_equal(try_to_open(fixture, socket, job, &identity, NULL), FAILURE_NONE);
    return identity;
}

static void answered(
    void *context, const struct store_credential_answer *answer, const char *words) {
    struct fixture *fixture = context;
    fixture->verdict = answer->verdict;
    bytes_clear(&fixture->credential);
    assert_int_equal(
        bytes_append(&fixture->credential, answer->credential.data, answer->credential.length),
        FAILURE_NONE);
    (void)snprintf(fixture->words, sizeof fixture->words, "%s", words);
    event_loop_stop(fixture->loop);
}

/* The credential that was made before is presented, if there is one. */
static enum store_credential_verdict ask(struct fixture *fixture,
    const struct munge_identity *identity, enum store_credential_side side, bool makes_own) {
    struct blocking_call *call;
    const struct munge_question question = {
        .key = munge_identity_key(identity),
        .proof = &fixture->proof,
        .presented = bytes_slice(&fixture->credential),
        .makes_own = makes_own,
        .side = side,
    };
    assert_int_equal(
        munge_identity_ask(fixture->pool, &question, answered, fixture, &call, NULL), FAILURE_NONE);
    event_loop_run(fixture->loop);
    return fixture->verdict;
}

FIXTURE_TEST(two_nodes_of_one_user_believe_each_other) {
    struct munge_identity *client = open_identity(fixture, "red.7", "job");
    struct munge_identity *server = open_identity(fixture, "red.7", "job");
    assert_int_equal(
        ask(fixture, client, STORE_CREDENTIAL_OF_CLIENT, true), STORE_CREDENTIAL_ACCEPTED);
    assert_true(fixture->credential.length > 0);
    assert_int_equal(
        ask(fixture, server, STORE_CREDENTIAL_OF_SERVER, true), STORE_CREDENTIAL_ACCEPTED);
    assert_true(fixture->credential.length > 0);
    assert_int_equal(
        ask(fixture, client, STORE_CREDENTIAL_OF_CLIENT, false), STORE_CREDENTIAL_ACCEPTED);
    assert_int_equal(fixture->credential.length, 0);
    munge_identity_free(client);
    munge_identity_free(server);
}

/* Whoever a client is, what the server says of it; and it makes no credential of its own then. */
TEST(others_are_told_apart) {
    static const struct {
        const char *socket;
        const char *job;
        enum store_credential_verdict verdict;
    } cases[] = {
        {"red.8", "job", STORE_CREDENTIAL_OTHER_USER},
        {"blue.7", "job", STORE_CREDENTIAL_OTHER_KEY},
        {"red.7", "another job", STORE_CREDENTIAL_OTHER_JOB},
        {"red.7", "jo", STORE_CREDENTIAL_OTHER_JOB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture;
        set_up(&fixture);
        struct munge_identity *server = open_identity(&fixture, "red.7", "job");
        struct munge_identity *client = open_identity(&fixture, cases[i].socket, cases[i].job);
        (void)ask(&fixture, client, STORE_CREDENTIAL_OF_CLIENT, true);
        assert_int_equal(ask(&fixture, server, STORE_CREDENTIAL_OF_SERVER, true), cases[i].verdict);
        assert_int_equal(fixture.credential.length, 0);
        munge_identity_free(client);
        munge_identity_free(server);
        tear_down(&fixture);
    }
}

/* What munge says of a credential is a verdict, and its words are told. */
FIXTURE_TEST(each_refusal_of_munge_has_its_verdict_and_words) {
    static const struct {
        const char *status; /* of all that the daemon of this socket decodes */
        enum store_credential_verdict verdict;
    } cases[] = {
        {"8", STORE_CREDENTIAL_OTHER_KEY},
        {"14", STORE_CREDENTIAL_OTHER_KEY},
        {"15", STORE_CREDENTIAL_OLD},
        {"16", STORE_CREDENTIAL_FUTURE},
        {"17", STORE_CREDENTIAL_USED},
        {"18", STORE_CREDENTIAL_OTHER_USER},
        {"6", STORE_CREDENTIAL_UNCHECKED},
        {"1", STORE_CREDENTIAL_UNCHECKED},
        {"99", STORE_CREDENTIAL_UNCHECKED},
    };
    struct munge_identity *identity = open_identity(fixture, "red.7", "job");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes_clear(&fixture->credential);
        (void)ask(fixture, identity, STORE_CREDENTIAL_OF_CLIENT, true);
        assert_int_equal(setenv("FAKE_MUNGE_STATUS", cases[i].status, 1), 0);
        assert_int_equal(
            ask(fixture, identity, STORE_CREDENTIAL_OF_SERVER, true), cases[i].verdict);
        assert_non_null(strstr(fixture->words, "made-up munge"));
        assert_int_equal(fixture->credential.length, 0);
        assert_int_equal(unsetenv("FAKE_MUNGE_STATUS"), 0);
    }
    munge_identity_free(identity);
}

/* Overheard, or a client's own, sent back to it. */
FIXTURE_TEST(a_credential_is_of_no_use_elsewhere) {
    struct munge_identity *identity = open_identity(fixture, "red.7", "job");
    (void)ask(fixture, identity, STORE_CREDENTIAL_OF_CLIENT, true);
    assert_int_equal(ask(fixture, identity, STORE_CREDENTIAL_OF_CLIENT, false),
        STORE_CREDENTIAL_OTHER_CHALLENGE);
    (void)ask(fixture, identity, STORE_CREDENTIAL_OF_CLIENT, true);
    fixture->proof.server_nonce[31] ^= 1;
    assert_int_equal(
        ask(fixture, identity, STORE_CREDENTIAL_OF_SERVER, true), STORE_CREDENTIAL_OTHER_CHALLENGE);
    munge_identity_free(identity);
}

FIXTURE_TEST(what_keeps_munge_from_being_used_is_said) {
    struct munge_identity *identity = NULL;
    struct failure failure = {0};
    assert_int_equal(try_to_open(fixture, "red.7.6", "job", &identity, &failure), FAILURE_SYSTEM);
    assert_non_null(
        strstr(failure.message, "red.7.6 does not answer: made-up munge is away; start munged"));
    struct munge_identity_settings settings = {
        .library = FAKE_MUNGE, .socket = "/nowhere/socket", .job = "job", .patience = LONG};
    assert_int_equal(munge_identity_open(&settings, &identity, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "at /nowhere/socket; start munged"));
    settings.library = "libnowhere.so.2";
    settings.socket = "/dev/null"; /* it is not looked at before there is a library */
    assert_int_equal(munge_identity_open(&settings, &identity, &failure), FAILURE_UNSUPPORTED);
    assert_non_null(strstr(failure.message, "munge's socket is at /dev/null: "));
    assert_non_null(strstr(failure.message, "libmunge2"));
    assert_non_null(strstr(failure.message, "libnowhere.so.2"));
    settings.library = "libc.so.6";
    assert_int_equal(munge_identity_open(&settings, &identity, &failure), FAILURE_UNSUPPORTED);
    assert_non_null(strstr(failure.message, "libc.so.6 lacks"));
    assert_null(identity);
    assert_null(munge_identity_key(NULL));
}

/* That it has what is needed, and takes our calls. */
TEST(the_installed_library_says_that_nobody_listens) {
    struct munge_identity *identity = NULL;
    struct failure failure = {0};
    const struct munge_identity_settings settings = {
        .socket = "/dev/null", .job = "job", .patience = LONG};
    enum failure_code code = munge_identity_open(&settings, &identity, &failure);
    if (code == FAILURE_UNSUPPORTED) {
        SKIP_BECAUSE("needs munge's library (Debian: libmunge2)");
    }
    assert_int_equal(code, FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "munge's daemon at /dev/null does not answer"));
}
