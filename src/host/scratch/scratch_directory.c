/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/scratch/scratch_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "host/loop/clock.h"

#define PRIVATE_MODE 0700
#define RANDOM_LENGTH 8
#define NAME_TRIES 100
#define SWEEP_MAXIMUM 65536 /* names in a place */
#define MIB ((double)(1u << 20))

/* Takes the lock of the directory at `path`. Returns its descriptor, or -1 and errno: EWOULDBLOCK
 * when somebody holds it, ESTALE when the path has another directory by now. */
static int lock(const char *path, struct directory_tree *out_tree) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -1) {
        return -1;
    }
    int error = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 ? 0 : errno;
    if (error == 0 && (!directory_tree_note(path, out_tree) || out_tree->device != status.st_dev ||
                          out_tree->inode != status.st_ino)) {
        error = ESTALE;
    }
    if (error != 0) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Somebody who sweeps may be faster than the lock: then another name is taken. Returns 0 or an
 * errno. */
static int make_in(const char *place, struct scratch_directory *out_directory) {
    int error = EEXIST;
    for (int i = 0; i < NAME_TRIES; i++) {
        char random[RANDOM_LENGTH + 1];
        struct directory_tree tree;
        random_seed_name(random, RANDOM_LENGTH);
        char *path = text_format("%s/" SCRATCH_DIRECTORY_PREFIX "%s", place, random);
        bool is_made = mkdir(path, PRIVATE_MODE) == 0;
        int fd = is_made ? lock(path, &tree) : -1;
        if (fd != -1) {
            *out_directory = (struct scratch_directory){path, tree, fd};
            return 0;
        }
        error = errno;
        bool is_taken =
            is_made ? error == EWOULDBLOCK || error == ENOENT || error == ESTALE : error == EEXIST;
        if (is_made) {
            (void)rmdir(path);
        }
        free(path);
        if (!is_taken) {
            return error;
        }
    }
    return error;
}

/* A tmpfs without a size has no blocks. */
static enum failure_code check_room(
    const char *place, const struct statfs *system, uint64_t bytes, struct failure *failure) {
    uint64_t free_bytes = (uint64_t)system->f_bavail * (uint64_t)system->f_bsize;
    if (system->f_blocks == 0 || free_bytes >= bytes) {
        return FAILURE_NONE;
    }
    return failure_set(failure, FAILURE_LIMIT,
        "%.1f MiB are more than the %.1f MiB that are free in %s; ask for less, or give that file "
        "system a larger size (of a container: --shm-size)",
        (double)bytes / MIB, (double)free_bytes / MIB, place);
}

static void note(struct text *reasons, const char *place, const char *reason) {
    text_append_format(reasons, "%s%s %s", reasons->length > 0 ? ", " : "", place, reason);
}

/* Where a place cannot be used, says why in `reasons`, and the result stays empty. */
static enum failure_code try_place(const char *place, uint64_t bytes,
    struct scratch_directory *out_directory, struct text *reasons, struct failure *failure) {
    struct statfs system;
    struct failure refusal;
    if (statfs(place, &system) != 0) {
        failure_set_system(&refusal, errno, "cannot be used");
        note(reasons, place, refusal.message);
        return FAILURE_NONE;
    }
    if (system.f_type != TMPFS_MAGIC) {
        note(reasons, place, "is no tmpfs");
        return FAILURE_NONE;
    }
    if (access(place, W_OK | X_OK) == 0) {
        enum failure_code code = check_room(place, &system, bytes, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    int error = make_in(place, out_directory);
    if (error != 0) {
        failure_set_system(&refusal, error, "takes no directory");
        note(reasons, place, refusal.message);
    }
    return FAILURE_NONE;
}

enum failure_code scratch_directory_make(const struct text_list *places, uint64_t bytes,
    struct scratch_directory *out_directory, struct failure *failure) {
    struct scratch_directory directory = {0};
    struct text reasons = {0};
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < places->count && code == FAILURE_NONE && directory.path == NULL; i++) {
        code = try_place(places->items[i], bytes, &directory, &reasons, failure);
    }
    if (code == FAILURE_NONE && directory.path == NULL) {
        code = failure_set(failure, FAILURE_SYSTEM,
            "there is no file system in memory in which this user may make a directory: %s "
            "(mount a tmpfs for writing at one of them, or leave --scratch out: then a program "
            "that finds no MUSTER_SCRATCH does without)",
            text_string(&reasons));
    }
    if (code == FAILURE_NONE) {
        *out_directory = directory;
    }
    text_clear(&reasons);
    return code;
}

bool scratch_directory_is_there(const struct scratch_directory *directory) {
    struct directory_tree now;
    return directory->path != NULL && directory_tree_note(directory->path, &now) &&
           now.device == directory->tree.device && now.inode == directory->tree.inode;
}

bool scratch_directory_remake(struct scratch_directory *directory) {
    struct directory_tree tree;
    if (directory->path == NULL || mkdir(directory->path, PRIVATE_MODE) != 0) {
        return false;
    }
    int fd = lock(directory->path, &tree);
    if (fd == -1) {
        (void)rmdir(directory->path);
        return false;
    }
    close(directory->lock_fd);
    directory->lock_fd = fd;
    directory->tree = tree;
    return true;
}

bool scratch_directory_remove(struct scratch_directory *directory, uint64_t *out_bytes) {
    if (directory->path == NULL) {
        *out_bytes = 0;
        return true;
    }
    if (!directory_tree_remove(directory->path, &directory->tree, out_bytes)) {
        return false;
    }
    scratch_directory_clear(directory);
    return true;
}

void scratch_directory_clear(struct scratch_directory *directory) {
    if (directory->path != NULL) {
        close(directory->lock_fd);
    }
    free(directory->path);
    *directory = (struct scratch_directory){0};
}

static void sweep_one(const char *path, struct text_list *out_removed) {
    struct directory_tree tree;
    int fd = directory_tree_note(path, &tree) ? lock(path, &tree) : -1;
    if (fd == -1) {
        return;
    }
    if (directory_tree_remove(path, &tree, NULL)) {
        text_list_add(out_removed, path);
    }
    close(fd);
}

void scratch_directory_sweep(const char *place, struct text_list *out_removed) {
    DIR *directory = opendir(place);
    const struct dirent *entry;
    for (int i = 0; i < SWEEP_MAXIMUM && directory != NULL && (entry = readdir(directory)) != NULL;
         i++) {
        if (text_starts_with(entry->d_name, SCRATCH_DIRECTORY_PREFIX)) {
            char *path = text_format("%s/%s", place, entry->d_name);
            sweep_one(path, out_removed);
            free(path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}
