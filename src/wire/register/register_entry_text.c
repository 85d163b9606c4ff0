/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/register/register_entry_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "wire/json/json_document.h"

#define VERSION 1

static enum failure_code refuse(
    enum failure_code code, struct text *out_reason, const char *reason) {
    if (out_reason != NULL) {
        text_append(out_reason, reason);
    }
    return code;
}

static void write_member(struct text *out, const char *name, const char *value) {
    text_append_format(out, ", \"%s\": ", name);
    json_text_write(value, out);
}

void register_entry_write(const struct register_entry *entry, struct text *out) {
    struct bytes record = {0};
    if (base64_encode(bytes_slice(&entry->record), &record) != FAILURE_NONE) {
        abort(); /* the buffer has no ceiling */
    }
    text_append_format(out, "{\"muster_register\": %d, \"number\": %" PRId64 ", \"term\": %" PRId64,
        VERSION, entry->number, entry->term);
    write_member(out, "kind", register_entry_kind_name(entry->kind));
    write_member(out, "host", entry->host);
    if (entry->process[0] != '\0') {
        write_member(out, "process", entry->process);
    }
    write_member(out, "addresses", entry->addresses);
    write_member(out, "settings", entry->settings);
    write_member(out, "nonce", entry->nonce);
    text_append(out, ", \"record\": \"");
    text_append_bytes(out, (const char *)record.data, record.length);
    text_append(out, "\"}\n");
    bytes_clear(&record);
}

/* Returns NULL, and leaves nothing, when the member is no string. */
static char *take_text(const struct json_value *root, const char *name) {
    return memory_duplicate_string(json_value_text(json_value_member(root, name)));
}

static enum failure_code read_version(const struct json_value *root, struct text *out_reason) {
    int64_t version;
    if (!json_value_integer(json_value_member(root, "muster_register"), &version) || version < 1) {
        return refuse(FAILURE_MALFORMED, out_reason, "is no entry of Muster's");
    }
    return version == VERSION ? FAILURE_NONE
                              : refuse(FAILURE_UNSUPPORTED, out_reason,
                                    "was written by another version of Muster");
}

static enum failure_code read_record(
    const struct json_value *root, struct bytes *record, struct text *out_reason) {
    const char *text = json_value_text(json_value_member(root, "record"));
    if (text == NULL) {
        return refuse(FAILURE_MALFORMED, out_reason, "has no record");
    }
    enum failure_code code = base64_decode(slice_from_string(text), record);
    return code == FAILURE_NONE ? code : refuse(code, out_reason, "has a broken record");
}

/* What has another length is no text of 128 bits, and what is none is refused by the check. */
static void read_bits(
    const struct json_value *root, const char *name, char out_text[REGISTER_ENTRY_NONCE_SIZE]) {
    const char *text = json_value_text(json_value_member(root, name));
    if (text != NULL) {
        snprintf(out_text, REGISTER_ENTRY_NONCE_SIZE, "%s",
            strlen(text) == REGISTER_ENTRY_NONCE_SIZE - 1 ? text : "?");
    }
}

static enum failure_code read_members(
    const struct json_value *root, struct register_entry *entry, struct text *out_reason) {
    const char *kind = json_value_text(json_value_member(root, "kind"));
    entry->host = take_text(root, "host");
    entry->addresses = take_text(root, "addresses");
    entry->settings = take_text(root, "settings");
    read_bits(root, "nonce", entry->nonce);
    read_bits(root, "process", entry->process);
    if (!json_value_integer(json_value_member(root, "number"), &entry->number) ||
        !json_value_integer(json_value_member(root, "term"), &entry->term)) {
        return refuse(FAILURE_MALFORMED, out_reason, "has no number or no term");
    }
    if (kind == NULL || !register_entry_kind_parse(kind, &entry->kind)) {
        return refuse(FAILURE_MALFORMED, out_reason, "is of no known kind");
    }
    enum failure_code code = read_record(root, &entry->record, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = register_entry_check(entry);
    if (code == FAILURE_LIMIT) {
        return refuse(code, out_reason, "has a part that is too long");
    }
    return code == FAILURE_NONE
               ? code
               : refuse(FAILURE_MALFORMED, out_reason, "lacks a part, or has numbers out of range");
}

enum failure_code register_entry_read(
    struct slice input, struct register_entry *out_entry, struct text *out_reason) {
    struct json_document *document;
    struct register_entry entry = {0};
    enum failure_code code =
        json_document_parse(input, REGISTER_ENTRY_TEXT_MAXIMUM, &document, NULL);
    if (code != FAILURE_NONE) {
        return refuse(code, out_reason, code == FAILURE_LIMIT ? "is too long" : "is no JSON");
    }
    const struct json_value *root = json_document_root(document);
    code = read_version(root, out_reason);
    bytes_init(
        &entry.record, REGISTER_ENTRY_RECORD_MAXIMUM + 2); /* decoding asks for whole groups */
    if (code == FAILURE_NONE) {
        code = read_members(root, &entry, out_reason);
    }
    json_document_free(document);
    if (code == FAILURE_NONE) {
        *out_entry = entry;
    } else {
        register_entry_clear(&entry);
    }
    return code;
}
