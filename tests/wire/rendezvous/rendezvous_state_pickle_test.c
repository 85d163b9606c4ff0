/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "pickle_fixture.h"
#include "pickle_vectors.h"
#include "record_tools.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

#define MOMENT INT64_C(1795174428123456000) /* 2026-11-20 11:33:48.123456 UTC */

static void read_vector(const char *digits, struct rendezvous_state *record) {
    CLEARED_BY(bytes_clear) struct bytes pickle = {0};
    struct text reason = {0};
    append_hexadecimal(&pickle, digits);
    *record = (struct rendezvous_state){0};
    enum failure_code code = rendezvous_state_read_pickle(bytes_slice(&pickle), record, &reason);
    assert_string_equal(text_string(&reason), "");
    assert_int_equal(code, FAILURE_NONE);
}

static void assert_described(const struct rendezvous_state *record, const char *wanted) {
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_state_describe(record, &text);
    assert_string_equal(text_string(&text), wanted);
}

static struct rendezvous_node *obtain(
    struct rendezvous_state *record, const char *address, int64_t pid, int64_t local_id) {
    struct node_identity identity = {.pid = pid, .local_id = local_id};
    (void)snprintf(identity.address, sizeof identity.address, "%s", address);
    return rendezvous_state_obtain(record, &identity);
}

static void assert_comes_back(const struct rendezvous_state *record) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state read = {0};
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    struct text reason = {0};
    bool is_absent = true;
    assert_int_equal(rendezvous_state_write_text(record, &text), FAILURE_NONE);
    assert_int_equal(
        rendezvous_state_read_text(bytes_slice(&text), &is_absent, &read, &reason), FAILURE_NONE);
    assert_false(is_absent);
    assert_true(record_equals(record, &read));
}

/* As many nodes as a record may have, each with the longest address. */
TEST(the_largest_record_comes_back) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.round = 1};
    record.nodes = memory_allocate(RENDEZVOUS_NODES_MAXIMUM * sizeof *record.nodes);
    record.count = record.capacity = RENDEZVOUS_NODES_MAXIMUM;
    for (size_t i = 0; i < record.count; i++) {
        struct rendezvous_node *node = &record.nodes[i];
        node->is_participant = node->is_waiting = node->is_redundant = node->has_heartbeat = true;
        node->identity.pid = INT64_MAX;
        node->identity.local_id = INT64_MAX;
        node->identity.process = (struct node_process){UINT64_MAX >> 1, UINT64_MAX >> 1};
        node->heartbeat.nanoseconds = MOMENT;
        memset(node->identity.address, 'x', NODE_ADDRESS_SIZE - 1);
        char digits[24];
        int length = snprintf(digits, sizeof digits, "%zu", i);
        memcpy(node->identity.address + NODE_ADDRESS_SIZE - 1 - length, digits, (size_t)length);
    }
    assert_comes_back(&record);
}

TEST(a_complete_round_of_pytorch_is_read) {
    struct rendezvous_state record;
    read_vector(PICKLE_ONE_NODE, &record);
    assert_described(&record, "round 0 complete [localhost_4194304_0:0] wait [] spare []");
    assert_true(record.nodes[0].has_heartbeat);
    assert_int_equal(record.nodes[0].heartbeat.nanoseconds, INT64_C(1795174526312612000));
    rendezvous_state_clear(&record);
}

TEST(every_protocol_and_both_kinds_of_dates_say_the_same) {
    static const char *const vectors[] = {PICKLE_FOUR_NODES, PICKLE_FOUR_NODES_NAIVE,
        PICKLE_FOUR_NODES_PROTOCOL_2, PICKLE_FOUR_NODES_PROTOCOL_3};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct rendezvous_state record;
        read_vector(vectors[i], &record);
        assert_int_equal(record.round, 7);
        assert_false(record.is_complete || record.is_closed);
        assert_true(record.has_deadline);
        assert_int_equal(record.deadline.nanoseconds, INT64_C(1795174458000000000));
        assert_int_equal(record.count, 4);
        const struct rendezvous_node *a = obtain(&record, "hosta", 300, 0);
        const struct rendezvous_node *b = obtain(&record, "hostb", 70000, 1);
        const struct rendezvous_node *c = obtain(&record, "hostb", 301, 2);
        const struct rendezvous_node *d = obtain(&record, "hostc", 5, 0);
        assert_int_equal(record.count, 4);
        assert_true(a->is_participant && a->rank == 0 && a->heartbeat.nanoseconds == MOMENT);
        assert_true(b->is_participant && b->rank == 1 && b->heartbeat.nanoseconds == MOMENT);
        assert_true(c->is_waiting && !c->is_participant && !c->is_redundant);
        assert_int_equal(c->heartbeat.nanoseconds, INT64_C(1795174429000005000));
        assert_true(d->is_redundant && !d->is_waiting && !d->has_heartbeat);
        assert_comes_back(&record);
        rendezvous_state_clear(&record);
    }
}

