/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/number_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define ENTRIES_SIZE 4096

/* The number that `name` spells; -1 when it is no number. */
static int parse_number(const char *name) {
    int number = 0;
    if (*name == '\0') {
        return -1;
    }
    for (; *name != '\0'; name++) {
        int digit = *name - '0';
        if (digit < 0 || digit > 9 || number > (INT_MAX - digit) / 10) {
            return -1;
        }
        number = number * 10 + digit;
    }
    return number;
}

struct visitor {
    const char *prefix;
    bool (*visit)(void *context, int number);
    void *context;
};

/* Returns false when the visitor wants to stop. */
static bool visit_entries(const char *entries, long length, const struct visitor *visitor) {
    for (long offset = 0; offset < length;) {
        const struct dirent64 *entry = (const void *)(entries + offset);
        int number = text_starts_with(entry->d_name, visitor->prefix)
                         ? parse_number(entry->d_name + strlen(visitor->prefix))
                         : -1;
        if (number >= 0 && !visitor->visit(visitor->context, number)) {
            return false;
        }
        offset += entry->d_reclen;
    }
    return true;
}

static bool visit_directory(const char *path, const struct visitor *visitor) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    _Alignas(struct dirent64) char entries[ENTRIES_SIZE];
    long length;
    do {
        length = syscall(SYS_getdents64, fd, entries, sizeof entries);
    } while (length > 0 && visit_entries(entries, length, visitor));
    close(fd);
    return length >= 0;
}

bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context) {
    const struct visitor visitor = {"", visit, context};
    return visit_directory(path, &visitor);
}

static bool add_number(void *context, int number) {
    struct number_list *list = context;
    if (number <= NUMBER_LIST_HIGHEST) {
        list->items =
            memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = number;
    }
    return list->count < NUMBER_LIST_CEILING;
}

static int compare_numbers(const void *left, const void *right) {
    const int *a = left;
    const int *b = right;
    return (*a > *b) - (*a < *b);
}

struct number_list number_directory_list(const char *path, const char *prefix) {
    struct number_list list = {0};
    const struct visitor visitor = {prefix, add_number, &list};
    (void)visit_directory(path, &visitor);
    if (list.count > 1) {
        qsort(list.items, list.count, sizeof *list.items, compare_numbers);
    }
    return list;
}

void number_list_clear(struct number_list *list) {
    free(list->items);
    *list = (struct number_list){0};
}

static char *append(char *end, const char *limit, const char *string) {
    while (*string != '\0' && end < limit) {
        *end++ = *string++;
    }
    return end;
}

void number_path_format(
    char path[NUMBER_PATH_SIZE], const char *before, int number, const char *after) {
    const char *limit = path + NUMBER_PATH_SIZE - 1;
    char digits[16];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    unsigned rest = number < 0 ? 0 : (unsigned)number;
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    char *end = append(path, limit, before);
    end = append(end, limit, first);
    end = append(end, limit, after);
    *end = '\0';
}
