/* SPDX-License-Identifier: BSD-3-Clause */
/* A parameter server whose processes find each other in a directory, with libmuster:
 *
 *     ./parameter_server DIRECTORY 2 3 &
 *     ./parameter_server DIRECTORY 2 3 &
 *     ./parameter_server DIRECTORY 2 3
 *
 * At least 2 and at most 3 processes take part. In each round rank 0 has the parameters, and the
 * others pull them and push their gradients. When one is killed, the rest go on in another round,
 * with what the new rank 0 has pulled last. When one gets SIGTERM, it ends the job for all. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "directory_backend.h"

#define VALUES 4
#define PEERS 64
#define RENDEZVOUS PEERS
#define SIGNALS (PEERS + 1)
#define LISTENER (PEERS + 2)
#define PLACES (PEERS + 3)

struct parameters {
    int64_t step;
    double values[VALUES];
};

struct node {
    struct muster_rendezvous *rendezvous;
    struct muster_rendezvous_info info; /* world_size 0: no round yet, or no longer */
    struct sockaddr_un address;         /* of the round's parameters */
    int listener;                       /* rank 0 */
    int peers[PEERS];                   /* the others' connections; else the first is to rank 0 */
    int has_told;
    struct parameters parameters;
    int is_over;
    int status;
};

static void drop(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void leave_round(struct node *node) {
    if (node->listener >= 0) {
        (void)unlink(node->address.sun_path);
    }
    drop(&node->listener);
    for (int i = 0; i < PEERS; i++) {
        drop(&node->peers[i]);
    }
    node->info.world_size = 0;
}

/* Rank 0. */

/* The name appears when the socket can be connected to. */
static int listen_for_peers(struct node *node) {
    struct sockaddr_un early = {.sun_family = AF_UNIX, .sun_path = "parameters.new"};
    node->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(early.sun_path);
    return node->listener >= 0 &&
           bind(node->listener, (struct sockaddr *)&early, sizeof early) == 0 &&
           listen(node->listener, PEERS) == 0 &&
           rename(early.sun_path, node->address.sun_path) == 0;
}

static void send_parameters(const struct node *node, int *peer) {
    if (send(*peer, &node->parameters, sizeof node->parameters, MSG_NOSIGNAL) < 0) {
        drop(peer);
    }
}

static void accept_peer(struct node *node) {
    int fd = accept4(node->listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; i < PEERS && fd >= 0; i++) {
        if (node->peers[i] < 0) {
            node->peers[i] = fd;
            send_parameters(node, &node->peers[i]);
            return;
        }
    }
    drop(&fd);
}

static void take_gradients(struct node *node, int *peer) {
    double gradients[VALUES];
    if (recv(*peer, gradients, sizeof gradients, 0) != sizeof gradients) {
        drop(peer);
        return;
    }
    for (int i = 0; i < VALUES; i++) {
        node->parameters.values[i] -= 0.01 * gradients[i];
    }
    node->parameters.step++;
    send_parameters(node, peer);
}

/* The others. */

/* While rank 0 does not listen yet this is done again at the next change of the directory. */
static void connect_to_parameters(struct node *node) {
    node->peers[0] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(node->peers[0], (struct sockaddr *)&node->address, sizeof node->address) != 0) {
        drop(&node->peers[0]);
    }
}

static void tell(struct node *node) {
    if (!node->has_told) {
        printf("round %" PRId64 ": rank %d of %d is at step %" PRId64 "\n", node->info.round,
            node->info.rank, node->info.world_size, node->parameters.step);
        node->has_told = 1;
    }
}

static void do_step(struct node *node) {
    const struct timespec duration = {0, 20000000}; /* as if there was much to compute */
    double gradients[VALUES];
    nanosleep(&duration, NULL);
    for (int i = 0; i < VALUES; i++) {
        gradients[i] = 2 * (node->parameters.values[i] - i); /* of (value - i)^2 */
    }
    if (send(node->peers[0], gradients, sizeof gradients, MSG_NOSIGNAL) < 0) {
        drop(&node->peers[0]);
    }
}

static void take_parameters(struct node *node) {
    struct parameters parameters;
    if (recv(node->peers[0], &parameters, sizeof parameters, 0) != sizeof parameters) {
        drop(&node->peers[0]); /* rank 0 is gone; the rendezvous will say so */
        return;
    }
    node->parameters = parameters;
    if (parameters.step > 0) {
        tell(node);
    }
    do_step(node);
}

/* Rounds. */

