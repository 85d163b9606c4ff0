/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "sample_table.h"

static struct option_result result;
static struct text_list environment;

static int clear(void **state) {
    (void)state;
    option_result_clear(&result);
    text_list_clear(&environment);
    return 0;
}

/* Reads a command line whose arguments are separated by blanks. */
static void parse(const char *line) {
    struct text_list arguments = {0};
    char *copy = strdup(line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        text_list_add(&arguments, word);
    }
    free(copy);
    option_result_clear(&result);
    option_parse(&sample_table, "sample", &arguments, &environment, &result);
    text_list_clear(&arguments);
}

static const struct option_value *value(const char *destination) {
    assert_int_equal(result.outcome, OPTION_OUTCOME_VALUES);
    return option_result_value(&result, destination);
}

static void expect_mistake(const char *line, const char *message) {
    parse(line);
    assert_int_equal(result.outcome, OPTION_OUTCOME_MISTAKE);
    struct text expected = {0};
    text_append_format(&expected,
        "sample: error: %s\nusage: sample [OPTION]… key ...; sample --help shows every option\n",
        message);
    assert_string_equal(result.text, text_string(&expected));
    text_clear(&expected);
}

TEST_WITH(defaults_hold_when_nothing_is_given, NULL, clear) {
    parse("k");
    assert_int_equal(value("size")->integer, 1);
    assert_int_equal(value("size")->source, OPTION_SOURCE_DEFAULT);
    assert_false(value("rate")->is_set);
    assert_false(value("verbose")->flag);
    assert_string_equal(value("key")->text, "k");
}

TEST_WITH(bundles_run_into_one_value, NULL, clear) {
    parse("-vqs3 k");
    assert_true(value("verbose")->flag && value("quiet")->flag);
    assert_int_equal(value("size")->integer, 3);
    parse("-vqs -4 k");
    assert_int_equal(value("size")->integer, -4);
    parse("-qs=5 k");
    assert_int_equal(value("size")->integer, 5);
}

TEST_WITH(what_follows_the_key_is_left_alone, NULL, clear) {
    parse("-v k --size x -- -v");
    assert_int_equal(value("rest")->list.count, 4);
    assert_string_equal(value("rest")->list.items[0], "--size");
    assert_int_equal(value("size")->integer, 1);
}

TEST_WITH(the_first_double_dash_next_to_the_key_is_dropped, NULL, clear) {
    parse("-- k -- a");
    assert_int_equal(value("rest")->list.count, 2);
    parse("k -- a");
    assert_int_equal(value("rest")->list.count, 1);
    parse("k a -- b");
    assert_int_equal(value("rest")->list.count, 3);
    parse("-- --size");
    assert_string_equal(value("key")->text, "--size");
}

TEST_WITH(mistakes_are_worded_as_argparse_words_them, NULL, clear) {
    expect_mistake("", "the following arguments are required: key");
    expect_mistake("--size", "argument -s/--size: expected one argument");
    expect_mistake("--size -- 3", "argument -s/--size: expected one argument");
    expect_mistake("-qs", "argument -s/--size: expected one argument");
    expect_mistake("--size x", "argument -s/--size: invalid int value: 'x'");
    expect_mistake("--ver k", "ambiguous option: --ver could match --verbose, --version");
    expect_mistake("--nope -x k", "unrecognized arguments: --nope -x");
    expect_mistake("-vx k", "unrecognized arguments: -x");
    expect_mistake("--verbose=1 k", "argument -v/--verbose: ignored explicit argument '1'");
    expect_mistake("-v= k", "argument -v/--verbose: ignored explicit argument ''");
    expect_mistake("-q- k", "argument -q: ignored explicit argument '-'");
    expect_mistake("--colour blue k",
        "argument --colour: invalid choice: 'blue' (choose from 'red', 'green')");
}

TEST_WITH(the_environment_stands_behind_the_command_line, NULL, clear) {
    text_list_set_variable(&environment, "SAMPLE_SIZE", "7");
    text_list_set_variable(&environment, "SAMPLE_RATE", "7");
    text_list_set_variable(&environment, "SAMPLE_VERBOSE", "2");
    text_list_set_variable(&environment, "SAMPLE_TAG_LIST", "");
    parse("k");
    assert_int_equal(value("size")->integer, 7);
    assert_int_equal(value("size")->source, OPTION_SOURCE_ENVIRONMENT);
    assert_false(value("rate")->is_set); /* this option has no environment variable */
    assert_true(value("verbose")->flag);
    assert_int_equal(value("tag_list")->list.count, 1);
    parse("--size 2 k");
    assert_int_equal(value("size")->integer, 2);
    assert_int_equal(value("size")->source, OPTION_SOURCE_COMMAND_LINE);
}

TEST_WITH(bad_variables_are_named_unless_overridden, NULL, clear) {
    text_list_set_variable(&environment, "SAMPLE_COLOUR", "blue");
    expect_mistake("k", "argument --colour: invalid choice: 'blue' (choose from 'red', 'green') "
                        "(from the environment variable SAMPLE_COLOUR)");
    parse("--colour red k");
    assert_string_equal(value("colour")->text, "red");
    text_list_clear(&environment);
    text_list_set_variable(&environment, "SAMPLE_VERBOSE", "");
    expect_mistake("k", "argument -v/--verbose: invalid int value: '' "
                        "(from the environment variable SAMPLE_VERBOSE)");
}

TEST_WITH(an_unknown_option_may_have_been_meant_to_be_another, NULL, clear) {
    expect_mistake("--sise k", "unrecognized arguments: --sise (did you mean --size?)");
    expect_mistake("--rats=1", "the following arguments are required: key (did you mean --rate?)");
    expect_mistake("--other k", "unrecognized arguments: --other");
}

TEST_WITH(help_and_version_end_the_reading, NULL, clear) {
    parse("-vh --nope");
    assert_int_equal(result.outcome, OPTION_OUTCOME_PRINT);
    assert_non_null(strstr(result.text, "usage: sample [-h]"));
    parse("--version");
    assert_int_equal(result.outcome, OPTION_OUTCOME_PRINT);
    assert_string_equal(result.text, "muster " MUSTER_VERSION "\n");
    parse("--complete bash");
    assert_int_equal(result.outcome, OPTION_OUTCOME_PRINT);
    expect_mistake("--size x --help", "argument -s/--size: invalid int value: 'x'");
    expect_mistake("--complete fish",
        "argument --complete: invalid choice: 'fish' (choose from 'bash', 'zsh', 'tcsh')");
    parse("k --help");
    assert_int_equal(result.outcome, OPTION_OUTCOME_VALUES);
}
