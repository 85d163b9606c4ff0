/* SPDX-License-Identifier: BSD-3-Clause */
/* A server with a loop of its own (epoll) that also serves countdown timers, with libmuster:
 *
 *     ./timer_loop FIFO
 *     muster timer run --file FIFO --after 5 -- COMMAND
 *
 * It prints one line for each process that it ends, and ends itself when its input ends. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <muster/timer_server.h>

static void tell(void *context, const struct muster_timer_event *event) {
    (void)context;
    if (event->kind == MUSTER_TIMER_SIGNALLED) {
        printf("ended process %ld: %s\n", event->pid, event->scopes[event->count - 1]);
        fflush(stdout);
    }
}

static int watch(int epoll_fd, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Returns at the end of the input. */
static void run(struct muster_timer_server *server, int epoll_fd) {
    struct epoll_event event;
    char bytes[256];
    while (1) {
        if (epoll_wait(epoll_fd, &event, 1, -1) != 1) {
            continue; /* a signal */
        }
        if (event.data.fd == STDIN_FILENO && read(STDIN_FILENO, bytes, sizeof bytes) <= 0) {
            return;
        }
        if (event.data.fd != STDIN_FILENO) {
            (void)muster_timer_server_process(server, NULL);
        }
    }
}

int main(int argument_count, char **arguments) {
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    struct muster_timer_server *server;
    struct muster_failure failure;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (argument_count != 2) {
        fputs("usage: timer_loop FIFO\n", stderr);
        return 2;
    }
    settings.path = arguments[1];
    settings.event = tell;
    if (muster_timer_server_new(&settings, &server, &failure) != MUSTER_OK ||
        muster_timer_server_start(server, &failure) != MUSTER_OK) {
        fprintf(stderr, "timer_loop: %s\n", failure.message);
        return EXIT_FAILURE;
    }
    if (watch(epoll_fd, STDIN_FILENO) != 0 ||
        watch(epoll_fd, muster_timer_server_fd(server)) != 0) {
        perror("timer_loop");
        return EXIT_FAILURE;
    }
    puts("serving");
    fflush(stdout);
    run(server, epoll_fd);
    muster_timer_server_free(server);
    close(epoll_fd);
    return EXIT_SUCCESS;
}
