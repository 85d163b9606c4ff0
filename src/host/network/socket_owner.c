/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

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

/* The socket that has the first address and is connected to the second. False when the kernel finds
 * none. */
static bool find(int fd, const union tcp_address *local, const union tcp_address *remote,
    struct inet_diag_msg *out_found) {
    struct question question = {
        .header = {.nlmsg_len = sizeof question,
            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
            .nlmsg_flags = NLM_F_REQUEST},
        .wanted = {.sdiag_family = (uint8_t)family_of(local),
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = UINT32_MAX,
            .id = {.idiag_sport = htons((uint16_t)tcp_address_port(local)),
                .idiag_dport = htons((uint16_t)tcp_address_port(remote)),
                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    write_address(local, question.wanted.id.idiag_src);
    write_address(remote, question.wanted.id.idiag_dst);
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg found;
        uint8_t rest[4096];
    } answer;
    if (send(fd, &question, sizeof question, 0) != (ssize_t)sizeof question) {
        return false;
    }
    ssize_t length = recv(fd, &answer, sizeof answer, 0);
    if (length < (ssize_t)(sizeof answer.header + sizeof answer.found) ||
        answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
        return false;
    }
    *out_found = answer.found;
    return true;
}

enum socket_owner socket_owner_ask(
    int fd, const union tcp_address *own, const union tcp_address *peer, uid_t *out_user) {
    struct inet_diag_msg found;
    if (fd < 0) {
        return SOCKET_OWNER_UNKNOWN;
    }
    if (find(fd, peer, own, &found) && found.idiag_inode != 0) {
        *out_user = found.idiag_uid;
        return SOCKET_OWNER_USER;
    }
    /* A kernel that does not find this end either cannot tell. */
    return find(fd, own, peer, &found) ? SOCKET_OWNER_GONE : SOCKET_OWNER_UNKNOWN;
}
