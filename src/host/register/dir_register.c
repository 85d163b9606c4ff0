/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `dir` of a job's register: a directory that all nodes share. Each request is a
 * blocking call (host/loop/blocking_pool.h): a file server that hangs holds up a thread, and the
 * request ends at its deadline. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/register/register_entry.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "host/register/register_engine.h"
#include "wire/register/register_entry_text.h"

/* What can be said to a user about a directory that nodes share: why it cannot be used, and whether
 * other machines can see it at all. */

struct explanation {
    int error;
    bool is_final;
    const char *advice;
};

/* A directory that is full, away or not permitted now may be fine later, but not by itself. */
static const struct explanation explanations[] = {
    {ENOENT, true, "make it first, on a file system that all nodes share"},
    {ENOTDIR, true, "--rdzv-backend dir needs a directory"},
    {ELOOP, true, "it is a circle of symbolic links"},
    {ENAMETOOLONG, true, "the path is too long"},
    {EACCES, true, "this user must be able to read and write there"},
    {EPERM, true, "this user must be able to write there, and the file system to make hard links"},
    {EOPNOTSUPP, true, "the file system must be able to make hard links"},
    {ENOSYS, true, "the file system must be able to make hard links"},
    {EMLINK, true, "the file system must be able to make hard links"},
    {EROFS, true, "it must be mounted for writing"},
    {ENOSPC, true, "the file system is full: remove something"},
    {EDQUOT, true, "your quota there is used up: remove something"},
    {EIO, false, "its disk or its server fails: the kernel's log says more"},
    {EREMOTEIO, false, "its server fails"},
    {ESTALE, false, "its server has another file system there by now: mount it again"},
    {ETIMEDOUT, false, "its server does not answer"},
    {EHOSTDOWN, false, "its server does not answer"},
    {ENOTCONN, false, "its mount has lost its server: mount it again"},
};

/* Explains the errno of a system call in that directory. `*is_final` becomes true when it will be
 * the same until the user has done something. */
static enum failure_code directory_kind_fail(
    const char *path, int error, const char *what, bool *is_final, struct failure *failure) {
    for (size_t i = 0; i < sizeof explanations / sizeof *explanations; i++) {
        if (explanations[i].error == error) {
            *is_final = explanations[i].is_final;
            return failure_set_system(failure, error,
                "the directory of --rdzv-endpoint, %s: %s (%s)", path, what,
                explanations[i].advice);
        }
    }
    *is_final = false;
    return failure_set_system(
        failure, error, "the directory of --rdzv-endpoint, %s: %s", path, what);
}

/* Appends one sentence for a user who waits for other nodes in a directory in which only this
 * machine has written. `fd` is open inside it. */
static void directory_kind_describe(int fd, const char *path, struct text *out) {
    struct statfs status;
    const char *local =
        fstatfs(fd, &status) == 0 ? file_system_local_name((long)status.f_type) : NULL;
    if (local != NULL) {
        text_append_format(out,
            "the directory of --rdzv-endpoint, %s, is on a file system of this machine alone (%s): "
            "nodes on other machines see another directory of that name",
            path, local);
    } else {
        text_append_format(out,
            "only this machine has written in the directory of --rdzv-endpoint, %s: other nodes "
            "have not come, or see another directory of that name",
            path);
    }
}

/* Directory visit. */

/* A visit to a job's own directory inside a directory that nodes share: it is made for this user
 * alone when it is missing, and opened anew for each visit. What others have put in its place is
 * refused. Blocking calls. */

/* Room for the names that are made up here. */
#define DIRECTORY_NAME_SIZE 32
/* What is being written has such a name. */
#define DIRECTORY_NEW_PREFIX "new."

struct directory_visit {
    const char *path;    /* the user's directory */
    const char *job;     /* the name of the job's inside */
    bool *is_final;      /* of a failure: it stays until the user has done something */
    struct failure *why; /* where all functions below leave their failures */
    int fd;              /* -1 before */
    uid_t owner;         /* who this process is for the server of the files; known after `make` */
};

#define PRIVATE_DIRECTORY 0700
#define PRIVATE_FILE 0600
#define NEW_LETTERS 16
#define CHUNK_SIZE ((size_t)64 << 10)

