/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what `py-spy dump` prints about a process, to find the place where its main thread is. */
#ifndef MUSTER_WIRE_FAILURE_PY_SPY_DUMP_H
#define MUSTER_WIRE_FAILURE_PY_SPY_DUMP_H

#include <stdint.h>

#include "base/bytes.h"

/* The innermost frame of the thread `thread`, or of the thread that py-spy calls "MainThread":
 * "train.py:17 in step". NULL when the dump has no such frame. The caller frees the result. */
char *py_spy_dump_place(struct slice dump, int64_t thread);

#endif
