/* SPDX-License-Identifier: BSD-3-Clause */
/* A scheduler that runs jobs of several workers, with libmuster, in a loop of its own:
 *
 *     printf '2 python3 train.py\n4 ./simulate\n' | ./scheduler
 *
 * Each line of its input is a job: how many workers, and a command for the shell. Two jobs run at a
 * time. A line says how each has ended. When it gets SIGTERM it stops what runs, and ends. */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <muster/agent.h>

#define SLOTS 2
#define INPUT SLOTS
#define SIGNALS (SLOTS + 1)
#define PLACES (SLOTS + 2)

struct job {
    int number;
    struct muster_agent *agent; /* NULL: the slot is free */
};

struct scheduler {
    struct job slots[SLOTS];
    int signal_fd;
    int jobs; /* so far */
    int has_ended_input;
    int status;
    char line[4096]; /* of the input; the beginning of one that has not come whole */
    size_t length;
};

static void tell_event(void *context, const struct muster_agent_event *event) {
    const struct job *job = context;
    if (event->kind == MUSTER_AGENT_EVENT_WORKER && strcmp(event->state, "START") == 0) {
        printf("job %d: rank %d runs\n", job->number, event->global_rank);
    }
}

static void tell_end(void *context, const struct muster_run_result *result) {
    static const char *const states[] = {"UNKNOWN", "STOPPED", "SUCCEEDED", "FAILED"};
    const struct job *job = context;
    printf("job %d: %s", job->number, states[result->state]);
    if (result->root_cause != NULL) {
        printf(", rank %d ended with %d", result->root_cause->global_rank,
            result->root_cause->exitcode);
    }
    putchar('\n');
}

static struct job *free_slot(struct scheduler *scheduler) {
    for (int i = 0; i < SLOTS; i++) {
        if (scheduler->slots[i].agent == NULL) {
            return &scheduler->slots[i];
        }
    }
    return NULL;
}

static int is_busy(const struct scheduler *scheduler) {
    for (int i = 0; i < SLOTS; i++) {
        if (scheduler->slots[i].agent != NULL) {
            return 1;
        }
    }
    return 0;
}

static void begin_job(struct scheduler *scheduler, struct job *job, const char *line) {
    struct muster_agent_settings settings = MUSTER_AGENT_SETTINGS;
    struct muster_failure failure;
    char *command;
    long workers = strtol(line, &command, 10);
    const char *args[] = {"-c", command, NULL};
    job->number = ++scheduler->jobs;
    settings.entrypoint = "sh";
    settings.args = args;
    settings.local_world_size = workers > 0 && workers < 100 ? (int)workers : 0;
    settings.max_restarts = 0;
    settings.event = tell_event;
    settings.ended = tell_end;
    settings.context = job;
    if (muster_agent_start(&settings, &job->agent, &failure) != MUSTER_OK) {
        printf("job %d: %s\n", job->number, failure.message);
        scheduler->status = EXIT_FAILURE;
    }
}

/* Takes the jobs that have come, while there are slots. */
static void begin_jobs(struct scheduler *scheduler) {
    struct job *job;
    char *end;
    while ((job = free_slot(scheduler)) != NULL &&
           (end = memchr(scheduler->line, '\n', scheduler->length)) != NULL) {
        *end = '\0';
        begin_job(scheduler, job, scheduler->line);
        scheduler->length -= (size_t)(end + 1 - scheduler->line);
        memmove(scheduler->line, end + 1, scheduler->length);
    }
}

static void read_input(struct scheduler *scheduler) {
    ssize_t length = read(STDIN_FILENO, scheduler->line + scheduler->length,
        sizeof scheduler->line - scheduler->length);
    if (length <= 0) {
        scheduler->has_ended_input = 1;
    } else {
        scheduler->length += (size_t)length;
    }
}

static void go_on(struct scheduler *scheduler, struct job *job) {
    const struct muster_run_result *result;
    (void)muster_agent_process(job->agent, NULL);
    if (muster_agent_result(job->agent, &result, NULL) == MUSTER_OK) {
        if (result->exit_status != 0) {
            scheduler->status = EXIT_FAILURE;
        }
        muster_agent_free(job->agent);
        job->agent = NULL;
    }
}

static void stop_all(struct scheduler *scheduler) {
    struct signalfd_siginfo info;
    (void)!read(scheduler->signal_fd, &info, sizeof info);
    scheduler->has_ended_input = 1;
    scheduler->length = 0;
    for (int i = 0; i < SLOTS; i++) {
        (void)muster_agent_stop(scheduler->slots[i].agent, SIGTERM, NULL);
    }
}

static void turn(struct scheduler *scheduler) {
    struct pollfd places[PLACES];
    for (int i = 0; i < SLOTS; i++) {
        places[i] = (struct pollfd){muster_agent_fd(scheduler->slots[i].agent), POLLIN, 0};
    }
    int wants_input = !scheduler->has_ended_input && free_slot(scheduler) != NULL;
    places[INPUT] = (struct pollfd){wants_input ? STDIN_FILENO : -1, POLLIN, 0};
    places[SIGNALS] = (struct pollfd){scheduler->signal_fd, POLLIN, 0};
    if (poll(places, PLACES, -1) <= 0) {
        return;
    }
    for (int i = 0; i < SLOTS; i++) {
        if (places[i].revents != 0) {
            go_on(scheduler, &scheduler->slots[i]);
        }
    }
    if (places[INPUT].revents != 0) {
        read_input(scheduler);
    }
    if (places[SIGNALS].revents != 0) {
        stop_all(scheduler);
    }
}

int main(void) {
    static struct scheduler scheduler;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    scheduler.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (scheduler.signal_fd < 0) {
        perror("scheduler");
        return EXIT_FAILURE;
    }
    while (!scheduler.has_ended_input || scheduler.length > 0 || is_busy(&scheduler)) {
        turn(&scheduler);
        begin_jobs(&scheduler);
        fflush(stdout);
        if (scheduler.has_ended_input && memchr(scheduler.line, '\n', scheduler.length) == NULL) {
            scheduler.length = 0; /* a line without an end is no job */
        }
    }
    close(scheduler.signal_fd);
    return scheduler.status;
}
