/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <muster/store.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/store/store_request.h"
#include "host/store/store_client.h"
#include "library/library_settings.h"
#include "library/store_connection.h"

/* Requests and results of muster/store.h, in the words of the house. Checks what the program has
 * handed in, and puts a store's prefix before its keys. */

/* A request that can be sent. What it borrows is in the rest of the struct, or is the program's. */
struct store_wording {
    struct store_client_call call;
    struct slice *slices;
    char *keys; /* all keys with their prefixes, one behind the other */
};

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

/* `prefix` goes before each key as it is; "" for none. `value_maximum` is the largest value.
 * `timeout` is the store's. */
static enum muster_error store_wording_of_request(const struct muster_store_request *given,
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

static void store_wording_clear(struct store_wording *wording) {
    free(wording->slices);
    free(wording->keys);
}

static size_t store_wording_value_count(const struct store_reply *reply) {
    bool is_list = reply->kind == STORE_REPLY_BLOBS || reply->kind == STORE_REPLY_KEYS;
    return is_list ? reply->list.count : 0;
}

/* Fills in the result of a request, but for its error; `values` has room for every item of a reply
 * that is a list. */
static void store_wording_of_reply(const struct store_reply *reply, struct muster_slice *values,
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

/* Store calls. */

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

static enum muster_error store_calls_send(enum muster_store_operation operation,
    struct muster_store *store, const char *key, struct muster_slice value,
    struct muster_failure *failure) {
    struct wanted wanted = {0};
    struct muster_store_request request = about(operation, key);
    request.value = value;
    return ask(store, &request, &wanted, failure);
}

enum muster_error muster_store_set(struct muster_store *store, const char *key, const void *value,
    size_t length, struct muster_failure *failure) {
    return store_calls_send(
        MUSTER_STORE_SET, store, key, (struct muster_slice){value, length}, failure);
}

enum muster_error muster_store_append(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure) {
    return store_calls_send(
        MUSTER_STORE_APPEND, store, key, (struct muster_slice){value, length}, failure);
}

enum muster_error muster_store_queue_push(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure) {
    return store_calls_send(
        MUSTER_STORE_QUEUE_PUSH, store, key, (struct muster_slice){value, length}, failure);
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

/* Store. */

/* TCPStore's own (c10d Store::kDefaultTimeout). */
#define DEFAULT_SECONDS 300
#define DEFAULT_TIMEOUT duration_from_seconds(DEFAULT_SECONDS)
#define LARGEST_VALUE ((size_t)1 << 30)
#define HOST_MAXIMUM 1024

struct muster_store {
    struct store_connection *connection;
    char *prefix; /* what goes before every key, with its '/'; or "" */
    struct duration timeout;
    size_t value_maximum;
    bool is_freed; /* its requests are being called back */
    void (*connected)(void *context, enum muster_error error, const char *message);
    void (*lost)(void *context, enum muster_error error, const char *message);
    void *context;
};

static void tell(void (*callback)(void *context, enum muster_error error, const char *message),
    void *context, const struct failure *failure) {
    if (callback != NULL) {
        callback(context, failure == NULL ? MUSTER_OK : library_error(failure->code),
            failure == NULL ? "" : failure->message);
    }
}

static void take_connected(void *context, const struct failure *failure) {
    const struct muster_store *store = context;
    tell(store->connected, store->context, failure);
}

static void take_lost(void *context, const struct failure *failure) {
    const struct muster_store *store = context;
    tell(store->lost, store->context, failure);
}

static struct store_connection_observer observer_of(struct muster_store *store) {
    return (struct store_connection_observer){take_connected, take_lost, store};
}

static enum muster_error hand_out(struct muster_store *store_taken, enum failure_code code,
    const struct failure *failure, struct muster_store **out_store,
    struct muster_failure *out_failure) {
    if (code != FAILURE_NONE) {
        free(store_taken->prefix);
        free(store_taken);
        return library_pass_on(out_failure, failure);
    }
    *out_store = store_taken;
    return MUSTER_OK;
}

static enum muster_error check_tcp(struct muster_tcp_store_settings *settings,
    struct duration *out_timeout, struct duration *out_silence, struct muster_failure *failure) {
    enum muster_error error = library_host_check("host", settings->host, HOST_MAXIMUM, failure);
    if (error == MUSTER_OK && settings->token_file != NULL) {
        error = library_path_check("token file", settings->token_file, failure);
    }
    if (error == MUSTER_OK) {
        error = library_time_read(settings->timeout, DEFAULT_TIMEOUT, out_timeout, failure);
    }
    if (error == MUSTER_OK) {
        error = library_silence_read(settings->silence_timeout, out_silence, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (settings->port < 1 || settings->port > 65535) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no port; 1 to 65535 are", settings->port);
    }
    if (settings->value_maximum == 0) {
        settings->value_maximum = MUSTER_STORE_VALUE_MAXIMUM;
    }
    if (settings->value_maximum > LARGEST_VALUE) {
        return library_fail(
            failure, MUSTER_ERROR_LIMIT, "the largest value may have %zu bytes", LARGEST_VALUE);
    }
    return MUSTER_OK;
}

static struct muster_store *new_store(struct duration timeout, size_t value_maximum) {
    struct muster_store *store = memory_allocate(sizeof *store);
    store->prefix = memory_duplicate_string("");
    store->timeout = timeout;
    store->value_maximum = value_maximum;
    return store;
}

enum muster_error muster_store_new_tcp(const struct muster_tcp_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *out_failure) {
    struct muster_tcp_store_settings own;
    struct duration timeout;
    struct duration silence;
    struct job_token *token = NULL;
    struct failure failure = {0};
    if (out_store == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the store");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = check_tcp(&own, &timeout, &silence, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error == MUSTER_OK && own.token_file != NULL &&
        job_token_open(NULL, own.token_file, &token, &failure) != FAILURE_NONE) {
        error = library_pass_on(out_failure, &failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_store *store = new_store(timeout, own.value_maximum);
    const struct store_connection_observer observer = observer_of(store);
    const struct store_client_settings client = {
        .host = own.host,
        .port = own.port,
        .connect_timeout = timeout,
        .silence_timeout = silence,
    };
    store->connected = own.connected;
    store->lost = own.lost;
    store->context = own.context;
    enum failure_code code =
        store_connection_over_tcp(&client, token, &observer, store, &store->connection, &failure);
    return hand_out(store, code, &failure, out_store, out_failure);
}

enum muster_error muster_store_new_file(const struct muster_file_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *out_failure) {
    struct muster_file_store_settings own;
    struct duration timeout;
    struct failure failure = {0};
    if (out_store == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the store");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = library_path_check("path", own.path, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_time_read(own.timeout, DEFAULT_TIMEOUT, &timeout, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_store *store = new_store(timeout, LARGEST_VALUE);
    const struct store_connection_observer observer = observer_of(store);
    const struct file_store_settings file = {
        .path = own.path, .is_visitor = own.is_visitor != 0, .connect_timeout = timeout};
    store->connected = own.connected;
    store->lost = own.lost;
    store->context = own.context;
    enum failure_code code =
        store_connection_over_file(&file, &observer, store, &store->connection, &failure);
    return hand_out(store, code, &failure, out_store, out_failure);
}

static bool is_of_this_process(const struct muster_store *store) {
    return embedded_loop_is_of_this_process(store_connection_loop(store->connection));
}

/* What every function asks first. */
static enum muster_error check_store(
    const struct muster_store *store, struct muster_failure *failure) {
    if (store == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the store is NULL");
    }
    if (!is_of_this_process(store)) {
        return library_fail(
            failure, MUSTER_ERROR_FORKED, "the store belongs to the process that has made it");
    }
    if (store->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the store is being freed");
    }
    return MUSTER_OK;
}

/* What functions ask that do something. */
static enum muster_error check_able(
    const struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_store(store, failure);
    return error == MUSTER_OK ? library_memory_check(failure) : error;
}

/* What functions ask that let the loop run. */
static enum muster_error check_idle(
    const struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_able(store, failure);
    if (error == MUSTER_OK && embedded_loop_is_running(store_connection_loop(store->connection))) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    return error;
}

enum muster_error muster_store_new_prefix(struct muster_store *base, const char *prefix,
    struct muster_store **out_store, struct muster_failure *failure) {
    enum muster_error error = check_able(base, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (prefix == NULL || out_store == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            prefix == NULL ? "the prefix is NULL" : "there is no place for the store");
    }
    size_t length = strlen(base->prefix) + strnlen(prefix, MUSTER_STORE_KEY_MAXIMUM) + 1;
    if (length > MUSTER_STORE_KEY_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "the prefix has more bytes than a key: %d",
            MUSTER_STORE_KEY_MAXIMUM);
    }
    struct muster_store *store = memory_allocate(sizeof *store);
    store->connection = store_connection_share(base->connection);
    store->prefix = text_format("%s%s/", base->prefix, prefix);
    store->timeout = base->timeout;
    store->value_maximum = base->value_maximum;
    *out_store = store;
    return MUSTER_OK;
}

void muster_store_free(struct muster_store *store) {
    if (store == NULL || store->is_freed || !is_of_this_process(store)) {
        return;
    }
    store->is_freed = true; /* for the callbacks that follow */
    store_connection_leave(store->connection, store);
    free(store->prefix);
    free(store);
}

enum muster_error muster_store_connect(
    struct muster_store *store, struct muster_failure *out_failure) {
    struct failure failure = {0};
    enum muster_error error = check_idle(store, out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    return store_connection_settle(store->connection, &failure) == FAILURE_NONE
               ? MUSTER_OK
               : library_pass_on(out_failure, &failure);
}

enum muster_error muster_store_set_timeout(
    struct muster_store *store, double seconds, struct muster_failure *failure) {
    struct duration timeout;
    enum muster_error error = check_store(store, failure);
    if (error == MUSTER_OK) {
        error = library_time_read(seconds, (struct duration){0}, &timeout, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (timeout.nanoseconds == 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the time limit is zero");
    }
    store->timeout = timeout;
    return MUSTER_OK;
}

double muster_store_timeout(const struct muster_store *store) {
    bool is_limited = store != NULL && store->timeout.nanoseconds != DURATION_FOREVER.nanoseconds;
    return is_limited ? duration_seconds(store->timeout) : -1;
}

/* One request of the program, until it is answered. */
struct asked {
    void (*done)(void *context, const struct muster_store_result *result);
    void *context;
};

static void answer(void *context, const struct store_client_result *result, int system_error) {
    struct asked *asked = context;
    struct muster_slice *values = NULL;
    struct muster_store_result told = {
        .error = library_error(result->code),
        .message = result->message != NULL ? result->message : "",
        .system_error = system_error,
        .is_over = result->is_over,
    };
    if (result->reply != NULL) {
        values = memory_allocate(store_wording_value_count(result->reply) * sizeof *values);
        store_wording_of_reply(result->reply, values, &told);
    }
    if (told.error == MUSTER_ERROR_SYSTEM && system_error == ENOMEM) {
        told.error = MUSTER_ERROR_MEMORY;
    }
    if (asked->done != NULL) {
        asked->done(asked->context, &told);
    }
    free(values);
    free(asked);
}

enum muster_error muster_store_submit(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure) {
    struct store_wording wording;
    enum muster_error error = check_able(store, failure);
    if (error == MUSTER_OK) {
        error = store_wording_of_request(
            request, store->prefix, store->value_maximum, store->timeout, &wording, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct asked *asked = memory_allocate(sizeof *asked);
    asked->done = done;
    asked->context = context;
    store_connection_send(store->connection, store, &wording.call, answer, asked);
    store_wording_clear(&wording);
    return MUSTER_OK;
}

/* A request that is waited for. */
struct awaited {
    struct store_connection *connection;
    void (*done)(void *context, const struct muster_store_result *result);
    void *context;
    struct muster_failure failure;
    bool is_done;
};

static void take_awaited(void *context, const struct muster_store_result *result) {
    struct awaited *awaited = context;
    if (awaited->done != NULL) {
        awaited->done(awaited->context, result);
    }
    awaited->is_done = true;
    library_fail(&awaited->failure, result->error, "%s", result->message);
    awaited->failure.system_error = result->system_error;
    store_connection_wake(awaited->connection);
}

enum muster_error muster_store_call(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure) {
    enum muster_error error = check_idle(store, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    struct awaited awaited = {.connection = store->connection, .done = done, .context = context};
    error = muster_store_submit(store, request, take_awaited, &awaited, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    store_connection_run_until(awaited.connection, &awaited.is_done);
    if (awaited.failure.error != MUSTER_OK && failure != NULL) {
        *failure = awaited.failure;
    }
    return awaited.failure.error;
}

int muster_store_fd(const struct muster_store *store) {
    return check_store(store, NULL) == MUSTER_OK
               ? embedded_loop_fd(store_connection_loop(store->connection))
               : -1;
}

enum muster_error muster_store_process(struct muster_store *store, struct muster_failure *failure) {
    enum muster_error error = check_idle(store, failure);
    if (error == MUSTER_OK) {
        store_connection_process(store->connection);
    }
    return error;
}

/* Several processes with one store. */

/* What nobody reads. */
#define SOME_VALUE "<val_ignored>"

static enum muster_error check_meeting(
    int rank, int world_size, const char *prefix, double timeout, struct muster_failure *failure) {
    if (prefix == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no prefix of the keys");
    }
    if (strnlen(prefix, MUSTER_STORE_KEY_MAXIMUM + 1) > MUSTER_STORE_KEY_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_LIMIT, "the prefix is longer than %d bytes",
            MUSTER_STORE_KEY_MAXIMUM);
    }
    if (world_size < 1 || world_size > MUSTER_STORE_KEYS_MAXIMUM) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "world_size is %d; 1 to %d processes are possible", world_size,
            MUSTER_STORE_KEYS_MAXIMUM);
    }
    if (rank < 0 || rank >= world_size) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "rank is %d; with a world_size of %d there are 0 to %d", rank, world_size,
            world_size - 1);
    }
    return isnan(timeout)
               ? library_fail(failure, MUSTER_ERROR_INVALID, "the time limit is no number")
               : MUSTER_OK;
}

/* Comes to the barrier, and waits there if it is to. */
static enum muster_error meet(struct muster_store *store, int world_size, const char *prefix,
    bool waits, double timeout, struct muster_failure *failure) {
    int64_t count = 0;
    char *members = text_format("%s/num_members", prefix);
    char *last = text_format("%s/last_member", prefix);
    const char *const keys[] = {last};
    enum muster_error error = muster_store_add(store, members, 1, &count, failure);
    if (error == MUSTER_OK && count == world_size) {
        error = muster_store_set(store, last, SOME_VALUE, strlen(SOME_VALUE), failure);
    }
    if (error == MUSTER_OK && waits) {
        error = muster_store_wait(store, keys, 1, timeout, failure);
    }
    free(members);
    free(last);
    return error;
}

enum muster_error muster_store_barrier(struct muster_store *store, int world_size,
    const char *key_prefix, double timeout, struct muster_failure *failure) {
    enum muster_error error = check_meeting(0, world_size, key_prefix, timeout, failure);
    return error != MUSTER_OK ? error : meet(store, world_size, key_prefix, true, timeout, failure);
}

static enum muster_error get_each(struct muster_store *store, const char *prefix, int count,
    double timeout, struct muster_bytes *out_values, struct muster_failure *failure) {
    struct text_list keys = {0};
    struct wanted wanted = {.values = out_values, .count = (size_t)count};
    for (int i = 0; i < count; i++) {
        text_list_add_taken(&keys, text_format("%s%d", prefix, i));
    }
    struct muster_store_request request =
        about_all(MUSTER_STORE_MULTI_GET, (const char *const *)keys.items, keys.count);
    request.timeout = timeout;
    enum muster_error error = ask(store, &request, &wanted, failure);
    text_list_clear(&keys);
    return error;
}

enum muster_error muster_store_get_all(struct muster_store *store, int rank, const char *prefix,
    int world_size, double timeout, struct muster_bytes *out_values,
    struct muster_failure *failure) {
    enum muster_error error = check_meeting(rank, world_size, prefix, timeout, failure);
    if (error == MUSTER_OK && out_values == NULL) {
        error = no_place(failure);
    }
    if (error == MUSTER_OK) {
        error = get_each(store, prefix, world_size, timeout, out_values, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    char *finished = text_format("%s/finished", prefix);
    error = meet(store, world_size, finished, rank == 0, timeout, failure);
    free(finished);
    for (int i = 0; i < world_size && error != MUSTER_OK; i++) {
        muster_bytes_clear(&out_values[i]);
    }
    return error;
}

enum muster_error muster_store_synchronize(struct muster_store *store, const void *data,
    size_t length, int rank, int world_size, const char *key_prefix, double timeout,
    struct muster_bytes *out_values, struct muster_failure *failure) {
    enum muster_error error = check_meeting(rank, world_size, key_prefix, timeout, failure);
    if (error == MUSTER_OK && out_values == NULL) {
        error = no_place(failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    char *key = text_format("%s%d", key_prefix, rank);
    error = muster_store_set(store, key, data, length, failure);
    free(key);
    return error != MUSTER_OK ? error
                              : muster_store_get_all(store, rank, key_prefix, world_size, timeout,
                                    out_values, failure);
}
