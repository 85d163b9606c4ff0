/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/moment.h"

TEST(a_moment_has_come_when_it_is_reached) {
    struct moment moment = {0};
    assert_false(moment_has_come(&moment, (struct instant){INT64_MAX}));
    moment_set(&moment, (struct instant){10});
    assert_false(moment_has_come(&moment, (struct instant){9}));
    assert_true(moment_has_come(&moment, (struct instant){10}));
    moment_clear(&moment);
    assert_false(moment_has_come(&moment, (struct instant){10}));
}

TEST(the_earliest_moment_to_come_wakes) {
    struct moment unset = {0};
    struct moment past = {true, {5}};
    struct moment later = {true, {20}};
    struct moment sooner = {true, {15}};
    struct moment next = {0};
    moment_wake(&unset, (struct instant){10}, &next);
    moment_wake(&past, (struct instant){10}, &next);
    assert_false(next.is_set);
    moment_wake(&later, (struct instant){10}, &next);
    moment_wake(&sooner, (struct instant){10}, &next);
    moment_wake(&later, (struct instant){10}, &next);
    assert_int_equal(next.at.nanoseconds, 15);
}
