/* SPDX-License-Identifier: BSD-3-Clause */
/* The two reserves of an agent. */
#include "unit.h"

#include "agent/agent_events.h"
#include "base/memory.h"

struct scene {
    struct event_loop *loop;
    struct agent_memory *memory;
    int exhausted;
};

static void note(void *context) {
    struct scene *scene = context;
    scene->exhausted++;
    event_loop_stop(scene->loop);
}

static void open_scene(struct scene *scene) {
    *scene = (struct scene){0};
    assert_int_equal(event_loop_new(&scene->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        agent_memory_new(scene->loop, note, scene, &scene->memory, NULL), FAILURE_NONE);
}

static void close_scene(struct scene *scene) {
    agent_memory_free(scene->memory);
    assert_true(event_loop_free(scene->loop));
    while (spare_memory_give_up_reserve()) {
    }
}

TEST_OF(scene, memory_that_comes_back_is_kept_again, open_scene(&fixture), close_scene) {
    assert_true(spare_memory_give_up_reserve());
    assert_true(spare_memory_give_up_reserve());
    assert_false(spare_memory_has_last_reserve());
    (void)event_loop_run_ready(fixture->loop);
    assert_true(spare_memory_has_last_reserve());
    assert_int_equal(fixture->exhausted, 0);
}
