/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/endpoint_list.h"

#include <stdlib.h>
#include <string.h>

#include "options/launch/endpoint.h"
#include "options/launch/option_values.h"

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
