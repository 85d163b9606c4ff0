/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "pickle_fixture.h"
#include "wire/pickle/pickle_reader.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Opcodes, each of which leaves one value. Memo 0 is the module, 1 _NodeDesc. */
#define NODE(address, pid, local_id)                                                               \
    "6801 29 81 7d 28 8c0461646472 " address "8c03706964 " pid "8c086c6f63616c5f6964 " local_id    \
    "75 62 "
#define ADDRESS "8c0568 6f737461 " /* hosta */
#define ONE "4b01 "
#define TWO "4b02 "
#define DATETIME "8c086461746574696d65 8c086461746574696d65 93 430a 07ea0b140b213001e240 85 52 "
#define NONE "4e "
#define TRUE "88 "

struct attribute {
    const char *name;
    const char *digits;
};

static const struct attribute usual[] = {{"round", "4b07"}, {"complete", "88"}, {"deadline", NONE},
    {"closed", "89"}, {"participants", "7d"}, {"wait_list", "8f"}, {"redundancy_list", "8f"},
    {"last_heartbeats", "7d"}};

static void append_text(struct bytes *bytes, const char *text) {
    const uint8_t head[] = {0x8c, (uint8_t)strlen(text)};
    assert_int_equal(bytes_append(bytes, head, sizeof head), FAILURE_NONE);
    assert_int_equal(bytes_append(bytes, text, strlen(text)), FAILURE_NONE);
}

static void append_attribute(struct bytes *bytes, const char *name, const char *digits) {
    if (digits != NULL) {
        append_text(bytes, name);
        append_hexadecimal(bytes, digits);
    }
}

/* A loaded with the usual attributes, except one that is changed, left out (NULL) or added. */
static struct bytes make_record(const char *name, const char *digits) {
    struct bytes bytes = {0};
    bool is_usual = false;
    append_hexadecimal(&bytes, "8004");
    append_text(&bytes, "torch.distributed.elastic.rendezvous.dynamic_rendezvous");
    append_hexadecimal(&bytes, "94 30 6800");
    append_text(&bytes, "_NodeDesc");
    append_hexadecimal(&bytes, "93 94 30 6800");
    append_text(&bytes, "_RendezvousState");
    append_hexadecimal(&bytes, "93 29 81 7d 28");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        bool is_changed = strcmp(usual[i].name, name) == 0;
        append_attribute(&bytes, usual[i].name, is_changed ? digits : usual[i].digits);
        is_usual = is_usual || is_changed;
    }
    append_attribute(&bytes, name, is_usual ? NULL : digits);
    append_hexadecimal(&bytes, "75 62 2e");
    return bytes;
}

static void read_changed(const char *name, const char *digits, struct rendezvous_state *loaded) {
    CLEARED_BY(bytes_clear) struct bytes record = make_record(name, digits);
    struct text reason = {0};
    *loaded = (struct rendezvous_state){0};
    enum failure_code code = rendezvous_state_read_pickle(bytes_slice(&record), loaded, &reason);
    assert_string_equal(text_string(&reason), "");
    assert_int_equal(code, FAILURE_NONE);
}

static void assert_refused(
    const char *name, const char *digits, enum failure_code wanted, const char *why) {
    CLEARED_BY(bytes_clear) struct bytes record = make_record(name, digits);
    struct rendezvous_state loaded = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(rendezvous_state_read_pickle(bytes_slice(&record), &loaded, &reason), wanted);
    assert_string_equal(text_string(&reason), why);
    assert_null(loaded.nodes);
}

TEST(a_long_reason_is_cut_where_a_character_ends) {
    CLEARED_BY(text_clear) struct text digits = {0};
    text_append(&digits, "58 2c010000");
    for (int i = 0; i < 100; i++) {
        text_append(&digits, "e282ac"); /* three bytes: 85 of them are 255 */
    }
    struct rendezvous_state loaded;
    read_changed("muster_reason", text_string(&digits), &loaded);
    assert_int_equal(strlen(loaded.reason), 255);
    text_clear(&digits);
    text_append(&digits, "58 2d010000 61");
    for (int i = 0; i < 100; i++) {
        text_append(&digits, "e282ac");
    }
    read_changed("muster_reason", text_string(&digits), &loaded);
    assert_int_equal(strlen(loaded.reason), 253);
    read_changed("muster_reason", "8c03610062", &loaded);
    assert_string_equal(loaded.reason, "a");
}

