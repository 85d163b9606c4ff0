/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "host/address_list.h"
#include "host/endpoint_owner.h"
#include "host/local_address.h"

/* A name no server is asked for: a part of it is longer than names may be. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

static void names_everybody_has_for_himself_are_this_machine(void **state) {
    (void)state;
    assert_true(endpoint_owner_is_this_machine("localhost"));
    assert_true(endpoint_owner_is_this_machine("127.0.0.1"));
    assert_true(endpoint_owner_is_this_machine("127.9.9.9"));
    assert_true(endpoint_owner_is_this_machine("::1"));
}

static void own_host_name_is_this_machine(void **state) {
    (void)state;
    char *name;
    assert_int_equal(local_address_host_name(&name, NULL), FAILURE_NONE);
    assert_true(endpoint_owner_is_this_machine(name));
    free(name);
}

static void addresses_of_all_interfaces_are_this_machine(void **state) {
    (void)state;
    struct address_list list = address_list_of_interfaces();
    assert_true(list.count > 0);
    for (size_t i = 0; i < list.count; i++) {
        struct text text = {0};
        network_address_format(&list.items[i], &text);
        assert_true(endpoint_owner_is_this_machine(text_string(&text)));
        text_clear(&text);
    }
    address_list_clear(&list);
}

static void others_are_not_this_machine(void **state) {
    (void)state;
    assert_false(endpoint_owner_is_this_machine("192.0.2.1"));
    assert_false(endpoint_owner_is_this_machine("2001:db8::1"));
    assert_false(endpoint_owner_is_this_machine(UNKNOWN));
}

static void every_address_is_not_this_machine(void **state) {
    (void)state;
    assert_false(endpoint_owner_is_this_machine("0.0.0.0"));
    assert_false(endpoint_owner_is_this_machine("::"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_everybody_has_for_himself_are_this_machine),
    cmocka_unit_test(own_host_name_is_this_machine),
    cmocka_unit_test(addresses_of_all_interfaces_are_this_machine),
    cmocka_unit_test(others_are_not_this_machine),
    cmocka_unit_test(every_address_is_not_this_machine),
};

TEST_MAIN(tests)
