/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_request.h"

TEST(operations_have_the_numbers_and_names_of_pytorch) {
    assert_string_equal(store_operation_name((enum store_operation)0), "VALIDATE");
    assert_string_equal(store_operation_name((enum store_operation)7), "GETNUMKEYS");
    assert_string_equal(store_operation_name((enum store_operation)13), "PING");
    assert_string_equal(store_operation_name((enum store_operation)18), "BARRIER");
    assert_string_equal(store_operation_name((enum store_operation)19), "unknown");
}

TEST(every_operation_knows_its_reply) {
    assert_int_equal(store_operation_reply_kind(STORE_SET), STORE_REPLY_NONE);
    assert_int_equal(store_operation_reply_kind(STORE_COMPARE_SET), STORE_REPLY_BLOB);
    assert_int_equal(store_operation_reply_kind(STORE_BARRIER), STORE_REPLY_BYTE);
    assert_int_equal(store_operation_reply_kind(STORE_LIST_KEYS), STORE_REPLY_KEYS);
    assert_int_equal(store_operation_reply_kind((enum store_operation)19), STORE_REPLY_NONE);
}
