/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a test in another language ask the option parser: one JSON request per line of stdin, one
 * JSON answer per line of stdout.
 *
 *   {"ask": "parse", "arguments": [...], "environment": {...}}    what `torchrun ARGUMENTS` means
 *   … with "arities": ["one", "any", …]                           the same for a small table with
 * -v,
 *                                                                 --size and these positionals
 *   {"ask": "describe"}                                           the table of torchrun
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "options/argparse/option_parser.h"
#include "options/launch/launch_options.h"

#define FIXED_DEFINITIONS 2
#define MAXIMUM_POSITIONALS 6

static const char *const arity_names[] = {
    [OPTION_ARITY_ONE] = "one",
    [OPTION_ARITY_OPTIONAL] = "optional",
    [OPTION_ARITY_ANY] = "any",
    [OPTION_ARITY_SOME] = "some",
    [OPTION_ARITY_REMAINDER] = "remainder",
};

static enum option_arity arity_named(const char *name) {
    for (size_t i = 0; i < sizeof arity_names / sizeof *arity_names; i++) {
        if (strcmp(name, arity_names[i]) == 0) {
            return (enum option_arity)i;
        }
    }
    fprintf(stderr, "option_probe: no arity %s\n", name);
    exit(1);
}

static struct text_list read_arguments(const json_t *request) {
    struct text_list arguments = {0};
    size_t i;
    const json_t *argument;
    json_array_foreach(json_object_get(request, "arguments"), i, argument) {
        text_list_add(&arguments, json_string_value(argument));
    }
    return arguments;
}

static struct text_list read_environment(const json_t *request) {
    struct text_list environment = {0};
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(request, "environment"), name, value) {
        text_list_set_variable(&environment, name, json_string_value(value));
    }
    return environment;
}

static json_t *list_to_json(const struct text_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(array, json_string(list->items[i]));
    }
    return array;
}

static json_t *value_to_json(
    const struct option_definition *definition, const struct option_value *value) {
    bool is_list = definition->kind == OPTION_COMMA_LIST || definition->arity == OPTION_ARITY_ANY ||
                   definition->arity == OPTION_ARITY_SOME ||
                   definition->arity == OPTION_ARITY_REMAINDER;
    if (definition->kind == OPTION_FLAG) {
        return json_boolean(value->flag);
    }
    if (is_list) {
        return list_to_json(&value->list);
    }
    if (!value->is_set) {
        return json_null();
    }
    if (definition->kind == OPTION_INTEGER) {
        return json_integer(value->integer);
    }
    return definition->kind == OPTION_FLOAT ? json_real(value->number) : json_string(value->text);
}

static json_t *answer_parse(const struct option_table *table, const json_t *request) {
    struct text_list arguments = read_arguments(request);
    struct text_list environment = read_environment(request);
    struct option_result result;
    option_parse(table, "torchrun", &arguments, &environment, &result);
    json_t *answer;
    if (result.outcome == OPTION_OUTCOME_VALUES) {
        json_t *values = json_object();
        for (size_t i = 0; i < table->definition_count; i++) {
            const struct option_definition *definition = &table->definitions[i];
            json_object_set_new(
                values, definition->destination, value_to_json(definition, &result.values[i]));
        }
        answer = json_pack("{s:s, s:o}", "outcome", "values", "values", values);
    } else {
        answer = json_pack("{s:s, s:s}", "outcome",
            result.outcome == OPTION_OUTCOME_PRINT ? "print" : "mistake", "text", result.text);
    }
    option_result_clear(&result);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return answer;
}

static json_t *answer_positionals(const json_t *request) {
    static const char *const destinations[MAXIMUM_POSITIONALS] = {
        "p0", "p1", "p2", "p3", "p4", "p5"};
    struct option_definition definitions[FIXED_DEFINITIONS + MAXIMUM_POSITIONALS] = {
        {.destination = "v", .names = {"-v"}, .kind = OPTION_FLAG},
        {.destination = "size", .names = {"-s", "--size"}},
    };
    size_t count = json_array_size(json_object_get(request, "arities"));
    if (count > MAXIMUM_POSITIONALS) {
        fprintf(stderr, "option_probe: too many positionals\n");
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *arity = json_array_get(json_object_get(request, "arities"), i);
        definitions[FIXED_DEFINITIONS + i] = (struct option_definition){
            .destination = destinations[i], .arity = arity_named(json_string_value(arity))};
    }
    const struct option_table table = {.description = "A probe.",
        .definitions = definitions,
        .definition_count = FIXED_DEFINITIONS + count};
    return answer_parse(&table, request);
}

static json_t *definition_to_json(const struct option_definition *definition) {
    json_t *names = json_array();
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        json_array_append_new(names, json_string(definition->names[i]));
    }
    json_t *choices = json_null();
    if (definition->choices != NULL) {
        choices = json_array();
        for (size_t i = 0; definition->choices[i] != NULL; i++) {
            json_array_append_new(choices, json_string(definition->choices[i]));
        }
    }
    return json_pack("{s:s, s:o, s:o, s:b, s:s, s:s}", "destination", definition->destination,
        "names", names, "choices", choices, "takes_value", option_takes_value(definition), "arity",
        arity_names[definition->arity], "help", definition->help);
}

static json_t *answer_describe(void) {
    json_t *definitions = json_array();
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        json_array_append_new(definitions, definition_to_json(&launch_table.definitions[i]));
    }
    return json_pack(
        "{s:s, s:o}", "description", launch_table.description, "definitions", definitions);
}

static json_t *answer_to(const json_t *request) {
    const char *ask = json_string_value(json_object_get(request, "ask"));
    if (ask != NULL && strcmp(ask, "describe") == 0) {
        return answer_describe();
    }
    return json_object_get(request, "arities") != NULL ? answer_positionals(request)
                                                       : answer_parse(&launch_table, request);
}

int main(void) {
    json_t *request;
    while ((request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        json_t *answer = answer_to(request);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(request);
    }
    return 0;
}
