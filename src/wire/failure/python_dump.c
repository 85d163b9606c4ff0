/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/python_dump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/failure/hang_summary.h"
#include "wire/failure/socket_table.h"

static bool ends_with(struct slice line, const char *end) {
    size_t length = strlen(end);
    return line.length >= length && memcmp(line.data + line.length - length, end, length) == 0;
}

/* Such a line looks like: Thread 4711 (idle): "MainThread" */
static bool is_thread(struct slice line) {
    return slice_starts_with(line, slice_from_string("Thread "));
}

static bool is_wanted(struct slice line, int64_t thread) {
    char start[64];
    snprintf(start, sizeof start, "Thread %" PRId64 " (", thread);
    return slice_starts_with(line, slice_from_string(start)) || ends_with(line, ": \"MainThread\"");
}

/* Such a line looks like "    step (train.py:17)". NULL for other lines. */
static char *py_spy_dump_read_frame(struct slice line) {
    static const char indent[] = "    ";
    static const char opening[] = " (";
    struct text words = {0};
    size_t start = strlen(indent);
    if (!slice_starts_with(line, slice_from_string(indent)) || !ends_with(line, ")")) {
        return NULL;
    }
    size_t at = start;
    while (at + strlen(opening) < line.length &&
           memcmp(line.data + at, opening, strlen(opening)) != 0) {
        at++;
    }
    size_t place = at + strlen(opening);
    if (at == start || place + 1 >= line.length) {
        return NULL;
    }
    text_append_bytes(&words, (const char *)line.data + place, line.length - 1 - place);
    text_append(&words, " in ");
    text_append_bytes(&words, (const char *)line.data + start, at - start);
    return text_take(&words);
}

char *py_spy_dump_place(struct slice dump, int64_t thread) {
    struct slice line;
    bool is_inside = false;
    while (socket_table_next_line(&dump, &line)) {
        if (is_thread(line)) {
            is_inside = is_wanted(line, thread);
        } else if (is_inside) {
            return py_spy_dump_read_frame(line);
        }
    }
    return NULL;
}

/* Python dump. */

/* CPython shortens names at 500 characters. Longer lines are cut. */
#define PYTHON_DUMP_MAXIMUM_LINE 4096

struct dump {
    int64_t asked_thread;
    bool is_inside;   /* of a thread's stack */
    bool is_asked;    /* of the stack of `asked_thread` */
    bool is_cut;      /* there are threads that it does not show */
    size_t of_thread; /* frames of this thread so far */
    size_t frame_count;
    struct text asked_stack; /* the innermost frames of `asked_thread` */
    struct text last_stack;  /* those of the thread that is shown last */
    struct text *words;
};

static void append_clean(struct text *text, struct slice part) {
    size_t start = text->length;
    text_append_bytes(text, (const char *)part.data, part.length);
    if (part.length > 0) {
        text->length = start + utf8_make_printable(text->data + start, part.length);
        text->data[text->length] = '\0';
    }
}

/* Such a line looks like "Current thread 0x00007f00 [loader] (most recent call first):". Since 3.14
 * it has a name. */
static bool read_thread(struct dump *dump, struct slice line) {
    static const char asked[] = "Current thread ";
    static const char other[] = "Thread ";
    static const char end[] = " (most recent call first):";
    bool is_asked = slice_starts_with(line, slice_from_string(asked));
    if ((!is_asked && !slice_starts_with(line, slice_from_string(other))) ||
        !ends_with(line, end)) {
        return false;
    }
    size_t start = is_asked ? strlen(asked) : strlen(other);
    if (line.length < start + strlen(end)) {
        return false;
    }
    dump->is_inside = true;
    dump->is_asked = is_asked;
    dump->of_thread = 0;
    text_clear(&dump->last_stack);
    text_append(dump->words, "  Python thread ");
    if (is_asked) {
        text_append_format(dump->words, "%" PRId64 ", ", dump->asked_thread);
    }
    append_clean(dump->words, (struct slice){line.data + start, line.length - start - strlen(end)});
    text_append(dump->words, ":\n");
    return true;
}

