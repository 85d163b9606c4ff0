/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/rendezvous_options.h"

static void settings_are_trimmed_and_the_last_wins(void **state) {
    (void)state;
    struct text_list settings = {0};
    struct text reason = {0};
    assert_int_equal(rendezvous_conf_parse(" a = 1 ,b=x=y,a=2 ", &settings, &reason), FAILURE_NONE);
    assert_int_equal(settings.count, 2);
    assert_string_equal(text_list_variable(&settings, "a"), "2");
    assert_string_equal(text_list_variable(&settings, "b"), "x=y");
    assert_int_equal(rendezvous_conf_parse("  ", &settings, &reason), FAILURE_NONE);
    assert_int_equal(settings.count, 2);
    text_list_clear(&settings);
}

static void broken_settings_change_nothing(void **state) {
    (void)state;
    static const char *const wrong[] = {"a", "a=", "=1", "a=1,", ",a=1", "a=1,,b=2", "a= ", ","};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct text_list settings = {0};
        struct text reason = {0};
        assert_int_equal(rendezvous_conf_parse(wrong[i], &settings, &reason), FAILURE_INVALID);
        assert_int_equal(settings.count, 0);
        assert_non_null(strstr(text_string(&reason), wrong[i]));
        text_clear(&reason);
    }
}

static void no_password_is_in_a_reason(void **state) {
    (void)state;
    static const char *const wrong[] = {"password=hunter2,join_timeout",
        "password=hunter2,x=", "=1,password=hunter2", "password=a,hunter2",
        "password=a, hunter2 ,user=me"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct text_list settings = {0};
        struct text reason = {0};
        assert_int_equal(rendezvous_conf_parse(wrong[i], &settings, &reason), FAILURE_INVALID);
        assert_null(strstr(text_string(&reason), "hunter2"));
        text_clear(&reason);
    }
}

static enum failure_code check(const char *text, const char *backend) {
    struct text_list settings = {0};
    struct text reason = {0};
    assert_int_equal(rendezvous_conf_parse(text, &settings, &reason), FAILURE_NONE);
    enum failure_code code = rendezvous_conf_check(&settings, backend, &reason);
    assert_int_equal(code == FAILURE_NONE, reason.length == 0);
    text_list_clear(&settings);
    text_clear(&reason);
    return code;
}

static void known_keys_keep_to_their_grammar(void **state) {
    (void)state;
    static const char *const good[] = {"join_timeout=60", "join_timeout= +6_0 ", "is_host=TRUE",
        "is_host=n", "store_type=File", "read_timeout=1", "unknown=anything", "delegation=true"};
    static const char *const bad[] = {"join_timeout=0", "join_timeout=5.5", "close_timeout=-1",
        "heartbeat_timeout=x", "read_timeout=1e3", "is_host=on", "delegation=maybe",
        "store_type=redis", "last_call_timeout=99999999999", "silence_timeout=0", "calm_after=0",
        "silence_timeout=3601", "exit_barrier_timeout=0", "keep_alive_interval=86401",
        "keep_alive_max_attempt=100001"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(check(good[i], "c10d"), FAILURE_NONE);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(check(bad[i], "c10d"), FAILURE_INVALID);
    }
}

/* torchrun accepts such values, and the job hangs. */
static void keep_alive_settings_below_one_are_refused(void **state) {
    (void)state;
    assert_int_equal(check("keep_alive_interval=0", "c10d"), FAILURE_INVALID);
    assert_int_equal(check("keep_alive_max_attempt=-1", "etcd-v2"), FAILURE_INVALID);
    assert_int_equal(check("keep_alive_interval=1,keep_alive_max_attempt=1", "c10d"), FAILURE_NONE);
}

static void keys_of_other_backends_are_nobodys(void **state) {
    (void)state;
    assert_int_equal(check("join_timeout=x", "static"), FAILURE_NONE);
    assert_int_equal(check("timeout=x", "c10d"), FAILURE_NONE);
    assert_int_equal(check("timeout=x", "static"), FAILURE_INVALID);
    assert_int_equal(check("timeout=0", "etcd"), FAILURE_INVALID);
}

static void apply(const char *text, struct launch_dynamic *dynamic) {
    struct text_list settings = {0};
    struct text reason = {0};
    assert_int_equal(rendezvous_conf_parse(text, &settings, &reason), FAILURE_NONE);
    assert_int_equal(rendezvous_conf_check(&settings, "c10d", &reason), FAILURE_NONE);
    rendezvous_conf_apply(&settings, dynamic);
    text_list_clear(&settings);
}

