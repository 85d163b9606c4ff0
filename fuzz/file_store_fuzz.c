/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary bytes as a FileStore's file. Every record is read only when it is complete, and
 * is written as it was read. The resulting contents answer requests within their ceilings. */
#include <string.h>

#include "core/store/file_store_contents.h"
#include "fuzz_input.h"
#include "wire/store/store_codec.h"

static const struct file_store_limits limits = {
    .key_bytes = 300, .value_bytes = 5000, .entries = 50, .memory_bytes = 20000};

/* A deletion may carry a value that is not used, and a key that cannot be written. */
static void check_spelling(const struct file_store_record *record, struct slice bytes) {
    struct bytes out = {0};
    if (file_store_record_append(record, &out) == FAILURE_NONE) {
        FUZZ_REQUIRE(record->is_removal
                         ? slice_starts_with(bytes, (struct slice){out.data, out.length - 4})
                         : slice_equals(bytes_slice(&out), bytes));
    } else {
        FUZZ_REQUIRE(record->is_removal);
    }
    bytes_clear(&out);
}

static void check_taken(
    const struct file_store_contents *contents, const struct file_store_record *record) {
    struct file_store_answer answer = {0};
    struct store_request request = {.operation = STORE_GET, .key = record->key};
    FUZZ_REQUIRE(file_store_answer_find(&answer, contents, &request, true) == FAILURE_NONE);
    FUZZ_REQUIRE(answer.is_waiting == record->is_removal);
    FUZZ_REQUIRE(record->is_removal || slice_equals(answer.reply.blob, record->value));
    file_store_answer_clear(&answer);
}

static size_t count_keys(const struct file_store_contents *contents) {
    struct file_store_answer answer = {0};
    struct store_request request = {.operation = STORE_COUNT_KEYS};
    FUZZ_REQUIRE(file_store_answer_find(&answer, contents, &request, false) == FAILURE_NONE);
    size_t count = (size_t)answer.reply.integer;
    file_store_answer_clear(&answer);
    return count;
}

/* Uses the last record's key and value in a request of every kind. */
static void ask_everything(
    struct file_store_contents *contents, const struct file_store_record *last) {
    struct file_store_answer answer = {0};
    for (int operation = 0; operation < STORE_OPERATION_COUNT; operation++) {
        struct store_request request = {.operation = (enum store_operation)operation,
            .number = 7,
            .key = last->key,
            .value = last->value,
            .expected = last->value,
            .keys = &last->key,
            .values = &last->value,
            .count = 1};
        enum failure_code code = file_store_answer_find(&answer, contents, &request, false);
        FUZZ_REQUIRE(code == FAILURE_NONE || answer.record_count == 0);
        for (size_t i = 0; i < answer.record_count; i++) {
            FUZZ_REQUIRE(file_store_request_writes(request.operation));
            FUZZ_REQUIRE(file_store_contents_take(contents, &answer.records[i]) == FAILURE_NONE);
        }
    }
    file_store_answer_clear(&answer);
}

/* Reads the whole file; `piece` bytes at a time become visible. */
static struct file_store_contents *read_file(
    struct slice file, size_t piece, struct file_store_record *out_last) {
    struct file_store_contents *contents = file_store_contents_new(&limits);
    size_t position = 0;
    for (size_t visible = 0; visible <= file.length;) {
        struct file_store_record record;
        size_t consumed;
        struct slice input = {file.data + position, visible - position};
        enum failure_code code = file_store_record_read(input, &limits, &record, &consumed);
        if (code == FAILURE_INCOMPLETE) {
            visible = visible < file.length && file.length - visible < piece ? file.length
                                                                             : visible + piece;
            continue;
        }
        if (code != FAILURE_NONE || file_store_contents_take(contents, &record) != FAILURE_NONE) {
            break;
        }
        check_spelling(&record, (struct slice){input.data, consumed});
        check_taken(contents, &record);
        position += consumed;
        *out_last = record;
    }
    FUZZ_REQUIRE(count_keys(contents) <= limits.entries);
    return contents;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice file = {data, size};
    struct file_store_record last = {0};
    struct file_store_record last_again = {0};
    struct file_store_contents *contents = read_file(file, size + 1, &last);
    struct file_store_contents *again = read_file(file, 3, &last_again);
    FUZZ_REQUIRE(slice_equals(last.key, last_again.key));
    FUZZ_REQUIRE(count_keys(contents) == count_keys(again));
    ask_everything(contents, &last);
    file_store_contents_free(again);
    file_store_contents_free(contents);
    return 0;
}
