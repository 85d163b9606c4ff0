/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/file_store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/store/file_store_codec.h"

#define FILE_MODE 0644 /* as PyTorch */
#define CHUNK_SIZE ((size_t)64 << 10)
/* What is kept of a chunk takes no more than so many times its length. */
#define CHUNK_FACTOR 4
/* The most bytes that one visit reads before the loop runs again; they take some milliseconds. */
#define VISIT_SIZE ((size_t)8 << 20)
/* The most memory that each buffer keeps after a visit. */
#define KEPT_SIZE ((size_t)1 << 20)

void file_store_file_init(struct file_store_file *file, const char *path) {
    *file = (struct file_store_file){.fd = -1};
    file->limits = FILE_STORE_LIMITS_DEFAULT;
    file->path = memory_duplicate_string(path);
    file->contents = file_store_contents_new(&file->limits);
}

void file_store_file_clear(struct file_store_file *file) {
    file_store_file_leave(file);
    file_store_contents_free(file->contents);
    bytes_clear(&file->unread);
    bytes_clear(&file->output);
    free(file->path);
    *file = (struct file_store_file){.fd = -1};
}

/* Opens without blocking, even when the path is a FIFO or a device. */
static int open_path(const char *path, enum file_store_visit visit) {
    const int flags[] = {
        [FILE_STORE_READ] = O_RDONLY,
        [FILE_STORE_WRITE] = O_RDWR,
        [FILE_STORE_CREATE] = O_RDWR | O_CREAT,
    };
    return open(path, flags[visit] | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, FILE_MODE);
}

static bool is_same_file(const struct file_store_file *file, const struct stat *status) {
    return status->st_dev == file->device && status->st_ino == file->inode &&
           (uint64_t)status->st_size >= file->position;
}

/* Records the identity of the file, or checks that it is still the same file. */
static enum failure_code recognize(struct file_store_file *file, struct failure *failure) {
    struct stat status;
    if (fstat(file->fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot look at the FileStore %s", file->path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID,
            "the FileStore %s cannot be used: it is no regular file", file->path);
    }
    if (file->is_known && !is_same_file(file, &status)) {
        return failure_set(failure, FAILURE_MISSING,
            "the FileStore %s was replaced or cut short while it was in use", file->path);
    }
    file->is_known = true;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return FAILURE_NONE;
}

static enum failure_code open_visit(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    file->fd = open_path(file->path, visit);
    if (file->fd >= 0) {
        return recognize(file, failure);
    }
    if (errno == ENOENT && file->is_known) {
        return failure_set(failure, FAILURE_MISSING,
            "the FileStore %s was removed while it was in use", file->path);
    }
    return failure_set_system(failure, errno, "cannot open the FileStore %s", file->path);
}

static enum failure_code lock(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    int operation = visit == FILE_STORE_READ ? LOCK_SH : LOCK_EX;
    while (flock(file->fd, operation | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return failure_set(failure, FAILURE_INCOMPLETE,
                "another process keeps the FileStore %s locked", file->path);
        }
        if (errno != EINTR) {
            return failure_set_system(failure, errno, "cannot lock the FileStore %s", file->path);
        }
    }
    return FAILURE_NONE;
}

static enum failure_code describe_contents_failure(
    const struct file_store_file *file, enum failure_code code, struct failure *failure) {
    if (code == FAILURE_LIMIT) {
        return failure_set(
            failure, code, "the FileStore %s holds more than can be kept in memory", file->path);
    }
    return failure_set(failure, code,
        "%s is no FileStore: there is no valid record at byte %" PRIu64, file->path,
        file->position);
}

/* Takes every complete record out of the bytes that were read. */
static enum failure_code take_records(struct file_store_file *file, struct failure *failure) {
    struct slice rest = bytes_slice(&file->unread);
    enum failure_code code = FAILURE_NONE;
    while (rest.length > 0) {
        struct file_store_record record;
        size_t consumed;
        code = file_store_record_read(rest, &file->limits, &record, &consumed);
        if (code == FAILURE_NONE) {
            code = file_store_contents_take(file->contents, &record);
        }
        if (code != FAILURE_NONE) {
            break;
        }
        file->position += consumed;
        rest.data += consumed;
        rest.length -= consumed;
    }
    if (code != FAILURE_NONE && code != FAILURE_INCOMPLETE) {
        return describe_contents_failure(file, code, failure);
    }
    bytes_consume(&file->unread, file->unread.length - rest.length);
    return FAILURE_NONE;
}