/* The failure of a system call; `what` continues "DIRECTORY: ". */
static enum failure_code directory_visit_fail(
    struct directory_visit *visit, int error, const char *what) {
    return directory_kind_fail(visit->path, error, what, visit->is_final, visit->why);
}

/* Entering. */

static enum failure_code open_job(struct directory_visit *visit, int root) {
    const char *job = visit->job;
    bool is_made = mkdirat(root, job, PRIVATE_DIRECTORY) == 0;
    if (!is_made && errno != EEXIST) {
        return directory_visit_fail(visit, errno, "cannot make a directory in it");
    }
    if (is_made && fsync(root) != 0 && errno != EINVAL) {
        return directory_visit_fail(visit, errno, "cannot make a directory in it");
    }
    visit->fd = openat(root, job, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (visit->fd >= 0) {
        return FAILURE_NONE;
    }
    if (errno == ELOOP || errno == ENOTDIR) {
        *visit->is_final = true;
        return failure_set(visit->why, FAILURE_INVALID,
            "%s/%s is not a directory of Muster's: it is a symbolic link or a file; remove it, or "
            "give the job another --rdzv-id",
            visit->path, job);
    }
    return directory_visit_fail(visit, errno, "cannot open the job's directory in it");
}

static enum failure_code directory_visit_enter(struct directory_visit *visit) {
    int root = open(visit->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return directory_visit_fail(visit, errno, "cannot open it");
    }
    enum failure_code code = open_job(visit, root);
    (void)close(root); /* nothing was written */
    return code;
}

static void directory_visit_leave(struct directory_visit *visit) {
    if (visit->fd >= 0) {
        (void)close(visit->fd); /* what was written has been synced */
    }
}

/* Files that are made. */

static int create_new(struct directory_visit *visit, char name[DIRECTORY_NAME_SIZE]) {
    char letters[NEW_LETTERS + 1];
    random_seed_name(letters, NEW_LETTERS);
    snprintf(name, DIRECTORY_NAME_SIZE, DIRECTORY_NEW_PREFIX "%s", letters);
    return openat(
        visit->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE);
}

/* Compares the owner of the directory with the owner of what this process makes there: a server may
 * know a user by another number. */
static enum failure_code recognize_owner(struct directory_visit *visit, int new_file) {
    struct stat status;
    struct stat own;
    if (fstat(new_file, &own) != 0 || fstat(visit->fd, &status) != 0) {
        return directory_visit_fail(visit, errno, "cannot look at what is in it");
    }
    visit->owner = own.st_uid;
    if (status.st_uid == own.st_uid && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
        return FAILURE_NONE;
    }
    *visit->is_final = true;
    return failure_set(visit->why, FAILURE_INVALID,
        "%s/%s cannot be used: it belongs to user %ju (mode %03o) and this is user %ju; others "
        "must "
        "not be able to write there; remove it, or give the job another --rdzv-id",
        visit->path, visit->job, (uintmax_t)status.st_uid, (unsigned)(status.st_mode & 0777),
        (uintmax_t)own.st_uid);
}

static enum failure_code write_all(
    struct directory_visit *visit, int fd, struct slice text, bool is_synced) {
    size_t written = 0;
    while (written < text.length) {
        ssize_t count = write(fd, text.data + written, text.length - written);
        if (count < 0 && errno != EINTR) {
            return directory_visit_fail(visit, errno, "cannot write in it");
        }
        written += count < 0 ? 0 : (size_t)count;
    }
    return is_synced && fsync(fd) != 0 ? directory_visit_fail(visit, errno, "cannot write in it")
                                       : FAILURE_NONE;
}

/* Makes a whole file of a new name. It is removed again on failure. Making it also has a network
 * file system look at the directory afresh. */
static enum failure_code directory_visit_make(struct directory_visit *visit, struct slice text,
    bool is_synced, char name[DIRECTORY_NAME_SIZE]) {
    int fd = create_new(visit, name);
    if (fd < 0) {
        return directory_visit_fail(visit, errno, "cannot make a file in it");
    }
    enum failure_code code = recognize_owner(visit, fd);
    if (code == FAILURE_NONE) {
        code = write_all(visit, fd, text, is_synced);
    }
    if (close(fd) != 0 && code == FAILURE_NONE) { /* where a quota is told of late */
        code = directory_visit_fail(visit, errno, "cannot write in it");
    }
    if (code != FAILURE_NONE) {
        (void)unlinkat(visit->fd, name, 0);
    }
    return code;
}

/* Looking. */

/* Calls `found` for each name. */
static enum failure_code directory_visit_list(
    struct directory_visit *visit, void (*found)(void *context, const char *name), void *context) {
    int fd = openat(visit->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (names == NULL) {
        enum failure_code code = directory_visit_fail(visit, errno, "cannot list it");
        if (fd >= 0) {
            (void)close(fd);
        }
        return code;
    }
    const struct dirent *name;
    while ((errno = 0, name = readdir(names)) != NULL) {
        found(context, name->d_name);
    }
    enum failure_code code =
        errno == 0 ? FAILURE_NONE : directory_visit_fail(visit, errno, "cannot list it");
    (void)closedir(names);
    return code;
}

/* The final failure that a file is not a register's; `why` continues "it ". */
static enum failure_code directory_visit_refuse(
    struct directory_visit *visit, const char *name, const char *why) {
    *visit->is_final = true;
    return failure_set(visit->why, FAILURE_INVALID,
        "%s/%s/%s is no file of this job's register: it %s; remove it, or give the job another "
        "--rdzv-id",
        visit->path, visit->job, name, why);
}

static enum failure_code read_file(struct directory_visit *visit, int fd, const char *name,
    size_t ceiling, struct bytes *out_bytes) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return directory_visit_fail(visit, errno, "cannot look at what is in it");
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != visit->owner) {
        return directory_visit_refuse(visit, name,
            S_ISREG(status.st_mode) ? "belongs to another user" : "is not a regular file");
    }
    uint8_t *chunk = memory_allocate(CHUNK_SIZE);
    ssize_t count;
    enum failure_code code = FAILURE_NONE;
    bytes_init(out_bytes, ceiling);
    while (code == FAILURE_NONE && (count = read(fd, chunk, CHUNK_SIZE)) != 0) {
        if (count > 0) {
            code = bytes_append(out_bytes, chunk, (size_t)count);
            code = code == FAILURE_NONE ? code : directory_visit_refuse(visit, name, "is too long");
        } else if (errno != EINTR) {
            code = directory_visit_fail(visit, errno, "cannot read in it");
        }
    }
    free(chunk);
    return code;
}

