/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/register/etcd_message.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/register/etcd.pb-c.h"

#define FRAME_HEADER 5
/* What the structs and lists of a reply of etcd's may take beside its bytes: they take hundreds. */
#define READING_OVERHEAD ((size_t)64 << 10)

/* Writing. */

/* protobuf-c writes into the buffer itself: its own way to append takes memory, and says nothing
 * where there is none. */
static void write_message(const ProtobufCMessage *message, struct bytes *out) {
    if (bytes_reserve(out, protobuf_c_message_get_packed_size(message)) != FAILURE_NONE) {
        abort(); /* the buffers of requests have no ceiling */
    }
    out->length += protobuf_c_message_pack(message, out->data + out->length);
}

/* Lends bytes to a message that is only written, though its structs know no const. */
static ProtobufCBinaryData lent(struct slice slice) {
    return (ProtobufCBinaryData){slice.length, (uint8_t *)(uintptr_t)slice.data};
}

static ProtobufCBinaryData lent_string(const char *string) {
    return string == NULL ? (ProtobufCBinaryData){0} : lent(slice_from_string(string));
}

static Etcd__RangeRequest last_of(struct etcd_range range) {
    Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
    request.key = lent_string(range.key);
    request.has_range_end = range.end != NULL;
    request.range_end = lent_string(range.end);
    request.limit = 1;
    request.sort_order = ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
    return request;
}

static Etcd__PutRequest put_of(const char *key, struct slice value) {
    Etcd__PutRequest request = ETCD__PUT_REQUEST__INIT;
    request.key = lent_string(key);
    request.value = lent(value);
    return request;
}

static Etcd__DeleteRangeRequest removal_of(struct etcd_range range) {
    Etcd__DeleteRangeRequest request = ETCD__DELETE_RANGE_REQUEST__INIT;
    request.key = lent_string(range.key);
    request.has_range_end = range.end != NULL;
    request.range_end = lent_string(range.end);
    return request;
}

/* Compares the revision in which a key was created with 0, which it is where there is no key. */
static Etcd__Compare comparison_of(struct etcd_range range, Etcd__Compare__CompareResult result) {
    Etcd__Compare compare = ETCD__COMPARE__INIT;
    compare.result = result;
    compare.target = ETCD__COMPARE__COMPARE_TARGET__CREATE;
    compare.key = lent_string(range.key);
    compare.has_range_end = range.end != NULL;
    compare.range_end = lent_string(range.end);
    return compare;
}

void etcd_write_range_last(struct etcd_range range, struct bytes *out) {
    Etcd__RangeRequest request = last_of(range);
    write_message(&request.base, out);
}

void etcd_write_put(const char *key, struct slice value, struct bytes *out) {
    Etcd__PutRequest request = put_of(key, value);
    write_message(&request.base, out);
}

void etcd_write_authenticate(const char *name, const char *password, struct bytes *out) {
    Etcd__AuthenticateRequest request = ETCD__AUTHENTICATE_REQUEST__INIT;
    request.name = (char *)(uintptr_t)name;
    request.password = (char *)(uintptr_t)password;
    write_message(&request.base, out);
}

void etcd_write_watch(struct etcd_range range, struct bytes *out) {
    Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;
    Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
    create.key = lent_string(range.key);
    create.has_range_end = range.end != NULL;
    create.range_end = lent_string(range.end);
    create.filters =
        (Etcd__WatchCreateRequest__FilterType[]){ETCD__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE};
    create.n_filters = 1;
    request.create_request = &create;
    write_message(&request.base, out);
}

#define REMOVALS (sizeof(((struct etcd_append *)NULL)->removed) / sizeof(struct etcd_range))

