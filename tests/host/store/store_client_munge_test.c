/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and servers of a store that prove themselves by munge, whose daemons are made up. */
#include "host/fake_munge.h"

#include "host/remembered_log.h"
#include "host/store/munge.h"
#include "host/store_client_fixture.h"
#include "wire/store_proof_key.h"

/* A server and a client. */
struct meeting {
    struct fixture fixture;
    struct temporary_tree tree;
    struct munge_identity *identities[2];
    struct plain_key plain[2];
    struct store_key tokens[2];
    const struct store_key *keys[2];
    struct remembered_log log;
};

/* The name of a made-up daemon's socket, "token", or NULL: no proof. */
static void equip(struct meeting *meeting, int side, const char *name) {
    if (name == NULL) {
        return;
    }
    if (strcmp(name, "token") == 0) {
        meeting->tokens[side] = plain_store_key(&meeting->plain[side]);
        meeting->keys[side] = &meeting->tokens[side];
        return;
    }
    char *socket = fake_munge_socket(&meeting->tree, name);
    const struct munge_identity_settings settings = {
        .library = FAKE_MUNGE, .socket = socket, .job = "job", .patience = LONG};
    assert_int_equal(
        munge_identity_open(&settings, &meeting->identities[side], NULL), FAILURE_NONE);
    free(socket);
    meeting->keys[side] = munge_identity_key(meeting->identities[side]);
}

static void meet(struct meeting *meeting, const char *server, const char *client) {
    *meeting = (struct meeting){0};
    temporary_tree_init(&meeting->tree);
    remembered_log_init(&meeting->log);
    equip(meeting, 0, server);
    equip(meeting, 1, client);
    struct fixture *fixture = &meeting->fixture;
    open_port(fixture);
    struct store_server_settings settings = {.log = &meeting->log.log, .key = meeting->keys[0]};
    assert_int_equal(
        store_server_new(fixture->loop, fixture->listening_fd, &settings, &fixture->server, NULL),
        FAILURE_NONE);
    struct store_client_settings client_settings = {.host = fixture->host,
        .port = fixture->port,
        .connect_timeout = LONG,
        .key = meeting->keys[1],
        .connected = connected,
        .lost = lost,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &client_settings);
    turn_until(fixture, &fixture->connected);
}

static void part(struct meeting *meeting) {
    tear_down(&meeting->fixture);
    munge_identity_free(meeting->identities[0]);
    munge_identity_free(meeting->identities[1]);
    text_clear(&meeting->log.text);
    temporary_tree_clear(&meeting->tree);
}

static void one_user_is_served(void **state) {
    (void)state;
    struct meeting meeting;
    meet(&meeting, "red.7", "red.7");
    assert_int_equal(meeting.fixture.failure.code, FAILURE_NONE);
    struct answer answer;
    ask(&meeting.fixture,
        &(struct store_request){.operation = STORE_ADD, .key = slice_from_string("k"), .number = 5},
        LONG, &answer);
    assert_int_equal(answer.reply.integer, 5);
    part(&meeting);
}

static void all_others_end_at_once_with_words(void **state) {
    (void)state;
    static const struct {
        const char *server;
        const char *client;
        const char *words;
        const char *logged; /* by the server; NULL: nothing */
    } cases[] = {
        {"red.7", "red.8", "run all nodes as the same user", "is another user's (user 8, and this"},
        {"red.7", "blue.7", "same munge.key", "has another munge.key (made-up munge objects)"},
        {"red.7", "token", "this node has a job token", NULL},
        {"red.7", NULL, "in a container mount /run/munge", NULL},
        {"token", "red.7", "it wants a job token", NULL},
        {NULL, "red.7", "it wants no proof by munge", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct meeting meeting;
        meet(&meeting, cases[i].server, cases[i].client);
        assert_int_equal(meeting.fixture.failure.code, FAILURE_INVALID);
        if (strstr(meeting.fixture.failure.message, cases[i].words) == NULL) {
            fail_msg("%s", meeting.fixture.failure.message);
        }
        assert_true(cases[i].logged == NULL || remembered_log_has(&meeting.log, cases[i].logged));
        part(&meeting);
    }
}

/* A stranger who leaves, and a server that ends, while munge is asked. */
static void a_client_may_vanish_while_munge_is_asked(void **state) {
    (void)state;
    static const uint8_t hello[33] = {0xf0};
    static const uint8_t credential[] = {0xf2, 4, 0, 0, 0, 'n', 'o', 'n', 'e'};
    struct meeting meeting;
    meet(&meeting, "red.7", "red.7");
    struct fixture *fixture = &meeting.fixture;
    for (int i = 0; i < 20; i++) {
        int stranger = client_open(fixture->port);
        client_send(stranger, hello, sizeof hello);
        client_send(stranger, credential, sizeof credential);
        close(stranger);
        event_loop_run_ready(fixture->loop);
    }
    int last = client_open(fixture->port);
    client_send(last, hello, sizeof hello);
    client_send(last, credential, sizeof credential);
    event_loop_run_ready(fixture->loop);
    part(&meeting);
    close(last);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_user_is_served),
    cmocka_unit_test(all_others_end_at_once_with_words),
    cmocka_unit_test(a_client_may_vanish_while_munge_is_asked),
};

UNIT_TESTS(tests)
