/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"

void store_print_exact(struct muster_slice bytes) {
    if (bytes.length > 0 && isatty(STDOUT_FILENO) == 1) {
        char *shown = memory_duplicate(bytes.data, bytes.length);
        fwrite(shown, 1, utf8_make_printable(shown, bytes.length), stdout);
        free(shown);
    } else if (bytes.length > 0) {
        fwrite(bytes.data, 1, bytes.length, stdout);
    }
}

void store_print_line(struct muster_slice bytes) {
    for (size_t i = 0; i < bytes.length; i++) {
        uint8_t byte = ((const uint8_t *)bytes.data)[i];
        if (byte == '\\') {
            fputs("\\\\", stdout);
        } else if (byte >= 0x20 && byte < 0x7f) {
            putchar(byte);
        } else {
            printf("\\x%02x", byte);
        }
    }
    putchar('\n');
}
