/* SPDX-License-Identifier: BSD-3-Clause */
/* Substitutes first nothing and then everything in an arbitrary template; no access may be outside
 * of it. The names that are listed as unknown must be those that would have been substituted. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int is_true) {
    if (!is_true) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text template = {0};
    text_append_bytes(&template, (const char *)data, size);
    const char *string = text_string(&template);
    struct text_list unknown = {0};
    template_unknown_names(string, NULL, 0, &unknown);
    char *plain = template_substitute(string, NULL, 0);
    require(strlen(plain) <= strlen(string));
    struct template_value *values = calloc(unknown.count + 1, sizeof *values);
    require(values != NULL);
    for (size_t i = 0; i < unknown.count; i++) {
        values[i] = (struct template_value){unknown.items[i], ""};
    }
    char *emptied = template_substitute(string, values, unknown.count);
    require(unknown.count == 0 ? strcmp(emptied, plain) == 0 : strlen(emptied) < strlen(plain));
    struct text_list none = {0};
    template_unknown_names(string, values, unknown.count, &none);
    require(none.count == 0);
    free(emptied);
    free(values);
    free(plain);
    text_list_clear(&unknown);
    text_clear(&template);
    return 0;
}
