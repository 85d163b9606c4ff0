/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store/owned_request.h"

TEST(an_operation_on_one_key_has_it_and_its_value) {
    CLEARED_BY(owned_request_clear) struct owned_request request = {0};
    text_list_add(&request.keys, "/a");
    text_list_add(&request.values, "v");
    owned_request_finish(&request, STORE_SET, 7);
    assert_int_equal(request.request.operation, STORE_SET);
    assert_true(slice_equals(request.request.key, slice_from_string("/a")));
    assert_true(slice_equals(request.request.value, slice_from_string("v")));
    assert_int_equal(request.request.number, 0);
    assert_int_equal(request.request.count, 0);
}

TEST(only_add_has_a_number) {
    CLEARED_BY(owned_request_clear) struct owned_request request = {0};
    text_list_add(&request.keys, "/a");
    owned_request_finish(&request, STORE_ADD, -3);
    assert_int_equal(request.request.number, -3);
}

TEST(an_operation_on_many_keys_has_them_in_their_order) {
    static const enum store_operation operations[] = {
        STORE_WAIT, STORE_CHECK, STORE_MULTI_GET, STORE_MULTI_SET};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        CLEARED_BY(owned_request_clear) struct owned_request request = {0};
        text_list_add(&request.keys, "/a");
        text_list_add(&request.keys, "/b");
        if (operations[i] == STORE_MULTI_SET) {
            text_list_add(&request.values, "1");
            text_list_add(&request.values, "2");
        }
        owned_request_finish(&request, operations[i], 0);
        assert_int_equal(request.request.count, 2);
        assert_true(slice_equals(request.request.keys[1], slice_from_string("/b")));
        if (operations[i] == STORE_MULTI_SET) {
            assert_true(slice_equals(request.request.values[1], slice_from_string("2")));
        } else {
            assert_null(request.request.values);
        }
    }
}
