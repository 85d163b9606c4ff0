/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"

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

static enum failure_code tcp_listener_watch(
    struct tcp_acceptor *acceptor, struct failure *failure) {
    return event_descriptor_new(acceptor->loop, acceptor->settings.listening_fd, became_readable,
        acceptor, &acceptor->watch, failure);
}

static void pause_ended(void *context) {
    struct tcp_acceptor *acceptor = context;
    if (tcp_listener_watch(acceptor, NULL) != FAILURE_NONE) {
        start_pause(acceptor);
    }
}

enum failure_code tcp_acceptor_new(struct event_loop *loop,
    const struct tcp_acceptor_settings *settings, struct tcp_acceptor **out_acceptor,
    struct failure *failure) {
    struct tcp_acceptor *acceptor = memory_allocate(sizeof *acceptor);
    acceptor->settings = *settings;
    acceptor->loop = loop;
    enum failure_code code = tcp_listener_watch(acceptor, failure);
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

/* Tcp stream. */

/* Probes per timeout: one of them may be lost on the way. */
#define PROBES 3
#define KERNEL_SECONDS_CEILING 32767
/* Where the silence is watched, the kernel ends a connection only after so many timeouts. */
#define WATCHED_TIMEOUTS 3

static void set_option(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value,
        sizeof value); /* a failure is ignored: only the detection gets worse */
}

static void end_after(int fd, int64_t milliseconds) {
    set_option(
        fd, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
}

/* Probes an idle connection every so many seconds, as far as the kernel can. */
static void probe(int fd, int64_t seconds) {
    if (seconds < 1) {
        seconds = 1;
    } else if (seconds > KERNEL_SECONDS_CEILING) {
        seconds = KERNEL_SECONDS_CEILING;
    }
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES - 1);
}

void tcp_silence_limit(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, milliseconds / 1000 / PROBES);
    end_after(fd, milliseconds);
}

void tcp_silence_watch(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, 1);
    end_after(fd, milliseconds > INT_MAX ? INT_MAX : milliseconds * WATCHED_TIMEOUTS);
    set_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

void tcp_silence_leave(int fd, struct duration timeout) {
    end_after(fd, duration_milliseconds_ceiling(timeout));
}

struct connection_hearing tcp_silence_measure(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return (struct connection_hearing){0};
    }
    uint32_t milliseconds = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                ? info.tcpi_last_ack_recv
                                : info.tcpi_last_data_recv;
    return (struct connection_hearing){
        duration_from_milliseconds(milliseconds), info.tcpi_total_retrans};
}

bool tcp_silence_is(int system_error) {
    switch (system_error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
        return true;
    default:
        return false;
    }
}

/* Tcp stream. */

/* The receive buffer. A long message is received in pieces of this size, one per turn. */
#define READ_SIZE ((size_t)65536)
/* What the owner makes of a message takes no more than so many times its length, and as much again
 * for the places of its parts, which are so many bytes at most where the parts are short. */
#define MESSAGE_FACTOR 3
#define PARTS_BYTES ((size_t)2 << 20)

void tcp_stream_pool_init(struct tcp_stream_pool *pool, const struct tcp_stream_owner *owner,
    size_t queue_ceiling, size_t buffer_ceiling) {
    *pool = (struct tcp_stream_pool){.owner = owner,
        .queue_ceiling = queue_ceiling,
        .buffer_ceiling = buffer_ceiling,
        .turn_bytes = READ_SIZE,
        .held_above = SIZE_MAX,
        .read_buffer = memory_reallocate(NULL, READ_SIZE)}; /* mostly the first page is used */
}

void tcp_stream_pool_clear(struct tcp_stream_pool *pool) {
    free(pool->read_buffer);
    *pool = (struct tcp_stream_pool){0};
}

static void clear_buffer(struct tcp_stream *stream, struct bytes *buffer) {
    stream->pool->buffered_bytes -= buffer->capacity;
    bytes_clear(buffer);
}

/* The capacity that a buffer gets which needs more: twice as much as before, so that many small
 * pieces stay cheap, but not more than the message that is being received. */
static size_t next_capacity(
    const struct tcp_stream *stream, const struct bytes *buffer, size_t needed) {
    size_t twice = buffer->capacity * 2;
    bool is_message = buffer == &stream->input && stream->input_needed >= needed;
    if (is_message && twice > stream->input_needed) {
        return stream->input_needed;
    }
    return twice > needed ? twice : needed;
}

