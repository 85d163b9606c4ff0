/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/local_address.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/rendezvous/endpoint_match.h"
#include "host/network/address_list.h"
#include "host/network/name_lookup.h"

/* The facts from which core/address_choice chooses. */
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

/* Reverse lookup: the name that Python's rule chooses among the names of an address, or `host_name`
 * when there is none. The caller frees the result. */
static char *name_of_address(const char *host_name, const struct network_address *address) {
    struct text_list names = {0};
    name_lookup_names(address->bytes, address->is_ipv6, &names);
    bool is_found = names.count > 0;
    char *name = memory_duplicate_string(address_choice_qualified_name(host_name,
        is_found ? names.items[0] : NULL, is_found ? (const char *const *)names.items + 1 : NULL));
    text_list_clear(&names);
    return name;
}

/* Looks up the host name, then the name of the first address, as CPython's gethostbyaddr does. A
 * lookup that failed is not repeated, because each may take a name server's timeout. */
static void find_names(struct names_and_addresses *found) {
    found->name_addresses = address_list_of_name(found->host_name, NULL);
    if (found->name_addresses.count == 0) {
        found->qualified_name = memory_duplicate_string(found->host_name);
        return;
    }
    found->qualified_name = name_of_address(found->host_name, &found->name_addresses.items[0]);
    if (strcmp(found->qualified_name, found->host_name) != 0) {
        address_list_clear(&found->name_addresses);
        found->name_addresses = address_list_of_name(found->qualified_name, NULL);
    }
}

static void names_and_addresses_clear(struct names_and_addresses *found) {
    free(found->host_name);
    free(found->qualified_name);
    address_list_clear(&found->name_addresses);
    address_list_clear(&found->local_addresses);
}

enum failure_code local_address_qualified_name(char **out_name, struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        struct address_list addresses = address_list_of_name(found.host_name, NULL);
        *out_name = addresses.count > 0 ? name_of_address(found.host_name, &addresses.items[0])
                                        : memory_duplicate_string(found.host_name);
        address_list_clear(&addresses);
    }
    names_and_addresses_clear(&found);
    return code;
}

static enum failure_code choose(
    void (*choice)(const struct address_candidates *candidates, struct text *text), char **out_name,
    struct text *addresses, struct failure *failure) {
    struct names_and_addresses found = {0};
    enum failure_code code = local_address_host_name(&found.host_name, failure);
    if (code == FAILURE_NONE) {
        find_names(&found);
        found.local_addresses = address_list_of_interfaces();
        const struct address_candidates candidates = {
            .host_name = found.host_name,
            .qualified_name = found.qualified_name,
            .name_addresses = found.name_addresses.items,
            .name_address_count = found.name_addresses.count,
            .local_addresses = found.local_addresses.items,
            .local_address_count = found.local_addresses.count,
            .lacks_localhost = !name_lookup_knows_localhost(),
        };
        struct text chosen = {0};
        choice(&candidates, &chosen);
        *out_name = text_take(&chosen);
        for (size_t i = 0; addresses != NULL && i < found.name_addresses.count; i++) {
            network_address_format(&found.name_addresses.items[i], addresses);
            text_append(addresses, " ");
        }
    }
    names_and_addresses_clear(&found);
    return code;
}

enum failure_code local_address_for_one_node(char **out_name, struct failure *failure) {
    return choose(address_choice_for_one_node, out_name, NULL, failure);
}

enum failure_code local_address_for_many_nodes(
    char **out_name, struct text *addresses, struct failure *failure) {
    return choose(address_choice_for_many_nodes, out_name, addresses, failure);
}

void local_address_write_interfaces(size_t most, struct text *out) {
    struct address_list interfaces = address_list_of_interfaces();
    address_list_put_outgoing_first(&interfaces);
    for (size_t i = 0; i < interfaces.count; i++) {
        const struct network_address *address = &interfaces.items[i];
        struct text one = {0};
        network_address_format(address, &one);
        if (!network_address_is_loopback(address) && !network_address_is_link_local(address) &&
            out->length + 1 + one.length <= most) {
            text_append_format(out, "%s%s", out->length > 0 ? " " : "", text_string(&one));
        }
        text_clear(&one);
    }
    address_list_clear(&interfaces);
}

bool local_address_is_beyond_loopback(const char *text) {
    struct address_list wanted = address_list_of_address(text);
    struct address_list local = address_list_of_interfaces();
    struct text usual = {0};
    bool is = false;
    if (wanted.count == 1) {
        network_address_format(&wanted.items[0], &usual);
    }
    for (size_t i = 0; i < local.count && text_equals(text_string(&usual), text) && !is; i++) {
        is = network_address_equals(&local.items[i], &wanted.items[0]) &&
             !network_address_is_loopback(&wanted.items[0]) &&
             !network_address_is_link_local(&wanted.items[0]);
    }
    text_clear(&usual);
    address_list_clear(&wanted);
    address_list_clear(&local);
    return is;
}
