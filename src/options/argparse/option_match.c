/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_match.h"

#include <string.h>

/* Walks over each name of each option in the table's order, as argparse's map of option strings
 * does. */
struct name_cursor {
    const struct option_table *table;
    size_t index;
    size_t name;
};

static const char *next_name(struct name_cursor *cursor, size_t *out_index) {
    while (cursor->index < cursor->table->definition_count) {
        const char *const *names = cursor->table->definitions[cursor->index].names;
        if (cursor->name < OPTION_MAXIMUM_NAMES && names[cursor->name] != NULL) {
            *out_index = cursor->index;
            return names[cursor->name++];
        }
        cursor->index++;
        cursor->name = 0;
    }
    return NULL;
}

/* Finds the option whose name is exactly the first `length` characters. */
static bool find_exact(const struct option_table *table, const char *argument, size_t length,
    struct option_match *out_match) {
    struct name_cursor cursor = {.table = table};
    size_t index;
    for (const char *name; (name = next_name(&cursor, &index)) != NULL;) {
        if (strlen(name) == length && strncmp(name, argument, length) == 0) {
            *out_match = (struct option_match){.index = index, .name = name};
            return true;
        }
    }
    return false;
}

/* A long option matches when the argument up to "=" is a prefix of its name. A short option matches
 * its letter; the text behind the letter is its value. */
static bool matches_loosely(
    const char *name, const char *argument, size_t prefix_length, struct option_match *out_match) {
    bool is_short = argument[1] != '-';
    if (is_short && strlen(name) == 2 && name[1] == argument[1]) {
        *out_match = (struct option_match){.name = name, .attached = argument + 2};
        return true;
    }
    if (strncmp(name, argument, prefix_length) != 0) {
        return false;
    }
    bool has_equals_sign = argument[prefix_length] == '=';
    *out_match = (struct option_match){.name = name,
        .has_equals_sign = has_equals_sign,
        .attached = has_equals_sign ? argument + prefix_length + 1 : NULL};
    return true;
}

static size_t find_abbreviated(const struct option_table *table, const char *argument,
    bool is_addition, struct option_match *out_first, struct text *out_names) {
    size_t prefix_length = strcspn(argument, "=");
    struct name_cursor cursor = {.table = table};
    size_t index;
    size_t count = 0;
    for (const char *name; (name = next_name(&cursor, &index)) != NULL;) {
        struct option_match match;
        if (table->definitions[index].is_addition != is_addition ||
            !matches_loosely(name, argument, prefix_length, &match)) {
            continue;
        }
        if (count == 0) {
            *out_first = match;
            out_first->index = index;
            out_first->is_one_option = true;
        }
        out_first->is_one_option = out_first->is_one_option && out_first->index == index;
        if (out_names != NULL) {
            text_append_format(out_names, "%s%s", count == 0 ? "" : ", ", name);
        }
        count++;
    }
    return count;
}

static size_t find_loosely(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names) {
    size_t count = find_abbreviated(table, argument, false, out_first, out_names);
    return count > 0 ? count : find_abbreviated(table, argument, true, out_first, out_names);
}

static bool looks_like_negative_number(const char *argument) {
    const char *digit = argument[1] == '.' ? argument + 2 : argument + 1;
    return text_is_digit(*digit);
}

size_t option_match_find(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names) {
    size_t length = strlen(argument);
    if (find_exact(table, argument, length, out_first)) {
        return 1;
    }
    size_t prefix_length = strcspn(argument, "=");
    if (prefix_length < length && find_exact(table, argument, prefix_length, out_first)) {
        out_first->has_equals_sign = true;
        out_first->attached = argument + prefix_length + 1;
        return 1;
    }
    size_t count = find_loosely(table, argument, out_first, out_names);
    if (count == 0) {
        *out_first = (struct option_match){.index = table->definition_count, .name = argument};
        return 1;
    }
    return count;
}

bool option_match_is_option(const struct option_table *table, const char *argument) {
    if (argument[0] != '-' || argument[1] == '\0') {
        return false;
    }
    struct option_match match;
    size_t count = option_match_find(table, argument, &match, NULL);
    if (count > 1 || match.index < table->definition_count) {
        return true;
    }
    return !looks_like_negative_number(argument) && strchr(argument, ' ') == NULL;
}

size_t option_match_letter(const struct option_table *table, char letter, const char **out_name) {
    const char name[] = {'-', letter, '\0'};
    struct option_match match;
    if (!find_exact(table, name, 2, &match)) {
        return table->definition_count;
    }
    *out_name = match.name;
    return match.index;
}
