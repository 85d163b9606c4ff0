/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/round/round_exchange_store.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "wire/json/json_document.h"

/* How agents spell nodes and ranks in the rendezvous store: role_info and assigned_ranks. Matches
 * _RoleInstanceInfo and SimpleElasticAgent._assign_worker_ranks in
 * torch/distributed/elastic/agent/server/api.py. TorchElastic's reader accepts further members, so
 * Muster adds `"muster": 1`, by which Muster's nodes recognise each other, and on demand the
 * addresses of the node's machine, as in `"addresses": "10.0.0.7 fd00::7"`. */

#define RANK_JSON_MAXIMUM_SIZE 65536u

/* Appends `{"role": "default", "rank": 0, "local_world_size": 2, "muster": 1}`, with the
 * addresses unless they are NULL. */
static void rank_json_write_role_info(
    const struct node_role *node, const char *addresses, int group_rank, struct text *out) {
    text_append(out, "{\"role\": ");
    json_text_write(node->role, out);
    text_append_format(out, ", \"rank\": %d, \"local_world_size\": %d, \"muster\": %d", group_rank,
        node->local_world_size, ROUND_EXCHANGE_MUSTER_VERSION);
    if (addresses != NULL) {
        text_append(out, ", \"addresses\": ");
        json_text_write(addresses, out);
    }
    text_append(out, "}");
}

/* FAILURE_MALFORMED when the value is no integer, FAILURE_LIMIT when it lies outside [minimum,
 * maximum]. */
static enum failure_code read_integer(
    const struct json_value *value, int minimum, int maximum, int *out_integer) {
    int64_t integer;
    if (!json_value_integer(value, &integer)) {
        return FAILURE_MALFORMED;
    }
    if (integer < minimum || integer > maximum) {
        return FAILURE_LIMIT;
    }
    *out_integer = (int)integer;
    return FAILURE_NONE;
}

/* NULL when there is no such text. It is only compared and logged, so what no address consists of
 * is refused here. */
static enum failure_code read_addresses(const struct json_value *value, const char **out_text) {
    const char *text = json_value_text(value);
    if (value == NULL) {
        return FAILURE_NONE;
    }
    if (text == NULL || strspn(text, "0123456789abcdefABCDEF.: ") != strlen(text)) {
        return FAILURE_MALFORMED;
    }
    *out_text = text;
    return strlen(text) <= RANK_JSON_ADDRESSES_MAXIMUM_SIZE ? FAILURE_NONE : FAILURE_LIMIT;
}

