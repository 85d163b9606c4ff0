/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/host_place.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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
