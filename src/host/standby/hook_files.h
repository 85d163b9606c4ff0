/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of the hook of standby workers (client/standby) as part of this program: the build
 * makes the source of them. */
#ifndef MUSTER_HOST_STANDBY_HOOK_FILES_H
#define MUSTER_HOST_STANDBY_HOOK_FILES_H

#include <stddef.h>
#include <stdint.h>

struct hook_file {
    const char *name;    /* below the hook's directory; a directory comes before what is in it */
    const uint8_t *text; /* NULL: this is a directory */
    size_t length;
};

extern const struct hook_file hook_files[];
extern const size_t hook_file_count;

#endif
