/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "wire/telling/stacks_json.h"

#define HEAD "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":61.200,\"node\":2}\n"
#define PLACE(ranks)                                                                               \
    "{\"schema\":\"muster.stacks/1\",\"ranks\":" ranks                                             \
    ",\"words\":\"\",\"stack\":[\"train.py:214 in all_reduce\"]}\n"
#define HANG(rank, what)                                                                           \
    "{\"schema\":\"muster.hang/1\",\"round\":3,\"silence\":61.200,\"rank\":" rank                  \
    ",\"what\":" what ",\"where\":\"read (data.py:88)\"}"

static enum failure_code read(const char *text, struct standstill *out_standstill) {
    return standstill_json_read(slice_from_string(text), out_standstill);
}

TEST(what_a_node_tells_is_read_as_it_was_written) {
    CLEARED_BY(standstill_clear)
    struct standstill told = {.node_rank = 2, .round = 3, .silence = duration_from_seconds(61.2)};
    CLEARED_BY(standstill_clear) struct standstill again = {0};
    CLEARED_BY(text_clear) struct text text = {0};
    folded_stacks_add(&told.places, "train.py:214 in all_reduce\n", "", true, 4, 1);
    folded_stacks_add(&told.places, "train.py:214 in all_reduce\n", "", true, 5, 1);
    standstill_json_write(&told, &text);
    assert_string_equal(text_string(&text), HEAD PLACE("[4,5]"));
    assert_int_equal(read(text_string(&text), &again), FAILURE_NONE);
    assert_int_equal(again.node_rank, 2);
    assert_int_equal(again.round, 3);
    assert_int_equal(again.silence.nanoseconds, told.silence.nanoseconds);
    assert_int_equal(again.places.count, 1);
    assert_int_equal(again.places.items[0].rank_count, 2);
}

TEST(nonsense_is_no_standstill) {
    static const char *const wrong[] = {"", "{", "{}\n", "[]\n", HEAD "x", HEAD "{}\n",
        HEAD PLACE("[]"), HEAD PLACE("[-1]"), HANG("1", "\"a\"") "\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":61.2,\"node\":2}",
        "{\"schema\":\"muster.standstill/1\",\"round\":-1,\"silence\":61.2,\"node\":2}\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":-1,\"node\":2}\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":1e300,\"node\":2}\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":1,\"node\":-2}\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":1,\"node\":2147483648}\n",
        "{\"schema\":\"muster.standstill/1\",\"round\":3,\"silence\":1}\n"};
    struct standstill standstill;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read(wrong[i], &standstill), FAILURE_MALFORMED);
    }
}

static void add_place(struct text *text, int number, int ranks) {
    text_append_format(text, "{\"schema\":\"muster.stacks/1\",\"ranks\":[0");
    for (int rank = 1; rank < ranks; rank++) {
        text_append_format(text, ",%d", rank);
    }
    text_append_format(text, "],\"words\":\"\",\"stack\":[\"%d\"]}\n", number);
}

TEST(more_places_or_ranks_than_a_node_has_are_refused) {
    for (int is_too_much = 0; is_too_much < 2; is_too_much++) {
        CLEARED_BY(text_clear) struct text places = {0};
        CLEARED_BY(text_clear) struct text ranks = {0};
        CLEARED_BY(standstill_clear) struct standstill standstill = {0};
        CLEARED_BY(standstill_clear) struct standstill other = {0};
        enum failure_code expected = is_too_much ? FAILURE_MALFORMED : FAILURE_NONE;
        text_append(&places, HEAD);
        text_append(&ranks, HEAD);
        for (int i = 0; i < STANDSTILL_PLACES_MAXIMUM + is_too_much; i++) {
            add_place(&places, i, 1);
        }
        add_place(&ranks, 0, STANDSTILL_RANKS_MAXIMUM + is_too_much);
        assert_int_equal(read(text_string(&places), &standstill), expected);
        assert_int_equal(read(text_string(&ranks), &other), expected);
    }
}

TEST(what_there_is_no_room_for_is_left_out) {
    CLEARED_BY(standstill_clear) struct standstill told = {.silence = {1000000000}};
    CLEARED_BY(standstill_clear) struct standstill again = {0};
    CLEARED_BY(text_clear) struct text text = {0};
    char line[2000];
    memset(line, 'f', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int place = 0; place < 2 * STANDSTILL_PLACES_MAXIMUM; place++) {
        FREED char *stack = text_format("%d%s\n", place, line);
        folded_stacks_add(&told.places, stack, "", true, place, 1);
    }
    standstill_json_write(&told, &text);
    assert_true(text.length <= STANDSTILL_JSON_MAXIMUM);
    assert_int_equal(read(text_string(&text), &again), FAILURE_NONE);
    assert_in_range(again.places.count, 10, STANDSTILL_PLACES_MAXIMUM);
}

TEST(what_the_host_has_found_is_read_as_it_was_written) {
    CLEARED_BY(job_hang_clear)
    struct job_hang found = {.round = 3,
        .silence = duration_from_seconds(61.2),
        .rank = 417,
        .what = text_format("rank 417 in \"read\""),
        .where = text_format("read (data.py:88)")};
    CLEARED_BY(job_hang_clear) struct job_hang again = {0};
    CLEARED_BY(text_clear) struct text text = {0};
    job_hang_json_write(&found, &text);
    assert_string_equal(text_string(&text), HANG("417", "\"rank 417 in \\\"read\\\"\""));
    assert_int_equal(
        job_hang_json_read(slice_from_string(text_string(&text)), &again), FAILURE_NONE);
    assert_int_equal(again.round, 3);
    assert_int_equal(again.rank, 417);
    assert_string_equal(again.what, found.what);
    assert_string_equal(again.where, found.where);
}

TEST(nonsense_is_no_hang) {
    static const char *const wrong[] = {"", "{}", HEAD, HANG("-1", "\"a\""),
        HANG("2147483648", "\"a\""), HANG("\"1\"", "\"a\""), HANG("1", "7"), HANG("1", "null")};
    struct job_hang found;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            job_hang_json_read(slice_from_string(wrong[i]), &found), FAILURE_MALFORMED);
    }
}

TEST(texts_of_others_may_be_shown) {
    CLEARED_BY(job_hang_clear) struct job_hang found = {0};
    const char *hostile = HANG("1", "\"a\\u001b[2Jb\\nc\\u202ed\"");
    assert_int_equal(job_hang_json_read(slice_from_string(hostile), &found), FAILURE_NONE);
    assert_null(strpbrk(found.what, "\x1b\n"));
    assert_null(strstr(found.what, "\xe2\x80\xae"));
}
