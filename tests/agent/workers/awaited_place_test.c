/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/workers/agent_workers.h"

static void what_is_kept_outlives_what_it_was_copied_from(void **state) {
    (void)state;
    struct awaited_place place = {0};
    struct text_list environment = {0};
    int streams[ATTEMPT_STREAM_COUNT] = {open("/dev/null", O_WRONLY | O_CLOEXEC), -1};
    text_list_add(&environment, "A=1");
    awaited_place_keep(&place, &environment, streams);
    text_list_clear(&environment);
    close(streams[0]);
    assert_true(place.is_awaited);
    assert_string_equal(text_list_variable(&place.environment, "A"), "1");
    assert_int_equal(fcntl(place.streams[0], F_GETFD), FD_CLOEXEC);
    assert_int_equal(place.streams[1], -1);
    int kept = place.streams[0];
    awaited_place_clear(&place);
    assert_false(place.is_awaited);
    assert_int_equal(fcntl(kept, F_GETFD), -1);
    awaited_place_clear(&place); /* standard input is not closed */
    assert_true(fcntl(0, F_GETFD) != -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_kept_outlives_what_it_was_copied_from),
};

UNIT_TESTS(tests)
