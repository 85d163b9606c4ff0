/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/launch/launch_config.h"

static void check(struct duration actual, double seconds) {
    assert_true(duration_seconds(actual) == seconds);
}

static void defaults_are_torchelastics(void **state) {
    (void)state;
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

static void muster_goes_on_at_once_and_admits_at_once(void **state) {
    (void)state;
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    check(settings.silence_timeout, 3);
    check(settings.exit_barrier_timeout, 300);
    assert_int_equal(settings.on_node_loss, RENDEZVOUS_ON_NODE_LOSS_RESTART);
    assert_int_equal(settings.scale_up, RENDEZVOUS_SCALE_UP_ALLOWED);
    check(settings.scale_up_interval, 0);
}

static void only_torchruns_way_waits_for_a_worker_to_fail(void **state) {
    (void)state;
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

static void workers_are_ended_before_their_node_is_taken_for_lost(void **state) {
    (void)state;
    assert_int_equal(standstill(5, 3).nanoseconds, duration_from_seconds(9.25).nanoseconds);
    assert_int_equal(standstill(1, 3).nanoseconds, duration_from_seconds(1.85).nanoseconds);
    assert_int_equal(standstill(60, 10).nanoseconds, duration_from_seconds(539).nanoseconds);
    assert_int_equal(standstill(5, 1).nanoseconds, 0); /* each sign of life would be too late */
    assert_true(standstill(86400, 100000).nanoseconds > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(defaults_are_torchelastics),
    cmocka_unit_test(muster_goes_on_at_once_and_admits_at_once),
    cmocka_unit_test(workers_are_ended_before_their_node_is_taken_for_lost),
    cmocka_unit_test(only_torchruns_way_waits_for_a_worker_to_fail),
};

UNIT_TESTS(tests)
