/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"

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

/* Number directory. */

/* The maximum number of entries that are listed. Higher numbers are not listed either. */
#define NUMBER_LIST_CEILING 4096

#define NUMBER_LIST_HIGHEST 999999

#define ENTRIES_SIZE 4096

/* The number that `name` spells; -1 when it is no number. */
static int parse_number(const char *name) {
    int number = 0;
    if (*name == '\0') {
        return -1;
    }
    for (; *name != '\0'; name++) {
        int digit = *name - '0';
        if (digit < 0 || digit > 9 || number > (INT_MAX - digit) / 10) {
            return -1;
        }
        number = number * 10 + digit;
    }
    return number;
}

struct visitor {
    const char *prefix;
    bool (*visit)(void *context, int number);
    void *context;
};

/* Returns false when the visitor wants to stop. */
static bool visit_entries(const char *entries, long length, const struct visitor *visitor) {
    for (long offset = 0; offset < length;) {
        const struct dirent64 *entry = (const void *)(entries + offset);
        int number = text_starts_with(entry->d_name, visitor->prefix)
                         ? parse_number(entry->d_name + strlen(visitor->prefix))
                         : -1;
        if (number >= 0 && !visitor->visit(visitor->context, number)) {
            return false;
        }
        offset += entry->d_reclen;
    }
    return true;
}

static bool visit_directory(const char *path, const struct visitor *visitor) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    _Alignas(struct dirent64) char entries[ENTRIES_SIZE];
    long length;
    do {
        length = syscall(SYS_getdents64, fd, entries, sizeof entries);
    } while (length > 0 && visit_entries(entries, length, visitor));
    close(fd);
    return length >= 0;
}

bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context) {
    const struct visitor visitor = {"", visit, context};
    return visit_directory(path, &visitor);
}

static bool add_number(void *context, int number) {
    struct number_list *list = context;
    if (number <= NUMBER_LIST_HIGHEST) {
        list->items =
            memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = number;
    }
    return list->count < NUMBER_LIST_CEILING;
}

static int compare_numbers(const void *left, const void *right) {
    const int *a = left;
    const int *b = right;
    return (*a > *b) - (*a < *b);
}

struct number_list number_directory_list(const char *path, const char *prefix) {
    struct number_list list = {0};
    const struct visitor visitor = {prefix, add_number, &list};
    (void)visit_directory(path, &visitor);
    if (list.count > 1) {
        qsort(list.items, list.count, sizeof *list.items, compare_numbers);
    }
    return list;
}

void number_list_clear(struct number_list *list) {
    free(list->items);
    *list = (struct number_list){0};
}

static char *append(char *end, const char *limit, const char *string) {
    while (*string != '\0' && end < limit) {
        *end++ = *string++;
    }
    return end;
}

void number_path_format(
    char path[NUMBER_PATH_SIZE], const char *before, int number, const char *after) {
    const char *limit = path + NUMBER_PATH_SIZE - 1;
    char digits[16];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    unsigned rest = number < 0 ? 0 : (unsigned)number;
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    char *end = append(path, limit, before);
    end = append(end, limit, first);
    end = append(end, limit, after);
    *end = '\0';
}

/* Directory tree. */

#define SHARED_MODE 0666
#define SHARED_PLACE_PRIVATE_MODE 0600
#define PRIVATE_DIRECTORY_MODE 0700
/* How often the name may appear and disappear while it is opened. */
#define TRIES 10
#define RANDOM_LENGTH 8 /* of what is behind the name of a file that is not finished */

struct place {
    bool is_shared; /* the directory is */
    bool is_there;
    bool is_foreign;
};

/* What cannot be looked at is not shared: to open it will fail with the reason. */
static struct place look(const char *path) {
    struct place place = {0};
    struct stat directory;
    struct stat status;
    char *parent = memory_duplicate_string(path);
    char *slash = strrchr(parent, '/');
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    if (stat(slash == NULL ? "." : parent, &directory) == 0) {
        place.is_shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
        place.is_there = lstat(path, &status) == 0;
        place.is_foreign = place.is_shared && place.is_there && !S_ISDIR(status.st_mode) &&
                           status.st_uid != geteuid() && status.st_uid != directory.st_uid;
    }
    free(parent);
    return place;
}