TEST(an_empty_record_is_written_as_the_protocol_says) {
    const struct rendezvous_state empty = {0};
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    assert_int_equal(rendezvous_state_write_pickle(&empty, &out), FAILURE_NONE);
    /* PROTO; the values that occur several times, stored and popped; the object and its eight
     * attributes */
    assert_hexadecimal(&out,
        "8004"
        "8c37746f7263682e64697374726962757465642e656c61737469632e72656e64657a766f75732e64796e616d"
        "69635f72656e64657a766f7573 8c095f4e6f646544657363 93 94 30"
        "8c0461646472 94 30 8c03706964 94 30 8c086c6f63616c5f6964 94 30"
        "8c086461746574696d65 8c086461746574696d65 93 94 30"
        "8c086461746574696d65 8c0874696d657a6f6e65 93"
        "8c086461746574696d65 8c0974696d6564656c7461 93 4b00 4b00 4b00 87 52 85 52 94 30"
        "8c37746f7263682e64697374726962757465642e656c61737469632e72656e64657a766f75732e64796e616d"
        "69635f72656e64657a766f7573 8c105f52656e64657a766f75735374617465 93 29 81 7d 28"
        "8c05726f756e64 4b00 8c08636f6d706c657465 89 8c08646561646c696e65 4e 8c06636c6f736564 89"
        "8c0c7061727469636970616e7473 7d 28 75 8c09776169745f6c697374 8f 28 90"
        "8c0f726564756e64616e63795f6c697374 8f 28 90"
        "8c0f6c6173745f68656172746265617473 7d 28 75 75 62 2e");
}

TEST(everything_in_a_record_comes_back) {
    CLEARED_BY(rendezvous_state_clear)
    struct rendezvous_state record = {.round = INT32_MAX,
        .is_complete = true,
        .is_closed = true,
        .has_deadline = true,
        .deadline = {MOMENT},
        .origin = 9,
        .base = 1000,
        .next_base = INT32_MAX,
        .next_restarts = 6,
        .restarts = 3,
        .wanted = 4,
        .ranked = 8,
        .size = 5,
        .is_draining = true,
        .is_frozen = true,
        .is_charged = true,
        .is_doubted = true,
        .has_failed = true,
        .signal = 10,
        .reason = "worker 3 of n\303\266de2 died"};
    struct rendezvous_node *node = obtain(&record, "n\303\266de2", INT64_MAX, INT64_MIN);
    node->is_participant = true;
    node->is_done = true;
    node->rank = 65535;
    node->has_heartbeat = true;
    node->heartbeat.nanoseconds = -1000;
    node = obtain(&record, "", 0, -1);
    node->is_waiting = true;
    node->is_redundant = true;
    node->identity.process = (struct node_process){UINT64_MAX, 1};
    node = obtain(&record, "only beats", 1, 2);
    node->has_heartbeat = true;
    node = obtain(&record, "everywhere", 1, 70000);
    node->is_participant = node->is_waiting = node->is_redundant = node->has_heartbeat = true;
    assert_comes_back(&record);
}

/* How often the workers of this node have failed first. */
static int blamed(const struct rendezvous_state *record, const char *name) {
    int count = 0;
    for (size_t i = 0; i < record->blame_count; i++) {
        count += text_equals(record->blames[i].address, name) ? (int)record->blames[i].count : 0;
    }
    return count;
}

/* The record is read again into `out_read`. */
static void read_again(const struct rendezvous_state *record, struct rendezvous_state *out_read) {
    CLEARED_BY(bytes_clear) struct bytes pickle = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(rendezvous_state_write_pickle(record, &pickle), FAILURE_NONE);
    assert_int_equal(
        rendezvous_state_read_pickle(bytes_slice(&pickle), out_read, &reason), FAILURE_NONE);
}

