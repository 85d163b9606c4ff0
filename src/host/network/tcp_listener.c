/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/store/store_request.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"
#include "host/network/network_address.h"

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 wanted;
};

int socket_owner_open(void) {
    return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

/* IPv4 on an IPv6 socket is looked up as IPv4. */
static int family_of(const union tcp_address *address) {
    bool is_ipv6 =
        address->any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&address->ipv6.sin6_addr);
    return is_ipv6 ? AF_INET6 : AF_INET;
}

static void write_address(const union tcp_address *address, __be32 out_address[4]) {
    if (address->any.sa_family == AF_INET) {
        out_address[0] = address->ipv4.sin_addr.s_addr;
    } else if (family_of(address) == AF_INET) {
        memcpy(out_address, &address->ipv6.sin6_addr.s6_addr[12], sizeof *out_address);
    } else {
        memcpy(out_address, &address->ipv6.sin6_addr, sizeof address->ipv6.sin6_addr);
    }
}

/* What the kernel has between two addresses. It also finds a listening socket where no connection
 * is, and one of a connection only when it is not bound to another device than `device`. */
static bool find(int fd, const union tcp_address *local, const union tcp_address *remote,
    uint32_t device, struct inet_diag_msg *out_found) {
    static _Thread_local uint32_t last_number; /* no answer is taken for that of another question */
    struct question question = {
        .header = {.nlmsg_len = sizeof question,
            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
            .nlmsg_flags = NLM_F_REQUEST,
            .nlmsg_seq = ++last_number},
        .wanted = {.sdiag_family = (uint8_t)family_of(local),
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = UINT32_MAX,
            .id = {.idiag_sport = htons((uint16_t)tcp_address_port(local)),
                .idiag_dport = htons((uint16_t)tcp_address_port(remote)),
                .idiag_if = device,
                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    write_address(local, question.wanted.id.idiag_src);
    write_address(remote, question.wanted.id.idiag_dst);
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg found;
        uint8_t rest[4096];
    } answer = {0};
    if (send(fd, &question, sizeof question, 0) != (ssize_t)sizeof question) {
        return false;
    }
    ssize_t length;
    do {
        length = recv(fd, &answer, sizeof answer, 0);
    } while (length >= (ssize_t)sizeof answer.header &&
             answer.header.nlmsg_seq != question.header.nlmsg_seq);
    if (length < (ssize_t)(sizeof answer.header + sizeof answer.found) ||
        answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
        return false;
    }
    *out_found = answer.found;
    uint8_t state = answer.found.idiag_state;
    return state != TCP_LISTEN && state != TCP_SYN_SENT && state != TCP_CLOSE &&
           answer.found.id.idiag_sport == question.wanted.id.idiag_sport &&
           answer.found.id.idiag_dport == question.wanted.id.idiag_dport;
}

/* Anybody may bind a socket to a device, and one of a link-local address always is. There may be
 * hundreds of devices, and most that are not found are of other machines. */
static bool find_at_any_device(int fd, const union tcp_address *local,
    const union tcp_address *remote, struct inet_diag_msg *out_found) {
    bool is_found = find(fd, local, remote, 0, out_found);
    bool is_over = is_found || !tcp_address_may_be_here(local);
    struct if_nameindex *devices = is_over ? NULL : if_nameindex();
    for (size_t i = 0; devices != NULL && devices[i].if_index != 0 && !is_found; i++) {
        is_found = find(fd, local, remote, devices[i].if_index, out_found);
    }
    if (devices != NULL) {
        if_freenameindex(devices);
    }
    return is_found;
}

static bool is_established(int connection_fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    return getsockopt(connection_fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

enum socket_owner socket_owner_ask(int asking_fd, int connection_fd, const union tcp_address *own,
    const union tcp_address *peer, uid_t *out_user) {
    struct inet_diag_msg found;
    if (asking_fd < 0) {
        return SOCKET_OWNER_UNKNOWN;
    }
    if (find_at_any_device(asking_fd, peer, own, &found)) {
        *out_user = found.idiag_uid;
        return found.idiag_inode != 0 ? SOCKET_OWNER_USER : SOCKET_OWNER_GONE;
    }
    /* A kernel that does not find this end either cannot tell. A connection that ended meanwhile
     * may have had its other end here. */
    bool can_tell = find_at_any_device(asking_fd, own, peer, &found);
    if (!is_established(connection_fd)) {
        return SOCKET_OWNER_GONE;
    }
    return can_tell ? SOCKET_OWNER_ELSEWHERE : SOCKET_OWNER_UNKNOWN;
}

/* Tcp listener. */

/* The most clients accepted per turn, so that many new clients do not delay the existing ones. */
#define BATCH 256
#define DRAIN_BATCH 65536
/* The pause when clients can neither be accepted nor closed. */
#define PAUSE_MILLISECONDS 100

struct tcp_acceptor {
    struct tcp_acceptor_settings settings;
    struct event_loop *loop;
    struct event_descriptor *watch; /* NULL while pausing */
    struct event_timer *pause;
    int reserve_fd;    /* given up for a moment to close a client when no descriptor is left
                        */
    bool is_exhausted; /* the lack of descriptors was logged, and no client was accepted since */
    struct log_throttle throttle;
};

static int open_reserve(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_one(const struct tcp_acceptor *acceptor, union tcp_address *out_peer) {
    socklen_t length = sizeof *out_peer;
    return accept4(
        acceptor->settings.listening_fd, &out_peer->any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void start_pause(struct tcp_acceptor *acceptor) {
    event_descriptor_free(acceptor->watch);
    acceptor->watch = NULL;
    event_timer_set(acceptor->pause, instant_after(event_loop_now(acceptor->loop),
                                         duration_from_milliseconds(PAUSE_MILLISECONDS)));
}

static void warn_of_exhaustion(struct tcp_acceptor *acceptor, const char *why) {
    uint64_t held_back;
    if (acceptor->is_exhausted ||
        !log_throttle_admits(&acceptor->throttle, event_loop_now(acceptor->loop), &held_back)) {
        return;
    }
    acceptor->is_exhausted = true;
    log_error(acceptor->settings.log,
        "%s: no descriptor is left for new clients (%s); they are turned away until other clients "
        "leave; raise the limit of open files (ulimit -n)",
        acceptor->settings.name, why);
}

/* Frees the reserve descriptor, accepts a client with it and closes that client at once. Returns
 * false when there is no further client, or when accepting fails; then there is a pause. */
static bool close_one_client(struct tcp_acceptor *acceptor, int error) {
    warn_of_exhaustion(acceptor, strerror(error));
    bool is_turned_away = false;
    bool is_empty = false;
    if (acceptor->reserve_fd >= 0) {
        close(acceptor->reserve_fd);
        union tcp_address peer;
        int fd = accept_one(acceptor, &peer);
        is_turned_away = fd >= 0;
        is_empty = fd < 0 && errno == EAGAIN;
        if (is_turned_away) {
            close(fd);
        }
    }
    acceptor->reserve_fd = open_reserve();
    if (!is_turned_away && !is_empty) {
        start_pause(acceptor);
    }
    return is_turned_away;
}

static bool is_out_of_resources(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Whether the descriptor is one of those that are kept. */
static bool is_kept(const struct tcp_acceptor *acceptor, int fd) {
    uint64_t wanted = acceptor->settings.kept + descriptor_limit_kept();
    uint64_t limit = wanted > 0 ? descriptor_limit_read() : UINT64_MAX;
    return (uint64_t)fd >= limit - store_descriptors_kept(wanted, limit);
}

/* Accepts at most `most` connections. */
static void accept_several(struct tcp_acceptor *acceptor, int most) {
    for (int i = 0; i < most; i++) {
        union tcp_address peer = {0};
        int fd = accept_one(acceptor, &peer);
        if (fd >= 0 && is_kept(acceptor, fd)) {
            close(fd);
            warn_of_exhaustion(acceptor, "the rest is kept for this process itself");
        } else if (fd >= 0) {
            acceptor->is_exhausted = false;
            acceptor->settings.accepted(acceptor->settings.context, fd, &peer);
        } else if (errno == EAGAIN) {
            return;
        } else if (is_out_of_resources(errno) && !close_one_client(acceptor, errno)) {
            return;
        } /* else only this connection failed (ECONNABORTED and others): try the next one */
    }
}

static void became_readable(void *context) {
    accept_several(context, BATCH);
}

static enum failure_code watch(struct tcp_acceptor *acceptor, struct failure *failure) {
    return event_descriptor_new(acceptor->loop, acceptor->settings.listening_fd, became_readable,
        acceptor, &acceptor->watch, failure);
}

static void pause_ended(void *context) {
    struct tcp_acceptor *acceptor = context;
    if (watch(acceptor, NULL) != FAILURE_NONE) {
        start_pause(acceptor);
    }
}

enum failure_code tcp_acceptor_new(struct event_loop *loop,
    const struct tcp_acceptor_settings *settings, struct tcp_acceptor **out_acceptor,
    struct failure *failure) {
    struct tcp_acceptor *acceptor = memory_allocate(sizeof *acceptor);
    acceptor->settings = *settings;
    acceptor->loop = loop;
    enum failure_code code = watch(acceptor, failure);
    if (code != FAILURE_NONE) {
        free(acceptor);
        return code;
    }
    acceptor->pause = event_timer_new(loop, pause_ended, acceptor);
    acceptor->reserve_fd = open_reserve();
    *out_acceptor = acceptor;
    return FAILURE_NONE;
}

void tcp_acceptor_free(struct tcp_acceptor *acceptor) {
    if (acceptor == NULL) {
        return;
    }
    event_descriptor_free(acceptor->watch);
    event_timer_free(acceptor->pause);
    close(acceptor->settings.listening_fd);
    if (acceptor->reserve_fd >= 0) {
        close(acceptor->reserve_fd);
    }
    free(acceptor);
}

void tcp_acceptor_drain(struct tcp_acceptor *acceptor) {
    accept_several(acceptor, DRAIN_BATCH);
}

/* Tcp listener. */

#define MAXIMUM_PORT 65535
#define LISTEN_ATTEMPTS 20
#define PAUSE_MAXIMUM_NANOSECONDS 4000000

static enum failure_code read_bound_port(int fd, int *out_port, struct failure *failure) {
    union tcp_address address = {0};
    socklen_t length = sizeof address;
    if (getsockname(fd, &address.any, &length) != 0) {
        return failure_set_system(failure, errno, "cannot read the address of a socket");
    }
    *out_port = tcp_address_port(&address);
    return FAILURE_NONE;
}

static enum failure_code describe_bind_failure(
    struct failure *failure, int error, const char *host, int port) {
    if (error == EADDRINUSE) {
        return failure_set_system(
            failure, error, "cannot listen on %s: port %d is taken", host, port);
    }
    if (error == EACCES) {
        return failure_set_system(failure, error,
            "cannot listen on %s: port %d needs more rights than this user has", host, port);
    }
    return failure_set_system(failure, error, "cannot listen on %s port %d", host, port);
}

/* Returns a socket bound to `address`, or -errno. */
static int bind_to(const struct sockaddr *address, socklen_t length, bool is_dual_stack) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int on = 1;
    int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_dual_stack ? &off : &on, (socklen_t)sizeof on);
    }
    if (bind(fd, address, length) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static void pause_shortly(void) {
    struct timespec pause = {.tv_nsec = (long)(random_seed() % PAUSE_MAXIMUM_NANOSECONDS)};
    nanosleep(&pause, NULL);
}

/* Returns a listening socket bound to `address`, or -errno. When several sockets begin to listen on
 * one port at the same moment, the kernel may refuse all of them, although it let all of them bind
 * because none was listening yet. A random pause separates them: then one listens, and the others
 * cannot bind. */
static int listen_on(const struct sockaddr *address, socklen_t length, bool is_dual_stack) {
    int error = EADDRINUSE;
    for (int attempt = 0; attempt < LISTEN_ATTEMPTS && error == EADDRINUSE; attempt++) {
        if (attempt > 0) {
            pause_shortly();
        }
        int fd = bind_to(address, length, is_dual_stack);
        if (fd < 0 || listen(fd, SOMAXCONN) == 0) {
            return fd;
        }
        error = errno;
        close(fd);
    }
    return -error;
}

/* IPv4 alone is used only on a machine without IPv6. If `[::]` is refused because the port is in
 * use, listening on IPv4 would split the clients between two servers. */
static bool is_missing_ipv6(int error) {
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

static enum failure_code open_everywhere(int port, int *out_fd, struct failure *failure) {
    struct sockaddr_in6 every6 = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
    int fd = listen_on((const struct sockaddr *)&every6, sizeof every6, true);
    if (fd < 0 && is_missing_ipv6(-fd)) {
        struct sockaddr_in every4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        fd = listen_on((const struct sockaddr *)&every4, sizeof every4, false);
    }
    if (fd < 0) {
        return describe_bind_failure(failure, -fd, "every address", port);
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

static enum failure_code open_on_host(
    const char *host, int port, int *out_fd, struct failure *failure) {
    struct name_addresses found = {0};
    int status = name_lookup_addresses(host, 0, &found);
    if (status != 0) {
        return failure_set(failure, FAILURE_INVALID, "cannot listen on \"%s\": %s", host,
            name_lookup_words(status));
    }
    int fd = -EADDRNOTAVAIL;
    for (size_t i = 0; i < found.count && fd < 0; i++) {
        union tcp_address *one = &found.items[i];
        tcp_address_set_port(one, port);
        fd = listen_on(
            &one->any, one->any.sa_family == AF_INET6 ? sizeof one->ipv6 : sizeof one->ipv4, false);
    }
    name_addresses_clear(&found);
    if (fd < 0) {
        return describe_bind_failure(failure, -fd, host, port);
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

enum failure_code tcp_listener_open(
    const char *host, int port, int *out_fd, int *out_port, struct failure *failure) {
    if (port < 0 || port > MAXIMUM_PORT) {
        return failure_set(
            failure, FAILURE_INVALID, "port %d is outside 0..%d", port, MAXIMUM_PORT);
    }
    int fd = -1;
    enum failure_code code = host == NULL || *host == '\0' ? open_everywhere(port, &fd, failure)
                                                           : open_on_host(host, port, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_bound_port(fd, out_port, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        return code;
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

static enum failure_code check_stream_socket(int fd, struct failure *failure) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
        return failure_set(failure, FAILURE_INVALID, "descriptor %d is not %s", fd,
            errno == EBADF ? "open" : "a socket");
    }
    int family = 0;
    length = sizeof family;
    if (type != SOCK_STREAM || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 ||
        (family != AF_INET && family != AF_INET6)) {
        return failure_set(failure, FAILURE_INVALID, "descriptor %d is not a TCP socket", fd);
    }
    return FAILURE_NONE;
}

enum failure_code tcp_listener_adopt(int fd, int *out_port, struct failure *failure) {
    enum failure_code code = check_stream_socket(fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    int port = 0;
    code = read_bound_port(fd, &port, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (port == 0) {
        return failure_set(
            failure, FAILURE_INVALID, "the socket on descriptor %d is not bound", fd);
    }
    if (listen(fd, SOMAXCONN) != 0) {
        return failure_set(failure, FAILURE_INVALID, "cannot listen on descriptor %d (port %d): %s",
            fd, port, errno == EINVAL ? "the socket is connected" : "the kernel refused");
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return failure_set_system(failure, errno, "cannot prepare descriptor %d", fd);
    }
    *out_port = port;
    return FAILURE_NONE;
}

/* Local listener. */

/* A free port of one address may be taken on another. */
#define PORT_ATTEMPTS 16

static const struct network_address loopbacks[] = {
    {.bytes = {127, 0, 0, 1}},
    {.is_ipv6 = true, .bytes = {[15] = 1}},
};
#define LOOPBACK_COUNT (sizeof loopbacks / sizeof *loopbacks)

struct places {
    struct network_address items[LOCAL_LISTENER_MOST];
    size_t count;
};

static bool contains(
    const struct network_address *items, size_t count, const struct network_address *address) {
    for (size_t i = 0; i < count; i++) {
        if (network_address_equals(&items[i], address)) {
            return true;
        }
    }
    return false;
}

/* A link-local address is left out: it is of use only together with an interface. */
static bool add_places(const struct address_list *named, struct places *places) {
    struct address_list own = address_list_of_interfaces();
    bool are_all_own = named->count > 0;
    for (size_t i = 0; i < named->count; i++) {
        const struct network_address *address = &named->items[i];
        bool is_loopback = network_address_is_loopback(address);
        are_all_own &= is_loopback || contains(own.items, own.count, address);
        if (places->count < LOCAL_LISTENER_MOST && !network_address_is_link_local(address) &&
            !contains(places->items, places->count, address)) {
            places->items[places->count++] = *address;
        }
    }
    address_list_clear(&own);
    return are_all_own;
}

static bool is_missing_family(const struct failure *failure) {
    return failure->system_error == EAFNOSUPPORT || failure->system_error == EADDRNOTAVAIL ||
           failure->system_error == EPROTONOSUPPORT;
}

/* Best effort, see the header. SO_BINDTODEVICE would not do: the kernel takes what a machine says
 * to its own address for something that came by that address's interface, though it comes by lo. */
static void hear_loopback_interface_only(int fd, const struct network_address *address) {
    if (network_address_is_loopback(address)) {
        return;
    }
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_nametoindex("lo"), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static enum failure_code open_one(struct local_listener *listener,
    const struct network_address *address, struct failure *failure) {
    struct text host = {0};
    network_address_format(address, &host);
    int fd;
    enum failure_code code =
        tcp_listener_open(text_string(&host), listener->port, &fd, &listener->port, failure);
    text_clear(&host);
    if (code == FAILURE_NONE) {
        hear_loopback_interface_only(fd, address);
        listener->fds[listener->count++] = fd;
    }
    return code;
}

static void local_listener_close(struct local_listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        close(listener->fds[i]);
    }
    listener->count = 0;
}

/* A machine without IPv6 (or without IPv4) listens on what it has. */
static enum failure_code open_all(const struct places *places, int port,
    struct local_listener *listener, struct failure *failure) {
    *listener = (struct local_listener){.port = port};
    for (size_t i = 0; i < places->count; i++) {
        struct failure trouble = {0};
        enum failure_code code = open_one(listener, &places->items[i], &trouble);
        if (code != FAILURE_NONE && !is_missing_family(&trouble)) {
            local_listener_close(listener);
            *failure = trouble;
            return code;
        }
    }
    return listener->count > 0
               ? FAILURE_NONE
               : failure_set(failure, FAILURE_SYSTEM, "this machine has no loopback address");
}

enum failure_code local_listener_open(
    const char *name, int port, struct local_listener *out_listener, struct failure *failure) {
    struct failure trouble = {0};
    struct local_listener listener;
    struct places places = {.items = {loopbacks[0], loopbacks[1]}, .count = LOOPBACK_COUNT};
    struct address_list named = address_list_of_name(name, NULL);
    bool is_here = add_places(&named, &places);
    address_list_clear(&named);
    if (!is_here) {
        return failure_set(
            failure, FAILURE_MISSING, "\"%s\" is not known as a name of this machine alone", name);
    }
    enum failure_code code = open_all(&places, port, &listener, &trouble);
    for (int attempt = 1;
         attempt < PORT_ATTEMPTS && port == 0 && trouble.system_error == EADDRINUSE; attempt++) {
        trouble = (struct failure){0};
        code = open_all(&places, port, &listener, &trouble);
    }
    if (code == FAILURE_NONE) {
        *out_listener = listener;
    } else if (failure != NULL) {
        *failure = trouble;
    }
    return code;
}
