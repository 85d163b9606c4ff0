/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "host/loop/files.h"
#include "host/process/process_table.h"
#include "library/agent_fixture.h"

#define BEGINNING "AGENT:RENDEZVOUS AGENT:ASSIGN_WORKER_RANKS WORKER:START WORKER:START "

FIXTURE_TEST_AFTER(job_of_succeeding_workers_succeeds, set_up(&fixture, 2, "exit 0")) {
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->exit_status, 0);
    assert_int_equal(result->worker_count, 2);
    assert_int_equal(result->workers[1].global_rank, 1);
    assert_int_equal(result->workers[1].exitcode, 0);
    assert_int_equal(result->failure_count, 0);
    assert_null(result->root_cause);
    assert_string_equal(text_string(&fixture->story),
        BEGINNING "WORKER:SUCCEEDED WORKER:SUCCEEDED AGENT:SUCCEEDED ");
    assert_true(fixture->rendezvous_events > 0);
}

#define TAKEN(name) name ".success=1 " name ".duration.ms "
#define STARTED                                                                                    \
    TAKEN("SimpleElasticAgent._rendezvous")                                                        \
    TAKEN("SimpleElasticAgent._assign_worker_ranks")                                               \
    TAKEN("LocalElasticAgent._start_workers")                                                      \
    TAKEN("SimpleElasticAgent._initialize_workers")
#define LOOKED(remaining, state)                                                                   \
    TAKEN("LocalElasticAgent._monitor_workers")                                                    \
    "workers.trainer.remaining_restarts=" remaining " workers.trainer." state "=1 "
#define RECORD(flakiness, success_with, success_without, failed_with, failed_without)              \
    "workers.trainer.flakiness=" flakiness " workers.trainer.run_total=1 "                         \
    "workers.trainer.run_success_with_retries=" success_with " "                                   \
    "workers.trainer.run_success_no_retries=" success_without " "                                  \
    "workers.trainer.run_failed_with_retries=" failed_with " "                                     \
    "workers.trainer.run_failed_no_retries=" failed_without " "

static void assert_metrics(int restarts, const char *command, const char *expected) {
    struct fixture fixture;
    set_up(&fixture, 1, command);
    fixture.settings.role = "trainer";
    fixture.settings.max_restarts = restarts;
    fixture.since = (double)time(NULL);
    start(&fixture);
    wait_for_end(&fixture);
    assert_string_equal(text_string(&fixture.metrics), expected);
    assert_true(fixture.since <= (double)time(NULL) + 2); /* which lags behind, by milliseconds */
    tear_down(&fixture);
}

TEST(metrics_have_torchelastics_names_and_values) {
    assert_metrics(0, "exit 0",
        STARTED LOOKED("0", "healthy") LOOKED("0", "succeeded") RECORD("0", "0", "1", "0", "0")
            TAKEN("SimpleElasticAgent.run"));
    assert_metrics(1, "test $TORCHELASTIC_RESTART_COUNT = 1",
        STARTED LOOKED("1", "healthy") LOOKED("1", "failed") TAKEN(
            "LocalElasticAgent._stop_workers") STARTED TAKEN("SimpleElasticAgent._restart_workers")
            LOOKED("0", "healthy") LOOKED("0", "succeeded") RECORD("50", "1", "0", "0", "0")
                TAKEN("SimpleElasticAgent.run"));
    assert_metrics(0, "exit 3",
        STARTED LOOKED("0", "healthy") LOOKED("0", "failed")
            TAKEN("LocalElasticAgent._stop_workers") RECORD("100", "0", "0", "0", "1")
                TAKEN("SimpleElasticAgent.run"));
}

