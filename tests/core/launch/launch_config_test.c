/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/launch/launch_config.h"

TEST(ranks_not_mentioned_are_not_redirected) {
    int by_rank[] = {-1, 2};
    struct launch_streams streams = {.by_rank = by_rank, .rank_count = 2};
    assert_int_equal(launch_streams_for(&streams, 0), 0);
    assert_int_equal(launch_streams_for(&streams, 1), 2);
    assert_int_equal(launch_streams_for(&streams, 2), 0);
}

TEST(cleared_config_is_empty) {
    struct launch_config config = {.script = memory_duplicate_string("x.py")};
    text_list_add(&config.script_arguments, "a");
    launch_config_clear(&config);
    assert_null(config.script);
    assert_int_equal(config.script_arguments.count, 0);
}

/* Secret setting. */

static void expect(const char *settings, const char *shown) {
    CLEARED_BY(text_clear) struct text out = {0};
    secret_setting_write_shown(settings, &out);
    assert_string_equal(text_string(&out), shown);
}

TEST(values_of_secrets_are_left_out) {
    expect("user=me,password=hunter2,join_timeout=60", "user=me,password=***,join_timeout=60");
    expect("Etcd_PassWord = a=b", "Etcd_PassWord =***");
    expect(
        "access_token=x,client_secret=y,passwd=z", "access_token=***,client_secret=***,passwd=***");
}

TEST(a_password_with_a_comma_is_left_out_whole) {
    expect("password=hun,ter2,,x,user=me", "password=***,***,***,***,user=me");
    expect("password=,", "password=***,");
}

TEST(everything_else_is_shown) {
    expect("", "");
    expect(",", ",");
    expect("password", "password"); /* it has no value */
    expect("nonsense,join_timeout=x", "nonsense,join_timeout=x");
    expect(
        "password_file=/run/p,k8s_token_file=/run/t", "password_file=/run/p,k8s_token_file=/run/t");
}

TEST(a_setting_is_a_secret_by_its_key) {
    assert_true(secret_setting_is_one("password=x"));
    assert_true(secret_setting_is_one("password = x"));
    assert_false(secret_setting_is_one("user=password"));
    assert_false(secret_setting_is_one("user,password=x"));
    assert_false(secret_setting_is_one("password_file =x"));
    assert_false(secret_setting_is_one(""));
}

/* Rendezvous settings. */

static void check(struct duration actual, double seconds) {
    assert_true(duration_seconds(actual) == seconds);
}

TEST(defaults_are_torchelastics) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    assert_int_equal(settings.minimum_nodes, 1);
    assert_int_equal(settings.maximum_nodes, 1);
    check(settings.join_timeout, 600);
    check(settings.last_call_timeout, 30);
    check(settings.close_timeout, 30);
    check(settings.heartbeat_timeout, 5);
    check(settings.keep_alive_interval, 5);
    assert_int_equal(settings.keep_alive_max_attempt, 3);
}

TEST(muster_goes_on_at_once_and_admits_at_once) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    check(settings.silence_timeout, 3);
    check(settings.exit_barrier_timeout, 300);
    assert_int_equal(settings.on_node_loss, RENDEZVOUS_ON_NODE_LOSS_RESTART);
    assert_int_equal(settings.scale_up, RENDEZVOUS_SCALE_UP_ALLOWED);
    check(settings.scale_up_interval, 0);
}

TEST(only_torchruns_way_waits_for_a_worker_to_fail) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    assert_true(rendezvous_settings_heed_losses(&settings));
    settings.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    assert_true(rendezvous_settings_heed_losses(&settings));
    settings.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    assert_false(rendezvous_settings_heed_losses(&settings));
}

static struct duration standstill(double interval, int attempts) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    settings.keep_alive_interval = duration_from_seconds(interval);
    settings.keep_alive_max_attempt = attempts;
    return rendezvous_settings_standstill(&settings);
}

TEST(workers_are_ended_before_their_node_is_taken_for_lost) {
    assert_int_equal(standstill(5, 3).nanoseconds, duration_from_seconds(9.25).nanoseconds);
    assert_int_equal(standstill(1, 3).nanoseconds, duration_from_seconds(1.85).nanoseconds);
    assert_int_equal(standstill(60, 10).nanoseconds, duration_from_seconds(539).nanoseconds);
    assert_int_equal(standstill(5, 1).nanoseconds, 0); /* each sign of life would be too late */
    assert_true(standstill(86400, 100000).nanoseconds > 0);
}
