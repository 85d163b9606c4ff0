/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/store/store_request.h"
#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_peers.h"

void store_seeds_add(struct store_seeds *seeds, const char *key, struct slice value) {
    seeds->items =
        memory_reserve(seeds->items, &seeds->capacity, seeds->count + 1, sizeof *seeds->items);
    struct store_seed *seed = &seeds->items[seeds->count++];
    *seed = (struct store_seed){.key = memory_duplicate_string(key)};
    (void)!bytes_append(&seed->value, value.data, value.length); /* without a ceiling it succeeds */
}

void store_seeds_clear(struct store_seeds *seeds) {
    for (size_t i = 0; i < seeds->count; i++) {
        free(seeds->items[i].key);
        bytes_clear(&seeds->items[i].value);
    }
    free(seeds->items);
    *seeds = (struct store_seeds){0};
}

/* Server. */

struct store_server {
    struct event_loop *loop;
    struct event_timer *look; /* for machines that are gone; NULL: the kernel does */
    struct store_peers *peers;
    struct tcp_acceptor *acceptors[1 + LOCAL_LISTENER_MOST];
    size_t acceptor_count;
    int port;
    int asking_fd; /* socket_owner_open; -1 also where everybody is served */
    bool is_local; /* these as in the settings */
    bool is_for_this_user;
    struct store_admission *admission;
    char *offered_key;    /* or NULL */
    bool is_turning_away; /* new connections are closed, because there are too many */
};

/* Whether it matters who has connected. */
static bool is_choosy(const struct store_server *server) {
    return server->is_local || server->is_for_this_user || server->admission != NULL;
}

/* Whether the server itself looks whose machine is gone. */
static bool judges_silence(const struct store_server_settings *settings) {
    return settings->presence_prefix != NULL && !settings->ends_presence_with_connection_only;
}

