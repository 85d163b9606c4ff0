/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/rendezvous_options.h"

TEST_WITH(standalone_overrides_the_rendezvous_options, NULL, clear) {
    const struct launch_config *config = config_of(
        "--standalone --rdzv-backend static --rdzv-endpoint x:1 --rdzv-id y --master-port 7 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_SINGLE);
    assert_null(config->run_id);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake(
        "--standalone --nnodes 2 t.py", "argument --standalone: ", "--nnodes asks for 2");
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
        FREED char *line = text_format(
            "--nnodes 2 --rdzv-backend etcd-v3 --rdzv-endpoint %s --rdzv-id j t.py", wrong[i]);
        expect_mistake(line, "--rdzv-endpoint", "invalid value 'a");
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

/* --rdzv-conf. */

/* A job of so many nodes with this backend and these settings. */
static void read_settings(const char *nodes, const char *backend, const char *settings) {
    static const char *const ends[][2] = {{"c10d", "--rdzv-endpoint h --rdzv-id j"},
        {"etcd", "--rdzv-endpoint h:1 --rdzv-id j"}, {"static", "--master-addr h"}};
    const char *end = "";
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        end = text_equals(backend, ends[i][0]) ? ends[i][1] : end;
    }
    FREED char *line = text_format(
        "--nnodes %s --rdzv-backend %s %s --rdzv-conf=%s t.py", nodes, backend, end, settings);
    read_line(line);
}

static const struct launch_dynamic *dynamic_of(const char *nodes, const char *settings) {
    read_settings(nodes, "c10d", settings);
    if (launch.outcome != OPTION_OUTCOME_VALUES) {
        fail_msg("%s gave %s", settings, strstr(launch.text, "error: "));
    }
    return &launch.config.dynamic;
}

TEST_WITH(broken_settings_are_repeated_without_a_password, NULL, clear) {
    static const char *const wrong[] = {"a", "a=", "=1", "a=1,", ",a=1", "a=1,,b=2", "a=~", ",",
        "password=hunter2,join_timeout", "password=hunter2,x=", "=1,password=hunter2",
        "password=a,hunter2", "password=a,~hunter2~,user=me"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        read_settings("2", "c10d", wrong[i]);
        assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
        assert_non_null(strstr(launch.text, "--rdzv-conf/--rdzv_conf: "));
        assert_null(strstr(launch.text, "hunter2"));
        if (strchr(wrong[i], '~') == NULL && strstr(wrong[i], "password") == NULL) {
            assert_non_null(strstr(launch.text, wrong[i]));
        }
    }
}

/* torchrun accepts 0 of the two of keep_alive, and the job hangs. */
TEST_WITH(known_keys_keep_to_their_grammar, NULL, clear) {
    static const struct {
        const char *backend;
        const char *good[10];
        const char *bad[20];
    } cases[] = {{"c10d",
                     {"join_timeout=60", "join_timeout=~+6_0~", "is_host=TRUE", "is_host=n",
                         "store_type=File", "read_timeout=1", "unknown=anything", "delegation=true",
                         "keep_alive_interval=1,keep_alive_max_attempt=1", "timeout=x"},
                     {"join_timeout=0", "join_timeout=5.5", "close_timeout=-1",
                         "heartbeat_timeout=x", "read_timeout=1e3", "is_host=on", "is_host=tr",
                         "delegation=maybe", "store_type=redis", "last_call_timeout=99999999999",
                         "silence_timeout=0", "calm_after=0", "silence_timeout=3601",
                         "exit_barrier_timeout=0", "keep_alive_interval=86401",
                         "keep_alive_interval=0", "keep_alive_max_attempt=100001"}},
        {"etcd", {"timeout=1"}, {"keep_alive_max_attempt=-1", "timeout=0"}},
        {"static", {"join_timeout=x"}, {"timeout=x"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (const char *const *good = cases[i].good; good < cases[i].good + 10 && *good != NULL;
             good++) {
            read_settings("2", cases[i].backend, *good);
            assert_int_equal(launch.outcome, OPTION_OUTCOME_VALUES);
        }
        for (const char *const *bad = cases[i].bad; *bad != NULL; bad++) {
            read_settings("2", cases[i].backend, *bad);
            assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
            assert_non_null(strstr(launch.text, "--rdzv-conf/--rdzv_conf: "));
        }
    }
}

TEST_WITH(what_is_given_is_taken_and_the_rest_stays, NULL, clear) {
    const struct launch_dynamic *dynamic = dynamic_of("2", "");
    assert_true(duration_seconds(dynamic->settings.join_timeout) == 600);
    assert_true(duration_seconds(dynamic->settings.calm_after) == 600);
    assert_int_equal(dynamic->settings.keep_alive_max_attempt, 3);
    assert_true(duration_seconds(dynamic->read_timeout) == 60);
    assert_int_equal(dynamic->store, LAUNCH_RECORD_TCP_STORE);
    assert_int_equal(dynamic->is_host, LAUNCH_IS_HOST_UNSET);
    dynamic = dynamic_of("2",
        "last_call_timeout=1,close_timeout=2,heartbeat_timeout=3,keep_alive_interval=4,"
        "silence_timeout=5,exit_barrier_timeout=6,read_timeout=7,calm_after=8,join_timeout=9,"
        "keep_alive_max_attempt=2,is_host=Yes");
    const struct duration taken[] = {dynamic->settings.last_call_timeout,
        dynamic->settings.close_timeout, dynamic->settings.heartbeat_timeout,
        dynamic->settings.keep_alive_interval, dynamic->settings.silence_timeout,
        dynamic->settings.exit_barrier_timeout, dynamic->read_timeout, dynamic->settings.calm_after,
        dynamic->settings.join_timeout};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_true(duration_seconds(taken[i]) == (double)(i + 1));
    }
    assert_int_equal(dynamic->settings.keep_alive_max_attempt, 2);
    assert_int_equal(dynamic->is_host, LAUNCH_IS_HOST_YES);
    config_of("--nnodes 2 --rdzv-backend c10d --rdzv-endpoint /f --rdzv-id j "
              "--rdzv-conf store_type=FILE t.py");
    assert_int_equal(launch.config.dynamic.store, LAUNCH_RECORD_FILE_STORE);
    assert_int_equal(dynamic_of("2", "is_host=F")->is_host, LAUNCH_IS_HOST_NO);
    dynamic = dynamic_of("2", "join_timeout=30");
    assert_true(duration_seconds(dynamic->settings.last_call_timeout) == 15);
}

/* All nodes of a job are given the same numbers of nodes, so they all take the same default. */
TEST_WITH(a_job_of_many_nodes_delegates_unless_told_not_to, NULL, clear) {
    FREED char *nodes = text_format("1:%d", RENDEZVOUS_DELEGATES_ABOVE_NODES);
    FREED char *more = text_format("1:%d", RENDEZVOUS_DELEGATES_ABOVE_NODES + 1);
    assert_false(dynamic_of(nodes, "")->settings.delegates);
    assert_true(dynamic_of(nodes, "delegation=true")->settings.delegates);
    assert_true(dynamic_of(more, "join_timeout=60")->settings.delegates);
    assert_false(dynamic_of(more, "delegation=no")->settings.delegates);
}

/* Dynamic options. */

#define JOB "--rdzv-backend c10d --nnodes 1:4 --rdzv-id job "

TEST_WITH(the_default_endpoint_is_torchruns, NULL, clear) {
    const struct launch_config *config = config_of(JOB "t.py");
    assert_string_equal(config->dynamic.host, "localhost");
    assert_int_equal(config->dynamic.port, 29400);
    assert_int_equal(config_of(JOB "--rdzv-endpoint node0 t.py")->dynamic.port, 29400);
    config = config_of(JOB "--rdzv-endpoint 2001:db8::5 t.py");
    assert_string_equal(config->dynamic.host, "2001:db8::5");
    assert_int_equal(config->dynamic.port, 29400);
}

TEST_WITH(a_file_store_is_found_at_its_path, NULL, clear) {
    const struct launch_config *config =
        config_of(JOB "--rdzv-endpoint /shared/job:1 --rdzv-conf store_type=file t.py");
    assert_int_equal(config->dynamic.store, LAUNCH_RECORD_FILE_STORE);
    assert_string_equal(config->dynamic.file, "/shared/job:1");
    assert_null(config->dynamic.host);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake(JOB "--rdzv-conf store_type=file t.py", "--rdzv-endpoint", "path of a file");
}

TEST_WITH(an_endpoint_nobody_can_find_is_refused, NULL, clear) {
    static const char *const subject = "--rdzv-endpoint/--rdzv_endpoint: ";
    expect_mistake("--rdzv-backend c10d --nnodes 2:4 --rdzv-endpoint n:0 t.py", subject, "port 0");
    expect_mistake(
        JOB "--rdzv-endpoint n:0 --rdzv-conf is_host=false t.py", subject, "is_host=false");
    expect_mistake("--rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-conf is_host=0 t.py",
        subject, "is_host=false");
    expect_mistake(JOB "--rdzv-endpoint n:65536 t.py", subject, "'n:65536'");
    expect_mistake(JOB "--rdzv-endpoint :29400 t.py", subject, "HOST:PORT");
    expect_mistake(JOB "--rdzv-endpoint fe80::1:2940 t.py", subject, "[fe80::1]:2940");
    expect_mistake(JOB "--rdzv-endpoint a/b t.py", subject, "'a/b'");
}

TEST_WITH(a_node_that_is_enough_takes_a_free_port, NULL, clear) {
    const struct launch_config *config = config_of(JOB "--rdzv-endpoint localhost:0 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->dynamic.port, 0);
    assert_int_equal(config->warnings.count, 0);
    config = config_of("--rdzv-backend c10d --rdzv-endpoint node0:0 --rdzv-id job t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->dynamic.port, 0);
}

TEST_WITH(a_loopback_endpoint_is_warned_about, NULL, clear) {
    expect_warning(config_of(JOB "t.py"), "at localhost port 29400, as no --rdzv-endpoint is");
    expect_warning(config_of(JOB "--rdzv-endpoint 127.0.0.1:5 t.py"), "at 127.0.0.1 port 5, which");
    expect_warning(config_of(JOB "--rdzv-endpoint [::1]:5 t.py"), "every machine");
}

TEST_WITH(the_name_of_every_unnamed_job_is_warned_about, NULL, clear) {
    const struct launch_config *config =
        config_of("--rdzv-backend c10d --nnodes 2 --rdzv-endpoint n t.py");
    assert_string_equal(config->run_id, "none");
    expect_warning(config, "no --rdzv-id is given");
}

TEST_WITH(hasty_keep_alives_are_warned_about, NULL, clear) {
    expect_warning(config_of(JOB "--rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=2 t.py"),
        "merely slow for 2 s");
    expect_warning(
        config_of(JOB "--rdzv-conf keep_alive_max_attempt=1 t.py"), "merely slow for 5 s");
    const struct launch_config *config = config_of(
        JOB "--rdzv-endpoint n --rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=3 t.py");
    assert_int_equal(config->warnings.count, 0);
}

TEST_WITH(any_text_names_a_job_but_not_any_length, NULL, clear) {
    text_list_set_variable(&environment, "PET_RDZV_ID", "a/b c\td\x01");
    const struct launch_config *config = config_of("--rdzv-backend c10d --nnodes 2 t.py");
    assert_string_equal(config->run_id, "a/b c\td\x01");
    char name[LAUNCH_MAXIMUM_RUN_ID + 2] = {0};
    memset(name, 'n', LAUNCH_MAXIMUM_RUN_ID);
    text_list_set_variable(&environment, "PET_RDZV_ID", name);
    config = config_of("--rdzv-backend c10d --nnodes 2 t.py");
    assert_string_equal(config->run_id, name);
    name[LAUNCH_MAXIMUM_RUN_ID] = 'n';
    text_list_set_variable(&environment, "PET_RDZV_ID", name);
    expect_mistake("--rdzv-backend c10d --nnodes 2 t.py", "--rdzv-id", "has 257 bytes");
    config_of("--rdzv-backend c10d --rdzv-endpoint localhost:0 t.py"); /* needs no keys */
    expect_mistake("--rdzv-backend c10d --nnodes 2 --rdzv-id= t.py", "--rdzv-id", "is empty");
}

TEST_WITH(this_nodes_address_can_be_one, NULL, clear) {
    assert_string_equal(config_of(JOB "--local-addr node7 t.py")->local_address, "node7");
    expect_mistake(JOB "--local-addr a/b t.py", "--local-addr/--local_addr: ", "'a/b'");
}

TEST_WITH(policies_are_chosen_by_word, NULL, clear) {
    const struct rendezvous_settings *settings = &config_of(JOB "t.py")->dynamic.settings;
    assert_int_equal(settings->on_node_loss, RENDEZVOUS_ON_NODE_LOSS_RESTART);
    assert_int_equal(settings->scale_up, RENDEZVOUS_SCALE_UP_ALLOWED);
    assert_int_equal(settings->scale_up_interval.nanoseconds, 0);
    config_of(JOB "--on-node-loss wait --scale-up never t.py");
    assert_int_equal(settings->on_node_loss, RENDEZVOUS_ON_NODE_LOSS_WAIT);
    assert_int_equal(settings->scale_up, RENDEZVOUS_SCALE_UP_NEVER);
    text_list_set_variable(&environment, "PET_SCALE_UP", "90");
    config_of(JOB "--on_node_loss torchrun t.py");
    assert_int_equal(settings->on_node_loss, RENDEZVOUS_ON_NODE_LOSS_TORCHRUN);
    assert_int_equal(settings->scale_up, RENDEZVOUS_SCALE_UP_ALLOWED);
    assert_true(duration_seconds(settings->scale_up_interval) == 90);
}

TEST_WITH(policies_without_a_dynamic_rendezvous_have_no_use, NULL, clear) {
    const struct launch_config *config = config_of("--on-node-loss wait --scale-up 5 t.py");
    expect_warning(config, "--on-node-loss is not used");
    expect_warning(config, "--scale-up is not used");
    expect_mistake("--scale-up often t.py", "--scale-up/--scale_up: ", "'often'");
    expect_mistake("--on-node-loss panic t.py", "--on-node-loss/--on_node_loss: ", "'restart'");
}