/* Reads the next chunk; `out_length` is 0 at the end of the file. */
static enum failure_code read_chunk(
    struct file_store_file *file, size_t *out_length, struct failure *failure) {
    struct bytes *unread = &file->unread;
    if (!spare_memory_is_enough_for(unread->length + CHUNK_SIZE, CHUNK_FACTOR)) {
        return failure_set_system(
            failure, ENOMEM, "there is no memory for the FileStore %s", file->path);
    }
    (void)!bytes_reserve(unread, CHUNK_SIZE); /* no ceiling: the longest record needs one chunk */
    ssize_t length;
    do {
        length = pread(file->fd, unread->data + unread->length, CHUNK_SIZE,
            (off_t)(file->position + unread->length));
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        return failure_set_system(failure, errno, "cannot read the FileStore %s", file->path);
    }
    unread->length += (size_t)length;
    *out_length = (size_t)length;
    return FAILURE_NONE;
}

static enum failure_code catch_up(struct file_store_file *file, struct failure *failure) {
    uint64_t start = file->position;
    size_t length = 0;
    file->unread.length = 0; /* the half record of the last visit may have been removed since */
    do {
        enum failure_code code = read_chunk(file, &length, failure);
        if (code == FAILURE_NONE) {
            code = take_records(file, failure);
        }
        if (code != FAILURE_NONE) {
            return code;
        }
        if (length > 0 && file->position - start >= VISIT_SIZE) {
            file->has_more = true;
            return failure_set(failure, FAILURE_INCOMPLETE,
                "the FileStore %s is long and was not yet read", file->path);
        }
    } while (length > 0);
    return FAILURE_NONE;
}

/* Nothing may be written after half a record, because it would become a part of that record. */
static enum failure_code check_end(const struct file_store_file *file, struct failure *failure) {
    if (file->unread.length == 0) {
        return FAILURE_NONE;
    }
    return failure_set(failure, FAILURE_INCOMPLETE,
        "the FileStore %s ends in the middle of a record, at byte %" PRIu64
        ": its writer was killed or the disk is full",
        file->path, file->position);
}

enum failure_code file_store_file_enter(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure) {
    file->has_more = false;
    enum failure_code code = open_visit(file, visit, failure);
    if (code == FAILURE_NONE) {
        code = lock(file, visit, failure);
    }
    if (code == FAILURE_NONE) {
        code = catch_up(file, failure);
    }
    if (code == FAILURE_NONE && visit != FILE_STORE_READ) {
        code = check_end(file, failure);
    }
    if (code != FAILURE_NONE) {
        file_store_file_leave(file);
    }
    return code;
}

/* Writes everything or nothing. If the disk is full, the file is truncated again before another
 * process can read it. */
static enum failure_code write_output(struct file_store_file *file, struct failure *failure) {
    size_t done = 0;
    while (done < file->output.length) {
        ssize_t length = pwrite(file->fd, file->output.data + done, file->output.length - done,
            (off_t)(file->position + done));
        if (length >= 0) {
            done += (size_t)length;
        } else if (errno != EINTR) {
            int error = errno;
            bool is_restored = done == 0 || ftruncate(file->fd, (off_t)file->position) == 0;
            return failure_set_system(failure, error, "cannot write the FileStore %s%s", file->path,
                is_restored ? "" : ", which now ends in the middle of a record");
        }
    }
    file->position += done;
    return FAILURE_NONE;
}

enum failure_code file_store_file_append(struct file_store_file *file,
    const struct file_store_record *records, size_t count, struct failure *failure) {
    file->output.length = 0;
    for (size_t i = 0; i < count; i++) {
        enum failure_code code = file_store_record_append(&records[i], &file->output);
        if (code != FAILURE_NONE) {
            return failure_set(
                failure, code, "a key of the FileStore %s cannot begin with '-'", file->path);
        }
    }
    enum failure_code code = write_output(file, failure);
    for (size_t i = 0; i < count && code == FAILURE_NONE; i++) {
        code = file_store_contents_take(file->contents, &records[i]);
        if (code != FAILURE_NONE) {
            return describe_contents_failure(file, code, failure);
        }
    }
    return code;
}

/* Frees a buffer that grew large for a long record. */
static void give_back_room(struct bytes *bytes) {
    if (bytes->capacity > KEPT_SIZE) {
        bytes_clear(bytes);
    }
}

void file_store_file_leave(struct file_store_file *file) {
    if (file->fd >= 0) {
        /* Unlock before closing: closing wakes the processes that watch the file, and they lock it
         * at once. */
        (void)flock(file->fd, LOCK_UN);
        close(file->fd);
        file->fd = -1;
    }
    give_back_room(&file->unread);
    give_back_room(&file->output);
}

bool file_store_file_has_news(const struct file_store_file *file) {
    struct stat status;
    int fd = open_path(file->path, FILE_STORE_READ);
    bool is_unchanged = fd >= 0 && fstat(fd, &status) == 0 && is_same_file(file, &status) &&
                        (uint64_t)status.st_size == file->position;
    if (fd >= 0) {
        close(fd);
    }
    return !is_unchanged;
}
