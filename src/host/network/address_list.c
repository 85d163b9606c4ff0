/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/address_list.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

/* The maximum number of addresses of one name or one machine. */
#define ADDRESSES_CEILING 1024

void address_list_clear(struct address_list *list) {
    free(list->items);
    *list = (struct address_list){0};
}

/* Adds the address; NULL and families other than IP are ignored. */
static void add(struct address_list *list, const struct sockaddr *address) {
    struct network_address item = {.is_ipv6 = false};
    if (address == NULL || list->count == ADDRESSES_CEILING) {
        return;
    }
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        memcpy(item.bytes, &ipv4.sin_addr, sizeof ipv4.sin_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        memcpy(item.bytes, &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
        item.is_ipv6 = true;
    } else {
        return;
    }
    list->items =
        memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

static struct address_list look_up(const char *name, int flags, char **out_canonical_name) {
    struct address_list list = {0};
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *results = NULL;
    bool is_known = getaddrinfo(name, NULL, &hints, &results) == 0;
    if (out_canonical_name != NULL) {
        *out_canonical_name = is_known ? memory_duplicate_string(results->ai_canonname) : NULL;
    }
    if (is_known) {
        for (const struct addrinfo *result = results; result != NULL; result = result->ai_next) {
            add(&list, result->ai_addr);
        }
        freeaddrinfo(results);
    }
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
