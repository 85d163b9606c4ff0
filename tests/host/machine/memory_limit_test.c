/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/resource.h>

#include "host/machine/machine.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
};

static void set_up(struct fixture *fixture, const char *cgroups) {
    temporary_tree_init(&fixture->tree);
    temporary_tree_write(&fixture->tree, "proc/self/cgroup", cgroups);
}

static void expect_limit(struct fixture *fixture, uint64_t expected) {
    assert_int_equal(memory_limit_read(fixture->tree.root), expected);
    temporary_tree_clear(&fixture->tree);
}

TEST(a_cgroup_of_version_2_limits_and_so_do_those_around_it) {
    struct fixture fixture;
    set_up(&fixture, "0::/job/step\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/step/memory.max", "max\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/memory.max", "2000000\n");
    expect_limit(&fixture, 2000000);
    set_up(&fixture, "0::/job/step\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/step/memory.max", "1000000\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/memory.max", "2000000\n");
    expect_limit(&fixture, 1000000);
}

TEST(a_cgroup_of_version_1_limits) {
    struct fixture fixture;
    set_up(&fixture, "9:name=systemd:/other\n5:cpu,memory:/a\n0::/\n");
    temporary_tree_write(
        &fixture.tree, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    temporary_tree_write(
        &fixture.tree, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000000\n");
    expect_limit(&fixture, 3000000);
}

TEST(in_a_container_the_root_has_the_limit) {
    struct fixture fixture;
    set_up(&fixture, "0::/kubepods/pod7/container9\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/memory.max", "4000000\n");
    expect_limit(&fixture, 4000000);
}

TEST(without_a_limit_it_is_the_machines_memory) {
    struct fixture fixture;
    set_up(&fixture, "no cgroup\n0::/job\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/memory.max", "max\n");
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    expect_limit(&fixture, limit.rlim_cur < machine ? limit.rlim_cur : machine);
}

TEST(room_is_what_is_available_and_left_below_the_limits) {
    struct fixture fixture;
    set_up(&fixture, "0::/job/step\n");
    temporary_tree_write(&fixture.tree, "proc/meminfo",
        "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n");
    assert_int_equal(memory_limit_room(fixture.tree.root), 4000 * 1024);
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/memory.max", "3000000\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/memory.current", "1000000\n");
    assert_int_equal(memory_limit_room(fixture.tree.root), 2000000);
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/step/memory.max", "1500000\n");
    temporary_tree_write(&fixture.tree, "sys/fs/cgroup/job/step/memory.current", "1600000\n");
    assert_int_equal(memory_limit_room(fixture.tree.root), 0);
    temporary_tree_clear(&fixture.tree);
}

static void expect_near(
    struct fixture *fixture, const char *maximum, const char *current, bool is_near) {
    temporary_tree_write(&fixture->tree, "sys/fs/cgroup/pids/job/pids.max", maximum);
    temporary_tree_write(&fixture->tree, "sys/fs/cgroup/pids/job/pids.current", current);
    assert_int_equal(task_limit_is_near(fixture->tree.root), is_near);
}

TEST(a_limit_on_tasks_is_near_where_less_are_left_than_are_in_use) {
    struct fixture fixture;
    set_up(&fixture, "8:pids:/job\n4:memory:/other\n0::/\n");
    assert_false(task_limit_is_near(fixture.tree.root));
    expect_near(&fixture, "max\n", "1000\n", false);
    expect_near(&fixture, "1001\n", "500\n", false);
    expect_near(&fixture, "1000\n", "500\n", true);
    expect_near(&fixture, "100\n", "200\n", true);
    temporary_tree_clear(&fixture.tree);
}
