/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as an agent's answer about stacks. What is accepted survives being written
 * and read again, and may be shown on a terminal. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/telling/stacks_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct folded_stacks folded = {0};
    if (stacks_json_read((struct slice){data, size}, size % 2 == 0, &folded) == FAILURE_NONE) {
        struct folded_stacks again = {0};
        struct text line = {0};
        struct text second = {0};
        FUZZ_REQUIRE(folded.count == 1);
        stacks_json_write(&folded.items[0], &line);
        FUZZ_REQUIRE(strcspn(text_string(&line), "\n\x1b\x7f") == line.length - 1);
        FUZZ_REQUIRE(
            stacks_json_read(slice_from_string(text_string(&line)), false, &again) == FAILURE_NONE);
        stacks_json_write(&again.items[0], &second);
        FUZZ_REQUIRE(strcmp(text_string(&line), text_string(&second)) == 0);
        folded_stacks_clear(&again);
        text_clear(&line);
        text_clear(&second);
    }
    folded_stacks_clear(&folded);
    return 0;
}
