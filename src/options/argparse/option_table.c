/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_table.h"

#include <stdlib.h>
#include <string.h>

bool option_is_positional(const struct option_definition *definition) {
    return definition->names[0] == NULL;
}

bool option_takes_value(const struct option_definition *definition) {
    switch (definition->kind) {
    case OPTION_TEXT:
    case OPTION_INTEGER:
    case OPTION_FLOAT:
    case OPTION_COMMA_LIST:
    case OPTION_COMPLETION:
        return !option_is_positional(definition);
    case OPTION_FLAG:
    case OPTION_HELP:
    case OPTION_VERSION:
        break;
    }
    return false;
}

size_t option_table_find(const struct option_table *table, const char *destination) {
    size_t index = 0;
    while (index < table->definition_count &&
           !text_equals(table->definitions[index].destination, destination)) {
        index++;
    }
    return index;
}

char *option_display_name(const struct option_definition *definition) {
    if (option_is_positional(definition)) {
        return text_format("%s", definition->destination);
    }
    struct text name = {0};
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        text_append_format(&name, "%s%s", i == 0 ? "" : "/", definition->names[i]);
    }
    return text_take(&name);
}

static void append_capitals(struct text *out, const char *string) {
    for (; *string != '\0'; string++) {
        char capital = *string >= 'a' && *string <= 'z' ? (char)(*string - 'a' + 'A') : *string;
        text_append_bytes(out, &capital, 1);
    }
}

char *option_variable_name(
    const struct option_table *table, const struct option_definition *definition) {
    if (!definition->reads_environment || table->environment_prefix == NULL) {
        return NULL;
    }
    struct text name = {0};
    text_append(&name, table->environment_prefix);
    append_capitals(&name, definition->destination);
    return text_take(&name);
}

/* The placeholder for the value in usage and help: "{a,b}" with choices, "RDZV_ID" for an option,
 * "key" for a positional. The caller frees it. */
static char *option_placeholder(const struct option_definition *definition) {
    struct text placeholder = {0};
    if (definition->choices != NULL) {
        for (size_t i = 0; definition->choices[i] != NULL; i++) {
            text_append_format(&placeholder, "%s%s", i == 0 ? "{" : ",", definition->choices[i]);
        }
        text_append(&placeholder, "}");
    } else if (option_is_positional(definition)) {
        text_append(&placeholder, definition->destination);
    } else {
        append_capitals(&placeholder, definition->destination);
    }
    return text_take(&placeholder);
}

/* Option help. */

#define INDENT 2
#define HELP_COLUMN 24
#define NARROWEST_TEXT 11

static const char usage_prefix[] = "usage: ";

/* Widths are signed, because a terminal may be narrower than the margins. */
static long text_width(size_t columns) {
    return (long)columns - 2;
}

static long at_least(long value, long minimum) {
    return value < minimum ? minimum : value;
}

static void append_spaces(struct text *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        text_append(out, " ");
    }
}

/* Returns "[--nnodes NNODES]", "key", "[key ...]" or "...". */
static char *usage_part(const struct option_definition *definition) {
    char *placeholder = option_placeholder(definition);
    struct text part = {0};
    if (!option_is_positional(definition)) {
        bool takes_value = option_takes_value(definition);
        text_append_format(&part, "[%s%s%s]", definition->names[0], takes_value ? " " : "",
            takes_value ? placeholder : "");
    } else {
        switch (definition->arity) {
        case OPTION_ARITY_ONE:
            text_append(&part, placeholder);
            break;
        case OPTION_ARITY_OPTIONAL:
            text_append_format(&part, "[%s]", placeholder);
            break;
        case OPTION_ARITY_ANY:
            text_append_format(&part, "[%s ...]", placeholder);
            break;
        case OPTION_ARITY_SOME:
            text_append_format(&part, "%s [%s ...]", placeholder, placeholder);
            break;
        case OPTION_ARITY_REMAINDER:
            text_append(&part, "...");
            break;
        }
    }
    free(placeholder);
    return text_take(&part);
}

/* In a usage line the options come first, then the positionals. */
static void gather_parts(const struct option_table *table, bool positional, struct text_list *out) {
    for (size_t i = 0; i < table->definition_count; i++) {
        if (option_is_positional(&table->definitions[i]) == positional) {
            text_list_add_taken(out, usage_part(&table->definitions[i]));
        }
    }
}

