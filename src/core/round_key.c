/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round_key.h"

#include <inttypes.h>

#include "core/rendezvous_key.h"

static const struct {
    const char *name;
    const char *folder; /* in the round's; NULL for groups */
    bool is_by_node;
} keys[ROUND_KEY_COUNT] = {
    [ROUND_KEY_MASTER_ADDR] = {"MASTER_ADDR", "", false},
    [ROUND_KEY_MASTER_PORT] = {"MASTER_PORT", "", false},
    [ROUND_KEY_ROLE_INFO] = {"role_info", "torchelastic/", true},
    [ROUND_KEY_ASSIGNED_RANKS] = {"assigned_ranks", "torchelastic/", true},
    [ROUND_KEY_NUM_MEMBERS] = {"num_members", "torchelastic/agent/terminal_state/", false},
    [ROUND_KEY_LAST_MEMBER] = {"last_member", "torchelastic/agent/terminal_state/", false},
    [ROUND_KEY_PUBLISHER] = {"publisher", "muster/", false},
    [ROUND_KEY_ADDRESS] = {"address", NULL, false},
    [ROUND_KEY_PUBLICATION] = {"publication", NULL, false},
    [ROUND_KEY_WORLD] = {"world", NULL, true},
    [ROUND_KEY_ALL_ROLE_INFOS] = {"role_infos", NULL, true},
};

static void append_name(const struct round_key *key, struct text *out) {
    text_append(out, keys[key->kind].name);
    if (keys[key->kind].is_by_node) {
        text_append_format(out, "/%d", key->node);
    }
}

static void add_key(enum round_key_kind kind, const struct round_key *group, int node,
    const char *run_id, struct text_list *out) {
    struct text text = {0};
    rendezvous_key_write_round(run_id, group->round, &text);
    text_append(&text, keys[kind].folder);
    append_name(&(struct round_key){.kind = kind, .node = node}, &text);
    text_list_add_taken(out, text_take(&text));
}

static void add_address(const struct round_key *key, const char *run_id, struct text_list *out) {
    add_key(ROUND_KEY_MASTER_ADDR, key, 0, run_id, out);
    add_key(ROUND_KEY_MASTER_PORT, key, 0, run_id, out);
}

void round_key_list(const struct round_key *key, const char *run_id, struct text_list *out) {
    switch (key->kind) {
    case ROUND_KEY_ADDRESS:
        add_address(key, run_id, out);
        break;
    case ROUND_KEY_PUBLICATION:
        add_key(ROUND_KEY_PUBLISHER, key, 0, run_id, out);
        add_address(key, run_id, out);
        break;
    case ROUND_KEY_WORLD:
        add_address(key, run_id, out);
        add_key(ROUND_KEY_ASSIGNED_RANKS, key, key->node, run_id, out);
        break;
    case ROUND_KEY_ALL_ROLE_INFOS:
        for (int node = 0; node < key->node; node++) {
            add_key(ROUND_KEY_ROLE_INFO, key, node, run_id, out);
        }
        break;
    case ROUND_KEY_MASTER_ADDR:
    case ROUND_KEY_MASTER_PORT:
    case ROUND_KEY_ROLE_INFO:
    case ROUND_KEY_ASSIGNED_RANKS:
    case ROUND_KEY_NUM_MEMBERS:
    case ROUND_KEY_LAST_MEMBER:
    case ROUND_KEY_PUBLISHER:
    case ROUND_KEY_COUNT:
        add_key(key->kind, key, key->node, run_id, out);
        break;
    }
}

static void add_text(struct text *text, struct text_list *out) {
    text_list_add_taken(out, text_take(text));
}

void round_key_list_all(int64_t round, int node_count, const char *run_id, struct text_list *out) {
    struct round_key key = {.round = round};
    struct text text = {0};
    for (int kind = 0; kind < ROUND_KEY_COUNT; kind++) {
        for (int node = 0; keys[kind].folder != NULL && node < node_count; node++) {
            if (node == 0 || keys[kind].is_by_node) {
                add_key((enum round_key_kind)kind, &key, node, run_id, out);
            }
        }
    }
    for (int node = 0; node < node_count; node++) {
        rendezvous_key_write_roll(run_id, round, node, &text);
        add_text(&text, out);
    }
    rendezvous_key_write_root_cause(run_id, round, &text);
    add_text(&text, out);
}

void round_key_describe(const struct round_key *key, struct text *out) {
    text_append_format(out, "%" PRId64 "/", key->round);
    append_name(key, out);
}
