/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in the form of CPython 3.14, built in an array; addresses are offsets into it.
 * tests/interop/test_python_evidence.py checks that real interpreters have this form. */
#include "unit.h"

#include <string.h>

#include "base/text.h"
#include "wire/failure/python_stack.h"

enum place {
    RUNTIME = 64,
    INTERPRETER = 1024,
    THREAD = 1152,
    FRAME = 1280,
    ENTRY_FRAME = 1408,
    CODE = 1536,
    FILE_NAME = 1664,
    FUNCTION_NAME = 1792,
    LINES = 1920,
    END = 2048,
};

struct process {
    uint8_t memory[END];
    struct text told;
};

static void put(struct process *process, uint64_t address, uint64_t value) {
    memcpy(process->memory + address, &value, sizeof value);
}

static bool read_memory(void *context, uint64_t address, void *buffer, size_t size) {
    const struct process *process = context;
    if (address > END || size > END - address) {
        return false;
    }
    memcpy(buffer, process->memory + address, size);
    return true;
}

/* Each field of an object gets the offset 8 times its index in the list. */
static void put_offsets(struct process *process, uint64_t version) {
    static const struct {
        size_t word;
        uint64_t offset;
    } offsets[] = {{4, 704}, {7, 0}, {8, 8}, {23, 0}, {25, 8}, {27, 16}, {31, 0}, {32, 8}, {33, 16},
        {35, 24}, {39, 0}, {41, 8}, {42, 16}, {43, 24}, {47, 32}, {74, 0}, {75, 8}, {77, 0},
        {78, 8}, {79, 16}};
    memcpy(process->memory + RUNTIME, PYTHON_RUNTIME_COOKIE, 8);
    put(process, RUNTIME + 8, version);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        put(process, RUNTIME + 8 + offsets[i].word * 8, offsets[i].offset);
    }
}

static void put_string(struct process *process, uint64_t address, const char *text) {
    put(process, address, 0x64);
    put(process, address + 8, strlen(text));
    memcpy(process->memory + address + 16, text, strlen(text));
}

static void set_up(struct process *process) {
    *process = (struct process){0};
    put_offsets(process, 0x030e0000);
    put(process, RUNTIME + 704, INTERPRETER);
    put(process, INTERPRETER + 8, THREAD);
    put(process, THREAD + 8, ENTRY_FRAME);
    put(process, THREAD + 16, 4711);
    put(process, ENTRY_FRAME, FRAME);
    process->memory[ENTRY_FRAME + 24] = 3;
    put(process, FRAME + 8, CODE | 1);
    put(process, FRAME + 16, CODE + 32 + 2);
    put(process, CODE, FILE_NAME);
    put(process, CODE + 8, FUNCTION_NAME);
    put(process, CODE + 16, LINES);
    put(process, CODE + 24, 10);
    put(process, LINES, 3);
    process->memory[LINES + 8] = 0x80 | 10 << 3;
    process->memory[LINES + 9] = 1;
    process->memory[LINES + 10] = 0x80 | 11 << 3;
    put_string(process, FILE_NAME, "train.py");
    put_string(process, FUNCTION_NAME, "step\x01");
}

static bool tell_thread(void *context, uint64_t native_id) {
    struct process *process = context;
    text_append_format(&process->told, "[%llu]", (unsigned long long)native_id);
    return true;
}

static bool tell_frame(void *context, const struct python_frame *frame) {
    struct process *process = context;
    text_append_format(&process->told, " %s:%d %s", frame->file, frame->line, frame->function);
    return true;
}

static void expect(struct process *process, const char *told) {
    struct python_memory memory = {read_memory, process};
    struct python_visitor visitor = {tell_thread, tell_frame, process};
    struct python_runtime runtime;
    assert_int_equal(python_runtime_read(&memory, RUNTIME, &runtime), FAILURE_NONE);
    python_stack_walk(&memory, &runtime, &visitor);
    assert_string_equal(text_string(&process->told), told);
    text_clear(&process->told);
}

static void expect_line(struct process *process, uint64_t offset, int line) {
    put(process, FRAME + 16, CODE + 32 + offset);
    FREED char *told = text_format("[4711] train.py:%d step?", line);
    expect(process, told);
}

static void put_lines(struct process *process, const uint8_t *table, size_t size) {
    put(process, LINES, size);
    memcpy(process->memory + LINES + 8, table, size);
}

/* Line 10: 2 instructions (short form); line 12: 1 (one-line form); line 9: 1 (line only, -3);
 * none: 1; line 109: 8 (long form, +100). */
