/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "pickle_fixture.h"
#include "pickle_vectors.h"
#include "wire/pickle/pickle_document.h"
#include "wire/pickle/pickle_reader.h"

static const struct pickle_limits limits = {.bytes = 2000, .values = 500, .items = 100};

/* Reads hexadecimal opcodes after PROTO 4. */
static enum failure_code read(
    const char *digits, struct pickle_document *document, struct text *reason) {
    /* The document borrows from the input. */
    static struct bytes input;
    bytes_clear(&input);
    append_hexadecimal(&input, "8004");
    append_hexadecimal(&input, digits);
    enum failure_code code = pickle_read(bytes_slice(&input), &limits, document, reason);
    if (code != FAILURE_NONE) {
        bytes_clear(&input);
    }
    return code;
}

static void assert_integer(const char *digits, int64_t wanted) {
    struct pickle_document document;
    struct text reason = {0};
    assert_int_equal(read(digits, &document, &reason), FAILURE_NONE);
    assert_int_equal(pickle_document_root(&document)->kind, PICKLE_VALUE_INTEGER);
    assert_true(pickle_document_root(&document)->integer == wanted);
    pickle_document_clear(&document);
}

static void assert_refused(const char *digits, enum failure_code wanted, const char *why) {
    struct pickle_document document;
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(read(digits, &document, &reason), wanted);
    assert_string_equal(text_string(&reason), why);
}

TEST(integers_are_read_in_every_form) {
    assert_integer("4b00 2e", 0);
    assert_integer("4bff 2e", 255);
    assert_integer("4dffff 2e", 65535);
    assert_integer("4affffffff 2e", -1);
    assert_integer("4a00000080 2e", INT32_MIN);
    assert_integer("8a00 2e", 0);
    assert_integer("8a01ff 2e", -1);
    assert_integer("8a050000000001 2e", 1LL << 32);
    assert_integer("8a08ffffffffffffff7f 2e", INT64_MAX);
    assert_integer("8a080000000000000080 2e", INT64_MIN);
    assert_integer("8a0a0500000000000000 0000 2e", 5);
    assert_integer("8a0afeffffffffffffff ffff 2e", -2);
}

TEST(integers_beyond_64_bits_are_refused) {
    static const char why[] = "an integer of more than 64 bits (at byte 2)";
    assert_refused("8a09000000000000008000 2e", FAILURE_LIMIT, why);
    assert_refused("8a09ffffffffffffff7fff 2e", FAILURE_LIMIT, why);
    assert_refused("8a09000000000000000001 2e", FAILURE_LIMIT, why);
}

TEST(a_function_is_refused_by_its_name) {
#define ONLY                                                                                       \
    ": a record may hold only _RendezvousState, _NodeDesc, datetime, timezone, timedelta and set"
    assert_refused("636f730a73797374656d0a 8c047472756585 52 2e", FAILURE_UNSUPPORTED,
        "refuses os.system" ONLY " (at byte 2)");
    assert_refused("8c05706f736978 8c0673797374656d 93 2e", FAILURE_UNSUPPORTED,
        "refuses posix.system" ONLY " (at byte 17)");
    assert_refused(
        "8c021b5b 8c0420c3a90a 93 2e", FAILURE_UNSUPPORTED, "refuses ?[.????" ONLY " (at byte 12)");
}

TEST(opcodes_no_record_needs_are_refused_by_name) {
    assert_refused("284930310a 2e", FAILURE_UNSUPPORTED,
        "refuses the opcode INT: no record needs it (at byte 3)");
    assert_refused("473ff0000000000000 2e", FAILURE_UNSUPPORTED,
        "refuses the opcode BINFLOAT: no record needs it (at byte 2)");
    assert_refused("28696f730a73797374656d0a2e", FAILURE_UNSUPPORTED,
        "refuses the opcode INST: no record needs it (at byte 3)");
    assert_refused(
        "8201 2e", FAILURE_UNSUPPORTED, "refuses the opcode EXT1: no record needs it (at byte 2)");
    assert_refused("ff", FAILURE_MALFORMED, "0xff is no opcode (at byte 2)");
}