/* FAILURE_MISSING, without a message, when there is none. */
static enum failure_code directory_visit_read(
    struct directory_visit *visit, const char *name, size_t ceiling, struct bytes *out_bytes) {
    int fd = openat(visit->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bytes_clear(out_bytes);
    if (fd < 0) {
        return errno == ENOENT   ? FAILURE_MISSING
               : errno == ELOOP  ? directory_visit_refuse(visit, name, "is a symbolic link")
               : errno == EACCES ? directory_visit_refuse(visit, name, "belongs to another user")
                                 : directory_visit_fail(visit, errno, "cannot read in it");
    }
    enum failure_code code = read_file(visit, fd, name, ceiling, out_bytes);
    (void)close(fd); /* nothing was written */
    return code;
}

/* Directory. */

/* One job's register in a directory that the nodes share, as blocking calls: each opens the
 * directory anew and may hang with its disk, so they are made on threads of their own.
 * docs/succession.md says what is asked of the file system.
 *
 *     DIRECTORY/muster-RUN_ID/     mode 0700
 *         entry.000000000001       one entry each, put here whole by link(2); old ones are emptied,
 *                                  but their names stay: a number can be won only once
 *         renewal.1                of a term, replaced by rename(2)
 *         machine.NAME             each machine that has looked here
 *         new.RANDOM               what is being written */

/* How many of the last entries keep what they hold. */
#define REGISTER_DIRECTORY_KEPT_ENTRIES 8

struct register_directory {
    char *path;   /* the user's directory */
    char *job;    /* the job's directory inside */
    char *marker; /* machine.NAME */
};

/* What a call has found or done. A zeroed struct is empty. */
struct register_finding {
    struct bytes text;  /* the last entry's; empty: there is none; or a renewal */
    struct text place;  /* the path of that entry */
    struct text note;   /* may be empty */
    bool has_won;       /* append: its entry has the number. Otherwise see `text` */
    bool is_unknown;    /* append: it failed, but may take effect all the same */
    bool is_final;      /* a failure that stays until the user has done something */
    struct failure why; /* of a call that failed */
};

static void register_finding_clear(struct register_finding *finding) {
    bytes_clear(&finding->text);
    text_clear(&finding->place);
    text_clear(&finding->note);
    *finding = (struct register_finding){0};
}

static void register_directory_clear(struct register_directory *directory) {
    free(directory->path);
    free(directory->job);
    free(directory->marker);
    *directory = (struct register_directory){0};
}

#define ENTRY_PREFIX "entry."
#define ENTRY_DIGITS 12
#define RENEWAL_PREFIX "renewal."
#define MARKER_PREFIX "machine."
#define RENEWAL_MAXIMUM ((size_t)256)
/* How often the last entry is looked for, when it is an old one by the time it is read. */
#define LOOKS 8
/* How many entries one winner empties, and how old a file must be that nobody completes. */
#define EMPTIED_AT_ONCE 4
#define LEFT_BEHIND_SECONDS 86400

struct call {
    struct directory_visit visit;
    const struct register_directory *directory;
    struct register_finding *finding;
};

static struct call make_call(
    const struct register_directory *directory, struct register_finding *finding) {
    return (struct call){{.path = directory->path,
                             .job = directory->job,
                             .is_final = &finding->is_final,
                             .why = &finding->why,
                             .fd = -1},
        directory, finding};
}

/* Looking. */

static bool read_number(const char *name, const char *prefix, int64_t *out_number) {
    if (!text_starts_with(name, prefix)) {
        return false;
    }
    const char *digits = name + strlen(prefix);
    size_t length = strlen(digits);
    if (length == 0 || length > ENTRY_DIGITS || strspn(digits, "0123456789") != length) {
        return false;
    }
    *out_number = strtoll(digits, NULL, 10);
    return true;
}

static bool is_entry(const char *name, int64_t *out_number) {
    return strlen(name) == strlen(ENTRY_PREFIX) + ENTRY_DIGITS &&
           read_number(name, ENTRY_PREFIX, out_number) && *out_number > 0;
}

static void write_entry_name(int64_t number, char name[DIRECTORY_NAME_SIZE]) {
    snprintf(name, DIRECTORY_NAME_SIZE, ENTRY_PREFIX "%0*" PRId64, ENTRY_DIGITS, number);
}

struct census {
    const char *marker;
    int64_t last; /* entry; 0: there is none */
    size_t marker_count;
    bool has_own_marker;
};

static void count_name(void *context, const char *name) {
    struct census *census = context;
    int64_t number;
    if (is_entry(name, &number) && number > census->last) {
        census->last = number;
    }
    if (text_starts_with(name, MARKER_PREFIX)) {
        census->marker_count++;
        census->has_own_marker |= text_equals(name, census->marker);
    }
}

/* Reads the last entry: the one with the highest number of which the listing or the caller knows.
 * One that is emptied, or missing, is not the last any more. */
static enum failure_code read_last(struct call *call, int64_t known, struct census *census) {
    char name[DIRECTORY_NAME_SIZE];
    enum failure_code code = FAILURE_NONE;
    for (int look = 0; look < LOOKS && code == FAILURE_NONE; look++) {
        *census = (struct census){.marker = call->directory->marker};
        code = directory_visit_list(&call->visit, count_name, census);
        int64_t last = census->last > known ? census->last : known;
        if (code != FAILURE_NONE || last == 0) {
            return code;
        }
        write_entry_name(last, name);
        code = directory_visit_read(
            &call->visit, name, REGISTER_ENTRY_TEXT_MAXIMUM, &call->finding->text);
        if (code == FAILURE_NONE && call->finding->text.length > 0) {
            text_append_format(
                &call->finding->place, "%s/%s/%s", call->visit.path, call->visit.job, name);
            return FAILURE_NONE;
        }
        code = code == FAILURE_MISSING ? FAILURE_NONE : code;
    }
    return code != FAILURE_NONE ? code : directory_visit_refuse(&call->visit, name, "is empty");
}

/* Reading. */

static void leave_marker(struct call *call) {
    int fd = openat(call->visit.fd, call->directory->marker,
        O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, PRIVATE_FILE);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
}

static enum failure_code read_inside(struct call *call) {
    char name[DIRECTORY_NAME_SIZE];
    struct census census;
    enum failure_code code = directory_visit_make(&call->visit, (struct slice){0}, false, name);
    if (code != FAILURE_NONE) {
        return code;
    }
    (void)unlinkat(call->visit.fd, name, 0);
    code = read_last(call, 0, &census);
    if (code == FAILURE_NONE && !census.has_own_marker) {
        leave_marker(call);
        census.marker_count++;
    }
    if (code == FAILURE_NONE && census.marker_count == 1) {
        directory_kind_describe(call->visit.fd, call->visit.path, &call->finding->note);
    }
    return code;
}

/* Makes the job's directory when it is missing. Finds the last entry. */
static enum failure_code register_directory_read(
    const struct register_directory *directory, struct register_finding *finding) {
    struct call call = make_call(directory, finding);
    enum failure_code code = directory_visit_enter(&call.visit);
    code = code == FAILURE_NONE ? read_inside(&call) : code;
    directory_visit_leave(&call.visit);
    return code;
}

/* Appending. */

/* The file has a second name when the link was made, whatever the system call said. It is opened
 * again, because a network file system then asks its server. */
static bool has_second_name(struct call *call, const char *name) {
    struct stat status;
    int fd = openat(call->visit.fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool has = fd >= 0 && fstat(fd, &status) == 0 && status.st_nlink == 2;
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    return has;
}

/* A reply can be lost: then the server may have made the link, or may still do so. */
static bool is_certain(int error) {
    return error != EIO && error != ETIMEDOUT && error != EINTR && error != ESTALE &&
           error != ECONNRESET && error != EREMOTEIO;
}

static enum failure_code link_entry(struct call *call, const char *new_name, int64_t number) {
    char name[DIRECTORY_NAME_SIZE];
    struct census census;
    write_entry_name(number, name);
    int error = linkat(call->visit.fd, new_name, call->visit.fd, name, 0) == 0 ? 0 : errno;
    if (error != 0 && has_second_name(call, new_name)) {
        error = 0;
    }
    if (error == EEXIST) {
        return read_last(call, number, &census);
    }
    if (error == 0 && fsync(call->visit.fd) != 0 && errno != EINVAL) {
        error = errno;
        call->finding->is_unknown = true; /* others see it; a crash of the server may undo it */
    }
    if (error != 0) {
        call->finding->is_unknown |= !is_certain(error);
        return directory_visit_fail(
            &call->visit, error, "cannot put an entry of the job's register there");
    }
    call->finding->has_won = true;
    return FAILURE_NONE;
}

static enum failure_code check_predecessor(struct call *call, int64_t number) {
    char name[DIRECTORY_NAME_SIZE];
    struct stat status;
    write_entry_name(number - 1, name);
    if (number == 1 || fstatat(call->visit.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        return FAILURE_NONE;
    }
    if (errno != ENOENT) {
        return directory_visit_fail(&call->visit, errno, "cannot look at what is in it");
    }
    call->finding->is_final = true;
    return failure_set(call->visit.why, FAILURE_MISSING,
        "%s/%s/%s is gone: somebody has removed the job's register while the job runs",
        call->visit.path, call->visit.job, name);
}

static enum failure_code append_inside(struct call *call, int64_t number, struct slice text) {
    char name[DIRECTORY_NAME_SIZE];
    enum failure_code code = directory_visit_make(&call->visit, text, true, name);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = check_predecessor(call, number);
    if (code == FAILURE_NONE) {
        code = link_entry(call, name, number);
    }
    (void)unlinkat(call->visit.fd, name, 0);
    return code;
}

/* A number above 1 needs the entry before it: when that is missing, somebody has removed it. */
static enum failure_code register_directory_append(const struct register_directory *directory,
    int64_t number, struct slice text, struct register_finding *finding) {
    struct call call = make_call(directory, finding);
    enum failure_code code = directory_visit_enter(&call.visit);
    code = code == FAILURE_NONE ? append_inside(&call, number, text) : code;
    directory_visit_leave(&call.visit);
    return code;
}

/* Renewals. */

static void write_renewal_name(int64_t term, char name[DIRECTORY_NAME_SIZE]) {
    snprintf(name, DIRECTORY_NAME_SIZE, RENEWAL_PREFIX "%" PRId64, term);
}

static enum failure_code renew_inside(struct call *call, int64_t term, const char *renewal) {
    char new_name[DIRECTORY_NAME_SIZE];
    char name[DIRECTORY_NAME_SIZE];
    write_renewal_name(term, name);
    enum failure_code code =
        directory_visit_make(&call->visit, slice_from_string(renewal), false, new_name);
    if (code == FAILURE_NONE && renameat(call->visit.fd, new_name, call->visit.fd, name) != 0) {
        code = directory_visit_fail(&call->visit, errno, "cannot renew there");
        (void)unlinkat(call->visit.fd, new_name, 0);
    }
    return code;
}

static enum failure_code register_directory_renew(const struct register_directory *directory,
    int64_t term, const char *renewal, struct register_finding *finding) {
    struct call call = make_call(directory, finding);
    enum failure_code code = directory_visit_enter(&call.visit);
    code = code == FAILURE_NONE ? renew_inside(&call, term, renewal) : code;
    directory_visit_leave(&call.visit);
    return code;
}

static enum failure_code register_directory_renewal(
    const struct register_directory *directory, int64_t term, struct register_finding *finding) {
    struct call call = make_call(directory, finding);
    char name[DIRECTORY_NAME_SIZE];
    char new_name[DIRECTORY_NAME_SIZE];
    write_renewal_name(term, name);
    enum failure_code code = directory_visit_enter(&call.visit);
    if (code == FAILURE_NONE) {
        code = directory_visit_make(&call.visit, (struct slice){0}, false, new_name);
    }
    if (code == FAILURE_NONE) {
        (void)unlinkat(call.visit.fd, new_name, 0);
        code = directory_visit_read(&call.visit, name, RENEWAL_MAXIMUM, &finding->text);
        code = code == FAILURE_MISSING ? FAILURE_NONE : code;
    }
    directory_visit_leave(&call.visit);
    return code;
}

/* Tidying. */

struct tidying {
    struct call *call;
    int64_t term;
    time_t now; /* by the clock of the files' server */
};

static void empty_entry(struct call *call, int64_t number) {
    char name[DIRECTORY_NAME_SIZE];
    char new_name[DIRECTORY_NAME_SIZE];
    struct stat status;
    write_entry_name(number, name);
    if (fstatat(call->visit.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && status.st_size > 0 &&
        directory_visit_make(&call->visit, (struct slice){0}, false, new_name) == FAILURE_NONE &&
        renameat(call->visit.fd, new_name, call->visit.fd, name) != 0) {
        (void)unlinkat(call->visit.fd, new_name, 0);
    }
}

static void remove_old(void *context, const char *name) {
    struct tidying *tidying = context;
    struct stat status;
    int64_t term;
    bool is_old_term = read_number(name, RENEWAL_PREFIX, &term) && term < tidying->term - 1;
    /* Not the time of modification: while another client makes the file, a server of NFS may keep
     * another number there. */
    bool is_left = text_starts_with(name, DIRECTORY_NEW_PREFIX) &&
                   fstatat(tidying->call->visit.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                   status.st_ctime < tidying->now - LEFT_BEHIND_SECONDS;
    if (is_old_term || is_left) {
        (void)unlinkat(tidying->call->visit.fd, name, 0);
    }
}

/* After an entry was won: empties old entries, removes renewals of old terms, and files that were
 * left half-written a day ago. Failures do not matter: the next one does it again. */
static void register_directory_tidy(
    const struct register_directory *directory, int64_t number, int64_t term) {
    struct register_finding finding = {0};
    struct call call = make_call(directory, &finding);
    struct tidying tidying = {.call = &call, .term = term};
    struct stat status;
    if (directory_visit_enter(&call.visit) == FAILURE_NONE) {
        int64_t last = number - REGISTER_DIRECTORY_KEPT_ENTRIES;
        for (int64_t old = last; old > 0 && old > last - EMPTIED_AT_ONCE; old--) {
            empty_entry(&call, old);
        }
        if (fstat(call.visit.fd, &status) == 0) { /* it has just been changed */
            tidying.now = status.st_mtime;
            enum failure_code code = directory_visit_list(&call.visit, remove_old, &tidying);
            (void)code; /* what is left is for the next one */
        }
    }
    directory_visit_leave(&call.visit);
    register_finding_clear(&finding);
}

/* Values. */

static char *name_of(const char *prefix, const char *name) {
    struct text text = {0};
    text_append(&text, prefix);
    register_name_write(name, &text);
    return text_take(&text);
}

/* FAILURE_INVALID, with a message for the user, when the path is not absolute, or the run id too
 * long for a name. */
static enum failure_code register_directory_init(struct register_directory *directory,
    const char *path, const char *run_id, const char *node_name, struct failure *failure) {
    if (*path != '/') {
        return failure_set(failure, FAILURE_INVALID,
            "invalid --rdzv-endpoint '%s': --rdzv-backend dir needs the absolute path of a "
            "directory that all nodes share, as in /shared/rendezvous",
            path);
    }
    char *job = name_of("muster-", run_id);
    if (strlen(job) > NAME_MAX) {
        free(job);
        return failure_set(failure, FAILURE_INVALID,
            "invalid --rdzv-id '%s': it is too long for the name of a directory (at most %zu "
            "letters, digits, '.', '-' and '_'; others count three times)",
            run_id, NAME_MAX - strlen("muster-"));
    }
    char *marker = name_of(MARKER_PREFIX, node_name);
    if (strlen(marker) > NAME_MAX) {
        marker[NAME_MAX] = '\0';
    }
    *directory = (struct register_directory){memory_duplicate_string(path), job, marker};
    return FAILURE_NONE;
}

static void register_directory_copy(
    const struct register_directory *directory, struct register_directory *out_directory) {
    *out_directory = (struct register_directory){
        memory_duplicate_string(directory->path),
        memory_duplicate_string(directory->job),
        memory_duplicate_string(directory->marker),
    };
}

/* Dir register. */

struct dir_register {
    struct blocking_pool *pool;
    struct register_directory directory;
    uint64_t renewal_seed; /* tells the renewals of this process from those of others */
    uint64_t renewal_count;
};

/* What a thread works on; it has its own copy of everything. */
struct work {
    struct register_directory directory;
    enum register_request_kind kind;
    int64_t number;
    int64_t term;
    char *text; /* of an entry, or a renewal */
    bool is_tidying;
    /* The loop's. */
    struct dir_register *state;
    /* The result. */
    struct register_finding finding;
    enum failure_code code;
};

static enum failure_code dir_open(struct event_loop *loop, const struct register_settings *settings,
    void **out_state, struct failure *failure) {
    struct dir_register *state = memory_allocate(sizeof *state);
    state->renewal_seed = random_seed();
    enum failure_code code = register_directory_init(
        &state->directory, settings->endpoint, settings->run_id, settings->node_name, failure);
    if (code == FAILURE_NONE) {
        code = blocking_pool_new(loop, &state->pool, failure);
    }
    if (code == FAILURE_NONE) {
        blocking_pool_keep_thread(state->pool); /* a host without its register is no host */
        *out_state = state;
    } else {
        register_directory_clear(&state->directory);
        free(state);
    }
    return code;
}

static void dir_close(void *context) {
    struct dir_register *state = context;
    blocking_pool_free(state->pool);
    register_directory_clear(&state->directory);
    free(state);
}

/* The thread. */

static void work_run(void *subject) {
    struct work *work = subject;
    if (work->is_tidying) {
        register_directory_tidy(&work->directory, work->number, work->term);
        return;
    }
    switch (work->kind) {
    case REGISTER_REQUEST_READ:
        work->code = register_directory_read(&work->directory, &work->finding);
        break;
    case REGISTER_REQUEST_APPEND:
        work->code = register_directory_append(
            &work->directory, work->number, slice_from_string(work->text), &work->finding);
        break;
    case REGISTER_REQUEST_RENEW:
        work->code =
            register_directory_renew(&work->directory, work->term, work->text, &work->finding);
        break;
    case REGISTER_REQUEST_RENEWAL:
        work->code = register_directory_renewal(&work->directory, work->term, &work->finding);
        break;
    case REGISTER_REQUEST_WATCH:
        break; /* is not asked: no file system tells what other machines do there */
    }
}

static void work_free(void *subject) {
    struct work *work = subject;
    register_directory_clear(&work->directory);
    register_finding_clear(&work->finding);
    free(work->text);
    free(work);
}

/* The loop. */

static struct work *work_new(struct dir_register *state, const struct register_request *request) {
    struct work *work = memory_allocate(sizeof *work);
    register_directory_copy(&state->directory, &work->directory);
    work->state = state;
    work->kind = request->kind;
    work->number = request->number;
    work->term = request->term;
    return work;
}

static void forget_tidying(void *context, void *subject) {
    (void)context;
    (void)subject;
}

/* Nobody waits for it. */
static void send_tidying(struct dir_register *state, const struct register_request *request) {
    struct work *work = work_new(state, request);
    struct blocking_call *call;
    work->is_tidying = true;
    enum failure_code code =
        blocking_pool_send(state->pool, &(struct blocking_task){work_run, work_free, work},
            &(struct blocking_answer){forget_tidying, NULL}, &call, NULL);
    (void)code; /* the next one tidies */
}

static enum register_outcome outcome_of(const struct work *work) {
    if (work->code != FAILURE_NONE) {
        return work->finding.is_unknown ? REGISTER_OUTCOME_UNKNOWN : REGISTER_OUTCOME_FAILED;
    }
    bool has_lost = work->kind == REGISTER_REQUEST_APPEND && !work->finding.has_won;
    return has_lost ? REGISTER_OUTCOME_LOST : REGISTER_OUTCOME_DONE;
}

static void work_done(void *context, void *subject) {
    struct register_request *request = context;
    const struct work *work = subject;
    const struct register_finding *finding = &work->finding;
    bool has_note = *text_string(&finding->note) != '\0';
    const struct register_result result = {
        .outcome = outcome_of(work),
        .text = bytes_slice(&finding->text),
        .place = text_string(&finding->place),
        .note = has_note ? text_string(&finding->note) : NULL,
        .failure = &finding->why,
        .is_final = finding->is_final,
    };
    if (finding->has_won && work->code == FAILURE_NONE) {
        send_tidying(work->state, request);
    }
    request->answer(request, &result);
}

static void dir_begin(void *context, struct register_request *request) {
    struct dir_register *state = context;
    struct work *work = work_new(state, request);
    struct blocking_call *call = NULL;
    struct failure failure;
    if (request->kind == REGISTER_REQUEST_RENEW) {
        work->text = text_format(
            "%016" PRIx64 " %" PRIu64 "\n", state->renewal_seed, ++state->renewal_count);
    } else if (request->kind == REGISTER_REQUEST_APPEND) {
        work->text = memory_duplicate_string((const char *)request->text.data);
    }
    enum failure_code code =
        blocking_pool_send(state->pool, &(struct blocking_task){work_run, work_free, work},
            &(struct blocking_answer){work_done, request}, &call, &failure);
    request->work = call;
    if (code != FAILURE_NONE) {
        request->answer(request,
            &(struct register_result){
                .outcome = REGISTER_OUTCOME_FAILED, .failure = &failure, .is_final = true});
    }
}

static void dir_cancel(void *context, struct register_request *request) {
    struct dir_register *state = context;
    blocking_pool_drop(state->pool, request->work);
}

const struct register_engine dir_register_engine = {
    .name = "dir",
    .open = dir_open,
    .close = dir_close,
    .begin = dir_begin,
    .cancel = dir_cancel,
};
