/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "wire/register/register_entry_text.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define PROCESS "fedcba9876543210fedcba9876543210"

static struct register_entry make_entry(const char *host, const char *addresses, size_t length) {
    struct register_entry entry = {
        .number = 7,
        .kind = REGISTER_ENTRY_HANDOVER,
        .term = 3,
        .host = memory_duplicate_string(host),
        .addresses = memory_duplicate_string(addresses),
        .settings = memory_duplicate_string(""),
        .process = PROCESS,
        .nonce = NONCE,
    };
    assert_int_equal(bytes_grow(&entry.record, length + 1), FAILURE_NONE);
    memset(entry.record.data, 0xfb, length);
    entry.record.length = length;
    return entry;
}

static enum failure_code read_text(const char *text, struct text *reason) {
    struct register_entry entry;
    enum failure_code code = register_entry_read(slice_from_string(text), &entry, reason);
    if (code == FAILURE_NONE) {
        register_entry_clear(&entry);
    }
    return code;
}

static void expect_survives(struct register_entry *entry) {
    CLEARED_BY(text_clear) struct text text = {0};
    struct register_entry again;
    assert_int_equal(register_entry_check(entry), FAILURE_NONE);
    register_entry_write(entry, &text);
    assert_true(text.length <= REGISTER_ENTRY_TEXT_MAXIMUM);
    assert_int_equal(
        register_entry_read(slice_from_string(text_string(&text)), &again, NULL), FAILURE_NONE);
    assert_int_equal(again.number, entry->number);
    assert_string_equal(again.nonce, entry->nonce);
    assert_int_equal(again.kind, entry->kind);
    assert_int_equal(again.term, entry->term);
    assert_string_equal(again.host, entry->host);
    assert_string_equal(again.process, entry->process);
    assert_string_equal(again.addresses, entry->addresses);
    assert_string_equal(again.settings, entry->settings);
    assert_true(slice_equals(bytes_slice(&again.record), bytes_slice(&entry->record)));
    register_entry_clear(&again);
    register_entry_clear(entry);
}

TEST(entry_is_one_json_object) {
    struct register_entry entry = make_entry("node \"1\"", "10.0.0.1:1,[::1]:2", 2);
    CLEARED_BY(text_clear) struct text text = {0};
    register_entry_write(&entry, &text);
    assert_string_equal(text_string(&text),
        "{\"muster_register\": 1, \"number\": 7, \"term\": 3, \"kind\": \"handover\", \"host\": "
        "\"node \\\"1\\\"\", \"process\": \"" PROCESS
        "\", \"addresses\": \"10.0.0.1:1,[::1]:2\", \"settings\": \"\", "
        "\"nonce\": \"" NONCE "\", \"record\": \"+/s=\"}\n");
    expect_survives(&entry);
}

TEST(largest_entry_fits) {
    FREED char *host = memory_allocate(REGISTER_ENTRY_HOST_MAXIMUM + 1);
    FREED char *addresses = memory_allocate(REGISTER_ENTRY_ADDRESSES_MAXIMUM + 1);
    memset(host, 1, REGISTER_ENTRY_HOST_MAXIMUM); /* six characters each in JSON */
    memset(addresses, 1, REGISTER_ENTRY_ADDRESSES_MAXIMUM);
    struct register_entry entry = make_entry(host, addresses, REGISTER_ENTRY_RECORD_MAXIMUM);
    expect_survives(&entry);
    entry = make_entry(host, addresses, REGISTER_ENTRY_RECORD_MAXIMUM - 1);
    expect_survives(&entry);
}

TEST(members_of_later_versions_are_skipped) {
    assert_int_equal(read_text("{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": "
                               "\"claim\", \"host\": \"h\", \"addresses\": \"\", \"settings\": "
                               "\"\", \"nonce\": \"" NONCE "\", \"record\": \"\", \"new\": [1]}",
                         NULL),
        FAILURE_NONE);
}

TEST(other_texts_are_refused_with_a_reason) {
    static const struct {
        const char *text;
        enum failure_code code;
        const char *reason;
    } cases[] = {
        {"", FAILURE_MALFORMED, "is no JSON"},
        {"hello", FAILURE_MALFORMED, "is no JSON"},
        {"[]", FAILURE_MALFORMED, "is no entry of Muster's"},
        {"{\"number\": 1}", FAILURE_MALFORMED, "is no entry of Muster's"},
        {"{\"muster_register\": 2}", FAILURE_UNSUPPORTED,
            "was written by another version of Muster"},
        {"{\"muster_register\": 1}", FAILURE_MALFORMED, "has no number or no term"},
        {"{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": \"x\"}", FAILURE_MALFORMED,
            "is of no known kind"},
        {"{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": \"claim\"}",
            FAILURE_MALFORMED, "has no record"},
        {"{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": \"claim\", \"record\": "
         "\"A\"}",
            FAILURE_MALFORMED, "has a broken record"},
        {"{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": \"claim\", \"host\": "
         "\"h\", "
         "\"addresses\": \"\", \"settings\": \"\", \"process\": \"1\", \"nonce\": \"" NONCE
         "\", \"record\": \"\"}",
            FAILURE_MALFORMED, "lacks a part, or has numbers out of range"},
        {"{\"muster_register\": 1, \"number\": 1, \"term\": 1, \"kind\": \"claim\", \"record\": "
         "\"\"}",
            FAILURE_MALFORMED, "lacks a part, or has numbers out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEARED_BY(text_clear) struct text reason = {0};
        assert_int_equal(read_text(cases[i].text, &reason), cases[i].code);
        assert_string_equal(text_string(&reason), cases[i].reason);
    }
}

TEST(text_beyond_the_limit_is_not_parsed) {
    struct slice input = {(const uint8_t *)"{}", REGISTER_ENTRY_TEXT_MAXIMUM + 1};
    struct register_entry entry;
    assert_int_equal(register_entry_read(input, &entry, NULL), FAILURE_LIMIT);
}
