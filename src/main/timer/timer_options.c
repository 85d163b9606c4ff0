/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/timer/timer_options.h"

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
