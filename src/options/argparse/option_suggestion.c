/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_suggestion.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

/* Longer words are not compared: no option is that long. */
#define LONGEST_WORD 64
/* One in so many characters may be wrong. */
#define CHARACTERS_PER_MISTAKE 3

static size_t smallest(size_t left, size_t middle, size_t right) {
    size_t least = left < middle ? left : middle;
    return least < right ? least : right;
}

/* "-" and "_" are the same in names of options. */
static bool is_same(char left, char right) {
    return left == right || ((left == '-' || left == '_') && (right == '-' || right == '_'));
}

/* How many characters have to be changed, added or left out to get from one word to the other
 * (Levenshtein). Both words have at most LONGEST_WORD characters. */
static size_t distance_between(
    const char *word, size_t word_length, const char *name, size_t name_length) {
    size_t row[LONGEST_WORD + 1];
    for (size_t j = 0; j <= name_length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= word_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= name_length; j++) {
            size_t above = row[j];
            row[j] = smallest(
                above + 1, row[j - 1] + 1, diagonal + (is_same(word[i - 1], name[j - 1]) ? 0 : 1));
            diagonal = above;
        }
    }
    return row[name_length];
}

const char *option_suggest(const struct option_table *table, const char *argument) {
    const char *found = NULL;
    size_t length = strcspn(argument, "=");
    size_t best = length / CHARACTERS_PER_MISTAKE + 1;
    if (!text_starts_with(argument, "--") || length > LONGEST_WORD) {
        return NULL;
    }
    for (size_t i = 0; i < table->definition_count; i++) {
        for (size_t n = 0; n < OPTION_MAXIMUM_NAMES; n++) {
            const char *name = table->definitions[i].names[n];
            if (name == NULL || !text_starts_with(name, "--") || strlen(name) > LONGEST_WORD) {
                continue;
            }
            size_t distance = distance_between(argument, length, name, strlen(name));
            if (distance < best) {
                best = distance;
                found = name;
            }
        }
    }
    return found;
}
