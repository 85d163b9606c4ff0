/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/python_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/failure/failure_report.h"
#include "wire/failure/kernel_text.h"

/* Fields between the permissions and the path: offset, device, inode. */
#define FIELDS_BEFORE_PATH 3

static int digit_value(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Takes an address and the byte after it, which must be `end`. */
static bool take_address(struct slice *text, char end, uint64_t *out_value) {
    uint64_t value = 0;
    size_t length = 0;
    for (; length < text->length && digit_value(text->data[length]) >= 0; length++) {
        if (value >> 60 != 0) {
            return false;
        }
        value = value << 4 | (uint64_t)digit_value(text->data[length]);
    }
    if (length == 0 || length == text->length || text->data[length] != (uint8_t)end) {
        return false;
    }
    *text = slice_from(*text, length + 1);
    *out_value = value;
    return true;
}

static void skip_blanks(struct slice *text) {
    while (text->length > 0 && text->data[0] == ' ') {
        *text = slice_from(*text, 1);
    }
}

static void skip_field(struct slice *text) {
    while (text->length > 0 && text->data[0] != ' ') {
        *text = slice_from(*text, 1);
    }
    skip_blanks(text);
}

enum failure_code memory_map_read_line(struct slice line, struct memory_mapping *out_mapping) {
    struct memory_mapping mapping = {0};
    if (!take_address(&line, '-', &mapping.start) || !take_address(&line, ' ', &mapping.end) ||
        mapping.end <= mapping.start || line.length < 4) {
        return FAILURE_MALFORMED;
    }
    mapping.is_readable = line.data[0] == 'r';
    mapping.is_writable = line.data[1] == 'w';
    skip_field(&line);
    for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
        skip_field(&line);
    }
    mapping.path = line;
    *out_mapping = mapping;
    return FAILURE_NONE;
}

bool memory_mapping_is_file(const struct memory_mapping *mapping, const char *start) {
    size_t name = mapping->path.length;
    while (name > 0 && mapping->path.data[name - 1] != '/') {
        name--;
    }
    return name > 0 && slice_starts_with(slice_from(mapping->path, name), slice_from_string(start));
}

/* Python lines. */

/* The first byte of an entry has the top bit set, then 4 bits for the form in which the position is
 * written, then 3 bits for the number of instructions (of 2 bytes each) it covers. The bytes after
 * it have the top bit clear. */
#define ENTRY_MARK 0x80
#define INSTRUCTION_SIZE 2
#define NUMBER_BITS 6
#define NUMBER_CONTINUES 0x40

enum spelling {
    SPELLING_NEXT_LINES =
        10, /* 10, 11 and 12 mean this line, the next one, and the one after that */
    SPELLING_LINE_ONLY = 13,
    SPELLING_LONG = 14,
    SPELLING_NONE = 15,
};

/* Reads a signed number: least significant bits first, the sign in the lowest bit. False when there
 * is no number or it is larger than any line number. */
static bool take_signed(struct slice table, size_t at, int64_t *out_value) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 6 * NUMBER_BITS; shift += NUMBER_BITS) {
        if (at >= table.length || (table.data[at] & ENTRY_MARK) != 0) {
            return false;
        }
        uint8_t byte = table.data[at++];
        value |= (uint64_t)(byte & (NUMBER_CONTINUES - 1)) << shift;
        if ((byte & NUMBER_CONTINUES) == 0) {
            *out_value = (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
            return true;
        }
    }
    return false;
}

/* Reads the number of lines by which the entry at `at` changes the current line. */
static bool read_delta(struct slice table, size_t at, unsigned spelling, int64_t *out_delta) {
    *out_delta = 0;
    if (spelling == SPELLING_LINE_ONLY || spelling == SPELLING_LONG) {
        return take_signed(table, at + 1, out_delta);
    }
    if (spelling >= SPELLING_NEXT_LINES && spelling < SPELLING_LINE_ONLY) {
        *out_delta = (int64_t)(spelling - SPELLING_NEXT_LINES);
    }
    return true;
}

