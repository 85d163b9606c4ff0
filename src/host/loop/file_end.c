/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/file_end.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fewer bytes than were asked for, where the file has become shorter meanwhile. */
static enum failure_code read_from(int fd, const char *path, off_t start, size_t length,
    struct bytes *bytes, struct failure *failure) {
    enum failure_code code = bytes_reserve(bytes, length);
    if (code != FAILURE_NONE) {
        return failure_set(failure, code, "%s: there is no room for %zu bytes", path, length);
    }
    size_t done = 0;
    while (done < length) {
        ssize_t count =
            pread(fd, bytes->data + bytes->length + done, length - done, start + (off_t)done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return failure_set_system(failure, errno, "cannot read %s", path);
        }
        if (count == 0) {
            break;
        }
        done += (size_t)count;
    }
    bytes->length += done;
    return FAILURE_NONE;
}

static enum failure_code read_open_file(int fd, const char *path, size_t maximum,
    struct bytes *bytes, bool *out_is_cut, struct failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot examine %s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "%s is not a regular file", path);
    }
    bool is_cut = status.st_size > (off_t)maximum;
    off_t start = is_cut ? status.st_size - (off_t)maximum : 0;
    enum failure_code code =
        read_from(fd, path, start, (size_t)(status.st_size - start), bytes, failure);
    if (code == FAILURE_NONE) {
        *out_is_cut = is_cut;
    }
    return code;
}

enum failure_code file_end_read(const char *path, size_t maximum, struct bytes *out_bytes,
    bool *out_is_cut, struct failure *failure) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        return failure_set(failure, FAILURE_MISSING, "%s does not exist", path);
    }
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot open %s", path);
    }
    enum failure_code code = read_open_file(fd, path, maximum, out_bytes, out_is_cut, failure);
    (void)close(fd); /* nothing was written */
    return code;
}
