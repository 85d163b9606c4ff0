/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/worker_command.h"

#include <stdlib.h>
#include <string.h>

#include "base/template.h"

/* A new interpreter runs this program. The script and its arguments follow as the arguments. */
static const char run_path_bootstrap[] =
    "import runpy, sys\n"
    "sys.argv = sys.argv[1:]\n"
    "try:\n"
    "    from torch.distributed.elastic.multiprocessing.errors import record\n"
    "except Exception:\n"
    "    def record(function):\n"
    "        return function\n"
    "@record\n"
    "def run_script_path():\n"
    "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
    "run_script_path()\n";

static void add_substituted(
    struct text_list *arguments, const char *argument, const struct template_value *local_rank) {
    text_list_add_taken(arguments, template_substitute(argument, local_rank, 1));
}

static void add_interpreter(const struct launch_config *config, const char *python,
    const struct template_value *local_rank, struct text_list *arguments) {
    text_list_add(arguments, python);
    text_list_add(arguments, "-u");
    if (config->entry == LAUNCH_ENTRY_MODULE) {
        text_list_add(arguments, "-m");
    }
    if (config->entry == LAUNCH_ENTRY_RUN_PATH) {
        text_list_add(arguments, "-c");
        text_list_add(arguments, run_path_bootstrap);
    }
    add_substituted(arguments, config->script, local_rank);
}

void worker_command_build(const struct launch_config *config, const char *python, int local_rank,
    struct text_list *out_arguments) {
    char *number = text_format("%d", local_rank);
    struct template_value value = {.name = "local_rank", .value = number};
    if (config->entry == LAUNCH_ENTRY_PROGRAM) {
        text_list_add(out_arguments, config->script);
    } else {
        add_interpreter(config, python, &value, out_arguments);
    }
    for (size_t i = 0; i < config->script_arguments.count; i++) {
        add_substituted(out_arguments, config->script_arguments.items[i], &value);
    }
    free(number);
}

const char *worker_command_display_name(const struct launch_config *config) {
    return config->entry == LAUNCH_ENTRY_RUN_PATH ? "run_script_path" : config->script;
}

bool worker_command_is_python(const struct launch_config *config) {
    if (config->entry != LAUNCH_ENTRY_PROGRAM) {
        return true;
    }
    const char *slash = strrchr(config->script, '/');
    return text_starts_with(slash != NULL ? slash + 1 : config->script, "python");
}
