/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_directory.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"

#define PRIVATE_MODE 0700
#define SHARED_MODE 0777 /* less what umask takes */
#define NAME_TRIES 100

/* Makes a directory of a fresh name; `append_name` writes the name after "<parent>/". */
static enum failure_code make_fresh_directory(const char *parent,
    void (*append_name)(struct text *text, const char *subject, const char *random),
    const char *subject, char **out_path, struct failure *failure) {
    for (int i = 0; i < NAME_TRIES; i++) {
        char random[LOG_TREE_RANDOM_LENGTH + 1];
        random_seed_name(random, LOG_TREE_RANDOM_LENGTH);
        struct text path = {0};
        text_append_format(&path, "%s/", parent);
        append_name(&path, subject, random);
        if (mkdir(text_string(&path), PRIVATE_MODE) == 0) {
            *out_path = text_take(&path);
            return FAILURE_NONE;
        }
        int error = errno;
        enum failure_code code = shared_place_fail_to_make(text_string(&path), error, failure);
        text_clear(&path);
        if (error != EEXIST) {
            return code;
        }
    }
    return failure_set(
        failure, FAILURE_SYSTEM, "cannot find an unused name for a directory in %s", parent);
}

static void append_temporary_name(struct text *text, const char *subject, const char *random) {
    text_append_format(text, "%s_%s", subject, random);
}

static enum failure_code append_absolute(
    struct text *path, const char *given, struct failure *failure) {
    char *working_directory = getcwd(NULL, 0);
    if (working_directory == NULL && given[0] != '/') {
        return failure_set_system(failure, errno, "cannot tell the working directory");
    }
    log_tree_append_absolute(path, working_directory, given);
    free(working_directory);
    return FAILURE_NONE;
}

static enum failure_code make_temporary_base_in(
    const char *parent, char **out_path, struct failure *failure) {
    struct text absolute = {0};
    enum failure_code code = append_absolute(&absolute, parent, failure);
    if (code == FAILURE_NONE) {
        code = make_fresh_directory(
            text_string(&absolute), append_temporary_name, "torchelastic", out_path, failure);
    }
    text_clear(&absolute);
    return code;
}

/* The failure told is that of the first place, the one the user meant. */
static enum failure_code make_temporary_base(char **out_path, struct failure *failure) {
    struct failure *reported = failure;
    enum failure_code first = FAILURE_NONE;
    const char *place;
    for (size_t i = 0; (place = temporary_directory_candidate(NULL, i)) != NULL; i++) {
        enum failure_code code = make_temporary_base_in(place, out_path, reported);
        if (code == FAILURE_NONE) {
            return FAILURE_NONE;
        }
        first = first == FAILURE_NONE ? code : first;
        reported = NULL;
    }
    return first;
}

static enum failure_code make_base(
    const char *log_dir, struct log_directory *directory, struct failure *failure) {
    if (log_dir == NULL) {
        directory->is_temporary = true;
        return make_temporary_base(&directory->base_path, failure);
    }
    struct text path = {0};
    enum failure_code code = append_absolute(&path, log_dir, failure);
    if (code == FAILURE_NONE) {
        code = shared_place_make_directories(text_string(&path), SHARED_MODE, failure);
    }
    if (code == FAILURE_NONE) {
        directory->base_path = text_take(&path);
    }
    text_clear(&path);
    return code;
}

/* Returns whether it is gone. */
static bool log_directory_remove_if_empty(const struct log_directory *directory) {
    return directory->is_temporary && directory->base_path != NULL &&
           empty_directory_remove(directory->base_path);
}

static enum failure_code log_directory_open(const char *log_dir, const char *run_id,
    struct log_directory *out_directory, struct failure *failure) {
    struct log_directory directory = {0};
    if (log_tree_is_discarded(log_dir)) {
        *out_directory = directory;
        return FAILURE_NONE;
    }
    enum failure_code code = make_base(log_dir, &directory, failure);
    if (code == FAILURE_NONE) {
        code = make_fresh_directory(
            directory.base_path, log_tree_append_run_name, run_id, &directory.run_path, failure);
    }
    if (code != FAILURE_NONE) {
        (void)log_directory_remove_if_empty(&directory);
        log_directory_clear(&directory);
        return code;
    }
    (void)!directory_tree_note(directory.run_path, &directory.run);
    *out_directory = directory;
    return FAILURE_NONE;
}

void log_directory_copy(const struct log_directory *directory, struct log_directory *out_copy) {
    *out_copy = *directory;
    out_copy->base_path = memory_duplicate_string(directory->base_path);
    out_copy->run_path = memory_duplicate_string(directory->run_path);
}

/* Where a server knows this user by another number, it is not known which directory was made. */
static bool is_there(const struct log_directory *directory) {
    struct directory_tree now;
    if (directory->run.inode == 0) {
        return access(directory->run_path, F_OK) == 0;
    }
    return directory_tree_note(directory->run_path, &now) && now.inode == directory->run.inode &&
           now.device == directory->run.device;
}

