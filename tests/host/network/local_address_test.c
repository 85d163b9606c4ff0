/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/network/network_address.h"

static bool can_bind(const struct addrinfo *address) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool is_bound = bind(fd, address->ai_addr, address->ai_addrlen) == 0;
    assert_int_equal(close(fd), 0);
    return is_bound;
}

/* Whether an address of the name belongs to this machine: only then can it be bound. */
static bool leads_here(const char *name) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (getaddrinfo(name, NULL, &hints, &addresses) != 0) {
        return false;
    }
    bool is_here = false;
    for (const struct addrinfo *one = addresses; one != NULL && !is_here; one = one->ai_next) {
        is_here = can_bind(one);
    }
    freeaddrinfo(addresses);
    return is_here;
}

TEST(host_name_is_the_kernels) {
    char expected[256];
    assert_int_equal(gethostname(expected, sizeof expected), 0);
    char *name;
    assert_int_equal(local_address_host_name(&name, NULL), FAILURE_NONE);
    assert_string_equal(name, expected);
    free(name);
}

TEST(some_qualified_name_is_always_found) {
    char *name;
    assert_int_equal(local_address_qualified_name(&name, NULL), FAILURE_NONE);
    assert_true(strlen(name) > 0);
    free(name);
}

TEST(address_for_one_node_leads_here) {
    char *name;
    assert_int_equal(local_address_for_one_node(&name, NULL), FAILURE_NONE);
    assert_true(leads_here(name));
    free(name);
}

/* Defect 25 of torchrun: a host name that /etc/hosts maps to 127.0.0.1 was told to other nodes as
 * "localhost". */
TEST(address_for_many_nodes_is_never_localhost) {
    char *host_name;
    assert_int_equal(local_address_host_name(&host_name, NULL), FAILURE_NONE);
    char *name;
    assert_int_equal(local_address_for_many_nodes(&name, NULL, NULL), FAILURE_NONE);
    assert_true(strlen(name) > 0);
    /* On a machine without any network, the bare host name is the last resort. */
    assert_true(strcmp(name, "localhost") != 0 || strcmp(host_name, "localhost") == 0);
    assert_false(text_starts_with(name, "127."));
    free(name);
    free(host_name);
}

TEST(other_machines_may_see_the_interfaces_but_for_loopback) {
    struct text all = {0};
    struct text none = {0};
    local_address_write_interfaces(4096, &all);
    assert_null(strstr(text_string(&all), "127.0.0.1"));
    assert_null(strstr(text_string(&all), "fe80:"));
    assert_int_equal(strspn(text_string(&all), "0123456789abcdef.: "), all.length);
    local_address_write_interfaces(1, &none);
    assert_int_equal(none.length, 0);
    text_clear(&all);
    text_clear(&none);
}

TEST(only_an_own_address_as_it_is_written_is_one_beyond_loopback) {
    struct text all = {0};
    assert_false(local_address_is_beyond_loopback("127.0.0.1"));
    assert_false(local_address_is_beyond_loopback("2130706433"));
    assert_false(local_address_is_beyond_loopback("localhost"));
    assert_false(local_address_is_beyond_loopback("198.51.100.7"));
    local_address_write_interfaces(4096, &all);
    if (all.length > 0) {
        all.data[strcspn(all.data, " ")] = '\0';
        assert_true(local_address_is_beyond_loopback(all.data));
    }
    text_clear(&all);
}

/* Address list. */

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

/* Endpoint owner. */

/* No name server is asked for this name, because a part of it is longer than allowed. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

struct fixture {
    struct event_loop *loop;
    struct endpoint_owner *owner;
    int answer_count;
    bool is_own;
    bool frees_itself;
};

static void answered(void *context, bool is_own) {
    struct fixture *fixture = context;
    fixture->answer_count++;
    fixture->is_own = is_own;
    if (fixture->frees_itself) {
        endpoint_owner_free(fixture->owner);
        fixture->owner = NULL;
    }
    event_loop_stop(fixture->loop);
}

static void set_up(struct fixture *fixture, const char *host) {
    *fixture = (struct fixture){0};
    struct endpoint_owner_settings settings = {
        .host = host, .answered = answered, .context = fixture};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        endpoint_owner_new(fixture->loop, &settings, &fixture->owner, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    endpoint_owner_free(fixture->owner);
    assert_true(event_loop_free(fixture->loop));
}

static bool ask(struct fixture *fixture) {
    assert_int_equal(endpoint_owner_ask(fixture->owner, NULL), FAILURE_NONE);
    assert_int_equal(fixture->answer_count, 0); /* no answer comes from inside the call */
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 1);
    fixture->answer_count = 0;
    return fixture->is_own;
}

static bool is_own(const char *host) {
    struct fixture fixture;
    set_up(&fixture, host);
    bool is_own = ask(&fixture);
    tear_down(&fixture);
    return is_own;
}

TEST(names_everybody_has_for_himself_are_this_machine) {
    static const char *const hosts[] = {"localhost", "127.0.0.1", "127.9.9.9", "::1"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(endpoint_owner_is_plain(hosts[i], NULL));
        assert_true(is_own(hosts[i]));
    }
}

TEST(own_host_name_is_this_machine) {
    char *name;
    assert_int_equal(local_address_host_name(&name, NULL), FAILURE_NONE);
    assert_true(endpoint_owner_is_plain(name, NULL));
    assert_true(is_own(name));
    free(name);
}

TEST(the_address_that_was_given_is_this_machine) {
    assert_true(endpoint_owner_is_plain(UNKNOWN, UNKNOWN));
    assert_true(endpoint_owner_is_plain("192.0.2.1", "192.0.2.1"));
    assert_false(endpoint_owner_is_plain("192.0.2.1", "192.0.2.2"));
}

TEST(addresses_of_all_interfaces_are_this_machine) {
    struct address_list list = address_list_of_interfaces();
    assert_true(list.count > 0);
    for (size_t i = 0; i < list.count; i++) {
        struct text text = {0};
        network_address_format(&list.items[i], &text);
        assert_true(endpoint_owner_is_plain(text_string(&text), NULL));
        text_clear(&text);
    }
    address_list_clear(&list);
}

TEST(others_are_not_this_machine) {
    static const char *const hosts[] = {"192.0.2.1", "2001:db8::1", UNKNOWN, "0.0.0.0", "::"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_false(endpoint_owner_is_plain(hosts[i], NULL));
        assert_false(is_own(hosts[i]));
    }
}

FIXTURE_TEST_AFTER(it_can_be_asked_again, set_up(&fixture, UNKNOWN)) {
    assert_false(ask(fixture));
    assert_false(ask(fixture));
}

FIXTURE_TEST_AFTER(one_question_at_a_time_is_answered_once, set_up(&fixture, "127.0.0.1")) {
    assert_int_equal(endpoint_owner_ask(fixture->owner, NULL), FAILURE_NONE);
    assert_true(ask(fixture));
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->answer_count, 0);
}

TEST(a_question_under_way_can_be_forgotten) {
    for (int i = 0; i < 50; i++) {
        struct fixture fixture;
        set_up(&fixture, "127.0.0.1");
        assert_int_equal(endpoint_owner_ask(fixture.owner, NULL), FAILURE_NONE);
        tear_down(&fixture);
    }
}

FIXTURE_TEST_AFTER(whoever_is_answered_may_free_it, set_up(&fixture, "127.0.0.1")) {
    fixture->frees_itself = true;
    assert_true(ask(fixture));
    assert_null(fixture->owner);
}