TEST(instructions_have_lines_and_some_have_none) {
    static const uint8_t table[] = {0x81, 0x00, 0x80 | 12 << 3, 0x01, 0x02, 0x80 | 13 << 3, 0x07,
        0x80 | 15 << 3, 0x80 | 14 << 3 | 7, 0x40 | 8, 3, 0, 1, 1};
    static const struct {
        uint64_t offset;
        int line;
    } cases[] = {{0, 10}, {3, 10}, {4, 12}, {6, 9}, {8, 0}, {10, 109}, {25, 109}, {26, 0}};
    struct process process;
    set_up(&process);
    put_lines(&process, table, sizeof table);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_line(&process, cases[i].offset, cases[i].line);
    }
}

TEST(other_bytes_are_no_table) {
    static const uint8_t no_mark[] = {0x01};
    static const uint8_t no_number[] = {0x80 | 13 << 3};
    static const uint8_t endless[] = {
        0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01};
    static const uint8_t below_zero[] = {0x80 | 13 << 3, 0x1d};
    static const struct slice tables[] = {{no_mark, sizeof no_mark}, {no_number, sizeof no_number},
        {endless, sizeof endless}, {below_zero, sizeof below_zero}};
    struct process process;
    set_up(&process);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        put_lines(&process, tables[i].data, tables[i].length);
        expect_line(&process, 0, 0);
    }
}

TEST(names_beyond_ascii_are_told_in_utf8) {
    struct process process;
    set_up(&process);
    static const uint16_t name[] = {0xe9, 0x20ac, 0xd800};
    put(&process, FUNCTION_NAME, 0x28);
    put(&process, FUNCTION_NAME + 8, 3);
    memcpy(process.memory + FUNCTION_NAME + 32, name, sizeof name);
    expect(&process, "[4711] train.py:11 \xc3\xa9\xe2\x82\xac?");
}

TEST(circles_end) {
    struct process process;
    set_up(&process);
    put(&process, FRAME, FRAME);
    put(&process, THREAD, THREAD);
    put(&process, INTERPRETER, INTERPRETER);
    struct python_memory memory = {read_memory, &process};
    struct python_visitor visitor = {tell_thread, tell_frame, &process};
    struct python_runtime runtime;
    put(&process, THREAD + 8, 0);
    assert_int_equal(python_runtime_read(&memory, RUNTIME, &runtime), FAILURE_NONE);
    python_stack_walk(&memory, &runtime, &visitor);
    assert_int_equal(process.told.length,
        strlen("[4711]") * PYTHON_MAXIMUM_INTERPRETERS * PYTHON_MAXIMUM_THREADS);
    text_clear(&process.told);
    put(&process, INTERPRETER, 0);
    put(&process, THREAD, 0);
    put(&process, THREAD + 8, FRAME);
    python_stack_walk(&memory, &runtime, &visitor);
    assert_int_equal(process.told.length,
        strlen("[4711]") + strlen(" train.py:11 step?") * PYTHON_MAXIMUM_FRAMES);
    text_clear(&process.told);
}

TEST(pointers_to_nowhere_end_the_walk) {
    struct process process;
    set_up(&process);
    put(&process, CODE, UINT64_MAX - 4);
    expect(&process, "[4711]");
    put(&process, FRAME + 8, END);
    expect(&process, "[4711]");
    put(&process, INTERPRETER + 8, END - 4);
    expect(&process, "");
}

TEST(what_is_not_understood_is_not_read) {
    struct process process;
    struct python_memory memory = {read_memory, &process};
    struct python_runtime runtime;
    set_up(&process);
    assert_int_equal(python_runtime_read(&memory, RUNTIME + 8, &runtime), FAILURE_MALFORMED);
    put(&process, RUNTIME + 8, 0x030f0000);
    assert_int_equal(python_runtime_read(&memory, RUNTIME, &runtime), FAILURE_UNSUPPORTED);
    assert_int_equal(runtime.minor, 15);
    put(&process, RUNTIME + 8, 0x030e0000);
    put(&process, RUNTIME + 16, 1); /* free-threaded */
    assert_int_equal(python_runtime_read(&memory, RUNTIME, &runtime), FAILURE_UNSUPPORTED);
    put(&process, RUNTIME + 16, 0);
    put(&process, RUNTIME + 8 + 25 * 8, UINT64_MAX);
    assert_int_equal(python_runtime_read(&memory, RUNTIME, &runtime), FAILURE_UNSUPPORTED);
}
