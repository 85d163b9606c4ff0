/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/command_family.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "main/exit_status.h"

/* The mistake has been said. */
static int end_with_usage(const struct command_family *family) {
    fprintf(stderr, "usage: muster %s COMMAND [OPTION]…; muster %s --help shows every command\n",
        family->name, family->name);
    return EXIT_STATUS_USAGE;
}

int command_family_run(const struct command_family *family, const struct text_list *arguments,
    const struct text_list *environment) {
    if (arguments->count == 0) {
        fprintf(stderr, "muster %s: error: a command is missing\n", family->name);
        return end_with_usage(family);
    }
    const char *name = arguments->items[0];
    if (text_equals(name, "--help") || text_equals(name, "-h") || text_equals(name, "help")) {
        family->print_usage(stdout);
        return EXIT_SUCCESS;
    }
    struct text_list rest = {0};
    for (size_t i = 1; i < arguments->count; i++) {
        text_list_add(&rest, arguments->items[i]);
    }
    int status;
    if (!family->run(name, &rest, environment, &status)) {
        fprintf(stderr, "muster %s: error: unknown command '%s'\n", family->name, name);
        status = end_with_usage(family);
    }
    text_list_clear(&rest);
    return status;
}

int command_print(const struct option_result *result) {
    bool is_mistake = result->outcome == OPTION_OUTCOME_MISTAKE;
    if (is_mistake) {
        utf8_make_string_printable(result->text);
    }
    fputs(result->text, is_mistake ? stderr : stdout);
    return is_mistake ? EXIT_STATUS_USAGE : EXIT_SUCCESS;
}
