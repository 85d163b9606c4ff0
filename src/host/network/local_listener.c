/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/local_listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "host/network/address_list.h"
#include "host/network/tcp_listener.h"

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

void local_listener_close(struct local_listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        close(listener->fds[i]);
    }
    listener->count = 0;
}