TEST(ages_of_restarts_and_blames_come_back) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.restarts = 4};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state read = {0};
    record.ages = (struct restart_ages){.count = 3, .seconds = {0, 12, RESTART_AGE_MAXIMUM}};
    (void)rendezvous_state_blame(&record, "n\303\266de 2");
    (void)rendezvous_state_blame(&record, "a");
    assert_int_equal(rendezvous_state_blame(&record, "n\303\266de 2"), 2);
    read_again(&record, &read);
    assert_int_equal(read.ages.count, 3);
    assert_int_equal(read.ages.seconds[1], 12);
    assert_int_equal(read.ages.seconds[2], RESTART_AGE_MAXIMUM);
    assert_int_equal(read.blame_count, 2);
    assert_string_equal(read.blames[0].address, "n\303\266de 2");
    assert_int_equal(blamed(&read, "n\303\266de 2"), 2);
    assert_int_equal(blamed(&read, "a"), 1);
    assert_int_equal(blamed(&read, "b"), 0);
}

TEST(as_many_ages_and_blames_as_there_may_be_come_back) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.restarts = 4};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state read = {0};
    record.ages.count = RESTART_HISTORY_MAXIMUM;
    for (int i = 0; i < 2 * RENDEZVOUS_BLAMES_MAXIMUM; i++) {
        char name[NODE_ADDRESS_SIZE];
        snprintf(name, sizeof name, "%0*d", NODE_ADDRESS_SIZE - 1, i);
        (void)rendezvous_state_blame(&record, name);
    }
    read_again(&record, &read);
    assert_int_equal(read.ages.count, RESTART_HISTORY_MAXIMUM);
    assert_int_equal(read.blame_count, RENDEZVOUS_BLAMES_MAXIMUM);
    assert_string_equal(read.blames[RENDEZVOUS_BLAMES_MAXIMUM - 1].address,
        record.blames[RENDEZVOUS_BLAMES_MAXIMUM - 1].address);
}

TEST(other_texts_are_no_ages) {
    static const char *const wrong[] = {
        " ", "1 ", " 1", "1  2", "a", "-1", "1,2", "100000000", "99999999999999999999", "1 2 x"};
    struct restart_ages ages = {.count = 7};
    CLEARED_BY(text_clear) struct text many = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(restart_ages_read(slice_from_string(wrong[i]), &ages));
    }
    for (int i = 0; i <= RESTART_HISTORY_MAXIMUM; i++) {
        text_append(&many, i > 0 ? " 1" : "1");
    }
    assert_false(restart_ages_read(slice_from_string(text_string(&many)), &ages));
    assert_int_equal(ages.count, 7);
    assert_true(restart_ages_read(slice_from_string(""), &ages));
    assert_int_equal(ages.count, 0);
}

TEST(three_thousand_nodes_come_back) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    for (int i = 0; i < 3000; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "node%d.cluster.example", i);
        struct rendezvous_node *node = obtain(&record, address, 1000 + i, 0x50000000 + i);
        node->is_participant = i < 2000;
        node->is_waiting = i >= 2000;
        node->rank = i < 2000 ? i : 0;
        node->has_heartbeat = true;
        node->heartbeat.nanoseconds = MOMENT + i * 1000;
    }
    assert_comes_back(&record);
}

TEST(a_bad_reason_is_repaired_and_a_bad_address_refused) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.reason = "cut \303"};
    struct rendezvous_state read = {0};
    CLEARED_BY(bytes_clear) struct bytes out = {0};
    struct text reason = {0};
    assert_int_equal(rendezvous_state_write_pickle(&record, &out), FAILURE_NONE);
    assert_int_equal(rendezvous_state_read_pickle(bytes_slice(&out), &read, &reason), FAILURE_NONE);
    assert_string_equal(read.reason, "cut ?");
    out.length = 1;
    obtain(&record, "n\366de", 1, 1)->is_waiting = true;
    assert_int_equal(rendezvous_state_write_pickle(&record, &out), FAILURE_INVALID);
    assert_int_equal(out.length, 1);
    assert_int_equal(rendezvous_state_write_text(&record, &out), FAILURE_INVALID);
    assert_int_equal(out.length, 1);
}

