/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "host/network/local_address.h"

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
