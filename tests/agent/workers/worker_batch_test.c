/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/workers/agent_workers.h"
#include "agent_fixture.h"
#include "base/memory.h"
#include "workers_fixture.h"

static void assert_each_has_exited(const struct workers_fixture *fixture, int first, int last) {
    for (int rank = first; rank <= last; rank++) {
        assert_non_null(strchr(fixture->story, '0' + rank));
    }
}

TEST(more_workers_than_one_batch_holds_are_started) {
    struct workers_fixture fixture;
    int count = 2 * (int)WORKER_BATCH_MAXIMUM + 3;
    workers_fixture_init(&fixture, count, "exit 0");
    workers_fixture_run(&fixture);
    assert_int_equal(strlen(fixture.story), count + 2);
    assert_int_equal(fixture.story[0], 's');
    assert_each_has_exited(&fixture, 0, count - 1);
    workers_fixture_clear(&fixture);
}

/* Each may run on all CPUs but one worker, which may run on none. */
static void forbid_to_run(struct workers_fixture *fixture, int worker_count, int local_rank) {
    struct cpu_plan *cpus = &fixture->preparation.cpus;
    cpus->count = (size_t)worker_count;
    cpus->sets = memory_allocate(cpus->count * sizeof *cpus->sets);
    for (int i = 0; i < worker_count; i++) {
        memset(&cpus->sets[i], i == local_rank ? 0 : 0xff, sizeof cpus->sets[i]);
    }
}

WORKERS_TEST(the_first_that_cannot_be_started_is_named_and_the_others_are_workers,
    workers_fixture_init(&fixture, 4, "exec sleep 1000")) {
    forbid_to_run(fixture, 4, 1);
    workers_fixture_start(fixture);
    assert_string_equal(fixture->story, "f1");
    agent_workers_signal(fixture->workers, SIGKILL);
    event_loop_run(fixture->loop);
    assert_int_equal(strlen(fixture->story), 2 + 3 + 1);
    assert_each_has_exited(fixture, 2, 3);
    assert_non_null(strchr(fixture->story, '0'));
}