TEST(equal_nodes_are_one_node_however_they_are_spelled) {
    struct rendezvous_state loaded;
    /* Twice in one dict: the later value counts, as in Python. */
    read_changed("participants",
        "7d 28" NODE(ADDRESS, ONE, TWO) ONE NODE(ADDRESS, "4a01000000 ", TWO)
            TWO NODE(ADDRESS, TWO, TWO) "4b00 75",
        &loaded);
    assert_int_equal(loaded.count, 2);
    assert_string_equal(loaded.nodes[0].identity.address, "hosta");
    assert_int_equal(loaded.nodes[0].identity.pid, 1);
    assert_int_equal(loaded.nodes[0].identity.local_id, 2);
    assert_true(loaded.nodes[0].is_participant);
    assert_false(loaded.nodes[0].is_waiting || loaded.nodes[0].is_redundant);
    assert_false(loaded.nodes[0].has_heartbeat);
    assert_int_equal(loaded.nodes[0].rank, 2);
    assert_int_equal(loaded.nodes[1].identity.pid, 2);
    rendezvous_state_clear(&loaded);
}

TEST(every_attribute_must_be_there) {
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        FREED char *why = text_format("%s is missing", usual[i].name);
        assert_refused(usual[i].name, NULL, FAILURE_MALFORMED, why);
    }
}

