/* SPDX-License-Identifier: BSD-3-Clause */
/* The structure of an option table: one entry per option or positional argument. The parser, the
 * usage line, the help and the shell completion all use the same entry. A command has one constant
 * table; that of `muster run` is options/launch/launch_options. Nothing here parses. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_TABLE_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* The type of an argument's value. The last four kinds say what the option does when it occurs. */
enum option_kind {
    OPTION_TEXT,
    OPTION_INTEGER,    /* Python's int() */
    OPTION_FLOAT,      /* Python's float(), finite */
    OPTION_COMMA_LIST, /* items between commas; ",," is a comma inside an item */
    OPTION_FLAG,       /* takes no value; from the environment: an integer, true unless 0 */
    OPTION_HELP,       /* prints the help */
    OPTION_VERSION,    /* prints the version */
    OPTION_COMPLETION, /* prints a completion script for the shell it names */
};

/* The number of arguments a positional takes. Options ignore it. */
enum option_arity {
    OPTION_ARITY_ONE,
    OPTION_ARITY_OPTIONAL,  /* none or one */
    OPTION_ARITY_ANY,       /* none or more */
    OPTION_ARITY_SOME,      /* one or more */
    OPTION_ARITY_REMAINDER, /* all remaining arguments, options included */
};

#define OPTION_MAXIMUM_NAMES 3

struct option_definition {
    /* "nproc_per_node": the name under which the value is found. In capitals it is the placeholder
     * in the help and, after the table's prefix, the environment variable. A positional is shown by
     * its destination unchanged. */
    const char *destination;
    /* "-r", "--rdzv-id", "--rdzv_id": NULL-padded; all NULL for a positional. */
    const char *names[OPTION_MAXIMUM_NAMES];
    enum option_kind kind;
    enum option_arity arity;
    bool reads_environment;
    /* The program that this command stands in for does not have this option. An abbreviation that
     * means one of its options is not made ambiguous by this one. */
    bool is_addition;
    bool is_repeatable;         /* a list: each occurrence adds to it; it has no default */
    const char *default_text;   /* converted like a given value; NULL: no default */
    const char *const *choices; /* NULL-terminated; NULL: any value */
    const char *help;
};

/* The entry that every command has. */
#define OPTION_DEFINITION_HELP                                                                     \
    {                                                                                              \
        .destination = "help", .names = {"-h", "--help"}, .kind = OPTION_HELP,                     \
        .help = "Show this page and exit.",                                                        \
    }

/* What other launchers call an option of this command. */
struct option_stranger {
    const char *word; /* "-np" */
    const char *name; /* "--nproc-per-node" */
};

/* Options that the help shows below one heading. */
struct option_group {
    const char *heading;
    const char *const *destinations; /* NULL-terminated */
};

struct option_table {
    const char *description;        /* first paragraph of the help */
    const char *environment_prefix; /* "PET_"; NULL when no entry has an environment variable */
    const struct option_definition *definitions;
    size_t definition_count;
    const struct option_stranger *strangers; /* ends with a NULL word; NULL: none */
    /* How the help is arranged, but under the name of torchrun, where it is as argparse's. NULL:
     * all options are below one heading. */
    const struct option_group *groups; /* ends with a NULL heading */
    const char *examples;              /* lines at the top of the help; NULL: none */
};

bool option_is_positional(const struct option_definition *definition);

/* Whether the option is followed by a value (a positional is not an option: false). */
bool option_takes_value(const struct option_definition *definition);

/* The index of the entry with this destination; definition_count when there is none. */
size_t option_table_find(const struct option_table *table, const char *destination);

/* The name in messages: "--rdzv-id/--rdzv_id", or a positional's destination, as argparse's
 * _get_action_name. The caller frees it. */
char *option_display_name(const struct option_definition *definition);

/* "PET_RDZV_ID", or NULL when the entry has no environment variable. The caller frees it. */
char *option_variable_name(
    const struct option_table *table, const struct option_definition *definition);

/* The usage lines and the help page of a table, in the layout of argparse, so that programs that
 * read torchrun's help can read ours. Lines break between words only. Matches Lib/argparse.py
 * HelpFormatter (Python 3.14), without colours. */

/* Appends "usage: PROGRAM [-h] …" and a newline, wrapped to `columns`. */
void option_help_usage(
    const struct option_table *table, const char *program, size_t columns, struct text *out);

/* Appends "usage: PROGRAM [OPTION]… script ...; PROGRAM --help shows every option" and a newline.
 */
void option_help_hint(const struct option_table *table, const char *program, struct text *out);

/* Appends usage, description, positional arguments and options. */
void option_help_format(
    const struct option_table *table, const char *program, size_t columns, struct text *out);

/* Makes completion scripts from a table: option names, the words of a choice, and file names for
 * the script and its arguments. torchrun needs the Python package shtab for them; here they are
 * built in. */

/* The shells with a completion script: "bash", "zsh", "tcsh"; NULL-terminated, for `choices`. */
extern const char *const option_completion_shells[];

/* Appends the script for `shell`, one of the above. `program` is a command, or a command and its
 * sub-command ("muster run"); the script then completes only after both. */
void option_completion_format(
    const struct option_table *table, const char *program, const char *shell, struct text *out);

#endif
