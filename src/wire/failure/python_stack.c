/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/python_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

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
