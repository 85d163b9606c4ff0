/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/option_values.h"

static void expect(const char *text, const char *host, int port) {
    struct endpoint endpoint;
    struct text reason = {0};
    assert_int_equal(endpoint_parse(text, &endpoint, &reason), FAILURE_NONE);
    assert_string_equal(endpoint.host, host);
    assert_int_equal(endpoint.port, port);
    endpoint_clear(&endpoint);
}

TEST(hosts_come_with_and_without_port) {
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

TEST(brackets_hold_an_ipv6_address) {
    expect("[::1]", "::1", ENDPOINT_NO_PORT);
    expect("[::1]:5", "::1", 5);
    expect("[fe80::1]:29500", "fe80::1", 29500);
}

/* torchrun reads "::1" as host ":" and port 1. */
TEST(a_bare_ipv6_address_is_a_host_without_port) {
    expect("::1", "::1", ENDPOINT_NO_PORT);
    expect("2001:db8::5", "2001:db8::5", ENDPOINT_NO_PORT);
    expect("fe80::1:ab", "fe80::1:ab", ENDPOINT_NO_PORT);
    expect("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", ENDPOINT_NO_PORT);
    expect("::1:29500", "::1", 29500); /* a group of an address has at most four digits */
    expect("1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8", 9);
}

TEST(hosts_have_a_longest_length) {
    char host[ENDPOINT_HOST_MAXIMUM + 2] = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    char *copy;
    memset(host, 'h', ENDPOINT_HOST_MAXIMUM);
    assert_int_equal(endpoint_parse_host(host, &copy, &reason), FAILURE_NONE);
    free(copy);
    host[ENDPOINT_HOST_MAXIMUM] = 'h';
    assert_int_equal(endpoint_parse_host(host, &copy, &reason), FAILURE_INVALID);
}

TEST(loopback_is_known_by_name_and_address) {
    static const char *const loopback[] = {"localhost", "localhost.localdomain", "127.0.0.1",
        "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "0::0001", "::ffff:127.0.0.1", "ip6-localhost"};
    static const char *const elsewhere[] = {"node0", "127.example.org", "128.0.0.1", "10.0.0.127",
        "::", "::2", "::1:1", "1::1", "::10", "::ffff:10.0.0.1", "localhost.example.org",
        "0.0.0.0"};
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
        assert_true(endpoint_is_loopback(loopback[i]));
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        assert_false(endpoint_is_loopback(elsewhere[i]));
    }
}

TEST(broken_endpoints_repeat_the_value) {
    static const char *const wrong[] = {":5", "host:", "host:x", "host:65536", "host:123456",
        "http://h:1", "fe80::1%eth0", "[]", "a b:1", "host:-1", "host: 1", "h,i:1", "a:b:1",
        ":::1:29500", "[a:b]:1", "::1:2", "1::2:3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct endpoint endpoint = {.port = 7};
        CLEARED_BY(text_clear) struct text reason = {0};
        assert_int_equal(endpoint_parse(wrong[i], &endpoint, &reason), FAILURE_INVALID);
        assert_int_equal(endpoint.port, 7);
        assert_non_null(strstr(text_string(&reason), wrong[i]));
    }
}

TEST(a_host_is_text) {
    static const char *const wrong[] = {"n\x01", "n\xff", "n\xc3", "\xed\xb3\xbf"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CLEARED_BY(text_clear) struct text reason = {0};
        char *host;
        assert_int_equal(endpoint_parse_host(wrong[i], &host, &reason), FAILURE_INVALID);
    }
}

TEST(ipv6_addresses_are_recognised) {
    static const char *const good[] = {"::", "::1", "1::", "1::8", "2001:db8::ff00:42:8329",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:10.0.0.1", "1:2:3:4:5:6:1.2.3.4"};
    static const char *const bad[] = {"", ":", ":::", "1:2", ":1",
        "1:", "1:2:3:4:5:6:7:8:", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:::2",
        "12345::", "g::", "::1.2.3", "::1.2.3.256", "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6:7:8::", "::1.2.3.4.5"};
    struct text reason = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        FREED char *host = NULL;
        assert_int_equal(endpoint_parse_host(good[i], &host, &reason), FAILURE_NONE);
        assert_string_equal(host, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *host = NULL;
        assert_int_equal(endpoint_parse_host(bad[i], &host, &reason), FAILURE_INVALID);
        text_clear(&reason);
    }
}

/* Endpoint list. */

static void expect_members(const char *text, bool is_https, const char *members) {
    CLEARED_BY(endpoint_list_clear) struct endpoint_list list = {0};
    struct text reason = {0};
    CLEARED_BY(text_clear) struct text joined = {0};
    if (endpoint_list_parse(text, &list, &reason) != FAILURE_NONE) {
        fail_msg("%s", text_string(&reason));
    }
    for (size_t i = 0; i < list.members.count; i++) {
        text_append_format(&joined, "%s ", list.members.items[i]);
    }
    assert_string_equal(text_string(&joined), members);
    assert_int_equal(list.is_https, is_https);
}

static void expect_refused(const char *text, const char *words) {
    struct endpoint_list list = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(endpoint_list_parse(text, &list, &reason), FAILURE_INVALID);
    if (strstr(text_string(&reason), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text_string(&reason), words);
    }
    assert_null(list.members.items);
}

TEST(members_have_hosts_and_ports) {
    expect_members("a:1", false, "a:1 ");
    expect_members("a:1,b:65535,10.0.0.1:3", false, "a:1 b:65535 10.0.0.1:3 ");
    expect_members(" a:1 , [::1]:3 ", false, "a:1 [::1]:3 ");
    expect_members("a,::1", false, "a:2379 [::1]:2379 ");
    expect_members("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,b:1", false,
        "a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 "
        "a:2379 a:2379 a:2379 b:1 ");
}

TEST(schemes_are_cut_off) {
    expect_members("http://a:1,b:2,http://c:3/", false, "a:1 b:2 c:3 ");
    expect_members("https://a:1,https://[::1]/", true, "a:1 [::1]:2379 ");
}

TEST(lists_that_are_none_are_refused) {
    expect_refused("", "one of its members is empty");
    expect_refused(",", "one of its members is empty");
    expect_refused("a:1,", "'a:1,': one of its members is empty");
    expect_refused("a:1,,b:1", "one of its members is empty");
    expect_refused("http://", "one of its members is empty");
    expect_refused("https:///,https://a:1", "one of its members is empty");
    expect_refused("a:1,b:", "'b:': a port from 0 to 65535 has to follow");
    expect_refused("a:65536", "'a:65536': a port");
    expect_refused("a:0", "'a:0': a member of etcd listens on a port from 1");
    expect_refused(":1", "':1': give HOST:PORT");
    expect_refused("ftp://a:1", "'ftp://a:1': give HOST:PORT");
    expect_refused("https://http://a:1", "give HOST:PORT");
    expect_refused("a:1,https://b:1", "some of its members have https:// and others have not");
    expect_refused(
        "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "names 17 members of etcd, more than the 16");
}