static bool has_room(const struct tcp_stream_pool *pool, size_t wanted) {
    return wanted <= pool->buffer_ceiling && pool->buffered_bytes <= pool->buffer_ceiling - wanted;
}

/* FAILURE_LIMIT when the buffers would grow beyond the pool's ceiling. */
static enum failure_code grow(struct tcp_stream *stream, struct bytes *buffer, size_t needed) {
    struct tcp_stream_pool *pool = stream->pool;
    size_t before = buffer->capacity;
    size_t capacity = next_capacity(stream, buffer, needed);
    if (!has_room(pool, capacity - before)) {
        capacity = needed;
    }
    if (!has_room(pool, capacity - before) && pool->owner->make_room != NULL) {
        pool->owner->make_room(stream, capacity - before);
    }
    if (!has_room(pool, capacity - before)) {
        return FAILURE_LIMIT;
    }
    enum failure_code code = bytes_grow(buffer, capacity);
    pool->buffered_bytes += buffer->capacity - before;
    return code;
}

/* FAILURE_LIMIT as grow. */
static enum failure_code append_to_buffer(
    struct tcp_stream *stream, struct bytes *buffer, const uint8_t *data, size_t length) {
    size_t needed = buffer->length + length;
    enum failure_code code =
        needed > buffer->capacity ? grow(stream, buffer, needed) : FAILURE_NONE;
    return code == FAILURE_NONE ? bytes_append(buffer, data, length) : code;
}

static void handle_closed(uv_handle_t *handle) {
    struct tcp_stream *stream = handle->data;
    stream->pool->owner->released(stream);
}

void tcp_stream_close(struct tcp_stream *stream) {
    if (stream->is_closed) {
        return;
    }
    stream->is_closed = true;
    clear_buffer(stream, &stream->input);
    clear_buffer(stream, &stream->output);
    uv_close((uv_handle_t *)&stream->poll, handle_closed);
    close(stream->fd);
}

static void end(struct tcp_stream *stream, const struct failure *failure) {
    tcp_stream_close(stream);
    stream->pool->owner->ended(stream, failure);
}

static void end_by_error(struct tcp_stream *stream, int error) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_DISCONNECTED, "%s", failure_system_words(error));
    failure.system_error = error;
    end(stream, &failure);
}

static void end_by_queue(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT, "it has not read more than %zu bytes that wait for it",
        stream->pool->queue_ceiling);
    end(stream, &failure);
}

static void end_by_memory(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT,
        "unfinished input and unread output would pass the %zu bytes of memory left for them",
        stream->pool->buffer_ceiling);
    end(stream, &failure);
}

static void end_by_exhaustion(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_SYSTEM, "there is no memory for what it sends");
    failure.system_error = ENOMEM;
    end(stream, &failure);
}

/* Whether there is memory to receive and to handle a message of so many bytes. */
static bool has_memory(size_t length) {
    size_t parts = length < PARTS_BYTES ? length : PARTS_BYTES;
    return length <= SIZE_MAX - parts && spare_memory_is_enough_for(length + parts, MESSAGE_FACTOR);
}

static void watch(struct tcp_stream *stream);

/* Passes input on and stores what the owner did not consume. */
static void deliver_fresh(struct tcp_stream *stream, struct slice input) {
    size_t needed = 0;
    size_t consumed = stream->pool->owner->received(stream, input, &needed);
    if (stream->is_closed || consumed == input.length) {
        return;
    }
    stream->input_needed = needed;
    if (append_to_buffer(stream, &stream->input, input.data + consumed, input.length - consumed) !=
        FAILURE_NONE) {
        end_by_memory(stream);
    }
}

/* Passes on what is stored. */
static void deliver_stored(struct tcp_stream *stream) {
    if (stream->input.length == 0 || stream->input.length < stream->input_needed) {
        return;
    }
    size_t needed = 0;
    size_t consumed = stream->pool->owner->received(stream, bytes_slice(&stream->input), &needed);
    if (stream->is_closed) {
        return;
    }
    stream->input_needed = needed;
    bytes_consume(&stream->input, consumed);
    if (stream->input.length == 0) {
        clear_buffer(stream, &stream->input);
    }
}

