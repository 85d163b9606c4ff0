/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "options/launch/launch_options.h"

static void expect(const char *argument, const char *name) {
    const char *found = option_suggest(&launch_table, argument);
    if (found == NULL || name == NULL) {
        assert_true(found == NULL && name == NULL);
        return;
    }
    assert_string_equal(found, name);
}

static void slips_are_understood(void **state) {
    (void)state;
    expect("--max-restart-s", "--max-restarts");
    expect("--max-retarts=3", "--max-restarts");
    expect("--maxrestarts", "--max-restarts");
    expect("--max-retries", "--max-restarts");
    expect("--nproc-pernode", "--nproc-per-node");
    expect("--nprocs-per-node=8", "--nproc-per-node");
    expect("--nnode", "--nnodes");
    expect("--master-adr", "--master-addr");
    expect("--rdvz-id", "--rdzv-id");
}

static void what_is_like_nothing_has_no_suggestion(void **state) {
    (void)state;
    expect("--learning-rate", NULL);
    expect("--x", NULL);
    expect("--", NULL);
    expect("-z", NULL);
    expect("", NULL);
    expect("--=3", NULL);
    expect("word", NULL);
}

static void very_long_words_are_not_looked_at(void **state) {
    (void)state;
    char word[300] = "--";
    memset(word + 2, 'n', sizeof word - 3);
    word[sizeof word - 1] = '\0';
    expect(word, NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slips_are_understood),
    cmocka_unit_test(what_is_like_nothing_has_no_suggestion),
    cmocka_unit_test(very_long_words_are_not_looked_at),
};

UNIT_TESTS(tests)
