/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of one job on one loop, each with the settings a whole agent would make for it, and a
 * mailbox that keeps what its performers tell. Nothing of a node is opened or decided here: a test
 * makes the performer it wants, and says what to do. */
#ifndef MUSTER_TESTS_AGENT_SITE_FIXTURE_H
#define MUSTER_TESTS_AGENT_SITE_FIXTURE_H

#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "agent/rendezvous/agent_rendezvous.h"
#include "agent_fixture.h"
#include "host/network/tcp_listener.h"

#define SITE_NODES_MAXIMUM 3
#define SITE_PATIENCE_SECONDS 30

struct site;

/* One event that was told. */
struct site_told {
    struct node_event_owned owned;
    struct text line;
    bool is_taken; /* by a test that awaited it */
};

struct site_node {
    struct site *site;
    struct launch_config config;
    char address[32];
    struct agent_preparation preparation;
    struct agent_node_settings node;
    struct agent_rendezvous_settings settings; /* what performers are made with */
    struct site_told **told; /* each in memory of its own: an event may point into itself */
    size_t told_count;
    size_t told_capacity;
};

struct site {
    struct agent_fixture agent;
    struct event_loop *loop;
    struct event_timer *patience;
    char host[16];
    int port; /* of the job's store */
    struct site_node nodes[SITE_NODES_MAXIMUM];
    const struct site_node *listener; /* is awaited to tell … */
    const char *awaited;              /* … a line that begins so */
};

static inline bool site_begins_with(const char *line, const char *beginning) {
    return strncmp(line, beginning, strlen(beginning)) == 0;
}

/* The mailbox. */
static inline void site_keep(void *context, const struct node_event *event) {
    struct site_node *node = context;
    struct site_told *told = memory_allocate(sizeof *told);
    node_event_own(event, &told->owned);
    node_event_describe(&told->owned.event, &told->line);
    node->told = memory_reserve(
        node->told, &node->told_capacity, node->told_count + 1, sizeof(struct site_told *));
    node->told[node->told_count++] = told;
    if (node->site->listener == node &&
        site_begins_with(text_string(&told->line), node->site->awaited)) {
        event_loop_stop(node->site->loop);
    }
}

/* A port nobody listens on, and below those the kernel hands out, so that no test beside this one
 * is given it before it is used. */
static inline int site_free_port(void) {
    enum failure_code code = FAILURE_SYSTEM;
    int fd;
    int port = 0;
    for (int tries = 0; code != FAILURE_NONE && tries < 1000; tries++) {
        code = tcp_listener_open(NULL, 20000 + (getpid() * 7 + tries) % 12000, &fd, &port, NULL);
    }
    assert_int_equal(code, FAILURE_NONE);
    close(fd);
    return port;
}

static inline void site_took_too_long(void *context) {
    const struct site *site = context;
    fail_msg("what was awaited did not come within %d s: %s", SITE_PATIENCE_SECONDS,
        site->awaited != NULL ? site->awaited : "");
}

static inline void site_init(struct site *site) {
    *site = (struct site){.host = "127.0.0.1"};
    agent_fixture_init(&site->agent, 1, "exit 0");
    site->agent.config.run_id = memory_duplicate_string("job");
    site->agent.config.master_host = memory_duplicate_string(site->host);
    site->agent.config.exit_barrier_timeout = duration_from_seconds(300);
    assert_int_equal(event_loop_new(&site->loop, NULL), FAILURE_NONE);
    site->patience = event_timer_new(site->loop, site_took_too_long, site);
    site->port = site_free_port();
}

static inline void site_forget_told(struct site_node *node) {
    for (size_t i = 0; i < node->told_count; i++) {
        node_event_owned_clear(&node->told[i]->owned);
        text_clear(&node->told[i]->line);
        free(node->told[i]);
    }
    node->told_count = 0;
}

/* After all performers have been freed. */
static inline void site_clear(struct site *site) {
    for (int i = 0; i < SITE_NODES_MAXIMUM; i++) {
        struct site_node *node = &site->nodes[i];
        agent_node_settings_clear(&node->node);
        agent_preparation_clear(&node->preparation);
        site_forget_told(node);
        free(node->told);
    }
    event_timer_free(site->patience);
    assert_true(event_loop_free(site->loop));
    agent_fixture_clear(&site->agent);
}

/* Nodes. */

static inline struct site_node *site_node_begin(struct site *site, int index) {
    struct site_node *node = &site->nodes[index];
    node->site = site;
    node->config = site->agent.config; /* shares what the fixture owns */
    node->config.worker_count = index + 1;
    return node;
}

