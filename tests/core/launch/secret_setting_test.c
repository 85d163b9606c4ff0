/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/launch/launch_config.h"

static void expect(const char *settings, const char *shown) {
    CLEARED_BY(text_clear) struct text out = {0};
    secret_setting_write_shown(settings, &out);
    assert_string_equal(text_string(&out), shown);
}

TEST(values_of_secrets_are_left_out) {
    expect("user=me,password=hunter2,join_timeout=60", "user=me,password=***,join_timeout=60");
    expect("Etcd_PassWord = a=b", "Etcd_PassWord =***");
    expect(
        "access_token=x,client_secret=y,passwd=z", "access_token=***,client_secret=***,passwd=***");
}

TEST(a_password_with_a_comma_is_left_out_whole) {
    expect("password=hun,ter2,,x,user=me", "password=***,***,***,***,user=me");
    expect("password=,", "password=***,");
}

TEST(everything_else_is_shown) {
    expect("", "");
    expect(",", ",");
    expect("password", "password"); /* it has no value */
    expect("nonsense,join_timeout=x", "nonsense,join_timeout=x");
    expect(
        "password_file=/run/p,k8s_token_file=/run/t", "password_file=/run/p,k8s_token_file=/run/t");
}

TEST(a_setting_is_a_secret_by_its_key) {
    assert_true(secret_setting_is_one("password=x"));
    assert_true(secret_setting_is_one("password = x"));
    assert_false(secret_setting_is_one("user=password"));
    assert_false(secret_setting_is_one("user,password=x"));
    assert_false(secret_setting_is_one("password_file =x"));
    assert_false(secret_setting_is_one(""));
}
