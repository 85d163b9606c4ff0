/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store_request_codec.h"

static void nothing_is_incomplete(void **state) {
    (void)state;
    struct store_request_decoder decoder;
    store_request_decoder_init(&decoder, &STORE_LIMITS_DEFAULT);
    struct store_decoded_request out;
    assert_int_equal(
        store_request_decoder_next(&decoder, (struct slice){0}, &out), FAILURE_INCOMPLETE);
    store_request_decoder_clear(&decoder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_incomplete),
};

TEST_MAIN(tests)
