/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a pickle: short ones with low ceilings, long ones with those of a
 * record. In an accepted document every index must name a value, a container must be higher than
 * each value it contains (so there is no cycle), and no ceiling may be passed. A refused pickle
 * must have a reason. */
#include "fuzz_input.h"

#include "wire/pickle/pickle_reader.h"

static const struct pickle_limits low = {.bytes = 4096, .values = 1000, .items = 100};
static const struct pickle_limits high = {.bytes = 48 << 20, .values = 65536 * 32, .items = 65536};

static void check_part(const struct pickle_document *document, const struct pickle_value *whole,
    const struct pickle_value *part) {
    FUZZ_REQUIRE(part >= document->values);
    FUZZ_REQUIRE(part < document->values + document->value_count);
    FUZZ_REQUIRE(part->height < whole->height);
}

static void check_object(
    const struct pickle_document *document, const struct pickle_value *object) {
    const struct pickle_value *arguments = pickle_document_arguments(document, object);
    check_part(document, object, arguments);
    FUZZ_REQUIRE(arguments->kind == PICKLE_VALUE_TUPLE);
    const struct pickle_value *state = &document->values[object->state];
    if (state != object) {
        check_part(document, object, state);
        FUZZ_REQUIRE(state->kind == PICKLE_VALUE_DICT);
        FUZZ_REQUIRE(state->count <= 2 * PICKLE_MAXIMUM_ATTRIBUTES);
    }
    (void)pickle_document_attribute(document, object, "addr");
}

static void check_value(const struct pickle_document *document, const struct pickle_value *value,
    const struct pickle_limits *limits) {
    FUZZ_REQUIRE(value->height >= 1 && value->height <= PICKLE_MAXIMUM_DEPTH);
    if (value->kind == PICKLE_VALUE_OBJECT) {
        check_object(document, value);
        return;
    }
    size_t count = 0;
    struct pickle_walk walk = pickle_walk_begin(document, value);
    for (const struct pickle_value *item; (item = pickle_walk_next(&walk)) != NULL; count++) {
        check_part(document, value, item);
    }
    FUZZ_REQUIRE(count <= limits->items * (value->kind == PICKLE_VALUE_DICT ? 2 : 1));
    FUZZ_REQUIRE(value->kind != PICKLE_VALUE_DICT || count % 2 == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pickle_document document;
    struct text reason = {0};
    const struct pickle_limits *limits = size <= low.bytes ? &low : &high;
    enum failure_code code = pickle_read((struct slice){data, size}, limits, &document, &reason);
    if (code == FAILURE_NONE) {
        FUZZ_REQUIRE(reason.length == 0);
        FUZZ_REQUIRE(document.root < document.value_count);
        FUZZ_REQUIRE(document.value_count <= limits->values);
        for (size_t i = 0; i < document.value_count; i++) {
            check_value(&document, &document.values[i], limits);
        }
        pickle_document_clear(&document);
    } else {
        FUZZ_REQUIRE(reason.length > 0);
    }
    text_clear(&reason);
    return 0;
}
