/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_remains.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/owned_tree.h"

void guardian_remains_add(
    struct guardian_remains *remains, enum guardian_remains_kind kind, const char *path) {
    remains->items = memory_reserve(
        remains->items, &remains->capacity, remains->count + 1, sizeof *remains->items);
    struct guardian_remainder item = {.kind = kind, .path = memory_duplicate_string(path)};
    if (kind == GUARDIAN_REMAINS_TREE) {
        (void)owned_tree_note(path, &item.tree); /* one that is not there is not removed later */
    }
    remains->items[remains->count++] = item;
}

void guardian_remains_clear(struct guardian_remains *remains) {
    for (size_t i = 0; i < remains->count; i++) {
        free(remains->items[i].path);
    }
    free(remains->items);
    *remains = (struct guardian_remains){0};
}

static bool is_ours(const char *path, mode_t type) {
    struct stat status;
    return lstat(path, &status) == 0 && (status.st_mode & S_IFMT) == type &&
           status.st_uid == geteuid();
}

static bool has_reader(const char *path) {
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    int error = errno;
    if (fd != -1) {
        close(fd);
    }
    return fd != -1 || error != ENXIO;
}

/* The directory of the socket is the working directory: an address has room for short paths only.
 */
static bool has_listener(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(name) >= sizeof address.sun_path) {
        return true;
    }
    strcpy(address.sun_path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = fd != -1 &&
                      connect(fd, (const struct sockaddr *)&address, sizeof address) == -1 &&
                      errno == ECONNREFUSED;
    if (fd != -1) {
        close(fd);
    }
    return !is_refused;
}

static void remove_fifo(const char *path) {
    if (is_ours(path, S_IFIFO) && !has_reader(path)) {
        unlink(path);
    }
}

static void remove_socket(const char *path) {
    const char *name = strrchr(path, '/') + 1;
    char *directory = text_format("%.*s", (int)(name - path), path);
    if (chdir(directory) == 0 && is_ours(name, S_IFSOCK) && !has_listener(name)) {
        unlink(name);
    }
    free(directory);
}

void guardian_remains_remove(const struct guardian_remains *remains) {
    for (size_t i = 0; i < remains->count; i++) {
        const struct guardian_remainder *item = &remains->items[i];
        switch (item->kind) {
        case GUARDIAN_REMAINS_FIFO:
            remove_fifo(item->path);
            break;
        case GUARDIAN_REMAINS_SOCKET:
            remove_socket(item->path);
            break;
        case GUARDIAN_REMAINS_DIRECTORY:
            (void)empty_directory_remove(item->path);
            break;
        case GUARDIAN_REMAINS_TREE:
            (void)owned_tree_remove(item->path, &item->tree, NULL);
            break;
        }
    }
}
