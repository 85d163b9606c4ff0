/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/telling/agent_announcement.h"
#include "base/duration.h"
#include "host/remembered_log.h"
#include "host/telling/job_directory.h"
#include "temporary_tree.h"

#define LOOK_EVERY_MILLISECONDS 1
#define PATIENCE_SECONDS 60 /* of a slow machine */

struct fixture {
    struct temporary_tree tree;
    struct text_list environment;
    struct text_list places;
    struct remembered_log log;
    struct event_loop *loop;
    struct event_timer *looking;
    struct node_process process;
    struct agent_announcement *announcement;
    struct instant end;
    int awaited_port; /* 0: something in the log */
};

static int found_port(const struct fixture *fixture) {
    struct job_list jobs = {0};
    struct text_list refusals = {0};
    job_directory_find(&fixture->places, &jobs, &refusals);
    int port = jobs.count == 1 ? jobs.items[0].port : -(int)jobs.count;
    job_list_clear(&jobs);
    text_list_clear(&refusals);
    return port;
}

static void look(void *context) {
    struct fixture *fixture = context;
    bool is_there = fixture->awaited_port == 0 ? fixture->log.count > 0
                                               : found_port(fixture) == fixture->awaited_port;
    struct instant now = event_loop_now(fixture->loop);
    if (is_there || instant_until(now, fixture->end).nanoseconds <= 0) {
        event_loop_stop(fixture->loop);
    } else {
        event_timer_set(fixture->looking,
            instant_after(now, duration_from_milliseconds(LOOK_EVERY_MILLISECONDS)));
    }
}

/* Until the job of that port is the only one that is found. */
static void await(struct fixture *fixture, int port) {
    fixture->awaited_port = port;
    fixture->end =
        instant_after(event_loop_now(fixture->loop), duration_from_seconds(PATIENCE_SECONDS));
    event_timer_set(fixture->looking, event_loop_now(fixture->loop));
    event_loop_run(fixture->loop);
}

static void set_up(struct fixture *fixture) {
    struct failure failure = {0};
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    remembered_log_init(&fixture->log);
    text_list_add_taken(
        &fixture->environment, text_format("MUSTER_RUNTIME_DIR=%s/jobs", fixture->tree.root));
    job_directory_places(&fixture->environment, &fixture->places);
    assert_int_equal(event_loop_new(&fixture->loop, &failure), FAILURE_NONE);
    fixture->looking = event_timer_new(fixture->loop, look, fixture);
    fixture->announcement = agent_announcement_new(
        fixture->loop, &fixture->environment, &fixture->process, &fixture->log.log);
}

static void tear_down(struct fixture *fixture) {
    agent_announcement_free(fixture->announcement);
    event_timer_free(fixture->looking);
    event_loop_free(fixture->loop);
    text_list_clear(&fixture->places);
    text_list_clear(&fixture->environment);
    text_clear(&fixture->log.text);
    temporary_tree_clear(&fixture->tree);
}

static void tell(struct fixture *fixture, int port) {
    const struct node_placement placement = {
        .run_id = "job", .master_address = "localhost", .master_port = port};
    agent_announcement_tell(fixture->announcement, &placement);
}

FIXTURE_TEST(a_store_that_has_moved_is_announced_anew) {
    tell(fixture, 1001);
    await(fixture, 1001);
    tell(fixture, 1002);
    await(fixture, 1002);
    assert_int_equal(found_port(fixture), 1002);
    tell(fixture, 1003); /* while nothing of it is written … */
    tell(fixture, 1004); /* … the next one comes */
    await(fixture, 1004);
    assert_int_equal(found_port(fixture), 1004);
}

FIXTURE_TEST(an_end_while_it_is_written_leaves_nothing) {
    tell(fixture, 1001);
    tell(fixture, 1002);
    agent_announcement_free(fixture->announcement);
    fixture->announcement = NULL;
    assert_int_equal(rmdir(fixture->places.items[0]), 0); /* it is empty */
}
