/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

static char names[] = "node7.local 10.0.0.7";

TEST(it_is_spelled_as_the_header_says) {
    CLEARED_BY(text_clear) struct text text = {0};
    host_answer_write(&(struct host_answer){3, {29400, names}}, &text);
    assert_string_equal(text_string(&text),
        "{\"muster_host\": 1, \"term\": 3, \"place\": \"29400 node7.local 10.0.0.7\"}");
    text_clear(&text);
    host_answer_write(&(struct host_answer){0}, &text);
    assert_string_equal(text_string(&text), "{\"muster_host\": 1, \"term\": 0}");
}

/* Handover word. */

TEST(each_word_is_read_as_itself) {
    for (int i = 0; i < HANDOVER_WORD_COUNT; i++) {
        enum handover_word word = HANDOVER_WORD_COUNT;
        assert_true(handover_word_read(
            slice_from_string(handover_word_text((enum handover_word)i)), &word));
        assert_int_equal(word, i);
    }
}

TEST(no_other_text_is_a_word) {
    static const char *const texts[] = {"", "name", "named ", "Moved", "moved 3", "standing 2"};
    enum handover_word word = HANDOVER_MOVED;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(handover_word_read(slice_from_string(texts[i]), &word));
        assert_int_equal(word, HANDOVER_MOVED);
    }
}

/* Torchrun refusal. */

TEST(it_is_a_pickle_that_names_one_module_without_packages) {
    CLEARED_BY(text_clear) struct text text = {0};
    struct bytes pickle;
    bytes_init(&pickle, 4096);
    torchrun_refusal_write_of_succession(&text);
    assert_int_equal(base64_decode(slice_from_string(text_string(&text)), &pickle), FAILURE_NONE);
    const char *name = (const char *)pickle.data;
    assert_true(pickle.length > 40 && name[0] == 'c');
    const char *end = memchr(name, '\n', pickle.length);
    assert_non_null(end);
    assert_null(memchr(name, '.', (size_t)(end - name)));
    assert_memory_equal(end, "\nmuster\n.", (size_t)(name + pickle.length - end));
    bytes_clear(&pickle);
}

/* Protocol version. */

#define SIXTY_THREE "012345678901234567890123456789012345678901234567890123456789012"

TEST(this_program_has_a_version_that_can_be_read) {
    struct protocol_version own = protocol_version_own();
    struct protocol_version read;
    CLEARED_BY(text_clear) struct text text = {0};
    protocol_version_write(&own, &text);
    assert_string_equal(text_string(&text), "1 muster " MUSTER_VERSION);
    assert_int_equal(
        protocol_version_read(slice_from_string(text_string(&text)), &read), FAILURE_NONE);
    assert_int_equal(read.number, own.number);
    assert_string_equal(read.program, own.program);
}

TEST(a_later_version_is_read_and_described) {
    struct protocol_version version;
    CLEARED_BY(text_clear) struct text text = {0};
    struct slice later = slice_from_string("999999 muster 12.0~rc1");
    assert_int_equal(protocol_version_read(later, &version), FAILURE_NONE);
    protocol_version_describe(&version, &text);
    assert_string_equal(
        text_string(&text), "muster 12.0~rc1, which speaks version 999999 of Muster's protocol");
    assert_int_equal(
        protocol_version_read(slice_from_string("1 " SIXTY_THREE), &version), FAILURE_NONE);
    assert_string_equal(version.program, SIXTY_THREE);
}

TEST(other_texts_are_no_versions) {
    static const char *const texts[] = {"", " ", "1", "1 ", "muster 1", "0 muster", "01 muster",
        "-1 muster", "+1 muster", "1_0 muster", "1\tmuster", "1000000 muster",
        "99999999999999999999 muster", "1 \033[2J", "1 m\n", "1 \x7f", "1 m\xc3\xbc",
        "1 " SIXTY_THREE "3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct protocol_version version = {.number = 7, .program = "kept"};
        assert_int_equal(
            protocol_version_read(slice_from_string(texts[i]), &version), FAILURE_MALFORMED);
        assert_int_equal(version.number, 7);
        assert_string_equal(version.program, "kept");
    }
}