void etcd_write_append(const struct etcd_append *append, struct bytes *out) {
    Etcd__TxnRequest request = ETCD__TXN_REQUEST__INIT;
    Etcd__Compare absent = comparison_of(append->absent, ETCD__COMPARE__COMPARE_RESULT__EQUAL);
    Etcd__Compare present = comparison_of(
        (struct etcd_range){.key = append->present}, ETCD__COMPARE__COMPARE_RESULT__GREATER);
    Etcd__PutRequest put = put_of(append->key, append->value);
    Etcd__RequestOp put_operation = ETCD__REQUEST_OP__INIT;
    Etcd__DeleteRangeRequest removals[REMOVALS];
    Etcd__RequestOp removal_operations[REMOVALS];
    Etcd__RangeRequest last = last_of(append->otherwise);
    Etcd__RequestOp last_operation = ETCD__REQUEST_OP__INIT;

    request.compare = (Etcd__Compare *[]){&absent, &present};
    request.n_compare = append->present == NULL ? 1 : 2;
    put_operation.request_put = &put;
    request.success = (Etcd__RequestOp * [1 + REMOVALS]){&put_operation};
    request.n_success = 1;
    for (size_t i = 0; i < REMOVALS; i++) {
        if (append->removed[i].key != NULL) {
            removals[i] = removal_of(append->removed[i]);
            etcd__request_op__init(&removal_operations[i]);
            removal_operations[i].request_delete_range = &removals[i];
            request.success[request.n_success++] = &removal_operations[i];
        }
    }
    last_operation.request_range = &last;
    request.failure = (Etcd__RequestOp *[]){&last_operation};
    request.n_failure = 1;
    write_message(&request.base, out);
}

/* Reading. */

/* What protobuf-c may take for one message. What it gives back meanwhile is not counted. */
struct budget {
    size_t left;
    bool is_spent;
};

static void *take(void *context, size_t size) {
    struct budget *budget = context;
    void *memory = size <= budget->left ? malloc(size) : NULL;
    budget->left -= memory == NULL ? 0 : size;
    budget->is_spent |= memory == NULL;
    return memory;
}

static void give_back(void *context, void *memory) {
    (void)context;
    free(memory);
}

/* A message of etcd.proto, which is freed by protobuf_c_message_free_unpacked. */
static enum failure_code read_message(
    const ProtobufCMessageDescriptor *kind, struct slice message, ProtobufCMessage **out_message) {
    struct budget budget = {.left = message.length + READING_OVERHEAD};
    ProtobufCAllocator allocator = {take, give_back, &budget};
    if (message.length > ETCD_MESSAGE_MAXIMUM || !spare_memory_has_room_for(message.length)) {
        return FAILURE_LIMIT;
    }
    ProtobufCMessage *read =
        protobuf_c_message_unpack(kind, &allocator, message.length, message.data);
    if (read == NULL) {
        return budget.is_spent ? FAILURE_LIMIT : FAILURE_MALFORMED;
    }
    *out_message = read;
    return FAILURE_NONE;
}

static struct slice shown(ProtobufCBinaryData data) {
    return (struct slice){data.data, data.len};
}

static void show(const Etcd__KeyValue *pair, struct etcd_reply *reply) {
    reply->has_key = true;
    reply->key = shown(pair->key);
    reply->value = shown(pair->value);
}

static void show_first(const Etcd__RangeResponse *range, struct etcd_reply *reply) {
    if (range->n_kvs > 0) {
        show(range->kvs[0], reply);
    }
}

enum failure_code etcd_read_range(struct slice message, struct etcd_reply *out_reply) {
    ProtobufCMessage *read;
    enum failure_code code = read_message(&etcd__range_response__descriptor, message, &read);
    if (code == FAILURE_NONE) {
        *out_reply = (struct etcd_reply){.memory = read};
        show_first((const Etcd__RangeResponse *)(const void *)read, out_reply);
    }
    return code;
}

