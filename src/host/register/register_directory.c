/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/register_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/register/register_entry.h"
#include "host/register/directory_kind.h"
#include "host/register/directory_visit.h"
#include "wire/register/register_entry_text.h"

#define PRIVATE_FILE 0600
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

enum failure_code register_directory_read(
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

enum failure_code register_directory_append(const struct register_directory *directory,
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

enum failure_code register_directory_renew(const struct register_directory *directory, int64_t term,
    const char *renewal, struct register_finding *finding) {
    struct call call = make_call(directory, finding);
    enum failure_code code = directory_visit_enter(&call.visit);
    code = code == FAILURE_NONE ? renew_inside(&call, term, renewal) : code;
    directory_visit_leave(&call.visit);
    return code;
}

enum failure_code register_directory_renewal(
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

void register_directory_tidy(
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

enum failure_code register_directory_init(struct register_directory *directory, const char *path,
    const char *run_id, const char *node_name, struct failure *failure) {
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

void register_directory_copy(
    const struct register_directory *directory, struct register_directory *out_directory) {
    *out_directory = (struct register_directory){
        memory_duplicate_string(directory->path),
        memory_duplicate_string(directory->job),
        memory_duplicate_string(directory->marker),
    };
}

void register_directory_clear(struct register_directory *directory) {
    free(directory->path);
    free(directory->job);
    free(directory->marker);
    *directory = (struct register_directory){0};
}

void register_finding_clear(struct register_finding *finding) {
    bytes_clear(&finding->text);
    text_clear(&finding->place);
    text_clear(&finding->note);
    *finding = (struct register_finding){0};
}
