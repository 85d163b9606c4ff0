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
static char plain(char character) {
    char lower = character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
    return lower == '-' ? '_' : lower;
}

static bool is_same(char left, char right) {
    return plain(left) == plain(right);
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

bool option_suggestion_is_better(
    const char *word, size_t length, const char *candidate, size_t *best) {
    size_t bound = *best > 0 ? *best : length / CHARACTERS_PER_MISTAKE + 1;
    size_t candidate_length = strlen(candidate);
    if (length > LONGEST_WORD || candidate_length > LONGEST_WORD) {
        return false;
    }
    size_t distance = distance_between(word, length, candidate, candidate_length);
    if (distance >= bound) {
        return false;
    }
    *best = distance > 0 ? distance : 1;
    return true;
}

/* "-np", "-np=4", "-n4". */
static const char *of_other_launchers(const struct option_table *table, const char *argument) {
    for (const struct option_stranger *stranger = table->strangers;
         stranger != NULL && stranger->word != NULL; stranger++) {
        size_t length = strlen(stranger->word);
        char next = argument[strncmp(argument, stranger->word, length) == 0 ? length : 0];
        if (next == '=' || (argument[0] == '-' && argument[1] != '-' && text_is_digit(next)) ||
            text_equals(argument, stranger->word)) {
            return stranger->name;
        }
    }
    return NULL;
}

const char *option_suggest(const struct option_table *table, const char *argument) {
    const char *found = of_other_launchers(table, argument);
    size_t length = strcspn(argument, "=");
    size_t best = 0;
    if (found != NULL || !text_starts_with(argument, "--")) {
        return found;
    }
    for (size_t i = 0; i < table->definition_count; i++) {
        for (size_t n = 0; n < OPTION_MAXIMUM_NAMES; n++) {
            const char *name = table->definitions[i].names[n];
            if (name != NULL && text_starts_with(name, "--") &&
                option_suggestion_is_better(argument, length, name, &best)) {
                found = name;
            }
        }
    }
    return found;
}
