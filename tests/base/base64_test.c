/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"

static void assert_pair(const char *plain, const char *encoded) {
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    assert_int_equal(base64_encode(slice_from_string(plain), &out), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&out), slice_from_string(encoded)));
    bytes_clear(&out);
    assert_int_equal(base64_decode(slice_from_string(encoded), &out), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&out), slice_from_string(plain)));
}

TEST(the_examples_of_the_standard_hold) {
    assert_pair("", "");
    assert_pair("f", "Zg==");
    assert_pair("fo", "Zm8=");
    assert_pair("foo", "Zm9v");
    assert_pair("foob", "Zm9vYg==");
    assert_pair("fooba", "Zm9vYmE=");
    assert_pair("foobar", "Zm9vYmFy");
    assert_pair("\373\377\276", "+/++");
}

TEST(every_byte_comes_back_wherever_it_stands) {
    uint8_t plain[259];
    for (size_t i = 0; i < sizeof plain; i++) {
        plain[i] = (uint8_t)(i * 37);
    }
    for (size_t length = sizeof plain - 3; length <= sizeof plain; length++) {
        CLEARED_BY(bytes_clear) struct bytes encoded = {0};
        CLEARED_BY(bytes_clear) struct bytes decoded = {0};
        assert_int_equal(base64_encode((struct slice){plain, length}, &encoded), FAILURE_NONE);
        assert_int_equal(encoded.length % 4, 0);
        assert_int_equal(base64_decode(bytes_slice(&encoded), &decoded), FAILURE_NONE);
        assert_true(slice_equals(bytes_slice(&decoded), (struct slice){plain, length}));
    }
}

TEST(what_python_skips_is_skipped) {
    static const char *const same[] = {
        "Zm8=", "Z m\n8\t=", "-Zm8_=", "=Zm8=", "Z=m8=", "Zm8==", "Zm8=!", "\377Zm8="};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        CLEARED_BY(bytes_clear) struct bytes out = {0};
        assert_int_equal(base64_decode(slice_from_string(same[i]), &out), FAILURE_NONE);
        assert_true(slice_equals(bytes_slice(&out), slice_from_string("fo")));
    }
}

TEST(bad_padding_is_malformed_and_adds_nothing) {
    static const char *const wrong[] = {"Z", "Zg", "Zg=", "Zm8", "Zm9vY", "Zm9vYg",
        "Z===", "Zm9vYg=", "Zg=A", "Zm9vZ=", "Zm8=A", "Zm8=Zm8=", "Zg==AB"};
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    assert_int_equal(bytes_append(&out, "x", 1), FAILURE_NONE);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(base64_decode(slice_from_string(wrong[i]), &out), FAILURE_MALFORMED);
        assert_true(slice_equals(bytes_slice(&out), slice_from_string("x")));
    }
}

TEST_OF(bytes, the_ceiling_holds_both_ways, bytes_init(&fixture, 7), bytes_clear) {
    assert_int_equal(base64_encode(slice_from_string("four"), fixture), FAILURE_LIMIT);
    assert_int_equal(base64_decode(slice_from_string("Zm9vYmFyZm9v"), fixture), FAILURE_LIMIT);
    assert_int_equal(fixture->length, 0);
    assert_int_equal(base64_encode(slice_from_string("two"), fixture), FAILURE_NONE);
    assert_int_equal(base64_decode(slice_from_string("Zm9v"), fixture), FAILURE_NONE);
    assert_int_equal(fixture->length, 7);
}
