/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what a program hands in: structs whose first field is their size, so that a program that
 * was built with an older or a newer header can be told from a mistake; texts; times. */
#ifndef MUSTER_LIBRARY_LIBRARY_SETTINGS_H
#define MUSTER_LIBRARY_LIBRARY_SETTINGS_H

#include <muster/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"

/* The failures of the house, as the public header muster/error.h words them. */

enum muster_error library_error(enum failure_code code);

/* Fills in `out_failure`, which may be NULL, and returns `error`. */
__attribute__((format(printf, 3, 4))) enum muster_error library_fail(
    struct muster_failure *out_failure, enum muster_error error, const char *format, ...);

/* The same with what a function of the house has said. */
enum muster_error library_pass_on(
    struct muster_failure *out_failure, const struct failure *failure);

/* What a function of the library asks before it works, so that it fails where there is no memory.
 * Small things have no failure in the house: see base/memory.h. */

/* MUSTER_ERROR_MEMORY where there is not enough for the small things of one step. */
enum muster_error library_memory_check(struct muster_failure *out_failure);

/* The same as errno, for functions that have no other error. */
bool library_memory_is_there(void);

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

/* What every function of an embedded server asks first. */

/* `loop` is the server's, or NULL where the program has handed in no server: MUSTER_ERROR_INVALID.
 * MUSTER_ERROR_FORKED in a child of the process that has made it. */
enum muster_error library_server_check(
    const struct embedded_loop *loop, struct muster_failure *out_failure);

/* The same, and MUSTER_ERROR_STATE from inside a callback of the server's. */
enum muster_error library_server_check_outside(
    const struct embedded_loop *loop, struct muster_failure *out_failure);

/* The same, and then does what there is to do; MUSTER_ERROR_MEMORY where that needs more than there
 * is. */
enum muster_error library_server_process(
    struct embedded_loop *loop, struct muster_failure *out_failure);

#endif
