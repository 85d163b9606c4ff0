/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc/<pid>/maps line by line: which file a process has mapped at which address. */
#ifndef MUSTER_WIRE_FAILURE_MEMORY_MAP_H
#define MUSTER_WIRE_FAILURE_MEMORY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

struct memory_mapping {
    uint64_t start;
    uint64_t end; /* beyond the last byte; greater than start */
    bool is_readable;
    bool is_writable;
    struct slice path; /* points into the line; empty for memory that is no file */
};

/* FAILURE_MALFORMED for lines of another form. */
__attribute__((warn_unused_result)) enum failure_code memory_map_read_line(
    struct slice line, struct memory_mapping *out_mapping);

/* Whether the file name (the last part of the path) begins with `start`. */
bool memory_mapping_is_file(const struct memory_mapping *mapping, const char *start);

#endif
