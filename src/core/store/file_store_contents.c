/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/file_store_contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"

struct held_value {
    size_t length;
    uint8_t data[];
};

/* About what malloc adds to each allocation. */
#define ALLOCATION_SIZE 16
#define ENTRY_SIZE (TABLE_ENTRY_SIZE + ALLOCATION_SIZE + sizeof(struct held_value))

struct file_store_contents {
    struct table *table;
    struct file_store_limits limits;
    size_t memory;
};

struct file_store_contents *file_store_contents_new(const struct file_store_limits *limits) {
    struct file_store_contents *contents = memory_allocate(sizeof *contents);
    contents->table = table_new(free);
    contents->limits = *limits;
    return contents;
}

void file_store_contents_free(struct file_store_contents *contents) {
    if (contents != NULL) {
        table_free(contents->table);
        free(contents);
    }
}

static bool is_within_limits(
    const struct file_store_contents *contents, const struct file_store_record *record) {
    return record->key.length <= contents->limits.key_bytes &&
           record->value.length <= contents->limits.value_bytes;
}

/* Whether there is room for `entries` more keys and `memory` more bytes. */
static bool can_grow(const struct file_store_contents *contents, size_t entries, size_t memory) {
    return entries <= contents->limits.entries - table_count(contents->table) &&
           memory <= contents->limits.memory_bytes - contents->memory;
}

/* Whether all these records can be taken, even if none of them replaces a value. */
static bool file_store_contents_have_room(const struct file_store_contents *contents,
    const struct file_store_record *records, size_t count) {
    size_t memory = 0;
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_within_limits(contents, &records[i])) {
            return false;
        }
        if (records[i].is_removal) {
            continue;
        }
        entries++;
        memory += ENTRY_SIZE + records[i].key.length + records[i].value.length;
    }
    return can_grow(contents, entries, memory);
}

static size_t held_size(const struct file_store_contents *contents, struct slice key) {
    const struct held_value *held = table_get(contents->table, key);
    return held == NULL ? 0 : ENTRY_SIZE + key.length + held->length;
}

enum failure_code file_store_contents_take(
    struct file_store_contents *contents, const struct file_store_record *record) {
    size_t old_size = held_size(contents, record->key);
    if (record->is_removal) {
        contents->memory -= old_size;
        (void)table_remove(contents->table, record->key);
        return FAILURE_NONE;
    }
    size_t size = ENTRY_SIZE + record->key.length + record->value.length;
    if (!is_within_limits(contents, record) ||
        !can_grow(contents, old_size == 0 ? 1 : 0, size > old_size ? size - old_size : 0)) {
        return FAILURE_LIMIT;
    }
    struct held_value *held = memory_allocate(sizeof *held + record->value.length);
    held->length = record->value.length;
    if (held->length > 0) {
        memcpy(held->data, record->value.data, held->length);
    }
    table_put(contents->table, record->key, held);
    contents->memory += size;
    contents->memory -= old_size;
    return FAILURE_NONE;
}

/* Returns false when the key has no value. `out_value` (may be NULL) is borrowed until the next
 * record. */
static bool file_store_contents_find(
    const struct file_store_contents *contents, struct slice key, struct slice *out_value) {
    const struct held_value *held = table_get(contents->table, key);
    if (held != NULL && out_value != NULL) {
        *out_value = (struct slice){held->data, held->length};
    }
    return held != NULL;
}

/* How many keys have a value. PyTorch's own key ("refcount/") counts too, as in its num_keys(). */
static size_t file_store_contents_count(const struct file_store_contents *contents) {
    return table_count(contents->table);
}

static bool list_key(void *context, struct slice key, void *value) {
    (void)value;
    struct slice **next = context;
    *(*next)++ = key;
    return true;
}

/* Writes the names of these keys to `out_keys`, which must have room for all of them. They are
 * borrowed until the next record. */
static void file_store_contents_list(
    const struct file_store_contents *contents, struct slice *out_keys) {
    table_each(contents->table, list_key, &out_keys);
}

/* File store answer. */

/* One request, and the answer that it gets. */
struct question {
    struct file_store_answer *answer;
    const struct file_store_contents *contents;
    const struct store_request *request;
};

