/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a dump of faulthandler. What is said of them must be fit for a terminal,
 * a stack must be one line, and neither may be much longer than the input. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_input.h"
#include "core/failure/failure_report.h"
#include "wire/failure/python_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_printable(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        FUZZ_REQUIRE((unsigned char)text[i] >= ' ' || text[i] == '\n' || text[i] == '\t');
        FUZZ_REQUIRE(text[i] != 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int64_t asked = 4711; asked <= 4712; asked++) {
        struct text words = {0};
        char *stack = NULL;
        size_t frames =
            python_dump_describe((struct slice){data, size}, asked, 4711, &words, &stack);
        FUZZ_REQUIRE(frames <= size);
        FUZZ_REQUIRE(words.length <= 8 * size + 64);
        if (words.length > 0) {
            require_printable(words.data, words.length);
        }
        if (stack != NULL) {
            FUZZ_REQUIRE(frames > 0 && strlen(stack) <= size + HANG_SUMMARY_FRAMES_MAXIMUM);
            require_printable(stack, strlen(stack));
            free(stack);
        }
        text_clear(&words);
    }
    return 0;
}
