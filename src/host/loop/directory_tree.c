/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/directory_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WALK_DESCRIPTORS 8

static int stop_at_file(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)path;
    (void)status;
    (void)place;
    return kind == FTW_D ? 0 : 1;
}

/* rmdir() refuses what is not empty, so a file that appears meanwhile is safe. */
static int empty_directory_remove_directory(
    const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return rmdir(path);
}

bool empty_directory_remove(const char *path) {
    return nftw(path, stop_at_file, WALK_DESCRIPTORS, FTW_PHYS) == 0 &&
           nftw(path, empty_directory_remove_directory, WALK_DESCRIPTORS, FTW_PHYS | FTW_DEPTH) ==
               0;
}

/* Temporary directory. */

#define DEFAULT_PLACE "/tmp"
#define WORKING_DIRECTORY "."

static const char *const variables[] = {"TMPDIR", "TEMP", "TMP"};
static const char *const places[] = {DEFAULT_PLACE, "/var/tmp", "/usr/tmp", WORKING_DIRECTORY};

static const char *variable(const struct text_list *environment, const char *name) {
    const char *value = environment == NULL ? getenv(name) : text_list_variable(environment, name);
    return value == NULL || *value == '\0' ? NULL : value;
}

const char *temporary_directory_candidate(const struct text_list *environment, size_t index) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = variable(environment, variables[i]);
        if (value != NULL && index == 0) {
            return value;
        }
        index -= value != NULL ? 1 : 0;
    }
    return index < sizeof places / sizeof *places ? places[index] : NULL;
}

const char *temporary_directory_usable(const struct text_list *environment) {
    const char *path;
    for (size_t i = 0; (path = temporary_directory_candidate(environment, i)) != NULL; i++) {
        if (strcmp(path, WORKING_DIRECTORY) != 0 && access(path, W_OK | X_OK) == 0) {
            return path;
        }
    }
    return DEFAULT_PLACE;
}

/* Directory tree. */

/* What is in all directories together that one call removes. */
#define DIRECTORY_TREE_ENTRIES_MAXIMUM (1u << 24)

/* Over the whole tree: somebody may add to a directory while it is emptied. */
#define PASSES 3
#define BLOCK_BYTES 512 /* of st_blocks */
#define PRIVATE_MODE 0700

struct removal {
    uint64_t device;
    uint64_t bytes;
    unsigned entries_left;
    int error; /* why something stays; 0: nothing has refused to go */
};

static bool is_own_directory(const struct stat *status) {
    return S_ISDIR(status->st_mode) && status->st_uid == geteuid();
}

/* Somebody may have left a directory that its owner may not read. Returns -1 when it cannot be
 * opened. */
static int open_directory(int parent, const char *name) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat status;
    int fd = openat(parent, name, flags);
    if (fd == -1 && errno == EACCES && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_own_directory(&status) && fchmodat(parent, name, PRIVATE_MODE, 0) == 0) {
        fd = openat(parent, name, flags);
    }
    return fd;
}

static void empty(struct removal *removal, int fd, int depth);

/* The first counts: that a directory is not empty only follows from it. */
static void note_error(struct removal *removal) {
    if (removal->error == 0 && errno != ENOENT) {
        removal->error = errno;
    }
}

static void remove_directory(struct removal *removal, int parent, const char *name, int depth) {
    int fd = depth < DIRECTORY_TREE_DEPTH_MAXIMUM ? open_directory(parent, name) : -1;
    if (fd != -1) {
        empty(removal, fd, depth);
    }
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0) {
        note_error(removal);
    }
}

static void remove_entry(struct removal *removal, int parent, const char *name, int depth) {
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        if (unlinkat(parent, name, 0) != 0) {
            note_error(removal);
        } else if (status.st_nlink == 1) {
            removal->bytes += (uint64_t)status.st_blocks * BLOCK_BYTES;
        }
    } else if (status.st_dev == removal->device) {
        remove_directory(removal, parent, name, depth);
    }
}

/* Takes the descriptor. */
static void empty(struct removal *removal, int fd, int depth) {
    struct stat status;
    if (fstat(fd, &status) == 0 && (status.st_mode & PRIVATE_MODE) != PRIVATE_MODE) {
        (void)fchmod(fd, PRIVATE_MODE); /* then its entries cannot be removed, and stay */
    }
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        close(fd);
        return;
    }
    const struct dirent *entry;
    while (removal->entries_left > 0 && (entry = readdir(directory)) != NULL) {
        if (!text_equals(entry->d_name, ".") && !text_equals(entry->d_name, "..")) {
            removal->entries_left--;
            remove_entry(removal, fd, entry->d_name, depth + 1);
        }
    }
    closedir(directory);
}

bool directory_tree_note(const char *path, struct directory_tree *out_tree) {
    struct stat status;
    *out_tree = (struct directory_tree){0};
    if (lstat(path, &status) != 0 || !is_own_directory(&status)) {
        return false;
    }
    *out_tree = (struct directory_tree){status.st_dev, status.st_ino};
    return true;
}

static bool is_there(const char *path, const struct directory_tree *tree) {
    struct directory_tree now;
    return directory_tree_note(path, &now) && now.device == tree->device &&
           now.inode == tree->inode;
}

bool directory_tree_remove(
    const char *path, const struct directory_tree *tree, uint64_t *out_bytes) {
    struct removal removal = {
        .device = tree->device, .entries_left = DIRECTORY_TREE_ENTRIES_MAXIMUM};
    for (int pass = 0; pass < PASSES && is_there(path, tree); pass++) {
        removal.error = 0;
        remove_directory(&removal, AT_FDCWD, path, 0);
    }
    if (out_bytes != NULL) {
        *out_bytes = removal.bytes;
    }
    bool is_gone = !is_there(path, tree);
    errno = removal.error;
    return is_gone;
}

const char *file_system_local_name(long type) {
    /* from linux/magic.h and the file systems' own headers */
    static const struct {
        long type;
        const char *name;
    } kinds[] = {
        {0xef53, "ext4"},
        {0x58465342, "xfs"},
        {0x9123683e, "btrfs"},
        {0x2fc12fc1, "zfs"},
        {0xf2f52010, "f2fs"},
        {0x794c7630, "overlayfs"},
        {0x01021994, "tmpfs"},
        {(long)0x858458f6, "ramfs"},
        {0x794c7630, "overlay"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].type == type) {
            return kinds[i].name;
        }
    }
    return NULL;
}
