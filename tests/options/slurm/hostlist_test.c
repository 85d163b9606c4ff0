/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/slurm/slurm_step.h"

#include "base/memory.h"

/* The names, with blanks between them. The caller frees it. */
static char *expanded(const char *text) {
    CLEARED_BY(text_list_clear) struct text_list hosts = {0};
    struct text joined = {0};
    assert_int_equal(hostlist_expand(text, &hosts), FAILURE_NONE);
    for (size_t i = 0; i < hosts.count; i++) {
        text_append_format(&joined, "%s%s", i == 0 ? "" : " ", hosts.items[i]);
    }
    return text_take(&joined);
}

static void expect(const char *text, const char *names) {
    FREED char *found = expanded(text);
    assert_string_equal(found, names);
}

static void expect_failure(const char *text, enum failure_code code) {
    CLEARED_BY(text_list_clear) struct text_list hosts = {0};
    text_list_add(&hosts, "before");
    assert_int_equal(hostlist_expand(text, &hosts), code);
    assert_int_equal(hosts.count, 1);
}

TEST(plain_names_are_themselves) {
    expect("node1", "node1");
    expect("b,a,b.example.org", "b a b.example.org");
    expect("7", "7");
}

TEST(brackets_are_every_number_in_them) {
    expect("node[1-3]", "node1 node2 node3");
    expect("node[3,1,7-8]", "node3 node1 node7 node8");
    expect("a[1-2],b,c[9-11]", "a1 a2 b c9 c10 c11");
    expect("[1-2]", "1 2");
}

TEST(leading_zeros_are_kept) {
    expect("node[008-011]", "node008 node009 node010 node011");
    expect("node[001-002,7,0010]", "node001 node002 node7 node0010");
    expect("node[98-101]", "node98 node99 node100 node101");
    expect("node[0]", "node0");
}

TEST(several_brackets_multiply) {
    expect("rack[1-2]node[01-02]", "rack1node01 rack1node02 rack2node01 rack2node02");
    expect("x[0-1][0-1][5]", "x005 x015 x105 x115");
    expect("n[1-2]-[3,5].ib", "n1-3.ib n1-5.ib n2-3.ib n2-5.ib");
}

TEST(what_follows_brackets_is_kept) {
    expect("node[1-2]-ib0,other", "node1-ib0 node2-ib0 other");
}

TEST(other_text_is_refused_and_changes_nothing) {
    static const char *const wrong[] = {"", ",", "a,", ",a", "a,,b", "a[", "a]", "a[]", "a[1",
        "a[1-]", "a[-1]", "a[1,]", "a[,1]", "a[1-2-3]", "a[2-1]", "a[1]]", "a[[1]]", "a[x]",
        "a[1 - 2]", "a b", "a\n", "bg[000x133]", "a[1-3/2]", "a:1", "a/b", "gr\xc3\xbc\xc3\x9f"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_failure(wrong[i], FAILURE_MALFORMED);
    }
}

TEST(sizes_have_a_limit) {
    CLEARED_BY(text_list_clear) struct text_list hosts = {0};
    assert_int_equal(hostlist_expand("n[1-65536]", &hosts), FAILURE_NONE);
    assert_int_equal(hosts.count, HOSTLIST_MAXIMUM_HOSTS);
    expect_failure("n[0-65536]", FAILURE_LIMIT);
    expect_failure("n[0-999999999]", FAILURE_LIMIT);
    expect_failure("n[0-9999999999]", FAILURE_LIMIT);
    expect_failure("n[0-999][0-999]", FAILURE_LIMIT);
    expect_failure("n[1][1][1][1][1][1][1][1][1]", FAILURE_LIMIT);
    FREED char *name = memory_allocate(HOSTLIST_MAXIMUM_NAME + 2);
    memset(name, 'n', HOSTLIST_MAXIMUM_NAME + 1);
    expect_failure(name, FAILURE_LIMIT);
    name[HOSTLIST_MAXIMUM_NAME] = '\0';
    expect(name, name);
}
