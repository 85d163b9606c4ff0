/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/fake_munge.h"

#include "agent/rendezvous/agent_node_settings.h"
#include "host/remembered_log.h"

struct fixture {
    struct temporary_tree tree;
    struct event_loop *loop;
    struct remembered_log log;
    struct launch_config config;
    struct agent_proof *proof;
    struct failure failure;
};

/* With the socket of a made-up daemon; NULL: none. */
static enum failure_code open_proof_with(
    struct fixture *fixture, enum launch_auth auth, const char *socket, const char *library) {
    *fixture = (struct fixture){.config = {.auth = auth}};
    temporary_tree_init(&fixture->tree);
    remembered_log_init(&fixture->log);
    fixture->config.munge_socket = socket == NULL ? temporary_tree_path(&fixture->tree, "nothing")
                                                  : fake_munge_socket(&fixture->tree, socket);
    fixture->config.job_token = strdup("a secret of sixteen bytes");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    const struct agent_proof_settings settings = {
        .config = &fixture->config,
        .run_id = "job",
        .loop = fixture->loop,
        .log = &fixture->log.log,
        .munge_library = library,
    };
    return agent_proof_open(&settings, &fixture->proof, &fixture->failure);
}

static enum failure_code open_proof(
    struct fixture *fixture, enum launch_auth auth, const char *socket) {
    return open_proof_with(fixture, auth, socket, FAKE_MUNGE);
}

static void end(struct fixture *fixture) {
    agent_proof_free(fixture->proof);
    event_loop_free(fixture->loop);
    text_clear(&fixture->log.text);
    free(fixture->config.munge_socket);
    free(fixture->config.job_token);
    temporary_tree_clear(&fixture->tree);
}

TEST(each_way_has_its_kind_of_key) {
    static const struct {
        enum launch_auth auth;
        enum store_key_kind kind;
    } cases[] = {
        {LAUNCH_AUTH_TOKEN, STORE_KEY_TOKEN},
        {LAUNCH_AUTH_MUNGE, STORE_KEY_MUNGE},
        {LAUNCH_AUTH_MUNGE_HERE, STORE_KEY_MUNGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture;
        assert_int_equal(open_proof(&fixture, cases[i].auth, "red.7"), FAILURE_NONE);
        assert_int_equal(agent_proof_key(fixture.proof)->kind, cases[i].kind);
        end(&fixture);
    }
}

/* Any user of the machine can keep a daemon busy. */
TEST(a_daemon_that_does_not_serve_does_not_open_the_job) {
    struct fixture fixture;
    assert_int_equal(open_proof(&fixture, LAUNCH_AUTH_MUNGE_HERE, "red.7.6"), FAILURE_SYSTEM);
    assert_null(fixture.proof);
    assert_non_null(strstr(fixture.failure.message, fixture.config.munge_socket));
    assert_non_null(strstr(fixture.failure.message, "made-up munge is away"));
    assert_non_null(strstr(fixture.failure.message, "with --auth none on all nodes"));
    end(&fixture);
}

TEST(a_socket_without_a_library_is_said) {
    struct fixture fixture;
    assert_int_equal(open_proof_with(&fixture, LAUNCH_AUTH_MUNGE_HERE, "red.7", "no-such-library"),
        FAILURE_NONE);
    assert_null(agent_proof_key(fixture.proof));
    assert_true(remembered_log_has(&fixture.log, "munge's socket is at "));
    end(&fixture);
}