/* A job may last for months, and what it has in a directory for temporary files may be tidied up
 * meanwhile. What stands at the path then may be anybody's. */
enum failure_code log_directory_renew(
    const struct log_directory *directory, bool *out_is_renewed, struct failure *failure) {
    *out_is_renewed = false;
    if (directory->run_path == NULL || is_there(directory)) {
        return FAILURE_NONE;
    }
    *out_is_renewed = access(directory->run_path, F_OK) != 0;
    enum failure_code code = FAILURE_NONE;
    if (directory->base_path != NULL) {
        code = shared_place_make_directories(
            directory->base_path, directory->is_temporary ? PRIVATE_MODE : SHARED_MODE, failure);
    }
    if (code == FAILURE_NONE && directory->is_temporary) {
        code = shared_place_make_private(directory->base_path, failure);
    }
    return code == FAILURE_NONE ? shared_place_make_private(directory->run_path, failure) : code;
}

void log_directory_clear(struct log_directory *directory) {
    free(directory->base_path);
    free(directory->run_path);
    *directory = (struct log_directory){0};
}

static enum failure_code make_attempt_directory(const char *run_path,
    const struct log_tree_attempt *attempt, char **out_path, struct failure *failure) {
    struct text path = {0};
    for (int incarnation = 0; incarnation < INT_MAX; incarnation++) {
        text_clear(&path);
        text_append_format(&path, "%s/", run_path);
        log_tree_append_attempt_name(&path, attempt, incarnation);
        if (mkdir(text_string(&path), SHARED_MODE) == 0) {
            *out_path = text_take(&path);
            return FAILURE_NONE;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    enum failure_code code = shared_place_fail_to_make(text_string(&path), errno, failure);
    text_clear(&path);
    return code;
}

enum failure_code log_directory_begin_attempt(const struct log_directory *directory,
    const struct log_tree_attempt *attempt, int worker_count, char **out_path,
    struct failure *failure) {
    if (directory->run_path == NULL) {
        *out_path = NULL;
        return FAILURE_NONE;
    }
    char *path = NULL;
    enum failure_code code = make_attempt_directory(directory->run_path, attempt, &path, failure);
    for (int rank = 0; rank < worker_count && code == FAILURE_NONE; rank++) {
        char *rank_path = text_format("%s/%d", path, rank);
        if (mkdir(rank_path, SHARED_MODE) != 0) {
            code = shared_place_fail_to_make(rank_path, errno, failure);
        }
        free(rank_path);
    }
    if (code != FAILURE_NONE) {
        free(path);
        return code;
    }
    *out_path = path;
    return FAILURE_NONE;
}

/* By another thread. */

struct directory_work {
    struct log_directory directory;
    char *log_dir; /* NULL: a temporary one */
    char *run_id;
    enum failure_code code;
    struct failure failure;
};

static void free_directory_work(void *subject) {
    struct directory_work *work = subject;
    log_directory_clear(&work->directory);
    free(work->log_dir);
    free(work->run_id);
    free(work);
}

static void run_open(void *subject) {
    struct directory_work *work = subject;
    work->code = log_directory_open(work->log_dir, work->run_id, &work->directory, &work->failure);
}

enum failure_code log_directory_open_within(struct duration patience,
    const struct blocking_watch *watch, const char *log_dir, const char *run_id,
    struct log_directory *out_directory, struct failure *failure) {
    struct directory_work *work = memory_allocate(sizeof *work);
    work->log_dir = memory_duplicate_string(log_dir);
    work->run_id = memory_duplicate_string(run_id);
    const struct blocking_task task = {run_open, free_directory_work, work};
    enum failure_code code = blocking_task_run_within(&task, patience, watch, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "cannot make the log directory %s",
            log_dir != NULL ? log_dir : "in the directory for temporary files");
    }
    code = work->code;
    if (code == FAILURE_NONE) {
        *out_directory = work->directory;
        work->directory = (struct log_directory){0};
    } else if (failure != NULL) {
        *failure = work->failure;
    }
    free_directory_work(work);
    return code;
}

static void run_remove(void *subject) {
    const struct directory_work *work = subject;
    (void)log_directory_remove_if_empty(&work->directory);
}

void log_directory_remove_if_empty_within(
    struct duration patience, const struct log_directory *directory) {
    if (!directory->is_temporary || directory->base_path == NULL) {
        return;
    }
    struct directory_work *work = memory_allocate(sizeof *work);
    work->directory = (struct log_directory){
        .base_path = memory_duplicate_string(directory->base_path), .is_temporary = true};
    const struct blocking_task task = {run_remove, free_directory_work, work};
    if (blocking_task_run_within(&task, patience, NULL, NULL) == FAILURE_NONE) {
        free_directory_work(work);
    }
}
