/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes write beside the job's record, and read there: who failed first, what workers have
 * imported, which nodes are not ready, and which other jobs wait. */
#include "unit.h"

#include <limits.h>

#include "base/memory.h"
#include "core/round/round_key.h"
#include "host/remembered_log.h"
#include "host/store/store_admission.h"
#include "host/store/store_thread.h"
#include "record_fixture.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* A store of another program; NULL: node 0 hosts it. */
static struct store_thread *others_store;
static struct remembered_log logs[3];
static struct job_token *token;
static struct text warmed; /* with */

static bool warm(void *context, struct slice text) {
    (void)context;
    text_append_bytes(&warmed, (const char *)text.data, text.length);
    return false; /* so that WARMED is told */
}

static void add(struct fixture *fixture, int index) {
    struct site_node *node = site_make_changing(&fixture->site, index, 1);
    remembered_log_init(&logs[index]);
    node->settings.log = &logs[index].log;
    node->settings.key = job_token_key(token);
    node->settings.warm = warm;
    if (others_store != NULL) {
        node->config.dynamic.is_host = LAUNCH_IS_HOST_NO;
    }
    if (node->config.dynamic.is_host == LAUNCH_IS_HOST_NO) {
        /* nothing rests for long, and each answer has time */
        node->config.dynamic.settings.keep_alive_interval.nanoseconds = 10;
        node->config.dynamic.settings.keep_alive_max_attempt = INT_MAX;
    }
    fixture->nodes[index] = node;
    fixture->records[index] = open_record(node);
    connect_record(fixture->records[index], &fixture->site);
    site_await(node, "connected");
    site_forget_told(node);
}

/* `state`: whether the store is an agent's. */
static void begin(struct fixture *fixture, void **state) {
    *fixture = (struct fixture){0};
    site_init(&fixture->site);
    if (*state == NULL) {
        const struct store_server_settings settings = {0};
        int fd;
        int port;
        assert_int_equal(
            tcp_listener_open(NULL, fixture->site.port, &fd, &port, NULL), FAILURE_NONE);
        assert_int_equal(store_thread_start(fixture->site.loop, fd, &settings, &others_store, NULL),
            FAILURE_NONE);
    }
}

static void begin_two(struct fixture *fixture, void **state) {
    begin(fixture, state);
    add(fixture, 0);
    add(fixture, 1);
}

static void end(struct fixture *fixture) {
    for (int i = 2; i >= 0; i--) {
        agent_record_free(fixture->records[i]);
        text_clear(&logs[i].text);
    }
    if (others_store != NULL) {
        store_thread_stop(others_store);
        others_store = NULL;
    }
    job_token_free(token);
    token = NULL;
    text_clear(&warmed);
    site_clear(&fixture->site);
}

