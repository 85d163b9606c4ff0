/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/option_values.h"

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

/* Letters of any language count, as for Python's \w; their bytes are not looked into. */
static bool is_host_character(char character) {
    return is_digit(character) || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || strchr("_.:-", character) != NULL ||
           (unsigned char)character >= 0x80;
}

static bool is_host(const char *text) {
    size_t length = 0;
    while (text[length] != '\0' && is_host_character(text[length])) {
        length++;
    }
    return length > 0 && text[length] == '\0';
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
        return option_refuse_value(
            out_reason, text, "give a host name, an IPv4 address or an IPv6 address");
    }
    *out_host = host;
    return FAILURE_NONE;
}

/* One to five digits up to the highest port. */
static bool parse_port(const char *text, int *out_port) {
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 5 || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    *out_port = (int)port;
    return port <= HIGHEST_PORT;
}

static enum failure_code parse_trimmed(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason) {
    size_t length = strlen(text);
    const char *colon = strrchr(text, ':');
    bool is_bare_host = colon == NULL || (text[0] == '[' && text[length - 1] == ']') ||
                        endpoint_is_ipv6_address(text);
    struct endpoint endpoint = {.port = ENDPOINT_NO_PORT};
    if (!is_bare_host && !parse_port(colon + 1, &endpoint.port)) {
        return option_refuse_value(
            out_reason, text, "a port from 0 to %d has to follow the last colon", HIGHEST_PORT);
    }
    endpoint.host = without_brackets(text, is_bare_host ? length : (size_t)(colon - text));
    if (!is_host(endpoint.host)) {
        free(endpoint.host);
        return option_refuse_value(out_reason, text,
            "give HOST:PORT, an IPv6 address in brackets, as in node0:29500 or [::1]:29500");
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
