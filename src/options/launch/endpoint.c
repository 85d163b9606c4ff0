/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "options/launch/option_values.h"

#define IPV6_GROUPS 8
#define HIGHEST_PORT 65535

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

static bool is_ipv4_address(const char *text) {
    for (int part = 0; part < 4; part++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 3 || strtol(text, NULL, 10) > 255) {
            return false;
        }
        text += digits;
        if (*text != (part < 3 ? '.' : '\0')) {
            return false;
        }
        text += part < 3;
    }
    return true;
}

/* Whether the text is an IPv6 address as in RFC 4291, without a zone. */
static bool endpoint_is_ipv6_address(const char *text) {
    int groups = 0;
    bool has_gap = false;
    bool is_after_group = false;
    while (*text != '\0') {
        if (text[0] == ':' && text[1] == ':') {
            if (has_gap) {
                return false;
            }
            has_gap = true;
            is_after_group = false;
            text += 2;
            continue;
        }
        text += *text == ':' && is_after_group;
        if (strchr(text, '.') != NULL && strchr(text, ':') == NULL) {
            groups += 2;
            return is_ipv4_address(text) &&
                   (has_gap ? groups < IPV6_GROUPS : groups == IPV6_GROUPS);
        }
        size_t digits = strspn(text, "0123456789abcdefABCDEF");
        if (digits == 0 || digits > 4 || (text[digits] != ':' && text[digits] != '\0')) {
            return false;
        }
        text += digits;
        groups++;
        is_after_group = true;
    }
    return has_gap ? groups < IPV6_GROUPS : groups == IPV6_GROUPS;
}

static bool is_host_character(char character) {
    return is_digit(character) || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || strchr("_.:-", character) != NULL;
}

/* Every character beyond ASCII counts as a letter, because nearly all of them match Python's \w. */
static bool is_host(const char *text) {
    size_t length = strlen(text);
    if (length == 0 || length > ENDPOINT_HOST_MAXIMUM) {
        return false;
    }
    for (size_t i = 0; i < length;) {
        size_t character = utf8_character_length((const uint8_t *)text + i, length - i);
        if (character == 0 || (character == 1 && !is_host_character(text[i]))) {
            return false;
        }
        i += character;
    }
    return strchr(text, ':') == NULL || endpoint_is_ipv6_address(text);
}

bool endpoint_is_loopback(const char *host) {
    static const char *const names[] = {
        "localhost", "localhost.", "localhost.localdomain", "ip6-localhost", "ip6-loopback"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (text_equals(host, names[i])) {
            return true;
        }
    }
    bool is_ipv6_loopback =
        endpoint_is_ipv6_address(host) &&
        (text_equals(host + strspn(host, "0:"), "1") || text_starts_with(host, "::ffff:127."));
    return is_ipv6_loopback || (is_ipv4_address(host) && text_starts_with(host, "127."));
}

static char *without_brackets(const char *text, size_t length) {
    struct text host = {0};
    bool has_brackets = length > 1 && text[0] == '[' && text[length - 1] == ']';
    text_append_bytes(&host, text + has_brackets, length - 2 * (size_t)has_brackets);
    return text_take(&host);
}

enum failure_code endpoint_parse_host(const char *text, char **out_host, struct text *out_reason) {
    char *host = without_brackets(text, strlen(text));
    if (!is_host(host)) {
        free(host);
        return option_refuse_value(out_reason, text,
            "give a host name of at most %d bytes, an IPv4 address or an IPv6 address",
            ENDPOINT_HOST_MAXIMUM);
    }
    *out_host = host;
    return FAILURE_NONE;
}

/* Reads one to five digits; the value must not exceed the highest port. */
static bool parse_port(const char *text, int *out_port) {
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 5 || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    *out_port = (int)port;
    return port <= HIGHEST_PORT;
}

/* Whether an IPv6 address is also valid without its last group, and that group could be a port. */
static bool could_end_in_a_port(const char *address) {
    const char *colon = strrchr(address, ':');
    int port;
    struct text rest = {0};
    text_append_bytes(&rest, address, (size_t)(colon - address));
    bool could = parse_port(colon + 1, &port) && endpoint_is_ipv6_address(text_string(&rest));
    text_clear(&rest);
    return could;
}

static enum failure_code parse_trimmed(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason) {
    size_t length = strlen(text);
    const char *colon = strrchr(text, ':');
    bool is_bare_host = colon == NULL || (text[0] == '[' && text[length - 1] == ']') ||
                        endpoint_is_ipv6_address(text);
    struct endpoint endpoint = {.port = ENDPOINT_NO_PORT};
    if (strchr(text, ',') != NULL) {
        return option_refuse_value(out_reason, text,
            "give one HOST:PORT, that of the node which hosts the store: no second one can take "
            "its place; for a job that survives any node name a directory that all nodes see, "
            "--rdzv-backend dir --rdzv-endpoint /PATH");
    }
    if (endpoint_is_ipv6_address(text) && could_end_in_a_port(text)) {
        return option_refuse_value(out_reason, text,
            "is this an address, or one and a port? write [%s] or [%.*s]%s", text,
            (int)(colon - text), text, colon);
    }
    if (!is_bare_host && !parse_port(colon + 1, &endpoint.port)) {
        return option_refuse_value(
            out_reason, text, "a port from 0 to %d has to follow the last colon", HIGHEST_PORT);
    }
    endpoint.host = without_brackets(text, is_bare_host ? length : (size_t)(colon - text));
    if (!is_host(endpoint.host)) {
        free(endpoint.host);
        return option_refuse_value(out_reason, text,
            "give HOST:PORT, a name of at most %d bytes or an IPv6 address in brackets, as in "
            "node0:29500 or [::1]:29500",
            ENDPOINT_HOST_MAXIMUM);
    }
    *out_endpoint = endpoint;
    return FAILURE_NONE;
}

