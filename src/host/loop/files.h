/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files and directories: read, listed and removed without trust in what others have put
 * there; and files in memory. */
#ifndef MUSTER_HOST_LOOP_FILES_H
#define MUSTER_HOST_LOOP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Reads a small file completely, without trusting it: it never blocks on a FIFO, never makes a
 * terminal the controlling terminal, and never reads past a ceiling. For regular files and the
 * kernel's text files. */

/* Reads the end of a file that may be long and that others write to, without trusting it: never
 * blocks on a FIFO, never makes a terminal the controlling terminal, reads regular files only. A
 * dead disk can hold it up, so it is for a thread that nobody waits for without a bound. */

/* Appends at most the last `maximum` bytes of the file. `*out_is_cut` says whether the file has
 * more before them. FAILURE_MISSING when there is no file, FAILURE_INVALID when it is not a regular
 * file, FAILURE_LIMIT when `out_bytes` has no room, FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code file_end_read(const char *path,
    size_t maximum, struct bytes *out_bytes, bool *out_is_cut, struct failure *failure);

/* Appends the file's bytes to `out_bytes`. `follows_symlink` applies to the last part of the path
 * only. FAILURE_MISSING when there is no file, FAILURE_INVALID when it is not a regular file (or is
 * a symbolic link that must not be followed), FAILURE_LIMIT when it is longer than `ceiling` bytes
 * (the message tells the size), FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read(const char *path,
    bool follows_symlink, size_t ceiling, struct bytes *out_bytes, struct failure *failure);

/* Reads a file that holds one integer; surrounding blanks are allowed. FAILURE_MALFORMED when it
 * holds anything else, or an integer that does not fit. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read_integer(
    const char *path, int *out_value, struct failure *failure);

/* Lists directories whose entries are numbers (/proc, /proc/<pid>/task, /proc/self/fd) or are named
 * <prefix><number> (/dev/nvidia0). The async-signal-safe functions also allocate nothing, so that a
 * child between fork and exec may use them. */

/* Room for the longest path below. */
#define NUMBER_PATH_SIZE 64

/* Calls `visit` for each entry whose name is a number until it returns false. Other names are
 * ignored. False when the directory cannot be read. Async-signal-safe. */
bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context);

/* A zeroed struct is an empty list. */
struct number_list {
    int *items; /* ascending */
    size_t count;
    size_t capacity;
};

/* The numbers of the entries named <prefix><number>; `prefix` may be empty. The list is empty when
 * the directory cannot be read. The caller clears the result. */
struct number_list number_directory_list(const char *path, const char *prefix);
void number_list_clear(struct number_list *list);

/* Writes `before`, the number in decimal, and `after`. Async-signal-safe. */
void number_path_format(
    char path[NUMBER_PATH_SIZE], const char *before, int number, const char *after);

/* Removes a directory of this user's with everything that other processes have left in it. It
 * knows the directory by its inode, so that what has come to the same path since is left alone.
 * Links are not followed, other file systems are not entered, and there is an end however fast
 * somebody fills the directory meanwhile. It waits for the disk. */

/* Names in a directory in which every user may make files, but may remove only their own, such as
 * /tmp: another user can be faster, and put a symbolic link or a file of theirs where this program
 * is going to write. Such a name is not used. It is the rule of fs.protected_symlinks and
 * fs.protected_regular in Linux, which not every machine has switched on. */

/* FAILURE_INVALID when the path names another user's symbolic link or file in such a directory. A
 * directory there is fine, and so is what the owner of the shared directory has made. */
__attribute__((warn_unused_result)) enum failure_code shared_place_check(
    const char *path, struct failure *failure);

/* Makes an absolute path's directories with that mode, less what umask takes, parents first; those
 * that are there are left as they are. Failures name the path: FAILURE_INVALID when it is something
 * else than a directory, or as above, FAILURE_LIMIT when it is too long, FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code shared_place_make_directories(
    const char *path, unsigned mode, struct failure *failure);
/* The same failure, for who makes a directory in another way. */
enum failure_code shared_place_fail_to_make(const char *path, int error, struct failure *failure);

