/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/endpoint.h"

static void expect_members(const char *text, bool is_https, const char *members) {
    CLEARED_BY(endpoint_list_clear) struct endpoint_list list = {0};
    struct text reason = {0};
    CLEARED_BY(text_clear) struct text joined = {0};
    if (endpoint_list_parse(text, &list, &reason) != FAILURE_NONE) {
        fail_msg("%s", text_string(&reason));
    }
    for (size_t i = 0; i < list.members.count; i++) {
        text_append_format(&joined, "%s ", list.members.items[i]);
    }
    assert_string_equal(text_string(&joined), members);
    assert_int_equal(list.is_https, is_https);
}

static void expect_refused(const char *text, const char *words) {
    struct endpoint_list list = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(endpoint_list_parse(text, &list, &reason), FAILURE_INVALID);
    if (strstr(text_string(&reason), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text_string(&reason), words);
    }
    assert_null(list.members.items);
}

TEST(members_have_hosts_and_ports) {
    expect_members("a:1", false, "a:1 ");
    expect_members("a:1,b:65535,10.0.0.1:3", false, "a:1 b:65535 10.0.0.1:3 ");
    expect_members(" a:1 , [::1]:3 ", false, "a:1 [::1]:3 ");
    expect_members("a,::1", false, "a:2379 [::1]:2379 ");
    expect_members("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,b:1", false,
        "a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 a:2379 "
        "a:2379 a:2379 a:2379 b:1 ");
}

TEST(schemes_are_cut_off) {
    expect_members("http://a:1,b:2,http://c:3/", false, "a:1 b:2 c:3 ");
    expect_members("https://a:1,https://[::1]/", true, "a:1 [::1]:2379 ");
}

TEST(lists_that_are_none_are_refused) {
    expect_refused("", "one of its members is empty");
    expect_refused(",", "one of its members is empty");
    expect_refused("a:1,", "'a:1,': one of its members is empty");
    expect_refused("a:1,,b:1", "one of its members is empty");
    expect_refused("http://", "one of its members is empty");
    expect_refused("https:///,https://a:1", "one of its members is empty");
    expect_refused("a:1,b:", "'b:': a port from 0 to 65535 has to follow");
    expect_refused("a:65536", "'a:65536': a port");
    expect_refused("a:0", "'a:0': a member of etcd listens on a port from 1");
    expect_refused(":1", "':1': give HOST:PORT");
    expect_refused("ftp://a:1", "'ftp://a:1': give HOST:PORT");
    expect_refused("https://http://a:1", "give HOST:PORT");
    expect_refused("a:1,https://b:1", "some of its members have https:// and others have not");
    expect_refused(
        "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "names 17 members of etcd, more than the 16");
}
