/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/status_line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"

#define USUAL_WIDTH 80

int status_line_width(int fd) {
    struct winsize size = {0};
    if (isatty(fd) == 0) {
        return 0;
    }
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_WIDTH;
}

static void append_blanks(struct text *out, int count) {
    for (int i = 0; i < count; i++) {
        text_append(out, " ");
    }
}

/* Returns how many columns it takes. The last column stays free, so that no terminal wraps. */
static int append_cut(struct text *out, const char *line, int width) {
    const uint8_t *bytes = (const uint8_t *)line;
    size_t length = strlen(line);
    size_t at = 0;
    int columns = 0;
    while (at < length && columns + 1 < width) {
        at += utf8_character_length(bytes + at, length - at);
        columns++;
    }
    text_append_bytes(out, line, at);
    return columns;
}

void status_line_show(struct status_line *status, const char *line, int width, struct text *out) {
    int before = status->columns;
    status->columns = 0;
    if (line != NULL) {
        char *shown = memory_duplicate_string(line);
        utf8_make_line_printable(shown);
        text_append(out, "\r");
        status->columns = append_cut(out, shown, width);
        append_blanks(out, before - status->columns);
        free(shown);
    } else if (before > 0) {
        text_append(out, "\r");
        append_blanks(out, before);
        text_append(out, "\r");
    }
}