TEST(what_is_cut_off_is_malformed_wherever_it_ends) {
    CLEARED_BY(bytes_clear) struct bytes whole = {0};
    append_hexadecimal(&whole, PICKLE_FOUR_NODES);
    /* Removes the frame, because a cut input would otherwise fail at the frame first. */
    memmove(whole.data + 2, whole.data + 11, whole.length - 11);
    whole.length -= 9;
    struct pickle_document document;
    struct text reason = {0};
    assert_int_equal(pickle_read(bytes_slice(&whole), &limits, &document, &reason), FAILURE_NONE);
    pickle_document_clear(&document);
    for (size_t length = 1; length < whole.length; length++) {
        struct slice part = {whole.data, length};
        assert_int_equal(pickle_read(part, &limits, &document, &reason), FAILURE_MALFORMED);
        assert_memory_equal(text_string(&reason), "the pickle is cut off (at byte", 30);
        text_clear(&reason);
    }
}

TEST(broken_programs_are_malformed) {
    assert_refused("2e", FAILURE_MALFORMED, "a value is missing on the stack (at byte 2)");
    assert_refused("75", FAILURE_MALFORMED, "a mark is missing on the stack (at byte 2)");
    assert_refused("7d 28 4b01 75", FAILURE_MALFORMED, "a key without a value (at byte 6)");
    assert_refused("5d 28 75", FAILURE_MALFORMED, "a list where a dict belongs (at byte 4)");
    assert_refused("4e 29 52", FAILURE_MALFORMED, "None where a class belongs (at byte 4)");
    assert_refused("4e 4e 93", FAILURE_MALFORMED, "None where text belongs (at byte 4)");
    assert_refused("4e 7d 62", FAILURE_MALFORMED, "None where an object belongs (at byte 4)");
    assert_refused("6807", FAILURE_MALFORMED, "memo 7 is empty (at byte 2)");
    assert_refused("94", FAILURE_MALFORMED, "a value is missing on the stack (at byte 2)");
    assert_refused("8c02c328 2e", FAILURE_MALFORMED, "text that is not UTF-8 (at byte 2)");
    assert_refused("63 6f73", FAILURE_MALFORMED, "the pickle is cut off (at byte 2)");
    assert_refused("9501000000 000000", FAILURE_MALFORMED, "the pickle is cut off (at byte 2)");
    assert_refused(
        "9509000000 00000000 4e2e", FAILURE_MALFORMED, "the pickle is cut off (at byte 2)");
}

TEST(a_mark_fences_off_what_is_below_it) {
    assert_integer("4b07 28 30 2e", 7);
    assert_integer("4b07 28 4b08 30 30 2e", 7);
    assert_refused("28 30 30", FAILURE_MALFORMED, "a value is missing on the stack (at byte 4)");
    assert_refused("4b07 28 94", FAILURE_MALFORMED, "a value is missing on the stack (at byte 5)");
    assert_refused(
        "4b07 28 4b08 86", FAILURE_MALFORMED, "a value is missing on the stack (at byte 7)");
    assert_refused(
        "28 4b01 30 30 75", FAILURE_MALFORMED, "a mark is missing on the stack (at byte 7)");
}

TEST(nothing_above_a_mark_is_an_empty_tuple) {
    struct pickle_document document;
    struct text reason = {0};
    assert_int_equal(read("28 74 2e", &document, &reason), FAILURE_NONE);
    assert_int_equal(pickle_document_root(&document)->kind, PICKLE_VALUE_TUPLE);
    pickle_document_clear(&document);
}

TEST(the_memo_gives_back_what_was_kept) {
    assert_integer("4b07 71c8 30 4b08 94 30 68c8 2e", 7);
    assert_integer("4b07 71c8 30 4b08 94 30 6801 2e", 8);
    assert_refused("4b07 71c8 6800", FAILURE_MALFORMED, "memo 0 is empty (at byte 6)");
}

TEST(references_cost_no_more_than_what_they_refer_to) {
    /* Thirty tuples that contain each other: 2^30 values if they were copied. */
    CLEARED_BY(bytes_clear) struct bytes digits = {0};
    append_hexadecimal(&digits, "8004 4e");
    for (int i = 0; i < 30; i++) {
        const uint8_t pair[] = {'q', 0, 'h', 0, 0x86};
        assert_int_equal(bytes_append(&digits, pair, sizeof pair), FAILURE_NONE);
    }
    append_hexadecimal(&digits, "2e");
    struct pickle_document document;
    struct text reason = {0};
    assert_int_equal(pickle_read(bytes_slice(&digits), &limits, &document, &reason), FAILURE_NONE);
    assert_int_equal(document.value_count, 31);
    assert_int_equal(pickle_document_root(&document)->height, 31);
    pickle_document_clear(&document);
}

