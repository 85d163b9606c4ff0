/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/config_builder.h"

TEST_WITH(a_bare_script_gets_every_default, NULL, clear) {
    const struct launch_config *config = config_of("train.py --lr 0.1");
    assert_int_equal(config->entry, LAUNCH_ENTRY_SCRIPT);
    assert_string_equal(config->script, "train.py");
    assert_int_equal(config->script_arguments.count, 2);
    assert_int_equal(config->worker_count_kind, LAUNCH_COUNT_NUMBER);
    assert_int_equal(config->worker_count, 1);
    assert_string_equal(config->role, "default");
    assert_int_equal(config->max_restarts, 0);
    assert_int_equal(config->signal_count, 4);
    assert_int_equal(config->signals[0], 15);
    assert_string_equal(config->signals_to_handle, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
    assert_false(config->names_signals);
    assert_true(duration_seconds(config->shutdown_timeout) == 30);
    assert_int_equal(config->evidence, LAUNCH_EVIDENCE_BASIC);
    assert_true(duration_seconds(config->evidence_timeout) == 2);
    assert_int_equal(config->exit_code, LAUNCH_EXIT_CODE_TORCHRUN);
    assert_int_equal(config->numa_binding, LAUNCH_NUMA_NONE);
    assert_true(config->sets_omp_num_threads);
    assert_false(config->has_local_ranks_filter || config->is_virtual_local_rank);
    assert_null(config->log_dir);
    assert_null(config->python);
    assert_null(config->local_address);
    assert_null(config->log_line_prefix_template);
    assert_int_equal(config->duplicate_stdout_filters.count, 0);
    assert_int_equal(config->warnings.count, 0);
}

TEST_WITH(the_entry_follows_three_flags, NULL, clear) {
    assert_int_equal(config_of("-m pkg.train")->entry, LAUNCH_ENTRY_MODULE);
    assert_int_equal(config_of("--no-python ./a.out")->entry, LAUNCH_ENTRY_PROGRAM);
    assert_int_equal(config_of("--run-path /a.py")->entry, LAUNCH_ENTRY_RUN_PATH);
    assert_int_equal(config_of("--run-path --no-python -m /a.py")->entry, LAUNCH_ENTRY_RUN_PATH);
    expect_mistake("-m --no-python x", "argument --no-python/--no_python: ", "-m/--module");
}

TEST_WITH(an_empty_script_is_refused, NULL, clear) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    text_list_add(&arguments, "");
    launch_options_parse("torchrun", &arguments, &environment, &launch);
    assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
    assert_non_null(strstr(launch.text, "argument training_script: is empty"));
}

TEST_WITH(numbers_outside_their_range_are_mistakes, NULL, clear) {
    expect_mistake(
        "--nproc-per-node 0 t.py", "argument --nproc-per-node/--nproc_per_node: ", "'0'");
    expect_mistake("--nproc-per-node 1000000000 t.py", "--nproc-per-node", "at most 4096");
    expect_mistake("--max-restarts -1 t.py", "argument --max-restarts/--max_restarts: ", "-1");
    expect_mistake("--max-restarts 2000000000 t.py", "--max-restarts", "0 to 1000000000");
    expect_mistake("--monitor-interval 0 t.py", "--monitor-interval", "above 0");
    expect_mistake("--shutdown-timeout -0.5 t.py", "--shutdown-timeout", "-0.5");
    expect_mistake("--signals-to-handle SIGKILL t.py", "--signals-to-handle", "'SIGKILL'");
}

TEST_WITH(evidence_is_a_choice_and_a_time, NULL, clear) {
    assert_int_equal(config_of("--evidence off t.py")->evidence, LAUNCH_EVIDENCE_OFF);
    assert_int_equal(config_of("--evidence full t.py")->evidence, LAUNCH_EVIDENCE_FULL);
    assert_int_equal(config_of("--evidence-timeout 0 t.py")->evidence, LAUNCH_EVIDENCE_OFF);
    assert_true(
        duration_seconds(config_of("--evidence-timeout 0.5 t.py")->evidence_timeout) == 0.5);
    expect_mistake("--evidence all t.py", "--evidence: ", "'basic'");
    expect_mistake("--evidence-timeout -1 t.py", "--evidence-timeout/--evidence_timeout: ", "-1");
}