void file_store_answer_clear(struct file_store_answer *answer) {
    free(answer->records);
    free(answer->blobs);
    bytes_clear(&answer->joined);
    *answer = (struct file_store_answer){0};
}

static void start(struct file_store_answer *answer) {
    answer->is_waiting = false;
    answer->reply = (struct store_reply){.kind = STORE_REPLY_NONE};
    answer->record_count = 0;
    answer->reason = NULL;
    answer->joined.length = 0;
}

static enum failure_code refuse(
    const struct question *question, enum failure_code code, const char *reason) {
    start(question->answer);
    question->answer->reason = reason;
    return code;
}

static void append_record(const struct question *question, struct file_store_record record) {
    struct file_store_answer *answer = question->answer;
    answer->records = memory_reserve(answer->records, &answer->record_capacity,
        answer->record_count + 1, sizeof *answer->records);
    answer->records[answer->record_count++] = record;
}

static void append_value(const struct question *question, struct slice key, struct slice value) {
    append_record(question, (struct file_store_record){.key = key, .value = value});
}

static void reply_byte(const struct question *question, uint8_t byte) {
    question->answer->reply = (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = byte};
}

static void reply_integer(const struct question *question, int64_t integer) {
    question->answer->reply = (struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = integer};
}

static void reply_blob(const struct question *question, struct slice blob) {
    question->answer->reply = (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = blob};
}

static struct slice *reply_list(
    const struct question *question, enum store_reply_kind kind, size_t count) {
    struct file_store_answer *answer = question->answer;
    answer->blobs =
        memory_reserve(answer->blobs, &answer->blob_capacity, count, sizeof *answer->blobs);
    answer->reply =
        (struct store_reply){.kind = kind, .list = {.items = answer->blobs, .count = count}};
    return answer->blobs;
}

/* The value of a key; empty when the key has none. */
static struct slice value_of(const struct question *question, struct slice key) {
    struct slice value = {0};
    (void)file_store_contents_find(question->contents, key, &value);
    return value;
}

static bool has_keys(const struct question *question, const struct slice *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!file_store_contents_find(question->contents, keys[i], NULL)) {
            return false;
        }
    }
    return true;
}

static enum failure_code answer_nothing(const struct question *question) {
    (void)question;
    return FAILURE_NONE;
}

static enum failure_code answer_ping(const struct question *question) {
    question->answer->reply =
        (struct store_reply){.kind = STORE_REPLY_NONCE, .nonce = question->request->nonce};
    return FAILURE_NONE;
}

static enum failure_code answer_set(const struct question *question) {
    append_value(question, question->request->key, question->request->value);
    return FAILURE_NONE;
}

/* For a missing key only an empty expected value matches. Any other expected value is the reply. */
static enum failure_code answer_compare_set(const struct question *question) {
    const struct store_request *request = question->request;
    struct slice current = {0};
    bool is_missing = !file_store_contents_find(question->contents, request->key, &current);
    if (slice_equals(current, request->expected)) {
        append_value(question, request->key, request->value);
        reply_blob(question, request->value);
    } else {
        reply_blob(question, is_missing ? request->expected : current);
    }
    return FAILURE_NONE;
}

static enum failure_code answer_get(const struct question *question) {
    reply_blob(question, value_of(question, question->request->key));
    return FAILURE_NONE;
}

static enum failure_code answer_add(const struct question *question) {
    struct slice current = value_of(question, question->request->key);
    int64_t value = 0;
    if (current.length > 0 && store_counter_parse(current, &value) != FAILURE_NONE) {
        return refuse(question, FAILURE_PROTOCOL, "the value is no number");
    }
    value = (int64_t)((uint64_t)value + (uint64_t)question->request->number);
    append_value(
        question, question->request->key, store_counter_format(value, question->answer->counter));
    reply_integer(question, value);
    return FAILURE_NONE;
}

static enum failure_code answer_check(const struct question *question) {
    const struct store_request *request = question->request;
    bool is_ready = has_keys(question, request->keys, request->count);
    reply_byte(question, is_ready ? STORE_READY : STORE_NOT_READY);
    return FAILURE_NONE;
}

