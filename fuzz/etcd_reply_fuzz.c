/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as what a server answers that should be etcd: what is read lies in the message.
 */
#include "fuzz_input.h"
#include "wire/register/etcd_message.h"

static void require_inside(struct slice part, struct slice whole) {
    FUZZ_REQUIRE(part.length == 0 ||
                 (part.data >= whole.data && part.data + part.length <= whole.data + whole.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct slice message = input;
    struct slice token;
    struct etcd_reply reply;
    if (grpc_read_frame(input, &message) == FAILURE_NONE) {
        require_inside(message, input);
    }
    if (etcd_read_range(message, &reply) == FAILURE_NONE && reply.has_key) {
        require_inside(reply.key, message);
        require_inside(reply.value, message);
    }
    if (etcd_read_append(message, &reply) == FAILURE_NONE && reply.has_key) {
        require_inside(reply.key, message);
        require_inside(reply.value, message);
    }
    if (etcd_read_token(message, &token) == FAILURE_NONE) {
        require_inside(token, message);
    }
    return 0;
}