TEST_WITH(the_signal_for_evidence_is_a_real_time_signal, NULL, clear) {
    assert_int_equal(config_of("t.py")->evidence_signal, 50);
    assert_int_equal(config_of("--evidence-signal 34 t.py")->evidence_signal, 34);
    assert_int_equal(config_of("--evidence-signal 64 t.py")->evidence_signal, 64);
    assert_int_equal(config_of("--evidence-signal off t.py")->evidence_signal, 0);
    assert_int_equal(config_of("--evidence off t.py")->evidence_signal, 0);
    expect_mistake(
        "--evidence-signal 33 t.py", "--evidence-signal/--evidence_signal: ", "34 to 64");
    expect_mistake("--evidence-signal 65 t.py", "--evidence-signal/--evidence_signal: ", "65");
    expect_mistake("--evidence-signal no t.py", "--evidence-signal/--evidence_signal: ", "or off");
}

TEST_WITH(hang_is_off_learned_or_a_time, NULL, clear) {
    assert_false(config_of("t.py")->hang.is_wanted);
    assert_false(config_of("--hang-after off --progress off t.py")->has_progress);
    assert_true(config_of("--hang-after auto t.py")->hang.is_learned);
    assert_false(config_of("--hang-after auto t.py")->hang.restarts);
    assert_true(config_of("--standby off --hang-after 90.5 t.py")->has_progress);
    assert_true(duration_seconds(config_of("--hang-after 90.5 t.py")->hang.after) == 90.5);
    assert_false(config_of("--hang-after 90.5 t.py")->hang.is_learned);
    assert_true(config_of("--hang-after 1 --hang-action restart t.py")->hang.restarts);
    expect_mistake("--hang-after 0.9 t.py", "--hang-after/--hang_after: ", "seconds from 1 to");
    expect_mistake("--hang-after -5 t.py", "--hang-after/--hang_after: ", "-5");
    expect_mistake("--hang-after 1000001 t.py", "--hang-after/--hang_after: ", "1000000");
    expect_mistake("--hang-after nan t.py", "--hang-after/--hang_after: ", "nan");
    expect_mistake("--hang-after on t.py", "--hang-after/--hang_after: ", "auto, or off");
    expect_mistake(
        "--hang-after auto --progress off t.py", "--hang-after/--hang_after: ", "--progress off");
    expect_mistake("--hang-action kill t.py", "--hang-action/--hang_action: ", "'restart'");
}

TEST_WITH(an_action_for_hangs_that_nobody_asks_for_is_said_to_have_no_effect, NULL, clear) {
    const struct launch_config *config = config_of("--hang-action restart t.py");
    bool is_said = false;
    for (size_t i = 0; i < config->warnings.count; i++) {
        is_said = is_said || strstr(config->warnings.items[i], "--hang-action restart") != NULL;
    }
    assert_true(is_said);
}

TEST_WITH(standby_is_a_choice_and_a_time, NULL, clear) {
    assert_int_equal(config_of("t.py")->standby, LAUNCH_STANDBY_AUTO);
    assert_true(duration_seconds(config_of("t.py")->standby_after) == 2.5);
    assert_int_equal(config_of("--standby off t.py")->standby, LAUNCH_STANDBY_OFF);
    assert_int_equal(config_of("--standby on t.py")->standby, LAUNCH_STANDBY_ON);
    assert_true(duration_seconds(config_of("--standby-after 0.2 t.py")->standby_after) == 0.2);
    assert_true(duration_seconds(config_of("t.py")->standby_timeout) == 30);
    assert_true(duration_seconds(config_of("--standby-timeout 0 t.py")->standby_timeout) == 0);
    expect_mistake(
        "--standby-timeout -1 t.py", "--standby-timeout/--standby_timeout: ", "0 or more");
    assert_true(config_of("t.py")->has_standby_parent);
    assert_false(config_of("t.py")->has_progress);
    assert_true(config_of("--max-restarts 1 t.py")->has_progress);
    assert_false(config_of("--max-restarts 1 --standby off t.py")->has_progress);
    assert_false(config_of("--max-restarts 1 --no-python t.sh")->has_progress);
    assert_false(config_of("--no-python t.sh")->has_progress);
    assert_true(config_of("--standby on --no-python t.sh")->has_progress);
    assert_false(config_of("--standby off t.py")->has_progress);
    assert_true(config_of("--standby off --progress auto t.py")->has_progress);
    assert_false(config_of("--standby-parent off t.py")->has_standby_parent);
    assert_true(config_of("t.py")->standby_rest == 10);
    assert_true(config_of("--standby-rest 0 t.py")->standby_rest == 0);
    assert_true(config_of("--standby-rest 2.5 t.py")->standby_rest == 2.5);
    assert_true(config_of("--standby-rest 100 t.py")->standby_rest == 100);
    expect_mistake("--standby-rest -1 t.py", "--standby-rest/--standby_rest: ",
        "invalid value -1: give a factor from 0 (never rest) to 100");
    expect_mistake("--standby-rest 100.5 t.py", "--standby-rest/--standby_rest: ", "100.5");
    text_list_set_variable(&environment, "PET_STANDBY_REST", "1000");
    expect_mistake("t.py", "PET_STANDBY_REST", "1000");
    text_list_set_variable(&environment, "PET_STANDBY_REST", "7");
    assert_true(config_of("t.py")->standby_rest == 7);
    text_list_clear(&environment);
    expect_mistake("--standby yes t.py", "--standby: ", "'auto'");
    expect_mistake("--standby-after 0 t.py", "--standby-after/--standby_after: ", "above 0");
}

