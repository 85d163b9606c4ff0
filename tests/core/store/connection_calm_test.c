/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_request.h"

static const struct duration after = {INT64_C(60000000000)};

static bool look(struct connection_calm *calm, double silent_for, uint32_t resent, double now) {
    struct connection_hearing hearing = {duration_from_seconds(silent_for), resent};
    return connection_calm_look(
        calm, hearing, after, (struct instant){duration_from_seconds(now).nanoseconds});
}

TEST(a_packet_that_was_sent_again_ends_the_calm) {
    struct connection_calm calm = {0};
    assert_false(look(&calm, 0, 3, 1000)); /* while it was opened */
    assert_true(look(&calm, 0, 3, 1060));
    assert_false(look(&calm, 0, 4, 1061));
    assert_false(look(&calm, 0, 4, 1120));
    assert_true(look(&calm, 0, 4, 1121));
}

TEST(a_probe_that_nobody_answered_ends_the_calm) {
    struct connection_calm calm = {0};
    assert_false(look(&calm, 0, 0, 1000));
    assert_true(look(&calm, 0, 0, 1060));
    assert_false(look(&calm, 1.6, 0, 1061));
    assert_false(look(&calm, 0.1, 0, 1062));
    assert_true(look(&calm, 0.1, 0, 1121));
}

TEST(without_end_there_is_no_calm) {
    struct connection_calm calm = {0};
    struct connection_hearing hearing = {0};
    const struct instant late = {INT64_MAX / 2};
    assert_false(connection_calm_look(&calm, hearing, DURATION_FOREVER, (struct instant){0}));
    assert_false(connection_calm_look(&calm, hearing, DURATION_FOREVER, late));
}
