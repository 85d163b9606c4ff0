/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum failure_code memory_file_new(
    const char *name, bool appends, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd == -1) {
        return failure_set_system(failure, errno, "cannot make a file in memory");
    }
    if (appends && fcntl(fd, F_SETFL, O_APPEND) == -1) {
        int system_error = errno;
        close(fd);
        return failure_set_system(failure, system_error, "cannot make a file in memory");
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

enum failure_code memory_file_write(int fd, struct slice bytes, struct failure *failure) {
    while (bytes.length > 0) {
        ssize_t written = write(fd, bytes.data, bytes.length);
        if (written > 0) {
            bytes = slice_from(bytes, (size_t)written);
        } else if (written == 0 || errno != EINTR) {
            return failure_set_system(failure, errno, "cannot write a file in memory");
        }
    }
    return FAILURE_NONE;
}

enum failure_code memory_file_of(
    const char *name, struct slice bytes, int *out_fd, struct failure *failure) {
    int fd;
    enum failure_code code = memory_file_new(name, false, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = memory_file_write(fd, bytes, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        return code;
    }
    (void)lseek(fd, 0, SEEK_SET);
    *out_fd = fd;
    return FAILURE_NONE;
}

void memory_file_read(int fd, size_t ceiling, struct bytes *out_bytes) {
    off_t at = 0;
    char part[4096];
    while ((size_t)at < ceiling) {
        size_t room = ceiling - (size_t)at;
        ssize_t length = pread(fd, part, room < sizeof part ? room : sizeof part, at);
        if (length > 0) {
            (void)!bytes_append(out_bytes, part, (size_t)length);
            at += length;
        } else if (length == 0 || errno != EINTR) {
            return;
        }
    }
}

void memory_file_look(int fd, struct wall_time *out_written, size_t *out_length) {
    struct stat status = {0};
    (void)!fstat(fd, &status);
    out_written->nanoseconds =
        (int64_t)status.st_mtim.tv_sec * NANOSECONDS_PER_SECOND + status.st_mtim.tv_nsec;
    *out_length = (size_t)status.st_size;
}
