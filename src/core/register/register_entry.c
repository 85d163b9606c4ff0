/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/register/register_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

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

/* Entry. */

static const char *const kind_names[] = {
    [REGISTER_ENTRY_CLAIM] = "claim",
    [REGISTER_ENTRY_COMMIT] = "commit",
    [REGISTER_ENTRY_HANDOVER] = "handover",
    [REGISTER_ENTRY_CLOSE] = "close",
};

void register_entry_clear(struct register_entry *entry) {
    free(entry->host);
    free(entry->addresses);
    free(entry->settings);
    bytes_clear(&entry->record);
    *entry = (struct register_entry){0};
}

void register_entry_copy(const struct register_entry *entry, struct register_entry *out_entry) {
    *out_entry = *entry;
    out_entry->host = memory_duplicate_string(entry->host);
    out_entry->addresses = memory_duplicate_string(entry->addresses);
    out_entry->settings = memory_duplicate_string(entry->settings);
    out_entry->record = (struct bytes){0};
    if (bytes_append(&out_entry->record, entry->record.data, entry->record.length) !=
        FAILURE_NONE) {
        abort(); /* the copy has no ceiling */
    }
}

static bool is_nonce(const char *nonce) {
    return strlen(nonce) == REGISTER_ENTRY_NONCE_SIZE - 1 &&
           strspn(nonce, "0123456789abcdef") == REGISTER_ENTRY_NONCE_SIZE - 1;
}

static bool is_longer(const char *text, size_t maximum) {
    return text != NULL && strlen(text) > maximum;
}

enum failure_code register_entry_check(const struct register_entry *entry) {
    if (entry->number < 1 || entry->number > REGISTER_ENTRY_HIGHEST_NUMBER || entry->term < 1 ||
        entry->term > entry->number || entry->host == NULL || *entry->host == '\0' ||
        entry->addresses == NULL || entry->settings == NULL || !is_nonce(entry->nonce) ||
        (entry->process[0] != '\0' && !is_nonce(entry->process))) {
        return FAILURE_INVALID;
    }
    bool is_too_long = is_longer(entry->host, REGISTER_ENTRY_HOST_MAXIMUM) ||
                       is_longer(entry->addresses, REGISTER_ENTRY_ADDRESSES_MAXIMUM) ||
                       is_longer(entry->settings, REGISTER_ENTRY_SETTINGS_MAXIMUM) ||
                       entry->record.length > REGISTER_ENTRY_RECORD_MAXIMUM;
    return is_too_long ? FAILURE_LIMIT : FAILURE_NONE;
}

const char *register_entry_kind_name(enum register_entry_kind kind) {
    return kind_names[kind];
}

bool register_entry_kind_parse(const char *name, enum register_entry_kind *out_kind) {
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++) {
        if (text_equals(name, kind_names[i])) {
            *out_kind = (enum register_entry_kind)i;
            return true;
        }
    }
    return false;
}

void register_entry_write_nonce(
    uint64_t high, uint64_t low, char out_nonce[REGISTER_ENTRY_NONCE_SIZE]) {
    snprintf(out_nonce, REGISTER_ENTRY_NONCE_SIZE, "%016" PRIx64 "%016" PRIx64, high, low);
}
