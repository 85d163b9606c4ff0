/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_command.h"

#include "main/command_family.h"
#include "main/store/store_inspect.h"
#include "main/store/store_serve.h"

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
          "FileStore's --file. Where none of these is said, the one job of this user that runs on\n"
          "this machine is found by itself.\n"
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

static bool run(const char *name, const struct text_list *arguments,
    const struct text_list *environment, int *out_status) {
    const struct store_inspect_command *command = find(name);
    if (text_equals(name, "serve")) {
        *out_status = store_serve(arguments, environment);
    } else if (command != NULL) {
        *out_status = store_inspect(command, arguments, environment);
    } else {
        return false;
    }
    return true;
}

int store_command(const struct text_list *arguments, const struct text_list *environment) {
    static const struct command_family family = {"store", print_usage, run};
    return command_family_run(&family, arguments, environment);
}
