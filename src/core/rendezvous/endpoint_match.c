/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/endpoint_match.h"

#include <string.h>

#include "base/text.h"

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
