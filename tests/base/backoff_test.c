/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/duration.h"

static double next_milliseconds(struct backoff *backoff) {
    return duration_seconds(backoff_next(backoff)) * 1000;
}

TEST(first_delays_are_short) {
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct backoff backoff;
        backoff_init(&backoff, seed);
        double delay = next_milliseconds(&backoff);
        assert_true(delay >= 5 && delay <= 15);
        delay = next_milliseconds(&backoff);
        assert_true(delay >= 7.4 && delay <= 22.6);
    }
}

TEST(delays_grow_to_the_ceiling_and_no_further) {
    struct backoff backoff;
    backoff_init(&backoff, 7);
    for (int i = 0; i < 20; i++) {
        (void)backoff_next(&backoff);
    }
    for (int i = 0; i < 100; i++) {
        double delay = next_milliseconds(&backoff);
        assert_true(delay >= BACKOFF_CEILING_MILLISECONDS * 0.49);
        assert_true(delay <= BACKOFF_CEILING_MILLISECONDS * 1.51);
    }
}

TEST(who_gives_up_soon_tries_again_sooner) {
    static const struct {
        double patience;
        double shortest;
        double longest;
    } cases[] = {{2, 0.5, 1.5}, {20, 5, 15}, {5000, 5, 15}, {0, 5, 15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 0; seed < 100; seed++) {
            struct backoff backoff;
            backoff_init_within(&backoff, seed, duration_from_seconds(cases[i].patience / 1000));
            double delay = next_milliseconds(&backoff);
            assert_true(delay >= cases[i].shortest && delay <= cases[i].longest);
        }
    }
}

TEST(different_seeds_wait_differently) {
    struct backoff left;
    struct backoff right;
    backoff_init(&left, 1);
    backoff_init(&right, 2);
    assert_true(next_milliseconds(&left) != next_milliseconds(&right));
}
