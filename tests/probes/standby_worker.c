/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker of tests/command/test_standby_program.py that waits at the gate of standby workers:
 * standby_worker [loud|never]. It appends a line about itself to the file `story`, and lives until
 * there is a file `end.ATTEMPT`. After SIGUSR1 it does nothing but run until there is a file
 * `hurry`. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muster/standby.h"

#define PAUSE_MICROSECONDS 5000

static int count_descriptors(void) {
    int count = -1; /* the listing's own */
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL ? "unset" : value;
}

static void tell(int waited) {
    char line[1024];
    int length = snprintf(line, sizeof line,
        "attempt=%s rank=%s pid=%ld waited=%d descriptors=%d standby=%s large=%zu\n",
        variable("TORCHELASTIC_RESTART_COUNT"), variable("RANK"), (long)getpid(), waited,
        count_descriptors(), variable("MUSTER_STANDBY"), strlen(variable("LARGE")));
    int fd = open("story", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd == -1 || write(fd, line, (size_t)length) != length) {
        perror("story");
        exit(2);
    }
    close(fd);
}

static void wait_for_end(void) {
    char path[64];
    snprintf(path, sizeof path, "end.%s", variable("TORCHELASTIC_RESTART_COUNT"));
    while (access(path, F_OK) != 0) {
        usleep(PAUSE_MICROSECONDS);
    }
}

static void run(int number) {
    (void)number;
    while (access("hurry", F_OK) != 0) {
    }
}

int main(int argument_count, char **arguments) {
    const char *manner = argument_count > 1 ? arguments[1] : "";
    /* In what a standby worker has inherited: it is one before it has waited. */
    const char *order = variable("MUSTER_STANDBY");
    (void)sigaction(SIGUSR1, &(struct sigaction){.sa_handler = run, .sa_flags = SA_RESTART}, NULL);
    if (strcmp(manner, "loud") == 0 && strstr(order, "role=spare") != NULL) {
        for (int i = 0; i <= MUSTER_STANDBY_PRINTED_MAXIMUM; i++) {
            putchar('x');
        }
    }
    printf("initialised\n");
    int waited = strcmp(manner, "never") == 0 ? 0 : muster_standby_wait();
    printf("rank %s of attempt %s\n", variable("RANK"), variable("TORCHELASTIC_RESTART_COUNT"));
    fflush(stdout);
    tell(waited);
    wait_for_end();
    return 0;
}
