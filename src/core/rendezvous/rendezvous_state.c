/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MUSTER_MARK INT64_C(0x40000000)
#define RANDOM_MASK UINT32_C(0x0FFFFFFF)
#define HALF_DIGITS 16
static const char HEXADECIMAL[] = "0123456789abcdef";

void node_identity_init(
    struct node_identity *identity, const char *address, int64_t pid, int64_t local_id) {
    snprintf(identity->address, sizeof identity->address, "%s", address);
    identity->pid = pid;
    identity->local_id = local_id;
    identity->process = (struct node_process){0};
}

int64_t node_identity_muster_local_id(uint32_t random) {
    return MUSTER_MARK | (int64_t)(random & RANDOM_MASK);
}

int64_t node_identity_foreign_local_id(uint32_t random) {
    return (int64_t)(random & RANDOM_MASK);
}

bool node_identity_is_muster(const struct node_identity *identity) {
    return (identity->local_id & ~(int64_t)RANDOM_MASK) == MUSTER_MARK;
}

static bool is_same(const struct node_process *left, const struct node_process *right) {
    return left->high == right->high && left->low == right->low;
}

bool node_identity_equals(const struct node_identity *left, const struct node_identity *right) {
    return left->local_id == right->local_id && left->pid == right->pid &&
           is_same(&left->process, &right->process) && strcmp(left->address, right->address) == 0;
}

bool node_process_is_known(const struct node_process *process) {
    return process->high != 0 || process->low != 0;
}

void node_process_write(const struct node_process *process, char out_text[NODE_PROCESS_TEXT_SIZE]) {
    out_text[0] = '\0';
    if (node_process_is_known(process)) {
        snprintf(out_text, NODE_PROCESS_TEXT_SIZE, "%016" PRIx64 "%016" PRIx64, process->high,
            process->low);
    }
}

static uint64_t read_half(const char *digits) {
    uint64_t half = 0;
    for (int i = 0; i < HALF_DIGITS; i++) {
        half = half << 4 | (uint64_t)(strchr(HEXADECIMAL, digits[i]) - HEXADECIMAL);
    }
    return half;
}

bool node_process_parse(const char *text, struct node_process *out_process) {
    if (strlen(text) != NODE_PROCESS_TEXT_SIZE - 1 ||
        strspn(text, HEXADECIMAL) != NODE_PROCESS_TEXT_SIZE - 1) {
        return false;
    }
    *out_process = (struct node_process){read_half(text), read_half(text + HALF_DIGITS)};
    return true;
}

bool node_identity_is_same_process(
    const struct node_identity *left, const struct node_identity *right) {
    return is_same(&left->process, &right->process) &&
           (node_process_is_known(&left->process) ||
               (left->pid == right->pid && text_equals(left->address, right->address)));
}

struct node_identity node_identity_of_process(const struct node_identity *identity) {
    struct node_identity name = {.process = identity->process};
    if (!node_process_is_known(&identity->process)) {
        node_identity_init(&name, identity->address, identity->pid, 0);
    }
    return name;
}

static int compare_numbers(int64_t left, int64_t right) {
    return (left > right) - (left < right);
}

static int compare_bits(uint64_t left, uint64_t right) {
    return (left > right) - (left < right);
}

static int compare_processes(const struct node_process *left, const struct node_process *right) {
    int order = compare_bits(left->high, right->high);
    return order != 0 ? order : compare_bits(left->low, right->low);
}

/* strcmp orders UTF-8 text by code point, as Python does. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right) {
    int order = strcmp(left->address, right->address);
    if (order == 0) {
        order = compare_numbers(left->pid, right->pid);
    }
    if (order == 0) {
        order = compare_numbers(left->local_id, right->local_id);
    }
    return order != 0 ? order : compare_processes(&left->process, &right->process);
}

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

/* Compares the runs of digits at which both pointers stand, and moves the pointers past them. It
 * compares text, since a number may exceed every integer type. */
static int compare_runs(const char **left, const char **right) {
    *left += strspn(*left, "0");
    *right += strspn(*right, "0");
    size_t left_length = strspn(*left, "0123456789");
    size_t right_length = strspn(*right, "0123456789");
    if (left_length != right_length) {
        return left_length < right_length ? -1 : 1;
    }
    int order = memcmp(*left, *right, left_length);
    *left += left_length;
    *right += right_length;
    return order;
}

