/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "core/rendezvous/endpoint_match.h"

static const struct network_address first_card = {.bytes = {10, 0, 0, 1}};
static const struct network_address second_card = {.bytes = {192, 168, 1, 1}};
static const struct network_address elsewhere = {.bytes = {10, 0, 0, 2}};

static const struct network_address loopback = {.bytes = {127, 0, 1, 1}};
static const struct network_address ipv6_card = {.is_ipv6 = true, .bytes = {0xfd, 0x77, [15] = 1}};
static const struct network_address ipv6_elsewhere = {
    .is_ipv6 = true, .bytes = {0xfd, 0x77, [15] = 2}};
static const struct network_address nowhere = {.bytes = {0, 0, 0, 0}};

/* A machine with the name node1 (in full node1.cluster.example) and two network cards. Its name
 * resolves to the address of the first card. Its --local-addr is 203.0.113.5. */
static bool matches(const char *host, const struct network_address *address) {
    const struct network_address local[] = {loopback, first_card, second_card, ipv6_card};
    struct endpoint_facts facts = {
        .host = host,
        .host_addresses = address,
        .host_address_count = address != NULL ? 1 : 0,
        .given_address = "203.0.113.5",
        .own_name = "node1",
        .own_canonical_name = "node1.cluster.example",
        .name_addresses = &first_card,
        .name_address_count = 1,
        .local_addresses = local,
        .local_address_count = 4,
    };
    return endpoint_matches_machine(&facts);
}

TEST(own_names_are_this_machine_even_if_they_do_not_resolve) {
    assert_true(matches("node1", NULL));
    assert_true(matches("node1.cluster.example", NULL));
    assert_false(matches("node1.elsewhere", NULL));
    assert_false(matches("node", NULL));
    assert_false(matches("node11", NULL));
}

TEST(own_addresses_are_this_machine_in_any_spelling) {
    assert_true(matches("10.0.0.1", &first_card));
    assert_true(matches("head.cluster", &first_card));
    assert_false(matches("10.0.0.2", &elsewhere));
    assert_false(matches("head.cluster", &elsewhere));
}

TEST(every_interface_counts) {
    assert_true(matches("192.168.1.1", &second_card));
    assert_true(matches("storage-node1", &second_card));
    assert_true(matches("fd77::1", &ipv6_card));
    assert_false(matches("fd77::2", &ipv6_elsewhere));
}

TEST(name_that_resolves_to_loopback_can_only_be_this_machine) {
    assert_true(matches("master", &loopback));
}

TEST(every_address_is_nobodys) {
    assert_false(matches("0.0.0.0", &nowhere));
}

TEST(localhost_is_this_machine) {
    assert_true(matches("localhost", NULL));
    assert_true(matches("127.0.1.1", &loopback));
}

TEST(whole_labels_at_the_beginning_of_a_name_are_enough) {
    assert_true(matches("node1.cluster", NULL));
    assert_false(matches("node1.clus", NULL));
    assert_false(matches("node1.cluster.example.org", NULL));
    assert_false(matches("cluster.example", NULL));
    assert_false(matches("", NULL));
    assert_false(matches(".", NULL));
}

TEST(names_are_the_same_in_any_case_and_with_their_last_dot) {
    assert_true(matches("Node1.CLUSTER", NULL));
    assert_true(matches("node1.cluster.example.", NULL));
    /* The dot says that the name is complete, and it is another name. */
    assert_false(matches("node1.cluster.", NULL));
    assert_false(matches("node1..", NULL));
}

TEST(the_address_that_the_node_was_given_is_this_machine) {
    assert_true(matches("203.0.113.5", NULL));
    assert_false(matches("203.0.113", NULL));
    assert_false(matches("203.0.113.50", NULL));
}

TEST(one_of_several_addresses_is_enough) {
    const struct network_address both[] = {elsewhere, first_card};
    struct endpoint_facts facts = {
        .host = "head",
        .host_addresses = both,
        .host_address_count = 2,
        .own_name = "node1",
        .local_addresses = &first_card,
        .local_address_count = 1,
    };
    assert_true(endpoint_matches_machine(&facts));
    facts.local_address_count = 0;
    assert_false(endpoint_matches_machine(&facts));
}

static void expect_others(
    const struct network_address *addresses, size_t count, size_t others, const char *expected) {
    const struct network_address local[] = {loopback, first_card, ipv6_card};
    CLEARED_BY(text_clear) struct text out = {0};
    struct endpoint_facts facts = {
        .host = "head",
        .host_addresses = addresses,
        .host_address_count = count,
        .own_name = "node1",
        .name_addresses = &second_card,
        .name_address_count = 1,
        .local_addresses = local,
        .local_address_count = 3,
    };
    assert_int_equal(endpoint_list_others(&facts, &out), others);
    assert_string_equal(text_string(&out), expected);
}

TEST(addresses_of_other_machines_are_told_from_all_of_this_one) {
    const struct network_address own[] = {first_card, second_card, loopback, ipv6_card};
    const struct network_address all[] = {first_card, elsewhere, ipv6_elsewhere};
    struct network_address many[20];
    expect_others(own, 4, 0, "");
    expect_others(all, 3, 2, "10.0.0.2, fd77::2");
    for (size_t i = 0; i < 20; i++) {
        many[i] = elsewhere;
    }
    expect_others(many, 20, 20,
        "10.0.0.2, 10.0.0.2, 10.0.0.2, 10.0.0.2, 10.0.0.2, 10.0.0.2, 10.0.0.2, 10.0.0.2");
}

/* Host place. */

TEST(what_is_written_is_read) {
    static const char *const names[] = {
        "node7", "node-7_a.example.org 10.0.0.7", "10.0.0.7 fd00::7 fe80::1%eth0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEARED_BY(text_clear) struct text text = {0};
        struct host_place place;
        host_place_write(29400, names[i], &text);
        assert_int_equal(host_place_parse(text_string(&text), &place), FAILURE_NONE);
        assert_int_equal(place.port, 29400);
        assert_string_equal(place.names, names[i]);
        host_place_clear(&place);
    }
}

TEST(odd_texts_are_refused) {
    static const char *const odd[] = {"", "29400", "29400 ", " 29400 a", "0 a", "029400 a",
        "65536 a", "123456789012345678901 a", "29400  a", "29400 a ", "29400 a  b", "29400 a\nb",
        "29400 a;b", "29400 /etc", "-1 a", "29400\ta", "a 29400", "29400 \303\266"};
    struct host_place place;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_int_equal(host_place_parse(odd[i], &place), FAILURE_MALFORMED);
    }
}

TEST(a_text_has_a_limit) {
    char text[HOST_PLACE_TEXT_MAXIMUM + 2];
    struct host_place place;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "1 ", 2);
    text[sizeof text - 1] = '\0';
    assert_int_equal(host_place_parse(text, &place), FAILURE_LIMIT);
    text[sizeof text - 2] = '\0';
    assert_int_equal(host_place_parse(text, &place), FAILURE_NONE);
    host_place_clear(&place);
}
