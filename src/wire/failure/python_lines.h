/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the line table of a CPython code object (co_linetable of Python 3.11 and later). The table
 * says which source line an instruction belongs to. Compare Objects/locations.md in CPython. */
#ifndef MUSTER_WIRE_FAILURE_PYTHON_LINES_H
#define MUSTER_WIRE_FAILURE_PYTHON_LINES_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

/* Finds the line of the instruction that is `offset` bytes into a function whose first line is
 * `first_line`. FAILURE_MISSING when the instruction has no line or lies beyond the table,
 * FAILURE_MALFORMED when the table is invalid. */
__attribute__((warn_unused_result)) enum failure_code python_lines_find(
    struct slice table, int first_line, uint64_t offset, int *out_line);

#endif
