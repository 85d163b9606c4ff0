/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/endpoint.h"

static void expect(const char *text, const char *host, int port) {
    struct endpoint endpoint;
    struct text reason = {0};
    assert_int_equal(endpoint_parse(text, &endpoint, &reason), FAILURE_NONE);
    assert_string_equal(endpoint.host, host);
    assert_int_equal(endpoint.port, port);
    endpoint_clear(&endpoint);
}

static void hosts_come_with_and_without_port(void **state) {
    (void)state;
    expect("", "localhost", ENDPOINT_NO_PORT);
    expect("  ", "localhost", ENDPOINT_NO_PORT);
    expect("node0", "node0", ENDPOINT_NO_PORT);
    expect(" node0:29500 ", "node0", 29500);
    expect("10.0.0.1:0", "10.0.0.1", 0);
    expect("a_b-c.example:65535", "a_b-c.example", 65535);
    expect("-x", "-x", ENDPOINT_NO_PORT);
    expect("n\xc3\xb6"
           "de:1",
        "n\xc3\xb6"
        "de",
        1);
}

static void brackets_hold_an_ipv6_address(void **state) {
    (void)state;
    expect("[::1]", "::1", ENDPOINT_NO_PORT);
    expect("[::1]:5", "::1", 5);
    expect("[fe80::1]:29500", "fe80::1", 29500);
}

/* torchrun takes "::1" for host ":" and port 1. */
static void a_bare_ipv6_address_is_a_host_without_port(void **state) {
    (void)state;
    expect("::1", "::1", ENDPOINT_NO_PORT);
    expect("fe80::1:2", "fe80::1:2", ENDPOINT_NO_PORT);
    expect("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", ENDPOINT_NO_PORT);
    expect("::1:29500", "::1", 29500); /* five digits are no part of an address */
}

static void broken_endpoints_repeat_the_value(void **state) {
    (void)state;
    static const char *const wrong[] = {":5", "host:", "host:x", "host:65536", "host:123456",
        "http://h:1", "fe80::1%eth0", "[]", "a b:1", "host:-1", "host: 1", "h,i:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct endpoint endpoint = {.port = 7};
        struct text reason = {0};
        assert_int_equal(endpoint_parse(wrong[i], &endpoint, &reason), FAILURE_INVALID);
        assert_int_equal(endpoint.port, 7);
        assert_non_null(strstr(text_string(&reason), wrong[i]));
        text_clear(&reason);
    }
}

static void a_host_alone_may_have_brackets(void **state) {
    (void)state;
    struct text reason = {0};
    char *host;
    assert_int_equal(endpoint_parse_host("[::1]", &host, &reason), FAILURE_NONE);
    assert_string_equal(host, "::1");
    free(host);
    assert_int_equal(endpoint_parse_host("::1", &host, &reason), FAILURE_NONE);
    assert_string_equal(host, "::1");
    free(host);
    assert_int_equal(endpoint_parse_host("", &host, &reason), FAILURE_INVALID);
    text_clear(&reason);
}

static void ipv6_addresses_are_recognised(void **state) {
    (void)state;
    static const char *const good[] = {"::", "::1", "1::", "1::8", "2001:db8::ff00:42:8329",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:10.0.0.1", "1:2:3:4:5:6:1.2.3.4"};
    static const char *const bad[] = {"", ":", ":::", "1", "1:2", ":1",
        "1:", "1:2:3:4:5:6:7:8:", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:::2",
        "12345::", "g::", "::1.2.3", "::1.2.3.256", "1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6:7:8::", "::1.2.3.4.5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(endpoint_is_ipv6_address(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(endpoint_is_ipv6_address(bad[i]));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hosts_come_with_and_without_port),
    cmocka_unit_test(brackets_hold_an_ipv6_address),
    cmocka_unit_test(a_bare_ipv6_address_is_a_host_without_port),
    cmocka_unit_test(broken_endpoints_repeat_the_value),
    cmocka_unit_test(a_host_alone_may_have_brackets),
    cmocka_unit_test(ipv6_addresses_are_recognised),
};

TEST_MAIN(tests)