static int compare_addresses_naturally(const char *left, const char *right) {
    int order = 0;
    while (order == 0 && (*left != '\0' || *right != '\0')) {
        if (is_digit(*left) && is_digit(*right)) {
            order = compare_runs(&left, &right);
        } else {
            order = (int)(unsigned char)*left - (int)(unsigned char)*right;
            left++;
            right++;
        }
    }
    return order;
}

int node_identity_compare_naturally(
    const struct node_identity *left, const struct node_identity *right) {
    int order = compare_addresses_naturally(left->address, right->address);
    return order != 0 ? order : node_identity_compare(left, right);
}

void node_identity_describe(const struct node_identity *identity, struct text *out) {
    text_append_format(
        out, "%s_%" PRId64 "_%" PRId64, identity->address, identity->pid, identity->local_id);
}

void node_identity_write(const struct node_identity *identity, struct text *out) {
    char process[NODE_PROCESS_TEXT_SIZE];
    node_process_write(&identity->process, process);
    node_identity_describe(identity, out);
    text_append_format(out, "%s%s", process[0] == '\0' ? "" : "_", process);
}

/* Cuts off the bits behind the last '_'. A local id has fewer digits. */
static void cut_process(char *text, struct node_process *out_process) {
    char *mark = strrchr(text, '_');
    if (mark != NULL && node_process_parse(mark + 1, out_process)) {
        *mark = '\0';
    }
}

/* Cuts off the number behind the last '_'. */
static bool cut_number(char *text, int64_t *out_number) {
    char *mark = strrchr(text, '_');
    if (mark == NULL || text_parse_integer(mark + 1, out_number) != FAILURE_NONE) {
        return false;
    }
    *mark = '\0';
    return true;
}

bool node_identity_parse(const char *text, struct node_identity *out_identity) {
    char *address = memory_duplicate_string(text);
    struct node_process process = {0};
    int64_t pid;
    int64_t local_id;
    cut_process(address, &process);
    bool is_identity = cut_number(address, &local_id) && cut_number(address, &pid) &&
                       *address != '\0' && strlen(address) < NODE_ADDRESS_SIZE;
    if (is_identity) {
        node_identity_init(out_identity, address, pid, local_id);
        out_identity->process = process;
    }
    free(address);
    return is_identity;
}

/* Node table. */

/* The numbers, then the address: the shortest bytes that identify a node. */
struct node_key {
    int64_t numbers[2];
    struct node_process process;
    char address[NODE_ADDRESS_SIZE];
};

static struct slice make_key(const struct node_identity *identity, struct node_key *key) {
    size_t length = strlen(identity->address);
    key->numbers[0] = identity->pid;
    key->numbers[1] = identity->local_id;
    key->process = identity->process;
    memcpy(key->address, identity->address, length);
    return (struct slice){(const uint8_t *)key, offsetof(struct node_key, address) + length};
}

void node_table_clear(struct node_table *table) {
    table_free(table->numbers);
    table->numbers = NULL;
}

void node_table_put(struct node_table *table, const struct node_identity *identity, size_t number) {
    struct node_key key;
    if (table->numbers == NULL) {
        table->numbers = table_new(NULL);
    }
    /* plus one: the table's value for an absent key is NULL */
    (void)table_put(table->numbers, make_key(identity, &key), (void *)(uintptr_t)(number + 1));
}

void node_table_remove(struct node_table *table, const struct node_identity *identity) {
    struct node_key key;
    if (table->numbers != NULL) {
        (void)table_remove(table->numbers, make_key(identity, &key));
    }
}

size_t node_table_find(const struct node_table *table, const struct node_identity *identity) {
    struct node_key key;
    return table->numbers == NULL
               ? NODE_TABLE_ABSENT
               : (size_t)(uintptr_t)table_get(table->numbers, make_key(identity, &key)) - 1;
}

/* State. */

void rendezvous_state_clear(struct rendezvous_state *state) {
    free(state->nodes);
    free(state->blames);
    *state = (struct rendezvous_state){0};
}

void rendezvous_state_copy(
    const struct rendezvous_state *state, struct rendezvous_state *out_copy) {
    if (state == out_copy) {
        return;
    }
    rendezvous_state_clear(out_copy);
    *out_copy = *state;
    out_copy->blames =
        state->blames == NULL
            ? NULL
            : memory_duplicate(state->blames, RENDEZVOUS_BLAMES_MAXIMUM * sizeof *state->blames);
    out_copy->capacity = state->count;
    out_copy->nodes = state->count == 0
                          ? NULL
                          : memory_duplicate(state->nodes, state->count * sizeof *state->nodes);
}

