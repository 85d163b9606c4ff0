/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/slurm/hostlist.h"

#include <stdlib.h>
#include <string.h>

/* One walk over a list. The names of an item with brackets are made one after the other: each
 * bracket appends a number to the name and goes on behind itself. */
struct walk {
    const char *end; /* of the item */
    struct text name;
    int brackets; /* that the walk is in */
    struct text_list *hosts;
};

static enum failure_code walk_item(struct walk *walk, const char *from);

/* What a host's name consists of. */
static bool is_name_character(char character) {
    return text_is_digit(character) || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || character == '-' || character == '_' ||
           character == '.';
}

static enum failure_code add_host(struct walk *walk) {
    if (walk->name.length == 0) {
        return FAILURE_MALFORMED;
    }
    if (walk->hosts->count >= HOSTLIST_MAXIMUM_HOSTS) {
        return FAILURE_LIMIT;
    }
    text_list_add(walk->hosts, text_string(&walk->name));
    return FAILURE_NONE;
}

static enum failure_code append_to_name(struct walk *walk, const char *from, size_t length) {
    if (walk->name.length + length > HOSTLIST_MAXIMUM_NAME) {
        return FAILURE_LIMIT;
    }
    text_append_bytes(&walk->name, from, length);
    return FAILURE_NONE;
}

static void shorten_name(struct walk *walk, size_t length) {
    if (walk->name.data != NULL) {
        walk->name.data[length] = '\0';
    }
    walk->name.length = length;
}

/* The name with each number from `first` to `last`, and with what comes behind the bracket. */
static enum failure_code walk_numbers(
    struct walk *walk, long first, long last, int width, const char *behind) {
    size_t length = walk->name.length;
    for (long number = first; number <= last; number++) {
        char *digits = text_format("%0*ld", width, number);
        enum failure_code code = append_to_name(walk, digits, strlen(digits));
        free(digits);
        code = code == FAILURE_NONE ? walk_item(walk, behind) : code;
        shorten_name(walk, length);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    return FAILURE_NONE;
}

/* Reads a number and moves behind it. */
static enum failure_code take_number(
    const char **position, const char *end, long *out_number, int *out_width) {
    long number = 0;
    int width = 0;
    while (*position < end && text_is_digit(**position)) {
        if (++width > HOSTLIST_MAXIMUM_DIGITS) {
            return FAILURE_LIMIT;
        }
        number = number * 10 + (**position - '0');
        (*position)++;
    }
    *out_number = number;
    *out_width = width;
    return width == 0 ? FAILURE_MALFORMED : FAILURE_NONE;
}

/* Reads "7" or "007-012" and moves behind it. As in Slurm, the digits of the first number say how
 * many all have. */
static enum failure_code take_range(
    const char **position, const char *end, long *out_first, long *out_last, int *out_width) {
    int ignored;
    enum failure_code code = take_number(position, end, out_first, out_width);
    *out_last = *out_first;
    if (code == FAILURE_NONE && *position < end && **position == '-') {
        (*position)++;
        code = take_number(position, end, out_last, &ignored);
    }
    return code == FAILURE_NONE && *out_last < *out_first ? FAILURE_MALFORMED : code;
}

/* `position` is behind the opening bracket. */
static enum failure_code walk_bracket(struct walk *walk, const char *position) {
    const char *close = memchr(position, ']', (size_t)(walk->end - position));
    if (close == NULL) {
        return FAILURE_MALFORMED;
    }
    if (walk->brackets == HOSTLIST_MAXIMUM_BRACKETS) {
        return FAILURE_LIMIT;
    }
    walk->brackets++;
    enum failure_code code;
    do {
        long first;
        long last;
        int width;
        code = take_range(&position, close, &first, &last, &width);
        if (code == FAILURE_NONE && position < close && *position != ',') {
            code = FAILURE_MALFORMED;
        }
        if (code == FAILURE_NONE) {
            code = walk_numbers(walk, first, last, width, close + 1);
        }
    } while (code == FAILURE_NONE && position++ < close);
    walk->brackets--;
    return code;
}

/* Goes on with an item from here, with the name as it has become. */
static enum failure_code walk_item(struct walk *walk, const char *from) {
    const char *position = from;
    while (position < walk->end && is_name_character(*position)) {
        position++;
    }
    if (position < walk->end && *position != '[') {
        return FAILURE_MALFORMED;
    }
    size_t length = walk->name.length;
    enum failure_code code = append_to_name(walk, from, (size_t)(position - from));
    if (code == FAILURE_NONE) {
        code = position == walk->end ? add_host(walk) : walk_bracket(walk, position + 1);
    }
    shorten_name(walk, length);
    return code;
}

/* The end of the item that begins here: a comma outside of brackets, or the end of the text. */
static const char *end_of_item(const char *item) {
    bool is_in_bracket = false;
    while (*item != '\0' && (is_in_bracket || *item != ',')) {
        is_in_bracket = *item == '[' || (is_in_bracket && *item != ']');
        item++;
    }
    return item;
}

enum failure_code hostlist_expand(const char *text, struct text_list *out_hosts) {
    struct text_list hosts = {0};
    struct walk walk = {.hosts = &hosts};
    enum failure_code code = FAILURE_NONE;
    if (strlen(text) > HOSTLIST_MAXIMUM_LENGTH) {
        return FAILURE_LIMIT;
    }
    const char *item = text;
    do {
        walk.end = end_of_item(item);
        code = walk_item(&walk, item);
        item = walk.end + 1;
    } while (code == FAILURE_NONE && *walk.end == ',');
    text_clear(&walk.name);
    if (code == FAILURE_NONE) {
        text_list_add_all(out_hosts, &hosts);
    }
    text_list_clear(&hosts);
    return code;
}
