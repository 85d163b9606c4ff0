/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/register/register_entry_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Kubernetes object. */

#define STATUS_MAXIMUM ((size_t)64 << 10)
#define EVENT_MAXIMUM (KUBERNETES_OBJECT_MAXIMUM + 1024)
#define WORDS_MAXIMUM 300

struct kubernetes_object {
    struct json_document *document;
    enum kubernetes_kind kind;
};

static const struct {
    const char *version;
    const char *name;
} kinds[] = {
    [KUBERNETES_CONFIG_MAP] = {"v1", "ConfigMap"},
    [KUBERNETES_LEASE] = {"coordination.k8s.io/v1", "Lease"},
};

static struct json_value *root_of(const struct kubernetes_object *object) {
    return json_document_root(object->document);
}

static struct json_value *metadata_of(const struct kubernetes_object *object) {
    return json_value_member(root_of(object), "metadata");
}

static struct kubernetes_object *object_of(
    struct json_document *document, enum kubernetes_kind kind) {
    struct kubernetes_object *object = memory_allocate(sizeof *object);
    *object = (struct kubernetes_object){document, kind};
    return object;
}

struct kubernetes_object *kubernetes_object_new(enum kubernetes_kind kind, const char *name) {
    struct json_document *document;
    if (json_document_parse(slice_from_string("{}"), 2, &document, NULL) != FAILURE_NONE) {
        abort(); /* it is JSON */
    }
    struct json_value *root = json_document_root(document);
    json_value_set_text(root, "apiVersion", kinds[kind].version);
    json_value_set_text(root, "kind", kinds[kind].name);
    struct json_value *metadata = json_value_set_object(root, "metadata");
    json_value_set_text(metadata, "name", name);
    json_value_set_text(
        json_value_set_object(metadata, "labels"), KUBERNETES_LABEL, KUBERNETES_LABEL_VALUE);
    return object_of(document, kind);
}

static bool is_text(const struct json_value *object, const char *name, const char *value) {
    const char *text = json_value_text(json_value_member(object, name));
    return text != NULL && text_equals(text, value);
}

enum failure_code kubernetes_object_read(
    struct slice input, enum kubernetes_kind kind, struct kubernetes_object **out_object) {
    struct json_document *document;
    enum failure_code code = json_document_parse(input, KUBERNETES_OBJECT_MAXIMUM, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    const struct json_value *root = json_document_root(document);
    const char *version =
        json_value_text(json_value_member(json_value_member(root, "metadata"), "resourceVersion"));
    if (!is_text(root, "kind", kinds[kind].name) || version == NULL || *version == '\0') {
        json_document_free(document);
        return FAILURE_MALFORMED;
    }
    *out_object = object_of(document, kind);
    return FAILURE_NONE;
}

void kubernetes_object_free(struct kubernetes_object *object) {
    if (object != NULL) {
        json_document_free(object->document);
        free(object);
    }
}

enum kubernetes_event kubernetes_event_read(
    struct slice line, enum kubernetes_kind kind, struct kubernetes_object **out_object) {
    struct json_document *document;
    struct text object = {0};
    enum kubernetes_event event = KUBERNETES_EVENT_OVER;
    if (json_document_parse(line, EVENT_MAXIMUM, &document, NULL) != FAILURE_NONE) {
        return event;
    }
    const struct json_value *root = json_document_root(document);
    const struct json_value *told = json_value_member(root, "object");
    if (is_text(root, "type", "BOOKMARK")) {
        event = KUBERNETES_EVENT_NOTHING;
    } else if (told != NULL &&
               (is_text(root, "type", "ADDED") || is_text(root, "type", "MODIFIED"))) {
        json_value_write(told, &object);
        struct slice text = {(const uint8_t *)text_string(&object), object.length};
        event = kubernetes_object_read(text, kind, out_object) == FAILURE_NONE
                    ? KUBERNETES_EVENT_CHANGED
                    : KUBERNETES_EVENT_OVER;
    }
    text_clear(&object);
    json_document_free(document);
    return event;
}

const char *kubernetes_object_version(const struct kubernetes_object *object) {
    const char *version =
        json_value_text(json_value_member(metadata_of(object), "resourceVersion"));
    return version != NULL && strspn(version, "0123456789") == strlen(version) ? version : "";
}

bool kubernetes_object_has_label(const struct kubernetes_object *object) {
    return is_text(
        json_value_member(metadata_of(object), "labels"), KUBERNETES_LABEL, KUBERNETES_LABEL_VALUE);
}

/* Values. */

const char *kubernetes_object_value(const struct kubernetes_object *object, const char *name) {
    const struct json_value *values = object->kind == KUBERNETES_CONFIG_MAP
                                          ? json_value_member(root_of(object), "data")
                                          : json_value_member(metadata_of(object), "annotations");
    return json_value_text(json_value_member(values, name));
}

static struct json_value *make_values(struct kubernetes_object *object) {
    return object->kind == KUBERNETES_CONFIG_MAP
               ? json_value_set_object(root_of(object), "data")
               : json_value_set_object(metadata_of(object), "annotations");
}

void kubernetes_object_set_value(
    struct kubernetes_object *object, const char *name, const char *value) {
    json_value_set_text(make_values(object), name, value);
}

static bool is_below(void *context, const char *rest) {
    const int64_t *number = context;
    int64_t other;
    return text_is_digit(*rest) && text_parse_integer(rest, &other) == FAILURE_NONE &&
           other < *number;
}

void kubernetes_object_remove_below(
    struct kubernetes_object *object, const char *start, int64_t number) {
    json_value_remove(make_values(object), start, is_below, &number);
}

void kubernetes_object_set_holder(struct kubernetes_object *object, const char *holder) {
    json_value_set_text(json_value_set_object(root_of(object), "spec"), "holderIdentity", holder);
}

void kubernetes_object_write(const struct kubernetes_object *object, struct text *out) {
    json_value_write(root_of(object), out);
}

/* Status. */

int64_t kubernetes_status_read(struct slice input, struct text *out_words) {
    struct json_document *document;
    int64_t seconds = 0;
    if (json_document_parse(input, STATUS_MAXIMUM, &document, NULL) != FAILURE_NONE) {
        return 0;
    }
    const struct json_value *root = json_document_root(document);
    const char *words = json_value_text(json_value_member(root, "message"));
    if (is_text(root, "kind", "Status") && words != NULL) {
        size_t length = strlen(words);
        text_append_bytes(out_words, words, length < WORDS_MAXIMUM ? length : WORDS_MAXIMUM);
    }
    bool has_seconds = json_value_integer(
        json_value_member(json_value_member(root, "details"), "retryAfterSeconds"), &seconds);
    json_document_free(document);
    return has_seconds && seconds > 0 ? seconds : 0;
}
