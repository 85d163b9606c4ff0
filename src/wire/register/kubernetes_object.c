/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/register/kubernetes_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/json/json_document.h"

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
