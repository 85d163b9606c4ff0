/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as CUDA_VISIBLE_DEVICES. Every selected device must exist, and is selected
 * once. */
#include <stdlib.h>

#include "core/machine/cpu_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEVICES 5

static void check(const struct visible_devices *visible) {
    bool is_seen[DEVICES] = {false};
    for (size_t i = 0; i < visible->count; i++) {
        int ordinal = visible->ordinals[i];
        if (ordinal < 0 || ordinal >= DEVICES || is_seen[ordinal]) {
            abort();
        }
        is_seen[ordinal] = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text value = {0};
    text_append_bytes(&value, (const char *)data, size);
    struct text_list uuids = {0};
    for (int i = 0; i < DEVICES; i++) {
        text_list_add_taken(&uuids, text_format("GPU-%d%d", i / 2, i));
    }
    struct visible_devices visible;
    if (visible_devices_select(text_string(&value), DEVICES, &uuids, &visible) == FAILURE_NONE) {
        check(&visible);
        visible_devices_clear(&visible);
    }
    text_list_clear(&uuids);
    text_clear(&value);
    return 0;
}
