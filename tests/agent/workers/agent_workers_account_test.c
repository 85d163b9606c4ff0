/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/workers/agent_workers.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* It is told again when it has ended. */
static void what_is_known_of_an_end_is_said_once(void **state) {
    (void)state;
    struct workers_fixture fixture;
    const struct process_exit killed = {.is_signal = true, .value = SIGKILL};
    workers_fixture_init(&fixture, 1, "exec sleep 1000");
    workers_fixture_start(&fixture);
    assert_null(agent_workers_evidence(fixture.workers, 0));
    agent_workers_note_signal(fixture.workers, 0, SIGKILL, "by the watchdog");
    agent_workers_learn_end(fixture.workers, 0, &killed);
    assert_string_equal(agent_workers_evidence(fixture.workers, 0), "killed by the watchdog");
    agent_workers_signal(fixture.workers, SIGKILL);
    event_loop_run(fixture.loop);
    assert_string_equal(agent_workers_evidence(fixture.workers, 0), "killed by the watchdog");
    assert_string_equal(fixture.story, "s0g");
    workers_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_known_of_an_end_is_said_once),
};

UNIT_TESTS(tests)
