/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_print.h"

#include <stdio.h>

void store_print_exact(struct slice bytes) {
    if (bytes.length > 0) {
        fwrite(bytes.data, 1, bytes.length, stdout);
    }
}

void store_print_line(struct slice bytes) {
    for (size_t i = 0; i < bytes.length; i++) {
        uint8_t byte = bytes.data[i];
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
