/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_store_host.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/telling/job_directory.h"
#include "site_fixture.h"
#include "temporary_tree.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/store/store_proof.h"

#define HOST_KEY "/torch.rendezvous.job/muster/host"
#define NODE_KEY "/torch.rendezvous.job/muster/presence/node7_1_0"
#define RECORD_KEY "/torch.rendezvous.job"

struct fixture {
    struct site site;
    struct launch_config config;
    struct agent_hosted_store *store;
    int port;
    int gone_count;
    int heard_count;
    int written_count;
    bool has_finished; /* the node that was gone last */
    int done_count;
    struct remembered_log log;
    struct text_list environment;
};

static void gone(void *context, const struct node_identity *identity, bool has_finished) {
    struct fixture *fixture = context;
    assert_string_equal(identity->address, "node7");
    fixture->gone_count++;
    fixture->has_finished = has_finished;
    event_loop_stop(fixture->site.loop);
}

static void wished(
    void *context, const struct node_identity *identity, const struct rendezvous_wish *wish) {
    struct fixture *fixture = context;
    (void)wish;
    assert_string_equal(identity->address, "node7");
    fixture->heard_count++;
}

static void record_written(void *context) {
    struct fixture *fixture = context;
    fixture->written_count++;
    event_loop_stop(fixture->site.loop);
}

static void done(void *context) {
    struct fixture *fixture = context;
    fixture->done_count++;
    event_loop_stop(fixture->site.loop);
}

static void set_up(struct fixture *fixture, bool stands_by) {
    *fixture = (struct fixture){0};
    site_init(&fixture->site);
    remembered_log_init(&fixture->log);
    fixture->config = fixture->site.agent.config;
    rendezvous_settings_init(&fixture->config.dynamic.settings);
    struct agent_hosted_store_settings settings = {
        .config = &fixture->config,
        .run_id = "job",
        .log = &fixture->log.log,
        .stands_by = stands_by,
        .environment = &fixture->environment,
        .gone = gone,
        .wished = wished,
        .record_written = record_written,
        .context = fixture,
    };
    struct failure failure = {0};
    assert_int_equal(agent_hosted_store_open(
                         fixture->site.loop, &settings, "localhost", 0, &fixture->store, &failure),
        FAILURE_NONE);
    fixture->port = agent_hosted_store_port(fixture->store);
    assert_int_equal(agent_hosted_store_is_serving(fixture->store), !stands_by);
}

static void tear_down(struct fixture *fixture) {
    agent_hosted_store_free(fixture->store);
    text_clear(&fixture->log.text);
    text_list_clear(&fixture->environment);
    site_clear(&fixture->site);
}

static void serve(struct fixture *fixture, const char *record) {
    struct store_seeds seeds = {0};
    store_seeds_add(&seeds, RECORD_KEY, slice_from_string(record));
    agent_hosted_store_serve(fixture->store, &seeds, done, fixture);
    assert_false(agent_hosted_store_is_serving(fixture->store));
    event_loop_run(fixture->site.loop);
    assert_true(agent_hosted_store_is_serving(fixture->store));
}

static void stand_by(struct fixture *fixture, const char *answer) {
    agent_hosted_store_stand_by(fixture->store, answer, done, fixture);
    assert_false(agent_hosted_store_is_serving(fixture->store));
    event_loop_run(fixture->site.loop);
    assert_false(agent_hosted_store_is_serving(fixture->store));
}

static bool has_warned(struct fixture *fixture) {
    bool has = remembered_log_has(&fixture->log, "is open to whoever reaches this machine");
    text_clear(&fixture->log.text);
    return has;
}

FIXTURE_TEST_AFTER(
    that_it_is_open_to_all_is_said_once_and_when_it_serves, set_up(&fixture, false)) {
    assert_true(has_warned(fixture));
    tear_down(fixture);
    set_up(fixture, true); /* as on every node of a job with a register */
    assert_false(has_warned(fixture));
    serve(fixture, "of term 1");
    assert_true(has_warned(fixture));
    stand_by(fixture, "another");
    serve(fixture, "of term 3");
    assert_false(has_warned(fixture));
}

