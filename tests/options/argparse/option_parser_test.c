/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "options/launch/launch_options.h"
#include "sample_table.h"

static struct option_result result;
static struct text_list environment;

static int clear(void **state) {
    (void)state;
    option_result_clear(&result);
    text_list_clear(&environment);
    return 0;
}

/* Reads a command line whose arguments are separated by blanks; "~" stands for an empty one. */
static void parse_with(const struct option_table *table, const char *line) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    FREED char *copy = strdup(line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        text_list_add(&arguments, text_equals(word, "~") ? "" : word);
    }
    option_result_clear(&result);
    option_parse(table, "sample", &arguments, &environment, &result);
}

static void parse(const char *line) {
    parse_with(&sample_table, line);
}

static const struct option_value *value(const char *destination) {
    assert_int_equal(result.outcome, OPTION_OUTCOME_VALUES);
    return option_result_value(&result, destination);
}

static void expect_mistake(const char *line, const char *message) {
    parse(line);
    assert_int_equal(result.outcome, OPTION_OUTCOME_MISTAKE);
    CLEARED_BY(text_clear) struct text expected = {0};
    text_append_format(&expected,
        "sample: error: %s\nusage: sample [OPTION]… key ...; sample --help shows every option\n",
        message);
    assert_string_equal(result.text, text_string(&expected));
}

/* The others look like options, and are named as unknown ones below. */
TEST_WITH(some_words_with_a_dash_are_no_options, NULL, clear) {
    static const char *const keys[] = {"~", "-", "key", "-1", "-.5", "-1e3", "-1x"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        parse(keys[i]);
        assert_string_equal(value("key")->text, text_equals(keys[i], "~") ? "" : keys[i]);
    }
    CLEARED_BY(text_list_clear) struct text_list blank = {.count = 0};
    text_list_add(&blank, "--no such");
    option_result_clear(&result);
    option_parse(&sample_table, "sample", &blank, &environment, &result);
    assert_string_equal(value("key")->text, "--no such");
    parse("-=1");
    assert_non_null(strstr(result.text, "ambiguous option: -=1"));
}

TEST_WITH(a_value_may_follow_or_be_attached, NULL, clear) {
    static const struct {
        const char *line;
        int64_t size;
        bool is_verbose;
        bool is_quiet;
    } cases[] = {
        {"--size 3 k", 3, false, false},
        {"--size=3 k", 3, false, false},
        {"--si=-3 k", -3, false, false},
        {"-s 3 k", 3, false, false},
        {"-s3 k", 3, false, false},
        {"-s=3 k", 3, false, false},
        {"-vqs3 k", 3, true, true},
        {"-qs=5 k", 5, false, true},
        {"-vqs -4 k", -4, true, true},
        {"--verb -s 2 k", 2, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].line);
        assert_int_equal(value("size")->integer, cases[i].size);
        assert_int_equal(value("verbose")->flag, cases[i].is_verbose);
        assert_int_equal(value("quiet")->flag, cases[i].is_quiet);
        assert_string_equal(value("key")->text, "k");
    }
    parse("--tag-=a=b k");
    assert_string_equal(value("tag_list")->list.items[0], "a=b");
}

/* What the positionals p, q and r took; a mistake instead. */
static void append_taken(const struct option_table *table, struct text *out) {
    for (size_t i = 1; i < table->definition_count && result.values != NULL; i++) {
        const struct option_value *taken = &result.values[i];
        text_append_format(out, " %s=", table->definitions[i].destination);
        text_append(out, taken->text == NULL ? "" : taken->text);
        for (size_t j = 0; j < taken->list.count; j++) {
            text_append_format(out, "%s%s", j == 0 ? "" : ",", taken->list.items[j]);
        }
    }
}

