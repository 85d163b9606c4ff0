/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_table.h"
#include "sample_table.h"

static const struct option_definition definitions[] = {
    {.destination = "help",
        .names = {"-h", "--help"},
        .kind = OPTION_HELP,
        .help = "Show this page."},
    {.destination = "host", .names = {"--host"}, .help = "Where the store is."},
    {.destination = "a_long_name",
        .names = {"--a-long-name", "--a_long_name"},
        .help = "A name too long to stand in front of its own text, which is long too."},
    {.destination = "key", .help = "What to look for."},
    {.destination = "more", .arity = OPTION_ARITY_ANY},
};

static const struct option_table table = {
    .description = "Looks for a key.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof *definitions,
};

static void expect_usage(const char *program, size_t columns, const char *expected) {
    CLEARED_BY(text_clear) struct text usage = {0};
    option_help_usage(&table, program, columns, &usage);
    assert_string_equal(text_string(&usage), expected);
}

TEST(a_short_usage_stays_on_its_line) {
    expect_usage(
        "get", 100, "usage: get [-h] [--host HOST] [--a-long-name A_LONG_NAME] key [more ...]\n");
}

TEST(a_long_program_stands_alone) {
    expect_usage("a command of many words", 38,
        "usage: a command of many words\n"
        "       [-h] [--host HOST]\n"
        "       [--a-long-name A_LONG_NAME]\n"
        "       key [more ...]\n");
}

TEST(help_has_argparse_layout) {
    CLEARED_BY(text_clear) struct text help = {0};
    option_help_format(&table, "get", 72, &help);
    assert_string_equal(text_string(&help),
        "usage: get [-h] [--host HOST] [--a-long-name A_LONG_NAME]\n"
        "           key [more ...]\n"
        "\n"
        "Looks for a key.\n"
        "\n"
        "positional arguments:\n"
        "  key                   What to look for.\n"
        "  more\n"
        "\n"
        "options:\n"
        "  -h, --help            Show this page.\n"
        "  --host HOST           Where the store is.\n"
        "  --a-long-name, --a_long_name A_LONG_NAME\n"
        "                        A name too long to stand in front of its own\n"
        "                        text, which is long too.\n");
}

/* Completion. tests/command runs the scripts in a shell. */

static void expect_in_script(const char *program, const char *shell, const char *part) {
    CLEARED_BY(text_clear) struct text script = {0};
    option_completion_format(&sample_table, program, shell, &script);
    if (strstr(text_string(&script), part) == NULL) {
        print_message("not in the %s script: %s\n%s", shell, part, text_string(&script));
        fail();
    }
}

TEST(every_shell_learns_the_choices) {
    expect_in_script(
        "sample", "bash", "--colour)\n            COMPREPLY=($(compgen -W \"red green\"");
    expect_in_script("sample", "zsh", "'--colour=[Which colour.]:colour:(red green)'");
    expect_in_script("sample", "tcsh", "'n/--colour/(red green)/'");
}

TEST(every_shell_learns_the_names) {
    expect_in_script("sample", "bash", "-h --help -s --size --rate --colour --tag-list --tag_list");
    expect_in_script("sample", "zsh", "'-s+[How large.]:size:_files'");
    expect_in_script("sample", "tcsh", "(help size rate colour tag-list tag_list verbose");
}

TEST(a_sub_command_is_waited_for) {
    expect_in_script("muster run", "bash", "[[ ${COMP_WORDS[1]} == \"run\" ]] || return");
    expect_in_script("muster run", "bash", "complete -o default -F _muster_completion muster\n");
    expect_in_script("muster run", "zsh", "[[ $words[2] == run ]] || return");
    expect_in_script("muster run", "tcsh", "'p/1/(run)/'");
}
