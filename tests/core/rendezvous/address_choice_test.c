/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/endpoint_match.h"

#define IPV4(a, b, c, d)                                                                           \
    {                                                                                              \
        .is_ipv6 = false, .bytes = { a, b, c, d }                                                  \
    }
#define IPV6(a, b, last)                                                                           \
    {                                                                                              \
        .is_ipv6 = true, .bytes = { a, b, [15] = last }                                            \
    }

static const struct network_address loopback = IPV4(127, 0, 0, 1);

static const struct network_address ipv6_loopback = IPV6(0, 0, 1);
static const struct network_address ethernet = IPV4(192, 0, 2, 2);
static const struct network_address foreign = IPV4(198, 51, 100, 7);
static const struct network_address zero_configured = IPV4(169, 254, 3, 4);
static const struct network_address link_local = IPV6(0xfe, 0x80, 2);
static const struct network_address global_ipv6 = IPV6(0x20, 0x01, 2);

#define LIST_MAXIMUM 4

/* Address candidates that a test adds one by one. */
struct node {
    struct network_address names[LIST_MAXIMUM];
    struct network_address locals[LIST_MAXIMUM];
    struct address_candidates candidates;
};

static void node_init(struct node *node, const char *host_name, const char *qualified_name) {
    node->candidates = (struct address_candidates){.host_name = host_name,
        .qualified_name = qualified_name,
        .name_addresses = node->names,
        .local_addresses = node->locals};
}

static void node_name_resolves_to(struct node *node, struct network_address address) {
    assert_true(node->candidates.name_address_count < LIST_MAXIMUM);
    node->names[node->candidates.name_address_count++] = address;
}

static void node_has(struct node *node, struct network_address address) {
    assert_true(node->candidates.local_address_count < LIST_MAXIMUM);
    node->locals[node->candidates.local_address_count++] = address;
}

static void assert_choices(const struct node *node, const char *for_one, const char *for_many) {
    CLEARED_BY(text_clear) struct text text = {0};
    address_choice_for_one_node(&node->candidates, &text);
    assert_string_equal(text_string(&text), for_one);
    text_clear(&text);
    address_choice_for_many_nodes(&node->candidates, &text);
    assert_string_equal(text_string(&text), for_many);
}

TEST(name_of_an_own_address_serves_all) {
    struct node node;
    node_init(&node, "trainer-7", "trainer-7.example.org");
    node_name_resolves_to(&node, ethernet);
    node_has(&node, loopback);
    node_has(&node, ethernet);
    assert_choices(&node, "trainer-7.example.org", "trainer-7.example.org");
}

TEST(name_that_means_loopback_is_not_told_to_others) {
    struct node node;
    node_init(&node, "vm", "localhost");
    node_name_resolves_to(&node, loopback);
    node_name_resolves_to(&node, ipv6_loopback);
    node_has(&node, loopback);
    node_has(&node, link_local);
    node_has(&node, global_ipv6);
    node_has(&node, ethernet);
    assert_choices(&node, "localhost", "192.0.2.2");
}

TEST(name_that_also_leads_outside_is_for_others_only) {
    struct node node;
    node_init(&node, "web", "web.example.org");
    node_name_resolves_to(&node, ethernet);
    node_name_resolves_to(&node, foreign);
    node_has(&node, loopback);
    node_has(&node, ethernet);
    assert_choices(&node, "localhost", "web.example.org");
}

TEST(an_image_without_names_is_told_the_loopback_address) {
    struct node node;
    node_init(&node, "c0ffee", "c0ffee");
    node.candidates.lacks_localhost = true;
    node_has(&node, loopback);
    node_has(&node, ethernet);
    assert_choices(&node, "127.0.0.1", "192.0.2.2");
}

TEST(global_ipv6_address_serves_where_there_is_no_ipv4) {
    struct node node;
    node_init(&node, "six", "six");
    node_has(&node, loopback);
    node_has(&node, zero_configured);
    node_has(&node, link_local);
    node_has(&node, global_ipv6);
    assert_choices(&node, "localhost", "2001::2");
}

TEST(host_name_is_the_last_resort) {
    struct node node;
    node_init(&node, "alone", "alone.local");
    node_name_resolves_to(&node, loopback);
    node_has(&node, loopback);
    node_has(&node, link_local);
    assert_choices(&node, "alone.local", "alone");
}

TEST(a_machine_without_network_is_reached_by_itself) {
    struct node node;
    node_init(&node, "sandbox", "sandbox");
    node_has(&node, loopback);
    assert_choices(&node, "localhost", "localhost");
    node_name_resolves_to(&node, loopback);
    assert_choices(&node, "sandbox", "sandbox");
}

TEST(qualified_name_is_the_first_with_a_dot) {
    static const char *const aliases[] = {"short", "long.example.org", "other.example.org", NULL};
    static const char *const none[] = {NULL};
    assert_string_equal(address_choice_qualified_name("h", "c.example", aliases), "c.example");
    assert_string_equal(address_choice_qualified_name("h", "c", aliases), "long.example.org");
    assert_string_equal(address_choice_qualified_name("h", "localhost", none), "localhost");
    assert_string_equal(address_choice_qualified_name("h", "c", NULL), "c");
    assert_string_equal(address_choice_qualified_name("h", NULL, aliases), "h");
}

TEST(loopback_mapped_into_ipv6_is_loopback) {
    struct network_address mapped = {
        .is_ipv6 = true, .bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    assert_true(network_address_is_loopback(&mapped));
    mapped.bytes[12] = 10;
    assert_false(network_address_is_loopback(&mapped));
}

TEST(ipv6_addresses_are_written_in_the_shortest_form) {
    static const struct {
        uint8_t bytes[16];
        const char *text;
    } cases[] = {
        {{0}, "::"},
        {{[15] = 1}, "::1"},
        {{0xfd, [15] = 2}, "fd00::2"},
        {{0x20, 1, 0x0d, 0xb8}, "2001:db8::"},
        {{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, "2001:db8:0:1:1:1:1:1"},
        {{0x20, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, "2001:0:0:1::1"},
        {{0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8}, "1:2:3:4:5:6:7:8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network_address address = {.is_ipv6 = true};
        memcpy(address.bytes, cases[i].bytes, sizeof address.bytes);
        CLEARED_BY(text_clear) struct text text = {0};
        network_address_format(&address, &text);
        assert_string_equal(text_string(&text), cases[i].text);
    }
}

TEST(a_name_that_is_taken_for_a_number_is_told_to_nobody) {
    static const char *const numbers[] = {"1234", "0x7f", "0X7F.1", "10.1", "017700000001"};
    static const char *const names[] = {"node1", "1234.example", "0x", "0xfg", "1e3", "1.", ""};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct node node;
        assert_true(address_choice_is_number(numbers[i]));
        node_init(&node, numbers[i], numbers[i]);
        node_name_resolves_to(&node, foreign);
        node_has(&node, loopback);
        node_has(&node, ethernet);
        assert_choices(&node, "localhost", "192.0.2.2");
        node_init(&node, numbers[i], numbers[i]);
        node_has(&node, loopback);
        node_has(&node, link_local);
        assert_choices(&node, "localhost", "localhost");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(address_choice_is_number(names[i]));
    }
}

TEST(a_machine_may_be_called_by_its_address) {
    struct node node;
    node_init(&node, "192.0.2.2", "192.0.2.2");
    node_name_resolves_to(&node, ethernet);
    node_has(&node, loopback);
    node_has(&node, ethernet);
    assert_choices(&node, "192.0.2.2", "192.0.2.2");
}
