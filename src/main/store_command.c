/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "main/exit_status.h"
#include "main/store_inspect.h"
#include "main/store_serve.h"

static void print_usage(FILE *stream) {
    fputs("usage: muster store serve [OPTION]...                    serve a store, as PyTorch's "
          "TCPStore\n",
        stream);
    for (size_t i = 0; i < store_inspect_command_count; i++) {
        const struct store_inspect_command *command = &store_inspect_commands[i];
        fprintf(stream, "       muster store %-34s %s\n", command->synopsis, command->summary);
    }
    fputs("\n"
          "A store is found at --host and --port, or at MASTER_ADDR and MASTER_PORT, or in a\n"
          "FileStore's --file.\n"
          "`muster store COMMAND --help` tells more about each.\n",
        stream);
}

static const struct store_inspect_command *find(const char *name) {
    for (size_t i = 0; i < store_inspect_command_count; i++) {
        if (text_equals(store_inspect_commands[i].name, name)) {
            return &store_inspect_commands[i];
        }
    }
    return NULL;
}

static int dispatch(
    const char *name, const struct text_list *arguments, const struct text_list *environment) {
    if (text_equals(name, "serve")) {
        return store_serve(arguments, environment);
    }
    const struct store_inspect_command *command = find(name);
    if (command == NULL) {
        print_usage(stderr);
        fprintf(stderr, "muster store: error: unknown command '%s'\n", name);
        return EXIT_STATUS_USAGE;
    }
    return store_inspect(command, arguments, environment);
}

int store_command(const struct text_list *arguments, const struct text_list *environment) {
    if (arguments->count == 0) {
        print_usage(stderr);
        fputs("muster store: error: a command is missing\n", stderr);
        return EXIT_STATUS_USAGE;
    }
    const char *name = arguments->items[0];
    if (text_equals(name, "--help") || text_equals(name, "-h") || text_equals(name, "help")) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    struct text_list rest = {0};
    for (size_t i = 1; i < arguments->count; i++) {
        text_list_add(&rest, arguments->items[i]);
    }
    int status = dispatch(name, &rest, environment);
    text_list_clear(&rest);
    return status;
}
