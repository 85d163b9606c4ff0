/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/static_rendezvous_store.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/rank_json.h"

/* What upstream's ADD of an agent counts up by. */
#define ONE_NODE 1

static const struct {
    bool is_request;
    enum store_operation operation;
    bool wants_answer;
    enum static_event_kind answer;
} spellings[STATIC_EFFECT_KIND_COUNT] = {
    [STATIC_EFFECT_ADD] = {true, STORE_ADD, true, STATIC_EVENT_COUNTED},
    [STATIC_EFFECT_SET] = {true, STORE_SET, false, STATIC_EVENT_VALUE},
    [STATIC_EFFECT_COMPARE_SET] = {true, STORE_COMPARE_SET, false, STATIC_EVENT_VALUE},
    [STATIC_EFFECT_GET] = {true, STORE_GET, true, STATIC_EVENT_VALUE},
    [STATIC_EFFECT_CHECK] = {true, STORE_CHECK, true, STATIC_EVENT_CHECKED},
    [STATIC_EFFECT_WAIT] = {true, STORE_WAIT, true, STATIC_EVENT_WAITED},
    [STATIC_EFFECT_SET_ROLE_INFO] = {true, STORE_SET, false, STATIC_EVENT_VALUE},
    [STATIC_EFFECT_GET_ROLE_INFOS] = {true, STORE_MULTI_GET, true, STATIC_EVENT_ROLE_INFOS},
    [STATIC_EFFECT_SET_ASSIGNMENTS] = {true, STORE_MULTI_SET, false, STATIC_EVENT_VALUE},
    [STATIC_EFFECT_GET_ASSIGNMENT] = {true, STORE_GET, true, STATIC_EVENT_ASSIGNMENT},
};

bool static_effect_is_request(const struct static_effect *effect) {
    return spellings[effect->kind].is_request;
}

bool static_effect_wants_answer(const struct static_effect *effect) {
    return spellings[effect->kind].wants_answer;
}

/* Requests. */

static void add_key(
    struct owned_request *request, const struct static_key *key, const char *run_id) {
    struct text text = {0};
    static_key_write(key, run_id, &text);
    text_list_add_taken(&request->keys, text_take(&text));
}

static void add_node_keys(
    struct owned_request *request, enum static_key_kind kind, size_t count, const char *run_id) {
    for (size_t i = 0; i < count; i++) {
        add_key(request, &(struct static_key){.kind = kind, .node = (int)i}, run_id);
    }
}

static void add_role_info(struct owned_request *request, const struct static_effect *effect) {
    struct text text = {0};
    rank_json_write_role_info(
        &effect->node, effect->key.node, STATIC_RENDEZVOUS_MUSTER_VERSION, &text);
    text_list_add_taken(&request->values, text_take(&text));
}

/* COORDINATED comes first: whoever sees ranks sees it, too. */
static void add_assignments(
    struct owned_request *request, const struct static_effect *effect, const char *run_id) {
    if (effect->assignments.is_coordinated) {
        add_key(request, &(struct static_key){.kind = STATIC_KEY_COORDINATED}, run_id);
        text_list_add(&request->values, "1");
    }
    add_node_keys(request, STATIC_KEY_ASSIGNED_RANKS, effect->assignments.count, run_id);
    for (size_t i = 0; i < effect->assignments.count; i++) {
        struct text text = {0};
        rank_json_write_assignment(&effect->assignments.items[i], &text);
        text_list_add_taken(&request->values, text_take(&text));
    }
}

static void add_parts(struct owned_request *request, const struct static_effect *effect,
    const struct static_settings *settings, const char *run_id) {
    if (effect->kind == STATIC_EFFECT_SET_ASSIGNMENTS) {
        add_assignments(request, effect, run_id);
    } else if (effect->key.kind == STATIC_KEY_ALL_ROLE_INFOS) {
        add_node_keys(request, STATIC_KEY_ROLE_INFO, (size_t)settings->node_count, run_id);
    } else {
        add_key(request, &effect->key, run_id);
    }
    if (effect->kind == STATIC_EFFECT_SET_ROLE_INFO) {
        add_role_info(request, effect);
    } else if (effect->kind == STATIC_EFFECT_SET || effect->kind == STATIC_EFFECT_COMPARE_SET) {
        text_list_add(&request->values, effect->value);
    }
}

