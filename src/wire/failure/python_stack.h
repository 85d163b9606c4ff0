/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the call stacks of a CPython interpreter from its memory; the interpreter does not have to
 * help. The runtime state of CPython 3.13 and 3.14 begins with a table of offsets that is made for
 * debuggers (Include/internal/pycore_debug_offsets.h). The caller gives a function that reads
 * memory, so this module is pure. It trusts nothing it reads, because the process may go on running
 * meanwhile: every loop and every size has a ceiling. Free-threaded builds and other versions are
 * not supported. */
#ifndef MUSTER_WIRE_FAILURE_PYTHON_STACK_H
#define MUSTER_WIRE_FAILURE_PYTHON_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

struct python_layout;

/* Reads /proc/<pid>/maps line by line: which file a process has mapped at which address. */

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

/* The first bytes of the runtime state, at an address divisible by 8. */
#define PYTHON_RUNTIME_COOKIE "xdebugpy"

#define PYTHON_MAXIMUM_INTERPRETERS 16
#define PYTHON_MAXIMUM_THREADS 512
#define PYTHON_MAXIMUM_FRAMES 256
#define PYTHON_MAXIMUM_NAME 1024 /* characters */

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
    uint64_t offsets[96]; /* as in the process' memory; `layout` says which offset is which */
};

/* FAILURE_MALFORMED when the address holds no runtime state. FAILURE_UNSUPPORTED when the runtime
 * is of a version that this module does not know; the version in `out_runtime` is set then, too. */
__attribute__((warn_unused_result)) enum failure_code python_runtime_read(
    const struct python_memory *memory, uint64_t address, struct python_runtime *out_runtime);

struct python_frame {
    const char *file;     /* valid UTF-8 without control characters; so is the function's name */
    const char *function; /* qualified */
    int line;             /* 0: unknown */
};

/* `thread` is called for each thread of each interpreter, then `frame` for each of its frames, the
 * innermost first. If a callback returns false, the walk ends. */
struct python_visitor {
    bool (*thread)(void *context, uint64_t native_id);
    bool (*frame)(void *context, const struct python_frame *frame);
    void *context;
};

/* Walks the interpreters, threads and frames. Ends early where the memory makes no sense. */
void python_stack_walk(const struct python_memory *memory, const struct python_runtime *runtime,
    const struct python_visitor *visitor);

/* Reads the stacks that CPython's faulthandler writes of its own process (version 3.8 and later;
 * the form is that of Python/traceback.c). The text comes from a process that may be in any state,
 * so nothing in it is trusted: lines of another form are kept as words, control characters are
 * replaced, and everything has a ceiling. */

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
