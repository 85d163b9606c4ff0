/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "host/network/local_address.h"

/* No name server is asked for this name, because a part of it is longer than allowed. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

static void expect_only(struct address_list list, const char *expected) {
    struct text text = {0};
    assert_int_equal(list.count, 1);
    network_address_format(&list.items[0], &text);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    address_list_clear(&list);
    assert_int_equal(list.count, 0);
}

static size_t times_in(const struct address_list *list, const struct network_address *address) {
    size_t times = 0;
    for (size_t i = 0; i < list->count; i++) {
        times += network_address_equals(&list->items[i], address) ? 1 : 0;
    }
    return times;
}

static void address_resolves_to_itself(void **state) {
    (void)state;
    expect_only(address_list_of_name("192.0.2.1", NULL), "192.0.2.1");
    expect_only(address_list_of_name("2001:db8::1", NULL), "2001:db8::1");
}

static void only_an_address_is_read_without_asking(void **state) {
    (void)state;
    expect_only(address_list_of_address("192.0.2.1"), "192.0.2.1");
    expect_only(address_list_of_address("2001:db8::1"), "2001:db8::1");
    assert_int_equal(address_list_of_address("localhost").count, 0);
}

static void canonical_name_is_given_when_asked_for(void **state) {
    (void)state;
    char *name = NULL;
    struct address_list list = address_list_of_name("192.0.2.1", &name);
    assert_string_equal(name, "192.0.2.1");
    free(name);
    address_list_clear(&list);
}

static void unknown_name_has_no_addresses(void **state) {
    (void)state;
    char *name = NULL;
    struct address_list list = address_list_of_name(UNKNOWN, &name);
    assert_int_equal(list.count, 0);
    assert_null(name);
    address_list_clear(&list);
}

/* Which one that is depends on the machine, and where it has no such way, on nothing. */
static void outgoing_first_keeps_every_address(void **state) {
    (void)state;
    struct address_list before = address_list_of_interfaces();
    struct address_list after = address_list_of_interfaces();
    struct network_address absent = {.bytes = {192, 0, 2, 77}};
    address_list_put_outgoing_first(&after);
    assert_int_equal(after.count, before.count);
    for (size_t i = 0; i < before.count; i++) {
        assert_int_equal(times_in(&after, &before.items[i]), times_in(&before, &before.items[i]));
    }
    assert_int_equal(times_in(&after, &absent), 0);
    address_list_clear(&before);
    address_list_clear(&after);
}

static void machine_has_a_loopback_address(void **state) {
    (void)state;
    struct address_list list = address_list_of_interfaces();
    bool has_loopback = false;
    for (size_t i = 0; i < list.count; i++) {
        has_loopback = has_loopback || network_address_is_loopback(&list.items[i]);
    }
    assert_true(has_loopback);
    address_list_clear(&list);
}

static union tcp_address address_of(const char *text) {
    union tcp_address address;
    size_t count;
    assert_int_equal(tcp_address_resolve(text, 1, &address, 1, &count, NULL), FAILURE_NONE);
    return address;
}

static void addresses_of_this_machine_are_told_from_others(void **state) {
    (void)state;
    static const char *const own[] = {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"192.0.2.77", "::ffff:192.0.2.77", "2001:db8::77"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        union tcp_address address = address_of(own[i]);
        assert_true(tcp_address_may_be_here(&address));
        assert_true(address_list_is_of_interface(&address));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        union tcp_address address = address_of(others[i]);
        assert_false(address_list_is_of_interface(&address));
    }
    struct address_list interfaces = address_list_of_interfaces();
    for (size_t i = 0; i < interfaces.count; i++) {
        struct text text = {0};
        network_address_format(&interfaces.items[i], &text);
        union tcp_address address = address_of(text_string(&text));
        assert_true(network_address_is_link_local(&interfaces.items[i]) ||
                    address_list_is_of_interface(&address));
        text_clear(&text);
    }
    address_list_clear(&interfaces);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_of_this_machine_are_told_from_others),
    cmocka_unit_test(address_resolves_to_itself),
    cmocka_unit_test(only_an_address_is_read_without_asking),
    cmocka_unit_test(canonical_name_is_given_when_asked_for),
    cmocka_unit_test(unknown_name_has_no_addresses),
    cmocka_unit_test(outgoing_first_keeps_every_address),
    cmocka_unit_test(machine_has_a_loopback_address),
};

UNIT_TESTS(tests)
