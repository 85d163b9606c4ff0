/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker of a storm. It keeps a file of its own in $NOTES: who it is, since when it runs, and,
 * fifty times a second, until when it has run. So a reader sees who ran beside whom, whatever ended
 * the worker.
 *
 *     node=NAME pid=PID rank=RANK size=WORLD_SIZE restart=COUNT store=ADDRESS:PORT from=NANOSECONDS
 *     NANOSECONDS                      (CLOCK_MONOTONIC: the last sign of life)
 *
 * It ends with 0 once there is a file `go` in $NOTES, and at SIGWINCH. SIGUSR1 makes it fail. After
 * SIGUSR2 it heeds neither SIGTERM nor `go`. Every other worker has a child in a session of its
 * own, which only sleeps. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#define BEAT_NS 20000000
#define BEATS_OF_A_LIFE (3L * 3600 * 50) /* it ends then, even if everybody else is gone */

static volatile sig_atomic_t shall_fail, shall_end, is_deaf;

static void hear(int signal_number) {
    if (signal_number == SIGUSR1) {
        shall_fail = 1;
    } else if (signal_number == SIGWINCH) {
        shall_end = 1;
    } else {
        is_deaf = 1;
        signal(SIGTERM, SIG_IGN);
    }
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL ? value : "?";
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void start_child(void) {
    if (atoi(variable("LOCAL_RANK")) % 2 == 0 || fork() != 0) {
        return;
    }
    setsid();
    signal(SIGUSR1, SIG_IGN);
    sleep(3 * 3600);
    _exit(0);
}

int main(void) {
    char path[4096], facts[1024], beat[64];
    const long long start = now_ns();
    signal(SIGUSR1, hear);
    signal(SIGUSR2, hear);
    signal(SIGWINCH, hear);
    start_child();
    snprintf(path, sizeof path, "%s/%ld.%lld", variable("NOTES"), (long)getpid(), start);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const int length = snprintf(facts, sizeof facts,
        "node=%s pid=%ld rank=%s size=%s restart=%s store=%s:%s from=%lld\n", variable("NODE"),
        (long)getpid(), variable("RANK"), variable("WORLD_SIZE"),
        variable("TORCHELASTIC_RESTART_COUNT"), variable("MASTER_ADDR"), variable("MASTER_PORT"),
        start);
    if (file < 0 || write(file, facts, (size_t)length) != length) {
        return 3;
    }
    snprintf(path, sizeof path, "%s/go", variable("NOTES"));
    for (long beats = 0; beats < BEATS_OF_A_LIFE; beats++) {
        const int size = snprintf(beat, sizeof beat, "%020lld\n", now_ns());
        if (pwrite(file, beat, (size_t)size, length) != size) {
            return 3;
        }
        if (shall_fail) {
            return 7;
        }
        if (shall_end || (!is_deaf && access(path, F_OK) == 0)) {
            return 0;
        }
        if (getenv("TALKS") != NULL) {
            printf("rank %s at beat %ld\n", variable("RANK"), beats);
            fflush(stdout);
        }
        nanosleep(&(struct timespec){.tv_nsec = BEAT_NS}, NULL);
    }
    return 3;
}