/* As deliver_fresh, when earlier input is stored already. */
static void deliver_more(struct tcp_stream *stream, struct slice input) {
    if (append_to_buffer(stream, &stream->input, input.data, input.length) != FAILURE_NONE) {
        end_by_memory(stream);
        return;
    }
    deliver_stored(stream);
}

/* How many bytes a message that has begun to arrive still needs. */
static size_t missing(const struct tcp_stream *stream) {
    return stream->input_needed > stream->input.length && stream->input.length > 0
               ? stream->input_needed - stream->input.length
               : 0;
}

/* Receives at most that many bytes, and not more than the receive buffer holds. Returns their
 * number; 0 when there were none or the stream has ended. Whether there is memory is asked where
 * the buffer grows or a message may be handled, not at each of the many parts of a long one. */
static size_t receive(struct tcp_stream *stream, size_t wanted) {
    uint8_t *buffer = stream->pool->read_buffer;
    size_t most = stream->input.length + READ_SIZE;
    bool is_part = most < stream->input_needed && most <= stream->input.capacity;
    if (!is_part && !has_memory(most)) {
        end_by_exhaustion(stream);
        return 0;
    }
    ssize_t length = recv(stream->fd, buffer, wanted < READ_SIZE ? wanted : READ_SIZE, 0);
    if (length < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            end_by_error(stream, errno);
        }
        return 0;
    }
    if (length == 0) {
        struct failure failure = {0};
        failure_set(&failure, FAILURE_DISCONNECTED, "closed by the peer");
        end(stream, &failure);
        return 0;
    }
    struct slice input = {buffer, (size_t)length};
    if (stream->input.length == 0) {
        deliver_fresh(stream, input);
    } else {
        deliver_more(stream, input);
    }
    return stream->is_closed ? 0 : (size_t)length;
}

/* Receives a turn's bytes. When they end within a longer message, the rest of it follows at once,
 * as far as one receive buffer goes. */
static void receive_turn(struct tcp_stream *stream) {
    size_t turn_bytes = stream->pool->turn_bytes;
    size_t wanted = missing(stream) > turn_bytes ? missing(stream) : turn_bytes;
    size_t length = receive(stream, wanted);
    if (length == turn_bytes && !stream->is_held && missing(stream) > 0) {
        (void)receive(stream, missing(stream));
    }
}

/* Returns the number of bytes that the kernel accepted. Ends the stream on an error. */
static size_t send_now(
    struct tcp_stream *stream, const uint8_t *data, size_t length, bool is_followed) {
    ssize_t sent = send(stream->fd, data, length, MSG_NOSIGNAL | (is_followed ? MSG_MORE : 0));
    if (sent >= 0) {
        return (size_t)sent;
    }
    if (errno != EAGAIN && errno != EINTR) {
        end_by_error(stream, errno);
    }
    return 0;
}

static void queue(struct tcp_stream *stream, const uint8_t *data, size_t length) {
    struct tcp_stream_pool *pool = stream->pool;
    if (stream->output_sent > stream->output.length / 2) {
        bytes_consume(&stream->output, stream->output_sent);
        stream->output_sent = 0;
    }
    size_t unsent = stream->output.length - stream->output_sent;
    if (length > pool->queue_ceiling || unsent > pool->queue_ceiling - length) {
        end_by_queue(stream);
        return;
    }
    bool was_empty = stream->output.length == 0;
    if (append_to_buffer(stream, &stream->output, data, length) != FAILURE_NONE) {
        end_by_memory(stream);
        return;
    }
    if (was_empty) {
        watch(stream);
    }
}

static void send_or_queue(struct tcp_stream *stream, struct slice data, bool is_followed) {
    if (stream->is_closed || data.length == 0) {
        return;
    }
    size_t sent = 0;
    if (stream->output.length == 0 && !stream->is_connecting) {
        sent = send_now(stream, data.data, data.length, is_followed);
    }
    if (sent < data.length && !stream->is_closed) {
        queue(stream, data.data + sent, data.length - sent);
    }
}

void tcp_stream_send(struct tcp_stream *stream, struct slice data) {
    send_or_queue(stream, data, false);
}

void tcp_stream_send_ahead(struct tcp_stream *stream, struct slice data) {
    send_or_queue(stream, data, true);
}

