/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>

#include "host/register/etcd_register.h"
#include "temporary_place.h"

static struct text_list conf_of(const char *first, const char *second) {
    struct text_list conf = {0};
    if (first != NULL) {
        text_list_add(&conf, first);
    }
    if (second != NULL) {
        text_list_add(&conf, second);
    }
    return conf;
}

static void expect_refused(
    const char *endpoint, const char *first, const char *second, const char *words) {
    struct text_list conf = conf_of(first, second);
    struct etcd_settings settings;
    struct failure failure = {0};
    assert_int_not_equal(etcd_settings_read(endpoint, &conf, &settings, &failure), FAILURE_NONE);
    if (strstr(failure.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", failure.message, words);
    }
    text_list_clear(&conf);
}

static void members_are_listed_with_their_ports(void **state) {
    (void)state;
    struct etcd_settings settings;
    assert_int_equal(etcd_settings_read("a:1,http://b,[::1]:3,http://c:4/", NULL, &settings, NULL),
        FAILURE_NONE);
    assert_int_equal(settings.endpoints.count, 4);
    assert_string_equal(settings.endpoints.items[0], "a:1");
    assert_string_equal(settings.endpoints.items[1], "b:2379");
    assert_string_equal(settings.endpoints.items[2], "[::1]:3");
    assert_string_equal(settings.endpoints.items[3], "c:4");
    assert_false(settings.trust.is_tls);
    assert_null(settings.user);
    etcd_settings_clear(&settings);
}

static void https_is_asked_for_in_two_ways(void **state) {
    (void)state;
    struct etcd_settings settings;
    struct text_list conf = conf_of("protocol=https", "cacert=/dev/null");
    assert_int_equal(etcd_settings_read("https://a:1", NULL, &settings, NULL), FAILURE_NONE);
    assert_true(settings.trust.is_tls);
    etcd_settings_clear(&settings);
    assert_int_equal(etcd_settings_read("a:1", &conf, &settings, NULL), FAILURE_NONE);
    assert_true(settings.trust.is_tls);
    assert_string_equal(settings.trust.ca, "/dev/null");
    etcd_settings_clear(&settings);
    text_list_clear(&conf);
}

static void members_that_cannot_be_used_are_refused(void **state) {
    (void)state;
    expect_refused("", NULL, NULL, "one of its members is empty");
    expect_refused("a:1,,b:2", NULL, NULL, "one of its members is empty");
    expect_refused("a:x", NULL, NULL, "'a:x'");
    expect_refused("https://a:1,b:2", NULL, NULL, "some of its members have https://");
    expect_refused("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", NULL, NULL, "names 17 members of etcd");
}

static void settings_that_do_not_fit_are_refused(void **state) {
    (void)state;
    expect_refused("a", "protocol=tcp", NULL, "it is http or https");
    expect_refused("https://a", "protocol=http", NULL, "have https://");
    expect_refused("a", "ca_cert=/dev/null", NULL, "certificates need protocol=https");
    expect_refused("a", "ca_cert=/missing", NULL, "ca_cert=/missing");
    expect_refused("https://a", "cert=/dev/null", NULL, "need each other");
    expect_refused("a", "user=me", NULL, "user needs password");
    expect_refused("a", "password=x", NULL, "user needs password");
    expect_refused("a", "user=me", "password_file=/missing", "/missing does not exist");
}

static void password_comes_from_a_file(void **state) {
    (void)state;
    char *place = temporary_place_new();
    char *setting = text_format("password_file=%s/password", place);
    int fd = open(setting + strlen("password_file="), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret\n", 7), 7);
    assert_int_equal(close(fd), 0);
    struct text_list conf = conf_of("user=me", setting);
    struct etcd_settings settings;
    assert_int_equal(etcd_settings_read("a", &conf, &settings, NULL), FAILURE_NONE);
    assert_string_equal(settings.user, "me");
    assert_string_equal(settings.password, "secret");
    etcd_settings_clear(&settings);
    text_list_clear(&conf);
    free(setting);
    temporary_place_free(place);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(members_are_listed_with_their_ports),
    cmocka_unit_test(https_is_asked_for_in_two_ways),
    cmocka_unit_test(members_that_cannot_be_used_are_refused),
    cmocka_unit_test(settings_that_do_not_fit_are_refused),
    cmocka_unit_test(password_comes_from_a_file),
};

UNIT_TESTS(tests)
