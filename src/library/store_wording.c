/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/store_wording.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/store/store_limits.h"
#include "library/library_failure.h"
#include "library/library_settings.h"

/* What is kept of one of several keys, beside its bytes. */
#define PLACE_BYTES 128

/* Which fields of a request an operation has. */
struct fields {
    enum store_operation operation;
    bool has_key;
    bool has_keys;
    bool has_value;
    bool has_expected;
    bool has_values;
    bool waits_first;
};

static const struct fields fields_of[] = {
    [MUSTER_STORE_SET] = {.operation = STORE_SET, .has_key = true, .has_value = true},
    [MUSTER_STORE_GET] = {.operation = STORE_GET, .has_key = true, .waits_first = true},
    [MUSTER_STORE_ADD] = {.operation = STORE_ADD, .has_key = true},
    [MUSTER_STORE_APPEND] = {.operation = STORE_APPEND, .has_key = true, .has_value = true},
    [MUSTER_STORE_COMPARE_SET] = {.operation = STORE_COMPARE_SET,
        .has_key = true,
        .has_value = true,
        .has_expected = true},
    [MUSTER_STORE_CHECK] = {.operation = STORE_CHECK, .has_keys = true},
    [MUSTER_STORE_WAIT] = {.operation = STORE_WAIT, .has_keys = true},
    [MUSTER_STORE_DELETE_KEY] = {.operation = STORE_DELETE, .has_key = true},
    [MUSTER_STORE_NUM_KEYS] = {.operation = STORE_COUNT_KEYS},
    [MUSTER_STORE_MULTI_GET] = {.operation = STORE_MULTI_GET,
        .has_keys = true,
        .waits_first = true},
    [MUSTER_STORE_MULTI_SET] = {.operation = STORE_MULTI_SET, .has_keys = true, .has_values = true},
    [MUSTER_STORE_QUEUE_PUSH] = {.operation = STORE_QUEUE_PUSH, .has_key = true, .has_value = true},
    [MUSTER_STORE_QUEUE_POP] = {.operation = STORE_QUEUE_POP, .has_key = true},
    [MUSTER_STORE_QUEUE_LEN] = {.operation = STORE_QUEUE_LENGTH, .has_key = true},
    [MUSTER_STORE_LIST_KEYS] = {.operation = STORE_LIST_KEYS},
    [MUSTER_STORE_BARRIER] = {.operation = STORE_BARRIER, .has_key = true},
    [MUSTER_STORE_PING] = {.operation = STORE_PING},
};

static enum muster_error check_slice(const char *what, const struct muster_slice *slice,
    size_t maximum, size_t *bytes, struct muster_failure *failure) {
    if (slice->data == NULL && slice->length > 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "a %s is NULL, and not empty", what);
    }
    if (slice->length > maximum) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "a %s has %zu bytes; it may have %zu",
            what, slice->length, maximum);
    }
    *bytes += slice->length;
    return MUSTER_OK;
}

static enum muster_error check_key(
    const char *key, size_t prefix_length, size_t *bytes, struct muster_failure *failure) {
    if (key == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "a key is NULL");
    }
    size_t length = prefix_length + strnlen(key, MUSTER_STORE_KEY_MAXIMUM + 1);
    if (length > MUSTER_STORE_KEY_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT,
            "a key has more than %d bytes, with its prefix", MUSTER_STORE_KEY_MAXIMUM);
    }
    *bytes += length + 1;
    return MUSTER_OK;
}

static enum muster_error check_list(const struct muster_store_request *given,
    const struct fields *fields, size_t prefix_length, size_t value_maximum, size_t *bytes,
    struct muster_failure *failure) {
    if (given->keys == NULL || given->count == 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there are no keys");
    }
    if (given->count > MUSTER_STORE_KEYS_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "there are %zu keys; there may be %d",
            given->count, MUSTER_STORE_KEYS_MAXIMUM);
    }
    if (fields->has_values && given->values == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there are no values");
    }
    enum muster_error error = MUSTER_OK;
    for (size_t i = 0; i < given->count && error == MUSTER_OK; i++) {
        error = check_key(given->keys[i], prefix_length, bytes, failure);
        if (error == MUSTER_OK && fields->has_values) {
            error = check_slice("value", &given->values[i], value_maximum, bytes, failure);
        }
    }
    return error;
}

/* `bytes` is what the request needs, about. */
static enum muster_error check_fields(const struct muster_store_request *given,
    const struct fields *fields, size_t prefix_length, size_t value_maximum, size_t *bytes,
    struct muster_failure *failure) {
    enum muster_error error = MUSTER_OK;
    if (fields->has_key) {
        error = check_key(given->key, prefix_length, bytes, failure);
    }
    if (error == MUSTER_OK && fields->has_value) {
        error = check_slice("value", &given->value, value_maximum, bytes, failure);
    }
    if (error == MUSTER_OK && fields->has_expected) {
        error = check_slice("value", &given->expected, value_maximum, bytes, failure);
    }
    if (error == MUSTER_OK && fields->has_keys) {
        error = check_list(given, fields, prefix_length, value_maximum, bytes, failure);
    }
    return error;
}

