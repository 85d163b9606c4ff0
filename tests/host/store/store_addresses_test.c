/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>

#include "base/memory.h"
#include "host/store/store_client.h"

/* No name server is asked for this name, because a part of it is longer than allowed. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

static void expect_description(const struct store_addresses *addresses, const char *expected) {
    struct text text = {0};
    store_addresses_describe(addresses, &text);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

static void address_is_handed_out_again_and_again(void **state) {
    (void)state;
    struct store_addresses addresses;
    store_addresses_init(&addresses, "192.0.2.1", 29500);
    for (int i = 0; i < 3; i++) {
        const union tcp_address *address = store_addresses_next(&addresses);
        char text[TCP_ADDRESS_TEXT_SIZE];
        assert_non_null(address);
        tcp_address_describe(address, text);
        assert_string_equal(text, "192.0.2.1:29500");
        assert_false(store_addresses_has_more(&addresses));
    }
    store_addresses_clear(&addresses);
}

static void description_tells_what_became_of_each_address(void **state) {
    (void)state;
    struct store_addresses addresses;
    struct failure failure;
    store_addresses_init(&addresses, "2001:db8::1", 7);
    expect_description(&addresses, "after 0 attempts: its name was never looked up");
    (void)store_addresses_next(&addresses);
    expect_description(&addresses, "after 1 attempt: [2001:db8::1]:7: no attempt was finished");
    failure_set_system(&failure, ECONNREFUSED, "cannot connect");
    store_addresses_note(&addresses, &failure);
    expect_description(&addresses,
        "after 1 attempt: [2001:db8::1]:7: cannot connect: Connection refused (errno 111)");
    (void)store_addresses_next(&addresses);
    expect_description(&addresses,
        "after 2 attempts: [2001:db8::1]:7: cannot connect: Connection refused (errno 111)");
    store_addresses_clear(&addresses);
}

static void attempt_that_was_cut_off_hides_no_earlier_one(void **state) {
    (void)state;
    struct store_addresses addresses;
    struct failure failure;
    store_addresses_init(&addresses, "192.0.2.1", 7);
    (void)store_addresses_next(&addresses);
    failure_set(&failure, FAILURE_TIMEOUT, "it does not answer");
    store_addresses_note_unfinished(&addresses, &failure);
    expect_description(&addresses, "after 1 attempt: 192.0.2.1:7: it does not answer");
    failure_set_system(&failure, ECONNREFUSED, "cannot connect");
    store_addresses_note(&addresses, &failure);
    (void)store_addresses_next(&addresses);
    failure_set(&failure, FAILURE_TIMEOUT, "it does not answer");
    store_addresses_note_unfinished(&addresses, &failure);
    expect_description(&addresses,
        "after 2 attempts: 192.0.2.1:7: cannot connect: Connection refused (errno 111)");
    store_addresses_clear(&addresses);
}

static void several_addresses_come_one_after_the_other(void **state) {
    (void)state;
    struct store_addresses addresses;
    struct failure failure;
    store_addresses_init(&addresses, "192.0.2.1", 7);
    (void)store_addresses_next(&addresses);
    /* as if the name had two */
    addresses.items = memory_reallocate(addresses.items, 2 * sizeof *addresses.items);
    addresses.items[1] = (struct store_address){.address.ipv4.sin_family = AF_INET};
    addresses.count = 2;
    assert_true(store_addresses_has_more(&addresses));
    failure_set(&failure, FAILURE_TIMEOUT, "it does not answer");
    store_addresses_note(&addresses, &failure);
    (void)store_addresses_next(&addresses);
    assert_false(store_addresses_has_more(&addresses));
    failure_set(&failure, FAILURE_DISCONNECTED, "closed by the peer");
    store_addresses_note(&addresses, &failure);
    expect_description(&addresses, "after 2 attempts: 192.0.2.1:7: it does not answer; 0.0.0.0:0: "
                                   "closed by the peer");
    store_addresses_clear(&addresses);
}

static void expect_next(struct store_addresses *addresses, const char *expected) {
    char text[TCP_ADDRESS_TEXT_SIZE];
    const union tcp_address *address = store_addresses_next(addresses);
    assert_non_null(address);
    tcp_address_describe(address, text);
    assert_string_equal(text, expected);
}

static void several_names_are_tried_in_their_order_and_none_twice(void **state) {
    (void)state;
    struct store_addresses addresses;
    store_addresses_init(&addresses, UNKNOWN " 192.0.2.1 2001:db8::1 192.0.2.1", 7);
    expect_next(&addresses, "192.0.2.1:7");
    expect_next(&addresses, "[2001:db8::1]:7");
    assert_false(store_addresses_has_more(&addresses));
    expect_next(&addresses, "192.0.2.1:7");
    assert_int_equal(addresses.unresolved.code, FAILURE_NONE);
    store_addresses_clear(&addresses);
}

static void unknown_name_is_looked_up_each_time(void **state) {
    (void)state;
    struct store_addresses addresses;
    store_addresses_init(&addresses, UNKNOWN, 7);
    assert_null(store_addresses_next(&addresses));
    store_addresses_note(&addresses, &(struct failure){.code = FAILURE_SYSTEM});
    assert_null(store_addresses_next(&addresses));
    struct text text = {0};
    store_addresses_describe(&addresses, &text);
    assert_non_null(
        strstr(text_string(&text), "after 2 attempts: host \"" UNKNOWN "\" is not known"));
    text_clear(&text);
    store_addresses_clear(&addresses);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(address_is_handed_out_again_and_again),
    cmocka_unit_test(description_tells_what_became_of_each_address),
    cmocka_unit_test(attempt_that_was_cut_off_hides_no_earlier_one),
    cmocka_unit_test(several_addresses_come_one_after_the_other),
    cmocka_unit_test(several_names_are_tried_in_their_order_and_none_twice),
    cmocka_unit_test(unknown_name_is_looked_up_each_time),
};

UNIT_TESTS(tests)
