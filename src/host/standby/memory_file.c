/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* `fd` is the new file, or -1. Closes it when it is not well. errno is that of the last call. */
static enum failure_code finish(bool is_well, int fd, int *out_fd, struct failure *failure) {
    int system_error = errno;
    if (is_well) {
        *out_fd = fd;
        return FAILURE_NONE;
    }
    if (fd != -1) {
        close(fd);
    }
    return failure_set_system(failure, system_error, "cannot make a file in memory");
}

enum failure_code memory_file_new(
    const char *name, bool appends, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    bool is_well = fd != -1 && (!appends || fcntl(fd, F_SETFL, O_APPEND) != -1);
    return finish(is_well, fd, out_fd, failure);
}

enum failure_code memory_file_with_head(
    const char *name, size_t head, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool is_well = fd != -1 && ftruncate(fd, (off_t)head) == 0 &&
                   fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0 &&
                   fcntl(fd, F_SETFL, O_APPEND) != -1;
    return finish(is_well, fd, out_fd, failure);
}

enum failure_code memory_file_write(int fd, struct slice bytes, struct failure *failure) {
    while (bytes.length > 0) {
        ssize_t written = write(fd, bytes.data, bytes.length);
        if (written > 0) {
            bytes = slice_from(bytes, (size_t)written);
        } else if (written == 0 || errno != EINTR) {
            return failure_set_system(
                failure, written == 0 ? EIO : errno, "cannot write a file in memory");
        }
    }
    return FAILURE_NONE;
}

enum failure_code memory_file_of(
    const char *name, struct slice bytes, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    enum failure_code code = finish(fd != -1, fd, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = memory_file_write(fd, bytes, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        return code;
    }
    (void)lseek(fd, 0, SEEK_SET);
    (void)!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    *out_fd = fd;
    return FAILURE_NONE;
}

void memory_file_read(int fd, size_t start, size_t ceiling, struct bytes *out_bytes) {
    size_t done = 0;
    char part[4096];
    while (done < ceiling) {
        size_t room = ceiling - done;
        ssize_t length =
            pread(fd, part, room < sizeof part ? room : sizeof part, (off_t)(start + done));
        if (length > 0) {
            (void)!bytes_append(out_bytes, part, (size_t)length);
            done += (size_t)length;
        } else if (length == 0 || errno != EINTR) {
            return;
        }
    }
}

void memory_file_forget(int fd, size_t start, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    start = (start + page - 1) / page * page;
    end = end / page * page;
    if (start < end) {
        (void)!fallocate(
            fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)(end - start));
    }
}

size_t memory_file_length(int fd) {
    struct stat status = {0};
    (void)!fstat(fd, &status);
    return (size_t)status.st_size;
}
