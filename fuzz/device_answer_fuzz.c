/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as what the workers' Python has answered. A reason is one line inside of
 * the text that can be shown, and a number is none below 0. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/machine/cpu_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = memory_allocate(size + 1);
    int count = -1;
    const char *reason = NULL;
    memcpy(text, data, size);
    enum device_answer answer = device_answer_read(text, &count, &reason);
    require((answer == DEVICE_ANSWER_COUNT) == (count >= 0));
    require(
        (answer == DEVICE_ANSWER_UNKNOWN || answer == DEVICE_ANSWER_TROUBLE) == (reason != NULL));
    require(reason == NULL || (reason > text && reason <= text + size));
    require(reason == NULL || strpbrk(reason, "\n\r\t\x1b\x7f") == NULL);
    free(text);
    return 0;
}
