/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded before a program (LD_PRELOAD): a disk whose server is gone. What is written into the file
 * $HUNG_FILE never comes back; neither does an open, a mkdir, a stat of or a write
 * to a path that ends with $HUNG_PATH, once there is a file $HUNG_SINCE. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

static bool is_on_hung_disk(const char *path) {
    const char *end = getenv("HUNG_PATH");
    const char *since = getenv("HUNG_SINCE");
    size_t length = end == NULL ? 0 : strlen(end);
    return length > 0 && since != NULL && strlen(path) >= length &&
           strcmp(path + strlen(path) - length, end) == 0 && access(since, F_OK) == 0;
}

static bool is_hung(int fd) {
    const char *hung = getenv("HUNG_FILE");
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    return (hung != NULL && strcmp(path, hung) == 0) || is_on_hung_disk(path);
}

ssize_t write(int fd, const void *data, size_t length) {
    static ssize_t (*real_write)(int fd, const void *data, size_t length);
    if (real_write == NULL) {
        *(void **)&real_write = real("write");
    }
    while (is_hung(fd)) {
        pause();
    }
    return real_write(fd, data, length);
}

static void visit(const char *path) {
    while (is_on_hung_disk(path)) {
        pause();
    }
}

/* With large files, as everything here is built, the C library calls the first two open64 and
 * stat64. */
int open(const char *path, int flags, ...) {
    int (*real_open)(const char *path, int flags, ...);
    *(void **)&real_open = real("open64");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    visit(path);
    return real_open(path, flags, mode);
}

int stat(const char *restrict path, struct stat *restrict status) {
    int (*real_stat)(const char *path, struct stat *status);
    *(void **)&real_stat = real("stat64");
    visit(path);
    return real_stat(path, status);
}

int mkdir(const char *path, mode_t mode) {
    int (*real_mkdir)(const char *path, mode_t mode);
    *(void **)&real_mkdir = real("mkdir");
    visit(path);
    return real_mkdir(path, mode);
}
