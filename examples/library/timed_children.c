/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that gives its own children time limits, with libmuster: the first child is done in
 * time, the second hangs and is ended.
 *
 *     ./timed_children SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/local_timer.h>

static void work(struct muster_local_timer_queue *queue, int number, double seconds) {
    MUSTER_LOCAL_TIMER_SCOPE(queue, "load a batch", seconds); /* released at the end of the block */
    while (number > 0) {
        pause();
    }
}

static pid_t start(struct muster_local_timer_queue *queue, int number, double seconds) {
    pid_t child = fork();
    if (child == 0) {
        work(queue, number, seconds);
        _exit(EXIT_SUCCESS);
    }
    return child;
}

static void tell(void *context, const struct muster_local_timer_expiry *expiry) {
    const pid_t *children = context;
    printf("child %d was ended: %s\n", expiry->pid == children[1], expiry->scope);
}

int main(int argument_count, char **arguments) {
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server;
    double seconds = argument_count == 2 ? atof(arguments[1]) : 0;
    if (seconds <= 0 || queue == NULL) {
        fputs("usage: timed_children SECONDS\n", stderr);
        return 2;
    }
    pid_t children[] = {start(queue, 0, seconds), start(queue, 1, seconds)};
    struct muster_local_timer_observer observer = {.ended = tell, .context = children};
    server = muster_local_timer_server_new(queue);
    if (server == NULL || children[0] < 0 || children[1] < 0) {
        perror("timed_children");
        return EXIT_FAILURE;
    }
    while (muster_local_timer_serve(server, 1, &observer) == 0) {
    }
    for (int i = 0; i < 2; i++) {
        int status = 0;
        (void)waitpid(children[i], &status, 0);
        printf("child %d: %s\n", i, WIFSIGNALED(status) ? "killed" : "done");
    }
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
    return EXIT_SUCCESS;
}
