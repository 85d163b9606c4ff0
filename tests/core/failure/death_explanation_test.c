/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/failure/failure_report.h"

#define KILL 9
#define SEGMENT 11
#define TERMINATE 15

static void assert_explained(struct death_facts facts, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    facts.pid = 4321;
    death_explain(&facts, &text);
    assert_string_equal(text_string(&text), expected);
}

static struct process_exit by_signal(int signal) {
    return (struct process_exit){.is_signal = true, .value = signal};
}

static struct process_exit by_core_dump(void) {
    return (struct process_exit){.is_signal = true, .value = SEGMENT, .has_dumped_core = true};
}

TEST(ordinary_end_needs_no_words) {
    assert_explained((struct death_facts){.exit = {.value = 0}}, "");
    assert_explained((struct death_facts){.exit = {.value = 1}}, "");
    assert_explained((struct death_facts){.exit = by_signal(TERMINATE)}, "");
    assert_explained((struct death_facts){.exit = by_signal(KILL)}, "");
    assert_explained((struct death_facts){.exit = by_signal(64)}, "");
    assert_explained((struct death_facts){.exit = {.value = 0}, .oom_kills = 2}, "");
}

TEST(recorded_victim_is_certain) {
    assert_explained((struct death_facts){.exit = by_signal(KILL),
                         .has_kernel_record = true,
                         .resident_kib = 23068672,
                         .is_memory_cgroup_kill = true,
                         .oom_kills = 1},
        "killed by the kernel's OOM killer: its control group's memory limit was reached (the "
        "process held 22528 MiB)");
    assert_explained((struct death_facts){.exit = by_signal(KILL), .has_kernel_record = true},
        "killed by the kernel's OOM killer: the machine's memory was used up");
}

TEST(counted_kills_make_it_likely) {
    assert_explained((struct death_facts){.exit = by_signal(KILL), .oom_kills = 1},
        "most likely killed by the kernel's OOM killer, which ended 1 process of this control "
        "group meanwhile");
    assert_explained(
        (struct death_facts){.exit = by_signal(KILL), .oom_kills = 3, .counts_machine = true},
        "possibly killed by the kernel's OOM killer, which ended 3 processes on this machine "
        "meanwhile");
}

TEST(failure_beside_a_kill_is_told_of_it) {
    assert_explained((struct death_facts){.exit = {.value = 1}, .oom_kills = 1},
        "the kernel's OOM killer ended 1 process of this control group meanwhile");
    assert_explained(
        (struct death_facts){.exit = {.value = 1}, .oom_kills = 1, .counts_machine = true}, "");
}

TEST(core_dump_is_located) {
    struct death_facts facts = {.exit = by_core_dump()};
    assert_explained(facts, "invalid memory access; core dumped");
    facts.core_pattern = "core";
    assert_explained(
        facts, "invalid memory access; core dumped to 'core' in the worker's working directory");
    facts.core_uses_pid = true;
    assert_explained(facts,
        "invalid memory access; core dumped to 'core.4321' in the worker's working directory");
    facts.core_pattern = "/var/cores/%s-%p-100%%";
    assert_explained(facts, "invalid memory access; core dumped to '/var/cores/11-4321-100%'");
    facts.core_pattern = "/var/cores/%e.%p";
    assert_explained(facts, "invalid memory access; core dumped to a file named by the pattern "
                            "'/var/cores/%e.%p'");
    facts.core_pattern = "/var/cores/core%";
    assert_explained(facts, "invalid memory access; core dumped to a file named by the pattern "
                            "'/var/cores/core%'");
    facts.core_pattern = "|/usr/lib/systemd/systemd-coredump %P %u";
    assert_explained(
        facts, "invalid memory access; core dump handed to /usr/lib/systemd/systemd-coredump");
}