static enum failure_code refuse(struct failure *failure) {
    return failure_set(failure, FAILURE_INVALID,
        "it belongs to another user, in a directory where everybody may make files; give a path "
        "of your own");
}

enum failure_code shared_place_check(const char *path, struct failure *failure) {
    return look(path).is_foreign ? refuse(failure) : FAILURE_NONE;
}

enum failure_code shared_place_fail_to_make(const char *path, int error, struct failure *failure) {
    if (error == ENOTDIR || error == ENAMETOOLONG) {
        enum failure_code code = error == ENOTDIR ? FAILURE_INVALID : FAILURE_LIMIT;
        return failure_set(failure, code, "cannot make the directory %s: %s", path,
            error == ENOTDIR ? "something on the way is not a directory" : "the name is too long");
    }
    return failure_set_system(failure, error, "cannot make the directory %s", path);
}

static enum failure_code make_directory_if_missing(
    const char *path, unsigned mode, struct failure *failure) {
    struct stat status;
    struct failure reason;
    if (shared_place_check(path, &reason) != FAILURE_NONE) {
        return failure_set(
            failure, reason.code, "cannot make the directory %s: %s", path, reason.message);
    }
    if (stat(path, &status) == 0) {
        if (!S_ISDIR(status.st_mode)) {
            return failure_set(failure, FAILURE_INVALID, "%s is not a directory", path);
        }
        return FAILURE_NONE;
    }
    if (errno != ENOENT) {
        return shared_place_fail_to_make(path, errno, failure);
    }
    if (mkdir(path, (mode_t)mode) != 0 && errno != EEXIST) { /* another node on a shared disk */
        return shared_place_fail_to_make(path, errno, failure);
    }
    return FAILURE_NONE;
}

enum failure_code shared_place_make_directories(
    const char *path, unsigned mode, struct failure *failure) {
    struct text prefix = {0};
    enum failure_code code = FAILURE_NONE;
    for (const char *end = path + 1; code == FAILURE_NONE; end++) {
        if (*end == '/' || *end == '\0') {
            prefix.length = 0;
            text_append_bytes(&prefix, path, (size_t)(end - path));
            code = make_directory_if_missing(text_string(&prefix), mode, failure);
        }
        if (*end == '\0') {
            break;
        }
    }
    text_clear(&prefix);
    return code;
}

enum failure_code shared_place_make_private(const char *path, struct failure *failure) {
    struct stat status;
    if (mkdir(path, PRIVATE_DIRECTORY_MODE) == 0) {
        return FAILURE_NONE;
    }
    if (errno != EEXIST || lstat(path, &status) != 0) {
        return shared_place_fail_to_make(path, errno, failure);
    }
    if (!S_ISDIR(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "%s is not a directory", path);
    }
    if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return failure_set(failure, FAILURE_INVALID,
            "%s belongs to another user, or others may write there", path);
    }
    return FAILURE_NONE;
}

int shared_place_open(const char *path, int flags, struct failure *failure) {
    for (int i = 0; i < TRIES; i++) {
        struct place place = look(path);
        if (place.is_foreign) {
            (void)refuse(failure);
            return -1;
        }
        /* What is there and is this user's own cannot be replaced by anybody else. What is not
         * there yet must be made here and now. */
        int making = !place.is_shared ? O_CREAT
                     : place.is_there ? 0
                                      : O_CREAT | O_EXCL | O_NOFOLLOW;
        int fd =
            open(path, flags | making, place.is_shared ? SHARED_PLACE_PRIVATE_MODE : SHARED_MODE);
        bool has_changed = place.is_shared && errno == (place.is_there ? ENOENT : EEXIST);
        if (fd >= 0 || !has_changed) {
            if (fd < 0) {
                int error = errno;
                (void)failure_set(failure, FAILURE_SYSTEM, "%s", failure_system_words(error));
                failure->system_error = error;
            }
            return fd;
        }
    }
    (void)failure_set(failure, FAILURE_SYSTEM, "it appears and disappears all the time");
    return -1;
}

static int write_all(int fd, struct slice content) {
    while (content.length > 0) {
        ssize_t count = write(fd, content.data, content.length);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno;
        }
        content.data += count;
        content.length -= (size_t)count;
    }
    return 0;
}

