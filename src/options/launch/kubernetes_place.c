/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/kubernetes_place.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/launch/option_values.h"

static bool is_letter_or_digit(char character) {
    return (character >= 'a' && character <= 'z') || text_is_digit(character);
}

/* Parts of lower-case letters, digits and hyphens, with a letter or digit at both ends. */
static bool is_name(const char *text, size_t maximum, bool has_dots) {
    size_t length = strlen(text);
    if (length == 0 || length > maximum) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool is_end = i == 0 || i + 1 == length || text[i - 1] == '.' || text[i + 1] == '.';
        bool is_plain = is_letter_or_digit(text[i]);
        bool is_between = !is_end && (text[i] == '-' || (text[i] == '.' && has_dots));
        if (!is_plain && !is_between) {
            return false;
        }
    }
    return true;
}

bool kubernetes_is_space(const char *text) {
    return is_name(text, KUBERNETES_SPACE_MAXIMUM, false);
}

enum failure_code kubernetes_place_parse(
    const char *text, struct kubernetes_place *out_place, struct text *out_reason) {
    const char *slash = strchr(text, '/');
    const char *name = slash == NULL ? text : slash + 1;
    struct text space = {0};
    enum failure_code code = FAILURE_NONE;
    text_append_bytes(&space, text, slash == NULL ? 0 : (size_t)(slash - text));
    if (slash != NULL && !kubernetes_is_space(text_string(&space))) {
        code = option_refuse_value(out_reason, text,
            "what comes before the / has to be the name of a namespace: at most %d lower-case "
            "letters, digits and hyphens, as in ml/train",
            KUBERNETES_SPACE_MAXIMUM);
    } else if (!is_name(name, KUBERNETES_NAME_MAXIMUM, true)) {
        code = option_refuse_value(out_reason, text,
            "give [NAMESPACE/]NAME of a ConfigMap: NAME has at most %d lower-case letters, digits, "
            "hyphens and dots, and begins and ends with a letter or digit, as in train or ml/train",
            KUBERNETES_NAME_MAXIMUM);
    } else {
        out_place->space = slash == NULL ? NULL : memory_duplicate_string(text_string(&space));
        out_place->name = memory_duplicate_string(name);
    }
    text_clear(&space);
    return code;
}

void kubernetes_place_clear(struct kubernetes_place *place) {
    free(place->space);
    free(place->name);
    *place = (struct kubernetes_place){0};
}
