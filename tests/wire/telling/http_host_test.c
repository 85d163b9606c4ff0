/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/http_host.h"

static bool admits(const char *names, const char *host) {
    struct text_list list = {0};
    http_host_add_names(names, &list);
    bool is_admitted = http_host_is_admitted(host, &list);
    text_list_clear(&list);
    return is_admitted;
}

TEST(addresses_and_localhost_are_always_admitted) {
    static const char *const hosts[] = {"127.0.0.1", "127.0.0.1:8080", "10.0.0.7:9100", "[::1]",
        "[::1]:80", "[fe80::1%25]:80", "[::ffff:10.0.0.7]", "localhost", "LocalHost:8080",
        "localhost.", "", NULL};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(admits("", hosts[i]));
    }
}

TEST(a_name_of_another_domain_is_not) {
    static const char *const hosts[] = {"evil.example", "evil.example:8080",
        "localhost.evil.example", "node7.evil.example", "127.0.0.1.evil.example", "node7.cluster",
        "node7.cluster.example.evil.example", "xnode7.cluster.example", "[evil.example]", "[", "[]",
        ".", ":80", "10.0.0.7.x", " ", "node"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_false(admits("node7.cluster.example", hosts[i]));
    }
}

TEST(this_machines_names_are_admitted_with_any_port) {
    static const char names[] = "node7 , node7.cluster.example.,other";
    static const char *const hosts[] = {
        "node7", "NODE7:8080", "node7.cluster.example", "node7.cluster.example.:8080", "other"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(admits(names, hosts[i]));
    }
}

TEST(a_pods_name_may_be_shortened_as_kubernetes_does) {
    static const char name[] = "train-0.train.research.svc.cluster.local";
    assert_true(admits(name, "train-0"));
    assert_true(admits(name, "train-0.train.research.svc:8080"));
    assert_true(admits(name, "train-0.train.research.svc.cluster.local"));
    assert_false(admits(name, "train-0.train"));
    assert_false(admits(name, "train-1.train.research.svc"));
}

TEST(more_names_may_be_given_by_their_end) {
    assert_true(admits("*.research.svc", "metrics.research.svc:80"));
    assert_true(admits(".research.svc", "a.b.research.svc"));
    assert_false(admits("*.research.svc", "research.svc"));
    assert_false(admits("*.research.svc", "evilresearch.svc"));
    assert_false(admits("*x", "ax"));
    assert_true(admits("*", "anything.example"));
}
