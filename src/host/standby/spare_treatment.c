/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/spare_treatment.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/loop/number_directory.h"
#include "host/loop/whole_file.h"

#define HIGHEST_SCORE 1000
#define USUAL_NICENESS 0

static void set(pid_t pid, const char *what, int value) {
    char path[NUMBER_PATH_SIZE];
    char digits[16];
    number_path_format(path, "/proc/", (int)pid, what);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd != -1) {
        int length = snprintf(digits, sizeof digits, "%d", value);
        (void)!write(fd, digits, (size_t)length);
        close(fd);
    }
}

void spare_treatment_end_first(pid_t pid) {
    set(pid, "/oom_score_adj", HIGHEST_SCORE);
}

void spare_treatment_end_as_usual(pid_t pid) {
    int score;
    if (whole_file_read_integer("/proc/self/oom_score_adj", &score, NULL) == FAILURE_NONE) {
        set(pid, "/oom_score_adj", score);
    }
}

void spare_treatment_share_as_usual(pid_t pid) {
    set(pid, "/autogroup", USUAL_NICENESS);
}