/* Appends parts in lines; each line begins with `indent` spaces. The first line already has `used`
 * characters, and gets no indent unless `used` is 0. Every line ends with a newline. */
static void append_lines(
    struct text *out, const struct text_list *parts, size_t indent, size_t used, long width) {
    size_t length = used;
    for (size_t i = 0; i < parts->count; i++) {
        size_t needed = strlen(parts->items[i]);
        if (length > 0 && (long)(length + 1 + needed) > width) {
            text_append(out, "\n");
            length = 0;
        }
        if (length == 0) {
            append_spaces(out, indent);
            length = indent;
        } else {
            text_append(out, " ");
            length++;
        }
        text_append(out, parts->items[i]);
        length += needed;
    }
    text_append(out, "\n");
}

/* Appends the parts below a program name that is too long to be followed by them. Options and
 * positionals begin separate lines, unless one line has room for all. */
static void append_lines_below(struct text *out, const struct text_list *options,
    const struct text_list *positionals, long width) {
    size_t indent = sizeof usage_prefix - 1;
    long total = (long)indent - 1;
    struct text_list all = {0};
    text_list_add_all(&all, options);
    text_list_add_all(&all, positionals);
    for (size_t i = 0; i < all.count; i++) {
        total += (long)strlen(all.items[i]) + 1;
    }
    text_append(out, "\n");
    if (total <= width || options->count == 0 || positionals->count == 0) {
        append_lines(out, &all, indent, 0, width);
    } else {
        append_lines(out, options, indent, 0, width);
        append_lines(out, positionals, indent, 0, width);
    }
    text_list_clear(&all);
}

static void append_wrapped_usage(struct text *out, const char *program,
    const struct text_list *options, const struct text_list *positionals, long width) {
    size_t head = sizeof usage_prefix - 1 + strlen(program);
    text_append_format(out, "%s%s", usage_prefix, program);
    if ((double)head > 0.75 * (double)width) { /* a long name gets a line of its own */
        append_lines_below(out, options, positionals, width);
    } else if (options->count > 0) {
        append_lines(out, options, head + 1, head, width);
        if (positionals->count > 0) {
            append_lines(out, positionals, head + 1, 0, width);
        }
    } else {
        append_lines(out, positionals, head + 1, head, width);
    }
}

void option_help_usage(
    const struct option_table *table, const char *program, size_t columns, struct text *out) {
    struct text_list options = {0};
    struct text_list positionals = {0};
    gather_parts(table, false, &options);
    gather_parts(table, true, &positionals);
    struct text line = {0};
    text_append_format(&line, "%s%s", usage_prefix, program);
    for (size_t i = 0; i < options.count; i++) {
        text_append_format(&line, " %s", options.items[i]);
    }
    for (size_t i = 0; i < positionals.count; i++) {
        text_append_format(&line, " %s", positionals.items[i]);
    }
    if ((long)line.length > text_width(columns)) {
        append_wrapped_usage(out, program, &options, &positionals, text_width(columns));
    } else {
        text_append_format(out, "%s\n", text_string(&line));
    }
    text_clear(&line);
    text_list_clear(&options);
    text_list_clear(&positionals);
}

/* Appends the words of `string` in lines of at most `width`. Every line but the first is indented.
 * Ends with a newline. */
static void append_paragraph(struct text *out, const char *string, long width, size_t indent) {
    long length = 0;
    while (*string != '\0') {
        size_t word = strcspn(string, " ");
        if (length > 0 && length + 1 + (long)word > width) {
            text_append(out, "\n");
            append_spaces(out, indent);
            length = 0;
        }
        if (length > 0) {
            text_append(out, " ");
            length++;
        }
        text_append_bytes(out, string, word);
        length += (long)word;
        string += word;
        string += strspn(string, " ");
    }
    text_append(out, "\n");
}

/* Returns "-r, --redirects REDIRECTS". */
static char *invocation(const struct option_definition *definition) {
    char *placeholder = option_placeholder(definition);
    if (option_is_positional(definition)) {
        return placeholder;
    }
    struct text names = {0};
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        text_append_format(&names, "%s%s", i == 0 ? "" : ", ", definition->names[i]);
    }
    if (option_takes_value(definition)) {
        text_append_format(&names, " %s", placeholder);
    }
    free(placeholder);
    return text_take(&names);
}

