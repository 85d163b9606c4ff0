/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_key.h"

#include <inttypes.h>

#include "core/rendezvous/rendezvous_key.h"

#define BARRIER_FOLDER "torchelastic/agent/terminal_state/"
#define CLAIM_FOLDER "claim"

enum numbering { BY_NOTHING, BY_NODE, BY_ATTEMPT };

static const struct {
    const char *name;
    const char *folder; /* below the folder of the round, or of the run; NULL for groups */
    enum numbering numbering;
    bool is_of_run; /* only of fixed nodes */
} keys[ROUND_KEY_COUNT] = {
    [ROUND_KEY_INIT] = {"init", "", BY_NOTHING, true},
    [ROUND_KEY_MASTER_ADDR] = {"MASTER_ADDR", "", BY_NOTHING, false},
    [ROUND_KEY_MASTER_PORT] = {"MASTER_PORT", "", BY_NOTHING, false},
    [ROUND_KEY_ROLE_INFO] = {"role_info", "torchelastic/", BY_NODE, false},
    [ROUND_KEY_ASSIGNED_RANKS] = {"assigned_ranks", "torchelastic/", BY_NODE, false},
    [ROUND_KEY_NUM_MEMBERS] = {"num_members", BARRIER_FOLDER, BY_NOTHING, false},
    [ROUND_KEY_LAST_MEMBER] = {"last_member", BARRIER_FOLDER, BY_NOTHING, false},
    [ROUND_KEY_PUBLISHER] = {"publisher", "muster/", BY_NOTHING, false},
    [ROUND_KEY_COMMITTED] = {"committed", "muster/", BY_NOTHING, false},
    [ROUND_KEY_DONE] = {"done", "muster/", BY_NODE, false},
    [ROUND_KEY_COORDINATED] = {"coordinated", "muster/", BY_NOTHING, true},
    [ROUND_KEY_READY] = {"ready", "muster/", BY_ATTEMPT, true},
    [ROUND_KEY_FINISHED] = {"finished", "muster/", BY_ATTEMPT, true},
    [ROUND_KEY_GATHERED] = {"gathered", "muster/", BY_ATTEMPT, true},
    [ROUND_KEY_START] = {"start", "muster/", BY_ATTEMPT, true},
    [ROUND_KEY_END] = {"end", "muster/", BY_ATTEMPT, true},
    [ROUND_KEY_CLAIM_SERVED] = {CLAIM_FOLDER "/served", "muster/", BY_NOTHING, true},
    [ROUND_KEY_CLAIM] = {CLAIM_FOLDER, "muster/", BY_NODE, true},
    [ROUND_KEY_RIVAL] = {CLAIM_FOLDER "/rival", "muster/", BY_NODE, true},
    [ROUND_KEY_ADDRESS] = {"address", NULL, BY_NOTHING, false},
    [ROUND_KEY_PUBLICATION] = {"publication", NULL, BY_NOTHING, false},
    [ROUND_KEY_WORLD] = {"world", NULL, BY_NODE, false},
    [ROUND_KEY_ALL_ROLE_INFOS] = {"role_infos", NULL, BY_NODE, false},
    [ROUND_KEY_ALL_DONE] = {"all_done", NULL, BY_NODE, false},
};

bool round_key_is_decision(enum round_key_kind kind) {
    return kind == ROUND_KEY_GATHERED || kind == ROUND_KEY_START || kind == ROUND_KEY_END;
}

void round_key_write_prefix(const char *run_id, struct text *out) {
    text_append_format(out, "/%s/", run_id);
}

void round_key_write_telling(const char *run_id, struct text *out) {
    round_key_write_prefix(run_id, out);
    text_append(out, "muster/telling/");
}

void round_key_write_said(const char *run_id, struct text *out) {
    round_key_write_prefix(run_id, out);
    text_append(out, "muster/said");
}

void round_key_write_claims(const char *run_id, struct text *out) {
    round_key_write_prefix(run_id, out);
    text_append(out, "muster/" CLAIM_FOLDER "/");
}

static bool is_of_fixed_nodes(const struct round_key *key) {
    return key->round == ROUND_OF_FIXED_NODES || keys[key->kind].is_of_run;
}