TEST(the_sentinel_says_that_there_is_no_record) {
    struct rendezvous_state record = {.round = 3};
    obtain(&record, "hosta", 1, 1)->is_waiting = true;
    struct text reason = {0};
    bool is_absent = false;
    assert_int_equal(rendezvous_state_read_text(
                         slice_from_string(RENDEZVOUS_STATE_ABSENT), &is_absent, &record, &reason),
        FAILURE_NONE);
    assert_true(is_absent);
    assert_int_equal(record.round, 0);
    assert_int_equal(record.count, 0);
}

static void assert_refused(struct slice input, enum failure_code wanted, const char *why) {
    struct rendezvous_state record = {.round = 3};
    CLEARED_BY(text_clear) struct text reason = {0};
    bool is_absent = true;
    assert_int_equal(rendezvous_state_read_text(input, &is_absent, &record, &reason), wanted);
    assert_string_equal(text_string(&reason), why);
    assert_int_equal(record.round, 3);
    assert_true(is_absent);
}

TEST(what_is_no_record_is_refused_with_its_reason) {
    static const struct {
        const char *pickle;
        enum failure_code code;
        const char *why;
    } wrong[] = {
        {"80054e2e", FAILURE_MALFORMED, "None, not a _RendezvousState"},
        {"8009", FAILURE_UNSUPPORTED, "pickle protocol 9, where 2 to 5 are read (at byte 0)"},
        {"7b7d", FAILURE_MALFORMED, "no pickle of protocol 2 to 5"},
        {"8002636f730a73797374656d0a", FAILURE_UNSUPPORTED,
            "refuses os.system: a record may hold only _RendezvousState, _NodeDesc, datetime, "
            "timezone, timedelta and set (at byte 2)"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CLEARED_BY(bytes_clear) struct bytes pickle = {0};
        CLEARED_BY(bytes_clear) struct bytes text = {0};
        append_hexadecimal(&pickle, wrong[i].pickle);
        assert_int_equal(base64_encode(bytes_slice(&pickle), &text), FAILURE_NONE);
        assert_refused(bytes_slice(&text), wrong[i].code, wrong[i].why);
    }
    assert_refused(
        slice_from_string(""), FAILURE_MALFORMED, "no pickle of protocol 2 to 5: it is empty");
    assert_refused(slice_from_string("Y2FuaW1hZGF"), FAILURE_MALFORMED, "no base64");
    assert_refused(slice_from_string("not base64 at all"), FAILURE_MALFORMED, "no base64");
}

TEST(a_record_that_is_too_long_is_not_looked_at) {
    static const uint8_t byte = 'A';
    assert_refused((struct slice){&byte, RENDEZVOUS_STATE_TEXT_MAXIMUM + 1}, FAILURE_LIMIT,
        "67108865 bytes long, the limit is 67108864");
}

TEST(too_many_nodes_are_refused) {
    CLEARED_BY(bytes_clear) struct bytes pickle = {0};
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    append_hexadecimal(&pickle, "8004 7d 28");
    for (int i = 0; i <= RENDEZVOUS_NODES_MAXIMUM; i++) {
        assert_int_equal(bytes_append(&pickle, "NN", 2), FAILURE_NONE);
    }
    append_hexadecimal(&pickle, "75 2e");
    assert_int_equal(base64_encode(bytes_slice(&pickle), &text), FAILURE_NONE);
    assert_refused(
        bytes_slice(&text), FAILURE_LIMIT, "a dict of more than 65536 items (at byte 131078)");
}

TEST(nodes_are_counted_over_all_lists) {
    struct rendezvous_state record = {.count = RENDEZVOUS_NODES_MAXIMUM + 1};
    record.nodes = calloc(record.count, sizeof *record.nodes);
    for (size_t i = 0; i < record.count; i++) {
        record.nodes[i].identity.pid = (int64_t)i;
        record.nodes[i].is_waiting = i % 2 == 0;
        record.nodes[i].is_participant = i % 2 == 1;
    }
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    assert_int_equal(rendezvous_state_write_text(&record, &text), FAILURE_NONE);
    assert_refused(bytes_slice(&text), FAILURE_LIMIT, "more than 65536 nodes, in wait_list");
    record.count--;
    assert_comes_back(&record);
    rendezvous_state_clear(&record);
}
