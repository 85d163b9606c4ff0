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

TEST(slips_are_understood) {
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

TEST(what_is_like_nothing_has_no_suggestion) {
    expect("--learning-rate", NULL);
    expect("--x", NULL);
    expect("--", NULL);
    expect("-z", NULL);
    expect("", NULL);
    expect("--=3", NULL);
    expect("word", NULL);
}

TEST(very_long_words_are_not_looked_at) {
    char word[300] = "--";
    memset(word + 2, 'n', sizeof word - 3);
    word[sizeof word - 1] = '\0';
    expect(word, NULL);
}