/* Orders of nodes. */

static int compare_as_torchrun(const void *left, const void *right) {
    const struct rendezvous_node *const *left_node = left;
    const struct rendezvous_node *const *right_node = right;
    return node_identity_compare(&(*left_node)->identity, &(*right_node)->identity);
}

static int compare_naturally(const void *left, const void *right) {
    const struct rendezvous_node *const *left_node = left;
    const struct rendezvous_node *const *right_node = right;
    return node_identity_compare_naturally(&(*left_node)->identity, &(*right_node)->identity);
}

/* The nodes of the record in the given order. The list points into the record; the caller frees it.
 */
static struct rendezvous_node **sort_nodes(
    const struct rendezvous_state *state, int (*compare)(const void *left, const void *right)) {
    struct rendezvous_node **sorted = memory_allocate(state->count * sizeof *sorted);
    for (size_t i = 0; i < state->count; i++) {
        sorted[i] = &state->nodes[i];
    }
    qsort(sorted, state->count, sizeof *sorted, compare);
    return sorted;
}

bool rendezvous_state_is_ranked(const struct rendezvous_state *state) {
    return state->is_complete && state->ranked > 0 && state->ranked - 1 == state->round;
}

int64_t rendezvous_state_ordinal(const struct rendezvous_state *state) {
    return state->round - state->base;
}

void rendezvous_state_count_round(struct rendezvous_state *state) {
    state->round += 1 + state->next_base - state->base;
    state->base = state->next_base;
    state->restarts =
        state->restarts < state->next_restarts ? state->next_restarts : state->restarts;
    state->next_restarts = 0;
}

void rendezvous_state_raise_restarts(struct rendezvous_state *state, int64_t restarts) {
    if (state->restarts >= restarts) {
        return;
    }
    if (!state->is_complete || rendezvous_state_has_foreign_participant(state)) {
        state->restarts = restarts;
    } else if (state->next_restarts < restarts) {
        state->next_restarts = restarts;
    }
}

void rendezvous_state_renumber(struct rendezvous_state *state, int64_t base) {
    state->next_base = base;
    if (!state->is_complete) {
        state->round += base - state->base;
        state->base = base;
    }
}

static size_t find_blame(const struct rendezvous_state *state, const char *address) {
    size_t place = 0;
    while (place < state->blame_count && !text_equals(state->blames[place].address, address)) {
        place++;
    }
    return place;
}

void rendezvous_state_forgive(struct rendezvous_state *state, const char *address) {
    size_t place = find_blame(state, address);
    if (place < state->blame_count) {
        memmove(&state->blames[place], &state->blames[place + 1],
            (state->blame_count - place - 1) * sizeof *state->blames);
        state->blame_count--;
    }
}

int64_t rendezvous_state_blame(struct rendezvous_state *state, const char *address) {
    size_t place = find_blame(state, address);
    struct rendezvous_blame blame = {
        .count = 1 + (place < state->blame_count ? state->blames[place].count : 0)};
    snprintf(blame.address, sizeof blame.address, "%s", address);
    rendezvous_state_forgive(state, address);
    if (state->blames == NULL) {
        state->blames = memory_allocate(RENDEZVOUS_BLAMES_MAXIMUM * sizeof *state->blames);
    }
    size_t kept = state->blame_count < RENDEZVOUS_BLAMES_MAXIMUM ? state->blame_count
                                                                 : RENDEZVOUS_BLAMES_MAXIMUM - 1;
    memmove(&state->blames[1], &state->blames[0], kept * sizeof *state->blames);
    state->blames[0] = blame;
    state->blame_count = kept + 1;
    return blame.count;
}

void rendezvous_state_take_blame_back(struct rendezvous_state *state) {
    if (state->blame_count > 0 && --state->blames[0].count <= 0) {
        char address[NODE_ADDRESS_SIZE];
        memcpy(address, state->blames[0].address, sizeof address);
        rendezvous_state_forgive(state, address);
    }
}

bool rendezvous_state_is_before(
    const struct rendezvous_state *left, const struct rendezvous_state *right) {
    if (left->is_closed != right->is_closed) {
        return right->is_closed;
    }
    int64_t left_ordinal = rendezvous_state_ordinal(left);
    int64_t right_ordinal = rendezvous_state_ordinal(right);
    return left_ordinal < right_ordinal ||
           (left_ordinal == right_ordinal && !left->is_complete && right->is_complete);
}

/* Nodes come and go. */

