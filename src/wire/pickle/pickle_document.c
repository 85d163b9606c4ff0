/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_document.h"

#include <stdlib.h>

#include "base/memory.h"

void pickle_document_clear(struct pickle_document *document) {
    free(document->values);
    free(document->links);
    *document = (struct pickle_document){0};
}

/* Building. */

enum failure_code pickle_document_add(struct pickle_document *document,
    const struct pickle_value *value, uint32_t *out_index, struct text *out_reason) {
    if (document->value_count >= document->maximum_values) {
        text_append_format(out_reason, "more than %zu values", document->maximum_values);
        return FAILURE_LIMIT;
    }
    document->values = memory_reserve(document->values, &document->value_capacity,
        document->value_count + 1, sizeof *document->values);
    document->values[document->value_count] = *value;
    document->values[document->value_count].height = 1;
    *out_index = (uint32_t)document->value_count++;
    return FAILURE_NONE;
}

static enum failure_code refuse_growth(struct text *out_reason) {
    text_append(out_reason, "a value that changes after it was used, or holds itself");
    return FAILURE_MALFORMED;
}

/* Makes `child` a part of `parent`. */
static enum failure_code place(
    struct pickle_document *document, uint32_t parent, uint32_t child, struct text *out_reason) {
    struct pickle_value *above = &document->values[parent];
    struct pickle_value *below = &document->values[child];
    if (parent == child) {
        return refuse_growth(out_reason);
    }
    if (below->height >= PICKLE_MAXIMUM_DEPTH) {
        text_append_format(out_reason, "values nest deeper than %d", PICKLE_MAXIMUM_DEPTH);
        return FAILURE_LIMIT;
    }
    below->is_placed = true;
    if (above->height <= below->height) {
        above->height = (uint8_t)(below->height + 1);
    }
    return FAILURE_NONE;
}

enum failure_code pickle_document_add_object(struct pickle_document *document,
    enum pickle_class of_class, uint32_t arguments, uint32_t *out_index, struct text *out_reason) {
    const struct pickle_value object = {
        .kind = PICKLE_VALUE_OBJECT, .of_class = of_class, .arguments = arguments};
    enum failure_code code = pickle_document_add(document, &object, out_index, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    document->values[*out_index].state = *out_index;
    return place(document, *out_index, arguments, out_reason);
}

static void append_link(
    struct pickle_document *document, struct pickle_value *container, uint32_t item) {
    uint32_t link = (uint32_t)document->link_count++;
    document->links[link] = (struct pickle_link){.value = item};
    if (container->count == 0) {
        container->first = link;
    } else {
        document->links[container->last].next = link;
    }
    container->last = link;
    container->count++;
}

static enum failure_code check_room(const struct pickle_document *document,
    const struct pickle_value *container, size_t count, struct text *out_reason) {
    size_t each = container->kind == PICKLE_VALUE_DICT ? 2 : 1;
    if (container->count / each + count / each > document->maximum_items) {
        text_append_format(out_reason, "%s of more than %zu items",
            pickle_kind_name(container->kind), document->maximum_items);
        return FAILURE_LIMIT;
    }
    if (document->link_count + count > document->maximum_values) {
        text_append_format(out_reason, "more than %zu items", document->maximum_values);
        return FAILURE_LIMIT;
    }
    return FAILURE_NONE;
}

enum failure_code pickle_document_put(struct pickle_document *document, uint32_t container,
    const uint32_t *items, size_t count, struct text *out_reason) {
    struct pickle_value *value = &document->values[container];
    if (value->is_placed) {
        return refuse_growth(out_reason);
    }
    enum failure_code code = check_room(document, value, count, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    document->links = memory_reserve(document->links, &document->link_capacity,
        document->link_count + count, sizeof *document->links);
    for (size_t i = 0; i < count && code == FAILURE_NONE; i++) {
        code = place(document, container, items[i], out_reason);
        append_link(document, value, items[i]);
    }
    return code;
}

enum failure_code pickle_document_set_state(
    struct pickle_document *document, uint32_t object, uint32_t state, struct text *out_reason) {
    struct pickle_value *value = &document->values[object];
    if (value->is_placed || value->state != object) {
        return refuse_growth(out_reason);
    }
    if (document->values[state].count / 2 > PICKLE_MAXIMUM_ATTRIBUTES) {
        text_append_format(
            out_reason, "an object of more than %d attributes", PICKLE_MAXIMUM_ATTRIBUTES);
        return FAILURE_LIMIT;
    }
    value->state = state;
    return place(document, object, state, out_reason);
}

/* Reading. */

const struct pickle_value *pickle_document_root(const struct pickle_document *document) {
    return &document->values[document->root];
}

const char *pickle_kind_name(enum pickle_kind kind) {
    static const char *const names[] = {
        [PICKLE_VALUE_NONE] = "None",
        [PICKLE_VALUE_BOOLEAN] = "a boolean",
        [PICKLE_VALUE_INTEGER] = "an integer",
        [PICKLE_VALUE_TEXT] = "text",
        [PICKLE_VALUE_BYTES] = "bytes",
        [PICKLE_VALUE_TUPLE] = "a tuple",
        [PICKLE_VALUE_LIST] = "a list",
        [PICKLE_VALUE_DICT] = "a dict",
        [PICKLE_VALUE_SET] = "a set",
        [PICKLE_VALUE_CLASS] = "a class",
        [PICKLE_VALUE_OBJECT] = "an object",
    };
    return names[kind];
}

bool pickle_value_is_object(const struct pickle_value *value, enum pickle_class of_class) {
    return value->kind == PICKLE_VALUE_OBJECT && value->of_class == of_class;
}

struct pickle_walk pickle_walk_begin(
    const struct pickle_document *document, const struct pickle_value *value) {
    struct pickle_walk walk = {.document = document};
    switch (value->kind) {
    case PICKLE_VALUE_TUPLE:
    case PICKLE_VALUE_LIST:
    case PICKLE_VALUE_DICT:
    case PICKLE_VALUE_SET:
        walk.link = value->first;
        walk.left = value->count;
        break;
    case PICKLE_VALUE_NONE:
    case PICKLE_VALUE_BOOLEAN:
    case PICKLE_VALUE_INTEGER:
    case PICKLE_VALUE_TEXT:
    case PICKLE_VALUE_BYTES:
    case PICKLE_VALUE_CLASS:
    case PICKLE_VALUE_OBJECT:
        break;
    }
    return walk;
}

const struct pickle_value *pickle_walk_next(struct pickle_walk *walk) {
    if (walk->left == 0) {
        return NULL;
    }
    const struct pickle_link *link = &walk->document->links[walk->link];
    walk->link = link->next;
    walk->left--;
    return &walk->document->values[link->value];
}

const struct pickle_value *pickle_document_arguments(
    const struct pickle_document *document, const struct pickle_value *object) {
    return &document->values[object->arguments];
}

const struct pickle_value *pickle_document_attribute(
    const struct pickle_document *document, const struct pickle_value *object, const char *name) {
    const struct pickle_value *state = &document->values[object->state];
    if (state == object) {
        return NULL;
    }
    struct slice wanted = slice_from_string(name);
    const struct pickle_value *found = NULL;
    struct pickle_walk walk = pickle_walk_begin(document, state);
    for (const struct pickle_value *key; (key = pickle_walk_next(&walk)) != NULL;) {
        const struct pickle_value *value = pickle_walk_next(&walk);
        if (key->kind == PICKLE_VALUE_TEXT && slice_equals(key->bytes, wanted)) {
            found = value;
        }
    }
    return found;
}
