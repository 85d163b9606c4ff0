/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h: the functions with a name from PyTorch's class Store, each of which waits for its
 * answer. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <muster/store.h>

#include "library/library_failure.h"
#include "library/library_settings.h"

void muster_bytes_clear(struct muster_bytes *bytes) {
    if (bytes != NULL) {
        free(bytes->data);
        *bytes = (struct muster_bytes){0};
    }
}

static bool copy(const struct muster_slice *value, struct muster_bytes *out) {
    char *data = malloc(value->length + 1);
    if (data == NULL) {
        return false;
    }
    if (value->length > 0) {
        memcpy(data, value->data, value->length);
    }
    data[value->length] = '\0';
    *out = (struct muster_bytes){data, value->length};
    return true;
}

/* What an answer is to fill in, as far as it is wanted. */
struct wanted {
    int64_t *number;
    struct muster_bytes *value;
    struct muster_bytes *values;
    size_t count; /* of the values there is room for so many */
    bool has_no_memory;
};

static bool copy_all(const struct muster_store_result *result, struct muster_bytes *out) {
    for (size_t i = 0; i < result->count; i++) {
        if (!copy(&result->values[i], &out[i])) {
            while (i > 0) {
                muster_bytes_clear(&out[--i]);
            }
            return false;
        }
    }
    return true;
}

static void keep(void *context, const struct muster_store_result *result) {
    struct wanted *wanted = context;
    if (result->error != MUSTER_OK) {
        return;
    }
    if (wanted->number != NULL) {
        *wanted->number = result->number;
    }
    if (wanted->value != NULL) {
        wanted->has_no_memory = !copy(&result->value, wanted->value);
    }
    if (wanted->values != NULL) {
        wanted->has_no_memory = result->count != wanted->count || !copy_all(result, wanted->values);
    }
}

static enum muster_error ask(struct muster_store *store, const struct muster_store_request *request,
    struct wanted *wanted, struct muster_failure *failure) {
    enum muster_error error = muster_store_call(store, request, keep, wanted, failure);
    if (error == MUSTER_OK && wanted->has_no_memory) {
        return library_fail(failure, MUSTER_ERROR_MEMORY, "there is no memory for the answer");
    }
    return error;
}

static struct muster_store_request about(enum muster_store_operation operation, const char *key) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = operation;
    request.key = key;
    return request;
}

static struct muster_store_request about_all(
    enum muster_store_operation operation, const char *const *keys, size_t count) {
    struct muster_store_request request = about(operation, NULL);
    request.keys = keys;
    request.count = count;
    return request;
}

static enum muster_error no_place(struct muster_failure *failure) {
    return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the answer");
}

static enum muster_error send(enum muster_store_operation operation, struct muster_store *store,
    const char *key, struct muster_slice value, struct muster_failure *failure) {
    struct wanted wanted = {0};
    struct muster_store_request request = about(operation, key);
    request.value = value;
    return ask(store, &request, &wanted, failure);
}

enum muster_error muster_store_set(struct muster_store *store, const char *key, const void *value,
    size_t length, struct muster_failure *failure) {
    return send(MUSTER_STORE_SET, store, key, (struct muster_slice){value, length}, failure);
}

enum muster_error muster_store_append(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure) {
    return send(MUSTER_STORE_APPEND, store, key, (struct muster_slice){value, length}, failure);
}

enum muster_error muster_store_queue_push(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure) {
    return send(MUSTER_STORE_QUEUE_PUSH, store, key, (struct muster_slice){value, length}, failure);
}

enum muster_error muster_store_get(struct muster_store *store, const char *key,
    struct muster_bytes *out_value, struct muster_failure *failure) {
    struct wanted wanted = {.value = out_value};
    const struct muster_store_request request = about(MUSTER_STORE_GET, key);
    return out_value == NULL ? no_place(failure) : ask(store, &request, &wanted, failure);
}

static enum muster_error ask_number(struct muster_store *store,
    const struct muster_store_request *request, int64_t *out_number,
    struct muster_failure *failure) {
    struct wanted wanted = {.number = out_number};
    return out_number == NULL ? no_place(failure) : ask(store, request, &wanted, failure);
}

