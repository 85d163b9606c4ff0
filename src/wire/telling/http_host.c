/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/http_host.h"

#include <string.h>

/* A part of a text. */
struct part {
    const char *data;
    size_t length;
};

static char lower(char character) {
    return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

/* Whether the first `length` characters are the same; case does not count. */
static bool begin_alike(const char *left, const char *right, size_t length) {
    size_t i = 0;
    while (i < length && left[i] != '\0' && lower(left[i]) == lower(right[i])) {
        i++;
    }
    return i == length;
}

static bool part_equals(struct part part, const char *text, size_t length) {
    return part.length == length && begin_alike(part.data, text, length);
}

/* Without port and without a last dot. An IPv6 address keeps its brackets. */
static struct part name_of(const char *host) {
    struct part name = {host, strlen(host)};
    if (host[0] == '[') {
        const char *end = strchr(host, ']');
        name.length = end != NULL ? (size_t)(end - host) + 1 : name.length;
        return name;
    }
    name.length = strcspn(host, ":");
    if (name.length > 1 && name.data[name.length - 1] == '.') {
        name.length--;
    }
    return name;
}

/* A name of the Domain Name System has a letter behind its last dot, and no bracket. */
static bool is_address(struct part name) {
    if (name.data[0] == '[') {
        return name.length > 2 &&
               strspn(name.data + 1, "0123456789abcdefABCDEF:.%") + 2 == name.length;
    }
    return text_is_digit(name.data[0]) && strspn(name.data, "0123456789.") >= name.length;
}

static bool ends_with(struct part name, const char *suffix) {
    size_t length = strlen(suffix);
    return name.length > length && begin_alike(name.data + name.length - length, suffix, length);
}

/* What a full name is called nearby. */
static bool is_short_for(struct part name, const char *full) {
    bool is_beginning = name.length < strlen(full) && full[name.length] == '.' &&
                        begin_alike(name.data, full, name.length);
    return is_beginning && (memchr(name.data, '.', name.length) == NULL || ends_with(name, ".svc"));
}

static bool matches(struct part name, const char *admitted) {
    if (admitted[0] == '*') {
        return admitted[1] == '\0' || (admitted[1] == '.' && ends_with(name, admitted + 1));
    }
    if (admitted[0] == '.') {
        return ends_with(name, admitted);
    }
    size_t length = strlen(admitted);
    length -= length > 1 && admitted[length - 1] == '.' ? 1 : 0;
    return part_equals(name, admitted, length) || is_short_for(name, admitted);
}

bool http_host_is_admitted(const char *host, const struct text_list *names) {
    if (host == NULL || host[0] == '\0') {
        return true;
    }
    struct part name = name_of(host);
    bool is_admitted = name.length > 0 &&
                       (is_address(name) || part_equals(name, "localhost", strlen("localhost")));
    for (size_t i = 0; i < names->count && name.length > 0 && !is_admitted; i++) {
        is_admitted = matches(name, names->items[i]);
    }
    return is_admitted;
}

void http_host_add_names(const char *text, struct text_list *names) {
    static const char parting[] = ", \t";
    for (text += strspn(text, parting); *text != '\0'; text += strspn(text, parting)) {
        struct text name = {0};
        size_t length = strcspn(text, parting);
        text_append_bytes(&name, text, length);
        text_list_add_taken(names, text_take(&name));
        text += length;
    }
}
