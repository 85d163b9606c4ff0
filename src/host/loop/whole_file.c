/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

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

static enum failure_code file_end_read_open_file(int fd, const char *path, size_t maximum,
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
    enum failure_code code =
        file_end_read_open_file(fd, path, maximum, out_bytes, out_is_cut, failure);
    (void)close(fd); /* nothing was written */
    return code;
}

/* Whole file. */

#define CHUNK_SIZE ((size_t)4096)
#define INTEGER_FILE_CEILING ((size_t)64)

static enum failure_code fail_to_open(
    const char *path, int error, bool follows_symlink, struct failure *failure) {
    if (error == ENOENT) {
        return failure_set(failure, FAILURE_MISSING, "%s does not exist", path);
    }
    if (error == ELOOP && !follows_symlink) {
        return failure_set(failure, FAILURE_INVALID, "%s is a symbolic link", path);
    }
    if (error == ENXIO) { /* the path is a socket; FIFOs can be opened */
        return failure_set(failure, FAILURE_INVALID, "%s is not a regular file", path);
    }
    return failure_set_system(failure, error, "cannot open %s", path);
}

static enum failure_code examine(
    int fd, const char *path, intmax_t *out_size, struct failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot examine %s", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "%s is not a regular file", path);
    }
    *out_size = status.st_size;
    return FAILURE_NONE;
}

/* Reads until the end of the file, whatever size the file reports: the kernel's text files report 0
 * or 4096, and a file may grow meanwhile. */
static enum failure_code read_rest(
    int fd, const char *path, size_t ceiling, struct bytes *bytes, struct failure *failure) {
    for (;;) {
        uint8_t chunk[CHUNK_SIZE];
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return failure_set_system(failure, errno, "cannot read %s", path);
        }
        if (count == 0) {
            return FAILURE_NONE;
        }
        if (bytes->length + (size_t)count > ceiling) {
            return FAILURE_LIMIT;
        }
        enum failure_code code = bytes_append(bytes, chunk, (size_t)count);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
}

static enum failure_code read_open_file(
    int fd, const char *path, size_t ceiling, struct bytes *bytes, struct failure *failure) {
    intmax_t size = 0;
    enum failure_code code = examine(fd, path, &size, failure);
    if (code == FAILURE_NONE) {
        code = read_rest(fd, path, ceiling, bytes, failure);
    }
    if (code == FAILURE_LIMIT && size > 0 && (uintmax_t)size > ceiling) {
        return failure_set(failure, FAILURE_LIMIT, "%s has %jd bytes, more than the %zu allowed",
            path, size, ceiling);
    }
    if (code == FAILURE_LIMIT) {
        return failure_set(
            failure, FAILURE_LIMIT, "%s has more than the %zu bytes allowed", path, ceiling);
    }
    return code;
}

enum failure_code whole_file_read(const char *path, bool follows_symlink, size_t ceiling,
    struct bytes *out_bytes, struct failure *failure) {
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follows_symlink ? 0 : O_NOFOLLOW);
    int fd = open(path, flags);
    if (fd < 0) {
        return fail_to_open(path, errno, follows_symlink, failure);
    }
    struct bytes bytes = {0};
    enum failure_code code = read_open_file(fd, path, ceiling, &bytes, failure);
    (void)close(fd); /* nothing was written */
    if (code == FAILURE_NONE && bytes_append(out_bytes, bytes.data, bytes.length) != FAILURE_NONE) {
        code = failure_set(failure, FAILURE_LIMIT, "%s has %zu bytes, more than there is room for",
            path, bytes.length);
    }
    bytes_clear(&bytes);
    return code;
}

enum failure_code whole_file_read_integer(
    const char *path, int *out_value, struct failure *failure) {
    struct bytes bytes = {0};
    enum failure_code code = whole_file_read(path, true, INTEGER_FILE_CEILING, &bytes, failure);
    if (code == FAILURE_NONE) {
        struct text text = {0};
        text_append_bytes(&text, (const char *)bytes.data, bytes.length);
        int64_t value;
        if (text_parse_integer(text_string(&text), &value) != FAILURE_NONE || value < INT_MIN ||
            value > INT_MAX) {
            code = failure_set(failure, FAILURE_MALFORMED, "%s holds no integer", path);
        } else {
            *out_value = (int)value;
        }
        text_clear(&text);
    }
    bytes_clear(&bytes);
    return code;
}
