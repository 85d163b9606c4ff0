/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/telling/job_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"

#define PREFIX "job-"
#define RANDOM_LENGTH 8
#define NAME_TRIES 100
#define NAMES_MAXIMUM 65536 /* that are looked at by who wants all jobs */
#define SWEPT_MAXIMUM 32    /* that are looked at by who posts: it does so in each round */
#define PRIVATE_DIRECTORY_MODE 0700
#define PRIVATE_FILE_MODE 0600
#define OTHERS_MODE 077

/* Places. */

static void add_place(struct text_list *places, char *path_taken) {
    for (size_t i = 0; i < places->count; i++) {
        if (text_equals(places->items[i], path_taken)) {
            free(path_taken);
            return;
        }
    }
    text_list_add_taken(places, path_taken);
}

void job_directory_places(const struct text_list *environment, struct text_list *out_places) {
    const char *own = text_list_variable(environment, "MUSTER_RUNTIME_DIR");
    const char *runtime = text_list_variable(environment, "XDG_RUNTIME_DIR");
    if (own != NULL && *own == '/') {
        text_list_add(out_places, own);
        return;
    }
    if (runtime != NULL && *runtime == '/') {
        add_place(out_places, text_format("%s/muster", runtime));
    }
    add_place(out_places, text_format("/run/user/%u/muster", (unsigned)geteuid()));
    add_place(out_places, text_format("/tmp/muster-%u", (unsigned)geteuid()));
}

/* What makes a directory one that nobody else can have put files into. */
static enum failure_code check_place(int fd, const char *path, struct failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot examine %s", path);
    }
    if (status.st_uid != geteuid()) {
        return failure_set(
            failure, FAILURE_INVALID, "%s belongs to user %u", path, (unsigned)status.st_uid);
    }
    if ((status.st_mode & OTHERS_MODE) != 0) {
        return failure_set(failure, FAILURE_INVALID,
            "%s is open to other users (mode %04o; chmod 700 makes it yours)", path,
            (unsigned)status.st_mode & 07777);
    }
    return FAILURE_NONE;
}