TEST(every_attribute_must_be_of_its_type) {
    static const struct {
        const char *name;
        const char *digits;
        const char *why;
    } wrong[] = {
        {"round", TRUE, "round is a boolean, not an integer"},
        {"complete", ONE, "complete is an integer, not a boolean"},
        {"deadline", ONE, "deadline is no datetime"},
        {"closed", NONE, "closed is None, not a boolean"},
        {"participants", "5d", "participants is a list, not a dict"},
        {"wait_list", "7d", "wait_list is a dict, not a set"},
        {"wait_list", "635f5f6275696c74696e5f5f0a7365740a 29 52", "wait_list is a set of no list"},
        {"redundancy_list", "4e", "redundancy_list is None, not a set"},
        {"last_heartbeats", "8f", "last_heartbeats is a set, not a dict"},
        {"muster_restarts", TRUE, "muster_restarts is a boolean, not an integer"},
        {"muster_origin", TRUE, "muster_origin is a boolean, not an integer"},
        {"muster_base", TRUE, "muster_base is a boolean, not an integer"},
        {"muster_next_base", TRUE, "muster_next_base is a boolean, not an integer"},
        {"muster_next_restarts", NONE, "muster_next_restarts is None, not an integer"},
        {"muster_wanted", "7d", "muster_wanted is a dict, not an integer"},
        {"muster_size", NONE, "muster_size is None, not an integer"},
        {"muster_draining", ONE, "muster_draining is an integer, not a boolean"},
        {"muster_charged", ONE, "muster_charged is an integer, not a boolean"},
        {"muster_doubted", NONE, "muster_doubted is None, not a boolean"},
        {"muster_failed", ONE, "muster_failed is an integer, not a boolean"},
        {"muster_signal", TRUE, "muster_signal is a boolean, not an integer"},
        {"muster_reason", NONE, "muster_reason is None, not text"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_refused(wrong[i].name, wrong[i].digits, FAILURE_MALFORMED, wrong[i].why);
    }
}

TEST(odd_nodes_are_refused) {
    static const struct {
        const char *participants;
        const char *why;
    } wrong[] = {
        {ONE TWO, "a node is no _NodeDesc, in participants"},
        {DATETIME TWO, "a node is no _NodeDesc, in participants"},
        {"6801 29 81" ONE, "addr is missing, in participants"},
        {NODE(ONE, ONE, ONE) ONE, "addr is an integer, not text, in participants"},
        {NODE(ADDRESS, NONE, ONE) ONE, "pid is None, not an integer, in participants"},
        {NODE(ADDRESS, ONE, TRUE) ONE, "local_id is a boolean, not an integer, in participants"},
        {NODE("8c03680061 ", ONE, TRUE) ONE, "an address with a NUL in it, in participants"},
        {NODE(ADDRESS, ONE, ONE "8c0b6d75737465725f68696768 " NONE) ONE,
            "muster_high is None, not an integer, in participants"},
        {NODE(ADDRESS, ONE, ONE "8c0a6d75737465725f6c6f77 " TRUE) ONE,
            "muster_low is a boolean, not an integer, in participants"},
        {NODE(ADDRESS, ONE, ONE) NONE, "a rank is None, not an integer"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FREED char *digits = text_format("7d 28 %s 75", wrong[i].participants);
        assert_refused("participants", digits, FAILURE_MALFORMED, wrong[i].why);
    }
    assert_refused("last_heartbeats", "7d" NODE(ADDRESS, ONE, ONE) "4e 73", FAILURE_MALFORMED,
        "a heartbeat is no datetime");
    assert_refused(
        "wait_list", "8f 28 4e 90", FAILURE_MALFORMED, "a node is no _NodeDesc, in wait_list");
}

TEST(numbers_out_of_range_are_refused) {
    assert_refused("round", "4affffffff", FAILURE_LIMIT, "round is -1, which is out of range");
    assert_refused(
        "round", "8a050000008000", FAILURE_LIMIT, "round is 2147483648, which is out of range");
    assert_refused("muster_restarts", "4affffffff", FAILURE_LIMIT,
        "muster_restarts is -1, which is out of range");
    assert_refused(
        "muster_base", "4bff", FAILURE_LIMIT, "muster_base is 255, which is above the round 7");
    assert_refused("participants", "7d" NODE(ADDRESS, ONE, ONE) "4affffffff 73", FAILURE_LIMIT,
        "a rank is -1, which is out of range");
    struct rendezvous_state loaded;
    read_changed("wait_list",
        "8f 28" NODE(ADDRESS, "8a08ffffffffffffff7f ", "8a080000000000000080 ") "90", &loaded);
    assert_true(loaded.nodes[0].identity.pid == INT64_MAX);
    assert_true(loaded.nodes[0].identity.local_id == INT64_MIN);
    rendezvous_state_clear(&loaded);
}

TEST(addresses_have_a_longest_length) {
    for (size_t length = 255; length <= 256; length++) {
        CLEARED_BY(text_clear) struct text digits = {0};
        text_append_format(&digits, "8f 28 6801 29 81 7d 28 8c0461646472 58 %02x%02x0000",
            (unsigned)(length & 0xff), (unsigned)(length >> 8));
        for (size_t i = 0; i < length; i++) {
            text_append(&digits, "61");
        }
        text_append(&digits, "8c03706964 4b01 8c086c6f63616c5f6964 4b02 75 62 90");
        if (length == 255) {
            struct rendezvous_state loaded;
            read_changed("wait_list", text_string(&digits), &loaded);
            assert_int_equal(strlen(loaded.nodes[0].identity.address), 255);
            rendezvous_state_clear(&loaded);
        } else {
            assert_refused("wait_list", text_string(&digits), FAILURE_LIMIT,
                "an address of 256 bytes, the limit is 255, in wait_list");
        }
    }
}

TEST(other_pickles_are_no_state) {
    static const struct {
        const char *digits;
        const char *why;
    } others[] = {{"8004 7d 2e", "a dict, not a _RendezvousState"},
        {"8004" DATETIME "2e", "an object, not a _RendezvousState"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CLEARED_BY(bytes_clear) struct bytes input = {0};
        struct rendezvous_state loaded = {0};
        CLEARED_BY(text_clear) struct text reason = {0};
        append_hexadecimal(&input, others[i].digits);
        assert_int_equal(
            rendezvous_state_read_pickle(bytes_slice(&input), &loaded, &reason), FAILURE_MALFORMED);
        assert_string_equal(text_string(&reason), others[i].why);
    }
}
