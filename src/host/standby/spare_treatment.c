/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/spare_treatment.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/loop/files.h"

#define HIGHEST_SCORE 1000

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

void spare_treatment_begin(pid_t pid) {
    set_score(pid, HIGHEST_SCORE);
}

void spare_treatment_end(pid_t pid) {
    int score;
    if (whole_file_read_integer("/proc/self/oom_score_adj", &score, NULL) == FAILURE_NONE) {
        set_score(pid, score);
    }
}