/* Returns an errno. */
static int write_and_close(int fd, struct slice content) {
    int error = write_all(fd, content);
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

/* A refusal that no system call gave has no errno of its own. */
static int errno_of(const struct failure *failure) {
    return failure->system_error != 0 ? failure->system_error : EPERM;
}

int shared_place_replace(const char *path, struct slice content) {
    char random[RANDOM_LENGTH + 1];
    random_seed_name(random, RANDOM_LENGTH);
    char *fresh = text_format("%s.%s", path, random);
    struct failure reason;
    int fd = shared_place_open(fresh, O_WRONLY | O_EXCL | O_CLOEXEC, &reason);
    bool is_made = fd >= 0;
    int error = is_made ? write_and_close(fd, content) : errno_of(&reason);
    if (error == 0 && rename(fresh, path) != 0) {
        error = errno;
    }
    if (error != 0 && is_made) {
        (void)unlink(fresh); /* the first failure is the one to tell */
    }
    free(fresh);
    return error;
}

int shared_place_write(const char *path, struct slice content) {
    struct failure reason;
    int fd = shared_place_open(
        path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW, &reason);
    return fd < 0 ? errno_of(&reason) : write_and_close(fd, content);
}

bool shared_place_can_be_replaced(const char *path) {
    struct stat status;
    return stat(path, &status) != 0 ? errno == ENOENT : S_ISREG(status.st_mode);
}

/* Directory tree. */

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

/* Memory file. */

/* `fd` is the new file, or -1. Closes it when it is not well. errno is that of the last call. */
static enum failure_code finish(bool is_well, int fd, int *out_fd, struct failure *failure) {
    int system_error = errno;
    if (is_well) {
        *out_fd = fd;
        return FAILURE_NONE;
    }
    if (fd != -1) {
        close(fd);
    }
    return failure_set_system(failure, system_error, "cannot make a file in memory");
}

enum failure_code memory_file_new(
    const char *name, bool appends, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    bool is_well = fd != -1 && (!appends || fcntl(fd, F_SETFL, O_APPEND) != -1);
    return finish(is_well, fd, out_fd, failure);
}

enum failure_code memory_file_with_head(
    const char *name, size_t head, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool is_well = fd != -1 && ftruncate(fd, (off_t)head) == 0 &&
                   fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0 &&
                   fcntl(fd, F_SETFL, O_APPEND) != -1;
    return finish(is_well, fd, out_fd, failure);
}

enum failure_code memory_file_write(int fd, struct slice bytes, struct failure *failure) {
    while (bytes.length > 0) {
        ssize_t written = write(fd, bytes.data, bytes.length);
        if (written > 0) {
            bytes = slice_from(bytes, (size_t)written);
        } else if (written == 0 || errno != EINTR) {
            return failure_set_system(
                failure, written == 0 ? EIO : errno, "cannot write a file in memory");
        }
    }
    return FAILURE_NONE;
}

enum failure_code memory_file_of(
    const char *name, struct slice bytes, int *out_fd, struct failure *failure) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    enum failure_code code = finish(fd != -1, fd, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = memory_file_write(fd, bytes, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        return code;
    }
    (void)lseek(fd, 0, SEEK_SET);
    (void)!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    *out_fd = fd;
    return FAILURE_NONE;
}

void memory_file_read(int fd, size_t start, size_t ceiling, struct bytes *out_bytes) {
    size_t done = 0;
    char part[4096];
    while (done < ceiling) {
        size_t room = ceiling - done;
        ssize_t length =
            pread(fd, part, room < sizeof part ? room : sizeof part, (off_t)(start + done));
        if (length > 0) {
            (void)!bytes_append(out_bytes, part, (size_t)length);
            done += (size_t)length;
        } else if (length == 0 || errno != EINTR) {
            return;
        }
    }
}

void memory_file_forget(int fd, size_t start, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    start = (start + page - 1) / page * page;
    end = end / page * page;
    if (start < end) {
        (void)!fallocate(
            fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)(end - start));
    }
}

size_t memory_file_length(int fd) {
    struct stat status = {0};
    (void)!fstat(fd, &status);
    return (size_t)status.st_size;
}