struct rendezvous_node *rendezvous_state_find(
    const struct rendezvous_state *state, const struct node_identity *identity) {
    for (size_t i = 0; i < state->count; i++) {
        if (node_identity_equals(&state->nodes[i].identity, identity)) {
            return &state->nodes[i];
        }
    }
    return NULL;
}

struct rendezvous_node *rendezvous_state_obtain(
    struct rendezvous_state *state, const struct node_identity *identity) {
    struct rendezvous_node *found = rendezvous_state_find(state, identity);
    if (found != NULL) {
        return found;
    }
    struct rendezvous_node node = {.identity = *identity};
    state->nodes =
        memory_reserve(state->nodes, &state->capacity, state->count + 1, sizeof *state->nodes);
    state->nodes[state->count] = node;
    return &state->nodes[state->count++];
}

struct node_table rendezvous_state_places(const struct rendezvous_state *state) {
    struct node_table places = {0};
    for (size_t i = 0; i < state->count; i++) {
        node_table_put(&places, &state->nodes[i].identity, i);
    }
    return places;
}

static bool has_flag(const struct rendezvous_node *node) {
    return node->is_participant || node->is_waiting || node->is_redundant || node->has_heartbeat;
}

void rendezvous_state_prune(struct rendezvous_state *state) {
    size_t kept = 0;
    for (size_t i = 0; i < state->count; i++) {
        if (has_flag(&state->nodes[i])) {
            if (kept != i) {
                state->nodes[kept] = state->nodes[i];
            }
            kept++;
        }
    }
    state->count = kept;
}

void rendezvous_state_forget_round(struct rendezvous_state *state) {
    state->is_draining = false;
    state->is_doubted = false;
    for (size_t i = 0; i < state->count; i++) {
        state->nodes[i].is_done = false;
    }
}

static void begin_next_round(struct rendezvous_state *state) {
    rendezvous_state_count_round(state);
    rendezvous_state_forget_round(state);
    state->is_complete = false;
    state->wanted = 0;
    state->reason[0] = '\0';
    state->signal = 0;
}

void rendezvous_state_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings) {
    size_t participants = rendezvous_state_participants(state);
    if (state->is_complete) {
        if (participants == 0) {
            begin_next_round(state);
        }
    } else if (participants < (size_t)settings->minimum_nodes) {
        state->has_deadline = false;
    }
}

bool rendezvous_state_take_out(
    struct rendezvous_state *state, const struct node_identity *gone, size_t gone_count) {
    struct node_table names = {0};
    bool was_participant = false;
    for (size_t i = 0; i < gone_count; i++) {
        node_table_put(&names, &gone[i], i);
    }
    for (size_t i = 0; i < state->count; i++) {
        struct rendezvous_node *node = &state->nodes[i];
        if (node_table_find(&names, &node->identity) != NODE_TABLE_ABSENT) {
            was_participant = was_participant || node->is_participant;
            *node = (struct rendezvous_node){.identity = node->identity};
        }
    }
    node_table_clear(&names);
    rendezvous_state_prune(state);
    return was_participant;
}

/* Questions. */

size_t rendezvous_state_participants(const struct rendezvous_state *state) {
    size_t count = state->crowd.participants;
    for (size_t i = 0; i < state->count; i++) {
        count += state->nodes[i].is_participant ? 1 : 0;
    }
    return count;
}

size_t rendezvous_state_waiting(const struct rendezvous_state *state) {
    size_t count = state->crowd.waiting;
    for (size_t i = 0; i < state->count; i++) {
        count += state->nodes[i].is_waiting ? 1 : 0;
    }
    return count;
}

size_t rendezvous_state_redundant(const struct rendezvous_state *state) {
    size_t count = state->crowd.redundant;
    for (size_t i = 0; i < state->count; i++) {
        count += state->nodes[i].is_redundant ? 1 : 0;
    }
    return count;
}

bool rendezvous_state_has_foreign_participant(const struct rendezvous_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_participant && !node_identity_is_muster(&state->nodes[i].identity)) {
            return true;
        }
    }
    return false;
}

bool rendezvous_state_has_foreign_node(const struct rendezvous_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        if (!node_identity_is_muster(&state->nodes[i].identity)) {
            return true;
        }
    }
    return false;
}

