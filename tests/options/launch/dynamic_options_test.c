/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/rendezvous_options.h"

#define JOB "--rdzv-backend c10d --nnodes 1:4 --rdzv-id job "

static void several_c10d_nodes_meet_dynamically(void **state) {
    (void)state;
    const struct launch_config *config = config_of(JOB "--rdzv-endpoint node0:1234 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_string_equal(config->rdzv_backend, "c10d");
    assert_string_equal(config->run_id, "job");
    assert_int_equal(config->dynamic.settings.minimum_nodes, 1);
    assert_int_equal(config->dynamic.settings.maximum_nodes, 4);
    assert_int_equal(config->dynamic.store, LAUNCH_RECORD_TCP_STORE);
    assert_string_equal(config->dynamic.host, "node0");
    assert_int_equal(config->dynamic.port, 1234);
    assert_null(config->dynamic.file);
    assert_int_equal(config->dynamic.is_host, LAUNCH_IS_HOST_UNSET);
    assert_true(duration_seconds(config->dynamic.read_timeout) == 60);
    assert_true(duration_seconds(config->dynamic.settings.join_timeout) == 600);
    assert_int_equal(config->warnings.count, 0);
}

static void the_default_endpoint_is_torchruns(void **state) {
    (void)state;
    const struct launch_config *config = config_of(JOB "t.py");
    assert_string_equal(config->dynamic.host, "localhost");
    assert_int_equal(config->dynamic.port, 29400);
    assert_int_equal(config_of(JOB "--rdzv-endpoint node0 t.py")->dynamic.port, 29400);
    config = config_of(JOB "--rdzv-endpoint 2001:db8::5 t.py");
    assert_string_equal(config->dynamic.host, "2001:db8::5");
    assert_int_equal(config->dynamic.port, 29400);
}

static void settings_reach_the_rendezvous(void **state) {
    (void)state;
    const struct launch_config *config = config_of(
        JOB "--rdzv-endpoint n:1 --rdzv-conf join_timeout=60,is_host=true,read_timeout=5 t.py");
    assert_true(duration_seconds(config->dynamic.settings.join_timeout) == 60);
    assert_true(duration_seconds(config->dynamic.read_timeout) == 5);
    assert_int_equal(config->dynamic.is_host, LAUNCH_IS_HOST_YES);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake(JOB "--rdzv-conf keep_alive_interval=0 t.py",
        "--rdzv-conf/--rdzv_conf: ", "'0': the setting keep_alive_interval takes");
}

static void a_file_store_is_found_at_its_path(void **state) {
    (void)state;
    const struct launch_config *config =
        config_of(JOB "--rdzv-endpoint /shared/job:1 --rdzv-conf store_type=file t.py");
    assert_int_equal(config->dynamic.store, LAUNCH_RECORD_FILE_STORE);
    assert_string_equal(config->dynamic.file, "/shared/job:1");
    assert_null(config->dynamic.host);
    assert_int_equal(config->warnings.count, 0);
    expect_mistake(JOB "--rdzv-conf store_type=file t.py", "--rdzv-endpoint", "path of a file");
}

static void an_endpoint_nobody_can_find_is_refused(void **state) {
    (void)state;
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

static void a_node_that_is_enough_takes_a_free_port(void **state) {
    (void)state;
    const struct launch_config *config = config_of(JOB "--rdzv-endpoint localhost:0 t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->dynamic.port, 0);
    assert_int_equal(config->warnings.count, 0);
    config = config_of("--rdzv-backend c10d --rdzv-endpoint node0:0 --rdzv-id job t.py");
    assert_int_equal(config->rendezvous, LAUNCH_RENDEZVOUS_DYNAMIC);
    assert_int_equal(config->dynamic.port, 0);
}

static void a_loopback_endpoint_is_warned_about(void **state) {
    (void)state;
    expect_warning(config_of(JOB "t.py"), "at localhost port 29400, as no --rdzv-endpoint is");
    expect_warning(config_of(JOB "--rdzv-endpoint 127.0.0.1:5 t.py"), "at 127.0.0.1 port 5, which");
    expect_warning(config_of(JOB "--rdzv-endpoint [::1]:5 t.py"), "every machine");
}

static void the_name_of_every_unnamed_job_is_warned_about(void **state) {
    (void)state;
    const struct launch_config *config =
        config_of("--rdzv-backend c10d --nnodes 2 --rdzv-endpoint n t.py");
    assert_string_equal(config->run_id, "none");
    expect_warning(config, "no --rdzv-id is given");
}

static void hasty_keep_alives_are_warned_about(void **state) {
    (void)state;
    expect_warning(config_of(JOB "--rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=2 t.py"),
        "merely slow for 2 s");
    expect_warning(
        config_of(JOB "--rdzv-conf keep_alive_max_attempt=1 t.py"), "merely slow for 5 s");
    const struct launch_config *config = config_of(
        JOB "--rdzv-endpoint n --rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=3 t.py");
    assert_int_equal(config->warnings.count, 0);
}

static void settings_of_other_backends_are_warned_about(void **state) {
    (void)state;
    expect_warning(config_of(JOB "--rdzv-conf timeout=5 t.py"), "c10d knows no setting timeout");
    expect_warning(config_of(JOB "--node-rank 1 t.py"), "--node-rank is not used");
}

static void any_text_names_a_job_but_not_any_length(void **state) {
    (void)state;
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

static void this_nodes_address_can_be_one(void **state) {
    (void)state;
    assert_string_equal(config_of(JOB "--local-addr node7 t.py")->local_address, "node7");
    expect_mistake(JOB "--local-addr a/b t.py", "--local-addr/--local_addr: ", "'a/b'");
}

static void policies_are_chosen_by_word(void **state) {
    (void)state;
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

static void policies_without_a_dynamic_rendezvous_have_no_use(void **state) {
    (void)state;
    const struct launch_config *config = config_of("--on-node-loss wait --scale-up 5 t.py");
    expect_warning(config, "--on-node-loss is not used");
    expect_warning(config, "--scale-up is not used");
    expect_mistake("--scale-up often t.py", "--scale-up/--scale_up: ", "'often'");
    expect_mistake("--on-node-loss panic t.py", "--on-node-loss/--on_node_loss: ", "'restart'");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(several_c10d_nodes_meet_dynamically, clear),
    cmocka_unit_test_teardown(the_default_endpoint_is_torchruns, clear),
    cmocka_unit_test_teardown(settings_reach_the_rendezvous, clear),
    cmocka_unit_test_teardown(a_file_store_is_found_at_its_path, clear),
    cmocka_unit_test_teardown(an_endpoint_nobody_can_find_is_refused, clear),
    cmocka_unit_test_teardown(a_node_that_is_enough_takes_a_free_port, clear),
    cmocka_unit_test_teardown(a_loopback_endpoint_is_warned_about, clear),
    cmocka_unit_test_teardown(the_name_of_every_unnamed_job_is_warned_about, clear),
    cmocka_unit_test_teardown(hasty_keep_alives_are_warned_about, clear),
    cmocka_unit_test_teardown(settings_of_other_backends_are_warned_about, clear),
    cmocka_unit_test_teardown(any_text_names_a_job_but_not_any_length, clear),
    cmocka_unit_test_teardown(this_nodes_address_can_be_one, clear),
    cmocka_unit_test_teardown(policies_are_chosen_by_word, clear),
    cmocka_unit_test_teardown(policies_without_a_dynamic_rendezvous_have_no_use, clear),
};

UNIT_TESTS(tests)
