/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/address_list.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/network/name_lookup.h"
#include "host/network/tcp_address.h"

/* The maximum number of addresses of one name or one machine. */
#define ADDRESSES_CEILING 1024
#define FAR_IPV4 0xc0000201 /* 192.0.2.1 */
#define FAR_IPV6 ((struct in6_addr){.s6_addr = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}})
#define ANY_PORT 9

void address_list_clear(struct address_list *list) {
    free(list->items);
    *list = (struct address_list){0};
}

/* False for families other than IP. */
static bool read_address(const struct sockaddr *address, struct network_address *out_item) {
    *out_item = (struct network_address){.is_ipv6 = address->sa_family == AF_INET6};
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        memcpy(out_item->bytes, &ipv4.sin_addr, sizeof ipv4.sin_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        memcpy(out_item->bytes, &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
    }
    return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

/* Adds the address; NULL and families other than IP are ignored. */
static void add(struct address_list *list, const struct sockaddr *address) {
    struct network_address item;
    if (address == NULL || list->count == ADDRESSES_CEILING || !read_address(address, &item)) {
        return;
    }
    list->items =
        memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

static struct address_list look_up(const char *name, int flags, char **out_canonical_name) {
    struct address_list list = {0};
    struct name_addresses found = {0};
    (void)!name_lookup_addresses(name, flags, &found);
    for (size_t i = 0; i < found.count; i++) {
        add(&list, &found.items[i].any);
    }
    if (out_canonical_name != NULL) {
        *out_canonical_name = found.canonical_name;
        found.canonical_name = NULL;
    }
    name_addresses_clear(&found);
    return list;
}

struct address_list address_list_of_name(const char *name, char **out_canonical_name) {
    return look_up(name, out_canonical_name != NULL ? AI_CANONNAME : 0, out_canonical_name);
}

struct address_list address_list_of_address(const char *text) {
    return look_up(text, AI_NUMERICHOST, NULL);
}

struct address_list address_list_of_interfaces(void) {
    struct address_list list = {0};
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) == 0) {
        for (const struct ifaddrs *one = interfaces; one != NULL; one = one->ifa_next) {
            if ((one->ifa_flags & IFF_UP) != 0) {
                add(&list, one->ifa_addr);
            }
        }
        freeifaddrs(interfaces);
    }
    return list;
}

bool address_list_is_of_interface(const union tcp_address *address) {
    union tcp_address plain = tcp_address_plain(address);
    struct network_address wanted;
    if (!read_address(&plain.any, &wanted) || !tcp_address_may_be_here(address)) {
        return false;
    }
    struct address_list own = address_list_of_interfaces();
    bool is_own = network_address_is_loopback(&wanted);
    for (size_t i = 0; i < own.count && !is_own; i++) {
        is_own = network_address_equals(&own.items[i], &wanted);
    }
    address_list_clear(&own);
    return is_own;
}

/* Finds this machine's address on the way to a network that is far from all (RFC 5737, RFC 3849).
 * The kernel looks the way up when the socket is connected; nothing is sent. */
static bool find_outgoing(
    const struct sockaddr *far, socklen_t length, struct network_address *out_address) {
    union tcp_address own = {0};
    socklen_t own_length = sizeof own;
    int fd = socket(far->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd != -1 && connect(fd, far, length) == 0 &&
                    getsockname(fd, &own.any, &own_length) == 0 &&
                    read_address(&own.any, out_address);
    if (fd != -1) {
        close(fd);
    }
    return is_found;
}

static void move_to_front(struct address_list *list, const struct network_address *address) {
    for (size_t i = 1; i < list->count; i++) {
        if (network_address_equals(&list->items[i], address)) {
            struct network_address moved = list->items[i];
            memmove(&list->items[1], &list->items[0], i * sizeof *list->items);
            list->items[0] = moved;
            return;
        }
    }
}

void address_list_put_outgoing_first(struct address_list *list) {
    const struct sockaddr_in ipv4 = {
        .sin_family = AF_INET, .sin_port = htons(ANY_PORT), .sin_addr = {htonl(FAR_IPV4)}};
    const struct sockaddr_in6 ipv6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(ANY_PORT), .sin6_addr = FAR_IPV6};
    struct network_address outgoing;
    if (find_outgoing((const struct sockaddr *)&ipv6, sizeof ipv6, &outgoing)) {
        move_to_front(list, &outgoing);
    }
    if (find_outgoing((const struct sockaddr *)&ipv4, sizeof ipv4, &outgoing)) {
        move_to_front(list, &outgoing);
    }
}
