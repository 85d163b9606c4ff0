/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/rendezvous/agent_store_host.h"
#include "host/network/network_address.h"
#include "host/store/store_server.h"

static bool is_loopback_only(const struct launch_config *config, const char *name) {
    struct store_server_settings server = {0};
    int fd;
    assert_int_equal(agent_listener_open(config, name, 0, &server, &fd, NULL), FAILURE_NONE);
    union tcp_address own = {0};
    socklen_t length = sizeof own;
    assert_int_equal(getsockname(fd, &own.any, &length), 0);
    store_server_close_listeners(fd, &server);
    bool is_ipv4_loopback =
        own.any.sa_family == AF_INET && own.ipv4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    assert_int_equal(server.is_local, is_ipv4_loopback);
    assert_int_equal(server.is_for_this_user, is_ipv4_loopback && !config->is_store_for_every_user);
    return is_ipv4_loopback;
}

TEST(only_a_local_job_listens_on_loopback_alone) {
    const struct launch_config local = {.is_local = true};
    const struct launch_config other = {.is_local = false};
    const struct launch_config shared = {.is_local = true, .is_store_for_every_user = true};
    assert_true(is_loopback_only(&local, "localhost"));
    assert_true(is_loopback_only(&shared, "localhost"));
    assert_false(is_loopback_only(&other, "localhost"));
}

TEST(a_local_job_whose_name_is_elsewhere_listens_everywhere) {
    const struct launch_config local = {.is_local = true};
    assert_false(is_loopback_only(&local, "192.0.2.77"));
}
