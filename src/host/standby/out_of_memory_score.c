/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/out_of_memory_score.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/loop/number_directory.h"
#include "host/loop/whole_file.h"

#define HIGHEST_SCORE 1000

static void set(pid_t pid, int score) {
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

void out_of_memory_score_prefer(pid_t pid) {
    set(pid, HIGHEST_SCORE);
}

void out_of_memory_score_inherit(pid_t pid) {
    int score;
    if (whole_file_read_integer("/proc/self/oom_score_adj", &score, NULL) == FAILURE_NONE) {
        set(pid, score);
    }
}
