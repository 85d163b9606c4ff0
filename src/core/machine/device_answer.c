/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/machine/device_answer.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

#define MARK "\nmuster-devices "

enum device_answer device_answer_read(char *text, int *out_count, const char **out_reason) {
    char *line = NULL;
    int64_t count;
    for (char *found = strstr(text, MARK); found != NULL; found = strstr(line, MARK)) {
        line = found + strlen(MARK);
    }
    if (line == NULL) {
        return DEVICE_ANSWER_NONE;
    }
    line[strcspn(line, "\n")] = '\0';
    utf8_make_line_printable(line);
    if (*line == '!' || *line == '?') {
        *out_reason = line + 1;
        return *line == '!' ? DEVICE_ANSWER_TROUBLE : DEVICE_ANSWER_UNKNOWN;
    }
    if (text_parse_integer(line, &count) != FAILURE_NONE || count < 0 || count > INT_MAX) {
        return DEVICE_ANSWER_NONE;
    }
    *out_count = (int)count;
    return DEVICE_ANSWER_COUNT;
}