static long help_position(const struct option_table *table, size_t columns) {
    long longest = 0;
    for (size_t i = 0; i < table->definition_count; i++) {
        char *head = invocation(&table->definitions[i]);
        longest = at_least(longest, (long)strlen(head) + INDENT);
        free(head);
    }
    long highest = at_least(text_width(columns) - 20, 2 * INDENT);
    highest = highest < HELP_COLUMN ? highest : HELP_COLUMN;
    return longest + 2 < highest ? longest + 2 : highest;
}

static void append_entry(
    struct text *out, const struct option_definition *definition, long position, size_t columns) {
    char *head = invocation(definition);
    append_spaces(out, INDENT);
    text_append(out, head);
    long head_width = (long)strlen(head);
    free(head);
    if (definition->help == NULL) {
        text_append(out, "\n");
        return;
    }
    if (head_width <= position - INDENT - 2) {
        append_spaces(out, (size_t)(position - INDENT - head_width));
    } else {
        text_append(out, "\n");
        append_spaces(out, (size_t)position);
    }
    long width = at_least(text_width(columns) - position, NARROWEST_TEXT);
    append_paragraph(out, definition->help, width, (size_t)position);
}

static void append_section(struct text *out, const struct option_table *table, bool positional,
    const char *heading, size_t columns) {
    bool is_empty = true;
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        if (option_is_positional(definition) != positional) {
            continue;
        }
        if (is_empty) {
            text_append_format(out, "\n%s:\n", heading);
            is_empty = false;
        }
        append_entry(out, definition, help_position(table, columns), columns);
    }
}

static bool is_in_group(
    const struct option_group *group, const struct option_definition *definition) {
    for (const char *const *name = group->destinations; *name != NULL; name++) {
        if (text_equals(*name, definition->destination)) {
            return true;
        }
    }
    return false;
}

static bool is_in_any_group(
    const struct option_table *table, const struct option_definition *definition) {
    for (const struct option_group *group = table->groups; group->heading != NULL; group++) {
        if (is_in_group(group, definition)) {
            return true;
        }
    }
    return false;
}

/* The options of one group, or, without one, those of none. */
static void append_group(struct text *out, const struct option_table *table,
    const struct option_group *group, size_t columns) {
    bool is_empty = true;
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        bool is_here =
            group != NULL ? is_in_group(group, definition) : !is_in_any_group(table, definition);
        if (!is_here || option_is_positional(definition)) {
            continue;
        }
        if (is_empty) {
            text_append_format(out, "\n%s:\n", group != NULL ? group->heading : "further options");
            is_empty = false;
        }
        append_entry(out, definition, help_position(table, columns), columns);
    }
}

static void append_short_usage(
    const struct option_table *table, const char *program, struct text *out) {
    struct text_list positionals = {0};
    gather_parts(table, true, &positionals);
    text_append_format(out, "%s%s [OPTION]…", usage_prefix, program);
    for (size_t i = 0; i < positionals.count; i++) {
        text_append_format(out, " %s", positionals.items[i]);
    }
    text_list_clear(&positionals);
}

static void format_in_groups(
    const struct option_table *table, const char *program, size_t columns, struct text *out) {
    append_short_usage(table, program, out);
    text_append_format(out, "\n\n%s\n", table->examples);
    append_paragraph(out, table->description, at_least(text_width(columns), NARROWEST_TEXT), 0);
    append_section(out, table, true, "positional arguments", columns);
    for (const struct option_group *group = table->groups; group->heading != NULL; group++) {
        append_group(out, table, group, columns);
    }
    append_group(out, table, NULL, columns);
}

void option_help_hint(const struct option_table *table, const char *program, struct text *out) {
    append_short_usage(table, program, out);
    text_append_format(out, "; %s --help shows every option\n", program);
}

void option_help_format(
    const struct option_table *table, const char *program, size_t columns, struct text *out) {
    if (table->groups != NULL && !text_equals(program, "torchrun")) {
        format_in_groups(table, program, columns, out);
        return;
    }
    option_help_usage(table, program, columns, out);
    text_append(out, "\n");
    append_paragraph(out, table->description, at_least(text_width(columns), NARROWEST_TEXT), 0);
    append_section(out, table, true, "positional arguments", columns);
    append_section(out, table, false, "options", columns);
}

