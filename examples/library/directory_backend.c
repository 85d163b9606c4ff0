/* SPDX-License-Identifier: BSD-3-Clause */
/* The record is the file "record": a version of 8 bytes, which is the token, and the state. It is
 * replaced whole, so readers need no lock, and by whoever has the lock, so that nobody else writes
 * between a look at the version and the next one. The kernel gives back the lock of a process that
 * was killed. */
#define _GNU_SOURCE
#include "directory_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static enum muster_error explain(struct muster_failure *failure, const char *what) {
    snprintf(failure->message, sizeof failure->message, "%s: %s", what, strerror(errno));
    return MUSTER_ERROR_SYSTEM;
}

static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written <= 0) {
            return -1;
        }
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static int read_all(int fd, char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = read(fd, bytes, length);
        if (count <= 0) {
            return -1;
        }
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}

static enum muster_error read_file(
    struct directory *directory, int fd, struct muster_failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return explain(failure, "record");
    }
    if (status.st_size < (off_t)sizeof directory->version ||
        status.st_size > MUSTER_RENDEZVOUS_STATE_MAXIMUM) {
        snprintf(failure->message, sizeof failure->message, "record: it has %lld bytes",
            (long long)status.st_size);
        return MUSTER_ERROR_PROTOCOL;
    }
    char *file = realloc(directory->file, (size_t)status.st_size);
    if (file == NULL) {
        return explain(failure, "record");
    }
    directory->file = file;
    directory->length = (size_t)status.st_size;
    if (read_all(fd, file, directory->length) != 0) {
        return explain(failure, "record");
    }
    memcpy(&directory->version, file, sizeof directory->version);
    return MUSTER_OK;
}

static enum muster_error get_state(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    struct directory *directory = context;
    int fd = open("record", O_RDONLY | O_CLOEXEC);
    directory->version = 0;
    if (fd < 0) {
        return errno == ENOENT ? MUSTER_OK : explain(failure, "record");
    }
    enum muster_error error = read_file(directory, fd, failure);
    close(fd);
    if (error == MUSTER_OK) {
        record->exists = 1;
        record->state = directory->file + sizeof directory->version;
        record->state_length = directory->length - sizeof directory->version;
        record->token = &directory->version;
        record->token_length = sizeof directory->version;
    }
    return error;
}

/* With the lock. */
static int replace(uint64_t version, const void *state, size_t length) {
    int fd = open("record.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    int result = write_all(fd, (const char *)&version, sizeof version);
    if (result == 0) {
        result = write_all(fd, state, length);
    }
    close(fd);
    return result == 0 ? rename("record.new", "record") : result;
}

static enum muster_error set_with_lock(struct directory *directory, const void *state,
    size_t length, uint64_t expected, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    enum muster_error error = get_state(directory, record, failure);
    if (error != MUSTER_OK || directory->version != expected) {
        return error; /* another node was first: `record` has what it has set */
    }
    if (replace(expected + 1, state, length) != 0) {
        return explain(failure, "record.new");
    }
    error = get_state(directory, record, failure);
    record->is_set = error == MUSTER_OK;
    return error;
}

static enum muster_error set_state(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    uint64_t expected = 0; /* there is no record */
    if (token_length == sizeof expected) {
        memcpy(&expected, token, sizeof expected);
    }
    int lock = open("record.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) {
        enum muster_error error = explain(failure, "record.lock");
        if (lock >= 0) {
            close(lock);
        }
        return error;
    }
    enum muster_error error = set_with_lock(context, state, length, expected, record, failure);
    close(lock);
    return error;
}

/* What has changed is of no interest: the rendezvous looks at the record. */
static void drain(void *context) {
    const struct directory *directory = context;
    char events[4096];
    while (read(directory->watch_fd, events, sizeof events) > 0) {
    }
}

int directory_open(struct directory *directory, struct muster_rendezvous_backend *out_backend) {
    *directory = (struct directory){.watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    *out_backend = (struct muster_rendezvous_backend)MUSTER_RENDEZVOUS_BACKEND;
    out_backend->name = "directory";
    out_backend->get_state = get_state;
    out_backend->set_state = set_state;
    out_backend->context = directory;
    out_backend->has_watch = 1;
    out_backend->watch_fd = directory->watch_fd;
    out_backend->changed = drain;
    return directory->watch_fd >= 0 &&
           inotify_add_watch(directory->watch_fd, ".", IN_MOVED_TO) >= 0;
}

void directory_close(struct directory *directory) {
    free(directory->file);
    if (directory->watch_fd >= 0) {
        close(directory->watch_fd);
    }
}
