/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses the input as a process' memory, with a runtime's state at address 8, and walks its stacks;
 * then uses it as a line table. Addresses beyond the input wrap around, so that walks continue. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/failure/python_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAXIMUM_TOLD 20000

struct process {
    const uint8_t *data;
    size_t size;
    size_t told;
};

static void require(int condition) {
    if (!condition) {
        abort();
    }
}

static bool read_memory(void *context, uint64_t address, void *buffer, size_t size) {
    const struct process *process = context;
    uint8_t *bytes = buffer;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = process->data[(address + i) % process->size];
    }
    return process->size > 0;
}

static bool tell_thread(void *context, uint64_t native_id) {
    struct process *process = context;
    (void)native_id;
    return ++process->told < MAXIMUM_TOLD;
}

static bool tell_frame(void *context, const struct python_frame *frame) {
    struct process *process = context;
    require(strlen(frame->file) <= 4 * PYTHON_MAXIMUM_NAME);
    require(strlen(frame->function) <= 4 * PYTHON_MAXIMUM_NAME);
    require(frame->line >= 0);
    return ++process->told < MAXIMUM_TOLD;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct process process = {data, size, 0};
    struct python_memory memory = {read_memory, &process};
    struct python_visitor visitor = {tell_thread, tell_frame, &process};
    struct python_runtime runtime;
    if (size > 0 && python_runtime_read(&memory, 8, &runtime) == FAILURE_NONE) {
        python_stack_walk(&memory, &runtime, &visitor);
    }
    return 0;
}
