/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "wire/failure/failure_json.h"

static struct failure_account sample(void) {
    return (struct failure_account){
        .host = memory_duplicate_string("node2"),
        .node = memory_duplicate_string("node2_17_3"),
        .group_rank = 2,
        .rank = 5,
        .local_rank = 1,
        .role_rank = 4,
        .seconds = 1700000000,
        .pid = 4711,
        .exit = {.value = 1},
        .error_file = memory_duplicate_string("/logs/1/error.json"),
        .log_file = memory_duplicate_string("/logs/1/stderr.log"),
        .message = memory_duplicate_string("Traceback:\n  ValueError: b\303\266\303\266m\n"),
        .is_message_object = true,
        .summary = memory_duplicate_string("ValueError: b\303\266\303\266m"),
    };
}

static enum failure_code read_back(
    const struct failure_account *account, struct failure_account *out_account) {
    CLEARED_BY(text_clear) struct text text = {0};
    failure_json_write(account, &text);
    enum failure_code code = failure_json_read(slice_from_string(text_string(&text)), out_account);
    return code;
}

TEST(what_is_written_is_read) {
    CLEARED_BY(failure_account_clear) struct failure_account account = sample();
    struct failure_account again;
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    assert_string_equal(again.host, "node2");
    assert_string_equal(again.node, "node2_17_3");
    assert_int_equal(again.group_rank, 2);
    assert_int_equal(again.rank, 5);
    assert_int_equal(again.local_rank, 1);
    assert_int_equal(again.role_rank, 4);
    assert_true(again.seconds == 1700000000);
    assert_true(again.pid == 4711);
    assert_false(again.exit.is_signal);
    assert_int_equal(again.exit.value, 1);
    assert_string_equal(again.error_file, account.error_file);
    assert_string_equal(again.log_file, account.log_file);
    assert_string_equal(again.message, account.message);
    assert_true(again.is_message_object);
    assert_string_equal(again.summary, account.summary);
    assert_null(again.evidence);
    assert_null(again.start_message);
    failure_account_clear(&again);
}

TEST(every_way_to_fail_survives) {
    CLEARED_BY(failure_account_clear) struct failure_account account = sample();
    struct failure_account again;
    account.exit = (struct process_exit){.is_signal = true, .value = 11, .has_dumped_core = true};
    account.is_message_object = false;
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    assert_true(again.exit.is_signal);
    assert_true(again.exit.has_dumped_core);
    assert_int_equal(again.exit.value, 11);
    assert_false(again.is_message_object);
    failure_account_clear(&again);

    account.stuck = duration_from_seconds(2.5);
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    assert_true(again.stuck.nanoseconds == 2500000000);
    failure_account_clear(&again);

    account.stuck = (struct duration){0};
    account.start_message = memory_duplicate_string("no such file");
    account.pid = 0;
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    assert_string_equal(again.start_message, "no such file");
    failure_account_clear(&again);
}

static char *repeated(const char *piece, size_t count) {
    struct text text = {0};
    for (size_t i = 0; i < count; i++) {
        text_append(&text, piece);
    }
    return text_take(&text);
}

TEST(long_texts_lose_what_matters_least) {
    CLEARED_BY(failure_account_clear) struct failure_account account = sample();
    struct failure_account again;
    free(account.message);
    free(account.summary);
    account.message = repeated("\342\202\254", FAILURE_JSON_MESSAGE_MAXIMUM);
    account.summary = repeated("\342\202\254", FAILURE_JSON_TEXT_MAXIMUM);
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    assert_true(strlen(again.message) <= FAILURE_JSON_MESSAGE_MAXIMUM);
    assert_true(strlen(again.message) > FAILURE_JSON_MESSAGE_MAXIMUM - 3);
    assert_int_equal(strncmp(again.message, "(the beginning is left out)\n\342\202\254", 31), 0);
    assert_int_equal(strlen(again.summary), FAILURE_JSON_TEXT_MAXIMUM / 3 * 3);
    failure_account_clear(&again);
}

TEST(the_longest_account_can_be_read) {
    CLEARED_BY(failure_account_clear) struct failure_account account = sample();
    struct failure_account again;
    char **const texts[] = {&account.host, &account.node, &account.error_file, &account.log_file,
        &account.summary, &account.evidence, &account.note, &account.start_message,
        &account.message};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(*texts[i]);
        *texts[i] = repeated("\001", 2 * FAILURE_JSON_MESSAGE_MAXIMUM);
    }
    assert_int_equal(read_back(&account, &again), FAILURE_NONE);
    failure_account_clear(&again);
}

#define NUMBERS                                                                                    \
    "\"rank\": 5, \"local_rank\": 1, \"group_rank\": 2, \"role_rank\": 4, \"time\": 1, \"pid\": 2"

TEST(odd_accounts_are_refused) {
    static const struct {
        const char *text;
        enum failure_code code;
    } cases[] = {
        {"", FAILURE_MALFORMED},
        {"[]", FAILURE_MALFORMED},
        {"{}", FAILURE_MALFORMED},
        {"{" NUMBERS ", \"exit_code\": 1}", FAILURE_MALFORMED},
        {"{" NUMBERS ", \"host\": \"a\"}", FAILURE_MALFORMED},
        {"{" NUMBERS ", \"host\": 7, \"exit_code\": 1}", FAILURE_MALFORMED},
        {"{" NUMBERS ", \"host\": \"a\", \"exit_code\": 1, \"message\": {}}", FAILURE_MALFORMED},
        {"{" NUMBERS ", \"host\": \"a\", \"exit_code\": 256}", FAILURE_LIMIT},
        {"{" NUMBERS ", \"host\": \"a\", \"signal\": 0}", FAILURE_LIMIT},
        {"{" NUMBERS ", \"host\": \"a\", \"signal\": 65}", FAILURE_LIMIT},
        {"{" NUMBERS ", \"host\": \"a\", \"stuck_milliseconds\": 0}", FAILURE_LIMIT},
        {"{" NUMBERS ", \"host\": \"a\", \"stuck_milliseconds\": 9223372036854775807}",
            FAILURE_LIMIT},
        {"{\"rank\": -1}", FAILURE_LIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failure_account account;
        assert_int_equal(
            failure_json_read(slice_from_string(cases[i].text), &account), cases[i].code);
    }
    struct failure_account account;
    char *text = text_format("{" NUMBERS ", \"exit_code\": 1, \"host\": \"%*s\"}",
        (int)FAILURE_JSON_TEXT_MAXIMUM + 1, "");
    assert_int_equal(failure_json_read(slice_from_string(text), &account), FAILURE_LIMIT);
    free(text);
    text = text_format("%*s", (int)FAILURE_JSON_MAXIMUM_SIZE + 1, "{}");
    assert_int_equal(failure_json_read(slice_from_string(text), &account), FAILURE_LIMIT);
    free(text);
}