TEST(failure_is_told_with_what_the_worker_wrote) {
    struct fixture fixture;
    set_up(&fixture, 2,
        "test $RANK = 1 || exec sleep 100; "
        "echo '{\"message\": \"out of luck\", \"timestamp\": 1700000000}' "
        "> $TORCHELASTIC_ERROR_FILE; exit 7");
    start(&fixture);
    const struct muster_run_result *result = wait_for_end(&fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_int_equal(result->exit_status, 1);
    assert_int_equal(result->failure_count, 1);
    assert_int_equal(result->failures[0].global_rank, 1);
    assert_int_equal(result->failures[0].exitcode, 7);
    assert_string_equal(result->failures[0].message, "out of luck");
    assert_non_null(strstr(result->failures[0].error_file, fixture.directory));
    assert_true(result->failures[0].pid > 0);
    assert_non_null(result->root_cause);
    assert_int_equal(result->root_cause->global_rank, 1);
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(
    failed_workers_are_restarted, set_up(&fixture, 2, "test $TORCHELASTIC_RESTART_COUNT = 1")) {
    fixture->settings.max_restarts = 1;
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->restarts, 1);
    assert_string_equal(text_string(&fixture->story),
        BEGINNING BEGINNING "WORKER:SUCCEEDED WORKER:SUCCEEDED AGENT:SUCCEEDED ");
}

FIXTURE_TEST_AFTER(program_that_cannot_be_run_is_a_failure_of_the_job, set_up(&fixture, 1, "")) {
    fixture->settings.entrypoint = "/nowhere/program";
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_int_equal(result->failure_count, 1);
    assert_non_null(strstr(result->failures[0].message, "/nowhere/program"));
}

TEST(stopped_agent_ends_its_workers) {
    struct fixture fixture;
    set_up(&fixture, 1,
        "trap 'touch $DIR/stopped; exit 3' TERM; touch $DIR/ready; "
        "while :; do sleep 0.01; done");
    start(&fixture);
    wait_for_file(fixture.directory, "ready");
    assert_int_equal(muster_agent_stop(fixture.agent, 0, NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_end(&fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_STOPPED);
    assert_int_equal(result->signal, SIGTERM);
    wait_for_file(fixture.directory, "stopped");
    assert_int_equal(muster_agent_stop(fixture.agent, 0, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_agent_kill(fixture.agent, NULL), MUSTER_ERROR_STATE);
    tear_down(&fixture);
}

/* The pid that a worker has left in a file. */
static pid_t pid_in(const struct fixture *fixture, const char *name) {
    char *path = text_format("%s/%s", fixture->directory, name);
    FILE *file = fopen(path, "r");
    int pid = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    free(path);
    return pid;
}

/* Where the first process of a container waits for nobody, what has ended stays a zombie. */
static void wait_until_gone(pid_t pid) {
    struct kernel_process_stat stat;
    while (process_table_read(pid, &stat) && stat.state != 'Z') {
        usleep(1000);
    }
}

#define NAME_ITSELF "echo $$$$ > $DIR/new; mv $DIR/new $DIR/pid; while :; do sleep 0.01; done"

FIXTURE_TEST_AFTER(killed_agent_leaves_no_workers_and_no_result, set_up(&fixture, 1, NAME_ITSELF)) {
    start(fixture);
    wait_for_file(fixture->directory, "pid");
    assert_int_equal(muster_agent_kill(fixture->agent, NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_UNKNOWN);
    assert_int_equal(result->exit_status, 1);
    assert_non_null(result->message);
    wait_until_gone(pid_in(fixture, "pid"));
}

FIXTURE_TEST_AFTER(freed_agent_ends_its_workers, set_up(&fixture, 1, NAME_ITSELF)) {
    start(fixture);
    wait_for_file(fixture->directory, "pid");
    pid_t worker = pid_in(fixture, "pid");
    muster_agent_free(fixture->agent);
    fixture->agent = NULL;
    wait_until_gone(worker);
}

FIXTURE_TEST_AFTER(end_of_the_program_ends_the_workers, set_up(&fixture, 1, NAME_ITSELF)) {
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        start(fixture);
        pause();
        _exit(0);
    }
    wait_for_file(fixture->directory, "pid");
    kill(program, SIGKILL);
    assert_int_equal(waitpid(program, NULL, 0), program);
    wait_until_gone(pid_in(fixture, "pid"));
}

/* Tools that watch a process keep theirs from here on. */
#define TOOLS_DESCRIPTORS 512

/* Of each worker's function: the context is a copy of the program's. */
static int leave_a_file(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    const struct fixture *fixture = context;
    char *path = text_format("%s/%s-of-%s", getenv("DIR"), getenv("RANK"), getenv("WORLD_SIZE"));
    FILE *file = fopen(path, "w");
    struct number_list open = number_directory_list("/proc/self/fd", "");
    int highest = 0; /* the listing's own, or libuv's */
    for (size_t i = 0; i < open.count; i++) {
        highest = open.items[i] < TOOLS_DESCRIPTORS ? open.items[i] : highest;
    }
    bool is_good = file != NULL && strcmp(fixture->directory, getenv("DIR")) == 0 && highest < 9;
    printf("said by a function\n");
    return is_good ? 0 : 9;
}

FIXTURE_TEST_AFTER(functions_are_workers, set_up_function(&fixture, 2, leave_a_file)) {
    int kept[16];
    for (size_t i = 0; i < 16; i++) {
        kept[i] = dup(STDERR_FILENO);
    }
    fixture->settings.function_context = fixture;
    fixture->settings.redirects = "3";
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    wait_for_file(fixture->directory, "0-of-2");
    wait_for_file(fixture->directory, "1-of-2");
    for (size_t i = 0; i < 16; i++) {
        close(kept[i]);
    }
    char *command =
        text_format("test $(cat %s/*/attempt_0/*/stdout.log | wc -l) = 2", fixture->logs);
    assert_int_equal(system(command), 0);
    free(command);
}

static int fail_once(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    (void)context;
    return strcmp(getenv("TORCHELASTIC_RESTART_COUNT"), "0") == 0 ? 5 : 0;
}

FIXTURE_TEST_AFTER(function_that_fails_is_started_again, set_up_function(&fixture, 2, fail_once)) {
    fixture->settings.max_restarts = 1;
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->restarts, 1);
}

static int give_back(void *context, struct muster_return_value *out_value) {
    static char text[32];
    (void)context;
    int length = snprintf(text, sizeof text, "from %s%c.", getenv("RANK"), '\0');
    if (strcmp(getenv("RANK"), "1") != 0) {
        *out_value = (struct muster_return_value){text, (size_t)length};
    }
    return 0;
}

static void assert_value(const struct muster_worker_exit *worker, int rank, int exit_code,
    const char *expected, size_t length) {
    assert_int_equal(worker->global_rank, rank);
    assert_int_equal(worker->exitcode, exit_code);
    assert_int_equal(worker->return_value.length, length);
    assert_memory_equal(worker->return_value.data, expected, length);
}

FIXTURE_TEST_AFTER(functions_give_values_back, set_up_function(&fixture, 3, give_back)) {
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_SUCCEEDED);
    assert_int_equal(result->worker_count, 3);
    assert_value(&result->workers[0], 0, 0, "from 0\0.", 8);
    assert_value(&result->workers[1], 1, 0, "", 0);
    assert_value(&result->workers[2], 2, 0, "from 2\0.", 8);
}

static int fail_with_a_value(void *context, struct muster_return_value *out_value) {
    (void)context;
    *out_value = (struct muster_return_value){"lost", 4};
    return 4;
}

FIXTURE_TEST_AFTER(
    function_that_fails_gives_nothing_back, set_up_function(&fixture, 1, fail_with_a_value)) {
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->worker_count, 1);
    assert_value(&result->workers[0], 0, 4, "", 0);
}

static int give_too_much(void *context, struct muster_return_value *out_value) {
    static char text[MUSTER_RETURN_VALUE_MAXIMUM + 1];
    const size_t *more = context;
    memset(text, 'x', sizeof text);
    *out_value = (struct muster_return_value){text, MUSTER_RETURN_VALUE_MAXIMUM + *more};
    return 0;
}

TEST(value_that_is_too_long_is_a_failure_of_the_worker) {
    struct fixture fixture;
    for (size_t more = 0; more < 2; more++) {
        set_up_function(&fixture, 1, give_too_much);
        fixture.settings.function_context = &more;
        fixture.settings.redirects = "3";
        start(&fixture);
        const struct muster_run_result *result = wait_for_end(&fixture);
        assert_int_equal(result->worker_count, 1);
        if (more == 0) {
            assert_int_equal(result->workers[0].return_value.length, MUSTER_RETURN_VALUE_MAXIMUM);
        } else {
            assert_value(&result->workers[0], 0, 1, "", 0);
            assert_string_equal(result->failures[0].message,
                "the function gives 524289 bytes back; up to 524288 are possible");
        }
        tear_down(&fixture);
    }
}

static int crash(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    (void)context;
    raise(SIGSEGV);
    return 0;
}

FIXTURE_TEST_AFTER(
    function_that_crashes_is_a_failure_with_its_signal, set_up_function(&fixture, 1, crash)) {
    start(fixture);
    const struct muster_run_result *result = wait_for_end(fixture);
    assert_int_equal(result->state, MUSTER_WORKER_STATE_FAILED);
    assert_int_equal(result->failures[0].exitcode, -SIGSEGV);
}

/* WorkerSpec.master_addr and master_port; envs and args of start_processes. */
FIXTURE_TEST_AFTER(each_worker_is_told_what_the_program_says,
    set_up(&fixture, 2, "echo \"$MINE $ROLE_NAME $MASTER_ADDR:$MASTER_PORT\" > $DIR/out0")) {
    static const char *const variables[] = {"MINE=second", "ROLE_NAME=own", NULL};
    static const char *const words[] = {"-c",
        "echo \"$0 $MINE $ROLE_NAME $MASTER_ADDR:$MASTER_PORT\" > $DIR/out1", "${local_rank}",
        NULL};
    static const char *const *const rank_env[] = {NULL, variables};
    static const char *const *const rank_args[] = {NULL, words};
    char line[128] = "";
    fixture->settings.master_addr = "192.0.2.7";
    fixture->settings.master_port = 4321;
    fixture->settings.rank_env = rank_env;
    fixture->settings.rank_args = rank_args;
    start(fixture);
    assert_int_equal(wait_for_end(fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    for (int rank = 0; rank < 2; rank++) {
        char *path = text_format("%s/out%d", fixture->directory, rank);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        assert_string_equal(
            line, rank == 0 ? " default 192.0.2.7:4321\n" : "1 second own 192.0.2.7:4321\n");
        fclose(file);
        free(path);
    }
}
