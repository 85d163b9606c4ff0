/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded before a program (LD_PRELOAD): what it writes into the file $HUNG_FILE never comes back,
 * as on a network disk whose server is gone. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_hung(int fd) {
    const char *hung = getenv("HUNG_FILE");
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    return hung != NULL && length == (ssize_t)strlen(hung) &&
           memcmp(path, hung, (size_t)length) == 0;
}

ssize_t write(int fd, const void *data, size_t length) {
    static ssize_t (*real_write)(int fd, const void *data, size_t length);
    if (real_write == NULL) {
        *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    }
    while (is_hung(fd)) {
        pause();
    }
    return real_write(fd, data, length);
}
