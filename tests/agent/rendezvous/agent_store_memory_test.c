/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_store_host.h"
#include "host/remembered_log.h"

static void what_was_asked_for_holds(void **state) {
    (void)state;
    struct launch_config config = {.store_memory_bytes = (uint64_t)3 << 20};
    struct remembered_log log;
    remembered_log_init(&log);
    assert_int_equal(agent_store_memory_limits(&config, &log.log).memory_bytes, 3 << 20);
    assert_int_equal(log.count, 0);
    text_clear(&log.text);
}

static void more_than_there_is_is_said(void **state) {
    (void)state;
    struct launch_config config = {.store_memory_bytes = (uint64_t)1 << 60};
    struct remembered_log log;
    remembered_log_init(&log);
    assert_true(agent_store_memory_limits(&config, &log.log).memory_bytes == (size_t)1 << 60);
    assert_true(remembered_log_has(&log, "may use only"));
    text_clear(&log.text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_asked_for_holds),
    cmocka_unit_test(more_than_there_is_is_said),
};

UNIT_TESTS(tests)
