/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/loop/whole_file.h"
#include "host/standby/spare_treatment.h"
#include "processes.h"

static int score_of(pid_t pid) {
    int score = -1;
    char *path = text_format("/proc/%lld/oom_score_adj", (long long)pid);
    assert_int_equal(whole_file_read_integer(path, &score, NULL), FAILURE_NONE);
    free(path);
    return score;
}

static void a_child_is_preferred_and_then_like_its_parent_again(void **state) {
    (void)state;
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    spare_treatment_end_first(process.pid);
    assert_int_equal(score_of(process.pid), 1000);
    spare_treatment_end_as_usual(process.pid);
    assert_int_equal(score_of(process.pid), score_of(getpid()));
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    spare_treatment_end_first(process.pid); /* which is gone */
}

static bool read_niceness(pid_t pid, int *out_niceness) {
    char line[64];
    char *path = text_format("/proc/%lld/autogroup", (long long)pid);
    FILE *file = fopen(path, "r");
    free(path);
    if (file == NULL) {
        return false;
    }
    bool is_read = fgets(line, sizeof line, file) != NULL &&
                   sscanf(line, "/autogroup-%*d nice %d", out_niceness) == 1;
    fclose(file);
    return is_read;
}

static void a_session_that_made_way_shares_the_cpus_again(void **state) {
    (void)state;
    int niceness;
    struct process process =
        processes_start_shell("echo 7 > /proc/self/autogroup; exec sleep 1000", -1, -1);
    if (!read_niceness(process.pid, &niceness)) {
        kill(process.pid, SIGKILL);
        processes_wait(&process);
        print_message("skipped: this kernel has no scheduling group for each session\n");
        skip();
    }
    while (niceness != 7) {
        assert_true(read_niceness(process.pid, &niceness));
    }
    /* The kernel allows ten changes a second. */
    while (niceness != 0) {
        spare_treatment_share_as_usual(process.pid);
        assert_true(read_niceness(process.pid, &niceness));
    }
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    spare_treatment_share_as_usual(process.pid); /* which is gone */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_session_that_made_way_shares_the_cpus_again),
    cmocka_unit_test(a_child_is_preferred_and_then_like_its_parent_again),
};

TEST_MAIN(tests)
