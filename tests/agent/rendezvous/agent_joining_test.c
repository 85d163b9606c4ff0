/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_node_settings.h"
#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "host/remembered_log.h"

static void expect_nodes(const char *step, const char *host, int nodes, size_t count) {
    char *copy = memory_duplicate_string(host);
    struct launch_config config = {.maximum_nodes = nodes, .dynamic.host = copy};
    struct text_list environment = {0};
    struct text_list expected = {0};
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", step);
    agent_joining_expect(&config, &environment, &expected);
    assert_int_equal(expected.count, count);
    text_list_clear(&environment);
    text_list_clear(&expected);
    free(copy);
}

TEST(the_nodes_of_a_step_are_expected_if_they_are_those_of_the_job) {
    expect_nodes("n[1-3]", "n1", 3, 3);
    expect_nodes("n[1-3]", "n2", 3, 0);
    expect_nodes("n[1-3]", "n1", 4, 0);
    expect_nodes("n[1-", "n1", 3, 0);
    expect_nodes("n[1-3]", NULL, 3, 0);
}