enum failure_code endpoint_parse(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason) {
    char *trimmed = option_trim(text);
    enum failure_code code = FAILURE_NONE;
    if (*trimmed == '\0') {
        *out_endpoint = (struct endpoint){
            .host = memory_duplicate_string("localhost"), .port = ENDPOINT_NO_PORT};
    } else {
        code = parse_trimmed(trimmed, out_endpoint, out_reason);
    }
    free(trimmed);
    return code;
}

void endpoint_clear(struct endpoint *endpoint) {
    free(endpoint->host);
    *endpoint = (struct endpoint){0};
}

/* Endpoint list. */

#define ENDPOINT_LIST_MAXIMUM 16

#define ENDPOINT_LIST_DEFAULT_PORT 2379

/* Whether the text begins with that scheme; then it is cut off. */
static bool take_scheme(const char **text, const char *scheme) {
    bool has = text_starts_with(*text, scheme);
    *text += has ? strlen(scheme) : 0;
    return has;
}

static enum failure_code parse_place(
    const char *place, struct endpoint *out_endpoint, struct text *reason) {
    struct text trimmed = {0};
    size_t length = strlen(place);
    bool has_slash = length > 0 && place[length - 1] == '/';
    text_append_bytes(&trimmed, place, length - (has_slash ? 1 : 0));
    enum failure_code code = endpoint_parse(text_string(&trimmed), out_endpoint, reason);
    if (code == FAILURE_NONE && out_endpoint->port == 0) {
        code = option_refuse_value(reason, text_string(&trimmed),
            "a member of etcd listens on a port from 1 to 65535, by default on %d",
            ENDPOINT_LIST_DEFAULT_PORT);
        endpoint_clear(out_endpoint);
    }
    text_clear(&trimmed);
    return code;
}

static enum failure_code add_member(
    struct endpoint_list *list, const char *whole, const char *item, struct text *reason) {
    struct endpoint endpoint = {0};
    char *trimmed = option_trim(item);
    const char *place = trimmed;
    bool is_https = take_scheme(&place, "https://");
    if (!is_https) {
        (void)take_scheme(&place, "http://");
    }
    enum failure_code code;
    if (*place == '\0' || text_equals(place, "/")) {
        code = option_refuse_value(reason, whole,
            "one of its members is empty; give HOST:PORT,HOST:PORT,… of etcd's members");
    } else if (list->members.count > 0 && is_https != list->is_https) {
        code = option_refuse_value(
            reason, whole, "some of its members have https:// and others have not");
    } else {
        code = parse_place(place, &endpoint, reason);
    }
    if (code == FAILURE_NONE) {
        bool is_ipv6 = strchr(endpoint.host, ':') != NULL;
        int port = endpoint.port == ENDPOINT_NO_PORT ? ENDPOINT_LIST_DEFAULT_PORT : endpoint.port;
        text_list_add_taken(
            &list->members, text_format(is_ipv6 ? "[%s]:%d" : "%s:%d", endpoint.host, port));
        list->is_https = is_https;
        endpoint_clear(&endpoint);
    }
    free(trimmed);
    return code;
}

static size_t count_items(const char *text) {
    size_t count = 1;
    for (; *text != '\0'; text++) {
        count += *text == ',' ? 1 : 0;
    }
    return count;
}

enum failure_code endpoint_list_parse(
    const char *text, struct endpoint_list *out_list, struct text *out_reason) {
    struct endpoint_list list = {0};
    size_t count = count_items(text);
    if (count > ENDPOINT_LIST_MAXIMUM) {
        return option_refuse_value(out_reason, text,
            "it names %zu members of etcd, more than the %d allowed", count, ENDPOINT_LIST_MAXIMUM);
    }
    enum failure_code code = FAILURE_NONE;
    for (const char *rest = text; rest != NULL && code == FAILURE_NONE;) {
        size_t length = strcspn(rest, ",");
        struct text item = {0};
        text_append_bytes(&item, rest, length);
        code = add_member(&list, text, text_string(&item), out_reason);
        text_clear(&item);
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    if (code != FAILURE_NONE) {
        endpoint_list_clear(&list);
        return code;
    }
    *out_list = list;
    return FAILURE_NONE;
}

void endpoint_list_clear(struct endpoint_list *list) {
    text_list_clear(&list->members);
    *list = (struct endpoint_list){0};
}
