/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/round/rank_json.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "wire/json/json_document.h"

void rank_json_write_role_info(const struct node_role *node, const char *addresses, int group_rank,
    int muster_version, struct text *out) {
    text_append(out, "{\"role\": ");
    json_text_write(node->role, out);
    text_append_format(
        out, ", \"rank\": %d, \"local_world_size\": %d", group_rank, node->local_world_size);
    if (muster_version != 0) {
        text_append_format(out, ", \"muster\": %d", muster_version);
    }
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

enum failure_code rank_json_read_role_info(struct slice input, struct role_info *out_info) {
    struct json_document *document;
    enum failure_code code = json_document_parse(input, RANK_JSON_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_role_info(json_document_root(document), out_info);
    json_document_free(document);
    return code;
}

void rank_json_write_assignment(const struct rank_assignment *assignment, struct text *out) {
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

enum failure_code rank_json_read_assignment(
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