static void begin_round(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *info) {
    struct node *node = context;
    if (error != MUSTER_OK) {
        node->is_over = 1;
        if (error != MUSTER_ERROR_CLOSED && error != MUSTER_ERROR_GRACEFUL_EXIT) {
            fprintf(stderr, "parameter_server: %s\n", message);
            node->status = EXIT_FAILURE;
        }
        return;
    }
    node->info = *info;
    node->has_told = 0;
    node->address.sun_family = AF_UNIX;
    snprintf(
        node->address.sun_path, sizeof node->address.sun_path, "parameters.%" PRId64, info->round);
    if (info->rank == 0 && !listen_for_peers(node)) {
        perror("parameter_server: parameters");
        node->is_over = 1;
        node->status = EXIT_FAILURE;
    } else if (info->rank == 0) {
        tell(node);
    }
}

static void ask_for_round(struct node *node) {
    struct muster_failure failure;
    if (muster_rendezvous_submit_next(node->rendezvous, begin_round, node, &failure) != MUSTER_OK) {
        begin_round(node, failure.error, failure.message, NULL);
    }
}

static void end_round(void *context, const char *reason) {
    struct node *node = context;
    printf("round %" PRId64 " is over: %s\n", node->info.round, reason);
    leave_round(node);
    ask_for_round(node);
}

/* A node that is in a round is not told when there will be no other: it may go on. This one does
 * not. */
static void process_rendezvous(struct node *node) {
    int is_closed = 0;
    (void)muster_rendezvous_process(node->rendezvous, NULL);
    if (muster_rendezvous_is_closed(node->rendezvous, &is_closed, NULL) == MUSTER_OK && is_closed) {
        node->is_over = 1;
    }
}

static void turn(struct node *node, int signal_fd) {
    struct pollfd places[PLACES];
    if (node->info.world_size > 0 && node->info.rank > 0 && node->peers[0] < 0) {
        connect_to_parameters(node);
    }
    for (int i = 0; i < PEERS; i++) {
        places[i] = (struct pollfd){node->peers[i], POLLIN, 0};
    }
    places[RENDEZVOUS] = (struct pollfd){muster_rendezvous_fd(node->rendezvous), POLLIN, 0};
    places[SIGNALS] = (struct pollfd){signal_fd, POLLIN, 0};
    places[LISTENER] = (struct pollfd){node->listener, POLLIN, 0};
    if (poll(places, PLACES, -1) <= 0) {
        return;
    }
    for (int i = 0; i < PEERS; i++) {
        if (places[i].revents != 0 && node->info.rank == 0) {
            take_gradients(node, &node->peers[i]);
        } else if (places[i].revents != 0) {
            take_parameters(node);
        }
    }
    if (places[LISTENER].revents != 0) {
        accept_peer(node);
    }
    if (places[SIGNALS].revents != 0) {
        node->is_over = 1;
    } else if (places[RENDEZVOUS].revents != 0) {
        process_rendezvous(node);
    }
}

static void run(struct node *node, int signal_fd) {
    ask_for_round(node);
    while (!node->is_over) {
        turn(node, signal_fd);
        fflush(stdout);
    }
    leave_round(node);
    (void)muster_rendezvous_shutdown(node->rendezvous, NULL); /* the others end, too */
    printf("ends at step %" PRId64 "\n", node->parameters.step);
}

int main(int argc, char **argv) {
    static struct node node = {.listener = -1};
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    struct muster_rendezvous_backend backend;
    struct muster_failure failure;
    struct directory directory;
    sigset_t signals;
    if (argc != 4 || atoi(argv[3]) > PEERS) {
        fprintf(
            stderr, "usage: parameter_server DIRECTORY MIN_NODES MAX_NODES, at most %d\n", PEERS);
        return 2;
    }
    if (chdir(argv[1]) != 0 || !directory_open(&directory, &backend)) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    memset(node.peers, 0xff, sizeof node.peers); /* -1 each */
    settings.run_id = "parameters";
    settings.backend = &backend;
    settings.min_nodes = atoi(argv[2]);
    settings.max_nodes = atoi(argv[3]);
    settings.last_call_timeout = 1;
    settings.keep_alive_interval = 1;
    settings.keep_alive_max_attempt = 5; /* a node that is silent for 5 seconds is gone */
    settings.round_over = end_round;
    settings.context = &node;
    if (muster_rendezvous_new(&settings, &node.rendezvous, &failure) != MUSTER_OK) {
        fprintf(stderr, "parameter_server: %s\n", failure.message);
        node.status = EXIT_FAILURE;
    } else {
        run(&node, signal_fd);
    }
    muster_rendezvous_free(node.rendezvous);
    directory_close(&directory);
    close(signal_fd);
    return node.status;
}
