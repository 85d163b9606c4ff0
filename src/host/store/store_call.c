/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_call.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/store/store_request_codec.h"

/* Appending to a buffer without a ceiling cannot fail. */
static void encode(struct bytes *out, const struct store_request *request) {
    (void)!store_request_encode(request, out);
}

/* Returns the request's key with a '/' in front. It is stored in `storage`, which must have room
 * for all keys, because it must not move. */
static struct slice prefixed(struct slice key, struct bytes *storage) {
    size_t start = storage->length;
    (void)!bytes_append(storage, "/", 1);
    (void)!bytes_append(storage, key.data, key.length);
    return (struct slice){storage->data + start, key.length + 1};
}

static size_t key_bytes(const struct store_request *request) {
    size_t length = request->key.length + 1;
    for (size_t i = 0; i < request->count; i++) {
        length += request->keys[i].length + 1;
    }
    return length;
}

static void encode_parts(struct store_call *call, const struct store_request *request) {
    encode(&call->bytes, request);
    if (call->waits_first) {
        bool is_list = request->operation == STORE_MULTI_GET;
        encode(&call->wait_bytes, &(struct store_request){.operation = STORE_WAIT,
                                      .keys = is_list ? request->keys : &request->key,
                                      .count = is_list ? request->count : 1});
    }
}

/* Puts a '/' in front of everything that may be a key; operations without keys ignore it. */
static void encode_prefixed(struct store_call *call, const struct store_request *request) {
    struct bytes storage = {0};
    (void)!bytes_reserve(&storage, key_bytes(request));
    struct slice *keys = memory_allocate((request->count + 1) * sizeof *keys);
    for (size_t i = 0; i < request->count; i++) {
        keys[i] = prefixed(request->keys[i], &storage);
    }
    struct store_request raw = *request;
    raw.key = prefixed(request->key, &storage);
    raw.keys = keys;
    encode_parts(call, &raw);
    free(keys);
    bytes_clear(&storage);
}

struct store_call *store_call_new(const struct store_client_call *call, struct instant now) {
    struct store_call *made = memory_allocate(sizeof *made);
    made->request =
        (struct store_request){.operation = call->request.operation, .count = call->request.count};
    made->waits_first = call->waits_first;
    made->rests = call->rests;
    made->deadline = instant_after(now, call->rests ? DURATION_FOREVER : call->timeout);
    made->done = call->done;
    made->context = call->context;
    if (call->is_raw) {
        encode_parts(made, &call->request);
    } else {
        encode_prefixed(made, &call->request);
    }
    return made;
}

void store_call_free(struct store_call *call) {
    bytes_clear(&call->wait_bytes);
    bytes_clear(&call->bytes);
    free(call);
}

bool store_call_is_waiting(const struct store_call *call) {
    if (call->stage == STORE_CALL_WAITING_FIRST) {
        return true;
    }
    return call->stage == STORE_CALL_SENT &&
           (call->request.operation == STORE_WAIT || call->request.operation == STORE_BARRIER);
}

void store_call_finish(struct store_call *call_taken, const struct store_client_result *result) {
    if (call_taken->done != NULL) {
        call_taken->done(call_taken->context, result);
    }
    store_call_free(call_taken);
}

void store_call_queue_push(struct store_call_queue *queue, struct store_call *call_taken) {
    call_taken->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = call_taken;
    } else {
        queue->first = call_taken;
    }
    queue->last = call_taken;
}

static struct store_call *remove_after(
    struct store_call_queue *queue, struct store_call *previous) {
    struct store_call *taken = previous == NULL ? queue->first : previous->next;
    if (previous == NULL) {
        queue->first = taken->next;
    } else {
        previous->next = taken->next;
    }
    if (queue->last == taken) {
        queue->last = previous;
    }
    return taken;
}

struct store_call *store_call_queue_pop(struct store_call_queue *queue) {
    return queue->first == NULL ? NULL : remove_after(queue, NULL);
}

struct store_call *store_call_queue_pop_expired(
    struct store_call_queue *queue, struct instant now) {
    struct store_call *previous = NULL;
    for (struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (!instant_is_before(now, each->deadline)) {
            return remove_after(queue, previous);
        }
        previous = each;
    }
    return NULL;
}

struct store_call *store_call_queue_pop_resting(
    struct store_call_queue *queue, struct slice queue_pop) {
    struct store_call *previous = NULL;
    for (struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (each->rests && slice_equals(bytes_slice(&each->bytes), queue_pop)) {
            return remove_after(queue, previous);
        }
        previous = each;
    }
    return NULL;
}

struct instant store_call_queue_deadline(const struct store_call_queue *queue) {
    struct instant earliest = {INT64_MAX};
    for (const struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (instant_is_before(each->deadline, earliest)) {
            earliest = each->deadline;
        }
    }
    return earliest;
}