/* Option completion. */

const char *const option_completion_shells[] = {"bash", "zsh", "tcsh", NULL};

/* The command and its sub-command; "" when there is none. */
struct command {
    char *name;
    const char *sub_command; /* points into the program's text */
};

static struct command command_of(const char *program) {
    struct command command = {0};
    struct text name = {0};
    size_t length = strcspn(program, " ");
    text_append_bytes(&name, program, length);
    command.name = text_take(&name);
    command.sub_command = program + length + strspn(program + length, " ");
    return command;
}

/* Appends every name of the options for which `wanted` is true, separated by `separator`. */
static void append_names(struct text *out, const struct option_table *table, const char *separator,
    bool (*wanted)(const struct option_definition *definition)) {
    bool is_first = true;
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        for (size_t j = 0; j < OPTION_MAXIMUM_NAMES && definition->names[j] != NULL; j++) {
            if (wanted(definition)) {
                text_append_format(out, "%s%s", is_first ? "" : separator, definition->names[j]);
                is_first = false;
            }
        }
    }
}

static bool is_any(const struct option_definition *definition) {
    (void)definition;
    return true;
}

static void append_choices(struct text *out, const struct option_definition *definition) {
    for (size_t i = 0; definition->choices[i] != NULL; i++) {
        text_append_format(out, "%s%s", i == 0 ? "" : " ", definition->choices[i]);
    }
}

static void append_joined_names(
    struct text *out, const struct option_definition *definition, const char *separator) {
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        text_append_format(out, "%s%s", i == 0 ? "" : separator, definition->names[i]);
    }
}

/* Appends the words that may follow an option with choices. */
static void append_bash_choices(struct text *out, const struct option_table *table) {
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        if (definition->choices != NULL && !option_is_positional(definition)) {
            text_append(out, "        ");
            append_joined_names(out, definition, "|");
            text_append(out, ")\n            COMPREPLY=($(compgen -W \"");
            append_choices(out, definition);
            text_append(out, "\" -- \"$current\"))\n            return\n            ;;\n");
        }
    }
}

static void append_bash(
    struct text *out, const struct option_table *table, const struct command *command) {
    bool has_sub_command = *command->sub_command != '\0';
    text_append_format(
        out, "# bash completion for %s\n_%s_completion() {\n", command->name, command->name);
    text_append(out, "    local current=\"${COMP_WORDS[COMP_CWORD]}\" index\n"
                     "    local previous=\"${COMP_WORDS[COMP_CWORD - 1]}\"\n"
                     "    COMPREPLY=()\n"
                     "    if [[ $current == \"=\" ]]; then\n"
                     "        current=\"\"\n"
                     "    elif [[ $previous == \"=\" ]]; then\n"
                     "        previous=\"${COMP_WORDS[COMP_CWORD - 2]}\"\n"
                     "    fi\n");
    if (has_sub_command) {
        text_append_format(out,
            "    if ((COMP_CWORD == 1)); then\n"
            "        COMPREPLY=($(compgen -W \"%s\" -- \"$current\"))\n"
            "        return\n"
            "    fi\n"
            "    [[ ${COMP_WORDS[1]} == \"%s\" ]] || return\n",
            command->sub_command, command->sub_command);
    }
    text_append_format(
        out, "    for ((index = %d; index < COMP_CWORD; index++)); do\n", has_sub_command ? 2 : 1);
    text_append(out, "        case \"${COMP_WORDS[index]}\" in\n            ");
    append_names(out, table, "|", option_takes_value);
    text_append(out,
        ")\n"
        "                [[ ${COMP_WORDS[index + 1]} == \"=\" ]] && index=$((index + 1))\n"
        "                index=$((index + 1))\n"
        "                ;;\n"
        "            -*) ;;\n"
        "            *) return ;;\n"
        "        esac\n"
        "    done\n"
        "    case \"$previous\" in\n");
    append_bash_choices(out, table);
    text_append(out, "        ");
    append_names(out, table, "|", option_takes_value);
    text_append(out, ") return ;;\n"
                     "    esac\n"
                     "    if [[ $current == -* ]]; then\n"
                     "        COMPREPLY=($(compgen -W \"");
    append_names(out, table, " ", is_any);
    text_append_format(out,
        "\" -- \"$current\"))\n    fi\n}\n"
        "complete -o default -F _%s_completion %s\n",
        command->name, command->name);
}