bool rendezvous_state_is_whole(const struct rendezvous_state *state) {
    if (state->crowd.participants > 0) {
        return !state->crowd.has_gaps;
    }
    size_t count = rendezvous_state_participants(state);
    bool *is_taken = memory_allocate(count * sizeof *is_taken);
    size_t taken = 0;
    for (size_t i = 0; i < state->count; i++) {
        int64_t rank = state->nodes[i].rank;
        if (state->nodes[i].is_participant && rank >= 0 && rank < (int64_t)count &&
            !is_taken[rank]) {
            is_taken[rank] = true;
            taken++;
        }
    }
    free(is_taken);
    return taken == count;
}

struct rendezvous_crowd rendezvous_state_crowd(const struct rendezvous_state *state) {
    return (struct rendezvous_crowd){.participants = rendezvous_state_participants(state),
        .waiting = rendezvous_state_waiting(state),
        .redundant = rendezvous_state_redundant(state),
        .has_gaps = state->is_complete && !rendezvous_state_is_whole(state)};
}

/* Assigns the ranks of the participants: in torchrun's order when one of torchrun's nodes is a
 * participant, else in the natural order. */
static void rendezvous_state_rank(struct rendezvous_state *state) {
    struct rendezvous_node **sorted = sort_nodes(state,
        rendezvous_state_has_foreign_participant(state) ? compare_as_torchrun : compare_naturally);
    int64_t rank = 0;
    for (size_t i = 0; i < state->count; i++) {
        if (sorted[i]->is_participant) {
            sorted[i]->rank = rank++;
        }
    }
    free(sorted);
}

void rendezvous_state_complete(struct rendezvous_state *state) {
    int64_t size = (int64_t)rendezvous_state_participants(state);
    state->is_complete = true;
    state->has_deadline = false;
    state->wanted = 0;
    state->size = size > state->size ? size : state->size;
    rendezvous_state_rank(state);
}

/* Transcripts. */

static void describe_participants(const struct rendezvous_state *state, struct text *out) {
    const char *gap = "";
    text_append(out, " [");
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (!node->is_participant) {
            continue;
        }
        text_append(out, gap);
        node_identity_describe(&node->identity, out);
        if (state->is_complete) {
            text_append_format(out, ":%" PRId64, node->rank);
        }
        text_append(out, node->is_done ? ":done" : "");
        gap = " ";
    }
    text_append(out, "]");
}

static void describe_spares(
    const struct rendezvous_state *state, bool is_waiting, struct text *out) {
    const char *gap = "";
    text_append(out, is_waiting ? " wait [" : " spare [");
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (is_waiting ? node->is_waiting : node->is_redundant) {
            text_append(out, gap);
            node_identity_describe(&node->identity, out);
            gap = " ";
        }
    }
    text_append(out, "]");
}

static void describe_rest(const struct rendezvous_state *state, struct text *out) {
    if (state->is_closed) {
        text_append(out, state->has_failed ? " closed failed" : " closed");
    }
    if (state->is_draining) {
        text_append(out, " draining");
    }
    if (state->is_frozen) {
        text_append(out, " frozen");
    }
    if (state->is_doubted) {
        text_append(out, " doubted");
    }
    if (state->restarts != 0) {
        text_append_format(out, " restarts %" PRId64, state->restarts);
    }
    if (state->ages.count > 0) {
        text_append_format(out, " recent %zu", state->ages.count);
    }
    for (size_t i = 0; i < state->blame_count; i++) {
        text_append_format(
            out, " %s blamed %" PRId64, state->blames[i].address, state->blames[i].count);
    }
    if (state->is_charged) {
        text_append(out, " charged");
    }
    if (state->wanted != 0) {
        text_append_format(out, " wanted %" PRId64, state->wanted);
    }
    if (rendezvous_state_is_ranked(state)) {
        text_append(out, " ranked");
    }
    if (state->signal != 0) {
        text_append_format(out, " signal %" PRId64, state->signal);
    }
    if (state->reason[0] != '\0') {
        text_append_format(out, " because %s", state->reason);
    }
}

void rendezvous_state_describe(const struct rendezvous_state *state, struct text *out) {
    const char *phase = state->is_complete    ? "complete"
                        : state->has_deadline ? "last_call"
                                              : "open";
    text_append_format(out, "round %" PRId64 " %s", state->round, phase);
    describe_participants(state, out);
    describe_spares(state, true, out);
    describe_spares(state, false, out);
    if (state->crowd.participants + state->crowd.waiting + state->crowd.redundant > 0) {
        text_append_format(out, " beside %zu, %zu and %zu more", state->crowd.participants,
            state->crowd.waiting, state->crowd.redundant);
    }
    describe_rest(state, out);
}
