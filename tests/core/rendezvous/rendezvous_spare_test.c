/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/rendezvous/rendezvous_waiting.h"

static struct rendezvous_node nodes[2];
static struct rendezvous_state record = {.nodes = nodes};

static int begin(void **unused) {
    (void)unused;
    memset(nodes, 0, sizeof nodes);
    record.count = 0;
    return 0;
}

static void add(const char *address, int pid, bool is_participant) {
    struct rendezvous_node *node = &nodes[record.count++];
    node_identity_init(&node->identity, address, pid, 0);
    node->is_participant = is_participant;
    node->is_redundant = !is_participant;
}

/* The caller frees it. */
static char *program(enum launch_entry entry, const char *script, const char *argument) {
    struct launch_config config = {.entry = entry, .script = memory_duplicate_string(script)};
    struct text out = {0};
    if (argument != NULL) {
        text_list_add(&config.script_arguments, argument);
    }
    rendezvous_spare_write_program(&config, &out);
    text_list_clear(&config.script_arguments);
    free(config.script);
    return text_take(&out);
}

static void expect_misplaced(const char *theirs, const char *own, const char *expected) {
    CLEARED_BY(text_clear) struct text out = {0};
    bool is =
        rendezvous_spare_find_misplaced(&record, "node1", slice_from_string(theirs), own, &out);
    assert_int_equal(is, expected[0] != '\0');
    assert_string_equal(text_string(&out), expected);
}

TEST_WITH(a_spare_on_a_machine_of_its_own_is_one_of_the_job, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "/data/train.py", "--plan=a1");
    FREED char *elsewhere = program(LAUNCH_ENTRY_SCRIPT, "/home/me/train.py", "--plan=a27");
    add("node2", 7, true);
    add("node1", 8, false);
    expect_misplaced(own, own, "");
    expect_misplaced(elsewhere, own, "");
}

TEST_WITH(a_spare_beside_a_node_on_its_machine_is_none, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", NULL);
    add("node1", 7, true);
    expect_misplaced(own, own, "a node of that job is on this machine, process 7");
    expect_misplaced("", own, "a node of that job is on this machine, process 7");
}

TEST_WITH(another_program_and_other_arguments_are_told_apart, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=a1");
    FREED char *other = program(LAUNCH_ENTRY_SCRIPT, "serve.py", "--plan=a1");
    FREED char *argument = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=b1");
    FREED char *module = program(LAUNCH_ENTRY_MODULE, "train.py", "--plan=a1");
    add("node2", 7, true);
    expect_misplaced(other, own, "the nodes of that job run another program");
    expect_misplaced(argument, own, "the nodes of that job run their program with other arguments");
    expect_misplaced(module, own, "the nodes of that job run their program with other arguments");
    record.count = 0;
    add("node1", 7, true);
    expect_misplaced(other, own,
        "the nodes of that job run another program, and one of them is on this machine, process "
        "7");
}

static bool is_mixed(const char *theirs, const char *own) {
    return rendezvous_spare_is_mixed(&record, &nodes[0].identity, slice_from_string(theirs), own);
}

TEST_WITH(two_jobs_in_one_world_are_known_by_their_programs, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=a1");
    FREED char *other = program(LAUNCH_ENTRY_SCRIPT, "serve.py", "--plan=a1");
    FREED char *argument = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=b1");
    add("node1", 7, true);
    assert_false(is_mixed(other, own)); /* alone, it is the job */
    add("node2", 7, true);
    assert_true(is_mixed(other, own));
    assert_false(is_mixed(argument, own)); /* each machine may have its own */
    assert_false(is_mixed("", own));
    record.count = 1;
    add("node1", 8, true);
    assert_true(is_mixed(argument, own));
    assert_false(is_mixed(own, own));
}

TEST_WITH(where_arguments_end_makes_a_difference, begin, NULL) {
    FREED char *one = program(LAUNCH_ENTRY_PROGRAM, "a", "b");
    FREED char *none = program(LAUNCH_ENTRY_PROGRAM, "ab", NULL);
    assert_string_not_equal(one, none);
}

TEST_WITH(what_a_stranger_has_written_is_no_other_program, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", NULL);
    add("node2", 7, true);
    expect_misplaced("", own, "");
    expect_misplaced("another", own, "");
    expect_misplaced("000000000000000 \x1b[31m00000000000000", own, "");
}

TEST_WITH(a_spare_is_told_what_it_is_and_what_is_odd_about_it, begin, NULL) {
    struct launch_config config = {.minimum_nodes = 1, .maximum_nodes = 2};
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_spare_describe(&config, "j\x1b", "host:1", true, NULL, &out);
    assert_string_equal(text_string(&out),
        "job 'j?' at host:1 has all nodes that it may have (--nnodes 1:2): this one is a spare, "
        "and starts no worker before one of them is lost");
    text_clear(&out);
    rendezvous_spare_describe(&config, "j", "host:1", false, "why", &out);
    assert_non_null(strstr(text_string(&out),
        "which waits to be let in (--scale-up); but why: if these are two jobs"));
}