/* Appends help text for a zsh specification: brackets and quotes are escaped, and only the first
 * sentence is used. */
static void append_zsh_help(struct text *out, const char *help) {
    for (; *help != '\0' && !(help[0] == '.' && help[1] == ' '); help++) {
        if (*help == '\'') {
            text_append(out, "'\\''");
        } else {
            text_append_format(out, "%s%c", strchr("[]\\", *help) != NULL ? "\\" : "", *help);
        }
    }
}

static void append_zsh_option(struct text *out, const struct option_definition *definition) {
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        const char *name = definition->names[i];
        text_append_format(out, "        '%s", name);
        if (option_takes_value(definition)) {
            text_append(out, name[1] == '-' ? "=" : "+");
        }
        text_append(out, "[");
        append_zsh_help(out, definition->help);
        text_append(out, "]");
        if (option_takes_value(definition)) {
            text_append_format(out, ":%s:", definition->destination);
            if (definition->choices != NULL) {
                text_append(out, "(");
                append_choices(out, definition);
                text_append(out, ")");
            } else {
                text_append(out, "_files");
            }
        }
        text_append(out, "' \\\n");
    }
}

static void append_zsh(
    struct text *out, const struct option_table *table, const struct command *command) {
    text_append_format(out, "#compdef %s\n_%s_options() {\n    _arguments -s -S \\\n",
        command->name, command->name);
    for (size_t i = 0; i < table->definition_count; i++) {
        if (!option_is_positional(&table->definitions[i])) {
            append_zsh_option(out, &table->definitions[i]);
        }
    }
    text_append(out, "        '*::argument:_files'\n}\n");
    text_append_format(out, "_%s() {\n", command->name);
    if (*command->sub_command != '\0') {
        text_append_format(out,
            "    if ((CURRENT == 2)); then\n"
            "        compadd %s\n"
            "        return\n"
            "    fi\n"
            "    [[ $words[2] == %s ]] || return\n"
            "    shift words\n"
            "    ((CURRENT--))\n",
            command->sub_command, command->sub_command);
    }
    text_append_format(out,
        "    _%s_options\n}\n"
        "if [[ $funcstack[1] == _%s ]]; then\n"
        "    _%s \"$@\"\n"
        "else\n"
        "    compdef _%s %s\n"
        "fi\n",
        command->name, command->name, command->name, command->name, command->name);
}

static void append_tcsh(
    struct text *out, const struct option_table *table, const struct command *command) {
    text_append_format(out, "complete %s \\\n", command->name);
    if (*command->sub_command != '\0') {
        text_append_format(out, "    'p/1/(%s)/' \\\n", command->sub_command);
    }
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        if (definition->choices == NULL || option_is_positional(definition)) {
            continue;
        }
        for (size_t j = 0; j < OPTION_MAXIMUM_NAMES && definition->names[j] != NULL; j++) {
            text_append_format(out, "    'n/%s/(", definition->names[j]);
            append_choices(out, definition);
            text_append(out, ")/' \\\n");
        }
    }
    text_append(out, "    'c/--/(");
    bool is_first = true;
    for (size_t i = 0; i < table->definition_count; i++) {
        const struct option_definition *definition = &table->definitions[i];
        for (size_t j = 0; j < OPTION_MAXIMUM_NAMES && definition->names[j] != NULL; j++) {
            if (text_starts_with(definition->names[j], "--")) {
                text_append_format(out, "%s%s", is_first ? "" : " ", definition->names[j] + 2);
                is_first = false;
            }
        }
    }
    text_append(out, ")/' \\\n    'n/*/f/'\n");
}

void option_completion_format(
    const struct option_table *table, const char *program, const char *shell, struct text *out) {
    struct command command = command_of(program);
    if (text_equals(shell, "bash")) {
        append_bash(out, table, &command);
    } else if (text_equals(shell, "zsh")) {
        append_zsh(out, table, &command);
    } else {
        append_tcsh(out, table, &command);
    }
    free(command.name);
}
