/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "agent/agent_job.h"
#include "agent_fixture.h"

static void token_is_kept_from_workers_and_from_the_own_variables(void **state) {
    struct agent_fixture fixture;
    (void)state;
    setenv("MUSTER_JOB_TOKEN", "a token that nobody is to see", 1);
    agent_fixture_init(&fixture, 1, "test -z \"$MUSTER_JOB_TOKEN\"");
    text_list_add(&fixture.environment, "MUSTER_JOB_TOKEN=a token that nobody is to see");
    assert_int_equal(agent_job_run(NULL, &fixture.config, &fixture.environment), 0);
    assert_null(getenv("MUSTER_JOB_TOKEN"));
    agent_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(token_is_kept_from_workers_and_from_the_own_variables),
};

UNIT_TESTS(tests)
