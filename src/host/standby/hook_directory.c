/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/standby/hook_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/files.h"

/* What the interpreter runs of it has to be the work of whoever may change the program anyway. */

struct trust {
    uid_t owner; /* of the program */
    gid_t group;
};

static bool is_trusted(const struct trust *trust, const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return false;
    }
    /* In a sticky directory nobody replaces what is another user's. */
    bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
    bool is_closed = is_sticky || (status.st_mode & S_IWOTH) == 0;
    bool is_closed_to_group = is_sticky || (status.st_mode & S_IWGRP) == 0 || status.st_gid == 0 ||
                              status.st_gid == getegid() || status.st_gid == trust->group;
    bool is_known =
        status.st_uid == 0 || status.st_uid == geteuid() || status.st_uid == trust->owner;
    return is_known && is_closed && is_closed_to_group && !S_ISLNK(status.st_mode);
}

/* Every directory on the way. The path has no links. */
static bool is_way_trusted(const struct trust *trust, const char *path) {
    char way[PATH_MAX];
    size_t length = strlen(path);
    bool is_safe = is_trusted(trust, "/");
    for (size_t i = 1; i <= length && length < sizeof way && is_safe; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(way, path, i);
            way[i] = '\0';
            is_safe = is_trusted(trust, way);
        }
    }
    return is_safe;
}

static bool is_entry_trusted(
    const struct trust *trust, const char *directory, const char *name, bool may_be_missing) {
    char *path = text_format("%s/%s", directory, name);
    bool is_missing = access(path, F_OK) != 0 && errno == ENOENT;
    bool is_safe = is_missing ? may_be_missing : is_trusted(trust, path);
    free(path);
    return is_safe;
}

/* With what Python compiles beside it. */
static bool is_whole_and_trusted(const struct trust *trust, const char *directory) {
    bool is_safe =
        is_way_trusted(trust, directory) && is_entry_trusted(trust, directory, "__pycache__", true);
    for (size_t i = 0; i < hook_file_count && is_safe; i++) {
        const struct hook_file *file = &hook_files[i];
        is_safe = is_entry_trusted(trust, directory, file->name, false);
        if (file->text == NULL && is_safe) {
            char *cache = text_format("%s/__pycache__", file->name);
            is_safe = is_entry_trusted(trust, directory, cache, true);
            free(cache);
        }
    }
    return is_safe;
}

/* <prefix>/share/muster/standby, where the program is <prefix>/bin/muster; the caller frees it.
 * NULL: there is no hook, or others might have changed it. */
static char *installed_path(const char *program) {
    char path[PATH_MAX];
    struct stat status;
    ssize_t length = readlink(program, path, sizeof path - 1);
    if (length <= 0 || stat(program, &status) != 0) {
        return NULL;
    }
    path[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return NULL;
        }
        *slash = '\0';
    }
    char *named = text_format("%s/share/muster/standby", path);
    char *found = realpath(named, NULL);
    const struct trust trust = {status.st_uid, status.st_gid};
    free(named);
    if (found != NULL && !is_whole_and_trusted(&trust, found)) {
        free(found);
        return NULL;
    }
    return found;
}

/* Returns errno, or 0. */
static int write_file(const char *path, const struct hook_file *file) {
    struct slice rest = {file->text, file->length};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int system_error = fd == -1 ? errno : 0;
    while (system_error == 0 && rest.length > 0) {
        ssize_t written = write(fd, rest.data, rest.length);
        if (written > 0) {
            rest = slice_from(rest, (size_t)written);
        } else if (written == 0 || errno != EINTR) {
            system_error = written == 0 ? EIO : errno;
        }
    }
    if (fd != -1) {
        close(fd);
    }
    return system_error;
}

static int make_directory(const char *path) {
    return mkdir(path, 0700) == 0 ? 0 : errno;
}

static enum failure_code write_hook(const char *directory, struct failure *failure) {
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < hook_file_count && code == FAILURE_NONE; i++) {
        const struct hook_file *file = &hook_files[i];
        char *path = text_format("%s/%s", directory, file->name);
        int system_error = file->text == NULL ? make_directory(path) : write_file(path, file);
        if (system_error != 0) {
            code = failure_set_system(failure, system_error, "cannot write %s", path);
        }
        free(path);
    }
    return code;
}

static void close_directory(struct hook_directory *directory) {
    if (directory->is_private) {
        (void)directory_tree_remove(directory->path, &directory->tree, NULL);
    }
    free(directory->path);
    *directory = (struct hook_directory){0};
}