/* On Linux accepted sockets inherit these options, which saves five system calls for each. */
static void set_options_of_clients(int listening_fd, const struct store_server_settings *settings) {
    int on = 1;
    (void)setsockopt(listening_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (judges_silence(settings)) {
        tcp_silence_watch(listening_fd, settings->silence_timeout);
    } else {
        tcp_silence_limit(listening_fd, settings->silence_timeout);
    }
}

static void look(void *context) {
    struct store_server *server = context;
    struct duration pause = store_lookout_look(server->peers);
    struct instant now = event_loop_now(server->loop);
    event_timer_set_between(server->look, instant_after(now, connection_silence_earliest(pause)),
        instant_after(now, pause));
}

static const char not_of_the_round[] =
    "turned away, as will be all from its address: no node of this round has it (where it is a "
    "worker's, behind address translation, --worker-store-from user on all nodes serves it)";

static const char another_users[] = "turned away: it is a process of another user of this machine "
                                    "(--worker-store-from any would serve it)";

static const char nobodys[] =
    "turned away: its address is this machine's, but no process here has the other end, so nobody "
    "can tell whose it is (address translation, or another network namespace; --worker-store-from "
    "any would serve it)";

static const char not_said[] = "";

/* Why a client is not served that is not known to be a process of this user; or NULL. */
static const char *objection_to_stranger(const struct store_server *server, enum socket_owner owner,
    const union tcp_address *own, const union tcp_address *peer) {
    bool is_here = tcp_address_is_this_machine(peer, own) || address_list_is_of_interface(peer);
    if (is_here) {
        return owner == SOCKET_OWNER_ELSEWHERE && server->is_for_this_user ? nobodys : NULL;
    }
    if (server->is_local) {
        return "turned away: this store serves its own machine only, whose job has no other node";
    }
    if (server->admission == NULL || store_admission_admits(server->admission, peer)) {
        return NULL;
    }
    return store_admission_is_news(server->admission, peer) ? not_of_the_round : not_said;
}

/* Why a client is not served, or NULL. The kernel is asked first whose the other end is: addresses
 * do not tell, as a process may choose any of this machine's. Where the kernel does not tell, all
 * of this machine's processes are served. A client that has gone is not spoken of: it was perhaps
 * only looking whether the port is open. */
static const char *objection_to(
    const struct store_server *server, int fd, const union tcp_address *peer) {
    union tcp_address own = {0};
    socklen_t length = sizeof own;
    uid_t user;
    if (getsockname(fd, &own.any, &length) != 0) {
        return not_said;
    }
    enum socket_owner owner = socket_owner_ask(server->asking_fd, fd, &own, peer, &user);
    if (owner == SOCKET_OWNER_USER) {
        bool is_served = !server->is_for_this_user || user == 0 || user == geteuid();
        return is_served ? NULL : another_users;
    }
    if (owner == SOCKET_OWNER_GONE && server->is_for_this_user) {
        return not_said;
    }
    return objection_to_stranger(server, owner, &own, peer);
}

static void accepted(void *context, int fd_taken, const union tcp_address *peer) {
    struct store_server *server = context;
    if (server->is_turning_away) {
        close(fd_taken);
        return;
    }
    const char *objection = is_choosy(server) ? objection_to(server, fd_taken, peer) : NULL;
    if (objection != NULL) {
        close(fd_taken);
        if (objection[0] != '\0') {
            client_log_say(store_peers_log(server->peers), peer, objection);
        }
    } else {
        store_peers_add(server->peers, fd_taken, peer);
    }
}

static enum failure_code add_acceptor(struct store_server *server, struct event_loop *loop,
    int listening_fd, const struct store_server_settings *settings, struct failure *failure) {
    struct tcp_acceptor_settings acceptor = {
        .listening_fd = listening_fd,
        .name = "store",
        .log = settings->log,
        .kept = settings->kept_descriptors,
        .accepted = accepted,
        .context = server,
    };
    set_options_of_clients(listening_fd, settings);
    enum failure_code code =
        tcp_acceptor_new(loop, &acceptor, &server->acceptors[server->acceptor_count], failure);
    server->acceptor_count += code == FAILURE_NONE ? 1 : 0;
    return code;
}

/* Closes those listening sockets that no acceptor has taken. */
static void close_untaken(
    int listening_fd, const struct store_server_settings *settings, size_t taken_count) {
    if (taken_count == 0) {
        close(listening_fd);
    }
    for (size_t i = taken_count == 0 ? 0 : taken_count - 1; i < settings->further_count; i++) {
        close(settings->further_fds[i]);
    }
}

static enum failure_code add_acceptors(struct store_server *server, struct event_loop *loop,
    int listening_fd, const struct store_server_settings *settings, struct failure *failure) {
    enum failure_code code = add_acceptor(server, loop, listening_fd, settings, failure);
    for (size_t i = 0; i < settings->further_count && code == FAILURE_NONE; i++) {
        code = add_acceptor(server, loop, settings->further_fds[i], settings, failure);
    }
    if (code != FAILURE_NONE) {
        close_untaken(listening_fd, settings, server->acceptor_count);
    }
    return code;
}

void store_server_close_listeners(int listening_fd, const struct store_server_settings *settings) {
    close_untaken(listening_fd, settings, 0);
}

static void offer(struct store_server *server) {
    if (server->offered_key != NULL) {
        store_peers_tell(server->peers, server->offered_key, "1");
    }
}

enum failure_code store_server_new(struct event_loop *loop, int listening_fd_taken,
    const struct store_server_settings *settings, struct store_server **out_server,
    struct failure *failure) {
    union tcp_address address = {0};
    socklen_t length = sizeof address;
    if (getsockname(listening_fd_taken, &address.any, &length) != 0) {
        int error = errno;
        store_server_close_listeners(listening_fd_taken, settings);
        return failure_set_system(failure, error, "cannot read the store's address");
    }
    struct store_server *server = memory_allocate(sizeof *server);
    struct store_server_settings completed = *settings;
    if (completed.silence_timeout.nanoseconds <= 0) {
        completed.silence_timeout = TCP_SILENCE_DEFAULT;
    }
    server->loop = loop;
    server->port = tcp_address_port(&address);
    server->is_local = settings->is_local;
    server->admission = settings->admission;
    server->is_for_this_user = settings->is_for_this_user;
    server->asking_fd = is_choosy(server) ? socket_owner_open() : -1;
    server->peers = store_peers_new(loop, &completed);
    server->offered_key = memory_duplicate_string(settings->offered_key);
    if (settings->standby_key == NULL) {
        offer(server);
    }
    enum failure_code code = add_acceptors(server, loop, listening_fd_taken, &completed, failure);
    if (code != FAILURE_NONE) {
        store_server_free(server);
        return code;
    }
    if (judges_silence(settings)) {
        server->look = event_timer_new(loop, look, server);
        look(server);
    }
    *out_server = server;
    return FAILURE_NONE;
}

void store_server_free(struct store_server *server) {
    if (server == NULL) {
        return;
    }
    event_timer_free(server->look);
    for (size_t i = 0; i < server->acceptor_count; i++) {
        tcp_acceptor_free(server->acceptors[i]);
    }
    store_peers_free(server->peers);
    free(server->offered_key);
    if (server->asking_fd >= 0) {
        close(server->asking_fd);
    }
    free(server);
}

int store_server_port(const struct store_server *server) {
    return server->port;
}

void store_server_renew(struct store_server *server, const char *kept_prefix) {
    server->is_turning_away = kept_prefix == NULL;
    for (size_t i = 0; i < server->acceptor_count; i++) {
        tcp_acceptor_drain(server->acceptors[i]);
    }
    server->is_turning_away = false;
    if (kept_prefix == NULL) {
        store_peers_close_all(server->peers);
        store_peers_renew_table(server->peers, "");
    } else {
        store_peers_catch_up(server->peers);
        store_peers_renew_table(server->peers, kept_prefix);
    }
}

void store_server_serve(struct store_server *server, const struct store_seeds *seeds) {
    store_peers_serve(server->peers, seeds);
    offer(server);
}

void store_server_stand_by(struct store_server *server, struct slice answer) {
    if (!store_peers_are_standing_by(server->peers)) {
        store_server_renew(server, NULL);
    }
    store_peers_stand_by(server->peers, answer);
}

void store_server_drop(struct store_server *server, const char *name) {
    store_peers_drop(server->peers, name);
}

void store_server_tell(
    struct store_server *server, const char *raw_key, const char *value_or_null) {
    store_peers_tell(server->peers, raw_key, value_or_null);
}
