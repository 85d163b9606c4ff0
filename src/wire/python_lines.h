/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the line table of a CPython code object (co_linetable of Python 3.11 and later): which line
 * of the source an instruction belongs to. Compare Objects/locations.md in CPython. */
#ifndef MUSTER_WIRE_PYTHON_LINES_H
#define MUSTER_WIRE_PYTHON_LINES_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

/* The line of the instruction `offset` bytes into the code of a function that begins at
 * `first_line`. FAILURE_MISSING when the instruction has no line or lies beyond the table,
 * FAILURE_MALFORMED when the table is none. */
__attribute__((warn_unused_result)) enum failure_code python_lines_find(
    struct slice table, int first_line, uint64_t offset, int *out_line);

#endif
