/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/timer_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "main/exit_status.h"

bool timer_options_read(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, const char **out_path) {
    option_parse(table, program, arguments, environment, result);
    if (result->outcome != OPTION_OUTCOME_VALUES) {
        return false;
    }
    const char *path = option_result_value(result, "file")->text;
    path = path != NULL ? path : text_list_variable(environment, "TORCHELASTIC_TIMER_FILE");
    if (path == NULL || *path == '\0') {
        option_result_reject(result, NULL, "give --file, or set TORCHELASTIC_TIMER_FILE");
        return false;
    }
    *out_path = path;
    return true;
}

int timer_options_print(const struct option_result *result) {
    bool is_mistake = result->outcome == OPTION_OUTCOME_MISTAKE;
    fputs(result->text, is_mistake ? stderr : stdout);
    return is_mistake ? EXIT_STATUS_USAGE : EXIT_SUCCESS;
}