static enum failure_code read_role_info(const struct json_value *root, struct role_info *out_info) {
    struct role_info info = {0};
    const char *role = json_value_text(json_value_member(root, "role"));
    if (role == NULL) {
        return FAILURE_MALFORMED;
    }
    enum failure_code code = read_integer(
        json_value_member(root, "rank"), 0, LAUNCH_MAXIMUM_NODES - 1, &info.group_rank);
    if (code == FAILURE_NONE) {
        code = read_integer(json_value_member(root, "local_world_size"), 1,
            LAUNCH_MAXIMUM_WORKERS_PER_NODE, &info.local_world_size);
    }
    const struct json_value *version = json_value_member(root, "muster");
    if (code == FAILURE_NONE && version != NULL) {
        code = read_integer(version, 1, INT_MAX, &info.muster_version);
    }
    const char *addresses = NULL;
    if (code == FAILURE_NONE) {
        code = read_addresses(json_value_member(root, "addresses"), &addresses);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    info.role = memory_duplicate_string(role);
    info.addresses = memory_duplicate_string(addresses);
    *out_info = info;
    return FAILURE_NONE;
}

/* FAILURE_MALFORMED or FAILURE_LIMIT for input that cannot be used. The caller clears the result
 * with role_info_clear. */
static enum failure_code rank_json_read_role_info(struct slice input, struct role_info *out_info) {
    struct json_document *document;
    enum failure_code code = json_document_parse(input, RANK_JSON_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_role_info(json_document_root(document), out_info);
    json_document_free(document);
    return code;
}

/* Appends `[0, 2, 0, 2]`. */
static void rank_json_write_assignment(const struct rank_assignment *assignment, struct text *out) {
    text_append_format(out, "[%d, %d, %d, %d]", assignment->base_rank, assignment->world_size,
        assignment->role_base_rank, assignment->role_world_size);
}

static enum failure_code read_assignment(
    const struct json_value *root, struct rank_assignment *out_assignment) {
    int numbers[4];
    if (json_value_item_count(root) != 4) {
        return FAILURE_MALFORMED;
    }
    for (size_t i = 0; i < 4; i++) {
        enum failure_code code = read_integer(json_value_item(root, i), 0, INT_MAX, &numbers[i]);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    if (numbers[0] >= numbers[1] || numbers[2] >= numbers[3] || numbers[3] > numbers[1]) {
        return FAILURE_MALFORMED;
    }
    *out_assignment = (struct rank_assignment){
        .base_rank = numbers[0],
        .world_size = numbers[1],
        .role_base_rank = numbers[2],
        .role_world_size = numbers[3],
    };
    return FAILURE_NONE;
}

static enum failure_code rank_json_read_assignment(
    struct slice input, struct rank_assignment *out_assignment) {
    struct json_document *document;
    enum failure_code code = json_document_parse(input, RANK_JSON_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_assignment(json_document_root(document), out_assignment);
    json_document_free(document);
    return code;
}

/* Exchange store. */

/* Longer than any identity in text form, and than any port. */
#define TEXT_SIZE_MAXIMUM (NODE_ADDRESS_SIZE + 64)

#define PORT_MAXIMUM 65535

static const struct {
    enum store_operation operation;
    bool wants_answer;
    enum round_event_kind answer;
} spellings[ROUND_EFFECT_KIND_COUNT] = {
    [ROUND_EFFECT_SET_ROLE_INFO] = {STORE_SET, false, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_SET_ASSIGNMENTS] = {STORE_MULTI_SET, false, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_PUBLISH] = {STORE_MULTI_SET, false, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_SET] = {STORE_SET, false, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_DECIDE] = {STORE_COMPARE_SET, false, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_ADD] = {STORE_ADD, true, ROUND_EVENT_COUNTED},
    [ROUND_EFFECT_CHECK] = {STORE_CHECK, true, ROUND_EVENT_CHECKED},
    [ROUND_EFFECT_GET] = {STORE_MULTI_GET, true, ROUND_EVENT_VALUES},
    [ROUND_EFFECT_WAIT] = {STORE_WAIT, true, ROUND_EVENT_WAITED},
};

bool round_effect_wants_answer(enum round_effect_kind kind) {
    return spellings[kind].wants_answer;
}

/* Requests. */

static void add_keys(
    struct owned_request *request, const struct round_effect *effect, const char *run_id) {
    if (effect->kind != ROUND_EFFECT_SET_ASSIGNMENTS) {
        round_key_list(&effect->key, run_id, &request->keys);
        return;
    }
    struct round_key key = effect->key;
    if (effect->assignments.is_coordinated) {
        key.kind = ROUND_KEY_COORDINATED; /* first, so that an agent that sees ranks sees it, too */
        round_key_list(&key, run_id, &request->keys);
        key.kind = effect->key.kind;
    }
    for (size_t i = 0; i < effect->assignments.count; i++) {
        key.node = (int)i;
        round_key_list(&key, run_id, &request->keys);
    }
}

static void add_assignments(struct owned_request *request, const struct round_effect *effect) {
    if (effect->assignments.is_coordinated) {
        text_list_add(&request->values, "1");
    }
    for (size_t i = 0; i < effect->assignments.count; i++) {
        struct text text = {0};
        rank_json_write_assignment(&effect->assignments.items[i], &text);
        text_list_add_taken(&request->values, text_take(&text));
    }
}

static void add_role_info(struct owned_request *request, const struct round_effect *effect) {
    struct text text = {0};
    rank_json_write_role_info(&effect->node, effect->addresses, effect->key.node, &text);
    text_list_add_taken(&request->values, text_take(&text));
}

/* Adds the keys and values in the order of the group. */
static void add_publication(struct owned_request *request, const struct round_effect *effect) {
    text_list_add(&request->values, effect->publication.publisher);
    text_list_add(&request->values, effect->publication.address);
    text_list_add(&request->values, effect->publication.port);
}

static void add_values(struct owned_request *request, const struct round_effect *effect) {
    if (effect->kind == ROUND_EFFECT_SET_ASSIGNMENTS) {
        add_assignments(request, effect);
    } else if (effect->kind == ROUND_EFFECT_SET_ROLE_INFO) {
        add_role_info(request, effect);
    } else if (effect->kind == ROUND_EFFECT_PUBLISH) {
        add_publication(request, effect);
    } else if (effect->kind == ROUND_EFFECT_SET || effect->kind == ROUND_EFFECT_DECIDE) {
        text_list_add(&request->values, effect->text);
    }
}

void round_request_build(
    const struct round_effect *effect, const char *run_id, struct owned_request *out_request) {
    struct owned_request request = {0};
    add_keys(&request, effect, run_id);
    add_values(&request, effect);
    owned_request_finish(&request, spellings[effect->kind].operation, effect->amount);
    *out_request = request;
}

/* Answers. */

struct round_question round_question_of(const struct round_effect *effect) {
    return (struct round_question){effect->kind, effect->round, effect->key};
}

/* Plain text that another node wrote. NULL for bytes that can be neither a name nor a number. The
 * text belongs to the answer. */
static const char *read_text(struct slice blob, struct round_answer *answer) {
    if (blob.length == 0 || blob.length > TEXT_SIZE_MAXIMUM) {
        return NULL;
    }
    for (size_t i = 0; i < blob.length; i++) {
        if (blob.data[i] < ' ' || blob.data[i] == 0x7f) {
            return NULL;
        }
    }
    text_list_add_taken(
        &answer->texts, text_format("%.*s", (int)blob.length, (const char *)blob.data));
    return answer->texts.items[answer->texts.count - 1];
}

static void read_address(const struct slice *blobs, struct round_answer *answer) {
    struct round_values *values = &answer->event.values;
    const char *address = read_text(blobs[0], answer);
    values->address = address != NULL && strlen(address) < NODE_ADDRESS_SIZE ? address : NULL;
    const char *port_text = read_text(blobs[1], answer);
    int64_t port;
    if (port_text != NULL && text_parse_integer(port_text, &port) == FAILURE_NONE && port > 0 &&
        port <= PORT_MAXIMUM) {
        values->port = (int)port;
    }
}

static void read_role_infos(const struct slice *blobs, size_t count, struct round_answer *answer) {
    answer->role_infos = memory_allocate(count * sizeof *answer->role_infos);
    answer->role_info_count = count;
    for (size_t i = 0; i < count; i++) {
        struct role_info *info = &answer->role_infos[i];
        if (rank_json_read_role_info(blobs[i], info) != FAILURE_NONE) {
            *info = (struct role_info){0};
        }
    }
    answer->event.kind = ROUND_EVENT_ROLE_INFOS;
    answer->event.role_infos.infos = answer->role_infos;
    answer->event.role_infos.count = count;
}

/* Nobody writes an empty value. */
static bool is_one_missing(const struct slice *blobs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (blobs[i].length == 0) {
            return true;
        }
    }
    return false;
}

/* Reads the reply to a GET with as many keys as there are values. */
static enum failure_code read_values(const struct round_question *question,
    const struct store_reply *reply, struct round_answer *answer) {
    const struct slice *blobs = reply->list.items;
    size_t count = reply->list.count;
    struct round_values *values = &answer->event.values;
    enum round_key_kind kind = question->key.kind;
    answer->event.is_gone = is_one_missing(blobs, count);
    if (kind == ROUND_KEY_ALL_ROLE_INFOS && count == (size_t)question->key.node) {
        read_role_infos(blobs, count, answer);
    } else if (kind == ROUND_KEY_PUBLISHER && count == 1) {
        values->publisher = read_text(blobs[0], answer);
    } else if (kind == ROUND_KEY_ADDRESS && count == 2) {
        read_address(blobs, answer);
    } else if (kind == ROUND_KEY_PUBLICATION && count == 3) {
        values->publisher = read_text(blobs[0], answer);
        read_address(blobs + 1, answer);
    } else if (kind == ROUND_KEY_WORLD && count == 3) {
        read_address(blobs, answer);
        values->has_ranks = rank_json_read_assignment(blobs[2], &values->ranks) == FAILURE_NONE;
    } else if (kind == ROUND_KEY_ASSIGNED_RANKS && count == 1) {
        values->has_ranks = rank_json_read_assignment(blobs[0], &values->ranks) == FAILURE_NONE;
    } else if ((kind == ROUND_KEY_CLAIM || kind == ROUND_KEY_RIVAL) && count == 1) {
        values->claim = read_text(blobs[0], answer);
    } else if (round_key_is_decision(kind) && count == 1 && blobs[0].length < ROUND_DECISION_SIZE) {
        values->decision = read_text(blobs[0], answer);
        return values->decision != NULL ? FAILURE_NONE : FAILURE_PROTOCOL;
    } else {
        return FAILURE_PROTOCOL;
    }
    return FAILURE_NONE;
}

static enum failure_code read_reply(const struct round_question *question,
    const struct store_reply *reply, struct round_answer *answer) {
    if (reply->kind != store_operation_reply_kind(spellings[question->kind].operation)) {
        return FAILURE_PROTOCOL;
    }
    switch (reply->kind) {
    case STORE_REPLY_INTEGER:
        answer->event.count = reply->integer;
        return FAILURE_NONE;
    case STORE_REPLY_BYTE:
        if (question->kind == ROUND_EFFECT_CHECK) {
            answer->event.is_present = reply->byte == STORE_READY;
            return FAILURE_NONE;
        }
        return reply->byte == STORE_STOP_WAITING ? FAILURE_NONE : FAILURE_PROTOCOL;
    case STORE_REPLY_BLOBS:
        return read_values(question, reply, answer);
    case STORE_REPLY_BLOB:
    case STORE_REPLY_NONE:
    case STORE_REPLY_NONCE:
    case STORE_REPLY_KEYS:
    case STORE_REPLY_POP:
        break;
    }
    return FAILURE_PROTOCOL;
}

enum failure_code round_answer_read(const struct round_question *question,
    const struct store_reply *reply, struct round_answer *out_answer) {
    struct round_answer answer = {.event = {.kind = spellings[question->kind].answer,
                                      .round = question->round,
                                      .key = question->key}};
    enum failure_code code = read_reply(question, reply, &answer);
    if (code != FAILURE_NONE) {
        round_answer_clear(&answer);
        return code;
    }
    *out_answer = answer;
    return FAILURE_NONE;
}

void round_answer_clear(struct round_answer *answer) {
    for (size_t i = 0; i < answer->role_info_count; i++) {
        role_info_clear(&answer->role_infos[i]);
    }
    free(answer->role_infos);
    text_list_clear(&answer->texts);
    *answer = (struct round_answer){0};
}
