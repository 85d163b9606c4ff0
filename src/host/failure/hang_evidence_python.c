/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence_python.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/failure/memory_map.h"
#include "wire/failure/python_stack.h"
#include "wire/failure/socket_table.h"

#define MAPS_CEILING (8 * 1024 * 1024)
/* The mapping with the interpreter's variables is much smaller. */
#define MAPPING_CEILING (64 * 1024 * 1024)
#define PIECE_SIZE 65536
#define PATH_SIZE 64
#define COOKIE_ALIGNMENT 8

struct python_look {
    struct hang_report *report;
    pid_t pid;
    int memory_fd;
    char executable[PATH_MAX];
    uint64_t native_id; /* of the current thread */
    size_t frame_count; /* number of frames reported so far, of all threads */
    bool has_place;
    const char *otherwise;
    char **place;
};

/* This uses pread of /proc/<pid>/mem instead of process_vm_readv. If the process holds its
 * memory lock in an uninterruptible sleep, a thread that waits for the lock in pread can still
 * be ended. */
static bool read_memory(void *context, uint64_t address, void *buffer, size_t size) {
    const struct python_look *look = context;
    return address <= INT64_MAX && !hang_report_is_over(look->report) &&
           pread(look->memory_fd, buffer, size, (off_t)address) == (ssize_t)size;
}

/* Writing the stacks. */

static bool tell_thread(void *context, uint64_t native_id) {
    struct python_look *look = context;
    look->native_id = native_id;
    text_append_format(&look->report->text, "  Python thread %" PRIu64 ":\n", native_id);
    return true;
}

static bool tell_frame(void *context, const struct python_frame *frame) {
    struct python_look *look = context;
    text_append_format(
        &look->report->text, "    %s:%d in %s\n", frame->file, frame->line, frame->function);
    if (!look->has_place && look->native_id == (uint64_t)look->pid) {
        look->has_place = true;
        *look->place = text_format("%s:%d in %s", frame->file, frame->line, frame->function);
    }
    look->frame_count++;
    return true;
}

static bool tell_stacks(struct python_look *look, const struct python_runtime *runtime) {
    const struct python_memory memory = {read_memory, look};
    const struct python_visitor visitor = {tell_thread, tell_frame, look};
    text_append_format(&look->report->text, "  CPython %d.%d.%d, innermost frames first\n",
        runtime->major, runtime->minor, runtime->micro);
    python_stack_walk(&memory, runtime, &visitor);
    hang_report_flush(look->report);
    return look->frame_count > 0;
}

/* Finding the runtime's state. */

static bool try_address(struct python_look *look, uint64_t address, bool *out_is_told) {
    const struct python_memory memory = {read_memory, look};
    struct python_runtime runtime;
    enum failure_code code = python_runtime_read(&memory, address, &runtime);
    *out_is_told = false;
    if (code == FAILURE_NONE) {
        *out_is_told = tell_stacks(look, &runtime);
    } else if (code == FAILURE_UNSUPPORTED) {
        text_append_format(&look->report->text,
            "  CPython %d.%d.%d: the stacks of this build cannot be read; %s\n", runtime.major,
            runtime.minor, runtime.micro, look->otherwise);
    }
    return code == FAILURE_NONE || code == FAILURE_UNSUPPORTED;
}

static bool search_mapping(
    struct python_look *look, const struct memory_mapping *mapping, bool *out_is_told) {
    uint8_t *piece = memory_allocate(PIECE_SIZE);
    bool is_found = false;
    for (uint64_t at = mapping->start; at < mapping->end && !is_found; at += PIECE_SIZE) {
        uint64_t left = mapping->end - at;
        size_t size = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
        if (!read_memory(look, at, piece, size)) {
            break;
        }
        for (size_t i = 0; i + COOKIE_ALIGNMENT <= size && !is_found; i += COOKIE_ALIGNMENT) {
            is_found = memcmp(piece + i, PYTHON_RUNTIME_COOKIE, COOKIE_ALIGNMENT) == 0 &&
                       try_address(look, at + i, out_is_told);
        }
    }
    free(piece);
    return is_found;
}

static bool may_hold_runtime(const struct python_look *look, const struct memory_mapping *mapping) {
    return mapping->is_readable && mapping->is_writable &&
           mapping->end - mapping->start <= MAPPING_CEILING &&
           (memory_mapping_is_file(mapping, "python") ||
               memory_mapping_is_file(mapping, "libpython") ||
               slice_equals(mapping->path, slice_from_string(look->executable)));
}

static bool search_process(struct python_look *look, struct slice maps) {
    struct slice line;
    bool is_python = false;
    bool is_told = false;
    while (socket_table_next_line(&maps, &line)) {
        struct memory_mapping mapping;
        if (memory_map_read_line(line, &mapping) != FAILURE_NONE) {
            continue;
        }
        is_python = is_python || memory_mapping_is_file(&mapping, "python") ||
                    memory_mapping_is_file(&mapping, "libpython");
        if (may_hold_runtime(look, &mapping) && search_mapping(look, &mapping, &is_told)) {
            return is_told;
        }
    }
    if (is_python) {
        text_append_format(&look->report->text,
            "  Python without a table for debuggers (before CPython 3.13): its stacks cannot be "
            "read; %s\n",
            look->otherwise);
    }
    return false;
}

bool hang_evidence_write_python(
    struct hang_report *report, pid_t pid, const char *otherwise, char **out_place) {
    struct python_look look = {
        .report = report, .pid = pid, .otherwise = otherwise, .place = out_place};
    char path[PATH_SIZE];
    struct bytes maps = {0};
    bool is_told = false;
    *out_place = NULL;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, look.executable, sizeof look.executable - 1);
    look.executable[length < 0 ? 0 : length] = '\0';
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    look.memory_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (look.memory_fd < 0 && errno != ENOENT) {
        hang_report_append_error(report, "memory, with Python's stacks,", errno);
    }
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    if (look.memory_fd >= 0 && hang_report_read(path, MAPS_CEILING, &maps)) {
        is_told = search_process(&look, bytes_slice(&maps));
    }
    if (look.memory_fd >= 0) {
        close(look.memory_fd);
    }
    bytes_clear(&maps);
    hang_report_flush(report);
    return is_told;
}
