/* SPDX-License-Identifier: BSD-3-Clause */

/* A worker for the benches. Its first action is to note the time and its identity in a file; then
 * it waits. On SIGUSR1 it notes the time again and fails, on SIGUSR2 it does so and succeeds. It
 * starts as fast as a program can, so that the bench measures the launcher and not the worker.
 *
 *     NOTES=FILE NODE=NAME noting_worker
 *     start NANOSECONDS NODE RANK WORLD_SIZE PID   (CLOCK_MONOTONIC; each appended with one write)
 *     end NANOSECONDS NODE RANK WORLD_SIZE PID */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_LIFE_SECONDS 600 /* it ends then, even if its launcher and the bench are gone */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL ? value : "?";
}

static void note(int file, const char *what, const struct timespec *when) {
    char line[256];
    const int length = snprintf(line, sizeof(line), "%s %lld%09ld %s %s %s %ld\n", what,
        (long long)when->tv_sec, when->tv_nsec, variable("NODE"), variable("RANK"),
        variable("WORLD_SIZE"), (long)getpid());
    if (length <= 0 || length >= (int)sizeof(line) || write(file, line, (size_t)length) != length) {
        exit(3);
    }
}

int main(void) {
    struct timespec when;
    sigset_t ends;
    int received;

    clock_gettime(CLOCK_MONOTONIC, &when);
    sigemptyset(&ends);
    sigaddset(&ends, SIGUSR1);
    sigaddset(&ends, SIGUSR2);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    const int file = open(variable("NOTES"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) {
        return 3;
    }
    note(file, "start", &when);
    alarm(LONGEST_LIFE_SECONDS);
    sigwait(&ends, &received);
    clock_gettime(CLOCK_MONOTONIC, &when);
    note(file, "end", &when);
    return received == SIGUSR2 ? 0 : 1;
}
