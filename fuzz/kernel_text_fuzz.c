/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the same text to every reader of the kernel's texts, and checks what their headers
 * promise. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "wire/failure/kernel_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct slice text = {data, size};
    struct kernel_process_stat stat;
    if (kernel_text_read_stat(text, &stat) == FAILURE_NONE) {
        require(stat.pid >= -INT32_MAX && stat.pid <= INT32_MAX);
        require(stat.wait_status >= 0 && stat.wait_status <= 0xffff);
    }
    struct kernel_oom_kill kill;
    if (kernel_text_read_oom_kill(text, &kill) == FAILURE_NONE) {
        require(kill.pid > 0 && kill.pid <= INT32_MAX);
    }
    uint64_t value;
    if (kernel_text_read_counter(text, "oom_kill", &value) == FAILURE_NONE) {
        require(size > sizeof "oom_kill");
    }
    uint64_t signals;
    if (kernel_text_read_signals(text, "SigBlk", &signals) == FAILURE_NONE) {
        require(size >= sizeof "SigBlk:0123456789abcdef");
    }
    struct slice path;
    if (kernel_text_find_cgroup(text, "memory", &path) == FAILURE_NONE ||
        kernel_text_find_cgroup(text, "", &path) == FAILURE_NONE) {
        require(path.data >= data && path.data + path.length <= data + size);
    }
    return 0;
}
