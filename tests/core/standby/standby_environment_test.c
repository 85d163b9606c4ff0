/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_preparation.h"

static struct text_list worker(void) {
    struct text_list list = {0};
    text_list_add(&list, "PATH=/bin");
    text_list_add(&list, "RANK=3");
    text_list_add(&list, "LOCAL_RANK=1");
    text_list_add(&list, "MASTER_PORT=29500");
    text_list_add(&list, "TORCHELASTIC_RESTART_COUNT=0");
    text_list_add(&list, "TORCHELASTIC_ERROR_FILE=/tmp/a/0/error.json");
    text_list_add(&list, "OMP_NUM_THREADS=1");
    return list;
}

static void dress(
    struct text_list *list, enum standby_role role, const char *hook_directory, int signal) {
    const struct standby_dress how = {
        .role = role, .hook_directory = hook_directory, .evidence_signal = signal, .rest = 2.5};
    standby_environment_dress(list, &how);
}

TEST(a_worker_that_records_keeps_its_environment) {
    struct text_list list = worker();
    dress(&list, STANDBY_RECORD, "/hook", 0);
    assert_string_equal(text_list_variable(&list, "RANK"), "3");
    assert_string_equal(text_list_variable(&list, "PYTHONPATH"), "/hook");
    assert_string_equal(
        text_list_variable(&list, "MUSTER_STANDBY"), "fd=3;role=record;pythonpath=0");
    text_list_clear(&list);
}

TEST(a_standby_worker_knows_nothing_of_the_round) {
    struct text_list list = worker();
    text_list_set_variable(&list, "PYTHONPATH", "/mine");
    dress(&list, STANDBY_SPARE, "/hook", 0);
    assert_null(text_list_variable(&list, "RANK"));
    assert_null(text_list_variable(&list, "MASTER_PORT"));
    assert_null(text_list_variable(&list, "TORCHELASTIC_RESTART_COUNT"));
    assert_string_equal(text_list_variable(&list, "LOCAL_RANK"), "1");
    assert_string_equal(
        text_list_variable(&list, "TORCHELASTIC_ERROR_FILE"), "/tmp/a/0/error.json");
    assert_string_equal(text_list_variable(&list, "PYTHONPATH"), "/hook:/mine");
    assert_string_equal(
        text_list_variable(&list, "MUSTER_STANDBY"), "fd=3;role=spare;pythonpath=1;rest=2.5");
    text_list_clear(&list);
}

TEST(the_parent_of_standby_workers_has_no_rank) {
    struct text_list list = worker();
    const struct standby_dress how = {.role = STANDBY_SPARE, .rest = 2.5, .parent_of = 4711};
    standby_environment_dress(&list, &how);
    assert_null(text_list_variable(&list, "LOCAL_RANK"));
    assert_null(text_list_variable(&list, "RANK"));
    assert_string_equal(text_list_variable(&list, "OMP_NUM_THREADS"), "1");
    assert_string_equal(text_list_variable(&list, "MUSTER_STANDBY"),
        "fd=3;role=spare;pythonpath=0;rest=2.5;parent=4711");
    text_list_clear(&list);
}

TEST(python_is_told_on_which_signal_to_say_its_stacks) {
    struct text_list list = worker();
    dress(&list, STANDBY_RECORD, "/hook", 50);
    assert_string_equal(
        text_list_variable(&list, "MUSTER_STANDBY"), "fd=3;role=record;pythonpath=0;signal=50");
    dress(&list, STANDBY_SPARE, NULL, 50);
    assert_string_equal(
        text_list_variable(&list, "MUSTER_STANDBY"), "fd=3;role=spare;pythonpath=1;rest=2.5");
    text_list_clear(&list);
}

TEST(who_is_alone_is_told) {
    struct text_list list = worker();
    const struct standby_dress how = {
        .role = STANDBY_SPARE, .hook_directory = "/hook", .rest = 24, .is_alone = true};
    standby_environment_dress(&list, &how);
    assert_string_equal(text_list_variable(&list, "MUSTER_STANDBY"),
        "fd=3;role=spare;pythonpath=0;rest=24;alone=1");
    text_list_clear(&list);
}

TEST(only_the_names_of_the_round_may_differ) {
    struct text_list before = worker();
    struct text_list now = worker();
    assert_null(standby_environment_difference(&before, &now));
    text_list_set_variable(&now, "RANK", "0");
    text_list_set_variable(&now, "MASTER_PORT", "1");
    text_list_set_variable(&now, "WORLD_SIZE", "8");
    text_list_set_variable(&now, "TORCHELASTIC_ERROR_FILE", "/tmp/a/1/error.json");
    assert_null(standby_environment_difference(&before, &now));
    text_list_set_variable(&now, "OMP_NUM_THREADS", "4");
    assert_string_equal(standby_environment_difference(&before, &now), "OMP_NUM_THREADS=1");
    text_list_set_variable(&now, "OMP_NUM_THREADS", "1");
    assert_null(standby_environment_difference(&before, &now));
    text_list_add(&now, "RANKED=1");
    assert_string_equal(standby_environment_difference(&before, &now), "RANKED=1");
    assert_string_equal(standby_environment_difference(&now, &before), "RANKED=1");
    text_list_clear(&before);
    text_list_clear(&now);
}

TEST(what_was_said_to_another_goes) {
    struct text_list list = worker();
    size_t count = list.count;
    standby_environment_undress(&list);
    assert_int_equal(list.count, count);
    text_list_add(&list, "MUSTER_STANDBY=fd=3;role=record;pythonpath=0");
    text_list_add(&list, "MUSTER_STANDBY_OF_MINE=1");
    standby_environment_undress(&list);
    assert_int_equal(list.count, count + 1);
    assert_null(text_list_variable(&list, "MUSTER_STANDBY"));
    text_list_clear(&list);
}
