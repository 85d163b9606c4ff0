/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as what a server answers that should be etcd: what is read is no more than came,
 * and all of it can be touched. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/register/etcd_message.h"

static void require_of(struct slice part, struct slice whole) {
    volatile uint8_t sum = 0;
    FUZZ_REQUIRE(part.length <= whole.length);
    for (size_t i = 0; i < part.length; i++) {
        sum = (uint8_t)(sum + part.data[i]);
    }
}

static void read_as(enum failure_code (*read)(struct slice message, struct etcd_reply *out_reply),
    struct slice message) {
    struct etcd_reply reply = {0};
    if (read(message, &reply) == FAILURE_NONE) {
        require_of(reply.key, message);
        require_of(reply.value, message);
        FUZZ_REQUIRE(reply.has_key || (reply.key.length == 0 && reply.value.length == 0));
        etcd_reply_clear(&reply);
    }
    FUZZ_REQUIRE(reply.memory == NULL && reply.key.data == NULL && reply.value.data == NULL);
}

/* One after the other, as a stream brings them. */
static void take_frames(struct slice frames) {
    struct slice message;
    size_t length;
    while (grpc_take_frame(frames, &message, &length)) {
        FUZZ_REQUIRE(length <= frames.length && message.length < length);
        read_as(etcd_read_watch, message);
        frames = slice_from(frames, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct slice message = input;
    char *token = NULL;
    if (grpc_read_frame(input, &message) == FAILURE_NONE) {
        FUZZ_REQUIRE(message.data + message.length == data + size);
    }
    read_as(etcd_read_range, message);
    read_as(etcd_read_append, message);
    read_as(etcd_read_watch, message);
    take_frames(input);
    FUZZ_REQUIRE((etcd_read_token(message, &token) == FAILURE_NONE) == (token != NULL));
    FUZZ_REQUIRE(token == NULL || strlen(token) <= message.length);
    free(token);
    return 0;
}
