/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store_reply_codec.h"

static void nothing_is_incomplete(void **state) {
    (void)state;
    struct store_reply_decoder decoder;
    store_reply_decoder_init(&decoder, &STORE_REPLY_LIMITS_DEFAULT);
    store_reply_decoder_expect(&decoder, &(struct store_request){.operation = STORE_GET});
    struct store_decoded_reply out;
    assert_int_equal(
        store_reply_decoder_next(&decoder, (struct slice){0}, &out), FAILURE_INCOMPLETE);
    store_reply_decoder_clear(&decoder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_incomplete),
};

TEST_MAIN(tests)
