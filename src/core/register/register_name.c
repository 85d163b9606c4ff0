/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/register/register_name.h"

#include <string.h>

void register_name_write(const char *id, struct text *out) {
    for (const char *next = id; *next != '\0'; next++) {
        bool is_plain = (*next >= 'a' && *next <= 'z') || (*next >= 'A' && *next <= 'Z') ||
                        text_is_digit(*next) || strchr(".-_", *next) != NULL;
        if (is_plain) {
            text_append_bytes(out, next, 1);
        } else {
            text_append_format(out, "%%%02x", (unsigned)(unsigned char)*next);
        }
    }
}