static void append_name(const struct round_key *key, struct text *out) {
    text_append(out, keys[key->kind].name);
    if (keys[key->kind].numbering != BY_NOTHING) {
        bool is_by_node = keys[key->kind].numbering == BY_NODE;
        text_append_format(out, "/%" PRId64, is_by_node ? key->node : key->round);
    }
}

static void add_key(enum round_key_kind kind, const struct round_key *group, int node,
    const char *run_id, struct text_list *out) {
    const struct round_key key = {.kind = kind, .round = group->round, .node = node};
    struct text text = {0};
    if (kind == ROUND_KEY_INIT) {
        text_list_add(out, "init/"); /* the one key that torchrun's client does not prefix */
        return;
    }
    if (is_of_fixed_nodes(&key)) {
        round_key_write_prefix(run_id, &text);
    } else {
        rendezvous_key_write_round(run_id, group->round, &text);
    }
    text_append(&text, keys[kind].folder);
    append_name(&key, &text);
    text_list_add_taken(out, text_take(&text));
}

static void add_of_all(enum round_key_kind kind, const struct round_key *group, const char *run_id,
    struct text_list *out) {
    for (int node = 0; node < group->node; node++) {
        add_key(kind, group, node, run_id, out);
    }
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
        add_of_all(ROUND_KEY_ROLE_INFO, key, run_id, out);
        break;
    case ROUND_KEY_ALL_DONE:
        add_of_all(ROUND_KEY_DONE, key, run_id, out);
        break;
    case ROUND_KEY_MASTER_ADDR:
    case ROUND_KEY_MASTER_PORT:
    case ROUND_KEY_ROLE_INFO:
    case ROUND_KEY_ASSIGNED_RANKS:
    case ROUND_KEY_NUM_MEMBERS:
    case ROUND_KEY_LAST_MEMBER:
    case ROUND_KEY_PUBLISHER:
    case ROUND_KEY_COMMITTED:
    case ROUND_KEY_DONE:
    case ROUND_KEY_INIT:
    case ROUND_KEY_COORDINATED:
    case ROUND_KEY_READY:
    case ROUND_KEY_FINISHED:
    case ROUND_KEY_GATHERED:
    case ROUND_KEY_START:
    case ROUND_KEY_END:
    case ROUND_KEY_CLAIM_SERVED:
    case ROUND_KEY_CLAIM:
    case ROUND_KEY_RIVAL:
    case ROUND_KEY_COUNT:
        add_key(key->kind, key, key->node, run_id, out);
        break;
    }
}

static void add_text(struct text *text, struct text_list *out) {
    text_list_add_taken(out, text_take(text));
}

static bool is_of_succession(enum round_key_kind kind) {
    return kind == ROUND_KEY_COMMITTED || kind == ROUND_KEY_DONE;
}

void round_key_list_of_succession(
    int64_t round, int node_count, const char *run_id, struct text_list *out) {
    struct round_key committed = {.kind = ROUND_KEY_COMMITTED, .round = round};
    struct round_key done = {.kind = ROUND_KEY_ALL_DONE, .round = round, .node = node_count};
    round_key_list(&committed, run_id, out);
    round_key_list(&done, run_id, out);
}

void round_key_list_noted(
    const struct rendezvous_state *record, const char *run_id, struct text_list *out) {
    for (size_t i = 0; i < record->count; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        if (node->is_participant && node->is_done) {
            round_key_list(
                &(struct round_key){
                    .kind = ROUND_KEY_DONE, .round = record->round, .node = (int)node->rank},
                run_id, out);
        }
    }
}

void round_key_list_all(int64_t round, int node_count, const char *run_id, struct text_list *out) {
    struct round_key key = {.round = round};
    struct text text = {0};
    for (int kind = 0; kind < ROUND_KEY_COUNT; kind++) {
        bool is_in_folder = keys[kind].folder != NULL && !keys[kind].is_of_run &&
                            !is_of_succession((enum round_key_kind)kind);
        for (int node = 0; is_in_folder && node < node_count; node++) {
            if (node == 0 || keys[kind].numbering == BY_NODE) {
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
    if (!is_of_fixed_nodes(key)) {
        text_append_format(out, "%" PRId64 "/", key->round);
    }
    append_name(key, out);
}
