/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/failure/kernel_text.h"
#include "wire/failure/python_stack.h"

#define STAT_TAIL                                                                                  \
    " S 12 34 56 34817 77 4194560 168 0 0 0 1 2 3 4 20 0 1 0 987654321 7 8 9 10 11 12 13 14 15 "   \
    "16 17 18 0 0 0 17 1 0 0 0 0 0 23 24 25 140720000 140729999 26 27 0\n"

static enum failure_code read_stat(const char *text, struct kernel_process_stat *stat) {
    return kernel_text_read_stat(slice_from_string(text), stat);
}

TEST(stat_line_is_read) {
    struct kernel_process_stat stat;
    assert_int_equal(read_stat("78 (python3)" STAT_TAIL, &stat), FAILURE_NONE);
    assert_int_equal(stat.pid, 78);
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.parent, 12);
    assert_int_equal(stat.group, 34);
    assert_int_equal(stat.session, 56);
    assert_int_equal(stat.flags, 4194560);
    assert_int_equal(stat.pending, 15);
    assert_int_equal(stat.start_time, 987654321);
    assert_int_equal(stat.arguments_start, 140720000);
    assert_int_equal(stat.arguments_end, 140729999);
    assert_int_equal(stat.wait_status, 0);
}

#define DYING_HEAD                                                                                 \
    "78 (python3) R 12 34 56 0 -1 4227332 168 0 0 0 1 2 3 4 20 0 1 0 98 7 8 9 10 11 12 13 14 256 " \
    "16 17 18 0 0 0 17 1 0 0 0 0 0 23 24 25 140 149 26 27 "

