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

bool endpoint_is_ipv6_address(const char *text) {
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
