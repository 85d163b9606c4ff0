/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/positional_match.h"

#include <stdbool.h>
#include <string.h>

/* The most arguments this arity may hold at all. */
static size_t most_values(enum option_arity arity) {
    return arity == OPTION_ARITY_ONE || arity == OPTION_ARITY_OPTIONAL ? 1 : (size_t)-1;
}

static size_t fewest_values(enum option_arity arity) {
    return arity == OPTION_ARITY_ONE || arity == OPTION_ARITY_SOME ? 1 : 0;
}

/* The longest run at the start of `pattern` that holds no option and at most that many values; a
 * "--" inside costs nothing. */
static size_t longest_run(enum option_arity arity, const char *pattern, size_t *out_values) {
    if (arity == OPTION_ARITY_REMAINDER) {
        *out_values = 0;
        return strlen(pattern);
    }
    size_t length = 0;
    size_t values = 0;
    while (pattern[length] == '-' || (pattern[length] == 'A' && values < most_values(arity))) {
        values += pattern[length] == 'A';
        length++;
    }
    *out_values = values;
    return length;
}

static bool match_all(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *taken) {
    if (arity_count == 0) {
        return true;
    }
    size_t values;
    size_t length = longest_run(arities[0], pattern, &values);
    while (values >= fewest_values(arities[0])) {
        if (match_all(arities + 1, arity_count - 1, pattern + length, taken + 1)) {
            taken[0] = length;
            return true;
        }
        if (length == 0) {
            break;
        }
        length--;
        values -= pattern[length] == 'A' && values > 0;
    }
    return false;
}

size_t positional_match(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *out_taken) {
    if (arity_count > POSITIONAL_MAXIMUM_COUNT) {
        arity_count = POSITIONAL_MAXIMUM_COUNT;
    }
    for (; arity_count > 0; arity_count--) {
        if (match_all(arities, arity_count, pattern, out_taken)) {
            break;
        }
    }
    size_t end = 0;
    for (size_t i = 0; i < arity_count; i++) {
        end += out_taken[i];
    }
    if (pattern[end] == 'O') { /* those that took nothing wait for what follows the option */
        while (arity_count > 0 && out_taken[arity_count - 1] == 0) {
            arity_count--;
        }
    }
    return arity_count;
}
