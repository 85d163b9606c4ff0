/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
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
