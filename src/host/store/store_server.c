/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/store/store_peers.h"
#include "host/network/tcp_acceptor.h"
#include "host/network/tcp_address.h"
#include "host/network/tcp_silence.h"

struct store_server {
    struct store_peers *peers;
    struct tcp_acceptor *acceptor;
    int port;
    bool is_turning_away; /* new connections are closed, because there are too many */
};

/* On Linux accepted sockets inherit these options, which saves five system calls for each. */
static void set_options_of_clients(int listening_fd, struct duration silence_timeout) {
    int on = 1;
    (void)setsockopt(listening_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tcp_silence_limit(listening_fd, silence_timeout);
}

static void accepted(void *context, int fd_taken, const union tcp_address *peer) {
    struct store_server *server = context;
    if (server->is_turning_away) {
        close(fd_taken);
    } else {
        store_peers_add(server->peers, fd_taken, peer);
    }
}

enum failure_code store_server_new(struct event_loop *loop, int listening_fd,
    const struct store_server_settings *settings, struct store_server **out_server,
    struct failure *failure) {
    union tcp_address address = {0};
    socklen_t length = sizeof address;
    if (getsockname(listening_fd, &address.any, &length) != 0) {
        return failure_set_system(failure, errno, "cannot read the store's address");
    }
    struct store_server *server = memory_allocate(sizeof *server);
    struct tcp_acceptor_settings acceptor = {
        .listening_fd = listening_fd,
        .name = "store",
        .log = settings->log,
        .accepted = accepted,
        .context = server,
    };
    enum failure_code code = tcp_acceptor_new(loop, &acceptor, &server->acceptor, failure);
    if (code != FAILURE_NONE) {
        free(server);
        return code;
    }
    struct store_server_settings completed = *settings;
    if (completed.silence_timeout.nanoseconds <= 0) {
        completed.silence_timeout = TCP_SILENCE_DEFAULT;
    }
    set_options_of_clients(listening_fd, completed.silence_timeout);
    server->peers = store_peers_new(loop, &completed);
    server->port = tcp_address_port(&address);
    *out_server = server;
    return FAILURE_NONE;
}

void store_server_free(struct store_server *server) {
    if (server == NULL) {
        return;
    }
    tcp_acceptor_free(server->acceptor);
    store_peers_free(server->peers);
    free(server);
}

int store_server_port(const struct store_server *server) {
    return server->port;
}

void store_server_renew(struct store_server *server, const char *kept_prefix) {
    server->is_turning_away = kept_prefix == NULL;
    tcp_acceptor_drain(server->acceptor);
    server->is_turning_away = false;
    if (kept_prefix == NULL) {
        store_peers_close_all(server->peers);
        store_peers_renew_table(server->peers, "");
    } else {
        store_peers_catch_up(server->peers);
        store_peers_renew_table(server->peers, kept_prefix);
    }
}

void store_server_drop(struct store_server *server, const char *name) {
    store_peers_drop(server->peers, name);
}

size_t store_server_connections(const struct store_server *server) {
    return store_peers_count(server->peers);
}
