/* SPDX-License-Identifier: BSD-3-Clause */
/* Load for a server of countdown timers, Muster's or PyTorch's:
 *
 *     timer_load requests FILE KEEP_OPEN CLIENTS SECONDS    prints how many requests went through
 *     timer_load deadlines FILE VICTIMS OTHERS APART        prints each victim's delay in ms;
 *                                                           deadlines are APART ms apart
 *     timer_load hold FILE KEEP_OPEN COUNT                  prints HELD and its pid, holds timers
 *
 * With "-" for FILE, the path comes from the environment. Victims ask for SIGUSR1, because
 * PyTorch's server sends the signal to itself as well and must be able to ignore it. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "muster/timer.h"

#define FAR_AWAY 100000
/* The time until all clients have made their requests. */
#define FIRST_DEADLINE 3

static double read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct muster_timer open_timer(const char *path, const char *keeps_open) {
    struct muster_timer timer;
    if (muster_timer_open(&timer, strcmp(path, "-") == 0 ? NULL : path) != 0 ||
        (*keeps_open == '1' && muster_timer_keep_open(&timer) != 0)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    timer.patience = 120;
    return timer;
}

static void check(int result) {
    if (result != 0) {
        perror("timer request");
        exit(EXIT_FAILURE);
    }
}

static void send_requests(char **words, int report) {
    struct muster_timer timer = open_timer(words[0], words[1]);
    double end = read_clock(CLOCK_MONOTONIC) + atof(words[3]);
    long count = 0;
    while (read_clock(CLOCK_MONOTONIC) < end) {
        for (int i = 0; i < 10; i++) {
            check(muster_timer_acquire(&timer, "a step of the training", FAR_AWAY));
            check(muster_timer_release(&timer, "a step of the training"));
            count += 2;
        }
    }
    if (write(report, &count, sizeof count) != (ssize_t)sizeof count) {
        exit(EXIT_FAILURE);
    }
}

static int requests(char **words) {
    int clients = atoi(words[2]);
    int report[2];
    long total = 0;
    long count;
    if (pipe(report) != 0) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < clients; i++) {
        if (fork() == 0) {
            send_requests(words, report[1]);
            _exit(EXIT_SUCCESS);
        }
    }
    for (int i = 0; i < clients && read(report[0], &count, sizeof count) > 0; i++) {
        total += count;
    }
    while (wait(NULL) > 0) {
    }
    printf("%ld\n", total);
    return EXIT_SUCCESS;
}

/* Runs with real-time priority: the bench measures when the signal comes, not when a busy machine
 * lets its receiver run. Without the permission it measures the latter. */
static void run_before_others(void) {
    const struct sched_param first = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO, &first);
}

static void wait_as_victim(const char *path, double after) {
    sigset_t awaited;
    struct muster_timer timer = open_timer(path, "0");
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    run_before_others();
    timer.signal = SIGUSR1;
    double due = read_clock(CLOCK_REALTIME) + after;
    check(muster_timer_acquire(&timer, "victim", after));
    const struct timespec patience = {.tv_sec = (time_t)after + 10};
    if (sigtimedwait(&awaited, NULL, &patience) == SIGUSR1) {
        printf("%.3f\n", 1000 * (read_clock(CLOCK_REALTIME) - due));
    }
    fflush(stdout);
}

static void hold_many(const struct muster_timer *timer, int count) {
    struct muster_timer mine = *timer;
    for (int i = 0; i < count; i++) {
        char scope[32];
        (void)snprintf(scope, sizeof scope, "scope %d", i);
        check(muster_timer_acquire(&mine, scope, FAR_AWAY));
    }
}

static int deadlines(char **words) {
    int victims = atoi(words[1]);
    struct muster_timer timer = open_timer(words[0], "0");
    for (int i = 0; i < victims; i++) {
        if (fork() == 0) {
            wait_as_victim(words[0], FIRST_DEADLINE + i * atof(words[3]) / 1000);
            _exit(EXIT_SUCCESS);
        }
    }
    hold_many(&timer, atoi(words[2]));
    while (wait(NULL) > 0) {
    }
    return EXIT_SUCCESS;
}

static _Noreturn void hold(char **words) {
    struct muster_timer timer = open_timer(words[0], words[1]);
    hold_many(&timer, atoi(words[2]));
    printf("HELD %ld\n", (long)getpid());
    fflush(stdout);
    for (;;) {
        pause();
    }
}

int main(int count, char **words) {
    if (count == 6 && strcmp(words[1], "requests") == 0) {
        return requests(words + 2);
    }
    if (count == 6 && strcmp(words[1], "deadlines") == 0) {
        return deadlines(words + 2);
    }
    if (count == 5 && strcmp(words[1], "hold") == 0) {
        hold(words + 2);
    }
    fputs("usage: timer_load requests|deadlines|hold ...\n", stderr);
    return EXIT_FAILURE;
}