FIXTURE_TEST_AFTER(it_is_served_with_what_it_is_given, set_up(&fixture, true)) {
    stand_by(fixture, "somebody");
    int client = client_open(fixture->port);
    client_expect_ping(NULL, client, STORE_PROOF_OFFERED);
    client_expect_value(NULL, client, HOST_KEY, "somebody");
    serve(fixture, "of the term before");
    client_expect_value(NULL, client, RECORD_KEY, "of the term before");
    client_set(client, RECORD_KEY, "new");
    event_loop_run(fixture->site.loop);
    assert_int_equal(fixture->written_count, 1);
    close(client);
}

/* The nodes of a store that is served no longer are not gone: they are with the next host. */
FIXTURE_TEST_AFTER(of_a_store_that_ends_nothing_is_told, set_up(&fixture, true)) {
    serve(fixture, "of term 1");
    int node = client_open(fixture->port);
    client_set(node, NODE_KEY, "running");
    client_expect_ping(NULL, node, 1);
    stand_by(fixture, "the second");
    client_expect_close(NULL, node);
    close(node);
    serve(fixture, "of term 3");
    assert_int_equal(fixture->gone_count, 0);
    node = client_open(fixture->port);
    client_set(node, NODE_KEY, "running");
    client_expect_ping(NULL, node, 1);
    close(node);
    event_loop_run(fixture->site.loop);
    assert_int_equal(fixture->gone_count, 1);
    assert_int_equal(fixture->heard_count, 1);
    assert_false(fixture->has_finished);
}

TEST(only_the_last_change_is_answered) {
    struct fixture fixture;
    struct store_seeds seeds = {0};
    set_up(&fixture, true);
    agent_hosted_store_stand_by(fixture.store, "first", done, &fixture);
    agent_hosted_store_serve(fixture.store, &seeds, done, &fixture);
    agent_hosted_store_stand_by(fixture.store, "second", done, &fixture);
    agent_hosted_store_serve(fixture.store, &seeds, NULL, NULL);
    stand_by(&fixture, "third");
    assert_int_equal(fixture.done_count, 1);
    int client = client_open(fixture.port);
    client_expect_value(NULL, client, HOST_KEY, "third");
    close(client);
    agent_hosted_store_serve(fixture.store, &seeds, done, &fixture); /* and is freed */
    tear_down(&fixture);
    assert_int_equal(fixture.done_count, 1);
}

/* Two nodes of the record whose agents have announced themselves on this machine: one is there, and
 * the other was killed. */
TEST(who_has_died_on_this_machine_is_not_awaited) {
    struct fixture fixture;
    struct temporary_tree tree;
    struct rendezvous_state record = {0};
    struct text_list places = {0};
    struct job_posting postings[2] = {0};
    temporary_tree_init(&tree);
    set_up(&fixture, true);
    text_list_add_taken(&fixture.environment, text_format("MUSTER_RUNTIME_DIR=%s/jobs", tree.root));
    job_directory_places(&fixture.environment, &places);
    for (size_t i = 0; i < 2; i++) {
        struct failure failure = {0};
        struct node_identity identity;
        char name[NODE_PROCESS_TEXT_SIZE];
        node_identity_init(
            &identity, i == 0 ? "there" : "node7", 1, node_identity_muster_local_id((uint32_t)i));
        identity.process = (struct node_process){1, i};
        node_process_write(&identity.process, name);
        rendezvous_state_obtain(&record, &identity)->is_participant = true;
        assert_int_equal(
            job_directory_post(&places, name, "", &postings[i], &failure), FAILURE_NONE);
    }
    close(postings[1].lock_fd);
    free(postings[1].path);
    serve(&fixture, "of the term before");
    agent_hosted_store_see(fixture.store, &record);
    event_loop_run(fixture.site.loop);
    assert_int_equal(fixture.gone_count, 1);
    assert_true(remembered_log_has(&fixture.log, "has ended: node node7_1_"));
    tear_down(&fixture);
    job_posting_remove(&postings[0]);
    rendezvous_state_clear(&record);
    text_list_clear(&places);
    temporary_tree_clear(&tree);
}