static void what_is_given_is_taken_and_the_rest_stays(void **state) {
    (void)state;
    struct launch_dynamic dynamic = {.read_timeout = {7}};
    rendezvous_settings_init(&dynamic.settings);
    apply("", &dynamic);
    assert_true(duration_seconds(dynamic.settings.join_timeout) == 600);
    assert_true(duration_seconds(dynamic.settings.calm_after) == 600);
    assert_int_equal(dynamic.settings.keep_alive_max_attempt, 3);
    assert_int_equal(dynamic.read_timeout.nanoseconds, 7);
    assert_int_equal(dynamic.store, LAUNCH_RECORD_TCP_STORE);
    assert_int_equal(dynamic.is_host, LAUNCH_IS_HOST_UNSET);
    apply("join_timeout=1,last_call_timeout=2,close_timeout=3,heartbeat_timeout=4,"
          "keep_alive_interval=5,keep_alive_max_attempt=6,silence_timeout=7,"
          "exit_barrier_timeout=8,read_timeout=9,calm_after=10,is_host=yes,store_type=FILE",
        &dynamic);
    assert_true(duration_seconds(dynamic.settings.join_timeout) == 1);
    assert_true(duration_seconds(dynamic.settings.last_call_timeout) == 2);
    assert_true(duration_seconds(dynamic.settings.close_timeout) == 3);
    assert_true(duration_seconds(dynamic.settings.heartbeat_timeout) == 4);
    assert_true(duration_seconds(dynamic.settings.keep_alive_interval) == 5);
    assert_int_equal(dynamic.settings.keep_alive_max_attempt, 6);
    assert_true(duration_seconds(dynamic.settings.silence_timeout) == 7);
    assert_true(duration_seconds(dynamic.settings.exit_barrier_timeout) == 8);
    assert_true(duration_seconds(dynamic.settings.calm_after) == 10);
    assert_true(duration_seconds(dynamic.read_timeout) == 9);
    assert_int_equal(dynamic.store, LAUNCH_RECORD_FILE_STORE);
    assert_int_equal(dynamic.is_host, LAUNCH_IS_HOST_YES);
    apply("is_host=0", &dynamic);
    assert_int_equal(dynamic.is_host, LAUNCH_IS_HOST_NO);
    assert_false(dynamic.settings.delegates);
    apply("delegation=yes", &dynamic);
    assert_true(dynamic.settings.delegates);
    apply("delegation=no", &dynamic);
    assert_false(dynamic.settings.delegates);
}

/* All nodes of a job are given the same numbers of nodes, so they all take the same default. */
static void a_job_of_many_nodes_delegates_unless_told_not_to(void **state) {
    (void)state;
    struct launch_dynamic dynamic = {0};
    rendezvous_settings_init(&dynamic.settings);
    dynamic.settings.maximum_nodes = RENDEZVOUS_DELEGATES_ABOVE_NODES;
    apply("", &dynamic);
    assert_false(dynamic.settings.delegates);
    apply("delegation=true", &dynamic);
    assert_true(dynamic.settings.delegates);
    dynamic.settings.maximum_nodes = RENDEZVOUS_DELEGATES_ABOVE_NODES + 1;
    apply("join_timeout=60", &dynamic);
    assert_true(dynamic.settings.delegates);
    apply("delegation=false", &dynamic);
    assert_false(dynamic.settings.delegates);
}

static void keys_nobody_knows_are_warned_about(void **state) {
    (void)state;
    struct text_list settings = {0};
    struct text_list warnings = {0};
    struct text reason = {0};
    assert_int_equal(
        rendezvous_conf_parse("join_timeout=1,join_timeou=2,timeout=3", &settings, &reason),
        FAILURE_NONE);
    rendezvous_conf_warn_of_unknown(&settings, "c10d", &warnings);
    assert_int_equal(warnings.count, 2);
    assert_non_null(strstr(warnings.items[0], "c10d knows no setting join_timeou;"));
    assert_non_null(strstr(warnings.items[1], "timeout;"));
    text_list_clear(&settings);
    text_list_clear(&warnings);
}

static void booleans_are_words_in_any_case(void **state) {
    (void)state;
    bool value = false;
    assert_int_equal(rendezvous_conf_parse_boolean("Yes", &value), FAILURE_NONE);
    assert_true(value);
    assert_int_equal(rendezvous_conf_parse_boolean("F", &value), FAILURE_NONE);
    assert_false(value);
    assert_int_equal(rendezvous_conf_parse_boolean("tr", &value), FAILURE_MALFORMED);
    assert_int_equal(rendezvous_conf_parse_boolean("", &value), FAILURE_MALFORMED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(settings_are_trimmed_and_the_last_wins),
    cmocka_unit_test(broken_settings_change_nothing),
    cmocka_unit_test(no_password_is_in_a_reason),
    cmocka_unit_test(known_keys_keep_to_their_grammar),
    cmocka_unit_test(keep_alive_settings_below_one_are_refused),
    cmocka_unit_test(keys_of_other_backends_are_nobodys),
    cmocka_unit_test(what_is_given_is_taken_and_the_rest_stays),
    cmocka_unit_test(a_job_of_many_nodes_delegates_unless_told_not_to),
    cmocka_unit_test(keys_nobody_knows_are_warned_about),
    cmocka_unit_test(booleans_are_words_in_any_case),
};

UNIT_TESTS(tests)
