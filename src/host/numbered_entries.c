/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/numbered_entries.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define DIGITS_MAXIMUM 6

/* -1 for a name of another kind. */
static int number_of(const char *name, const char *prefix) {
    if (!text_starts_with(name, prefix)) {
        return -1;
    }
    const char *digits = name + strlen(prefix);
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > DIGITS_MAXIMUM || digits[length] != '\0') {
        return -1;
    }
    return (int)strtol(digits, NULL, 10);
}

static int compare_numbers(const void *left, const void *right) {
    const int *a = left;
    const int *b = right;
    return (*a > *b) - (*a < *b);
}

struct numbered_entries numbered_entries_list(const char *path, const char *prefix) {
    struct numbered_entries entries = {0};
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return entries;
    }
    size_t capacity = 0;
    struct dirent *entry;
    while (entries.count < NUMBERED_ENTRIES_CEILING && (entry = readdir(directory)) != NULL) {
        int number = number_of(entry->d_name, prefix);
        if (number >= 0) {
            entries.numbers = memory_reserve(
                entries.numbers, &capacity, entries.count + 1, sizeof *entries.numbers);
            entries.numbers[entries.count++] = number;
        }
    }
    (void)closedir(directory); /* nothing was written */
    if (entries.count > 1) {
        qsort(entries.numbers, entries.count, sizeof *entries.numbers, compare_numbers);
    }
    return entries;
}

void numbered_entries_clear(struct numbered_entries *entries) {
    free(entries->numbers);
    *entries = (struct numbered_entries){0};
}
