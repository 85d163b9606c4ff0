/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>

#include "host/store/store_admission.h"

static bool admits(struct store_admission *admission, int family, const char *text) {
    union tcp_address address = {.any = {.sa_family = (sa_family_t)family}};
    void *host = family == AF_INET ? (void *)&address.ipv4.sin_addr : &address.ipv6.sin6_addr;
    assert_int_equal(inet_pton(family, text, host), 1);
    return store_admission_admits(admission, &address);
}

TEST(all_machines_or_none_are_admitted_at_first) {
    struct store_admission *open = store_admission_new(true);
    struct store_admission *closed = store_admission_new(false);
    assert_true(admits(open, AF_INET, "192.0.2.1"));
    assert_false(admits(closed, AF_INET, "192.0.2.1"));
    store_admission_open(closed);
    assert_true(admits(closed, AF_INET, "192.0.2.1"));
    store_admission_free(open);
    store_admission_free(closed);
    store_admission_free(NULL);
}

TEST(only_the_addresses_of_the_last_list_are_admitted) {
    struct store_admission *admission = store_admission_new(true);
    assert_int_equal(store_admission_limit(admission, "192.0.2.1 192.0.2.2 192.0.2.1"), 2);
    assert_true(admits(admission, AF_INET, "192.0.2.1"));
    assert_true(admits(admission, AF_INET, "192.0.2.2"));
    assert_false(admits(admission, AF_INET, "192.0.2.3"));
    assert_int_equal(store_admission_limit(admission, "192.0.2.3"), 1);
    assert_false(admits(admission, AF_INET, "192.0.2.1"));
    assert_int_equal(store_admission_limit(admission, ""), 0);
    assert_false(admits(admission, AF_INET, "192.0.2.3"));
    store_admission_free(admission);
}

TEST(an_address_is_the_same_in_every_spelling) {
    struct store_admission *admission = store_admission_new(false);
    assert_int_equal(
        store_admission_limit(admission, "192.0.2.1 2001:db8:0:0::1 ::ffff:192.0.2.7"), 3);
    assert_true(admits(admission, AF_INET6, "::ffff:192.0.2.1"));
    assert_true(admits(admission, AF_INET6, "2001:db8::1"));
    assert_true(admits(admission, AF_INET, "192.0.2.7"));
    assert_false(admits(admission, AF_INET6, "2001:db8::2"));
    store_admission_free(admission);
}

TEST(words_that_are_no_address_are_left_out) {
    struct store_admission *admission = store_admission_new(false);
    assert_int_equal(store_admission_limit(admission, "  node1 192.0.2 192.0.2.1 :: 1:2 "), 2);
    assert_true(admits(admission, AF_INET, "192.0.2.1"));
    store_admission_free(admission);
}

static bool is_news(struct store_admission *admission, uint32_t host) {
    union tcp_address address = {.ipv4 = {.sin_family = AF_INET}};
    address.ipv4.sin_addr.s_addr = htonl(host);
    return store_admission_is_news(admission, &address);
}

TEST(who_is_turned_away_is_news_once) {
    struct store_admission *admission = store_admission_new(false);
    assert_true(is_news(admission, 1));
    assert_true(is_news(admission, 2));
    assert_false(is_news(admission, 1));
    assert_false(is_news(admission, 2));
    store_admission_free(admission);
}

/* Whoever has many addresses takes no memory for all of them. */
TEST(of_very_many_the_first_are_forgotten) {
    struct store_admission *admission = store_admission_new(false);
    for (uint32_t host = 1; host <= 5000; host++) {
        assert_true(is_news(admission, host));
    }
    assert_true(is_news(admission, 1));
    assert_false(is_news(admission, 5000));
    store_admission_free(admission);
}
