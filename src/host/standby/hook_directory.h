/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory that is put in front of PYTHONPATH, in which Python finds the hook of standby
 * workers (client/standby). It is the installed one, <prefix>/share/muster/standby beside
 * <prefix>/bin/muster. Where that is missing or not whole, or another user than root, this one and
 * the program's could have changed it, the hook that is part of this program is
 * written into a new directory of this user's in the directory for temporary files. */
#ifndef MUSTER_HOST_STANDBY_HOOK_DIRECTORY_H
#define MUSTER_HOST_STANDBY_HOOK_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/files.h"

/* The files of the hook as part of this program. The build makes the source of them
 * (tools/embed_hook.py). */
struct hook_file {
    const char *name;    /* below the hook's directory; a directory comes before what is in it */
    const uint8_t *text; /* NULL: this is a directory */
    size_t length;
};

extern const struct hook_file hook_files[];
extern const size_t hook_file_count;

struct hook_directory {
    char *path;
    bool is_private; /* it was made here, and goes at the end */
    struct directory_tree tree;
};

/* The disk may be dead: all is done on a thread that is left behind after `patience`, and fails
 * with FAILURE_TIMEOUT then. `program` is the path of the running program, "/proc/self/exe".
 * `temporary` is the directory for temporary files. */
__attribute__((warn_unused_result)) enum failure_code hook_directory_open_within(
    struct duration patience, const char *program, const char *temporary,
    struct hook_directory *out_directory, struct failure *failure);
/* Makes a private one anew where it, or the hook in it, was removed. */
__attribute__((warn_unused_result)) enum failure_code hook_directory_renew_within(
    struct duration patience, struct hook_directory *directory, bool *out_is_renewed,
    struct failure *failure);
/* Removes a private directory with what Python has put beside the hook. */
void hook_directory_close_within(struct duration patience, struct hook_directory *directory);

#endif
