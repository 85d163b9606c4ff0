/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_bundle.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/python_repr.h"
#include "options/argparse/option_match.h"

static void add_flag(struct option_bundle *bundle, size_t index) {
    bundle->flags = memory_reserve(
        bundle->flags, &bundle->flag_capacity, bundle->flag_count + 1, sizeof *bundle->flags);
    bundle->flags[bundle->flag_count++] = index;
}

static void refuse_attached(struct option_bundle *bundle, const struct option_match *match) {
    bundle->mistaken = match->index;
    text_append(&bundle->mistake, "ignored explicit argument ");
    python_repr_append(&bundle->mistake, match->attached);
}

/* Moves `match` to the next letter of a bundle after a flag. False when there is no further letter,
 * or when no option has that letter. */
static bool next_letter(
    const struct option_table *table, struct option_bundle *bundle, struct option_match *match) {
    const char *rest = match->attached;
    if (rest == NULL) {
        return false;
    }
    if (match->has_equals_sign || *rest == '-') {
        refuse_attached(bundle, match);
        return false;
    }
    match->index = option_match_letter(table, *rest, &match->name);
    if (match->index == table->definition_count) {
        bundle->unknown = text_format("-%s", rest);
        return false;
    }
    rest++;
    match->has_equals_sign = *rest == '=';
    match->attached = *rest == '\0' ? NULL : rest + match->has_equals_sign;
    return true;
}

/* The value is the argument after the option, if that argument may be a value. */
static void take_following(
    struct option_bundle *bundle, size_t index, const char *argument, char letter) {
    if (letter != 'A') {
        bundle->mistaken = index;
        text_append(&bundle->mistake, "expected one argument");
        return;
    }
    bundle->valued = index;
    bundle->value = argument;
    bundle->end++;
}

static void read_matched(const struct option_table *table, const struct text_list *arguments,
    const char *pattern, struct option_match match, struct option_bundle *bundle) {
    do {
        if (option_takes_value(&table->definitions[match.index])) {
            if (match.attached == NULL) {
                size_t following = bundle->end;
                take_following(
                    bundle, match.index, arguments->items[following], pattern[following]);
            } else {
                bundle->valued = match.index;
                bundle->value = match.attached;
            }
            return;
        }
        if (match.attached != NULL && (match.name[1] == '-' || *match.attached == '\0')) {
            refuse_attached(bundle, &match);
            return;
        }
        add_flag(bundle, match.index);
    } while (next_letter(table, bundle, &match));
}

void option_bundle_read(const struct option_table *table, const struct text_list *arguments,
    const char *pattern, size_t position, bool is_to_the_letter, struct option_bundle *out_bundle) {
    const char *argument = arguments->items[position];
    *out_bundle = (struct option_bundle){.valued = table->definition_count,
        .mistaken = table->definition_count,
        .end = position + 1};
    struct option_match match;
    struct text names = {0};
    bool is_one = option_match_find(table, argument, &match, &names) == 1;
    if (!is_one && (is_to_the_letter || !match.is_one_option)) {
        text_append_format(&out_bundle->mistake, "ambiguous option: %s could match %s", argument,
            text_string(&names));
    } else if (match.index == table->definition_count) {
        out_bundle->unknown = memory_duplicate_string(argument);
    } else {
        read_matched(table, arguments, pattern, match, out_bundle);
    }
    text_clear(&names);
}

void option_bundle_clear(struct option_bundle *bundle) {
    free(bundle->flags);
    free(bundle->unknown);
    text_clear(&bundle->mistake);
    *bundle = (struct option_bundle){0};
}
