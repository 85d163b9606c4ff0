/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>

#include "host/network/network_address.h"

static void expect(const union tcp_address *address, const char *text, int port) {
    char described[TCP_ADDRESS_TEXT_SIZE];
    tcp_address_describe(address, described);
    assert_string_equal(described, text);
    assert_int_equal(tcp_address_port(address), port);
}

TEST(ipv4_is_written_with_its_port) {
    union tcp_address address = {.ipv4 = {.sin_family = AF_INET, .sin_port = htons(29500)}};
    assert_int_equal(inet_pton(AF_INET, "192.0.2.1", &address.ipv4.sin_addr), 1);
    expect(&address, "192.0.2.1:29500", 29500);
}

TEST(ipv6_is_written_in_brackets) {
    union tcp_address address = {.ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(1)}};
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &address.ipv6.sin6_addr), 1);
    expect(&address, "[2001:db8::1]:1", 1);
}

TEST(mapped_ipv4_is_written_as_ipv4) {
    union tcp_address address = {.ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(65535)}};
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.1.2.3", &address.ipv6.sin6_addr), 1);
    expect(&address, "10.1.2.3:65535", 65535);
}

TEST(unknown_family_is_a_question_mark) {
    union tcp_address address = {.any = {.sa_family = AF_UNIX}};
    expect(&address, "?:0", 0);
}

TEST(literal_addresses_resolve_to_themselves) {
    union tcp_address addresses[4];
    size_t count = 0;
    assert_int_equal(
        name_lookup_resolve("192.0.2.7", 29500, addresses, 4, &count, NULL), FAILURE_NONE);
    assert_int_equal(count, 1);
    expect(&addresses[0], "192.0.2.7:29500", 29500);
    assert_int_equal(name_lookup_resolve("::1", 1, addresses, 4, &count, NULL), FAILURE_NONE);
    expect(&addresses[0], "[::1]:1", 1);
}

TEST(unknown_host_is_named) {
    union tcp_address addresses[1];
    size_t count = 77;
    struct failure failure = {0};
    assert_int_equal(
        name_lookup_resolve("no such host", 1, addresses, 1, &count, &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "no such host"));
    assert_int_equal(count, 77);
}

static void expect_this_machine(const char *peer, const char *own, bool is_expected) {
    union tcp_address addresses[2];
    size_t count;
    assert_int_equal(name_lookup_resolve(peer, 1, &addresses[0], 1, &count, NULL), FAILURE_NONE);
    assert_int_equal(name_lookup_resolve(own, 2, &addresses[1], 1, &count, NULL), FAILURE_NONE);
    assert_int_equal(tcp_address_is_this_machine(&addresses[0], &addresses[1]), is_expected);
}

TEST(who_connects_to_its_own_address_is_on_this_machine) {
    expect_this_machine("127.0.0.1", "127.0.0.1", true);
    expect_this_machine("127.8.0.1", "::1", true);
    expect_this_machine("::1", "::1", true);
    expect_this_machine("::ffff:127.0.0.1", "::ffff:127.0.0.1", true);
    expect_this_machine("192.0.2.7", "::ffff:192.0.2.7", true);
    expect_this_machine("2001:db8::1", "2001:db8::1", true);
    expect_this_machine("192.0.2.8", "192.0.2.7", false);
    expect_this_machine("2001:db8::2", "2001:db8::1", false);
    expect_this_machine("::ffff:192.0.2.8", "::ffff:192.0.2.7", false);
}

static void expect_host(const char *address, const char *text) {
    union tcp_address resolved;
    size_t count;
    uint8_t host[TCP_ADDRESS_HOST_BYTES];
    char written[INET6_ADDRSTRLEN];
    assert_int_equal(name_lookup_resolve(address, 1, &resolved, 1, &count, NULL), FAILURE_NONE);
    tcp_address_host(&resolved, host);
    assert_int_equal(tcp_address_write_host(host, written), text != NULL);
    if (text != NULL) {
        assert_string_equal(written, text);
    }
}

TEST(a_host_is_written_unless_only_this_machine_can_have_it) {
    expect_host("192.0.2.7", "192.0.2.7");
    expect_host("::ffff:192.0.2.7", "192.0.2.7");
    expect_host("2001:db8::1", "2001:db8::1");
    expect_host("127.0.0.1", NULL);
    expect_host("::ffff:127.1.2.3", NULL);
    expect_host("::1", NULL);
    expect_host("::", NULL);
}

static void expect_numeric(const char *address, const char *text, bool is_complete) {
    union tcp_address resolved;
    size_t count;
    char written[INET6_ADDRSTRLEN];
    assert_int_equal(name_lookup_resolve(address, 1, &resolved, 1, &count, NULL), FAILURE_NONE);
    assert_int_equal(tcp_address_write_numeric(&resolved, written), is_complete);
    assert_string_equal(written, text);
}

TEST(numbers_are_all_of_an_address_unless_it_is_link_local) {
    expect_numeric("192.0.2.7", "192.0.2.7", true);
    expect_numeric("::ffff:192.0.2.7", "192.0.2.7", true);
    expect_numeric("127.0.0.1", "127.0.0.1", true);
    expect_numeric("2001:db8::1", "2001:db8::1", true);
    expect_numeric("fe80::1%lo", "fe80::1", false);
}
