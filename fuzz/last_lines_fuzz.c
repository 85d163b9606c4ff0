/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes arbitrary bytes as the end of a worker's output file. What is shown of it is bounded, and
 * has nothing that moves a cursor. The first byte says whether the file has more before the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "core/failure/failure_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct text *shown) {
    size_t lines = 0;
    for (size_t i = 0; i < shown->length; i++) {
        unsigned char byte = (unsigned char)shown->data[i];
        lines += byte == '\n' ? 1 : 0;
        if (byte == 0x7f || (byte < ' ' && byte != '\n' && byte != '\t')) {
            abort();
        }
    }
    if (lines > LAST_LINES_MAXIMUM || shown->length > LAST_LINES_WINDOW + 1 ||
        (shown->length > 0 && shown->data[shown->length - 1] != '\n')) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text shown = {0};
    if (size > 0) {
        last_lines_append((struct slice){data + 1, size - 1}, data[0] % 2 == 1, &shown);
        check(&shown);
    }
    text_clear(&shown);
    return 0;
}
