/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/config_builder.h"

#define JOB "--rdzv-backend c10d --nnodes 1:4 --rdzv-id job --rdzv-endpoint n:1 "
#define CONF "--rdzv-conf/--rdzv_conf: "

TEST_WITH(a_last_call_that_outlasts_the_join_is_refused, NULL, clear) {
    expect_mistake(JOB "--rdzv-conf join_timeout=20,last_call_timeout=21 t.py", CONF,
        "join_timeout=20 is shorter than last_call_timeout=21");
    (void)config_of(JOB "--rdzv-conf join_timeout=20,last_call_timeout=20 t.py");
    (void)config_of("--rdzv-backend c10d --nnodes 4 --rdzv-id job --rdzv-endpoint n:1 "
                    "--rdzv-conf join_timeout=20,last_call_timeout=21 t.py");
}

TEST_WITH(signs_of_life_that_are_missed_after_the_join_are_refused, NULL, clear) {
    expect_mistake(JOB "--rdzv-conf join_timeout=60,keep_alive_interval=21 t.py", CONF,
        "keep_alive_interval=21 times keep_alive_max_attempt=3 is longer than join_timeout=60");
    expect_mistake(JOB "--rdzv-conf join_timeout=60,keep_alive_max_attempt=13 t.py", CONF,
        "keep_alive_interval=5 times keep_alive_max_attempt=13 is longer than join_timeout=60");
    (void)config_of(JOB "--rdzv-conf join_timeout=60,keep_alive_interval=20 t.py");
    expect_warning(
        config_of(JOB "--rdzv-conf join_timeout=60,keep_alive_max_attempt=1 t.py"), "merely slow");
}

TEST_WITH(a_host_timeout_without_effect_is_refused, NULL, clear) {
    expect_mistake(JOB "--rdzv-conf join_timeout=60,host_timeout=61 t.py", CONF,
        "host_timeout=61 is longer than join_timeout=60");
    expect_mistake(JOB "--rdzv-conf join_timeout=60 --host-timeout 60.5 t.py",
        "--host-timeout/--host_timeout: ", "host_timeout=60.5 is longer than join_timeout=60");
    expect_mistake(JOB "--host-timeout 0 t.py", "--host-timeout/--host_timeout: ", "more than 0");
    (void)config_of(JOB "--rdzv-conf join_timeout=60,host_timeout=60 t.py");
    const struct launch_config *config =
        config_of(JOB "--rdzv-conf host_timeout=61 --host-timeout 7 t.py");
    assert_true(duration_seconds(config->dynamic.settings.host_timeout) == 7);
}

TEST_WITH(a_settling_that_outlasts_the_others_join_is_refused, NULL, clear) {
    expect_mistake(JOB "--rdzv-conf join_timeout=5 --settling-time 5 t.py",
        "--settling-time/--settling_time: ", "5 s are not shorter than join_timeout=5");
    (void)config_of(JOB "--rdzv-conf join_timeout=5 --settling-time 4.9 t.py");
}
