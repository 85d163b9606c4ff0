/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/record_request.h"

#include "base/text.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

static const enum store_operation operations[RECORD_QUESTION_KIND_COUNT] = {
    [RECORD_QUESTION_PRESENCE_SERVED] = STORE_CHECK,
    [RECORD_QUESTION_PROTOCOL] = STORE_COMPARE_SET,
    [RECORD_QUESTION_REFUSED] = STORE_CHECK,
    [RECORD_QUESTION_DELEGATION] = STORE_CHECK,
    [RECORD_QUESTION_SETTINGS] = STORE_COMPARE_SET,
    [RECORD_QUESTION_BEGINNING] = STORE_COMPARE_SET,
    [RECORD_QUESTION_RECORD] = STORE_GET,
    [RECORD_QUESTION_WRITE] = STORE_COMPARE_SET,
    [RECORD_QUESTION_CHANGE_COUNT] = STORE_ADD,
    [RECORD_QUESTION_NEW_CHANGE] = STORE_ADD,
    [RECORD_QUESTION_NEW_WRITE] = STORE_ADD,
    [RECORD_QUESTION_TELL_CHANGE] = STORE_SET,
    [RECORD_QUESTION_TELL_WRITE] = STORE_SET,
    [RECORD_QUESTION_FORGET_CHANGE] = STORE_DELETE,
    [RECORD_QUESTION_NEXT_CHANGE] = STORE_WAIT,
    [RECORD_QUESTION_PRESENCE] = STORE_SET,
    [RECORD_QUESTION_STANDING] = STORE_QUEUE_POP,
    [RECORD_QUESTION_FINISHED_COUNT] = STORE_ADD,
    [RECORD_QUESTION_ROLL] = STORE_WAIT,
    [RECORD_QUESTION_ROLL_ANSWER] = STORE_SET,
    [RECORD_QUESTION_DELETE] = STORE_DELETE,
    [RECORD_QUESTION_CLEAR] = STORE_DELETE,
};

enum store_operation record_question_operation(enum record_question_kind kind) {
    return operations[kind];
}

bool record_question_waits(enum record_question_kind kind) {
    return operations[kind] == STORE_WAIT || kind == RECORD_QUESTION_STANDING;
}

static void write_key(
    const struct record_question *question, const char *run_id, struct text *out) {
    switch (question->kind) {
    case RECORD_QUESTION_PRESENCE_SERVED:
    case RECORD_QUESTION_REFUSED:
        rendezvous_key_write_presence_served(run_id, out);
        break;
    case RECORD_QUESTION_PROTOCOL:
        rendezvous_key_write_protocol(run_id, out);
        break;
    case RECORD_QUESTION_SETTINGS:
        rendezvous_key_write_settings(run_id, out);
        break;
    case RECORD_QUESTION_BEGINNING:
    case RECORD_QUESTION_RECORD:
    case RECORD_QUESTION_WRITE:
        rendezvous_key_write_record(run_id, out);
        break;
    case RECORD_QUESTION_CHANGE_COUNT:
    case RECORD_QUESTION_NEW_CHANGE:
    case RECORD_QUESTION_NEW_WRITE:
        rendezvous_key_write_changes(run_id, out);
        break;
    case RECORD_QUESTION_TELL_CHANGE:
    case RECORD_QUESTION_TELL_WRITE:
    case RECORD_QUESTION_FORGET_CHANGE:
    case RECORD_QUESTION_NEXT_CHANGE:
        rendezvous_key_write_changed(run_id, question->number, out);
        break;
    case RECORD_QUESTION_ROLL_ANSWER:
        rendezvous_key_write_roll(run_id, question->number, question->node, out);
        break;
    case RECORD_QUESTION_PRESENCE:
    case RECORD_QUESTION_STANDING:
    case RECORD_QUESTION_DELETE:
    case RECORD_QUESTION_CLEAR:
        text_append(out, question->key);
        break;
    case RECORD_QUESTION_DELEGATION:
    case RECORD_QUESTION_FINISHED_COUNT:
    case RECORD_QUESTION_ROLL:
    case RECORD_QUESTION_KIND_COUNT:
        break; /* add_keys adds its keys */
    }
}

static void add_keys(
    const struct record_question *question, const char *run_id, struct text_list *out) {
    struct text key = {0};
    if (question->kind == RECORD_QUESTION_FINISHED_COUNT) {
        struct round_key members = {.kind = ROUND_KEY_NUM_MEMBERS, .round = question->number};
        round_key_list(&members, run_id, out);
    } else if (question->kind == RECORD_QUESTION_DELEGATION) {
        rendezvous_key_write_presence_served(run_id, &key);
        text_list_add_taken(out, text_take(&key));
        rendezvous_key_write_delegation(run_id, &key);
        text_list_add_taken(out, text_take(&key));
    } else if (question->kind == RECORD_QUESTION_ROLL) {
        for (int rank = 0; rank < question->node; rank++) {
            rendezvous_key_write_roll(run_id, question->number, rank, &key);
            text_list_add_taken(out, text_take(&key));
        }
    } else {
        write_key(question, run_id, &key);
        text_list_add_taken(out, text_take(&key));
    }
}

static void add_value(struct slice value, struct text_list *out) {
    struct text text = {0};
    text_append_bytes(&text, (const char *)value.data, value.length);
    text_list_add_taken(out, text_take(&text));
}

void record_request_build(
    const struct record_question *question, const char *run_id, struct owned_request *out_request) {
    struct owned_request request = {0};
    struct slice absent = slice_from_string(RENDEZVOUS_STATE_ABSENT);
    enum store_operation operation = record_question_operation(question->kind);
    bool is_new =
        question->kind == RECORD_QUESTION_NEW_CHANGE || question->kind == RECORD_QUESTION_NEW_WRITE;
    bool is_count = question->kind == RECORD_QUESTION_CHANGE_COUNT;
    add_keys(question, run_id, &request.keys);
    if (operation == STORE_SET || operation == STORE_COMPARE_SET) {
        bool is_beginning = question->kind == RECORD_QUESTION_BEGINNING;
        add_value(is_beginning ? absent : question->value, &request.values);
    }
    if (question->kind == RECORD_QUESTION_WRITE) {
        (void)!bytes_append(&request.expected, question->expected.data,
            question->expected.length); /* the buffer has no ceiling */
    }
    owned_request_finish(&request, operation, is_new ? 1 : is_count ? question->number : 0);
    *out_request = request;
}
