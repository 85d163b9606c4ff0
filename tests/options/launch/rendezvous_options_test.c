/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/rendezvous_options.h"

TEST_WITH(one_node_without_any_address_is_alone, NULL, clear) {
    const struct launch_config *config = config_of("--rdzv-id ignored t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_string_equal(config->rdzv_backend, "c10d");
    assert_null(config->run_id);
    assert_null(config->master_host);
    assert_int_equal(config->maximum_nodes, 1);
}

TEST_WITH(standalone_overrides_the_rendezvous_options, NULL, clear) {
    const struct launch_config *config = config_of(
        "--standalone --rdzv-backend static --rdzv-endpoint x:1 --rdzv-id y --master-port 7 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_null(config->run_id);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake(
        "--standalone --nnodes 2 t.py", "argument --standalone: ", "--nnodes asks for 2");
}

TEST_WITH(one_node_meets_others_of_its_name, NULL, clear) {
    const struct launch_config *config =
        config_of("--rdzv-backend c10d --nnodes 1 --rdzv-endpoint node0:1234 --rdzv-id job t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->run_id, "job");
    assert_string_equal(config->dynamic.host, "node0");
    assert_int_equal(config->dynamic.port, 1234);
    assert_int_equal(config->dynamic.settings.maximum_nodes, 1);
    assert_int_equal(config->warnings.count, 0);
    config = config_of("--rdzv-backend c10d --rdzv-id job t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->dynamic.host, "localhost");
    assert_int_equal(config->dynamic.port, 29400);
    assert_int_equal(config->warnings.count, 0);
    config = config_of(
        "--rdzv-backend c10d --rdzv-conf store_type=file --rdzv-endpoint /f --rdzv-id job t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->dynamic.file, "/f");
    expect_mistake("--rdzv-backend c10d --rdzv-id= t.py", "--rdzv-id/--rdzv_id: ", "is empty");
    expect_mistake("--rdzv-backend c10d --rdzv-endpoint h:x t.py", "--rdzv-endpoint", "'h:x'");
}

TEST_WITH(one_node_at_a_place_nobody_knows_is_alone, NULL, clear) {
    static const char *const lines[] = {
        "--rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-id job t.py",
        "--rdzv-backend c10d --rdzv-endpoint [::1]:0 --rdzv-conf is_host=1 --rdzv-id job t.py",
        "--rdzv-backend c10d --rdzv-conf store_type=file --rdzv-id job t.py",
        "--rdzv-backend etcd --rdzv-id job t.py",
        "--rdzv-backend=etcd-v2 --rdzv-id job --nnodes 1 t.py"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct launch_config *config = config_of(lines[i]);
        assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
        assert_string_equal(config->run_id, "job");
        assert_null(config->dynamic.host);
    }
    expect_mistake("--rdzv-backend etcd --rdzv-endpoint h:x t.py", "--rdzv-endpoint", "'h:x'");
}

TEST_WITH(a_master_port_makes_one_node_static, NULL, clear) {
    const struct launch_config *config = config_of("--master-port 1234 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_STATIC);
    assert_string_equal(config->master_host, "127.0.0.1");
    assert_int_equal(config->master_port, 1234);
    assert_string_equal(config->run_id, "none");
    config = config_of("--master-port 0 t.py");
    assert_int_equal(config->master_port, 0);
}

TEST_WITH(several_static_nodes_have_a_master, NULL, clear) {
    const struct launch_config *config =
        config_of("--nnodes 2:4 --node-rank 3 --master-addr [::1] --rdzv-conf timeout=5 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_STATIC);
    assert_int_equal(config->minimum_nodes, 2);
    assert_int_equal(config->maximum_nodes, 4);
    expect_warning(config, "--nnodes 2:4: with --rdzv-backend static the job waits for 4 nodes");
    assert_int_equal(config->node_rank, 3);
    assert_string_equal(config->master_host, "::1");
    assert_int_equal(config->master_port, 29500);
    assert_true(duration_seconds(config->store_timeout) == 5);
    config = config_of("--nnodes 2 --rdzv-endpoint [::1]:7 --master-addr other t.py");
    assert_string_equal(config->master_host, "::1");
    assert_int_equal(config->master_port, 7);
    assert_int_equal(config->warnings.count, 0);
    assert_true(duration_seconds(config->store_timeout) == 900);
    config = config_of("--nnodes 2 --master-addr ::1 t.py");
    assert_string_equal(config->master_host, "::1");
}

TEST_WITH(static_nodes_without_a_master_are_warned, NULL, clear) {
    expect_warning(config_of("--nnodes 2 t.py"),
        "--nnodes 2 without --master-addr: this is node 0, as no --node-rank is given, and nodes "
        "meet at 127.0.0.1 port 29500");
    const struct launch_config *config = config_of("--nnodes 2 --node-rank 1 --master-port 7 t.py");
    expect_warning(config, "this is node 1, and nodes meet at 127.0.0.1 port 7");
    assert_int_equal(config->meeting_warnings.count, 1);
    config = config_of("--nnodes 2 --node-rank 1 --master-addr 127.0.0.1 t.py");
    assert_int_equal(config->meeting_warnings.count, 0);
    assert_int_equal(config_of("--master-port 7 t.py")->meeting_warnings.count, 0);
}

TEST_WITH(static_nodes_need_a_place_to_meet, NULL, clear) {
    expect_mistake("--nnodes 2 --rdzv-endpoint h t.py", "--rdzv-endpoint", "needs a port");
    expect_mistake("--nnodes 2 --rdzv-endpoint ::1 t.py", "--rdzv-endpoint", "[::1]:29500");
    expect_mistake("--nnodes 2 --rdzv-endpoint fe80::1:2940 t.py", "--rdzv-endpoint",
        "write [fe80::1:2940] or [fe80::1]:2940");
    expect_mistake("--nnodes 2 --master-port 0 t.py", "--master-port", "port 0");
    expect_mistake("--nnodes 2 --rdzv-endpoint h:0 t.py", "--rdzv-endpoint", "port 0");
    expect_mistake("--master-port 65536 t.py", "--master-port/--master_port: ", "65536");
    expect_mistake("--master-port -1 t.py", "--master-port", "-1");
    expect_mistake("--nnodes 2 --master-addr a/b t.py", "--master-addr", "'a/b'");
}

TEST_WITH(node_ranks_count_from_zero, NULL, clear) {
    expect_mistake("--nnodes 2 --node-rank 2 t.py", "--node-rank", "from 0 to 1");
    expect_mistake("--nnodes 2 --node-rank -1 t.py", "--node-rank", "-1");
    expect_mistake("--node-rank 1 --master-port 5 t.py", "--node-rank", "with 1 node (");
}

TEST_WITH(etcd_v2_is_refused_with_a_way_out, NULL, clear) {
    expect_mistake("--nnodes 2 --rdzv-backend etcd-v2 t.py", "--rdzv-backend",
        "has dropped its API of version 2; use --rdzv-backend etcd-v3");
    expect_mistake(
        "--rdzv-backend zookeeper t.py", "--rdzv-backend", "static, c10d, dir, etcd and k8s");
}

TEST_WITH(kubernetes_decides_who_hosts_the_store, NULL, clear) {
    const struct launch_config *config = config_of(
        "--nnodes 2:4 --rdzv-backend k8s --rdzv-endpoint ml/train.1 --rdzv-id j --rdzv-conf "
        "fence_timeout=20,k8s_server=https://h:6443,k8s_token_file=t,k8s_ca=c t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->dynamic.register_engine, "k8s");
    assert_string_equal(config->dynamic.register_endpoint, "ml/train.1");
    assert_null(config->dynamic.host);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake("--nnodes 2 --rdzv-backend k8s t.py", "--rdzv-endpoint",
        "is missing: with --rdzv-backend k8s it is [NAMESPACE/]NAME");
    expect_mistake("--nnodes 2 --rdzv-backend k8s --rdzv-endpoint ml/Train --rdzv-id j t.py",
        "--rdzv-endpoint", "'ml/Train': give [NAMESPACE/]NAME of a ConfigMap");
    expect_warning(config_of("--nnodes 2:4 --rdzv-backend dir --rdzv-endpoint /p --rdzv-id j "
                             "--rdzv-conf k8s_ca=c t.py"),
        "--rdzv-conf: dir knows no setting k8s_ca");
}

TEST_WITH(a_directory_decides_who_hosts_the_store, NULL, clear) {
    const struct launch_config *config = config_of(
        "--nnodes 2:4 --rdzv-backend dir --rdzv-endpoint /shared/path --rdzv-id j --rdzv-conf "
        "fence_timeout=20 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->dynamic.register_engine, "dir");
    assert_string_equal(config->dynamic.register_endpoint, "/shared/path");
    assert_int_equal(config->dynamic.settings.fence_timeout.nanoseconds, INT64_C(20000000000));
    assert_null(config->dynamic.host);
    expect_mistake("--nnodes 2 --rdzv-backend dir t.py", "--rdzv-endpoint", "is missing");
}

TEST_WITH(etcd_decides_who_hosts_the_store, NULL, clear) {
    static const char *const lines[] = {
        "--nnodes 2:4 --rdzv-backend etcd --rdzv-endpoint a:1,https://b:2 --rdzv-id j t.py",
        "--nnodes 1 --rdzv-backend etcd-v3 --rdzv-endpoint a:1,b,[::1]:3 --rdzv-id j --rdzv-conf "
        "protocol=https,ca_cert=c,ssl_cert=d,ssl_cert_key=e,user=u,password_file=p,timeout=7 t.py"};
    expect_mistake(lines[0], "--rdzv-endpoint", "some of its members have https://");
    const struct launch_config *config = config_of(lines[1]);
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->dynamic.register_engine, "etcd-v3");
    assert_string_equal(config->dynamic.register_endpoint, "a:1,b,[::1]:3");
    assert_true(duration_seconds(config->dynamic.settings.join_timeout) == 7);
    assert_null(config->dynamic.host);
    assert_int_equal(config->warnings.count, 0);
    config = config_of("--nnodes 2:4 --rdzv-backend etcd --rdzv-endpoint http://a:1/ --rdzv-id j "
                       "--rdzv-conf fence_timeout=20,timeout=7,join_timeout=9,certs=x t.py");
    assert_string_equal(config->dynamic.register_engine, "etcd");
    assert_true(duration_seconds(config->dynamic.settings.join_timeout) == 9);
    expect_warning(config, "--rdzv-conf: etcd knows no setting certs");
}

TEST_WITH(members_of_etcd_that_cannot_be_used_are_refused, NULL, clear) {
    expect_mistake("--nnodes 2 --rdzv-backend etcd t.py", "--rdzv-endpoint",
        "is missing: with --rdzv-backend etcd it is HOST:PORT,HOST:PORT");
    static const char *const wrong[] = {"a:1,,b:1", "a:1,", "a:", "a:0", "a:65536", "a:x", "a/b:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *line = text_format(
            "--nnodes 2 --rdzv-backend etcd-v3 --rdzv-endpoint %s --rdzv-id j t.py", wrong[i]);
        expect_mistake(line, "--rdzv-endpoint", "invalid value 'a");
        free(line);
    }
    expect_mistake(
        "--nnodes 2 --rdzv-backend etcd --rdzv-endpoint a:1 --rdzv-conf protocol=tcp t.py",
        "--rdzv-conf", "'tcp': the setting protocol takes http or https");
}

TEST_WITH(options_of_static_are_warned_about_elsewhere, NULL, clear) {
    const struct launch_config *config =
        config_of("--rdzv-backend c10d --master-addr h --node-rank 1 t.py");
    expect_warning(config, "--master-addr is not used");
    expect_warning(config, "--node-rank is not used");
    config = config_of("--node-rank 1 t.py");
    expect_warning(config, "--node-rank is not used");
    assert_int_equal(config_of("--rdzv-backend c10d --rdzv-id j t.py")->warnings.count, 0);
}

TEST_WITH(settings_are_checked_for_the_backend, NULL, clear) {
    expect_mistake("--rdzv-conf a t.py", "--rdzv-conf/--rdzv_conf: ", "has no value");
    expect_mistake("--rdzv-conf join_timeout=x t.py", "--rdzv-conf", "join_timeout");
    expect_mistake(
        "--nnodes 2 --master-addr h --rdzv-conf timeout=0 t.py", "--rdzv-conf", "seconds from 1");
    const struct launch_config *config = config_of("--rdzv-conf timeout=1,timeout=2 t.py");
    assert_string_equal(text_list_variable(&config->rdzv_conf, "timeout"), "2");
    assert_true(duration_seconds(config->store_timeout) == 900);
}

TEST_WITH(settings_that_static_nodes_do_not_heed_are_warned_about, NULL, clear) {
    const struct launch_config *config =
        config_of("--nnodes 2 --master-addr h --rdzv-conf timeout=5,join_timeout=7 t.py");
    assert_int_equal(config->warnings.count, 1);
    expect_warning(config, "static knows no setting join_timeout");
}

TEST_WITH(nodes_come_from_the_environment_too, NULL, clear) {
    text_list_set_variable(&environment, "PET_NNODES", "0");
    expect_mistake("t.py", "argument --nnodes: ", "(from the environment variable PET_NNODES)");
    assert_int_equal(config_of("--nnodes 1 t.py")->maximum_nodes, 1);
}