static size_t next_entry(struct slice table, size_t at) {
    do {
        at++;
    } while (at < table.length && (table.data[at] & ENTRY_MARK) == 0);
    return at;
}

/* Finds the line of the instruction that is `offset` bytes into a function whose first line is
 * `first_line`. FAILURE_MISSING when the instruction has no line or lies beyond the table,
 * FAILURE_MALFORMED when the table is invalid. */
static enum failure_code python_lines_find(
    struct slice table, int first_line, uint64_t offset, int *out_line) {
    int64_t line = first_line;
    uint64_t end = 0;
    for (size_t at = 0; at < table.length; at = next_entry(table, at)) {
        unsigned head = table.data[at];
        unsigned spelling = (head >> 3) & 0xf;
        int64_t delta;
        if ((head & ENTRY_MARK) == 0 || !read_delta(table, at, spelling, &delta)) {
            return FAILURE_MALFORMED;
        }
        line += delta;
        if (line < 0 || line > INT32_MAX) {
            return FAILURE_MALFORMED;
        }
        end += (uint64_t)((head & 7) + 1) * INSTRUCTION_SIZE;
        if (offset < end) {
            if (spelling == SPELLING_NONE) {
                return FAILURE_MISSING;
            }
            *out_line = (int)line;
            return FAILURE_NONE;
        }
    }
    return FAILURE_MISSING;
}

/* Python stack. */

#define PYTHON_MAXIMUM_LINE_TABLE (256 * 1024)

/* Which entry of the runtime's offset table holds which offset. Entries are 64-bit words, counted
 * from the version on. A new version inserts words between old ones, so each version has a
 * layout. */
struct python_layout {
    int minor;
    size_t word_count;
    size_t interpreters_head;
    size_t interpreter_next;
    size_t threads_head;
    size_t thread_next;
    size_t current_frame;
    size_t native_thread_id;
    size_t frame_previous;
    size_t frame_executable;
    size_t frame_instruction;
    size_t frame_owner;
    size_t code_filename;
    size_t code_qualified_name;
    size_t code_line_table;
    size_t code_first_line;
    size_t code_instructions;
    size_t bytes_size;
    size_t bytes_data;
    size_t string_state;
    size_t string_length;
    size_t string_header_size;
};

static const struct python_layout layouts[] = {
    {13, 70, 4, 7, 8, 20, 22, 24, 28, 29, 30, 32, 34, 36, 37, 38, 42, 64, 65, 67, 68, 69},
    {14, 80, 4, 7, 8, 23, 25, 27, 31, 32, 33, 35, 39, 41, 42, 43, 47, 74, 75, 77, 78, 79},
};

/* A larger offset is invalid. */
#define FURTHEST_OFFSET (16 * 1024 * 1024)
/* A frame whose owner is this or larger belongs to the interpreter and runs no code object. */
#define OWNER_INTERPRETER 3
/* The low bits of a frame's reference to its code object are flags. */
#define REFERENCE_FLAGS 3
/* The header of a string that is not ASCII has two more words. */
#define WIDE_HEADER_EXTRA 16

struct walk {
    const struct python_memory *memory;
    const struct python_runtime *runtime;
    const struct python_visitor *visitor;
};

static bool read_memory(
    const struct python_memory *memory, uint64_t address, void *buffer, size_t size) {
    return address != 0 && address <= UINT64_MAX - size &&
           memory->read(memory->context, address, buffer, size);
}

static bool read_word(
    const struct walk *walk, uint64_t object, size_t offset_index, uint64_t *out_value) {
    uint64_t offset = walk->runtime->offsets[offset_index];
    return object <= UINT64_MAX - offset &&
           read_memory(walk->memory, object + offset, out_value, sizeof *out_value);
}

/* The runtime. */

static bool has_believable_offsets(const struct python_runtime *runtime) {
    for (size_t i = 2; i < runtime->layout->word_count; i++) {
        if (runtime->offsets[i] > FURTHEST_OFFSET) {
            return false;
        }
    }
    return true;
}