/* FAILURE_MISSING when there is none, FAILURE_INVALID when it is not to be trusted. */
static enum failure_code open_place(const char *path, int *out_fd, struct failure *failure) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -1 && errno == ENOENT) {
        return failure_set(failure, FAILURE_MISSING, "%s does not exist", path);
    }
    if (fd == -1 && (errno == ELOOP || errno == ENOTDIR)) {
        return failure_set(
            failure, FAILURE_INVALID, "%s is no directory, or a symbolic link", path);
    }
    if (fd == -1) {
        return failure_set_system(failure, errno, "cannot open %s", path);
    }
    enum failure_code code = check_place(fd, path, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        return code;
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

static enum failure_code make_place(const char *path, int *out_fd, struct failure *failure) {
    if (mkdir(path, PRIVATE_DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return failure_set_system(failure, errno, "cannot make %s", path);
    }
    return open_place(path, out_fd, failure);
}

/* One announcement. */

static bool is_linked(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

/* Returns 0 or an errno. Whoever looks may be faster than the lock: then another name is taken. */
static int make_file(int place, char name[sizeof PREFIX + RANDOM_LENGTH], int *out_fd) {
    int error = EEXIST;
    for (int i = 0; i < NAME_TRIES; i++) {
        memcpy(name, PREFIX, sizeof PREFIX);
        random_seed_name(name + sizeof PREFIX - 1, RANDOM_LENGTH);
        int fd = openat(
            place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE_MODE);
        if (fd == -1 && errno != EEXIST) {
            return errno;
        }
        if (fd == -1) {
            continue;
        }
        error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (error == 0 && is_linked(fd)) {
            *out_fd = fd;
            return 0;
        }
        (void)unlinkat(place, name, 0);
        close(fd);
        if (error != 0 && error != EWOULDBLOCK) {
            return error;
        }
    }
    return error != 0 ? error : EEXIST;
}

static int write_file(int fd, const char *text) {
    size_t left = strlen(text);
    while (left > 0) { /* what is cut short says why when the rest is written */
        ssize_t count = write(fd, text, left);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return count == 0 ? EIO : errno;
        }
        text += count > 0 ? count : 0;
        left -= count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* True: there is nobody behind it, and it is gone, or will be. */
static bool remove_if_stale(int place, const char *name, int fd) {
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
        return false;
    }
    (void)unlinkat(place, name, 0);
    char *socket = text_format("ask-%s", name + sizeof PREFIX - 1);
    (void)unlinkat(place, socket, 0);
    free(socket);
    return true;
}

/* False: there is no agent behind it that says what it should. */
static bool read_file(int fd, struct job_announcement *out_announcement) {
    uint8_t buffer[JOB_ANNOUNCEMENT_MAXIMUM + 1];
    ssize_t count = read(fd, buffer, sizeof buffer);
    return count > 0 && job_announcement_read((struct slice){buffer, (size_t)count},
                            out_announcement) == FAILURE_NONE;
}

static bool is_own_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

/* Its descriptor; -1: there is no agent behind it. */
static int open_live_file(int place, const char *name) {
    int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd != -1 && (!is_own_file(fd) || remove_if_stale(place, name, fd))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* All of them. */

static bool is_same_job(const struct job_announcement *left, const struct job_announcement *right) {
    return left->port == right->port && text_equals(left->run_id, right->run_id) &&
           text_equals(left->host, right->host);
}

static bool is_same_agent(
    const struct job_announcement *left, const struct job_announcement *right) {
    return text_equals(left->facts[JOB_FACT_SOCKET], right->facts[JOB_FACT_SOCKET]);
}

/* Takes the announcement. */
static void add_job(struct job_list *jobs, struct job_announcement *announcement,
    bool (*is_same)(const struct job_announcement *left, const struct job_announcement *right)) {
    bool is_known = jobs->count >= JOB_DIRECTORY_MAXIMUM_JOBS;
    for (size_t i = 0; i < jobs->count && !is_known; i++) {
        is_known = is_same(&jobs->items[i], announcement);
    }
    if (is_known) {
        job_announcement_clear(announcement);
        return;
    }
    jobs->items =
        memory_reserve(jobs->items, &jobs->capacity, jobs->count + 1, sizeof *jobs->items);
    jobs->items[jobs->count++] = *announcement;
}

/* False: there is no further one. */
static bool next_name(DIR *directory, const char **out_name) {
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (text_starts_with(entry->d_name, PREFIX)) {
            *out_name = entry->d_name;
            return true;
        }
    }
    return false;
}

/* Calls for each file that an agent is behind, of the first so many; the others are removed. */
static void visit_place(int place, int limit, void (*visit)(void *context, int fd), void *context) {
    int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd == -1 ? NULL : fdopendir(fd);
    if (directory == NULL) {
        if (fd != -1) {
            close(fd);
        }
        return;
    }
    const char *name;
    for (int i = 0; i < limit && next_name(directory, &name); i++) {
        int file = open_live_file(place, name);
        if (file != -1) {
            visit(context, file);
            close(file);
        }
    }
    closedir(directory);
}

static void pass_by(void *context, int fd) {
    (void)context;
    (void)fd;
}

static void read_job(void *context, int fd) {
    struct job_announcement announcement;
    if (read_file(fd, &announcement)) {
        if (announcement.host != NULL) {
            add_job(context, &announcement, is_same_job);
        } else {
            job_announcement_clear(&announcement);
        }
    }
}

static void read_agent(void *context, int fd) {
    struct job_announcement announcement;
    if (read_file(fd, &announcement)) {
        if (announcement.facts[JOB_FACT_SOCKET] != NULL) {
            add_job(context, &announcement, is_same_agent);
        } else {
            job_announcement_clear(&announcement);
        }
    }
}

/* Posting. */

/* Who looks for that name finds the file with its lock, or none. Returns the path. */
static char *give_name(int place, const char *path, const char *random, const char *name) {
    char *own = text_format(PREFIX "%s", name);
    bool is_given = *name != '\0' && renameat(place, random, place, own) == 0;
    char *whole = text_format("%s/%s", path, is_given ? own : random);
    free(own);
    return whole;
}

static enum failure_code post_in(const char *path, const char *own_name, const char *text,
    struct job_posting *out_posting, struct failure *failure) {
    char name[sizeof PREFIX + RANDOM_LENGTH];
    int place = -1;
    int fd = -1;
    enum failure_code code = make_place(path, &place, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    visit_place(place, SWEPT_MAXIMUM, pass_by, NULL);
    int error = make_file(place, name, &fd);
    if (error == 0 && (error = write_file(fd, text)) != 0) {
        (void)unlinkat(place, name, 0);
        close(fd);
    }
    if (error == 0) {
        *out_posting = (struct job_posting){
            give_name(place, path, name, own_name == NULL ? "" : own_name), fd};
    }
    close(place);
    return error == 0 ? FAILURE_NONE
                      : failure_set_system(failure, error, "cannot write a file in %s", path);
}

enum failure_code job_directory_post(const struct text_list *places, const char *name,
    const char *text, struct job_posting *out_posting, struct failure *failure) {
    struct text reasons = {0};
    bool is_refused = false;
    for (size_t i = 0; i < places->count; i++) {
        struct failure reason = {0};
        enum failure_code code = post_in(places->items[i], name, text, out_posting, &reason);
        if (code == FAILURE_NONE) {
            text_clear(&reasons);
            return FAILURE_NONE;
        }
        is_refused = is_refused || code == FAILURE_INVALID;
        text_append_format(&reasons, "%s%s", reasons.length > 0 ? "; " : "", reason.message);
    }
    enum failure_code code = failure_set(
        failure, is_refused ? FAILURE_INVALID : FAILURE_SYSTEM, "%s", text_string(&reasons));
    text_clear(&reasons);
    return code;
}

/* Whoever reads in between may see a mixture, which is no announcement. */
bool job_posting_rewrite(struct job_posting *posting, const char *text) {
    size_t length = strlen(text);
    return posting->path != NULL && is_linked(posting->lock_fd) &&
           pwrite(posting->lock_fd, text, length, 0) == (ssize_t)length &&
           ftruncate(posting->lock_fd, (off_t)length) == 0;
}

/* Another posting may have its name by now. */
void job_posting_remove(struct job_posting *posting) {
    if (posting->path != NULL) {
        if (is_linked(posting->lock_fd)) {
            (void)unlink(posting->path);
        }
        close(posting->lock_fd);
    }
    free(posting->path);
    *posting = (struct job_posting){0};
}

/* Finding. */

static int compare_jobs(const void *left_item, const void *right_item) {
    const struct job_announcement *left = left_item;
    const struct job_announcement *right = right_item;
    int order = strcmp(left->run_id, right->run_id);
    order = order != 0 ? order
                       : strcmp(left->host != NULL ? left->host : "",
                             right->host != NULL ? right->host : "");
    return order != 0 ? order : (left->port > right->port) - (left->port < right->port);
}

static void find(const struct text_list *places, struct job_list *out_jobs,
    struct text_list *out_refusals, void (*read)(void *context, int fd)) {
    for (size_t i = 0; i < places->count; i++) {
        struct failure failure = {0};
        int place = -1;
        enum failure_code code = open_place(places->items[i], &place, &failure);
        if (code == FAILURE_NONE) {
            visit_place(place, NAMES_MAXIMUM, read, out_jobs);
            close(place);
        } else if (code == FAILURE_INVALID) {
            text_list_add(out_refusals, failure.message);
        }
    }
    if (out_jobs->count > 1) {
        qsort(out_jobs->items, out_jobs->count, sizeof *out_jobs->items, compare_jobs);
    }
}

void job_directory_find(
    const struct text_list *places, struct job_list *out_jobs, struct text_list *out_refusals) {
    find(places, out_jobs, out_refusals, read_job);
}

void job_directory_find_agents(
    const struct text_list *places, struct job_list *out_agents, struct text_list *out_refusals) {
    find(places, out_agents, out_refusals, read_agent);
}

static void look_in(int place, struct job_sighting *sightings, size_t count) {
    struct statfs status;
    if (fstatfs(place, &status) != 0 || file_system_local_name((long)status.f_type) == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char *name = text_format(PREFIX "%s", sightings[i].name);
        int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd != -1) {
            sightings[i].has_died |= is_own_file(fd) && flock(fd, LOCK_SH | LOCK_NB) == 0;
            close(fd);
        }
        free(name);
    }
}

void job_directory_look(
    const struct text_list *places, struct job_sighting *sightings, size_t count) {
    for (size_t i = 0; i < places->count; i++) {
        struct failure ignored = {0};
        int place;
        if (open_place(places->items[i], &place, &ignored) == FAILURE_NONE) {
            look_in(place, sightings, count);
            close(place);
        }
    }
}

void job_list_clear(struct job_list *jobs) {
    for (size_t i = 0; i < jobs->count; i++) {
        job_announcement_clear(&jobs->items[i]);
    }
    free(jobs->items);
    *jobs = (struct job_list){0};
}
