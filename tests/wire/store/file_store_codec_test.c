/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/store/store_codec.h"

static const struct file_store_limits limits = FILE_STORE_LIMITS_DEFAULT;

/* The bytes that PyTorch 2.14.1 writes for: the constructor, set("k", "v"), add("c", -2),
 * delete_key("k"). */
static const uint8_t pytorchs_file[] = "\x09\0\0\0refcount/\x01\0\0\0"
                                       "1"
                                       "\x02\0\0\0/k\x01\0\0\0v"
                                       "\x02\0\0\0/c\x02\0\0\0-2"
                                       "\x03\0\0\0-/k\0\0\0\0";

static const struct file_store_record pytorchs_records[] = {
    {.key = {(const uint8_t *)"refcount/", 9}, .value = {(const uint8_t *)"1", 1}},
    {.key = {(const uint8_t *)"/k", 2}, .value = {(const uint8_t *)"v", 1}},
    {.key = {(const uint8_t *)"/c", 2}, .value = {(const uint8_t *)"-2", 2}},
    {.key = {(const uint8_t *)"/k", 2}, .is_removal = true},
};

#define RECORDS (sizeof pytorchs_records / sizeof *pytorchs_records)

TEST(pytorchs_file_is_read_record_by_record) {
    struct slice rest = {pytorchs_file, sizeof pytorchs_file - 1};
    for (size_t i = 0; i < RECORDS; i++) {
        struct file_store_record record;
        size_t consumed;
        assert_int_equal(file_store_record_read(rest, &limits, &record, &consumed), FAILURE_NONE);
        assert_true(slice_equals(record.key, pytorchs_records[i].key));
        assert_true(slice_equals(record.value, pytorchs_records[i].value));
        assert_int_equal(record.is_removal, pytorchs_records[i].is_removal);
        rest.data += consumed;
        rest.length -= consumed;
    }
    assert_int_equal(rest.length, 0);
}

TEST(records_are_written_as_pytorch_writes_them) {
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    for (size_t i = 0; i < RECORDS; i++) {
        assert_int_equal(file_store_record_append(&pytorchs_records[i], &out), FAILURE_NONE);
    }
    assert_true(
        slice_equals(bytes_slice(&out), (struct slice){pytorchs_file, sizeof pytorchs_file - 1}));
}

TEST(half_a_record_is_not_there_yet) {
    struct file_store_record record;
    size_t consumed = 99;
    for (size_t length = 0; length < 18; length++) {
        assert_int_equal(file_store_record_read(
                             (struct slice){pytorchs_file, length}, &limits, &record, &consumed),
            FAILURE_INCOMPLETE);
    }
    assert_int_equal(consumed, 99);
}

TEST(lengths_beyond_the_limits_are_refused_at_once) {
    struct file_store_record record;
    size_t consumed;
    const struct slice script = slice_from_string("#!/bin/sh");
    const struct slice long_value = {(const uint8_t *)"\x01\0\0\0k\x01\0\0\x04", 9};
    assert_int_equal(
        file_store_record_read(script, &limits, &record, &consumed), FAILURE_MALFORMED);
    assert_int_equal(
        file_store_record_read(long_value, &limits, &record, &consumed), FAILURE_MALFORMED);
}

TEST(a_key_without_a_byte_is_refused) {
    static const uint8_t zeros[16] = {0};
    struct file_store_record record;
    size_t consumed;
    struct slice input = {zeros, sizeof zeros};
    assert_int_equal(file_store_record_read(input, &limits, &record, &consumed), FAILURE_MALFORMED);
}

TEST(keys_that_would_be_misread_are_not_written) {
    struct bytes out = {0};
    const struct file_store_record removal_like = {.key = slice_from_string("-/k")};
    const struct file_store_record empty = {.value = slice_from_string("v")};
    assert_int_equal(file_store_record_append(&removal_like, &out), FAILURE_INVALID);
    assert_int_equal(file_store_record_append(&empty, &out), FAILURE_INVALID);
    assert_int_equal(out.length, 0);
}

TEST_OF(bytes, a_full_buffer_stays_as_it_was, bytes_init(&fixture, 20), bytes_clear) {
    assert_int_equal(file_store_record_append(&pytorchs_records[1], fixture), FAILURE_NONE);
    assert_int_equal(file_store_record_append(&pytorchs_records[1], fixture), FAILURE_LIMIT);
    assert_int_equal(fixture->length, 11);
}
