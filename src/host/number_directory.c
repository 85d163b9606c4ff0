/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/number_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES_SIZE 4096

/* The number that `name` spells, or -1. */
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

/* False when the visitor wants no more. */
static bool visit_entries(
    const char *entries, long length, bool (*visit)(void *context, int number), void *context) {
    for (long offset = 0; offset < length;) {
        const struct dirent64 *entry = (const void *)(entries + offset);
        int number = parse_number(entry->d_name);
        if (number >= 0 && !visit(context, number)) {
            return false;
        }
        offset += entry->d_reclen;
    }
    return true;
}

bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    _Alignas(struct dirent64) char entries[ENTRIES_SIZE];
    long length;
    do {
        length = syscall(SYS_getdents64, fd, entries, sizeof entries);
    } while (length > 0 && visit_entries(entries, length, visit, context));
    close(fd);
    return length >= 0;
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