enum failure_code etcd_read_append(struct slice message, struct etcd_reply *out_reply) {
    ProtobufCMessage *read;
    enum failure_code code = read_message(&etcd__txn_response__descriptor, message, &read);
    if (code != FAILURE_NONE) {
        return code;
    }
    const Etcd__TxnResponse *response = (const Etcd__TxnResponse *)(const void *)read;
    *out_reply = (struct etcd_reply){.has_succeeded = response->succeeded, .memory = read};
    for (size_t i = 0; i < response->n_responses; i++) {
        if (response->responses[i]->response_range != NULL) {
            show_first(response->responses[i]->response_range, out_reply);
        }
    }
    return FAILURE_NONE;
}

enum failure_code etcd_read_watch(struct slice message, struct etcd_reply *out_reply) {
    ProtobufCMessage *read;
    enum failure_code code = read_message(&etcd__watch_response__descriptor, message, &read);
    if (code != FAILURE_NONE) {
        return code;
    }
    const Etcd__WatchResponse *response = (const Etcd__WatchResponse *)(const void *)read;
    *out_reply = (struct etcd_reply){
        .is_created = response->created, .is_canceled = response->canceled, .memory = read};
    for (size_t i = 0; i < response->n_events; i++) {
        if (response->events[i]->kv != NULL) {
            show(response->events[i]->kv, out_reply);
        }
    }
    return FAILURE_NONE;
}

void etcd_reply_clear(struct etcd_reply *reply) {
    protobuf_c_message_free_unpacked(reply->memory, NULL);
    *reply = (struct etcd_reply){0};
}

enum failure_code etcd_read_token(struct slice message, char **out_token) {
    ProtobufCMessage *read;
    enum failure_code code = read_message(&etcd__authenticate_response__descriptor, message, &read);
    if (code != FAILURE_NONE) {
        return code;
    }
    Etcd__AuthenticateResponse *response = (Etcd__AuthenticateResponse *)(void *)read;
    char *token = response->token;
    response->token = NULL; /* it stays */
    protobuf_c_message_free_unpacked(read, NULL);
    if (token == NULL) {
        return FAILURE_MALFORMED;
    }
    *out_token = token;
    return FAILURE_NONE;
}

/* gRPC's frame. */

void grpc_write_frame(struct slice message, struct bytes *out) {
    const uint8_t header[FRAME_HEADER] = {0, (uint8_t)(message.length >> 24),
        (uint8_t)(message.length >> 16), (uint8_t)(message.length >> 8), (uint8_t)message.length};
    if (bytes_append(out, header, sizeof header) != FAILURE_NONE ||
        bytes_append(out, message.data, message.length) != FAILURE_NONE) {
        abort(); /* as above */
    }
}

static size_t length_in(const uint8_t header[FRAME_HEADER]) {
    return (size_t)header[1] << 24 | (size_t)header[2] << 16 | (size_t)header[3] << 8 |
           (size_t)header[4];
}

bool grpc_take_frame(struct slice frames, struct slice *out_message, size_t *out_length) {
    if (frames.length < FRAME_HEADER) {
        return false;
    }
    struct slice frame = frames;
    size_t length = FRAME_HEADER + length_in(frames.data);
    frame.length = length < frames.length ? length : frames.length;
    *out_length = frame.length;
    return grpc_read_frame(frame, out_message) == FAILURE_NONE;
}

enum failure_code grpc_read_frame(struct slice frame, struct slice *out_message) {
    if (frame.length < FRAME_HEADER) {
        return FAILURE_INCOMPLETE;
    }
    const uint8_t *header = frame.data;
    size_t length = length_in(header);
    if (header[0] != 0) {
        return FAILURE_MALFORMED;
    }
    if (length > ETCD_MESSAGE_MAXIMUM) {
        return FAILURE_LIMIT;
    }
    if (frame.length - FRAME_HEADER != length) {
        return frame.length - FRAME_HEADER < length ? FAILURE_INCOMPLETE : FAILURE_MALFORMED;
    }
    *out_message = slice_from(frame, FRAME_HEADER);
    return FAILURE_NONE;
}