/* The expected results are those of Python 3.14's argparse. */
TEST_WITH(each_positional_takes_all_it_can, NULL, clear) {
    static const struct {
        const char *arities; /* as argparse spells them; '1': one, 'R': the remainder */
        const char *line;
        const char *expected;
    } cases[] = {
        {"1R", "a -o b -- c", " p=a q=-o,b,--,c"},
        {"1R", "-- a b c", " p=a q=b,c"},
        {"1R", "a -- b", " p=a q=b"},
        {"1R", "a b -- c", " p=a q=b,--,c"},
        {"1R", "", "the following arguments are required: p"},
        {"1R", "-o a", " p=a q="},
        {"11", "a b", " p=a q=b"},
        {"11", "a -o b", " p=a q=b"},
        {"11", "a b c", "unrecognized arguments: c"},
        {"*", "-o a", " p=a"},
        {"*", "", " p="},
        {"*", "a -o b", "unrecognized arguments: b"},
        {"*1", "a b c", " p=a,b q=c"},
        {"*1", "a", " p= q=a"},
        {"+", "-o", "the following arguments are required: p"},
        {"+1", "a b c", " p=a,b q=c"},
        {"+1", "a", "the following arguments are required: q"},
        {"?1", "a", " p= q=a"},
        {"?1", "a b", " p=a q=b"},
        {"1?", "a -o b", " p=a q=b"},
        {"1?", "a", " p=a q="},
        {"1*", "a -o b c", " p=a q=b,c"},
        {"++1", "a b -- c d", " p=a,b q=c r=d"},
        {"??", "a b c", "unrecognized arguments: c"},
        {"1", "a -- b", "unrecognized arguments: b"},
        {"?", "--", " p="},
    };
    static const char letters[] = {'?', '*', '+', 'R'};
    static const enum option_arity arities[] = {
        OPTION_ARITY_OPTIONAL, OPTION_ARITY_ANY, OPTION_ARITY_SOME, OPTION_ARITY_REMAINDER};
    static const char *const names[] = {"p", "q", "r"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct option_definition definitions[4] = {
            {.destination = "o", .names = {"-o"}, .kind = OPTION_FLAG}};
        struct option_table table = {.definitions = definitions, .definition_count = 1};
        for (const char *letter = cases[i].arities; *letter != '\0'; letter++) {
            const char *found = memchr(letters, *letter, sizeof letters);
            definitions[table.definition_count] =
                (struct option_definition){.destination = names[table.definition_count - 1],
                    .arity = found == NULL ? OPTION_ARITY_ONE : arities[found - letters]};
            table.definition_count++;
        }
        parse_with(&table, cases[i].line);
        CLEARED_BY(text_clear) struct text taken = {0};
        if (result.outcome == OPTION_OUTCOME_VALUES) {
            append_taken(&table, &taken);
        } else {
            const char *mistake = result.text + strlen("sample: error: ");
            text_append_bytes(&taken, mistake, strcspn(mistake, "\n"));
        }
        assert_string_equal(text_string(&taken), cases[i].expected);
        option_result_clear(&result); /* the table goes */
    }
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
    expect_mistake("--nope=1 k", "unrecognized arguments: --nope=1");
    expect_mistake("-vxq k", "unrecognized arguments: -xq");
    expect_mistake("-vs -- k", "argument -s/--size: expected one argument");
    expect_mistake("--size --rate k", "argument -s/--size: expected one argument");
    expect_mistake("--verbose=1 k", "argument -v/--verbose: ignored explicit argument '1'");
    expect_mistake("-v=1 k", "argument -v/--verbose: ignored explicit argument '1'");
    expect_mistake("-v= k", "argument -v/--verbose: ignored explicit argument ''");
    expect_mistake("-q- k", "argument -q: ignored explicit argument '-'");
    expect_mistake("--colour blue k",
        "argument --colour: invalid choice: 'blue' (choose from 'red', 'green')");
}

TEST_WITH(slips_are_understood, NULL, clear) {
    static const char *const slips[][2] = {{"--max-restart-s", "--max-restarts"},
        {"--max-retarts=3", "--max-restarts"}, {"--maxrestarts", "--max-restarts"},
        {"--max-retries", "--max-restarts"}, {"--nproc-pernode", "--nproc-per-node"},
        {"--nprocs-per-node=8", "--nproc-per-node"}, {"--NNODES", "--nnodes"},
        {"--master-adr", "--master-addr"}, {"--rdvz-id", "--rdzv-id"}};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        CLEARED_BY(text_clear) struct text expected = {0};
        text_append_format(&expected, "%s (did you mean %s?)", slips[i][0], slips[i][1]);
        CLEARED_BY(text_clear) struct text line = {0};
        text_append_format(&line, "%s t.py", slips[i][0]);
        parse_with(&launch_table, text_string(&line));
        assert_non_null(strstr(result.text, text_string(&expected)));
    }
}

TEST_WITH(what_is_like_nothing_has_no_suggestion, NULL, clear) {
    char longest[300] = "--";
    memset(longest + 2, 'n', sizeof longest - 3);
    longest[sizeof longest - 1] = '\0';
    const char *const words[] = {"--learning-rate", "--xyz", "-z", "--=3", longest};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        parse_with(&launch_table, words[i]);
        assert_int_equal(result.outcome, OPTION_OUTCOME_MISTAKE);
        assert_null(strstr(result.text, "did you mean"));
    }
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
