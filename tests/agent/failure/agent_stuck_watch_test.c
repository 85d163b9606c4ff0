/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/failure/agent_evidence.h"
#include "agent_fixture.h"
#include "host/remembered_log.h"
#include "workers_fixture.h"

/* How often the kernel is made to say D before it says S. */
static int stuck_looks;

static bool read_made_up(pid_t pid, struct kernel_process_stat *out_stat) {
    *out_stat = (struct kernel_process_stat){.pid = pid, .state = stuck_looks > 0 ? 'D' : 'S'};
    stuck_looks -= stuck_looks > 0 ? 1 : 0;
    return true;
}

struct fixture {
    struct workers_fixture workers;
    struct remembered_log log;
    struct agent_stuck_watch *watch;
    int told;
    struct duration how_long;
};

static void note_stuck(void *context, int local_rank, struct duration how_long) {
    struct fixture *fixture = context;
    assert_int_equal(local_rank, 0);
    fixture->told++;
    fixture->how_long = how_long;
    agent_stuck_watch_end(fixture->watch);
    agent_workers_signal(fixture->workers.workers, SIGKILL);
}

static void set_up(struct fixture *fixture, const char *command) {
    *fixture = (struct fixture){0};
    workers_fixture_init(&fixture->workers, 1, command);
    remembered_log_init(&fixture->log);
    struct launch_config *config = &fixture->workers.agent.config;
    config->stuck_timeout = duration_from_milliseconds(30);
    struct agent_stuck_watch_settings settings = {
        .config = config,
        .workers = fixture->workers.workers,
        .worker_count = 1,
        .log = &fixture->log.log,
        .read_process = read_made_up,
        .stuck = note_stuck,
        .context = fixture,
    };
    fixture->watch = agent_stuck_watch_new(fixture->workers.loop, &settings);
    assert_non_null(fixture->watch);
}

static void tear_down(struct fixture *fixture) {
    agent_stuck_watch_free(fixture->watch);
    workers_fixture_clear(&fixture->workers);
    text_clear(&fixture->log.text);
}

FIXTURE_TEST_AFTER(a_worker_stuck_for_too_long_is_told, set_up(&fixture, "exec sleep 1000")) {
    stuck_looks = 1000;
    agent_stuck_watch_begin(fixture->watch);
    workers_fixture_run(&fixture->workers);
    assert_int_equal(fixture->told, 1);
    assert_true(fixture->how_long.nanoseconds >= 30000000);
    assert_true(remembered_log_has(&fixture->log, "is in uninterruptible sleep"));
}

FIXTURE_TEST_AFTER(a_worker_that_waits_for_a_disk_is_let_alone, set_up(&fixture, "sleep 0.2")) {
    stuck_looks = 2;
    agent_stuck_watch_begin(fixture->watch);
    workers_fixture_run(&fixture->workers);
    assert_int_equal(stuck_looks, 0);
    assert_int_equal(fixture->told, 0);
}

FIXTURE_TEST_AFTER(
    nobody_looks_before_the_beginning_or_after_the_end, set_up(&fixture, "sleep 0.1")) {
    stuck_looks = 1000;
    workers_fixture_run(&fixture->workers);
    agent_stuck_watch_begin(fixture->watch);
    agent_stuck_watch_end(fixture->watch);
    workers_fixture_run(&fixture->workers);
    assert_int_equal(stuck_looks, 1000);
}

TEST(without_a_timeout_there_is_no_watch) {
    struct launch_config config = {0};
    struct agent_stuck_watch_settings settings = {.config = &config};
    struct agent_stuck_watch *watch = agent_stuck_watch_new(NULL, &settings);
    assert_null(watch);
    agent_stuck_watch_begin(watch);
    agent_stuck_watch_end(watch);
    agent_stuck_watch_free(watch);
}
