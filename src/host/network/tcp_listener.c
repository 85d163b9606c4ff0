/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/loop/random_seed.h"
#include "host/network/name_lookup.h"
#include "host/network/tcp_address.h"

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
