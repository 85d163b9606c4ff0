/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/telling/job_hang.h"

#define ROUND 7
#define REDUCE "train.py:214 in all_reduce\n"

/* A job of three nodes with two workers each, as its host knows it. */
struct fixture {
    struct job_hang_watch *watch;
    struct chronicle_status status;
    struct chronicle_node nodes[3];
    struct job_hang found;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.watch = job_hang_watch_new()};
    for (int node = 0; node < 3; node++) {
        fixture->nodes[node] =
            (struct chronicle_node){.rank = node, .state = CHRONICLE_NODE_TRAINING};
    }
    fixture->status = (struct chronicle_status){.state = JOB_TRAINING,
        .round = ROUND,
        .node_count = 3,
        .nodes = fixture->nodes,
        .known_nodes = 3};
}

static void tear_down(struct fixture *fixture) {
    job_hang_watch_free(fixture->watch);
    job_hang_clear(&fixture->found);
}

static void stand(struct fixture *fixture, int node, int round, double seconds, const char *odd) {
    struct standstill told = {
        .node_rank = node, .round = round, .silence = duration_from_seconds(seconds)};
    if (seconds > 0) {
        folded_stacks_add(&told.places, REDUCE, "", true, 2 * node, 1);
        folded_stacks_add(&told.places, odd != NULL ? odd : REDUCE, "", true, 2 * node + 1, 1);
    }
    job_hang_watch_take(fixture->watch, &told);
}

static bool hangs(struct fixture *fixture) {
    job_hang_clear(&fixture->found);
    return job_hang_watch_judge(fixture->watch, &fixture->status, &fixture->found);
}

FIXTURE_TEST(job_hangs_when_all_its_nodes_stand_still) {
    stand(fixture, 2, ROUND, 62, NULL);
    stand(fixture, 0, ROUND, 61.2, NULL);
    assert_false(hangs(fixture));
    stand(fixture, 1, ROUND, 63, "data.py:88 in read\n");
    assert_true(hangs(fixture));
    assert_int_equal(fixture->found.rank, 3);
    assert_int_equal(fixture->found.round, ROUND);
    assert_true(duration_seconds(fixture->found.silence) == 61.2);
    assert_string_equal(fixture->found.where, "read (data.py:88)");
    assert_string_equal(fixture->found.what,
        "no rank has taken a step for 61.2 s: rank 3 in read (data.py:88); ranks 0-2,4-5 in "
        "all_reduce (train.py:214)");
    assert_false(hangs(fixture)); /* that is told once */
}

FIXTURE_TEST(node_that_goes_on_takes_its_word_back) {
    stand(fixture, 0, ROUND, 60, NULL);
    stand(fixture, 1, ROUND, 60, NULL);
    stand(fixture, 0, ROUND, 0, NULL);
    stand(fixture, 2, ROUND, 60, NULL);
    assert_false(hangs(fixture));
    stand(fixture, 0, ROUND, 60, NULL);
    assert_true(hangs(fixture));
}

FIXTURE_TEST(what_was_told_in_a_round_before_does_not_count) {
    for (int node = 0; node < 3; node++) {
        stand(fixture, node, node == 1 ? ROUND - 1 : ROUND, 60, NULL);
    }
    assert_false(hangs(fixture));
}

FIXTURE_TEST(nodes_that_take_no_steps_are_not_awaited) {
    fixture->nodes[1].state = CHRONICLE_NODE_RUNNING;
    stand(fixture, 0, ROUND, 60, NULL);
    assert_false(hangs(fixture));
    stand(fixture, 2, ROUND, 60, NULL);
    assert_true(hangs(fixture));
}

/* As nodes of torchrun's are, and nodes that have one name together. */
FIXTURE_TEST(where_nodes_are_not_known_each_of_the_world_has_to_stand_still) {
    fixture->status.known_nodes = 1;
    stand(fixture, 0, ROUND, 60, NULL);
    stand(fixture, 1, ROUND, 60, NULL);
    assert_false(hangs(fixture));
    stand(fixture, 2, ROUND, 60, NULL);
    assert_true(hangs(fixture));
}

FIXTURE_TEST(job_that_does_something_else_does_not_hang) {
    for (int node = 0; node < 3; node++) {
        stand(fixture, node, ROUND, 60, NULL);
    }
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        fixture->status.state = (enum job_state)state;
        assert_false(state != JOB_TRAINING && hangs(fixture));
    }
    fixture->status.state = JOB_TRAINING;
    assert_true(hangs(fixture));
}

FIXTURE_TEST(nobody_is_told_of_without_a_place) {
    struct standstill told = {.round = ROUND, .silence = duration_from_seconds(1)};
    fixture->status.node_count = 1;
    fixture->status.known_nodes = 1;
    job_hang_watch_take(fixture->watch, &told);
    assert_false(hangs(fixture));
}

/* Who tells is not asked for its rank, so all together are given so much room. */
FIXTURE_TEST(places_of_all_nodes_together_have_a_bound) {
    char *long_place = memory_allocate(30001);
    memset(long_place, 'x', 30000);
    for (int node = 3; node < 300; node++) {
        stand(fixture, node, ROUND, 61, long_place);
    }
    for (int node = 0; node < 3; node++) {
        stand(fixture, node, ROUND, 61, long_place);
    }
    assert_false(hangs(fixture));
    for (int node = 3; node < 300; node++) {
        stand(fixture, node, ROUND, 0, NULL);
    }
    for (int again = 0; again < 2; again++) {
        for (int node = 0; node < 3; node++) {
            stand(fixture, node, ROUND, 61, long_place);
        }
        assert_true(hangs(fixture));
    }
    free(long_place);
}
