/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/loop/whole_file.h"
#include "host/standby/spare_treatment.h"
#include "processes.h"

#define HIGHEST_NICENESS 19
#define LONG_SLICE 3000000

/* As the kernel has it. */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t niceness;
    uint32_t priority;
    uint64_t slice;
    uint64_t deadline;
    uint64_t period;
};

/* Zeros where it cannot be asked. */
static struct scheduling scheduling_of(pid_t pid) {
    struct scheduling scheduling = {0};
    (void)syscall(SYS_sched_getattr, pid, &scheduling, sizeof scheduling, 0);
    return scheduling;
}

static void set(pid_t pid, int niceness, uint64_t slice) {
    struct scheduling scheduling = scheduling_of(pid);
    scheduling.niceness = niceness;
    scheduling.slice = slice;
    (void)syscall(SYS_sched_setattr, pid, &scheduling, 0);
}

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

static void a_child_is_preferred_and_then_like_its_parent_again(void **state) {
    (void)state;
    struct spare_treatment treatment;
    struct process process = start();
    spare_treatment_begin(process.pid, &treatment);
    assert_int_equal(score_of(process.pid), 1000);
    spare_treatment_end(process.pid, &treatment);
    assert_int_equal(score_of(process.pid), score_of(getpid()));
    end(&process);
    spare_treatment_begin(process.pid, &treatment); /* which is gone */
    spare_treatment_end(process.pid, &treatment);
}

static void a_child_keeps_a_cpu_for_a_short_time_and_then_as_long_as_before(void **state) {
    (void)state;
    struct spare_treatment treatment;
    struct process process = start();
    set(process.pid, HIGHEST_NICENESS, LONG_SLICE);
    if (scheduling_of(process.pid).slice != LONG_SLICE) {
        end(&process);
        print_message("skipped: this kernel has no slices that a process can choose\n");
        skip();
    }
    spare_treatment_begin(process.pid, &treatment);
    assert_in_range(scheduling_of(process.pid).slice, 1, LONG_SLICE / 10);
    spare_treatment_end(process.pid, &treatment);
    assert_int_equal(scheduling_of(process.pid).slice, LONG_SLICE);
    assert_int_equal(scheduling_of(process.pid).niceness, HIGHEST_NICENESS);
    end(&process);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_child_is_preferred_and_then_like_its_parent_again),
    cmocka_unit_test(a_child_keeps_a_cpu_for_a_short_time_and_then_as_long_as_before),
};

TEST_MAIN(tests)
