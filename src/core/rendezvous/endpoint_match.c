/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/endpoint_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define IPV4_LENGTH 4
#define IPV6_LENGTH 16
#define IPV6_GROUPS 8

static const uint8_t mapped_ipv4_start[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool network_address_equals(
    const struct network_address *left, const struct network_address *right) {
    size_t length = left->is_ipv6 ? IPV6_LENGTH : IPV4_LENGTH;
    return left->is_ipv6 == right->is_ipv6 && memcmp(left->bytes, right->bytes, length) == 0;
}

bool network_address_is_loopback(const struct network_address *address) {
    static const uint8_t ipv6_loopback[IPV6_LENGTH] = {[15] = 1};
    if (!address->is_ipv6) {
        return address->bytes[0] == 127;
    }
    if (memcmp(address->bytes, mapped_ipv4_start, sizeof mapped_ipv4_start) == 0) {
        return address->bytes[sizeof mapped_ipv4_start] == 127;
    }
    return memcmp(address->bytes, ipv6_loopback, IPV6_LENGTH) == 0;
}

bool network_address_is_link_local(const struct network_address *address) {
    if (!address->is_ipv6) {
        return address->bytes[0] == 169 && address->bytes[1] == 254;
    }
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

const char *address_choice_qualified_name(
    const char *host_name, const char *canonical_name, const char *const *aliases) {
    if (canonical_name == NULL) {
        return host_name;
    }
    if (strchr(canonical_name, '.') != NULL) {
        return canonical_name;
    }
    for (const char *const *alias = aliases; alias != NULL && *alias != NULL; alias++) {
        if (strchr(*alias, '.') != NULL) {
            return *alias;
        }
    }
    return canonical_name;
}

/* One part of what inet_aton takes: decimal, octal or hexadecimal. */
static bool is_number_part(const char *part, size_t length) {
    bool is_hexadecimal = length > 2 && part[0] == '0' && (part[1] == 'x' || part[1] == 'X');
    const char *digits = is_hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
    size_t start = is_hexadecimal ? 2 : 0;
    return length > start && strspn(part + start, digits) >= length - start;
}

bool address_choice_is_number(const char *name) {
    bool is = true;
    while (is) {
        size_t length = strcspn(name, ".");
        is = is_number_part(name, length);
        if (name[length] == '\0') {
            break;
        }
        name += length + 1;
    }
    return is;
}

static bool address_choice_is_own_address(
    const struct address_candidates *candidates, const struct network_address *address) {
    if (network_address_is_loopback(address)) {
        return true;
    }
    for (size_t i = 0; i < candidates->local_address_count; i++) {
        if (network_address_equals(&candidates->local_addresses[i], address)) {
            return true;
        }
    }
    return false;
}

/* Every address must be this machine's. A client tries the addresses of a name in an order of its
 * own, and may hang at the first one that is another machine's. */
static bool name_resolves_only_here(const struct address_candidates *candidates) {
    for (size_t i = 0; i < candidates->name_address_count; i++) {
        if (!address_choice_is_own_address(candidates, &candidates->name_addresses[i])) {
            return false;
        }
    }
    return candidates->name_address_count > 0;
}

static bool name_resolves_beyond_loopback(const struct address_candidates *candidates) {
    for (size_t i = 0; i < candidates->name_address_count; i++) {
        if (!network_address_is_loopback(&candidates->name_addresses[i])) {
            return true;
        }
    }
    return false;
}

static bool has_only_loopback(const struct address_candidates *candidates) {
    for (size_t i = 0; i < candidates->local_address_count; i++) {
        if (!network_address_is_loopback(&candidates->local_addresses[i])) {
            return false;
        }
    }
    return true;
}

static const struct network_address *first_reachable(
    const struct address_candidates *candidates, bool is_ipv6) {
    for (size_t i = 0; i < candidates->local_address_count; i++) {
        const struct network_address *address = &candidates->local_addresses[i];
        if (address->is_ipv6 == is_ipv6 && !network_address_is_loopback(address) &&
            !network_address_is_link_local(address)) {
            return address;
        }
    }
    return NULL;
}

/* A number is no name, unless it is an address of this machine as it is written. */
static bool has_name(const struct address_candidates *candidates) {
    bool has = !address_choice_is_number(candidates->qualified_name);
    for (size_t i = 0; i < candidates->local_address_count && !has; i++) {
        struct text own = {0};
        network_address_format(&candidates->local_addresses[i], &own);
        has = text_equals(text_string(&own), candidates->qualified_name);
        text_clear(&own);
    }
    return has;
}

void address_choice_for_one_node(const struct address_candidates *candidates, struct text *text) {
    const char *loopback = candidates->lacks_localhost ? "127.0.0.1" : "localhost";
    bool is_name = name_resolves_only_here(candidates) && has_name(candidates);
    text_append(text, is_name ? candidates->qualified_name : loopback);
}

void address_choice_for_many_nodes(const struct address_candidates *candidates, struct text *text) {
    if (has_only_loopback(candidates)) {
        address_choice_for_one_node(candidates, text);
        return;
    }
    if (name_resolves_beyond_loopback(candidates) && has_name(candidates)) {
        text_append(text, candidates->qualified_name);
        return;
    }
    const struct network_address *address = first_reachable(candidates, false);
    if (address == NULL) {
        address = first_reachable(candidates, true);
    }
    if (address == NULL && address_choice_is_number(candidates->host_name)) {
        address_choice_for_one_node(candidates, text);
    } else if (address == NULL) {
        text_append(text, candidates->host_name);
    } else {
        network_address_format(address, text);
    }
}

/* RFC 5952 writes the longest run of at least two zero groups as "::". */
static void find_zero_run(const unsigned *groups, int *out_start, int *out_length) {
    *out_start = -1;
    *out_length = 1;
    for (int start = 0; start < IPV6_GROUPS; start++) {
        int end = start;
        while (end < IPV6_GROUPS && groups[end] == 0) {
            end++;
        }
        if (end - start > *out_length) {
            *out_start = start;
            *out_length = end - start;
        }
    }
}

void network_address_format(const struct network_address *address, struct text *text) {
    const uint8_t *bytes = address->bytes;
    if (!address->is_ipv6) {
        text_append_format(text, "%d.%d.%d.%d", bytes[0], bytes[1], bytes[2], bytes[3]);
        return;
    }
    unsigned groups[IPV6_GROUPS];
    for (size_t i = 0; i < IPV6_GROUPS; i++) {
        groups[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    }
    int zero_start;
    int zero_length;
    find_zero_run(groups, &zero_start, &zero_length);
    for (int i = 0; i < IPV6_GROUPS; i++) {
        if (i == zero_start) {
            text_append(text, "::");
            i += zero_length - 1;
        } else {
            bool follows_zeros = zero_start >= 0 && i == zero_start + zero_length;
            text_append_format(text, "%s%x", i > 0 && !follows_zeros ? ":" : "", groups[i]);
        }
    }
}

/* Endpoint match. */

#define ENDPOINT_OTHERS_LISTED 8

static bool contains(
    const struct network_address *addresses, size_t count, const struct network_address *address) {
    for (size_t i = 0; i < count; i++) {
        if (network_address_equals(&addresses[i], address)) {
            return true;
        }
    }
    return false;
}

static char in_lower_case(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* The length of the common beginning; upper and lower case are the same. */
static size_t common_length(const char *left, const char *right) {
    size_t length = 0;
    while (left[length] != '\0' && in_lower_case(left[length]) == in_lower_case(right[length])) {
        length++;
    }
    return length;
}

/* A name may end with a dot. The dot says that the name is complete. */
static bool is_end(const char *name) {
    return text_equals(name, "") || text_equals(name, ".");
}

static bool is_same_name(const char *host, const char *name) {
    size_t length = common_length(host, name);
    return length > 0 && is_end(host + length) && is_end(name + length);
}

/* Whether `host` is `name` or consists of its leading labels, which a resolver completes. A
 * resolver does not complete a host that ends with a dot. */
static bool is_name_or_leading_labels(const char *host, const char *name) {
    size_t length = strlen(host);
    return is_same_name(host, name) || (length > 0 && common_length(host, name) == length &&
                                           name[length] == '.' && host[length - 1] != '.');
}

static bool is_own_name(const struct endpoint_facts *facts) {
    return text_equals(facts->host, "localhost") ||
           is_name_or_leading_labels(facts->host, facts->own_name) ||
           (facts->own_canonical_name != NULL &&
               is_name_or_leading_labels(facts->host, facts->own_canonical_name)) ||
           (facts->given_address != NULL && is_same_name(facts->host, facts->given_address));
}

static bool is_own_address(
    const struct endpoint_facts *facts, const struct network_address *address) {
    return network_address_is_loopback(address) ||
           contains(facts->name_addresses, facts->name_address_count, address) ||
           contains(facts->local_addresses, facts->local_address_count, address);
}

bool endpoint_matches_machine(const struct endpoint_facts *facts) {
    if (is_own_name(facts)) {
        return true;
    }
    for (size_t i = 0; i < facts->host_address_count; i++) {
        if (is_own_address(facts, &facts->host_addresses[i])) {
            return true;
        }
    }
    return false;
}

size_t endpoint_list_others(const struct endpoint_facts *facts, struct text *out) {
    size_t count = 0;
    for (size_t i = 0; i < facts->host_address_count; i++) {
        const struct network_address *address = &facts->host_addresses[i];
        if (!is_own_address(facts, address)) {
            if (count < ENDPOINT_OTHERS_LISTED) {
                text_append(out, count > 0 ? ", " : "");
                network_address_format(address, out);
            }
            count++;
        }
    }
    return count;
}

/* Host place. */

#define HIGHEST_PORT 65535
#define PORT_DIGITS 5

void host_place_clear(struct host_place *place) {
    free(place->names);
    *place = (struct host_place){0};
}

void host_place_write(int port, const char *names, struct text *out) {
    text_append_format(out, "%d %s", port, names);
}

/* Reads the port at the front of the text; 0 when there is none. */
static int read_port(const char *text, size_t *out_length) {
    int port = 0;
    size_t length = strspn(text, "0123456789");
    for (size_t i = 0; i < length && i <= PORT_DIGITS; i++) {
        port = port * 10 + (text[i] - '0');
    }
    *out_length = length;
    return text[0] == '0' || length > PORT_DIGITS || port > HIGHEST_PORT ? 0 : port;
}

/* Whether all of it is names parted by single blanks. */
static bool are_names(const char *text) {
    for (;;) {
        size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789.-_:%");
        if (length == 0) {
            return false;
        }
        if (text[length] == '\0') {
            return true;
        }
        if (text[length] != ' ') {
            return false;
        }
        text += length + 1;
    }
}

enum failure_code host_place_parse(const char *text, struct host_place *out_place) {
    size_t digits;
    if (strlen(text) > HOST_PLACE_TEXT_MAXIMUM) {
        return FAILURE_LIMIT;
    }
    int port = read_port(text, &digits);
    if (port == 0 || text[digits] != ' ' || !are_names(text + digits + 1)) {
        return FAILURE_MALFORMED;
    }
    *out_place = (struct host_place){port, memory_duplicate_string(text + digits + 1)};
    return FAILURE_NONE;
}
