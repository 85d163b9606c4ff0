/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what a program hands in: structs whose first field is their size, so that a program that
 * was built with an older or a newer header can be told from a mistake; texts; times. */
#ifndef MUSTER_LIBRARY_LIBRARY_SETTINGS_H
#define MUSTER_LIBRARY_LIBRARY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <muster/error.h>

#include "base/duration.h"

/* Copies the struct `given` to `out`, which has `size` bytes; `least` is the size in the first
 * version. What the program's header does not have yet is zero. What this library does not know has
 * to be zero: else MUSTER_ERROR_UNSUPPORTED. MUSTER_ERROR_INVALID for NULL, and for a struct that
 * was not begun with its initialiser. */
enum muster_error library_settings_read(
    const void *given, size_t least, void *out, size_t size, struct muster_failure *out_failure);

/* A text that has to be there, and is neither empty nor longer than `maximum`. */
enum muster_error library_text_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure);

/* Such a text, in UTF-8. */
enum muster_error library_utf8_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure);

/* A path that has to be there, and that the kernel can take. */
enum muster_error library_path_check(
    const char *what, const char *path, struct muster_failure *out_failure);

/* A machine's name or address: such a text in UTF-8, without spaces and control characters. */
enum muster_error library_host_check(
    const char *what, const char *host, size_t maximum, struct muster_failure *out_failure);

/* Seconds: negative is for ever, 0 is `zero`. MUSTER_ERROR_INVALID for what is no number. */
enum muster_error library_time_read(
    double seconds, struct duration zero, struct duration *out, struct muster_failure *out_failure);

/* How long a connection may be silent, in seconds; 0 is the default. MUSTER_ERROR_INVALID for less
 * than 2. */
enum muster_error library_silence_read(
    double seconds, struct duration *out, struct muster_failure *out_failure);

#endif
