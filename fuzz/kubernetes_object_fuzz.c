/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as what the API server of Kubernetes answers. An accepted object must survive
 * being changed, written and read again. */
#include <string.h>

#include "base/memory.h"
#include "fuzz_input.h"
#include "wire/register/register_entry_text.h"

#define NAME "entry.job"

static void play(struct slice input, enum kubernetes_kind kind) {
    struct kubernetes_object *object;
    struct kubernetes_object *again;
    struct text text = {0};
    if (kubernetes_object_read(input, kind, &object) != FAILURE_NONE) {
        return;
    }
    bool has_label = kubernetes_object_has_label(object);
    char *value = memory_duplicate_string(kubernetes_object_value(object, NAME));
    kubernetes_object_set_value(object, "renewal.job.7", "text");
    kubernetes_object_remove_below(object, "renewal.job.", 8);
    kubernetes_object_set_holder(object, "node");
    kubernetes_object_write(object, &text);
    FUZZ_REQUIRE(
        kubernetes_object_read((struct slice){(const uint8_t *)text_string(&text), text.length},
            kind, &again) == FAILURE_NONE ||
        text.length > KUBERNETES_OBJECT_MAXIMUM);
    if (text.length <= KUBERNETES_OBJECT_MAXIMUM) {
        const char *value_again = kubernetes_object_value(again, NAME);
        FUZZ_REQUIRE(kubernetes_object_has_label(again) == has_label);
        FUZZ_REQUIRE((value == NULL) == (value_again == NULL));
        FUZZ_REQUIRE(value == NULL || text_equals(value, value_again));
        FUZZ_REQUIRE(kubernetes_object_value(again, "renewal.job.7") == NULL);
        kubernetes_object_free(again);
    }
    free(value);
    text_clear(&text);
    kubernetes_object_free(object);
}

static void hear(struct slice line, enum kubernetes_kind kind) {
    struct kubernetes_object *object = NULL;
    bool is_changed = kubernetes_event_read(line, kind, &object) == KUBERNETES_EVENT_CHANGED;
    FUZZ_REQUIRE(is_changed == (object != NULL));
    if (is_changed) {
        const char *version = kubernetes_object_version(object);
        FUZZ_REQUIRE(strspn(version, "0123456789") == strlen(version));
        (void)kubernetes_object_has_label(object);
        kubernetes_object_free(object);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct text words = {0};
    play(input, KUBERNETES_CONFIG_MAP);
    play(input, KUBERNETES_LEASE);
    hear(input, KUBERNETES_CONFIG_MAP);
    hear(input, KUBERNETES_LEASE);
    FUZZ_REQUIRE(kubernetes_status_read(input, &words) >= 0);
    text_clear(&words);
    return 0;
}