TEST(ceilings_hold) {
    struct pickle_document document;
    CLEARED_BY(text_clear) struct text reason = {0};
    CLEARED_BY(bytes_clear) struct bytes input = {0};
    append_hexadecimal(&input, "8004");
    while (input.length <= 502) {
        append_hexadecimal(&input, "4e");
    }
    assert_int_equal(pickle_read(bytes_slice(&input), &limits, &document, &reason), FAILURE_LIMIT);
    assert_string_equal(text_string(&reason), "more than 500 values (at byte 502)");
    text_clear(&reason);
    while (input.length <= limits.bytes) {
        append_hexadecimal(&input, "4e");
    }
    assert_int_equal(pickle_read(bytes_slice(&input), &limits, &document, &reason), FAILURE_LIMIT);
    assert_string_equal(text_string(&reason), "2001 bytes of pickle, the limit is 2000");
    assert_refused(
        "58 01000100", FAILURE_LIMIT, "text of 65537 bytes, the limit is 65536 (at byte 2)");
    assert_refused("4e 72 ffffffff", FAILURE_LIMIT, "too many values in the memo (at byte 3)");
    struct text many = {0};
    text_append(&many, "4e94");
    for (size_t i = 0; i < limits.values; i++) {
        text_append(&many, "6800");
    }
    assert_refused(
        text_string(&many), FAILURE_LIMIT, "too many values on the stack (at byte 1002)");
    text_clear(&many);
    assert_refused("2828282828282828 2828282828282828 2828282828282828 2828282828282828 28",
        FAILURE_LIMIT, "too many marks on the stack (at byte 34)");
}

/* Pickle opcode. */

TEST(opcodes_are_called_as_python_calls_them) {
    assert_string_equal(pickle_opcode_name(PICKLE_STOP), "STOP");
    assert_string_equal(pickle_opcode_name(0x93), "STACK_GLOBAL");
    assert_string_equal(pickle_opcode_name('i'), "INST");
    assert_string_equal(pickle_opcode_name(0x98), "READONLY_BUFFER");
}

TEST(every_opcode_of_protocols_0_to_5_has_a_name_of_its_own) {
    size_t count = 0;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const char *name = pickle_opcode_name((uint8_t)opcode);
        count += name != NULL;
        for (unsigned other = 0; name != NULL && other < opcode; other++) {
            const char *other_name = pickle_opcode_name((uint8_t)other);
            assert_true(other_name == NULL || strcmp(name, other_name) != 0);
        }
    }
    assert_int_equal(count, 68);
    assert_null(pickle_opcode_name(0));
    assert_null(pickle_opcode_name(0xff));
}

/* Pickle class. */

static bool is_known(const char *module, const char *name) {
    enum pickle_class of_class;
    return pickle_class_find(slice_from_string(module), slice_from_string(name), &of_class);
}

TEST(every_class_is_read_as_it_is_written) {
    for (int i = PICKLE_CLASS_RENDEZVOUS_STATE; i <= PICKLE_CLASS_ENCODE; i++) {
        CLEARED_BY(bytes_clear) struct bytes out = {0};
        struct pickle_writer writer;
        struct pickle_document document;
        struct text reason = {0};
        pickle_writer_begin(&writer, &out);
        pickle_write_class(&writer, (enum pickle_class)i);
        assert_int_equal(pickle_writer_end(&writer), FAILURE_NONE);
        assert_int_equal(pickle_read(bytes_slice(&out), &limits, &document, &reason), FAILURE_NONE);
        assert_int_equal(pickle_document_root(&document)->kind, PICKLE_VALUE_CLASS);
        assert_int_equal(pickle_document_root(&document)->of_class, i);
        pickle_document_clear(&document);
    }
    enum pickle_class found;
    assert_true(
        pickle_class_find(slice_from_string("__builtin__"), slice_from_string("set"), &found));
    assert_int_equal(found, PICKLE_CLASS_SET);
}

TEST(nothing_else_is_known) {
    assert_false(is_known("os", "system"));
    assert_false(is_known("builtins", "eval"));
    assert_false(is_known("__builtin__", "datetime"));
    assert_false(is_known("datetime", "datetime.now"));
    assert_false(is_known("datetime", "date"));
    assert_false(is_known("_codecs", "lookup"));
    assert_false(is_known("", ""));
    assert_false(is_known("torch.distributed.elastic.rendezvous.dynamic_rendezvous", "pickle"));
}
