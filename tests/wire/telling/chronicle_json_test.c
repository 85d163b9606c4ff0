/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/telling/chronicle_json.h"

static enum failure_code read_line(const char *line, struct chronicle_entry *out_entry) {
    return chronicle_json_read_entry(slice_from_string(line), out_entry);
}

static struct chronicle_entry failed_worker(const char *words) {
    struct chronicle_entry entry = {.seq = 9007199254740992,
        .time = {INT64_C(1764378610123456000)},
        .kind = CHRONICLE_WORKER_FAILED,
        .severity = CHRONICLE_ERROR,
        .round = 4,
        .has_round = true};
    chronicle_entry_set_node(&entry, "gpu-n052");
    chronicle_entry_add(&entry, CHRONICLE_RANK, 417);
    chronicle_entry_add(&entry, CHRONICLE_LOCAL_RANK, 1);
    chronicle_entry_add(&entry, CHRONICLE_PID, 4711);
    chronicle_entry_add(&entry, CHRONICLE_EXIT, 7);
    chronicle_entry_add_text(&entry, CHRONICLE_TEXT, words);
    chronicle_entry_add(&entry, CHRONICLE_FIRST, 1);
    return entry;
}

TEST(entry_that_is_read_is_the_one_that_was_written) {
    struct chronicle_entry entry = failed_worker("ValueError: boom");
    struct chronicle_entry again = {0};
    struct text line = {0};
    struct text second = {0};
    chronicle_json_write_entry(&entry, &line);
    assert_int_equal(read_line(text_string(&line), &again), FAILURE_NONE);
    assert_true(again.time.nanoseconds == entry.time.nanoseconds);
    chronicle_json_write_entry(&again, &second);
    assert_string_equal(text_string(&second), text_string(&line));
    text_clear(&line);
    text_clear(&second);
    chronicle_entry_clear(&entry);
    chronicle_entry_clear(&again);
}

#define START                                                                                      \
    "{\"schema\":\"muster.event/1\",\"seq\":1,\"time\":1,\"node\":\"a\",\"severity\":\"info\","

TEST(what_is_no_entry_is_refused) {
    static const char *const lines[] = {"", "[]", "{}", "{\"schema\":\"muster.event/1\"}",
        "{\"schema\":\"muster.event/2\",\"seq\":1,\"time\":1,\"node\":\"a\",\"severity\":\"info\","
        "\"kind\":\"stopped\"}",
        START "\"kind\":\"stopped\",\"last\":\"0\"}", START "\"kind\":\"stopped\",\"last\":1e30}",
        START "\"kind\":\"stopped\",\"last\":4294967296}",
        START "\"kind\":\"stopped\",\"round\":-1}", START "\"kind\":\"stopped\"",
        START "\"kind\":\"node_lost\",\"silence\":-1}",
        START "\"kind\":\"node_lost\",\"silence\":1e300}",
        START "\"kind\":\"progress\",\"step\":1e19}",
        START "\"kind\":\"progress\",\"rate\":\"fast\"}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct chronicle_entry entry;
        assert_int_equal(read_line(lines[i], &entry), FAILURE_MALFORMED);
    }
}

TEST(kind_of_a_later_version_is_told_apart) {
    struct chronicle_entry entry;
    assert_int_equal(read_line(START "\"kind\":\"drained\"}", &entry), FAILURE_MISSING);
}

TEST(member_of_a_later_version_is_passed_over) {
    struct chronicle_entry entry;
    assert_int_equal(read_line(START "\"kind\":\"stopped\",\"why\":[1],\"last\":3}", &entry), 0);
    assert_int_equal(chronicle_entry_number(&entry, CHRONICLE_LAST, -1), 3);
    chronicle_entry_clear(&entry);
}

/* The law: the same entries give the same status, here and from a file. */
static void tell(struct chronicle_status *status, struct text *file, int64_t seq,
    enum chronicle_kind kind, int64_t microseconds) {
    struct chronicle_entry entry = {.seq = seq,
        .time = {INT64_C(1764378610000000000) + microseconds * CHRONICLE_GRAIN_NANOSECONDS},
        .kind = kind,
        .has_round = true};
    chronicle_entry_set_node(&entry, "n\xc3\xb6"
                                     "de");
    if (kind == CHRONICLE_STOPPING) {
        chronicle_entry_add_text(&entry, CHRONICLE_REASON, "rank 3 failed: \"no\"");
        chronicle_entry_add_text(&entry, CHRONICLE_CAUSE, "worker_failed");
    } else if (kind == CHRONICLE_WORLD) {
        chronicle_entry_add(&entry, CHRONICLE_NODES, 2);
        chronicle_entry_add(&entry, CHRONICLE_WORKERS, 16);
        chronicle_entry_add(&entry, CHRONICLE_CHARGED, seq > 4);
    }
    chronicle_status_take(status, &entry);
    chronicle_json_write_entry(&entry, file);
    chronicle_entry_clear(&entry);
}

static void take_lines(const char *file, struct chronicle_status *status) {
    const char *end;
    while ((end = strchr(file, '\n')) != NULL) {
        struct chronicle_entry entry;
        assert_int_equal(chronicle_json_read_entry(
                             (struct slice){(const uint8_t *)file, (size_t)(end - file)}, &entry),
            FAILURE_NONE);
        chronicle_status_take(status, &entry);
        chronicle_entry_clear(&entry);
        file = end + 1;
    }
}

TEST(same_entries_give_the_same_status_here_and_from_a_file) {
    static const enum chronicle_kind kinds[] = {CHRONICLE_WAITING, CHRONICLE_WORLD,
        CHRONICLE_JOINED, CHRONICLE_STARTED, CHRONICLE_STOPPING, CHRONICLE_STOPPED, CHRONICLE_WORLD,
        CHRONICLE_JOINED, CHRONICLE_STARTED, CHRONICLE_ENDED};
    struct chronicle_status here = {0};
    struct chronicle_status there = {0};
    struct text file = {0};
    const struct chronicle_view view = {.run_id = "job", .has_nodes = true};
    struct text told = {0};
    struct text again = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tell(&here, &file, (int64_t)i + 1, kinds[i], (int64_t)(i * i * 999983));
    }
    take_lines(text_string(&file), &there);
    chronicle_json_write_status(&here, &view, &told);
    chronicle_json_write_status(&there, &view, &again);
    assert_string_equal(text_string(&told), text_string(&again));
    assert_non_null(strstr(text_string(&told), "\"charged\":true,\"over\":true"));
    chronicle_status_clear(&here);
    chronicle_status_clear(&there);
    text_clear(&file);
    text_clear(&told);
    text_clear(&again);
}