/* A test that is played at an agent's store, and at another one. */
#define AT_BOTH(name)                                                                              \
    static void name(void **state);                                                                \
    TEST_AGAIN(name, name, NULL, NULL, &an_agents)                                                 \
    TEST_AGAIN(name##_elsewhere, name, NULL, NULL, NULL)                                           \
    static void name(void **state)

static char an_agents;

static void write_key(struct fixture *fixture, int index, const char *key, struct slice value) {
    const struct slice name = slice_from_string(key);
    struct store_client_call call = {
        .request = {.operation = STORE_MULTI_SET, .keys = &name, .values = &value, .count = 1},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(agent_record_backend(fixture->records[index]), &call));
}

/* Who failed first. */

#define ROOT_CAUSE "/torch.rendezvous.job.7/muster/root_cause"

static void publish(struct fixture *fixture, int index, int64_t round, const char *host) {
    char *copy = memory_duplicate_string(host);
    struct failure_account account = {.host = copy, .exit = {.value = 1}};
    agent_record_publish_root_cause(fixture->records[index], round, &account);
    free(copy);
}

/* The hosts that were learnt until then, or NULL. */
static void look(struct fixture *fixture, int index, int64_t round, const char *learnt) {
    agent_record_look_for_root_cause(fixture->records[index], round);
    site_await(fixture->nodes[index], "root_cause_looked");
    if (learnt != NULL) {
        const struct node_event *event = site_await(fixture->nodes[index], "root_cause_learnt");
        assert_string_equal(event->membership.account->host, learnt);
    } else {
        assert_int_equal(site_count(fixture->nodes[index], "root_cause_learnt"), 0);
    }
    site_forget_told(fixture->nodes[index]);
}

AT_BOTH(the_first_failure_to_reach_the_store_is_everybodys_root_cause) {
    struct fixture fixture;
    begin_two(&fixture, state);
    look(&fixture, 0, 7, NULL);
    publish(&fixture, 0, 7, "first");
    look(&fixture, 0, 7, "first"); /* asked and answered in order: it is written */
    publish(&fixture, 1, 7, "second");
    site_await(fixture.nodes[1], "root_cause_learnt");
    look(&fixture, 1, 7, "first");
    look(&fixture, 1, 8, NULL);
    end(&fixture);
}

AT_BOTH(without_a_connection_a_look_is_over_at_once) {
    struct fixture fixture;
    begin_two(&fixture, state);
    agent_record_disconnect(fixture.records[1]);
    site_forget_told(fixture.nodes[1]);
    publish(&fixture, 1, 7, "first");
    agent_record_look_for_root_cause(fixture.records[1], 7);
    site_expect(fixture.nodes[1], "root_cause_looked");
    end(&fixture);
}

/* Whoever waits for the answer must not wait for ever. */
AT_BOTH(a_look_is_over_when_the_connection_is) {
    struct fixture fixture;
    begin_two(&fixture, state);
    agent_record_look_for_root_cause(fixture.records[1], 7);
    connect_record(fixture.records[1], &fixture.site); /* drops what was there */
    site_expect(fixture.nodes[1], "root_cause_looked");
    end(&fixture);
}

/* It would be reported as the cause of what happened in the later round. */
AT_BOTH(what_an_earlier_look_finds_is_not_learnt_by_a_later_one) {
    struct fixture fixture;
    begin_two(&fixture, state);
    publish(&fixture, 1, 7, "first");
    fetch(&fixture, 1);
    agent_record_look_for_root_cause(fixture.records[0], 7);
    look(&fixture, 0, 8, NULL);
    publish(&fixture, 1, 8, "other");
    fetch(&fixture, 1);
    agent_record_look_for_root_cause(fixture.records[0], 9);
    look(&fixture, 0, 8, "other");
    end(&fixture);
}

AT_BOTH(an_account_without_sense_is_left_out) {
    struct fixture fixture;
    begin_two(&fixture, state);
    write_key(&fixture, 0, ROOT_CAUSE, slice_from_string("")); /* as if it were cleared away */
    look(&fixture, 0, 7, NULL);
    assert_false(remembered_log_has(&logs[0], "makes no sense"));
    write_key(&fixture, 0, ROOT_CAUSE, slice_from_string("{"));
    look(&fixture, 0, 7, NULL);
    assert_true(remembered_log_has(&logs[0], "makes no sense"));
    end(&fixture);
}

/* What workers have imported. */

static void begin_with_a_token(struct fixture *fixture) {
    void *state = &an_agents;
    assert_int_equal(job_token_open("a secret of sixteen bytes", NULL, &token, NULL), FAILURE_NONE);
    begin_two(fixture, &state);
}

static void expect_list(struct fixture *fixture, int index, const char *text) {
    text_clear(&warmed);
    perform(fixture->records[index], RENDEZVOUS_EFFECT_WARM);
    site_await(fixture->nodes[index], "warmed");
    assert_string_equal(text_string(&warmed), text);
}

TEST_OF(fixture, a_list_is_passed_on_up_to_the_largest_size, begin_with_a_token(&fixture), end) {
    size_t most = LEARNED_LIST_SHARED_MAXIMUM;
    char *list = memory_allocate(most + 2);
    memset(list, 'x', most + 1);
    expect_list(fixture, 0, "");
    agent_record_publish_learned_list(fixture->records[0], (struct slice){(uint8_t *)list, most});
    agent_record_publish_learned_list(
        fixture->records[0], (struct slice){(uint8_t *)list, most + 1});
    fetch(fixture, 0);
    list[most] = '\0';
    expect_list(fixture, 1, list);
    list[most] = 'x'; /* any program can write the key */
    write_key(fixture, 0, "/torch.rendezvous.job/muster/standby", slice_from_string(list));
    fetch(fixture, 0);
    expect_list(fixture, 1, "");
    agent_record_disconnect(fixture->records[1]);
    expect_list(fixture, 1, "");
    free(list);
}

TEST(nodes_that_do_not_prove_themselves_pass_on_no_list) {
    void *own = &an_agents;
    struct fixture fixture;
    begin_two(&fixture, &own);
    agent_record_publish_learned_list(fixture.records[0], slice_from_string("json\t\n"));
    write_key(&fixture, 0, "/torch.rendezvous.job/muster/standby", slice_from_string("json\t\n"));
    fetch(&fixture, 0);
    expect_list(&fixture, 1, "");
    assert_true(remembered_log_has(&logs[1], "prove themselves"));
    end(&fixture);
}

/* Who is not ready. */

static void publish_role(struct fixture *fixture, int rank) {
    const struct round_key key = {.kind = ROUND_KEY_ROLE_INFO, .round = 7, .node = rank};
    struct text_list keys = {0};
    round_key_list(&key, "job", &keys);
    write_key(fixture, 0, keys.items[0], slice_from_string("{}"));
    text_list_clear(&keys);
}

static void expect_unready(struct fixture *fixture, const struct rendezvous_state *record,
    int64_t round, const char *expected) {
    struct text_list names = {0};
    struct text text = {0};
    (void)agent_record_look_for_unready(fixture->records[0], record);
    fetch(fixture, 0);
    agent_record_list_unready(fixture->records[0], round, &names);
    for (size_t i = 0; i < names.count; i++) {
        text_append_format(&text, "%s%s", i == 0 ? "" : " ", names.items[i]);
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    text_list_clear(&names);
}

#define MOST_NODES 65 /* one more than may be asked for */

/* Of the first ones the last has the first rank. */
static void begin_round(struct rendezvous_node *nodes, struct rendezvous_state *record, int count) {
    *record = (struct rendezvous_state){
        .nodes = nodes, .count = (size_t)count, .round = 7, .is_complete = true};
    for (int i = 0; i < count; i++) {
        char address[16];
        snprintf(address, sizeof address, "n%d", i);
        node_identity_init(&nodes[i].identity, address, 7, 0);
        nodes[i].is_participant = true;
        nodes[i].rank = count - 1 - i;
    }
}

/* Another store would end the connection of who asks for what is not there. */
AT_BOTH(who_has_not_published_its_role_is_not_ready) {
    struct fixture fixture;
    struct rendezvous_node nodes[MOST_NODES];
    struct rendezvous_state record;
    bool is_known = *state != NULL;
    begin_two(&fixture, state);
    begin_round(nodes, &record, 3);
    expect_unready(&fixture, &record, 7, is_known ? "n2 n1 n0" : "");
    publish_role(&fixture, 0);
    publish_role(&fixture, 2);
    expect_unready(&fixture, &record, 7, is_known ? "n1" : "");
    expect_unready(&fixture, &record, 8, "");
    publish_role(&fixture, 1);
    expect_unready(&fixture, &record, 7, "");
    end(&fixture);
}

TEST(nobody_asks_who_is_ready_where_that_costs_too_much) {
    void *own = &an_agents;
    struct fixture fixture;
    struct rendezvous_node nodes[MOST_NODES];
    struct rendezvous_state record;
    begin_two(&fixture, &own);
    begin_round(nodes, &record, MOST_NODES);
    expect_unready(&fixture, &record, 7, "");
    begin_round(nodes, &record, 3);
    record.ranked = record.round + 1; /* the host tells the ranks */
    expect_unready(&fixture, &record, 7, "");
    record.ranked = 0;
    agent_record_disconnect(fixture.records[0]);
    assert_false(agent_record_look_for_unready(fixture.records[0], &record));
    end(&fixture);
}

/* Other jobs. */

static const char *const run_ids[] = {"one", "two"};

/* Two jobs of one node each. */
static void begin_jobs(struct fixture *fixture, void **state) {
    begin(fixture, state);
    for (int i = 0; i < 2; i++) {
        free(fixture->site.agent.config.run_id);
        fixture->site.agent.config.run_id = memory_duplicate_string(run_ids[i]);
        add(fixture, i);
    }
}

/* With a sign of life that no earlier one had. */
static void write_record(struct fixture *fixture, int index, bool is_complete) {
    static int64_t heartbeat;
    struct rendezvous_state state = {.is_complete = is_complete};
    struct node_identity identity;
    struct bytes text;
    char *key = text_format("/torch.rendezvous.%s", run_ids[index]);
    bytes_init(&text, 65536);
    node_identity_init(&identity, index == 0 ? "node1" : "node2", 7, 0);
    struct rendezvous_node *node = rendezvous_state_obtain(&state, &identity);
    node->is_participant = node->has_heartbeat = true;
    node->heartbeat.nanoseconds = heartbeat += NANOSECONDS_PER_SECOND;
    assert_int_equal(rendezvous_state_write_text(&state, &text), FAILURE_NONE);
    write_key(fixture, index, key, bytes_slice(&text));
    fetch(fixture, index);
    bytes_clear(&text);
    rendezvous_state_clear(&state);
    free(key);
}

/* Both readings are over: the list, this job's own line and two records, one after the other. */
static void look_around(struct fixture *fixture, int index) {
    for (int i = 0; i < 8; i++) {
        agent_record_look_for_neighbours(fixture->records[index]);
        fetch(fixture, index);
    }
}

static void look_beside_the_living(struct fixture *fixture, int index, const char *words) {
    while (!remembered_log_has(&logs[index], words)) {
        agent_record_look_for_neighbours(fixture->records[index]);
        write_record(fixture, 1 - index, false);
    }
}

AT_BOTH(two_jobs_that_wait_are_told_of_each_other) {
    struct fixture fixture;
    begin_jobs(&fixture, state);
    look_around(&fixture, 0);
    look_beside_the_living(&fixture, 1, "--rdzv-id 'one': node1; this one is --rdzv-id 'two'");
    if (*state == NULL) { /* a host rests for seconds */
        look_beside_the_living(&fixture, 0, "--rdzv-id 'two': node2; this one is --rdzv-id 'one'");
    }
    end(&fixture);
}

/* Its agents were all killed, it has all its nodes, or its record makes no sense. */
AT_BOTH(a_job_that_does_not_wait_is_no_news) {
    struct fixture fixture;
    begin_jobs(&fixture, state);
    look_around(&fixture, 0);
    look_around(&fixture, 1); /* the other has no record at all */
    write_record(&fixture, 0, false);
    look_around(&fixture, 1);
    for (int i = 0; i < 8; i++) {
        agent_record_look_for_neighbours(fixture.records[1]);
        write_record(&fixture, 0, true);
    }
    write_key(&fixture, 0, "/torch.rendezvous.one", slice_from_string("\xff nonsense"));
    look_around(&fixture, 1);
    assert_string_equal(text_string(&logs[1].text), "");
    end(&fixture);
}

AT_BOTH(nothing_is_said_of_others_once_the_waiting_is_over) {
    struct fixture fixture;
    begin_jobs(&fixture, state);
    look_around(&fixture, 0);
    for (int i = 0; i < 8; i++) {
        agent_record_look_for_neighbours(fixture.records[1]);
        agent_record_stop_looking_for_neighbours(fixture.records[1]);
        write_record(&fixture, 0, false);
    }
    agent_record_look_for_neighbours(fixture.records[1]);
    agent_record_disconnect(fixture.records[1]); /* amid the look */
    agent_record_look_for_neighbours(fixture.records[1]);
    assert_string_equal(text_string(&logs[1].text), "");
    end(&fixture);
}
