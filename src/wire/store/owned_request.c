/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/owned_request.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

static struct slice *slices_of(const struct text_list *list) {
    struct slice *slices = memory_allocate(list->count * sizeof *slices);
    for (size_t i = 0; i < list->count; i++) {
        slices[i] = slice_from_string(list->items[i]);
    }
    return slices;
}

static bool has_many_keys(enum store_operation operation) {
    return operation == STORE_WAIT || operation == STORE_CHECK || operation == STORE_MULTI_GET ||
           operation == STORE_MULTI_SET;
}

void owned_request_finish(
    struct owned_request *request, enum store_operation operation, int64_t number) {
    request->key_slices = slices_of(&request->keys);
    request->value_slices = slices_of(&request->values);
    request->request.operation = operation;
    if (has_many_keys(operation)) {
        request->request.keys = request->key_slices;
        request->request.values = operation == STORE_MULTI_SET ? request->value_slices : NULL;
        request->request.count = request->keys.count;
        return;
    }
    request->request.key = request->key_slices[0];
    request->request.number = operation == STORE_ADD ? number : 0;
    request->request.expected = bytes_slice(&request->expected);
    if (request->values.count > 0) {
        request->request.value = request->value_slices[0];
    }
}

void owned_request_clear(struct owned_request *request) {
    text_list_clear(&request->keys);
    text_list_clear(&request->values);
    bytes_clear(&request->expected);
    free(request->key_slices);
    free(request->value_slices);
    *request = (struct owned_request){0};
}
