/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_completion.h"

#include <stdlib.h>
#include <string.h>

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
