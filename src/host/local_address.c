/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/local_address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/address_choice.h"

/* More addresses than this of one name or one machine are not looked at. */
#define ADDRESSES_CEILING 1024
#define LOOKUP_BUFFER_FIRST ((size_t)1024)
#define LOOKUP_BUFFER_CEILING ((size_t)65536)

struct address_list {
    struct network_address *items;
    size_t count;
    size_t capacity;
};

/* Everything the choice is made from. */
struct names_and_addresses {
    char *host_name;
    char *qualified_name;
    struct address_list name_addresses;
    struct address_list local_addresses;
};

enum failure_code local_address_host_name(char **out_name, struct failure *failure) {
    char name[HOST_NAME_MAX + 1];
    if (gethostname(name, sizeof name) != 0) {
        return failure_set_system(failure, errno, "cannot tell this machine's host name");
    }
    name[sizeof name - 1] = '\0';
    *out_name = memory_duplicate_string(name);
    return FAILURE_NONE;
}

/* Other families than IP, and NULL, add nothing. */
static void address_list_add(struct address_list *list, const struct sockaddr *address) {
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

/* A name that does not resolve has no addresses. */
static struct address_list resolve(const char *name) {
    struct address_list list = {0};
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *results = NULL;
    if (getaddrinfo(name, NULL, &hints, &results) == 0) {
        for (const struct addrinfo *result = results; result != NULL; result = result->ai_next) {
            address_list_add(&list, result->ai_addr);
        }
        freeaddrinfo(results);
    }
    return list;
}

static struct address_list list_interfaces(void) {
    struct address_list list = {0};
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) == 0) {
        for (const struct ifaddrs *one = interfaces; one != NULL; one = one->ifa_next) {
            if ((one->ifa_flags & IFF_UP) != 0) {
                address_list_add(&list, one->ifa_addr);
            }
        }
        freeifaddrs(interfaces);
    }
    return list;
}

/* The names an address has in reverse, by Python's rule the one to take; `host_name` if none. The
 * caller frees the result. */
static char *name_of_address(const char *host_name, const struct network_address *address) {
    char *name = NULL;
    char *buffer = NULL;
    for (size_t size = LOOKUP_BUFFER_FIRST; name == NULL; size *= 2) {
        buffer = memory_reallocate(buffer, size);
        struct hostent entry;
        struct hostent *found = NULL;
        int lookup_error;
        int error = gethostbyaddr_r(address->bytes, address->is_ipv6 ? 16 : 4,
            address->is_ipv6 ? AF_INET6 : AF_INET, &entry, buffer, size, &found, &lookup_error);
        if (error == ERANGE && size < LOOKUP_BUFFER_CEILING) {
            continue;
        }
        bool is_found = error == 0 && found != NULL;
        name = memory_duplicate_string(
            address_choice_qualified_name(host_name, is_found ? found->h_name : NULL,
                is_found ? (const char *const *)found->h_aliases : NULL));
    }
    free(buffer);
    return name;
}

/* Looks up forward, then the first address in reverse, as CPython's gethostbyaddr. A lookup that
 * failed is not repeated: each may cost a name server's timeout. */
static void find_names(struct names_and_addresses *found) {
    found->name_addresses = resolve(found->host_name);
    if (found->name_addresses.count == 0) {
        found->qualified_name = memory_duplicate_string(found->host_name);
        return;
    }
    found->qualified_name = name_of_address(found->host_name, &found->name_addresses.items[0]);
    if (strcmp(found->qualified_name, found->host_name) != 0) {
        free(found->name_addresses.items);
        found->name_addresses = resolve(found->qualified_name);
    }
}

static void names_and_addresses_clear(struct names_and_addresses *found) {
    free(found->host_name);
    free(found->qualified_name);
    free(found->name_addresses.items);
    free(found->local_addresses.items);
}

enum failure_code local_address_qualified_name(char **out_name, struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        struct address_list addresses = resolve(found.host_name);
        *out_name = addresses.count > 0 ? name_of_address(found.host_name, &addresses.items[0])
                                        : memory_duplicate_string(found.host_name);
        free(addresses.items);
    }
    names_and_addresses_clear(&found);
    return code;
}

static enum failure_code choose(
    void (*choice)(const struct address_candidates *candidates, struct text *text), char **out_name,
    struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        find_names(&found);
        found.local_addresses = list_interfaces();
        struct address_list localhost = resolve("localhost");
        const struct address_candidates candidates = {
            .host_name = found.host_name,
            .qualified_name = found.qualified_name,
            .name_addresses = found.name_addresses.items,
            .name_address_count = found.name_addresses.count,
            .local_addresses = found.local_addresses.items,
            .local_address_count = found.local_addresses.count,
            .lacks_localhost = localhost.count == 0,
        };
        struct text chosen = {0};
        choice(&candidates, &chosen);
        *out_name = text_take(&chosen);
        free(localhost.items);
    }
    names_and_addresses_clear(&found);
    return code;
}

enum failure_code local_address_for_one_node(char **out_name, struct failure *failure) {
    return choose(address_choice_for_one_node, out_name, failure);
}

enum failure_code local_address_for_many_nodes(char **out_name, struct failure *failure) {
    return choose(address_choice_for_many_nodes, out_name, failure);
}
