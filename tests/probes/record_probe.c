/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a test in another language ask the codec of the shared record: one JSON request per line of
 * stdin, one JSON answer per line of stdout.
 *
 *   {"ask": "decode", "base64": TEXT}    base64 alone: {"hex": …} or {"refused": …}
 *   {"ask": "read", "text": TEXT}        {"absent": true}, {"state": …} or {"refused": …, "reason":
 * …}
 *   {"ask": "write", "state": …}         {"text": …} or {"refused": …}
 *   {"ask": "time", "text": TEXT}        {"read": NANOSECONDS, "write": …}, the processor's, of one
 * of many
 *
 * States are objects with the members of struct rendezvous_state; a time is nanoseconds, or null.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

#define REPETITIONS 50

static json_t *time_to_json(bool is_there, struct wall_time time) {
    return is_there ? json_integer(time.nanoseconds) : json_null();
}

static json_t *node_to_json(const struct rendezvous_node *node) {
    return json_pack("{s:s, s:I, s:I, s:b, s:b, s:b, s:b, s:I, s:o}", "address",
        node->identity.address, "pid", (json_int_t)node->identity.pid, "local_id",
        (json_int_t)node->identity.local_id, "is_participant", node->is_participant, "is_waiting",
        node->is_waiting, "is_redundant", node->is_redundant, "is_done", node->is_done, "rank",
        (json_int_t)node->rank, "heartbeat", time_to_json(node->has_heartbeat, node->heartbeat));
}

static json_t *state_to_json(const struct rendezvous_state *state) {
    json_t *nodes = json_array();
    for (size_t i = 0; i < state->count; i++) {
        json_array_append_new(nodes, node_to_json(&state->nodes[i]));
    }
    return json_pack("{s:I, s:b, s:o, s:b, s:o, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:s}", "round",
        (json_int_t)state->round, "is_complete", state->is_complete, "deadline",
        time_to_json(state->has_deadline, state->deadline), "is_closed", state->is_closed, "nodes",
        nodes, "restarts", (json_int_t)state->restarts, "wanted", (json_int_t)state->wanted, "size",
        (json_int_t)state->size, "is_draining", state->is_draining, "is_charged", state->is_charged,
        "is_doubted", state->is_doubted, "has_failed", state->has_failed, "reason", state->reason);
}

static int64_t integer_of(const json_t *object, const char *name) {
    return json_integer_value(json_object_get(object, name));
}

static bool boolean_of(const json_t *object, const char *name) {
    return json_is_true(json_object_get(object, name));
}

/* Missing text is empty; longer text is cut. */
static void copy_text(const json_t *object, const char *name, char *out, size_t size) {
    const char *text = json_string_value(json_object_get(object, name));
    (void)snprintf(out, size, "%s", text == NULL ? "" : text);
}

static void state_from_json(const json_t *source, struct rendezvous_state *state) {
    state->round = integer_of(source, "round");
    state->is_complete = boolean_of(source, "is_complete");
    state->has_deadline = json_is_integer(json_object_get(source, "deadline"));
    state->deadline.nanoseconds = integer_of(source, "deadline");
    state->is_closed = boolean_of(source, "is_closed");
    state->restarts = integer_of(source, "restarts");
    state->wanted = integer_of(source, "wanted");
    state->size = integer_of(source, "size");
    state->is_draining = boolean_of(source, "is_draining");
    state->is_charged = boolean_of(source, "is_charged");
    state->is_doubted = boolean_of(source, "is_doubted");
    state->has_failed = boolean_of(source, "has_failed");
    copy_text(source, "reason", state->reason, sizeof state->reason);
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(source, "nodes"), i, each) {
        struct node_identity identity = {
            .pid = integer_of(each, "pid"), .local_id = integer_of(each, "local_id")};
        copy_text(each, "address", identity.address, sizeof identity.address);
        struct rendezvous_node *node = rendezvous_state_obtain(state, &identity);
        node->is_participant = boolean_of(each, "is_participant");
        node->is_waiting = boolean_of(each, "is_waiting");
        node->is_redundant = boolean_of(each, "is_redundant");
        node->is_done = boolean_of(each, "is_done");
        node->rank = integer_of(each, "rank");
        node->has_heartbeat = json_is_integer(json_object_get(each, "heartbeat"));
        node->heartbeat.nanoseconds = integer_of(each, "heartbeat");
    }
}