/* Where the last `, line ` behind a quotation mark begins; `length` when there is none. A file may
 * have such words in its name, a function hardly. */
static size_t find_line_number(struct slice line) {
    static const char words[] = "\", line ";
    size_t length = strlen(words);
    for (size_t at = line.length < length ? 0 : line.length - length + 1; at > 0; at--) {
        if (memcmp(line.data + at - 1, words, length) == 0) {
            return at - 1;
        }
    }
    return line.length;
}

/* Such a line looks like `  File "train.py", line 17 in step`. NULL for other lines. */
static char *read_frame(struct slice line) {
    static const char start[] = "  File \"";
    static const char middle[] = "\", line ";
    static const char before_function[] = " in ";
    if (!slice_starts_with(line, slice_from_string(start))) {
        return NULL;
    }
    struct slice rest = slice_from(line, strlen(start));
    size_t file_length = find_line_number(rest);
    if (file_length == rest.length) {
        return NULL;
    }
    struct slice file = {rest.data, file_length};
    struct slice number = slice_from(rest, file_length + strlen(middle));
    size_t digits = 0;
    while (digits < number.length && number.data[digits] != ' ') {
        digits++;
    }
    struct slice function = slice_from(number, digits);
    number.length = digits;
    if (!slice_starts_with(function, slice_from_string(before_function))) {
        return NULL;
    }
    function = slice_from(function, strlen(before_function));
    struct text words = {0};
    append_clean(&words, file);
    text_append(&words, ":");
    append_clean(&words, number);
    text_append(&words, " in ");
    append_clean(&words, function);
    char *place = text_take(&words);
    utf8_make_line_printable(place);
    return place;
}

static void take_frame(struct dump *dump, char *place) {
    text_append_format(dump->words, "    %s\n", place);
    dump->frame_count++;
    if (dump->of_thread++ < HANG_SUMMARY_FRAMES_MAXIMUM) {
        text_append_format(&dump->last_stack, "%s\n", place);
        if (dump->is_asked) {
            text_append_format(&dump->asked_stack, "%s\n", place);
        }
    }
    free(place);
}

static void take_line(struct dump *dump, struct slice line) {
    line.length = line.length > PYTHON_DUMP_MAXIMUM_LINE ? PYTHON_DUMP_MAXIMUM_LINE : line.length;
    if (line.length == 0 || read_thread(dump, line)) {
        return;
    }
    char *place = dump->is_inside ? read_frame(line) : NULL;
    if (place != NULL) {
        take_frame(dump, place);
        return;
    }
    dump->is_cut = dump->is_cut || slice_equals(line, slice_from_string("..."));
    text_append(dump->words, line.data[0] == ' ' ? "  " : "    ");
    append_clean(dump->words, line);
    text_append(dump->words, "\n");
}

/* Each interpreter lists its threads in the order in which they were made, the last one first. So
 * the first thread comes last, unless there are more threads than are shown. */
static char *take_stack(struct dump *dump, int64_t process) {
    bool is_asked = dump->asked_thread == process;
    struct text *stack = is_asked ? &dump->asked_stack : &dump->last_stack;
    bool is_known = stack->length > 0 && (is_asked || !dump->is_cut);
    char *taken = is_known ? text_take(stack) : NULL;
    text_clear(&dump->asked_stack);
    text_clear(&dump->last_stack);
    return taken;
}

size_t python_dump_describe(struct slice dump, int64_t asked_thread, int64_t process,
    struct text *out_words, char **out_stack) {
    struct dump read = {.asked_thread = asked_thread, .words = out_words};
    struct slice line;
    bool is_beyond = dump.length > PYTHON_DUMP_CEILING;
    dump.length = is_beyond ? PYTHON_DUMP_CEILING : dump.length;
    while (socket_table_next_line(&dump, &line)) {
        take_line(&read, line);
    }
    if (is_beyond) {
        read.is_cut = true;
        text_append(out_words, "    the rest of what Python says is left out\n");
    }
    *out_stack = take_stack(&read, process);
    return read.frame_count;
}
