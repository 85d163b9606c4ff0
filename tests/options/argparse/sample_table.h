/* SPDX-License-Identifier: BSD-3-Clause */
/* A small option table with one entry of every kind, for tests. */
#ifndef MUSTER_TESTS_OPTIONS_SAMPLE_TABLE_H
#define MUSTER_TESTS_OPTIONS_SAMPLE_TABLE_H

#include "options/argparse/option_table.h"

static const char *const sample_colours[] = {"red", "green", NULL};

static const struct option_definition sample_definitions[] = {
    {.destination = "help", .names = {"-h", "--help"}, .kind = OPTION_HELP, .help = "Help."},
    {.destination = "size",
        .names = {"-s", "--size"},
        .kind = OPTION_INTEGER,
        .reads_environment = true,
        .default_text = "1",
        .help = "How large."},
    {.destination = "rate", .names = {"--rate"}, .kind = OPTION_FLOAT, .help = "How fast."},
    {.destination = "colour",
        .names = {"--colour"},
        .reads_environment = true,
        .default_text = "red",
        .choices = sample_colours,
        .help = "Which colour."},
    {.destination = "tag_list",
        .names = {"--tag-list", "--tag_list"},
        .kind = OPTION_COMMA_LIST,
        .reads_environment = true,
        .help = "Which tags."},
    {.destination = "verbose",
        .names = {"-v", "--verbose"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "Say more."},
    {.destination = "quiet", .names = {"-q"}, .kind = OPTION_FLAG, .help = "Say less."},
    {.destination = "complete",
        .names = {"--complete"},
        .kind = OPTION_COMPLETION,
        .choices = option_completion_shells,
        .help = "Print a completion script."},
    {.destination = "version", .names = {"--version"}, .kind = OPTION_VERSION, .help = "Version."},
    {.destination = "key", .help = "What to look for."},
    {.destination = "rest", .arity = OPTION_ARITY_REMAINDER, .help = "The rest."},
};

static const struct option_table sample_table = {
    .description = "A sample.",
    .environment_prefix = "SAMPLE_",
    .definitions = sample_definitions,
    .definition_count = sizeof sample_definitions / sizeof *sample_definitions,
};

#endif
