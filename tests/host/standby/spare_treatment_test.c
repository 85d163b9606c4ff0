/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "host/standby/standby_gate.h"
#include "processes.h"

static struct process start(void) {
    return processes_start_shell("exec sleep 1000", -1, -1);
}

static void end(struct process *process) {
    kill(process->pid, SIGKILL);
    processes_wait(process);
}

static int score_of(pid_t pid) {
    int score = -1;
    char *path = text_format("/proc/%lld/oom_score_adj", (long long)pid);
    assert_int_equal(whole_file_read_integer(path, &score, NULL), FAILURE_NONE);
    free(path);
    return score;
}

TEST(a_child_is_preferred_and_then_like_its_parent_again) {
    struct process process = start();
    spare_treatment_begin(process.pid);
    assert_int_equal(score_of(process.pid), 1000);
    spare_treatment_end(process.pid);
    assert_int_equal(score_of(process.pid), score_of(getpid()));
    end(&process);
    spare_treatment_begin(process.pid); /* which is gone */
    spare_treatment_end(process.pid);
}
