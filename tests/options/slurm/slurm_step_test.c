/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "options/slurm/slurm_step.h"

static struct text_list environment;
static struct slurm_step step;
static struct text reason;

static int clear(void **state) {
    (void)state;
    text_list_clear(&environment);
    slurm_step_clear(&step);
    text_clear(&reason);
    return 0;
}

/* What srun -N2 sets on its first node, and one change of it: NULL takes the variable away. */
static enum failure_code read_changed(const char *name, const char *value) {
    static const char *const variables[][2] = {{"SLURM_JOB_ID", "41"}, {"SLURM_STEP_ID", "3"},
        {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "node[08-09]"},
        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}, {"SLURMD_NODENAME", "node08"}};
    clear(NULL);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (name == NULL || !text_equals(name, variables[i][0])) {
            text_list_set_variable(&environment, variables[i][0], variables[i][1]);
        }
    }
    if (value != NULL) {
        text_list_set_variable(&environment, name, value);
    }
    return slurm_step_read(&environment, &step, &reason);
}

TEST_WITH(what_is_not_needed_may_be_missing, NULL, clear) {
    assert_int_equal(read_changed("SLURMD_NODENAME", NULL), FAILURE_NONE);
    assert_null(step.node);
    assert_int_equal(read_changed("SLURM_STEP_TASKS_PER_NODE", NULL), FAILURE_NONE);
    assert_int_equal(step.tasks_per_node, 1);
    text_list_set_variable(&environment, "SLURM_NTASKS_PER_NODE", "4");
    slurm_step_clear(&step);
    assert_int_equal(slurm_step_read(&environment, &step, &reason), FAILURE_NONE);
    assert_int_equal(step.tasks_per_node, 4);
    assert_int_equal(read_changed("SLURM_GPUS_ON_NODE", "8"), FAILURE_NONE);
    assert_int_equal(step.gpus, 8);
    assert_int_equal(read_changed("SLURM_GPUS_ON_NODE", "gpu:8"), FAILURE_NONE);
    assert_int_equal(step.gpus, 0);
}

TEST_WITH(older_names_serve_too, NULL, clear) {
    assert_int_equal(read_changed("SLURM_JOB_ID", NULL), FAILURE_INVALID);
    text_list_set_variable(&environment, "SLURM_JOBID", "7");
    slurm_step_clear(&step);
    assert_int_equal(slurm_step_read(&environment, &step, &reason), FAILURE_NONE);
    assert_int_equal(step.job, 7);
}

TEST_WITH(the_largest_number_of_tasks_counts, NULL, clear) {
    static const struct {
        const char *text;
        int64_t largest;
    } good[] = {{"1", 1}, {"1(x2)", 1}, {"2,1(x3)", 2}, {"1(x3),4", 4}, {"1,2(x2),1(x10)", 2}};
    static const char *const bad[] = {
        "", ",", "1,", "1(x)", "1(x2", "(x2)", "1(2)", "1 ", "-1", "x", "1(x2)2", "12345678901"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(read_changed("SLURM_STEP_TASKS_PER_NODE", good[i].text), FAILURE_NONE);
        assert_int_equal(step.tasks_per_node, good[i].largest);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_changed("SLURM_STEP_TASKS_PER_NODE", bad[i]), FAILURE_INVALID);
    }
}

TEST_WITH(what_cannot_be_used_is_named_with_its_value, NULL, clear) {
    static const struct {
        const char *name;
        const char *value;
        const char *part;
    } wrong[] = {{"SLURM_JOB_ID", NULL, "SLURM_JOB_ID is not set"},
        {"SLURM_JOB_ID", "x", "SLURM_JOB_ID='x' cannot be used: expected the number of the job"},
        {"SLURM_STEP_ID", "-1", "SLURM_STEP_ID='-1'"}, {"SLURM_STEP_ID", "", "SLURM_STEP_ID=''"},
        {"SLURM_STEP_NODELIST", NULL, "SLURM_STEP_NODELIST is not set: expected the names"},
        {"SLURM_STEP_NODELIST", "node[1-", "as in node[1-4]"},
        {"SLURM_STEP_NODELIST", "node[1-3]", "expected 2 names, as SLURM_STEP_NUM_NODES says"},
        {"SLURM_STEP_TASKS_PER_NODE", "many", "SLURM_STEP_TASKS_PER_NODE='many'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_changed(wrong[i].name, wrong[i].value), FAILURE_INVALID);
        if (strstr(text_string(&reason), wrong[i].part) == NULL) {
            fail_msg("%s", text_string(&reason));
        }
    }
}

TEST_WITH(counts_that_are_no_numbers_say_nothing, NULL, clear) {
    static const char *const values[] = {"", "x", "-2", "2x", "2 ", "12345678901"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        clear(NULL);
        text_list_set_variable(&environment, "SLURM_STEP_NUM_NODES", values[i]);
        text_list_set_variable(&environment, "SLURM_NNODES", values[i]);
        text_list_set_variable(&environment, "SLURM_HET_SIZE", values[i]);
        assert_int_equal(slurm_step_node_count(&environment), 0);
        assert_int_equal(slurm_job_node_count(&environment), 0);
        assert_false(slurm_job_is_heterogeneous(&environment));
    }
    text_list_set_variable(&environment, "SLURM_JOB_NUM_NODES", "3");
    text_list_set_variable(&environment, "SLURM_HET_SIZE", "2");
    assert_int_equal(slurm_job_node_count(&environment), 3);
    assert_true(slurm_job_is_heterogeneous(&environment));
}

/* Hostlist. */

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

TEST(several_brackets_multiply) {
    expect("rack[1-2]node[01-02]", "rack1node01 rack1node02 rack2node01 rack2node02");
    expect("x[0-1][0-1][5]", "x005 x015 x105 x115");
    expect("n[1-2]-[3,5].ib", "n1-3.ib n1-5.ib n2-3.ib n2-5.ib");
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
