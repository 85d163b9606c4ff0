/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "host/network/local_address.h"
#include "host/network/name_lookup.h"

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

TEST(address_resolves_to_itself) {
    expect_only(address_list_of_name("192.0.2.1", NULL), "192.0.2.1");
    expect_only(address_list_of_name("2001:db8::1", NULL), "2001:db8::1");
}

TEST(canonical_name_is_given_when_asked_for) {
    char *name = NULL;
    struct address_list list = address_list_of_name("192.0.2.1", &name);
    assert_string_equal(name, "192.0.2.1");
    free(name);
    address_list_clear(&list);
}

TEST(unknown_name_has_no_addresses) {
    char *name = NULL;
    struct address_list list = address_list_of_name(UNKNOWN, &name);
    assert_int_equal(list.count, 0);
    assert_null(name);
    address_list_clear(&list);
}

TEST(machine_has_a_loopback_address) {
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
    assert_int_equal(name_lookup_resolve(text, 1, &address, 1, &count, NULL), FAILURE_NONE);
    return address;
}

TEST(addresses_of_this_machine_are_told_from_others) {
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