/* Makes a directory for this user alone. One that is there already is taken if nobody else can
 * write there or have put it there; FAILURE_INVALID otherwise. */
__attribute__((warn_unused_result)) enum failure_code shared_place_make_private(
    const char *path, struct failure *failure);

/* Opens a file with `flags`, and makes it if it is missing: in such a directory for this user
 * alone, elsewhere with the mode 0666, less what umask takes. Returns a descriptor, or -1 and a
 * failure: FAILURE_INVALID as above, else FAILURE_SYSTEM. No message names the path. */
int shared_place_open(const char *path, int flags, struct failure *failure);

/* Writes a new file, which takes the place of one of this name at once. Returns 0 or an errno. */
int shared_place_replace(const char *path, struct slice content);
/* A new file can take the place of nothing and of a regular file only: renaming over /dev/null
 * would succeed for root. */
bool shared_place_can_be_replaced(const char *path);
/* Writes into what is there, or a new file. A FIFO nobody reads is a failure, not a wait. Returns 0
 * or an errno. */
int shared_place_write(const char *path, struct slice content);

/* Removes a directory in which nobody has left anything but directories. It waits for the disk. */

/* Removes `path` and the directories below it, if there is nothing else. Links are not followed.
 * Returns whether it is gone. */
bool empty_directory_remove(const char *path);

/* Where temporary files go, in the order in which Python's tempfile looks: $TMPDIR, $TEMP, $TMP,
 * /tmp, /var/tmp, /usr/tmp and the working directory. Makes nothing. */

/* The place with this index; NULL: there are no more. Variables that are not set are left out.
 * `environment` is an environment, or NULL for this process's own. Does not look at the disk. */
const char *temporary_directory_candidate(const struct text_list *environment, size_t index);

/* The first of these places in which this process may make a file; /tmp where there is none. It is
 * for paths that others are told, so the working directory does not count. Looks at the disk. */
const char *temporary_directory_usable(const struct text_list *environment);

/* The directories in each other that one call removes. */
#define DIRECTORY_TREE_DEPTH_MAXIMUM 256

struct directory_tree {
    uint64_t device;
    uint64_t inode; /* 0: not known, nothing is removed */
};

/* Notes which directory is at `path` now. False, and an unknown tree, when it is none of this
 * user's. */
bool directory_tree_note(const char *path, struct directory_tree *out_tree);

/* Removes the tree, if it is still at `path`. Returns whether it is gone; errno says why
 * not. `out_bytes` is the memory
 * or disk space that its files took; it may be NULL. */
bool directory_tree_remove(
    const char *path, const struct directory_tree *tree, uint64_t *out_bytes);

/* The name of a file system that is never shared between machines, by the f_type of statfs(2); NULL
 * for others. */
const char *file_system_local_name(long type);

/* Files without a name, in memory (memfd): what an agent and its workers pass to each other. All
 * are close-on-exec. */

/* An empty file. Whoever shares the open file only appends to it, where `appends` is set. */
__attribute__((warn_unused_result)) enum failure_code memory_file_new(
    const char *name, bool appends, int *out_fd, struct failure *failure);

/* The same, appended to behind a head of `head` bytes, which are zero at first. The head stays:
 * nobody can make the file shorter, so it may be mapped. */
__attribute__((warn_unused_result)) enum failure_code memory_file_with_head(
    const char *name, size_t head, int *out_fd, struct failure *failure);

/* Writes all of it. */
__attribute__((warn_unused_result)) enum failure_code memory_file_write(
    int fd, struct slice bytes, struct failure *failure);

/* A file with these bytes, which nobody changes any more. */
__attribute__((warn_unused_result)) enum failure_code memory_file_of(
    const char *name, struct slice bytes, int *out_fd, struct failure *failure);

/* Appends what the file has from `start` on, up to `ceiling` bytes, to `out_bytes`, wherever others
 * are in it. */
void memory_file_read(int fd, size_t start, size_t ceiling, struct bytes *out_bytes);

/* Gives the memory between these places back, but for parts of pages. It reads as zeros then. */
void memory_file_forget(int fd, size_t start, size_t end);

size_t memory_file_length(int fd);

#endif