size_t tcp_stream_unsent(const struct tcp_stream *stream) {
    return stream->output.length - stream->output_sent;
}

static bool may_go_on(const struct tcp_stream *stream) {
    return tcp_stream_unsent(stream) <= stream->pool->held_above;
}

/* Watching for room to send gives a held stream its next turn: at once when there is room, and else
 * when the peer has read. */
void tcp_stream_hold(struct tcp_stream *stream) {
    if (!stream->is_closed) {
        stream->is_held = true;
        watch(stream);
    }
}

static void go_on(struct tcp_stream *stream) {
    stream->is_held = false;
    deliver_stored(stream);
    if (!stream->is_closed && !stream->is_held) {
        watch(stream);
    }
}

bool tcp_stream_is_drained(const struct tcp_stream *stream) {
    return stream->output.length == 0;
}

static void flush(struct tcp_stream *stream) {
    struct bytes *output = &stream->output;
    stream->output_sent += send_now(
        stream, output->data + stream->output_sent, output->length - stream->output_sent, false);
    if (stream->is_closed || stream->output_sent < output->length) {
        return;
    }
    clear_buffer(stream, output);
    stream->output_sent = 0;
    watch(stream);
    if (stream->pool->owner->drained != NULL) {
        stream->pool->owner->drained(stream);
    }
}

static void finish_connecting(struct tcp_stream *stream) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        end_by_error(stream, error);
        return;
    }
    stream->is_connecting = false;
    watch(stream);
    stream->pool->owner->connected(stream);
}

static void socket_ready(uv_poll_t *handle, int status, int events) {
    struct tcp_stream *stream = handle->data;
    bool was_held = stream->is_held;
    if (stream->is_connecting) {
        finish_connecting(stream);
        return;
    }
    if (status < 0 || (!was_held && (events & UV_READABLE) != 0)) {
        receive_turn(stream);
    }
    if (status < 0 && !stream->is_closed) {
        watch(stream); /* libuv stopped watching, but there was more to read before the error */
    }
    if (!stream->is_closed && stream->output.length > 0 && (events & UV_WRITABLE) != 0) {
        flush(stream);
    }
    if (!stream->is_closed && was_held && may_go_on(stream) && (events & UV_WRITABLE) != 0) {
        go_on(stream);
    }
}

static void watch(struct tcp_stream *stream) {
    int events = stream->is_connecting || stream->is_held ? 0 : UV_READABLE;
    if (stream->is_connecting || stream->is_held || stream->output.length > 0) {
        events |= UV_WRITABLE;
    }
    uv_poll_start(&stream->poll, events, socket_ready);
}

enum failure_code tcp_stream_open(struct tcp_stream *stream, struct event_loop *loop,
    struct tcp_stream_pool *pool, int fd, bool is_connecting, struct failure *failure) {
    *stream = (struct tcp_stream){.pool = pool, .fd = fd, .is_connecting = is_connecting};
    int status = event_loop_init_poll(loop, &stream->poll, fd);
    if (status != 0) {
        return failure_set_system(failure, -status, "cannot watch a connection");
    }
    stream->poll.data = stream;
    watch(stream);
    return FAILURE_NONE;
}

void tcp_stream_expect(struct tcp_stream *stream, size_t length) {
    int mark = (int)length;
    if (!stream->is_closed) {
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
    }
}

/* Mostly there is next to nothing, and one call takes it. */
static bool takes_all_at_once(struct tcp_stream *stream) {
    return !stream->is_held && receive(stream, READ_SIZE) < READ_SIZE && !stream->is_held;
}

void tcp_stream_catch_up(struct tcp_stream *stream) {
    int available = 0;
    if (stream->is_closed || takes_all_at_once(stream) || stream->is_closed ||
        ioctl(stream->fd, FIONREAD, &available) != 0) {
        return;
    }
    size_t left = available < 0 ? 0 : (size_t)available;
    while (!stream->is_closed && (left > 0 || stream->is_held)) {
        if (stream->is_held) {
            if (!may_go_on(stream)) {
                return;
            }
            go_on(stream);
            continue;
        }
        size_t length = receive(stream, READ_SIZE);
        if (length == 0) {
            return;
        }
        left = length < left ? left - length : 0;
    }
}