enum failure_code python_runtime_read(
    const struct python_memory *memory, uint64_t address, struct python_runtime *out_runtime) {
    struct python_runtime runtime = {.address = address};
    char cookie[sizeof PYTHON_RUNTIME_COOKIE - 1];
    if (!read_memory(memory, address, cookie, sizeof cookie) ||
        memcmp(cookie, PYTHON_RUNTIME_COOKIE, sizeof cookie) != 0 ||
        !read_memory(memory, address + sizeof cookie, runtime.offsets, sizeof runtime.offsets)) {
        return FAILURE_MALFORMED;
    }
    uint64_t version = runtime.offsets[0];
    bool is_free_threaded = runtime.offsets[1] != 0;
    runtime.major = (int)(version >> 24 & 0xff);
    runtime.minor = (int)(version >> 16 & 0xff);
    runtime.micro = (int)(version >> 8 & 0xff);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (version >> 24 == 3 && runtime.minor == layouts[i].minor && !is_free_threaded) {
            runtime.layout = &layouts[i];
        }
    }
    *out_runtime = runtime;
    return runtime.layout != NULL && has_believable_offsets(&runtime) ? FAILURE_NONE
                                                                      : FAILURE_UNSUPPORTED;
}

/* Strings. */

static void append_utf8(struct text *out, uint32_t character) {
    char bytes[4];
    size_t length = 0;
    if (character < ' ' || character == 0x7f || (character >= 0xd800 && character < 0xe000) ||
        character > 0x10ffff) {
        character = '?';
    }
    if (character < 0x80) {
        bytes[length++] = (char)character;
    } else if (character < 0x800) {
        bytes[length++] = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            bytes[length++] = (char)(0xe0 | character >> 12);
        } else {
            bytes[length++] = (char)(0xf0 | character >> 18);
            bytes[length++] = (char)(0x80 | (character >> 12 & 0x3f));
        }
        bytes[length++] = (char)(0x80 | (character >> 6 & 0x3f));
    }
    if (character >= 0x80) {
        bytes[length++] = (char)(0x80 | (character & 0x3f));
    }
    text_append_bytes(out, bytes, length);
}

static uint32_t character_at(const uint8_t *data, size_t width, size_t index) {
    uint16_t two;
    uint32_t four;
    switch (width) {
    case 1:
        return data[index];
    case 2:
        memcpy(&two, data + index * width, sizeof two);
        return two;
    default:
        memcpy(&four, data + index * width, sizeof four);
        return four;
    }
}

/* Longer strings are cut. */
static bool read_string(const struct walk *walk, uint64_t object, struct text *out) {
    const struct python_layout *layout = walk->runtime->layout;
    uint64_t state;
    uint64_t length;
    if (!read_word(walk, object, layout->string_state, &state) ||
        !read_word(walk, object, layout->string_length, &length)) {
        return false;
    }
    size_t width = (size_t)(state >> 2 & 7);
    bool is_compact = (state & 0x20) != 0;
    bool is_ascii = (state & 0x40) != 0;
    if (!is_compact || (width != 1 && width != 2 && width != 4)) {
        return false;
    }
    size_t count = length < PYTHON_MAXIMUM_NAME ? (size_t)length : PYTHON_MAXIMUM_NAME;
    uint64_t header =
        walk->runtime->offsets[layout->string_header_size] + (is_ascii ? 0 : WIDE_HEADER_EXTRA);
    uint8_t data[PYTHON_MAXIMUM_NAME * 4];
    if (object > UINT64_MAX - header ||
        !read_memory(walk->memory, object + header, data, count * width)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        append_utf8(out, character_at(data, width, i));
    }
    return true;
}

/* Frames. */

