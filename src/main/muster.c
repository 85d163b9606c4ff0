/* SPDX-License-Identifier: BSD-3-Clause */
/* The `muster` command: finds the sub-command and hands over. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "main/store_command.h"

int main(int argument_count, char **argument_values) {
    struct text_list arguments = {0};
    struct text_list environment = {0};
    for (char **variable = environ; *variable != NULL; variable++) {
        text_list_add(&environment, *variable);
    }
    for (int i = 2; i < argument_count; i++) {
        text_list_add(&arguments, argument_values[i]);
    }
    int status = 2;
    if (argument_count > 1 && text_equals(argument_values[1], "store")) {
        status = store_command(&arguments, &environment);
    } else if (argument_count > 1 && text_equals(argument_values[1], "--version")) {
        puts("muster " MUSTER_VERSION);
        status = EXIT_SUCCESS;
    } else {
        fputs("muster: error: not built yet\n", stderr);
    }
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return status;
}
