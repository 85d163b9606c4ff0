/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/register/register_name.h"

#include <inttypes.h>
#include <string.h>

#include "base/keyed_hash.h"

#define HASH_LENGTH 18 /* with the two characters before it */

static void write_name(const char *id, const char *plain, const char *code, struct text *out) {
    for (const char *next = id; *next != '\0'; next++) {
        bool is_plain = (*next >= 'a' && *next <= 'z') || (*next >= 'A' && *next <= 'Z') ||
                        text_is_digit(*next) || strchr(plain, *next) != NULL;
        if (is_plain) {
            text_append_bytes(out, next, 1);
        } else {
            text_append_format(out, "%s%02x", code, (unsigned)(unsigned char)*next);
        }
    }
}

void register_name_write(const char *id, struct text *out) {
    write_name(id, ".-_", "%", out);
}

void register_name_write_short(const char *id, struct text *out) {
    static const uint64_t key[2] = {0}; /* the same on every node */
    struct text name = {0};
    write_name(id, ".-", "_", &name);
    if (name.length <= REGISTER_NAME_SHORT) {
        text_append(out, text_string(&name));
    } else {
        text_append_bytes(out, text_string(&name), REGISTER_NAME_SHORT - HASH_LENGTH);
        text_append_format(out, "__%016" PRIx64, keyed_hash(key, slice_from_string(id)));
    }
    text_clear(&name);
}