static const char *code_name(enum failure_code code) {
    switch ((int)code) {
    case FAILURE_MALFORMED:
        return "malformed";
    case FAILURE_LIMIT:
        return "limit passed";
    case FAILURE_INVALID:
        return "invalid value";
    case FAILURE_UNSUPPORTED:
        return "not supported";
    default:
        return "another failure";
    }
}

static json_t *refusal(enum failure_code code, const struct text *reason) {
    return json_pack("{s:s, s:s}", "refused", code_name(code), "reason", text_string(reason));
}

static struct slice slice_of(const json_t *request, const char *name) {
    const json_t *value = json_object_get(request, name);
    return (struct slice){(const uint8_t *)json_string_value(value), json_string_length(value)};
}

static json_t *answer_decode(const json_t *request) {
    struct bytes out = {0};
    struct text hexadecimal = {0};
    enum failure_code code = base64_decode(slice_of(request, "base64"), &out);
    for (size_t i = 0; i < out.length; i++) {
        text_append_format(&hexadecimal, "%02x", out.data[i]);
    }
    json_t *answer = code == FAILURE_NONE ? json_pack("{s:s}", "hex", text_string(&hexadecimal))
                                          : refusal(code, &hexadecimal);
    bytes_clear(&out);
    text_clear(&hexadecimal);
    return answer;
}

static json_t *answer_read(const json_t *request) {
    struct rendezvous_state state = {0};
    struct text reason = {0};
    bool is_absent = false;
    json_t *answer;
    enum failure_code code =
        rendezvous_state_read_text(slice_of(request, "text"), &is_absent, &state, &reason);
    if (code != FAILURE_NONE) {
        answer = refusal(code, &reason);
    } else if (is_absent) {
        answer = json_pack("{s:b}", "absent", true);
    } else {
        answer = json_pack("{s:o}", "state", state_to_json(&state));
    }
    rendezvous_state_clear(&state);
    text_clear(&reason);
    return answer;
}

static json_t *answer_write(const json_t *request) {
    struct rendezvous_state state = {0};
    struct bytes out = {0};
    struct text no_reason = {0};
    state_from_json(json_object_get(request, "state"), &state);
    enum failure_code code = rendezvous_state_write_text(&state, &out);
    json_t *answer = code == FAILURE_NONE
                         ? json_pack("{s:s#}", "text", (const char *)out.data, (int)out.length)
                         : refusal(code, &no_reason);
    rendezvous_state_clear(&state);
    bytes_clear(&out);
    return answer;
}

static json_int_t nanoseconds_each(clock_t begin) {
    return (json_int_t)((double)(clock() - begin) / CLOCKS_PER_SEC * 1e9 / REPETITIONS);
}

static json_t *answer_time(const json_t *request) {
    struct rendezvous_state state = {0};
    struct bytes out = {0};
    struct text reason = {0};
    bool is_absent;
    enum failure_code code = FAILURE_NONE;
    clock_t begin = clock();
    for (int i = 0; i < REPETITIONS && code == FAILURE_NONE; i++) {
        code = rendezvous_state_read_text(slice_of(request, "text"), &is_absent, &state, &reason);
    }
    json_int_t read = nanoseconds_each(begin);
    begin = clock();
    for (int i = 0; i < REPETITIONS && code == FAILURE_NONE; i++) {
        out.length = 0;
        code = rendezvous_state_write_text(&state, &out);
    }
    json_t *answer = json_pack("{s:I, s:I}", "read", read, "write", nanoseconds_each(begin));
    rendezvous_state_clear(&state);
    bytes_clear(&out);
    text_clear(&reason);
    return answer;
}

static json_t *answer_to(const json_t *request) {
    const char *ask = json_string_value(json_object_get(request, "ask"));
    if (strcmp(ask, "decode") == 0) {
        return answer_decode(request);
    }
    if (strcmp(ask, "time") == 0) {
        return answer_time(request);
    }
    return strcmp(ask, "read") == 0 ? answer_read(request) : answer_write(request);
}

int main(void) {
    json_t *request;
    while ((request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL)) != NULL) {
        json_t *answer = answer_to(request);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
        json_decref(request);
    }
    return 0;
}