static enum failure_code open_directory(const char *program, const char *temporary,
    struct hook_directory *out_directory, struct failure *failure) {
    char *installed = installed_path(program);
    if (installed != NULL) {
        *out_directory = (struct hook_directory){.path = installed};
        return FAILURE_NONE;
    }
    char *path = text_format("%s/muster_standby_XXXXXX", temporary);
    if (mkdtemp(path) == NULL) {
        enum failure_code code =
            failure_set_system(failure, errno, "cannot make a directory in %s", temporary);
        free(path);
        return code;
    }
    struct hook_directory directory = {.path = path, .is_private = true};
    (void)!directory_tree_note(path, &directory.tree);
    enum failure_code code = write_hook(path, failure);
    if (code != FAILURE_NONE) {
        close_directory(&directory);
        return code;
    }
    *out_directory = directory;
    return FAILURE_NONE;
}

/* On a thread that a dead disk may hold up. */

struct hook_work {
    char *program; /* NULL, as is the next: the directory is to be renewed or removed */
    char *temporary;
    struct hook_directory directory;
    bool is_renewed;
    enum failure_code code;
    struct failure failure;
};

static void free_work(void *subject) {
    struct hook_work *work = subject;
    free(work->program);
    free(work->temporary);
    free(work->directory.path);
    free(work);
}

static void run_open(void *subject) {
    struct hook_work *work = subject;
    work->code = open_directory(work->program, work->temporary, &work->directory, &work->failure);
}

static void run_close(void *subject) {
    struct hook_work *work = subject;
    close_directory(&work->directory);
}

static bool is_whole(const char *directory) {
    bool is_there = true;
    for (size_t i = 0; i < hook_file_count && is_there; i++) {
        char *path = text_format("%s/%s", directory, hook_files[i].name);
        is_there = access(path, R_OK) == 0;
        free(path);
    }
    return is_there;
}

static void run_renew(void *subject) {
    struct hook_work *work = subject;
    struct hook_directory *directory = &work->directory;
    if (is_whole(directory->path)) {
        return;
    }
    (void)directory_tree_remove(
        directory->path, &directory->tree, NULL); /* half of it may be left */
    work->is_renewed = true;
    work->code = shared_place_make_private(directory->path, &work->failure);
    if (work->code == FAILURE_NONE) {
        (void)!directory_tree_note(directory->path, &directory->tree);
        work->code = write_hook(directory->path, &work->failure);
    }
}

enum failure_code hook_directory_renew_within(struct duration patience,
    struct hook_directory *directory, bool *out_is_renewed, struct failure *failure) {
    *out_is_renewed = false;
    if (!directory->is_private) {
        return FAILURE_NONE;
    }
    struct hook_work *work = memory_allocate(sizeof *work);
    work->directory = *directory;
    work->directory.path = memory_duplicate_string(directory->path);
    const struct blocking_task task = {run_renew, free_work, work};
    enum failure_code code = blocking_task_run_within(&task, patience, NULL, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    *out_is_renewed = work->is_renewed;
    directory->tree = work->directory.tree;
    code = work->code;
    if (code != FAILURE_NONE && failure != NULL) {
        *failure = work->failure;
    }
    free_work(work);
    return code;
}

enum failure_code hook_directory_open_within(struct duration patience, const char *program,
    const char *temporary, struct hook_directory *out_directory, struct failure *failure) {
    struct hook_work *work = memory_allocate(sizeof *work);
    work->program = memory_duplicate_string(program);
    work->temporary = memory_duplicate_string(temporary);
    const struct blocking_task task = {run_open, free_work, work};
    enum failure_code code = blocking_task_run_within(&task, patience, NULL, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "cannot make a directory in %s", temporary);
    }
    code = work->code;
    if (code == FAILURE_NONE) {
        *out_directory = work->directory;
        work->directory.path = NULL;
    } else if (failure != NULL) {
        *failure = work->failure;
    }
    free_work(work);
    return code;
}

void hook_directory_close_within(struct duration patience, struct hook_directory *directory) {
    if (!directory->is_private) {
        close_directory(directory);
        return;
    }
    struct hook_work *work = memory_allocate(sizeof *work);
    work->directory = *directory;
    *directory = (struct hook_directory){0};
    const struct blocking_task task = {run_close, free_work, work};
    if (blocking_task_run_within(&task, patience, NULL, NULL) == FAILURE_NONE) {
        free_work(work);
    }
}
