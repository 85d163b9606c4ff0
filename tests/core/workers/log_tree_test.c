/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/log_plan.h"

static void assert_absolute(const char *path, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    log_tree_append_absolute(&text, "/home/me", path);
    assert_string_equal(text_string(&text), expected);
}

TEST(paths_become_absolute) {
    assert_absolute("logs", "/home/me/logs");
    assert_absolute("./logs/", "/home/me/logs");
    assert_absolute("/var//log/./x", "/var/log/x");
    assert_absolute("../logs", "/home/me/../logs");
    assert_absolute(".", "/home/me");
    assert_absolute("", "/home/me");
    assert_absolute("/", "/");
    assert_absolute(".hidden", "/home/me/.hidden");
}

static void assert_run_name(const char *run_id, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    log_tree_append_run_name(&text, run_id, "abcd1234");
    assert_string_equal(text_string(&text), expected);
}

TEST(run_names_are_one_directory_entry) {
    assert_run_name("none", "none_abcd1234");
    assert_run_name("team/job", "team_job_abcd1234");
    assert_run_name("../../etc", ".._.._etc_abcd1234");
    assert_run_name("a\nb\x7f", "a_b__abcd1234");
    assert_run_name("", "_abcd1234");
    assert_run_name("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f_abcd1234");
}

TEST(over_long_run_ids_are_cut_between_characters) {
    char run_id[401];
    for (size_t i = 0; i < 400; i += 2) {
        memcpy(&run_id[i], "\xc3\xa4", 2);
    }
    run_id[400] = '\0';
    CLEARED_BY(text_clear) struct text text = {0};
    log_tree_append_run_name(&text, run_id, "abcd1234");
    assert_int_equal(text.length, 255);
    assert_string_equal(&text_string(&text)[246], "_abcd1234");
    text_clear(&text);
    /* This run id starts in the middle of a character. */
    log_tree_append_run_name(&text, &run_id[1], "abcd1234");
    assert_int_equal(text.length, 254);
}

TEST(bytes_that_are_no_text_are_cut_anywhere) {
    char run_id[301];
    memset(run_id, 0x80, 300);
    run_id[300] = '\0';
    CLEARED_BY(text_clear) struct text text = {0};
    log_tree_append_run_name(&text, run_id, "abcd1234");
    assert_int_equal(text.length, 255);
}

TEST(later_incarnations_are_named_after_their_round) {
    struct text text = {0};
    static const char *const names[] = {"attempt_3", "attempt_3_round_7", "attempt_3_round_7.2"};
    struct log_tree_attempt attempt = {.restart_count = 3, .round = 7};
    for (int i = 0; i < 3; i++) {
        log_tree_append_attempt_name(&text, &attempt, i);
        assert_string_equal(text_string(&text), names[i]);
        text_clear(&text);
    }
}

TEST(files_are_where_torchelastic_has_them) {
    static const struct {
        enum log_tree_file file;
        const char *path;
    } cases[] = {
        {LOG_TREE_STDOUT, "/l/attempt_0/12/stdout.log"},
        {LOG_TREE_STDERR, "/l/attempt_0/12/stderr.log"},
        {LOG_TREE_ERROR, "/l/attempt_0/12/error.json"},
        {LOG_TREE_HANG_EVIDENCE, "/l/attempt_0/12/hang_evidence.txt"},
        {LOG_TREE_FILTERED_STDOUT, "/l/attempt_0/filtered_stdout.log"},
        {LOG_TREE_FILTERED_STDERR, "/l/attempt_0/filtered_stderr.log"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FREED char *path = log_tree_file_path("/l/attempt_0", 12, cases[i].file);
        assert_string_equal(path, cases[i].path);
    }
}

TEST(only_the_text_dev_null_discards) {
    assert_true(log_tree_is_discarded("/dev/null"));
    assert_false(log_tree_is_discarded("/dev/./null"));
    assert_false(log_tree_is_discarded("/tmp"));
    assert_false(log_tree_is_discarded(NULL));
}
