/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/memory_limit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/whole_file.h"

#define FILE_CEILING 65536

/* Where the cgroups of a version are, and the file with their limit. */
struct hierarchy {
    const char *controllers; /* in the line of /proc/self/cgroup */
    const char *mount;
    const char *file;
};

static const struct hierarchy hierarchies[] = {
    {"", "/sys/fs/cgroup", "memory.max"},
    {"", "/sys/fs/cgroup/unified", "memory.max"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
};

/* The file as text, which the caller frees; NULL when it cannot be read. */
static char *read_text(const char *path) {
    struct bytes bytes = {0};
    char *text = NULL;
    if (whole_file_read(path, true, FILE_CEILING, &bytes, NULL) == FAILURE_NONE) {
        text = memory_allocate(bytes.length + 1);
        memcpy(text, bytes.data, bytes.length);
    }
    bytes_clear(&bytes);
    return text;
}

/* Lowers `*limit` to the number in the file. "max" and whatever else is no number mean no limit. */
static void apply_file(const char *path, uint64_t *limit) {
    char *text = read_text(path);
    char *end;
    if (text == NULL) {
        return;
    }
    unsigned long long value = strtoull(text, &end, 10);
    if (end != text && value > 0 && value < *limit) {
        *limit = value;
    }
    free(text);
}

/* The limit of the cgroup and of each one around it. In a container the path may be that of the
 * host, while the container sees its own cgroup as the root: then only the last one is there. */
static void apply_cgroup(
    const char *root, const struct hierarchy *hierarchy, char *path, uint64_t *limit) {
    for (;;) {
        char *file = text_format("%s%s%s/%s", root, hierarchy->mount, path, hierarchy->file);
        apply_file(file, limit);
        free(file);
        char *last = strrchr(path, '/');
        if (last == NULL) {
            return;
        }
        *last = '\0';
    }
}

/* A line like "4:memory:/path", "4:cpu,memory:/path" or "0::/path". */
static void apply_line(const char *root, char *line, uint64_t *limit) {
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return;
    }
    *path++ = '\0';
    char *list = text_format(",%s,", controllers + 1);
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        char *wanted = text_format(",%s,", hierarchies[i].controllers);
        if (strstr(list, wanted) != NULL) {
            char *own_path = memory_duplicate_string(path);
            apply_cgroup(root, &hierarchies[i], own_path, limit);
            free(own_path);
        }
        free(wanted);
    }
    free(list);
}

uint64_t memory_limit_read(const char *root) {
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit address_space;
    if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur < limit) {
        limit = address_space.rlim_cur;
    }
    char *file = text_format("%s/proc/self/cgroup", root);
    char *cgroups = read_text(file);
    char *rest = cgroups;
    char *line;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        apply_line(root, line, &limit);
    }
    free(cgroups);
    free(file);
    return limit;
}
