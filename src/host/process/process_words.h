/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process says about itself in /proc: its environment and its command line. Both are the
 * process's own words, and may be whatever it likes. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_WORDS_H
#define MUSTER_HOST_PROCESS_PROCESS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The most bytes of an environment that are read. The kernel's limit is a quarter of the stack's (2
 * MiB). */
#define PROCESS_WORDS_ENVIRONMENT_CEILING (4 << 20)

/* Reads /proc/<pid>/<file> up to `size` bytes; 0 when permission is missing or there is no such
 * file. `file` begins with a slash. */
size_t process_words_read(pid_t pid, const char *file, char *buffer, size_t size);

/* What stands behind `start` (NAME=… as far as it is to be the same) in the first of the NUL-ended
 * strings that begins with it: the rest of that string, which ends with a NUL or with the
 * environment. NULL: there is no such string. */
const char *process_words_variable(
    const char *start, const char *environment, size_t length, size_t *out_rest_length);

/* The same for the environment of a process; `out_rest` gets as much as fits, and a NUL. False:
 * there is no such variable, or it is not shown. */
bool process_words_find(pid_t pid, const char *start, char *out_rest, size_t size);

/* The command line in one line of printable characters, for people, cut where it is long. The name
 * of the program where there is none, "?" where that is not shown either. The caller frees it. */
char *process_words_command(pid_t pid);

#endif
