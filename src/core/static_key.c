/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/static_key.h"

enum key_numbering { BY_NOTHING, BY_NODE, BY_ATTEMPT };

static const struct {
    const char *name;
    const char *folder; /* below the run id */
    enum key_numbering numbering;
} keys[STATIC_KEY_COUNT] = {
    [STATIC_KEY_INIT] = {"init", NULL, BY_NOTHING},
    [STATIC_KEY_ROLE_INFO] = {"role_info", "torchelastic", BY_NODE},
    [STATIC_KEY_ALL_ROLE_INFOS] = {"role_infos", NULL, BY_NOTHING},
    [STATIC_KEY_ASSIGNED_RANKS] = {"assigned_ranks", "torchelastic", BY_NODE},
    [STATIC_KEY_NUM_MEMBERS] = {"num_members", "torchelastic/agent/terminal_state", BY_NOTHING},
    [STATIC_KEY_LAST_MEMBER] = {"last_member", "torchelastic/agent/terminal_state", BY_NOTHING},
    [STATIC_KEY_COORDINATED] = {"coordinated", "muster", BY_NOTHING},
    [STATIC_KEY_READY] = {"ready", "muster", BY_ATTEMPT},
    [STATIC_KEY_FINISHED] = {"finished", "muster", BY_ATTEMPT},
    [STATIC_KEY_GATHERED] = {"gathered", "muster", BY_ATTEMPT},
    [STATIC_KEY_START] = {"start", "muster", BY_ATTEMPT},
    [STATIC_KEY_END] = {"end", "muster", BY_ATTEMPT},
};

bool static_key_equals(const struct static_key *left, const struct static_key *right) {
    return left->kind == right->kind && left->attempt == right->attempt &&
           left->node == right->node;
}

static void append_name(const struct static_key *key, struct text *out) {
    text_append(out, keys[key->kind].name);
    if (keys[key->kind].numbering != BY_NOTHING) {
        bool is_by_node = keys[key->kind].numbering == BY_NODE;
        text_append_format(out, "/%d", is_by_node ? key->node : key->attempt);
    }
}

void static_key_write(const struct static_key *key, const char *run_id, struct text *out) {
    if (key->kind == STATIC_KEY_INIT) {
        text_append(out, "init/"); /* the one key that upstream's client does not prefix */
        return;
    }
    static_key_write_prefix(run_id, out);
    text_append_format(out, "%s/", keys[key->kind].folder);
    append_name(key, out);
}

void static_key_write_prefix(const char *run_id, struct text *out) {
    text_append_format(out, "/%s/", run_id);
}

void static_key_describe(const struct static_key *key, struct text *out) {
    append_name(key, out);
}
