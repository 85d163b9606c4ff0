/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of a register and answered is tested with agent_succession, which uses it. */
#include "unit.h"

#include "agent/rendezvous/agent_succession.h"

static void only_a_record_of_nothing_is_empty(void **state) {
    (void)state;
    assert_true(agent_register_is_empty(&(struct rendezvous_state){0}));
    assert_false(agent_register_is_empty(&(struct rendezvous_state){.is_closed = true}));
    assert_false(agent_register_is_empty(&(struct rendezvous_state){.round = 1}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_a_record_of_nothing_is_empty),
};

UNIT_TESTS(tests)
