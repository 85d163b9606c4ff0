/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/launch/launch_config.h"

TEST(one_value_serves_every_rank) {
    struct launch_streams streams = {.for_all = 3};
    assert_int_equal(launch_streams_for(&streams, 0), 3);
    assert_int_equal(launch_streams_for(&streams, 4000), 3);
}

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