static int find_line(const struct walk *walk, uint64_t code, uint64_t instruction) {
    const struct python_layout *layout = walk->runtime->layout;
    const uint64_t *offsets = walk->runtime->offsets;
    uint64_t table;
    uint64_t size;
    uint64_t first = 0;
    uint64_t start = code + offsets[layout->code_instructions];
    if (!read_word(walk, code, layout->code_line_table, &table) ||
        !read_word(walk, table, layout->bytes_size, &size) || size > PYTHON_MAXIMUM_LINE_TABLE ||
        !read_word(walk, code, layout->code_first_line, &first) || instruction < start) {
        return 0;
    }
    int line = 0;
    uint8_t *data = memory_allocate((size_t)size);
    uint64_t address = table + offsets[layout->bytes_data];
    int first_line = (int)(first & INT32_MAX);
    if (!read_memory(walk->memory, address, data, (size_t)size) ||
        python_lines_find((struct slice){data, (size_t)size}, first_line, instruction - start,
            &line) != FAILURE_NONE) {
        line = 0;
    }
    free(data);
    return line;
}

/* Returns false when the walk of this thread has to end. */
static bool tell_frame(const struct walk *walk, uint64_t frame) {
    const struct python_layout *layout = walk->runtime->layout;
    uint64_t code;
    uint64_t instruction;
    uint64_t name;
    uint64_t file;
    if (!read_word(walk, frame, layout->frame_executable, &code) ||
        !read_word(walk, frame, layout->frame_instruction, &instruction)) {
        return false;
    }
    code &= ~(uint64_t)REFERENCE_FLAGS;
    if (!read_word(walk, code, layout->code_qualified_name, &name) ||
        !read_word(walk, code, layout->code_filename, &file)) {
        return false;
    }
    struct text name_text = {0};
    struct text file_text = {0};
    bool goes_on = read_string(walk, name, &name_text) && read_string(walk, file, &file_text);
    if (goes_on) {
        struct python_frame told = {
            text_string(&file_text), text_string(&name_text), find_line(walk, code, instruction)};
        goes_on = walk->visitor->frame(walk->visitor->context, &told);
    }
    text_clear(&name_text);
    text_clear(&file_text);
    return goes_on;
}

static void tell_frames(const struct walk *walk, uint64_t thread) {
    const struct python_layout *layout = walk->runtime->layout;
    uint64_t frame;
    if (!read_word(walk, thread, layout->current_frame, &frame)) {
        return;
    }
    for (int i = 0; i < PYTHON_MAXIMUM_FRAMES && frame != 0; i++) {
        uint64_t owner_offset = walk->runtime->offsets[layout->frame_owner];
        uint8_t owner;
        if (!read_memory(walk->memory, frame + owner_offset, &owner, sizeof owner) ||
            (owner < OWNER_INTERPRETER && !tell_frame(walk, frame)) ||
            !read_word(walk, frame, layout->frame_previous, &frame)) {
            return;
        }
    }
}

/* Threads and interpreters. */

static bool tell_threads(const struct walk *walk, uint64_t interpreter) {
    const struct python_layout *layout = walk->runtime->layout;
    uint64_t thread;
    uint64_t native_id;
    if (!read_word(walk, interpreter, layout->threads_head, &thread)) {
        return false;
    }
    for (int i = 0; i < PYTHON_MAXIMUM_THREADS && thread != 0; i++) {
        if (!read_word(walk, thread, layout->native_thread_id, &native_id) ||
            !walk->visitor->thread(walk->visitor->context, native_id)) {
            return false;
        }
        tell_frames(walk, thread);
        if (!read_word(walk, thread, layout->thread_next, &thread)) {
            return false;
        }
    }
    return true;
}

void python_stack_walk(const struct python_memory *memory, const struct python_runtime *runtime,
    const struct python_visitor *visitor) {
    const struct walk walk = {memory, runtime, visitor};
    const struct python_layout *layout = runtime->layout;
    uint64_t interpreter;
    if (!read_word(&walk, runtime->address, layout->interpreters_head, &interpreter)) {
        return;
    }
    for (int i = 0; i < PYTHON_MAXIMUM_INTERPRETERS && interpreter != 0; i++) {
        if (!tell_threads(&walk, interpreter) ||
            !read_word(&walk, interpreter, layout->interpreter_next, &interpreter)) {
            return;
        }
    }
}

/* Python dump. */

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