static inline void site_node_prepare(struct site_node *node) {
    assert_int_equal(agent_prepare(&node->config, &node->site->agent.environment, NULL,
                         &node->preparation, NULL),
        FAILURE_NONE);
    assert_int_equal(agent_node_settings_make(&node->config, &node->preparation,
                         &node->site->agent.environment, &node->node, NULL),
        FAILURE_NONE);
    node->settings = (struct agent_rendezvous_settings){
        .config = &node->config,
        .preparation = &node->preparation,
        .node = &node->node.node,
        .mailbox = {site_keep, node},
    };
}

/* One of fixed nodes; node 0 hosts the store. */
static inline struct site_node *site_make_fixed(struct site *site, int index, int node_count) {
    struct site_node *node = site_node_begin(site, index);
    node->config.rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    node->config.maximum_nodes = node_count;
    node->config.node_rank = index;
    node->config.master_port = site->port;
    site_node_prepare(node);
    return node;
}

/* One of up to three nodes that come and go; node 0 hosts the store. */
static inline struct site_node *site_make_changing(struct site *site, int index, int minimum) {
    struct site_node *node = site_node_begin(site, index);
    struct launch_dynamic *dynamic = &node->config.dynamic;
    node->config.rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    node->config.minimum_nodes = minimum;
    node->config.maximum_nodes = SITE_NODES_MAXIMUM;
    snprintf(node->address, sizeof node->address, "127.0.0.%d", index + 1);
    node->config.local_address = node->address;
    rendezvous_settings_init(&dynamic->settings);
    dynamic->settings.minimum_nodes = minimum;
    dynamic->settings.maximum_nodes = SITE_NODES_MAXIMUM;
    dynamic->settings.last_call_timeout = duration_from_milliseconds(200);
    dynamic->host = site->host;
    dynamic->port = site->port;
    dynamic->is_host = index == 0 ? LAUNCH_IS_HOST_YES : LAUNCH_IS_HOST_NO;
    dynamic->read_timeout = duration_from_seconds(60);
    site_node_prepare(node);
    return node;
}

/* One of up to two nodes whose register is this directory, which is borrowed. */
static inline struct site_node *site_make_registered(
    struct site *site, int index, char *directory) {
    static char engine[] = "dir";
    struct site_node *node = site_node_begin(site, index);
    node->config.rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    rendezvous_settings_init(&node->config.dynamic.settings);
    node->config.minimum_nodes = 1;
    node->config.maximum_nodes = 2;
    node->config.dynamic.register_engine = engine;
    node->config.dynamic.register_endpoint = directory;
    node->config.local_address = site->host;
    site_node_prepare(node);
    return node;
}

/* What was told. */

/* How many events whose line begins so. */
static inline int site_count(const struct site_node *node, const char *beginning) {
    int count = 0;
    for (size_t i = 0; i < node->told_count; i++) {
        count += site_begins_with(text_string(&node->told[i]->line), beginning) ? 1 : 0;
    }
    return count;
}

static inline struct site_told *site_find(struct site_node *node, const char *beginning) {
    for (size_t i = 0; i < node->told_count; i++) {
        if (!node->told[i]->is_taken &&
            site_begins_with(text_string(&node->told[i]->line), beginning)) {
            return node->told[i];
        }
    }
    return NULL;
}

/* The first event whose line begins so, of those that no test has taken; runs until it is told. */
static inline const struct node_event *site_await(struct site_node *node, const char *beginning) {
    struct site *site = node->site;
    struct site_told *told = site_find(node, beginning);
    if (told == NULL) {
        site->listener = node;
        site->awaited = beginning;
        event_timer_set(site->patience, instant_after(event_loop_now(site->loop),
                                            duration_from_seconds(SITE_PATIENCE_SECONDS)));
        event_loop_run(site->loop);
        event_timer_stop(site->patience);
        site->listener = NULL;
        site->awaited = NULL;
        told = site_find(node, beginning);
        assert_non_null(told);
    }
    told->is_taken = true;
    return &told->owned.event;
}

/* All that was told since the test looked last. */
static inline void site_expect(struct site_node *node, const char *expected) {
    struct text lines = {0};
    for (size_t i = 0; i < node->told_count; i++) {
        text_append(&lines, i == 0 ? "" : "; ");
        text_append(&lines, text_string(&node->told[i]->line));
    }
    assert_string_equal(text_string(&lines), expected);
    text_clear(&lines);
    site_forget_told(node);
}

/* Hears what a store's thread had told of its connections before the answer that was awaited last:
 * one letter comes in one turn of the loop. */
static inline void site_hear(struct site *site) {
    for (int letter = 0; letter < 16; letter++) {
        event_loop_run_ready(site->loop);
    }
}

static inline struct instant site_soon(const struct site *site) {
    return instant_after(event_loop_now(site->loop), duration_from_seconds(20));
}

/* A test that is given a site. */
#define SITE_TEST(name) TEST_OF(site, name, site_init(&fixture), site_clear)

#endif