enum muster_error muster_store_add(struct muster_store *store, const char *key, int64_t number,
    int64_t *out_sum, struct muster_failure *failure) {
    struct muster_store_request request = about(MUSTER_STORE_ADD, key);
    request.number = number;
    return ask_number(store, &request, out_sum, failure);
}

enum muster_error muster_store_compare_set(struct muster_store *store, const char *key,
    struct muster_slice expected, struct muster_slice desired, struct muster_bytes *out_value,
    struct muster_failure *failure) {
    struct wanted wanted = {.value = out_value};
    struct muster_store_request request = about(MUSTER_STORE_COMPARE_SET, key);
    request.expected = expected;
    request.value = desired;
    return out_value == NULL ? no_place(failure) : ask(store, &request, &wanted, failure);
}

static enum muster_error ask_whether(struct muster_store *store,
    const struct muster_store_request *request, int *out_answer, struct muster_failure *failure) {
    int64_t number = 0;
    enum muster_error error = ask_number(store, request, &number, failure);
    if (error == MUSTER_OK) {
        *out_answer = number > 0;
    }
    return error;
}

enum muster_error muster_store_check(struct muster_store *store, const char *const *keys,
    size_t count, int *out_exists, struct muster_failure *failure) {
    const struct muster_store_request request = about_all(MUSTER_STORE_CHECK, keys, count);
    return out_exists == NULL ? no_place(failure)
                              : ask_whether(store, &request, out_exists, failure);
}

enum muster_error muster_store_wait(struct muster_store *store, const char *const *keys,
    size_t count, double timeout, struct muster_failure *failure) {
    struct wanted wanted = {0};
    struct muster_store_request request = about_all(MUSTER_STORE_WAIT, keys, count);
    request.timeout = timeout;
    return ask(store, &request, &wanted, failure);
}

enum muster_error muster_store_delete_key(
    struct muster_store *store, const char *key, int *out_deleted, struct muster_failure *failure) {
    int deleted = 0;
    const struct muster_store_request request = about(MUSTER_STORE_DELETE_KEY, key);
    enum muster_error error = ask_whether(store, &request, &deleted, failure);
    if (error == MUSTER_OK && out_deleted != NULL) {
        *out_deleted = deleted;
    }
    return error;
}

enum muster_error muster_store_num_keys(
    struct muster_store *store, int64_t *out_count, struct muster_failure *failure) {
    const struct muster_store_request request = about(MUSTER_STORE_NUM_KEYS, NULL);
    return ask_number(store, &request, out_count, failure);
}

enum muster_error muster_store_multi_get(struct muster_store *store, const char *const *keys,
    size_t count, struct muster_bytes *out_values, struct muster_failure *failure) {
    struct wanted wanted = {.values = out_values, .count = count};
    const struct muster_store_request request = about_all(MUSTER_STORE_MULTI_GET, keys, count);
    return out_values == NULL ? no_place(failure) : ask(store, &request, &wanted, failure);
}

enum muster_error muster_store_multi_set(struct muster_store *store, const char *const *keys,
    const struct muster_slice *values, size_t count, struct muster_failure *failure) {
    struct wanted wanted = {0};
    struct muster_store_request request = about_all(MUSTER_STORE_MULTI_SET, keys, count);
    request.values = values;
    return ask(store, &request, &wanted, failure);
}

enum muster_error muster_store_queue_pop(struct muster_store *store, const char *key, int blocks,
    struct muster_bytes *out_value, struct muster_failure *failure) {
    int64_t length = 0;
    struct muster_bytes value = {0};
    struct wanted wanted = {.number = &length, .value = &value};
    struct muster_store_request request = about(MUSTER_STORE_QUEUE_POP, key);
    request.number = blocks != 0;
    if (out_value == NULL) {
        return no_place(failure);
    }
    enum muster_error error = ask(store, &request, &wanted, failure);
    if (error == MUSTER_OK && length > 0) {
        *out_value = value;
        return MUSTER_OK;
    }
    muster_bytes_clear(&value);
    return error != MUSTER_OK ? error
                              : library_fail(failure, MUSTER_ERROR_MISSING, "the queue is empty");
}

enum muster_error muster_store_queue_len(struct muster_store *store, const char *key,
    int64_t *out_length, struct muster_failure *failure) {
    const struct muster_store_request request = about(MUSTER_STORE_QUEUE_LEN, key);
    return ask_number(store, &request, out_length, failure);
}