TEST(the_status_of_a_process_that_ends_is_read) {
    static const struct {
        const char *line;
        int status;
    } cases[] = {{DYING_HEAD "9\n", 9}, {DYING_HEAD "134", 134}, {DYING_HEAD "65280\n", 65280},
        {DYING_HEAD "65536\n", 0}, {DYING_HEAD "-1\n", 0}, {DYING_HEAD "\n", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kernel_process_stat stat;
        assert_int_equal(read_stat(cases[i].line, &stat), FAILURE_NONE);
        assert_true((stat.flags & KERNEL_PROCESS_EXITING) != 0);
        assert_int_equal(stat.pending, 1 << (9 - 1));
        assert_int_equal(stat.ignored, 17);
        assert_int_equal(stat.caught, 18);
        assert_int_equal(stat.wait_status, cases[i].status);
    }
}

TEST(kernel_threads_and_old_kernels_are_read) {
    struct kernel_process_stat stat;
    assert_int_equal(
        read_stat("2 (kthreadd) S 0 0 0 0 -1 2 0 0 0 0 0 0 0 0 20 0 1 0 9", &stat), FAILURE_NONE);
    assert_int_equal(stat.parent, 0);
    assert_int_equal(stat.start_time, 9);
    assert_int_equal(stat.arguments_start, 0);
    assert_int_equal(stat.arguments_end, 0);
    assert_int_equal(stat.wait_status, 0);
}

TEST(broken_stat_line_is_refused) {
    static const char *const lines[] = {"", "x", "78", "78 (a", "78 (a)", "78 (a) ", "78 (a) S",
        "78 (a) S 1 2", "78 (a) S x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
        "78 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 ",
        "78 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -9",
        "99999999999 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19",
        "78 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99999999999999999999999"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct kernel_process_stat stat = {.pid = -7};
        assert_int_equal(read_stat(lines[i], &stat), FAILURE_MALFORMED);
        assert_int_equal(stat.pid, -7);
    }
}

static enum failure_code read_kill(const char *record, struct kernel_oom_kill *kill) {
    return kernel_text_read_oom_kill(slice_from_string(record), kill);
}

TEST(oom_kill_of_the_machine_is_read) {
    struct kernel_oom_kill kill;
    assert_int_equal(read_kill("3,1050,80215412,-;Out of memory: Killed process 4321 (python3) "
                               "total-vm:25165824kB, anon-rss:23068672kB, file-rss:128kB, "
                               "shmem-rss:0kB, UID:0 pgtables:45kB oom_score_adj:0\n",
                         &kill),
        FAILURE_NONE);
    assert_int_equal(kill.pid, 4321);
    assert_int_equal(kill.resident_kib, 23068672);
    assert_false(kill.is_memory_cgroup);
}

TEST(oom_kill_of_a_cgroup_is_read) {
    struct kernel_oom_kill kill;
    assert_int_equal(read_kill("6,1,2,-;Memory cgroup out of memory: Killed process 17 (a) b) "
                               "total-vm:1kB, anon-rss:2kB, file-rss:3kB\n SUBSYSTEM=memory\n",
                         &kill),
        FAILURE_NONE);
    assert_int_equal(kill.pid, 17);
    assert_int_equal(kill.resident_kib, 2);
    assert_true(kill.is_memory_cgroup);
}

TEST(oom_kill_without_figures_is_read) {
    struct kernel_oom_kill kill;
    assert_int_equal(read_kill("6,1,2,-;Out of memory: Killed process 17", &kill), FAILURE_NONE);
    assert_int_equal(kill.pid, 17);
    assert_int_equal(kill.resident_kib, 0);
}

TEST(other_records_are_no_oom_kill) {
    static const char *const records[] = {"", ";", "6,1,2,-;usb 1-1: new device",
        "6,1,2,-;python3 invoked oom-killer: gfp_mask=0xcc0",
        "6,1,2,-;systemd[1]: Killed process 12 (x)", "Out of memory: Killed process 17 (x)",
        "6,1,2,-;Out of memory: Killed process x", "6,1,2,-;Out of memory: Killed process 0 (x)",
        "6,1,2,-;Out of memory: Killed process -5 (x)", "6,1,2,-;Out of memory: Killed process ",
        "6,1,2,-;Out of memory: Killed process 99999999999 (x)"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct kernel_oom_kill kill = {.pid = -7};
        assert_int_equal(read_kill(records[i], &kill), FAILURE_MISSING);
        assert_int_equal(kill.pid, -7);
    }
}

TEST(counter_is_found_by_its_whole_name) {
    const struct slice events =
        slice_from_string("low 0\nhigh 0\nmax 12\noom_kill_group 5\noom 3\noom_kill 2\n");
    uint64_t value = 99;
    assert_int_equal(kernel_text_read_counter(events, "oom_kill", &value), FAILURE_NONE);
    assert_int_equal(value, 2);
    assert_int_equal(kernel_text_read_counter(events, "oom", &value), FAILURE_NONE);
    assert_int_equal(value, 3);
    assert_int_equal(kernel_text_read_counter(events, "swap", &value), FAILURE_MISSING);
    assert_int_equal(
        kernel_text_read_counter(slice_from_string(""), "oom", &value), FAILURE_MISSING);
    assert_int_equal(
        kernel_text_read_counter(slice_from_string("oom x"), "oom", &value), FAILURE_MALFORMED);
    assert_int_equal(
        kernel_text_read_counter(slice_from_string("oom 1x"), "oom", &value), FAILURE_MALFORMED);
    assert_int_equal(value, 3);
}

static void assert_cgroup(const char *text, const char *controller, const char *expected) {
    struct slice path = {0};
    enum failure_code code = kernel_text_find_cgroup(slice_from_string(text), controller, &path);
    assert_int_equal(code, expected == NULL ? FAILURE_MISSING : FAILURE_NONE);
    if (expected != NULL) {
        assert_true(slice_equals(path, slice_from_string(expected)));
    }
}

TEST(sets_of_signals_are_read) {
    struct slice status =
        slice_from_string("Name:\tSigBlk\nSigBlkX:\t1\nSigBlk:\t0002000000000001\n"
                          "SigCgt:\tfedcba9876543210\nSigIgn:\t00000000000000g0\n"
                          "SigPnd:\t1\nShdPnd: 0000000000000000");
    uint64_t signals;
    assert_int_equal(kernel_text_read_signals(status, "SigBlk", &signals), FAILURE_NONE);
    assert_true(signals == UINT64_C(0x0002000000000001));
    assert_int_equal(kernel_text_read_signals(status, "SigCgt", &signals), FAILURE_NONE);
    assert_true(signals == UINT64_C(0xfedcba9876543210));
    assert_int_equal(kernel_text_read_signals(status, "SigIgn", &signals), FAILURE_MALFORMED);
    assert_int_equal(kernel_text_read_signals(status, "SigPnd", &signals), FAILURE_MALFORMED);
    assert_int_equal(kernel_text_read_signals(status, "ShdPnd", &signals), FAILURE_MALFORMED);
    assert_int_equal(kernel_text_read_signals(status, "SigQ", &signals), FAILURE_MISSING);
    assert_true(signals == UINT64_C(0xfedcba9876543210));
}

TEST(cgroup_is_found_by_its_controller) {
    static const char text[] = "9:name=systemd:/a\n4:memory:/jobs/7\n1:cpu,cpuacct:/b:c\n0::/u\n";
    assert_cgroup(text, "memory", "/jobs/7");
    assert_cgroup(text, "cpuacct", "/b:c");
    assert_cgroup(text, "", "/u");
    assert_cgroup(text, "cpuset", NULL);
    assert_cgroup("0::/", "", "/");
    assert_cgroup("0::/", "memory", NULL);
    assert_cgroup("", "", NULL);
    assert_cgroup("nonsense\n:\n", "memory", NULL);
}

/* Memory map. */

TEST(a_mapping_of_a_file_is_read) {
    struct memory_mapping mapping;
    assert_int_equal(
        memory_map_read_line(
            slice_from_string("00b47000-00be2000 rw-p 00746000 fe:00 1062395      /usr/bin/a b"),
            &mapping),
        FAILURE_NONE);
    assert_int_equal(mapping.start, 0xb47000);
    assert_int_equal(mapping.end, 0xbe2000);
    assert_true(mapping.is_readable);
    assert_true(mapping.is_writable);
    assert_true(slice_equals(mapping.path, slice_from_string("/usr/bin/a b")));
    assert_true(memory_mapping_is_file(&mapping, "a "));
    assert_false(memory_mapping_is_file(&mapping, "bin"));
}

TEST(memory_without_a_file_has_no_path) {
    struct memory_mapping mapping;
    assert_int_equal(
        memory_map_read_line(
            slice_from_string("7ffd9949fc00-7ffd9949fd00 r--p 00000000 00:00 0 "), &mapping),
        FAILURE_NONE);
    assert_false(mapping.is_writable);
    assert_int_equal(mapping.path.length, 0);
    assert_false(memory_mapping_is_file(&mapping, ""));
}

TEST(other_lines_are_refused) {
    static const char *const lines[] = {"", "-", "12", "12-", "12-34", "12-34 r-", "34-12 r--p 0",
        "12-12 r--p 0", "fffffffffffffffff-12 r--p", "xy-12 r--p 0 0 0"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct memory_mapping mapping;
        assert_int_equal(
            memory_map_read_line(slice_from_string(lines[i]), &mapping), FAILURE_MALFORMED);
    }
}