static enum muster_error check(const struct muster_store_request *given, const char *prefix,
    size_t value_maximum, size_t *bytes, struct muster_failure *failure) {
    size_t number = (size_t)given->operation;
    if (number == 0 || number >= sizeof fields_of / sizeof *fields_of) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%zu is no operation of a store", number);
    }
    enum muster_error error =
        check_fields(given, &fields_of[number], strlen(prefix), value_maximum, bytes, failure);
    if (error == MUSTER_OK && *bytes > STORE_LIMITS_DEFAULT.request_bytes &&
        fields_of[number].has_keys) {
        return library_fail(failure, MUSTER_ERROR_LIMIT,
            "the request has %zu bytes; it may have "
            "%zu",
            *bytes, STORE_LIMITS_DEFAULT.request_bytes);
    }
    if (error == MUSTER_OK && given->operation == MUSTER_STORE_BARRIER && given->number < 1) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "a barrier needs 1 or more");
    }
    /* The request is spelled out in a buffer that doubles, beside the keys with their prefixes, and
     * their places. */
    size_t places = fields_of[number].has_keys ? given->count * PLACE_BYTES : 0;
    if (error == MUSTER_OK && !spare_memory_has_room_for(3 * *bytes + places)) {
        return library_fail(failure, MUSTER_ERROR_MEMORY, "there is no memory for the request");
    }
    return error;
}

static struct slice slice_of(const struct muster_slice *given) {
    return (struct slice){given->data, given->length};
}

/* Appends the key with its prefix to the wording's keys, which have room. */
static struct slice place_key(char **end, const char *prefix, const char *key) {
    char *start = *end;
    size_t prefix_length = strlen(prefix);
    size_t key_length = strlen(key);
    memcpy(start, prefix, prefix_length);
    memcpy(start + prefix_length, key, key_length);
    *end = start + prefix_length + key_length;
    return (struct slice){(const uint8_t *)start, prefix_length + key_length};
}

static void place_list(const struct muster_store_request *given, bool has_values, char *end,
    const char *prefix, struct store_wording *wording) {
    struct store_request *request = &wording->call.request;
    wording->slices = memory_allocate(given->count * 2 * sizeof *wording->slices);
    struct slice *values = wording->slices + given->count;
    for (size_t i = 0; i < given->count; i++) {
        wording->slices[i] = place_key(&end, prefix, given->keys[i]);
        values[i] = has_values ? slice_of(&given->values[i]) : (struct slice){0};
    }
    request->keys = wording->slices;
    request->values = has_values ? values : NULL;
    request->count = given->count;
}

static void place(const struct muster_store_request *given, const struct fields *fields,
    const char *prefix, size_t bytes, struct store_wording *wording) {
    struct store_request *request = &wording->call.request;
    bool pops = given->operation == MUSTER_STORE_QUEUE_POP;
    wording->keys = memory_allocate(bytes + 1);
    char *end = wording->keys;
    request->operation = fields->operation;
    if (fields->has_key) {
        request->key = place_key(&end, prefix, given->key);
    }
    if (fields->has_keys) {
        place_list(given, fields->has_values, end, prefix, wording);
    }
    request->value = slice_of(&given->value);
    request->expected = slice_of(&given->expected);
    request->number = pops ? 0 : given->number;
    wording->call.waits_first = fields->waits_first || (pops && given->number != 0);
    wording->call.is_raw = given->is_raw != 0;
}

enum muster_error store_wording_of_request(const struct muster_store_request *given,
    const char *prefix, size_t value_maximum, struct duration timeout,
    struct store_wording *out_wording, struct muster_failure *failure) {
    struct muster_store_request known;
    struct duration limit;
    size_t bytes = 0;
    enum muster_error error =
        library_settings_read(given, sizeof known, &known, sizeof known, failure);
    if (error == MUSTER_OK) {
        error = library_time_read(known.timeout, timeout, &limit, failure);
    }
    prefix = error == MUSTER_OK && known.is_raw ? "" : prefix;
    if (error == MUSTER_OK) {
        error = check(&known, prefix, value_maximum, &bytes, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    *out_wording = (struct store_wording){0};
    place(&known, &fields_of[known.operation], prefix, bytes, out_wording);
    out_wording->call.timeout = limit;
    return MUSTER_OK;
}

void store_wording_clear(struct store_wording *wording) {
    free(wording->slices);
    free(wording->keys);
}

size_t store_wording_value_count(const struct store_reply *reply) {
    bool is_list = reply->kind == STORE_REPLY_BLOBS || reply->kind == STORE_REPLY_KEYS;
    return is_list ? reply->list.count : 0;
}

void store_wording_of_reply(const struct store_reply *reply, struct muster_slice *values,
    struct muster_store_result *out_result) {
    switch (reply->kind) {
    case STORE_REPLY_NONE:
    case STORE_REPLY_NONCE:
        break;
    case STORE_REPLY_BYTE: /* CHECK's and WAIT's: 0 is the good one */
        out_result->number = reply->byte == 0;
        break;
    case STORE_REPLY_INTEGER:
        out_result->number = reply->integer;
        break;
    case STORE_REPLY_BLOB:
        out_result->value = (struct muster_slice){reply->blob.data, reply->blob.length};
        break;
    case STORE_REPLY_POP:
        out_result->number = reply->pop.length;
        out_result->value = (struct muster_slice){reply->pop.front.data, reply->pop.front.length};
        break;
    case STORE_REPLY_BLOBS:
    case STORE_REPLY_KEYS:
        for (size_t i = 0; i < reply->list.count; i++) {
            const struct slice *item = &reply->list.items[i];
            values[i] = (struct muster_slice){item->data, item->length};
        }
        out_result->values = values;
        out_result->count = reply->list.count;
        break;
    }
}