TEST_WITH(shutdown_timeout_takes_fractions_and_a_variable, NULL, clear) {
    assert_true(
        duration_seconds(config_of("--shutdown-timeout 0.5 t.py")->shutdown_timeout) == 0.5);
    assert_true(duration_seconds(config_of("--shutdown-timeout 0 t.py")->shutdown_timeout) == 0);
    text_list_set_variable(&environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7");
    assert_true(duration_seconds(config_of("t.py")->shutdown_timeout) == 7);
    assert_true(duration_seconds(config_of("--shutdown-timeout 1 t.py")->shutdown_timeout) == 1);
    text_list_set_variable(&environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "-1");
    expect_mistake("t.py", "environment variable TORCH_ELASTIC_SHUTDOWN_TIMEOUT: ", "'-1'");
    text_list_set_variable(&environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon");
    expect_mistake("t.py", "environment variable TORCH_ELASTIC_SHUTDOWN_TIMEOUT: ", "'soon'");
}

#define SEVERAL_NODES "--nnodes 2 --rdzv-backend c10d --rdzv-endpoint node1:29400 "

TEST_WITH(the_token_is_taken_from_a_file_or_else_from_the_environment, NULL, clear) {
    const struct launch_config *config = config_of(SEVERAL_NODES "t.py");
    assert_null(config->job_token);
    assert_null(config->token_file);
    expect_mistake("--auth token t.py", "argument --auth: ", "there is none; set MUSTER_JOB_TOKEN");
    text_list_set_variable(&environment, "MUSTER_JOB_TOKEN", "secret");
    assert_string_equal(config_of("--auth token t.py")->job_token, "secret");
    config = config_of(SEVERAL_NODES "--token-file f t.py");
    assert_null(config->job_token);
    assert_string_equal(config->token_file, "f");
    config = config_of(SEVERAL_NODES "--token-file f --auth none t.py");
    assert_null(config->token_file);
    assert_int_equal(config->auth, LAUNCH_AUTH_NONE);
    expect_warning(config, "--auth none: the nodes of this job do not prove themselves");
    assert_int_equal(config_of("--auth none --standalone t.py")->warnings.count, 0);
    config = config_of("--nnodes 2 --rdzv-backend c10d --rdzv-conf store_type=file "
                       "--rdzv-endpoint f --rdzv-id j t.py");
    assert_null(config->job_token);
    expect_warning(config, "the job token is not used");
}

static enum launch_auth auth_of(const char *words) {
    return config_of(words)->auth;
}

TEST_WITH(without_a_token_munge_is_used_where_there_may_be_other_machines, NULL, clear) {
    assert_int_equal(auth_of(SEVERAL_NODES "t.py"), LAUNCH_AUTH_MUNGE_HERE);
    assert_int_equal(auth_of(SEVERAL_NODES "--auth auto t.py"), LAUNCH_AUTH_MUNGE_HERE);
    assert_int_equal(auth_of(SEVERAL_NODES "--auth munge t.py"), LAUNCH_AUTH_MUNGE);
    assert_int_equal(auth_of(SEVERAL_NODES "--token-file f t.py"), LAUNCH_AUTH_TOKEN);
    assert_int_equal(auth_of(SEVERAL_NODES "--token-file f --auth munge t.py"), LAUNCH_AUTH_MUNGE);
    assert_int_equal(auth_of("--nnodes 2 --master-addr node1 t.py"), LAUNCH_AUTH_MUNGE_HERE);
    assert_int_equal(auth_of("--nnodes 2 --master-addr 127.0.0.1 t.py"), LAUNCH_AUTH_OPEN);
    assert_int_equal(auth_of("--nnodes 2 --rdzv-backend c10d --rdzv-endpoint localhost:1 t.py"),
        LAUNCH_AUTH_OPEN);
    assert_int_equal(auth_of("--nnodes 2 --rdzv-backend c10d --rdzv-endpoint localhost:1 "
                             "--rdzv-conf is_host=true t.py"),
        LAUNCH_AUTH_MUNGE_HERE);
    assert_int_equal(
        auth_of("--nnodes 1 --rdzv-backend c10d --rdzv-endpoint node1:1 t.py"), LAUNCH_AUTH_OPEN);
    assert_int_equal(auth_of("--standalone t.py"), LAUNCH_AUTH_OPEN);
    const struct launch_config *config =
        config_of("--nnodes 2 --rdzv-backend c10d --rdzv-conf store_type=file "
                  "--rdzv-endpoint f --rdzv-id j --auth munge t.py");
    assert_int_equal(config->auth, LAUNCH_AUTH_OPEN);
    expect_warning(config, "--auth munge is not used");
    text_list_set_variable(&environment, "MUSTER_MUNGE_SOCKET", "/there");
    assert_string_equal(config_of(SEVERAL_NODES "t.py")->munge_socket, "/there");
}

TEST_WITH(the_workers_store_is_for_the_round_where_nodes_prove_themselves, NULL, clear) {
    const struct launch_config *config = config_of(SEVERAL_NODES "t.py");
    assert_true(config->is_store_for_proven);
    assert_false(config->is_store_for_round || config->is_store_for_every_user);
    config = config_of(SEVERAL_NODES "--worker-store-from user t.py");
    assert_false(config->is_store_for_proven);
    assert_false(config->is_store_for_round || config->is_store_for_every_user);
    config = config_of(SEVERAL_NODES "--worker-store-from round t.py");
    assert_true(config->is_store_for_round && !config->is_store_for_proven);
    config = config_of(SEVERAL_NODES "--worker-store-from any t.py");
    assert_true(config->is_store_for_every_user && !config->is_store_for_proven);
}

TEST_WITH(a_job_of_one_node_is_local_unless_it_is_found_from_elsewhere, NULL, clear) {
    assert_true(config_of("t.py")->is_local);
    assert_true(config_of("--standalone t.py")->is_local);
    assert_true(config_of("--master-port 29501 t.py")->is_local);
    assert_true(config_of("--rdzv-backend c10d --rdzv-endpoint localhost:29400 t.py")->is_local);
    assert_false(config_of("--master-addr node1 --master-port 29501 t.py")->is_local);
    assert_false(config_of("--rdzv-backend c10d --rdzv-endpoint node1:29400 t.py")->is_local);
    assert_false(config_of("--rdzv-backend c10d --rdzv-conf is_host=true t.py")->is_local);
    assert_false(config_of(SEVERAL_NODES "t.py")->is_local);
    assert_false(config_of("--nnodes 2 --master-addr 127.0.0.1 t.py")->is_local);
}

TEST_WITH(words_become_choices, NULL, clear) {
    const struct launch_config *config =
        config_of("--numa-binding core-complex --exit-code worker --nproc-per-node auto "
                  "--on-timer-expiry exit-agent "
                  "--virtual-local-rank --local-addr 10.0.0.7 --role trainer t.py");
    assert_int_equal(config->numa_binding, LAUNCH_NUMA_CORE_COMPLEX);
    assert_int_equal(config->exit_code, LAUNCH_EXIT_CODE_WORKER);
    assert_int_equal(config->on_timer_expiry, LAUNCH_TIMER_EXPIRY_EXIT_AGENT);
    assert_int_equal(config->worker_count_kind, LAUNCH_COUNT_AUTO);
    assert_true(config->is_virtual_local_rank);
    assert_string_equal(config->local_address, "10.0.0.7");
    assert_string_equal(config->role, "trainer");
    assert_int_equal(config_of("--numa-binding node t.py")->numa_binding, LAUNCH_NUMA_NODE);
    assert_int_equal(config_of("t.py")->on_timer_expiry, LAUNCH_TIMER_EXPIRY_RESTART_WORKER);
    assert_int_equal(config_of("--numa-binding socket t.py")->numa_binding, LAUNCH_NUMA_SOCKET);
    assert_int_equal(
        config_of("--numa-binding exclusive t.py")->numa_binding, LAUNCH_NUMA_EXCLUSIVE);
}

TEST_WITH(the_environment_says_what_runs, NULL, clear) {
    text_list_set_variable(&environment, "PYTHON_EXEC", "/usr/bin/python3.12");
    text_list_set_variable(&environment, "OMP_NUM_THREADS", "");
    const struct launch_config *config = config_of("t.py");
    assert_string_equal(config->python, "/usr/bin/python3.12");
    assert_false(config->sets_omp_num_threads);
}

TEST_WITH(the_environment_says_where_probes_are_answered, NULL, clear) {
    const struct launch_config *config = config_of("t.py");
    assert_false(config->serves_health);
    assert_int_equal(config->health_timeout.nanoseconds, 60000000000);
    text_list_set_variable(&environment, "TORCHELASTIC_HEALTH_CHECK_PORT", "8080");
    text_list_set_variable(&environment, "MUSTER_HEALTH_CHECK_ADDRESS", "::1");
    text_list_set_variable(&environment, "MUSTER_HEALTH_CHECK_HOSTS", "a,b");
    text_list_set_variable(&environment, "MUSTER_HEALTH_CHECK_TIMEOUT", "2.5");
    config = config_of("t.py");
    assert_true(config->serves_health);
    assert_int_equal(config->health_port, 8080);
    assert_string_equal(config->health_address, "::1");
    assert_string_equal(config->health_hosts, "a,b");
    assert_int_equal(config->health_timeout.nanoseconds, 2500000000);
    assert_int_equal(config->warnings.count, 0);
    text_list_set_variable(&environment, "TORCHELASTIC_HEALTH_CHECK_PORT", "70000");
    config = config_of("t.py");
    assert_false(config->serves_health);
    expect_warning(config, "TORCHELASTIC_HEALTH_CHECK_PORT='70000' has no effect");
    text_list_set_variable(&environment, "TORCHELASTIC_HEALTH_CHECK_PORT", "8080");
    for (const char *const *bad = (const char *const[]){"0", "-1", "nan", "soon", NULL};
         *bad != NULL; bad++) {
        text_list_set_variable(&environment, "MUSTER_HEALTH_CHECK_TIMEOUT", *bad);
        config = config_of("t.py");
        assert_int_equal(config->health_timeout.nanoseconds, 60000000000);
        expect_warning(config, "MUSTER_HEALTH_CHECK_TIMEOUT='");
    }
}

TEST_WITH(the_environment_says_what_is_watched, NULL, clear) {
    const struct launch_config *config = config_of("--monitor-interval 0.25 t.py");
    assert_int_equal(config->monitor_interval.nanoseconds, 250000000);
    assert_int_equal(config->stuck_timeout.nanoseconds, 0);
    assert_false(config->serves_timers);
    text_list_set_variable(&environment, "TORCHELASTIC_ENABLE_FILE_TIMER", "true");
    text_list_set_variable(&environment, "TORCHELASTIC_TIMER_FILE", "");
    text_list_set_variable(&environment, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "-1");
    config = config_of("t.py");
    assert_false(config->serves_timers);
    assert_null(config->timer_file);
    assert_int_equal(config->stuck_timeout.nanoseconds, 0);
    text_list_set_variable(&environment, "TORCHELASTIC_ENABLE_FILE_TIMER", "1");
    text_list_set_variable(&environment, "TORCHELASTIC_TIMER_FILE", "/run/timers");
    text_list_set_variable(&environment, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "2.5");
    config = config_of("t.py");
    assert_true(config->serves_timers);
    assert_string_equal(config->timer_file, "/run/timers");
    assert_int_equal(config->stuck_timeout.nanoseconds, 2500000000);
    assert_int_equal(config->warnings.count, 0);
    text_list_set_variable(&environment, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "soon");
    config = config_of("t.py");
    assert_int_equal(config->stuck_timeout.nanoseconds, 0);
    expect_warning(config, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT is no number");
}

TEST_WITH(plug_ins_are_refused_with_a_way_out, NULL, clear) {
    expect_mistake("--logs-specs mine t.py", "argument --logs-specs/--logs_specs: ", "--log-dir");
    assert_int_equal(config_of("--logs-specs default t.py")->warnings.count, 0);
    expect_mistake("--event-log-handler scuba t.py", "--event-log-handler", "file:PATH");
    expect_mistake("--event-log-handler file: t.py", "--event-log-handler", "file:PATH");
    expect_mistake("--event-log-handler exec: t.py", "--event-log-handler", "exec:PROGRAM");
    config_of("--event-log-handler null t.py");
}

TEST_WITH(a_handler_that_does_nothing_there_is_accepted, NULL, clear) {
    const struct launch_config *config = config_of("--event-log-handler dynamic_rendezvous t.py");
    assert_int_equal(config->event_handler, LAUNCH_EVENTS_NULL);
    assert_null(config->event_file);
}

TEST_WITH(start_methods_matter_to_nobody, NULL, clear) {
    assert_int_equal(config_of("--start-method fork t.py")->warnings.count, 0);
    expect_warning(config_of("--start-method fork --run-path /t.py"), "fresh process");
    text_list_set_variable(&environment, "PET_START_METHOD", "zz");
    expect_mistake("t.py", "--start-method", "PET_START_METHOD");
}
