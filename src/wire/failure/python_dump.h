/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the stacks that CPython's faulthandler writes of its own process (version 3.8 and later;
 * the form is that of Python/traceback.c). The text comes from a process that may be in any state,
 * so nothing in it is trusted: lines of another form are kept as words, control characters are
 * replaced, and everything has a ceiling. */
#ifndef MUSTER_WIRE_FAILURE_PYTHON_DUMP_H
#define MUSTER_WIRE_FAILURE_PYTHON_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"

/* Reads what `py-spy dump` prints about a process, to find the place where its main thread is. */

/* The innermost frame of the thread `thread`, or of the thread that py-spy calls "MainThread":
 * "train.py:17 in step". NULL when the dump has no such frame. The caller frees the result. */
char *py_spy_dump_place(struct slice dump, int64_t thread);

/* A dump of 100 threads with 30 frames each takes a third of this. The rest is not read. */
#define PYTHON_DUMP_CEILING (1024 * 1024)

/* Describes the dump in the form of a report of evidence. Faulthandler names threads by numbers
 * that only the process itself knows; the kernel's number is known for one of them: `asked_thread`,
 * which wrote the dump and which it calls the current one. `process` is the number of the first
 * thread.
 *
 * *out_stack becomes the frames of the first thread, at most HANG_SUMMARY_FRAMES_MAXIMUM, the
 * innermost one first, as lines "train.py:17 in step", which the caller frees, or NULL when the
 * dump does not show that thread (CPython shows 100). Returns the number of frames. */
size_t python_dump_describe(struct slice dump, int64_t asked_thread, int64_t process,
    struct text *out_words, char **out_stack);

#endif