void static_request_build(const struct static_effect *effect,
    const struct static_settings *settings, const char *run_id, struct owned_request *out_request) {
    struct owned_request request = {0};
    add_parts(&request, effect, settings, run_id);
    owned_request_finish(&request, spellings[effect->kind].operation, ONE_NODE);
    *out_request = request;
}

/* Answers. */

static enum failure_code read_text(struct slice blob, struct static_answer *answer) {
    if (blob.length >= STATIC_RENDEZVOUS_VALUE_SIZE) {
        return FAILURE_PROTOCOL;
    }
    answer->text = text_format("%.*s", (int)blob.length, (const char *)blob.data);
    answer->event.text = answer->text;
    return FAILURE_NONE;
}

static enum failure_code read_role_infos(
    const struct store_reply *reply, struct static_answer *answer) {
    answer->role_infos = memory_allocate(reply->list.count * sizeof *answer->role_infos);
    for (size_t i = 0; i < reply->list.count; i++) {
        struct role_info *info = &answer->role_infos[i];
        if (rank_json_read_role_info(reply->list.items[i], info) != FAILURE_NONE) {
            return FAILURE_PROTOCOL;
        }
        answer->role_info_count++;
    }
    answer->event.role_infos.infos = answer->role_infos;
    answer->event.role_infos.count = answer->role_info_count;
    return FAILURE_NONE;
}

static enum failure_code read_blob(
    const struct static_effect *effect, struct slice blob, struct static_answer *answer) {
    if (effect->kind == STATIC_EFFECT_GET) {
        return read_text(blob, answer);
    }
    return rank_json_read_assignment(blob, &answer->event.assignment) == FAILURE_NONE
               ? FAILURE_NONE
               : FAILURE_PROTOCOL;
}

static enum failure_code read_reply(const struct static_effect *effect,
    const struct store_reply *reply, struct static_answer *answer) {
    if (reply->kind != store_operation_reply_kind(spellings[effect->kind].operation)) {
        return FAILURE_PROTOCOL;
    }
    switch (reply->kind) {
    case STORE_REPLY_INTEGER:
        answer->event.count = reply->integer;
        return FAILURE_NONE;
    case STORE_REPLY_BYTE:
        if (effect->kind == STATIC_EFFECT_CHECK) {
            answer->event.is_present = reply->byte == STORE_READY;
            return FAILURE_NONE;
        }
        return reply->byte == STORE_STOP_WAITING ? FAILURE_NONE : FAILURE_PROTOCOL;
    case STORE_REPLY_BLOB:
        return read_blob(effect, reply->blob, answer);
    case STORE_REPLY_BLOBS:
        return read_role_infos(reply, answer);
    case STORE_REPLY_NONE:
    case STORE_REPLY_NONCE:
    case STORE_REPLY_KEYS:
    case STORE_REPLY_POP:
        break;
    }
    return FAILURE_PROTOCOL;
}

enum failure_code static_answer_read(const struct static_effect *effect,
    const struct store_reply *reply, struct static_answer *out_answer) {
    struct static_answer answer = {
        .event = {.kind = spellings[effect->kind].answer, .key = effect->key}};
    enum failure_code code = read_reply(effect, reply, &answer);
    if (code != FAILURE_NONE) {
        static_answer_clear(&answer);
        return code;
    }
    *out_answer = answer;
    return FAILURE_NONE;
}

void static_answer_clear(struct static_answer *answer) {
    for (size_t i = 0; i < answer->role_info_count; i++) {
        role_info_clear(&answer->role_infos[i]);
    }
    free(answer->role_infos);
    free(answer->text);
    *answer = (struct static_answer){0};
}
