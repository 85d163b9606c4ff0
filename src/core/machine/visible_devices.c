/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/visible_devices.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/utf8.h"

/* The most devices of a machine. Every device index is smaller. */
#define VISIBLE_DEVICES_CEILING 4096

/* No device has a larger number. */
#define ORDINAL_CLAMP (INT64_C(1) << 40)

/* Iterates over the entries of a comma-separated list. An empty text has one empty entry. */
struct entries {
    const char *rest; /* NULL: there is no further entry */
};

static struct slice next_entry(struct entries *entries) {
    const char *start = entries->rest;
    const char *comma = strchr(start, ',');
    entries->rest = comma != NULL ? comma + 1 : NULL;
    size_t length = comma != NULL ? (size_t)(comma - start) : strlen(start);
    return (struct slice){.data = (const uint8_t *)start, .length = length};
}

/* The number at the start of an entry; -1 when there is none or it is negative. */
static int64_t ordinal_at_start(struct slice entry) {
    size_t i = 0;
    while (i < entry.length &&
           (entry.data[i] == ' ' || (entry.data[i] >= '\t' && entry.data[i] <= '\r'))) {
        i++;
    }
    if (i < entry.length && entry.data[i] == '+') {
        i++;
    }
    int64_t ordinal = -1;
    for (; i < entry.length && text_is_digit(entry.data[i]); i++) {
        ordinal = (ordinal < 0 ? 0 : ordinal) * 10 + (entry.data[i] - '0');
        if (ordinal > ORDINAL_CLAMP) {
            ordinal = ORDINAL_CLAMP;
        }
    }
    return ordinal;
}

/* The one device whose UUID starts with the entry; -1 when there is none or several. */
static int64_t ordinal_of_uuid(struct slice entry, const struct text_list *uuids) {
    int64_t ordinal = -1;
    for (size_t i = 0; i < uuids->count; i++) {
        if (slice_starts_with(slice_from_string(uuids->items[i]), entry)) {
            if (ordinal >= 0) {
                return -1;
            }
            ordinal = (int64_t)i;
        }
    }
    return ordinal;
}

/* Remembers the key. Returns false when the key was remembered already. */
static bool remember(struct table *seen, struct slice key) {
    if (table_get(seen, key) != NULL) {
        return false;
    }
    table_put(seen, key, seen); /* any pointer but NULL will do */
    return true;
}

static bool remember_ordinal(struct table *seen, int64_t ordinal) {
    return remember(
        seen, (struct slice){.data = (const uint8_t *)&ordinal, .length = sizeof ordinal});
}

/* PyTorch reads the whole list before it compares it with the devices. So an entry that names no
 * device ends the list of visible devices, but a repeated entry after it still means that no device
 * is visible. */
static void select_ordinals(
    const char *value, size_t physical_count, struct visible_devices *visible) {
    struct table *seen = table_new(NULL);
    struct entries entries = {.rest = value};
    bool is_open = true;
    while (entries.rest != NULL) {
        int64_t ordinal = ordinal_at_start(next_entry(&entries));
        if (ordinal < 0) {
            break;
        }
        if (!remember_ordinal(seen, ordinal)) {
            visible->count = 0;
            break;
        }
        is_open = is_open && ordinal < (int64_t)physical_count;
        if (is_open) {
            visible->ordinals[visible->count++] = (int)ordinal;
        }
    }
    table_free(seen);
}

static void select_uuids(
    const char *value, const struct text_list *uuids, struct visible_devices *visible) {
    struct table *seen_entries = table_new(NULL);
    struct table *seen_ordinals = table_new(NULL);
    struct entries entries = {.rest = value};
    bool is_open = true;
    while (entries.rest != NULL) {
        struct slice entry = next_entry(&entries);
        if (!slice_starts_with(entry, slice_from_string("GPU-"))) {
            break;
        }
        int64_t ordinal = is_open ? ordinal_of_uuid(entry, uuids) : -1;
        is_open = ordinal >= 0;
        if (!remember(seen_entries, entry) ||
            (is_open && !remember_ordinal(seen_ordinals, ordinal))) {
            visible->count = 0;
            break;
        }
        if (is_open) {
            visible->ordinals[visible->count++] = (int)ordinal;
        }
    }
    table_free(seen_entries);
    table_free(seen_ordinals);
}

enum failure_code visible_devices_select(const char *value, size_t physical_count,
    const struct text_list *uuids, struct visible_devices *out_visible) {
    if (physical_count > VISIBLE_DEVICES_CEILING) {
        return FAILURE_LIMIT;
    }
    bool names_uuids = value != NULL && text_starts_with(value, "GPU-");
    if (value != NULL && text_starts_with(value, "MIG-")) {
        return FAILURE_UNSUPPORTED;
    }
    if (names_uuids && (uuids == NULL || uuids->count != physical_count)) {
        return FAILURE_MISSING;
    }
    struct visible_devices visible = {
        .ordinals = memory_allocate(physical_count * sizeof *visible.ordinals)};
    if (value == NULL) {
        for (; visible.count < physical_count; visible.count++) {
            visible.ordinals[visible.count] = (int)visible.count;
        }
    } else if (names_uuids) {
        select_uuids(value, uuids, &visible);
    } else {
        select_ordinals(value, physical_count, &visible);
    }
    *out_visible = visible;
    return FAILURE_NONE;
}

void visible_devices_clear(struct visible_devices *visible) {
    free(visible->ordinals);
    *visible = (struct visible_devices){0};
}

/* Kfd properties. */

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

/* Answers. */

#define ANSWER_MARK "\nmuster-devices "

enum device_answer device_answer_read(char *text, int *out_count, const char **out_reason) {
    char *line = NULL;
    int64_t count;
    for (char *found = strstr(text, ANSWER_MARK); found != NULL;
         found = strstr(line, ANSWER_MARK)) {
        line = found + strlen(ANSWER_MARK);
    }
    if (line == NULL) {
        return DEVICE_ANSWER_NONE;
    }
    line[strcspn(line, "\n")] = '\0';
    utf8_make_line_printable(line);
    if (*line == '!' || *line == '?') {
        *out_reason = line + 1;
        return *line == '!' ? DEVICE_ANSWER_TROUBLE : DEVICE_ANSWER_UNKNOWN;
    }
    if (text_parse_integer(line, &count) != FAILURE_NONE || count < 0 || count > INT_MAX) {
        return DEVICE_ANSWER_NONE;
    }
    *out_count = (int)count;
    return DEVICE_ANSWER_COUNT;
}
