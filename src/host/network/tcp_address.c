/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_address_port(const union tcp_address *address) {
    switch (address->any.sa_family) {
    case AF_INET:
        return ntohs(address->ipv4.sin_port);
    case AF_INET6:
        return ntohs(address->ipv6.sin6_port);
    default:
        return 0;
    }
}

void tcp_address_set_port(union tcp_address *address, int port) {
    if (address->any.sa_family == AF_INET6) {
        address->ipv6.sin6_port = htons((uint16_t)port);
    } else {
        address->ipv4.sin_port = htons((uint16_t)port);
    }
}

/* In the form of IPv6, so that families compare. */
static struct in6_addr host_of(const union tcp_address *address) {
    struct in6_addr host = IN6ADDR_ANY_INIT;
    if (address->any.sa_family == AF_INET6) {
        host = address->ipv6.sin6_addr;
    } else if (address->any.sa_family == AF_INET) {
        host.s6_addr[10] = 0xff;
        host.s6_addr[11] = 0xff;
        memcpy(&host.s6_addr[12], &address->ipv4.sin_addr, sizeof address->ipv4.sin_addr);
    }
    return host;
}

void tcp_address_host(
    const union tcp_address *address, uint8_t out_host[static TCP_ADDRESS_HOST_BYTES]) {
    struct in6_addr host = host_of(address);
    memcpy(out_host, &host, sizeof host);
}

static bool is_loopback_host(const struct in6_addr *host) {
    return IN6_IS_ADDR_LOOPBACK(host) ||
           (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == IN_LOOPBACKNET);
}

bool tcp_address_write_host(
    const uint8_t host[static TCP_ADDRESS_HOST_BYTES], char out_text[static INET6_ADDRSTRLEN]) {
    struct in6_addr address;
    memcpy(&address, host, sizeof address);
    if (IN6_IS_ADDR_UNSPECIFIED(&address) || is_loopback_host(&address)) {
        return false;
    }
    return IN6_IS_ADDR_V4MAPPED(&address)
               ? inet_ntop(AF_INET, &address.s6_addr[12], out_text, INET6_ADDRSTRLEN) != NULL
               : inet_ntop(AF_INET6, &address, out_text, INET6_ADDRSTRLEN) != NULL;
}

bool tcp_address_is_same_host(const union tcp_address *left, const union tcp_address *right) {
    struct in6_addr left_host = host_of(left);
    struct in6_addr right_host = host_of(right);
    return memcmp(&left_host, &right_host, sizeof left_host) == 0;
}

union tcp_address tcp_address_plain(const union tcp_address *address) {
    union tcp_address plain = *address;
    if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->ipv6.sin6_addr)) {
        plain = (union tcp_address){
            .ipv4 = {.sin_family = AF_INET, .sin_port = address->ipv6.sin6_port}};
        memcpy(
            &plain.ipv4.sin_addr, &address->ipv6.sin6_addr.s6_addr[12], sizeof plain.ipv4.sin_addr);
    }
    return plain;
}

bool tcp_address_may_be_here(const union tcp_address *address) {
    union tcp_address place = tcp_address_plain(address);
    *(place.any.sa_family == AF_INET6 ? &place.ipv6.sin6_port : &place.ipv4.sin_port) = 0;
    int fd = socket(place.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true;
    }
    bool is_refused =
        bind(fd, &place.any, sizeof place) != 0 && (errno == EADDRNOTAVAIL || errno == ENODEV);
    close(fd);
    return !is_refused;
}

bool tcp_address_is_this_machine(const union tcp_address *peer, const union tcp_address *own) {
    struct in6_addr host = host_of(peer);
    return is_loopback_host(&host) || tcp_address_is_same_host(peer, own);
}

bool tcp_address_write_numeric(
    const union tcp_address *address, char out_text[static INET6_ADDRSTRLEN]) {
    struct in6_addr host = host_of(address);
    bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&host);
    inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? &host.s6_addr[12] : host.s6_addr, out_text,
        INET6_ADDRSTRLEN);
    return !IN6_IS_ADDR_LINKLOCAL(&host);
}

bool tcp_address_write_own(int fd, char out_text[static INET6_ADDRSTRLEN]) {
    union tcp_address own = {0};
    union tcp_address peer = {0};
    socklen_t own_length = sizeof own;
    socklen_t peer_length = sizeof peer;
    return fd != -1 && getsockname(fd, &own.any, &own_length) == 0 &&
           getpeername(fd, &peer.any, &peer_length) == 0 &&
           !tcp_address_is_this_machine(&peer, &own) && tcp_address_write_numeric(&own, out_text);
}

void tcp_address_describe(
    const union tcp_address *address, char out_text[static TCP_ADDRESS_TEXT_SIZE]) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6) {
        (void)tcp_address_write_numeric(address, host);
    }
    bool has_colons = strchr(host, ':') != NULL;
    snprintf(out_text, TCP_ADDRESS_TEXT_SIZE, "%s%s%s:%d", has_colons ? "[" : "", host,
        has_colons ? "]" : "", tcp_address_port(address));
}
