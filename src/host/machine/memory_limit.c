/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine/memory_limit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/files.h"

#define FILE_CEILING 65536
#define BYTES_PER_KIB 1024

/* Where the cgroups of a version are, and the files with their limit and with what they use. */
struct hierarchy {
    const char *controllers; /* in the line of /proc/self/cgroup */
    const char *mount;
    const char *file;
    const char *usage_file;
};

#define HIERARCHY_COUNT 3

static const struct hierarchy hierarchies[HIERARCHY_COUNT] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {"", "/sys/fs/cgroup/unified", "memory.max", "memory.current"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

static const struct hierarchy task_hierarchies[HIERARCHY_COUNT] = {
    {"", "/sys/fs/cgroup", "pids.max", "pids.current"},
    {"", "/sys/fs/cgroup/unified", "pids.max", "pids.current"},
    {"pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current"},
};

/* Where the cgroups are, and what is asked for. */
struct question {
    const char *root;
    bool is_of_room;  /* of what is left; else of the limit */
    bool is_of_tasks; /* of how much more is left than is in use; else of memory */
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

/* The number in the file of a cgroup. False for "max" and whatever else is no number. */
static bool read_number(const struct question *question, const struct hierarchy *hierarchy,
    const char *path, const char *name, uint64_t *out_number) {
    char *file = text_format("%s%s%s/%s", question->root, hierarchy->mount, path, name);
    char *text = read_text(file);
    char *end = text;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    bool is_number = end != text;
    if (is_number) {
        *out_number = value;
    }
    free(text);
    free(file);
    return is_number;
}

/* Lowers `*limit` to what one cgroup allows. */
static void apply_file(const struct question *question, const struct hierarchy *hierarchy,
    const char *path, uint64_t *limit) {
    uint64_t value;
    uint64_t usage = 0;
    if (!read_number(question, hierarchy, path, hierarchy->file, &value) || value == 0) {
        return;
    }
    if (question->is_of_room) {
        (void)!read_number(question, hierarchy, path, hierarchy->usage_file, &usage);
        value = value > usage ? value - usage : 0;
    }
    if (question->is_of_tasks) {
        value = value > usage ? value - usage : 0;
    }
    *limit = value < *limit ? value : *limit;
}

/* The limit of the cgroup and of each one around it. In a container the path may be that of the
 * host, while the container sees its own cgroup as the root: then only the last one is there. */
static void apply_cgroup(const struct question *question, const struct hierarchy *hierarchy,
    char *path, uint64_t *limit) {
    for (;;) {
        apply_file(question, hierarchy, path, limit);
        char *last = strrchr(path, '/');
        if (last == NULL) {
            return;
        }
        *last = '\0';
    }
}

/* A line like "4:memory:/path", "4:cpu,memory:/path" or "0::/path". */
static void apply_line(const struct question *question, char *line, uint64_t *limit) {
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return;
    }
    *path++ = '\0';
    char *list = text_format(",%s,", controllers + 1);
    const struct hierarchy *each = question->is_of_tasks ? task_hierarchies : hierarchies;
    for (int i = 0; i < HIERARCHY_COUNT; i++) {
        char *wanted = text_format(",%s,", each[i].controllers);
        if (strstr(list, wanted) != NULL) {
            char *own_path = memory_duplicate_string(path);
            apply_cgroup(question, &each[i], own_path, limit);
            free(own_path);
        }
        free(wanted);
    }
    free(list);
}

static void apply_cgroups(const struct question *question, uint64_t *limit) {
    char *file = text_format("%s/proc/self/cgroup", question->root);
    char *cgroups = read_text(file);
    char *rest = cgroups;
    char *line;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        apply_line(question, line, limit);
    }
    free(cgroups);
    free(file);
}

uint64_t memory_limit_read(const char *root) {
    const struct question question = {.root = root};
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit address_space;
    if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur < limit) {
        limit = address_space.rlim_cur;
    }
    apply_cgroups(&question, &limit);
    return limit;
}

/* "MemAvailable:   12345 kB" */
static uint64_t available_memory(const char *root) {
    static const char label[] = "\nMemAvailable:";
    char *file = text_format("%s/proc/meminfo", root);
    char *text = read_text(file);
    const char *line = text == NULL ? NULL : strstr(text, label);
    uint64_t available =
        line == NULL ? UINT64_MAX : strtoull(line + strlen(label), NULL, 10) * BYTES_PER_KIB;
    free(text);
    free(file);
    return available;
}

uint64_t memory_limit_room(const char *root) {
    const struct question question = {.root = root, .is_of_room = true};
    uint64_t room = available_memory(root);
    apply_cgroups(&question, &room);
    return room;
}

bool task_limit_is_near(const char *root) {
    const struct question question = {.root = root, .is_of_room = true, .is_of_tasks = true};
    uint64_t room = UINT64_MAX;
    apply_cgroups(&question, &room);
    return room == 0;
}
