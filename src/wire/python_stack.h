/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the call stacks of a CPython interpreter out of its memory, without its help: CPython 3.13
 * and 3.14 begin their runtime state with a table of where everything lies, made for debuggers
 * (Include/internal/pycore_debug_offsets.h). Memory comes from a function, so this is pure; nothing
 * read is trusted: the process may run on while it is looked at, and every loop and size has a
 * ceiling. Free-threaded builds and other versions are not read. */
#ifndef MUSTER_WIRE_PYTHON_STACK_H
#define MUSTER_WIRE_PYTHON_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

/* The first bytes of the runtime state, at an address divisible by 8. */
#define PYTHON_RUNTIME_COOKIE "xdebugpy"

#define PYTHON_MAXIMUM_INTERPRETERS 16
#define PYTHON_MAXIMUM_THREADS 512
#define PYTHON_MAXIMUM_FRAMES 256
#define PYTHON_MAXIMUM_NAME 1024 /* characters */
#define PYTHON_MAXIMUM_LINE_TABLE (256 * 1024)

/* Memory of another process. `read` fills all of `buffer` or returns false. */
struct python_memory {
    bool (*read)(void *context, uint64_t address, void *buffer, size_t size);
    void *context;
};

struct python_runtime {
    uint64_t address;
    int major;
    int minor;
    int micro;
    const struct python_layout *layout;
    uint64_t offsets[96]; /* as the process has them; `layout` says which is which */
};

/* FAILURE_MALFORMED when no runtime state begins there, FAILURE_UNSUPPORTED when it is not one this
 * module knows; then the version in `out_runtime` is set all the same. */
__attribute__((warn_unused_result)) enum failure_code python_runtime_read(
    const struct python_memory *memory, uint64_t address, struct python_runtime *out_runtime);

struct python_frame {
    const char *file;     /* valid UTF-8 without control characters, as the function's name */
    const char *function; /* qualified */
    int line;             /* 0: not known */
};

/* Told of each thread of each interpreter, then of its frames, the innermost first. False ends the
 * walk. */
struct python_visitor {
    bool (*thread)(void *context, uint64_t native_id);
    bool (*frame)(void *context, const struct python_frame *frame);
    void *context;
};

/* Walks as far as memory makes sense. */
void python_stack_walk(const struct python_memory *memory, const struct python_runtime *runtime,
    const struct python_visitor *visitor);

#endif
