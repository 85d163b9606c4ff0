/* SPDX-License-Identifier: BSD-3-Clause */
/* Recorded conversations between PyTorch 2.14.1's TCPStore client and server: one request, its
 * reply, and their meaning. tools/make_store_corpus.py reads the hex strings. */
#ifndef MUSTER_TESTS_STORE_VECTORS_H
#define MUSTER_TESTS_STORE_VECTORS_H

#include "base/bytes.h"
#include "core/store/store_request.h"

struct store_vector {
    const char *name;
    const char *request_hex;
    struct store_request request;
    const char *reply_hex;
    struct store_reply reply;
};

#define BLOB(text)                                                                                 \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct slice vector_check[] = {BLOB("/k"), BLOB("/nope")};
static const struct slice vector_wait_one[] = {BLOB("/k")};
static const struct slice vector_multi[] = {BLOB("/m1"), BLOB("/m2")};
static const struct slice vector_values[] = {BLOB("A"), BLOB("BB")};
static const struct slice vector_listed[] = {
    BLOB("/ap"), BLOB("/cs"), BLOB("/cnt"), BLOB("/m2"), BLOB("/empty"), BLOB("/k")};

/* clang-format off */
static const struct store_vector store_vectors[] = {
    {"ping",
        "0d 784c0000", {.operation = STORE_PING, .nonce = 0x4c78},
        "784c0000", {.kind = STORE_REPLY_NONCE, .nonce = 0x4c78}},
    {"set",
        "01 0200000000000000 2f6b 0100000000000000 76",
        {.operation = STORE_SET, .key = BLOB("/k"), .value = BLOB("v")},
        "", {.kind = STORE_REPLY_NONE}},
    {"set_empty",
        "01 0600000000000000 2f656d707479 0000000000000000",
        {.operation = STORE_SET, .key = BLOB("/empty"), .value = BLOB("")},
        "", {.kind = STORE_REPLY_NONE}},
    {"wait",
        "06 0100000000000000 0200000000000000 2f6b",
        {.operation = STORE_WAIT, .keys = vector_wait_one, .count = 1},
        "00", {.kind = STORE_REPLY_BYTE, .byte = STORE_STOP_WAITING}},
    {"wait_nothing",
        "06 0000000000000000", {.operation = STORE_WAIT},
        "00", {.kind = STORE_REPLY_BYTE, .byte = STORE_STOP_WAITING}},
    {"get",
        "03 0200000000000000 2f6b", {.operation = STORE_GET, .key = BLOB("/k")},
        "0100000000000000 76", {.kind = STORE_REPLY_BLOB, .blob = BLOB("v")}},
    {"get_empty",
        "03 0600000000000000 2f656d707479", {.operation = STORE_GET, .key = BLOB("/empty")},
        "0000000000000000", {.kind = STORE_REPLY_BLOB, .blob = BLOB("")}},
    {"add",
        "04 0400000000000000 2f636e74 0500000000000000",
        {.operation = STORE_ADD, .key = BLOB("/cnt"), .number = 5},
        "0500000000000000", {.kind = STORE_REPLY_INTEGER, .integer = 5}},
    {"add_negative",
        "04 0400000000000000 2f636e74 f9ffffffffffffff",
        {.operation = STORE_ADD, .key = BLOB("/cnt"), .number = -7},
        "feffffffffffffff", {.kind = STORE_REPLY_INTEGER, .integer = -2}},
    {"add_init",
        "04 0500000000000000 696e69742f 0100000000000000",
        {.operation = STORE_ADD, .key = BLOB("init/"), .number = 1},
        "0100000000000000", {.kind = STORE_REPLY_INTEGER, .integer = 1}},
    {"check",
        "05 0200000000000000 0200000000000000 2f6b 0500000000000000 2f6e6f7065",
        {.operation = STORE_CHECK, .keys = vector_check, .count = 2},
        "01", {.kind = STORE_REPLY_BYTE, .byte = STORE_NOT_READY}},
    {"check_nothing",
        "05 0000000000000000", {.operation = STORE_CHECK},
        "00", {.kind = STORE_REPLY_BYTE, .byte = STORE_READY}},
    {"compare_set_creates",
        "02 0300000000000000 2f6373 0000000000000000 0100000000000000 61",
        {.operation = STORE_COMPARE_SET, .key = BLOB("/cs"), .value = BLOB("a")},
        "0100000000000000 61", {.kind = STORE_REPLY_BLOB, .blob = BLOB("a")}},
    {"compare_set_replaces",
        "02 0300000000000000 2f6373 0100000000000000 61 0100000000000000 62",
        {.operation = STORE_COMPARE_SET, .key = BLOB("/cs"), .expected = BLOB("a"),
            .value = BLOB("b")},
        "0100000000000000 62", {.kind = STORE_REPLY_BLOB, .blob = BLOB("b")}},
    {"compare_set_missing",
        "02 0400000000000000 2f637332 0300000000000000 7a7a7a 0100000000000000 63",
        {.operation = STORE_COMPARE_SET, .key = BLOB("/cs2"), .expected = BLOB("zzz"),
            .value = BLOB("c")},
        "0300000000000000 7a7a7a", {.kind = STORE_REPLY_BLOB, .blob = BLOB("zzz")}},
    {"cancel_wait",
        "0c", {.operation = STORE_CANCEL_WAIT},
        "01", {.kind = STORE_REPLY_BYTE, .byte = STORE_WAIT_CANCELLED}},
    {"append",
        "09 0300000000000000 2f6170 0200000000000000 797a",
        {.operation = STORE_APPEND, .key = BLOB("/ap"), .value = BLOB("yz")},
        "", {.kind = STORE_REPLY_NONE}},
    {"multi_set",
        "0b 0200000000000000 0300000000000000 2f6d31 0100000000000000 41"
        " 0300000000000000 2f6d32 0200000000000000 4242",
        {.operation = STORE_MULTI_SET, .keys = vector_multi, .values = vector_values, .count = 2},
        "", {.kind = STORE_REPLY_NONE}},
    {"multi_get",
        "0a 0200000000000000 0300000000000000 2f6d31 0300000000000000 2f6d32",
        {.operation = STORE_MULTI_GET, .keys = vector_multi, .count = 2},
        "0100000000000000 41 0200000000000000 4242",
        {.kind = STORE_REPLY_BLOBS, .list = {vector_values, 2}}},
    {"multi_get_nothing",
        "0a 0000000000000000", {.operation = STORE_MULTI_GET},
        "", {.kind = STORE_REPLY_BLOBS}},
    {"num_keys",
        "07", {.operation = STORE_COUNT_KEYS},
        "0700000000000000", {.kind = STORE_REPLY_INTEGER, .integer = 7}},
    {"delete_key",
        "08 0300000000000000 2f6d31", {.operation = STORE_DELETE, .key = BLOB("/m1")},
        "0100000000000000", {.kind = STORE_REPLY_INTEGER, .integer = 1}},
    {"list_keys",
        "11", {.operation = STORE_LIST_KEYS},
        "0600000000000000 0300000000000000 2f6170 0300000000000000 2f6373 0400000000000000 2f636e74"
        " 0300000000000000 2f6d32 0600000000000000 2f656d707479 0200000000000000 2f6b",
        {.kind = STORE_REPLY_KEYS, .list = {vector_listed, 6}}},
    {"barrier",
        "12 0200000000000000 2f62 0100000000000000",
        {.operation = STORE_BARRIER, .key = BLOB("/b"), .number = 1},
        "00", {.kind = STORE_REPLY_BYTE, .byte = STORE_STOP_WAITING}},
    {"queue_push",
        "0e 0200000000000000 2f71 0200000000000000 6531",
        {.operation = STORE_QUEUE_PUSH, .key = BLOB("/q"), .value = BLOB("e1")},
        "", {.kind = STORE_REPLY_NONE}},
    {"queue_length",
        "10 0200000000000000 2f71", {.operation = STORE_QUEUE_LENGTH, .key = BLOB("/q")},
        "0200000000000000", {.kind = STORE_REPLY_INTEGER, .integer = 2}},
    {"queue_pop",
        "0f 0200000000000000 2f71", {.operation = STORE_QUEUE_POP, .key = BLOB("/q")},
        "0200000000000000 0200000000000000 6531",
        {.kind = STORE_REPLY_POP, .pop = {2, BLOB("e1")}}},
    {"queue_pop_empty",
        "0f 0200000000000000 2f71", {.operation = STORE_QUEUE_POP, .key = BLOB("/q")},
        "0000000000000000", {.kind = STORE_REPLY_POP}},
};
/* clang-format on */

#define STORE_VECTOR_COUNT (sizeof store_vectors / sizeof store_vectors[0])

/* The bytes of a hex string with blanks, in memory of exactly that size; the caller frees `data`.
 */
static inline struct bytes bytes_from_hex(const char *hex) {
    struct bytes bytes = {0};
    unsigned value = 0;
    int digits = 0;
    for (; *hex != '\0'; hex++) {
        if (*hex == ' ') {
            continue;
        }
        value = value << 4 | (unsigned)(*hex <= '9' ? *hex - '0' : *hex - 'a' + 10);
        if (++digits % 2 == 0) {
            uint8_t byte = (uint8_t)value;
            (void)!bytes_append(&bytes, &byte, 1);
        }
    }
    return bytes;
}

#endif
