/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/spare_treatment.h"

#include <fcntl.h>
#include <stdio.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/duration.h"
#include "host/loop/number_directory.h"
#include "host/loop/whole_file.h"

#define HIGHEST_SCORE 1000
/* The shortest that the kernel knows. */
#define SHORT_SLICE_NANOSECONDS (NANOSECONDS_PER_MILLISECOND / 10)

/* Memory. */

static void set_score(pid_t pid, int score) {
    char path[NUMBER_PATH_SIZE];
    char digits[16];
    number_path_format(path, "/proc/", (int)pid, "/oom_score_adj");
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd != -1) {
        int length = snprintf(digits, sizeof digits, "%d", score);
        (void)!write(fd, digits, (size_t)length);
        close(fd);
    }
}

/* CPUs. */

/* The first version of the kernel's struct sched_attr, which not every C library has. */
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

static bool get_scheduling(pid_t pid, struct scheduling *out_scheduling) {
    return syscall(SYS_sched_getattr, pid, out_scheduling, sizeof *out_scheduling, 0) == 0 &&
           (out_scheduling->policy == SCHED_OTHER || out_scheduling->policy == SCHED_BATCH);
}

/* Of one thread. Older kernels take it and do nothing. */
static void set_slice(pid_t thread, uint64_t slice) {
    struct scheduling scheduling = {0};
    if (get_scheduling(thread, &scheduling)) {
        scheduling.size = sizeof scheduling;
        scheduling.slice = slice;
        (void)syscall(SYS_sched_setattr, thread, &scheduling, 0);
    }
}

static bool set_slice_of_thread(void *context, int thread) {
    set_slice((pid_t)thread, *(const uint64_t *)context);
    return true;
}

/* Both. */

void spare_treatment_begin(pid_t pid, struct spare_treatment *out_treatment) {
    struct scheduling scheduling = {0};
    *out_treatment = (struct spare_treatment){0};
    set_score(pid, HIGHEST_SCORE);
    if (get_scheduling(pid, &scheduling) && scheduling.slice > SHORT_SLICE_NANOSECONDS) {
        out_treatment->slice = scheduling.slice;
        set_slice(pid, SHORT_SLICE_NANOSECONDS);
    }
}

void spare_treatment_end(pid_t pid, const struct spare_treatment *treatment) {
    char path[NUMBER_PATH_SIZE];
    uint64_t slice = treatment->slice;
    int score;
    if (whole_file_read_integer("/proc/self/oom_score_adj", &score, NULL) == FAILURE_NONE) {
        set_score(pid, score);
    }
    if (slice > 0) {
        number_path_format(path, "/proc/", (int)pid, "/task");
        (void)number_directory_each(path, set_slice_of_thread, &slice);
    }
}
