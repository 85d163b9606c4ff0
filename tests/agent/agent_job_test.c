/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "agent/agent.h"
#include "agent_fixture.h"

TEST(workers_inherit_all_but_the_token) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 1, "test -z \"$MUSTER_JOB_TOKEN\" && test \"$OTHER\" = kept");
    text_list_add(&fixture.environment, "MUSTER_JOB_TOKEN=a token that nobody is to see");
    text_list_add(&fixture.environment, "OTHER=kept");
    struct text_list inherited = agent_job_environment(&fixture.environment);
    assert_int_equal(agent_job_run(NULL, &fixture.config, &inherited), 0);
    assert_int_equal(agent_job_run(NULL, &fixture.config, &fixture.environment), 1);
    text_list_clear(&inherited);
    agent_fixture_clear(&fixture);
}
