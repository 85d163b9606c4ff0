/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/kfd_properties.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct slice next_line(struct slice *rest) {
    struct slice line = {.data = rest->data};
    while (line.length < rest->length && rest->data[line.length] != '\n') {
        line.length++;
    }
    size_t used = line.length + (line.length < rest->length ? 1 : 0);
    rest->data += used;
    rest->length -= used;
    return line;
}

/* The number after "<name> ", up to the end of the line. */
static bool parse_property(struct slice line, const char *name, uint64_t *out_value) {
    size_t start = strlen(name) + 1;
    if (line.length <= start || memcmp(line.data, name, start - 1) != 0 ||
        line.data[start - 1] != ' ') {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = start; i < line.length; i++) {
        unsigned digit = (unsigned)line.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return true;
}

struct kfd_properties kfd_properties_parse(struct slice text) {
    struct kfd_properties properties = {0};
    const struct {
        const char *name;
        uint64_t *value;
    } known[] = {
        {"simd_count", &properties.simd_count},
        {"drm_render_minor", &properties.drm_render_minor},
        {"domain", &properties.domain},
        {"location_id", &properties.location_id},
        {"unique_id", &properties.unique_id},
    };
    while (text.length > 0) {
        struct slice line = next_line(&text);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (parse_property(line, known[i].name, known[i].value)) {
                break;
            }
        }
    }
    return properties;
}
