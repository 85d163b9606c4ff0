/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "agent/scratch/agent_scratch.h"
#include "host/remembered_log.h"

#define MIB (UINT64_C(1) << 20)

TEST(workers_are_told_where_it_is_and_how_much_goes_in) {
    struct remembered_log log;
    remembered_log_init(&log);
    struct launch_config config = {.scratch_bytes = 2 * MIB};
    struct text_list environment = {0};
    struct agent_scratch_settings settings = {
        .config = &config, .environment = &environment, .log = &log.log};
    struct agent_scratch *scratch;
    struct failure failure = {0};
    assert_int_equal(agent_scratch_new(&settings, &scratch, &failure), FAILURE_NONE);
    agent_scratch_set_variables(scratch, &environment);
    assert_string_equal(text_list_variable(&environment, "MUSTER_SCRATCH_BYTES"), "2097152");
    const char *path = text_list_variable(&environment, "MUSTER_SCRATCH");
    assert_int_equal(access(path, W_OK), 0);
    agent_scratch_free(scratch);
    assert_int_equal(access(path, F_OK), -1);
    text_list_clear(&environment);
    text_clear(&log.text);
}