static enum failure_code answer_wait(const struct question *question) {
    const struct store_request *request = question->request;
    question->answer->is_waiting = !has_keys(question, request->keys, request->count);
    reply_byte(question, STORE_STOP_WAITING);
    return FAILURE_NONE;
}

static enum failure_code answer_count_keys(const struct question *question) {
    reply_integer(question, (int64_t)file_store_contents_count(question->contents));
    return FAILURE_NONE;
}

static enum failure_code answer_delete(const struct question *question) {
    struct slice key = question->request->key;
    bool is_there = has_keys(question, &key, 1);
    if (is_there) {
        append_record(question, (struct file_store_record){.key = key, .is_removal = true});
    }
    reply_integer(question, is_there ? 1 : 0);
    return FAILURE_NONE;
}

static enum failure_code answer_append(const struct question *question) {
    const struct store_request *request = question->request;
    struct bytes *joined = &question->answer->joined;
    struct slice current = value_of(question, request->key);
    if (bytes_append(joined, current.data, current.length) != FAILURE_NONE ||
        bytes_append(joined, request->value.data, request->value.length) != FAILURE_NONE) {
        return refuse(question, FAILURE_LIMIT, "the value would be too long");
    }
    append_value(question, request->key, bytes_slice(joined));
    return FAILURE_NONE;
}

static enum failure_code answer_multi_get(const struct question *question) {
    const struct store_request *request = question->request;
    struct slice *blobs = reply_list(question, STORE_REPLY_BLOBS, request->count);
    for (size_t i = 0; i < request->count; i++) {
        blobs[i] = value_of(question, request->keys[i]);
    }
    return FAILURE_NONE;
}

static enum failure_code answer_multi_set(const struct question *question) {
    const struct store_request *request = question->request;
    for (size_t i = 0; i < request->count; i++) {
        append_value(question, request->keys[i], request->values[i]);
    }
    return FAILURE_NONE;
}

static enum failure_code answer_list_keys(const struct question *question) {
    size_t count = file_store_contents_count(question->contents);
    file_store_contents_list(question->contents, reply_list(question, STORE_REPLY_KEYS, count));
    return FAILURE_NONE;
}

/* A FileStore does not offer the operations that are not in this table. */
static const struct {
    enum failure_code (*answer)(const struct question *question);
    bool writes;
} operations[STORE_OPERATION_COUNT] = {
    [STORE_VALIDATE] = {answer_nothing, false},
    [STORE_SET] = {answer_set, true},
    [STORE_COMPARE_SET] = {answer_compare_set, true},
    [STORE_GET] = {answer_get, false},
    [STORE_ADD] = {answer_add, true},
    [STORE_CHECK] = {answer_check, false},
    [STORE_WAIT] = {answer_wait, false},
    [STORE_COUNT_KEYS] = {answer_count_keys, false},
    [STORE_DELETE] = {answer_delete, true},
    [STORE_APPEND] = {answer_append, true},
    [STORE_MULTI_GET] = {answer_multi_get, false},
    [STORE_MULTI_SET] = {answer_multi_set, true},
    [STORE_PING] = {answer_ping, false},
    [STORE_LIST_KEYS] = {answer_list_keys, false},
};

bool file_store_request_writes(enum store_operation operation) {
    return operations[operation].writes;
}

enum failure_code file_store_answer_find(struct file_store_answer *answer,
    const struct file_store_contents *contents, const struct store_request *request,
    bool waits_first) {
    const struct question question = {answer, contents, request};
    start(answer);
    if (operations[request->operation].answer == NULL) {
        return refuse(&question, FAILURE_UNSUPPORTED, "a FileStore does not offer this");
    }
    bool is_list = request->operation == STORE_MULTI_GET;
    if (waits_first && !has_keys(&question, is_list ? request->keys : &request->key,
                           is_list ? request->count : 1)) {
        answer->is_waiting = true;
        return FAILURE_NONE;
    }
    enum failure_code code = operations[request->operation].answer(&question);
    if (code == FAILURE_NONE &&
        !file_store_contents_have_room(contents, answer->records, answer->record_count)) {
        code = refuse(&question, FAILURE_LIMIT, "the FileStore has no room for this");
    }
    return code;
}
