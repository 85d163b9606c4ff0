/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/rendezvous_state_pickle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "wire/pickle/pickle_document.h"
#include "wire/pickle/pickle_reader.h"

/* Larger round numbers, ranks and counters of Muster are refused. */
#define RENDEZVOUS_STATE_LARGEST_NUMBER INT32_MAX

void restart_ages_write(const struct restart_ages *ages, size_t bytes, struct text *out) {
    struct text one = {0};
    size_t start = out->length;
    for (size_t i = 0; i < ages->count; i++) {
        text_append_format(&one, "%s%" PRId32, i > 0 ? " " : "", ages->seconds[i]);
        if (out->length - start + one.length > bytes) {
            break;
        }
        text_append(out, text_string(&one));
        text_clear(&one);
    }
    text_clear(&one);
}

bool restart_ages_read(struct slice text, struct restart_ages *out_ages) {
    struct restart_ages ages = {0};
    size_t at = 0;
    while (at < text.length) {
        int64_t age = 0;
        size_t start = at;
        for (; at < text.length && text_is_digit(text.data[at]) && age <= RESTART_AGE_MAXIMUM;
             at++) {
            age = 10 * age + (text.data[at] - '0');
        }
        bool is_end = at == text.length;
        if (at == start || age > RESTART_AGE_MAXIMUM || ages.count == RESTART_HISTORY_MAXIMUM ||
            (!is_end && (text.data[at] != ' ' || at + 1 == text.length))) {
            return false;
        }
        ages.seconds[ages.count++] = (int32_t)age;
        at += is_end ? 0 : 1;
    }
    *out_ages = ages;
    return true;
}

struct reader {
    const struct pickle_document *document;
    const struct pickle_value *root;
    struct rendezvous_state state;
    struct node_table places;
    struct text *reason;
};

/* Attributes of an object. */

static enum failure_code refuse_kind(
    struct reader *reader, const char *name, const struct pickle_value *value, const char *wanted) {
    text_append_format(
        reader->reason, "%s is %s, not %s", name, pickle_kind_name(value->kind), wanted);
    return FAILURE_MALFORMED;
}

/* Finds the attribute; its value may be of any kind. */
static enum failure_code find(struct reader *reader, const struct pickle_value *object,
    const char *name, const struct pickle_value **out_value) {
    const struct pickle_value *value = pickle_document_attribute(reader->document, object, name);
    if (value == NULL) {
        text_append_format(reader->reason, "%s is missing", name);
        return FAILURE_MALFORMED;
    }
    *out_value = value;
    return FAILURE_NONE;
}

/* Finds the attribute, whose value must be of that kind. */
static enum failure_code find_kind(struct reader *reader, const struct pickle_value *object,
    const char *name, enum pickle_kind kind, const struct pickle_value **out_value) {
    enum failure_code code = find(reader, object, name, out_value);
    if (code == FAILURE_NONE && (*out_value)->kind != kind) {
        return refuse_kind(reader, name, *out_value, pickle_kind_name(kind));
    }
    return code;
}

static enum failure_code check_number(
    struct reader *reader, const char *name, const struct pickle_value *value) {
    if (value->kind != PICKLE_VALUE_INTEGER) {
        return refuse_kind(reader, name, value, pickle_kind_name(PICKLE_VALUE_INTEGER));
    }
    if (value->integer < 0 || value->integer > RENDEZVOUS_STATE_LARGEST_NUMBER) {
        text_append_format(
            reader->reason, "%s is %" PRId64 ", which is out of range", name, value->integer);
        return FAILURE_LIMIT;
    }
    return FAILURE_NONE;
}

static enum failure_code read_number(struct reader *reader, const char *name, int64_t *out_number) {
    const struct pickle_value *value;
    enum failure_code code = find(reader, reader->root, name, &value);
    if (code == FAILURE_NONE) {
        code = check_number(reader, name, value);
    }
    if (code == FAILURE_NONE) {
        *out_number = value->integer;
    }
    return code;
}

static enum failure_code read_boolean(struct reader *reader, const char *name, bool *out_boolean) {
    const struct pickle_value *value;
    enum failure_code code = find_kind(reader, reader->root, name, PICKLE_VALUE_BOOLEAN, &value);
    if (code == FAILURE_NONE) {
        *out_boolean = value->boolean;
    }
    return code;
}

static enum failure_code read_time(struct reader *reader, const char *name,
    const struct pickle_value *value, struct wall_time *out_time) {
    struct text detail = {0};
    enum failure_code code = pickle_datetime_read(reader->document, value, out_time, &detail);
    if (code != FAILURE_NONE) {
        text_append_format(reader->reason, "%s is %s", name, text_string(&detail));
    }
    text_clear(&detail);
    return code;
}

/* Nodes. */

static enum failure_code read_address(
    struct reader *reader, const struct pickle_value *object, struct node_identity *identity) {
    const struct pickle_value *value;
    enum failure_code code = find_kind(reader, object, "addr", PICKLE_VALUE_TEXT, &value);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (value->bytes.length >= sizeof identity->address) {
        text_append_format(reader->reason, "an address of %zu bytes, the limit is %zu",
            value->bytes.length, sizeof identity->address - 1);
        return FAILURE_LIMIT;
    }
    if (value->bytes.length > 0) {
        if (memchr(value->bytes.data, 0, value->bytes.length) != NULL) {
            text_append(reader->reason, "an address with a NUL in it");
            return FAILURE_MALFORMED;
        }
        memcpy(identity->address, value->bytes.data, value->bytes.length);
    }
    return FAILURE_NONE;
}

/* Either half may be absent: torchrun's nodes have none, and without a register nobody has. */
static enum failure_code read_half(struct reader *reader, const struct pickle_value *object,
    const char *name, uint64_t *out_half) {
    const struct pickle_value *value;
    if (pickle_document_attribute(reader->document, object, name) == NULL) {
        return FAILURE_NONE;
    }
    enum failure_code code = find_kind(reader, object, name, PICKLE_VALUE_INTEGER, &value);
    if (code == FAILURE_NONE) {
        *out_half = (uint64_t)value->integer;
    }
    return code;
}

static enum failure_code read_process(
    struct reader *reader, const struct pickle_value *object, struct node_process *out_process) {
    enum failure_code code = read_half(reader, object, "muster_high", &out_process->high);
    return code == FAILURE_NONE ? read_half(reader, object, "muster_low", &out_process->low) : code;
}

static enum failure_code read_identity(
    struct reader *reader, const struct pickle_value *object, struct node_identity *out_identity) {
    if (!pickle_value_is_object(object, PICKLE_CLASS_NODE)) {
        text_append(reader->reason, "a node is no _NodeDesc");
        return FAILURE_MALFORMED;
    }
    const struct pickle_value *pid;
    const struct pickle_value *local_id;
    enum failure_code code = read_address(reader, object, out_identity);
    if (code == FAILURE_NONE) {
        code = find_kind(reader, object, "pid", PICKLE_VALUE_INTEGER, &pid);
    }
    if (code == FAILURE_NONE) {
        code = find_kind(reader, object, "local_id", PICKLE_VALUE_INTEGER, &local_id);
    }
    if (code == FAILURE_NONE) {
        out_identity->pid = pid->integer;
        out_identity->local_id = local_id->integer;
        code = read_process(reader, object, &out_identity->process);
    }
    return code;
}

/* Returns the record's node that the value names, and adds it if it is new. The pointer is valid
 * until the next call. */
static enum failure_code obtain_node(
    struct reader *reader, const struct pickle_value *value, struct rendezvous_node **out_node) {
    struct rendezvous_state *state = &reader->state;
    struct rendezvous_node node = {.rank = 0};
    enum failure_code code = read_identity(reader, value, &node.identity);
    if (code != FAILURE_NONE) {
        return code;
    }
    size_t place = node_table_find(&reader->places, &node.identity);
    if (place == NODE_TABLE_ABSENT) {
        if (state->count == RENDEZVOUS_NODES_MAXIMUM) {
            text_append_format(reader->reason, "more than %d nodes", RENDEZVOUS_NODES_MAXIMUM);
            return FAILURE_LIMIT;
        }
        state->nodes =
            memory_reserve(state->nodes, &state->capacity, state->count + 1, sizeof *state->nodes);
        place = state->count++;
        state->nodes[place] = node;
        node_table_put(&reader->places, &node.identity, place);
    }
    *out_node = &state->nodes[place];
    return FAILURE_NONE;
}

static bool has(const struct reader *reader, const char *name) {
    return pickle_document_attribute(reader->document, reader->root, name) != NULL;
}

/* Collections of nodes. */

/* Walks over a set's members, in the spelling of protocol 4 or of protocols 2 and 3. */
static enum failure_code walk_set(
    struct reader *reader, const char *name, struct pickle_walk *out_walk) {
    const struct pickle_value *value;
    enum failure_code code = find(reader, reader->root, name, &value);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (value->kind == PICKLE_VALUE_SET) {
        *out_walk = pickle_walk_begin(reader->document, value);
        return FAILURE_NONE;
    }
    if (!pickle_value_is_object(value, PICKLE_CLASS_SET)) {
        return refuse_kind(reader, name, value, pickle_kind_name(PICKLE_VALUE_SET));
    }
    struct pickle_walk arguments =
        pickle_walk_begin(reader->document, pickle_document_arguments(reader->document, value));
    const struct pickle_value *list = pickle_walk_next(&arguments);
    if (list == NULL || list->kind != PICKLE_VALUE_LIST) {
        text_append_format(reader->reason, "%s is a set of no list", name);
        return FAILURE_MALFORMED;
    }
    *out_walk = pickle_walk_begin(reader->document, list);
    return FAILURE_NONE;
}

static enum failure_code walk_dict(
    struct reader *reader, const char *name, struct pickle_walk *out_walk) {
    const struct pickle_value *value;
    enum failure_code code = find_kind(reader, reader->root, name, PICKLE_VALUE_DICT, &value);
    if (code == FAILURE_NONE) {
        *out_walk = pickle_walk_begin(reader->document, value);
    }
    return code;
}

/* Reads the walk's next node; NULL at the end. */
static enum failure_code next_node(struct reader *reader, const char *name,
    struct pickle_walk *walk, struct rendezvous_node **out_node) {
    const struct pickle_value *value = pickle_walk_next(walk);
    *out_node = NULL;
    if (value == NULL) {
        return FAILURE_NONE;
    }
    enum failure_code code = obtain_node(reader, value, out_node);
    if (code != FAILURE_NONE) {
        text_append_format(reader->reason, ", in %s", name);
    }
    return code;
}

static enum failure_code read_participants(struct reader *reader) {
    static const char name[] = "participants";
    struct rendezvous_node *node;
    struct pickle_walk walk;
    enum failure_code code = walk_dict(reader, name, &walk);
    while (code == FAILURE_NONE && (code = next_node(reader, name, &walk, &node)) == FAILURE_NONE &&
           node != NULL) {
        const struct pickle_value *rank = pickle_walk_next(&walk);
        code = check_number(reader, "a rank", rank);
        node->is_participant = true;
        node->rank = code == FAILURE_NONE ? rank->integer : 0;
    }
    return code;
}

static enum failure_code read_heartbeats(struct reader *reader) {
    static const char name[] = "last_heartbeats";
    struct rendezvous_node *node;
    struct pickle_walk walk;
    enum failure_code code = walk_dict(reader, name, &walk);
    while (code == FAILURE_NONE && (code = next_node(reader, name, &walk, &node)) == FAILURE_NONE &&
           node != NULL) {
        code = read_time(reader, "a heartbeat", pickle_walk_next(&walk), &node->heartbeat);
        node->has_heartbeat = true;
    }
    return code;
}

static enum failure_code read_wait_list(struct reader *reader) {
    static const char name[] = "wait_list";
    struct rendezvous_node *node;
    struct pickle_walk walk;
    enum failure_code code = walk_set(reader, name, &walk);
    while (code == FAILURE_NONE && (code = next_node(reader, name, &walk, &node)) == FAILURE_NONE &&
           node != NULL) {
        node->is_waiting = true;
    }
    return code;
}

static enum failure_code read_redundancy_list(struct reader *reader) {
    static const char name[] = "redundancy_list";
    struct rendezvous_node *node;
    struct pickle_walk walk;
    enum failure_code code = walk_set(reader, name, &walk);
    while (code == FAILURE_NONE && (code = next_node(reader, name, &walk, &node)) == FAILURE_NONE &&
           node != NULL) {
        node->is_redundant = true;
    }
    return code;
}

/* May be absent. torchrun takes a node out of its own collections alone. */
static enum failure_code read_done(struct reader *reader) {
    static const char name[] = "muster_done";
    struct rendezvous_node *node;
    struct pickle_walk walk;
    if (!has(reader, name)) {
        return FAILURE_NONE;
    }
    enum failure_code code = walk_set(reader, name, &walk);
    while (code == FAILURE_NONE && (code = next_node(reader, name, &walk, &node)) == FAILURE_NONE &&
           node != NULL) {
        node->is_done = node->is_participant;
    }
    rendezvous_state_prune(&reader->state); /* nothing looks for a place after this */
    return code;
}

/* The rest. */

static enum failure_code read_round(struct reader *reader) {
    return read_number(reader, "round", &reader->state.round);
}

static enum failure_code read_complete(struct reader *reader) {
    return read_boolean(reader, "complete", &reader->state.is_complete);
}

static enum failure_code read_deadline(struct reader *reader) {
    const struct pickle_value *value;
    enum failure_code code = find(reader, reader->root, "deadline", &value);
    if (code != FAILURE_NONE || value->kind == PICKLE_VALUE_NONE) {
        return code;
    }
    reader->state.has_deadline = true;
    return read_time(reader, "deadline", value, &reader->state.deadline);
}

static enum failure_code read_closed(struct reader *reader) {
    return read_boolean(reader, "closed", &reader->state.is_closed);
}

/* Copies as much of the text as fits, cut at the end of a character. It will be shown. */
static void copy_reason(struct slice text, char out_reason[RENDEZVOUS_REASON_SIZE]) {
    size_t length = 0;
    while (length < text.length && text.data[length] != 0) {
        size_t left = text.length - length;
        size_t character = utf8_character_length(text.data + length, left);
        if (character == 0 || length + character >= RENDEZVOUS_REASON_SIZE) {
            break;
        }
        length += character;
    }
    if (length > 0) {
        memcpy(out_reason, text.data, length);
    }
    out_reason[length] = '\0';
    utf8_make_line_printable(out_reason);
}

static enum failure_code check_base(struct reader *reader) {
    const struct rendezvous_state *state = &reader->state;
    if (state->base > state->round) {
        text_append_format(reader->reason,
            "muster_base is %" PRId64 ", which is above the round %" PRId64, state->base,
            state->round);
        return FAILURE_LIMIT;
    }
    return FAILURE_NONE;
}

static enum failure_code read_ages(struct reader *reader) {
    static const char name[] = "muster_restart_ages";
    const struct pickle_value *value;
    if (!has(reader, name)) {
        return FAILURE_NONE;
    }
    enum failure_code code = find_kind(reader, reader->root, name, PICKLE_VALUE_TEXT, &value);
    if (code == FAILURE_NONE && !restart_ages_read(value->bytes, &reader->state.ages)) {
        text_append_format(reader->reason, "%s are no ages", name);
        return FAILURE_MALFORMED;
    }
    return code;
}

/* One line for each node: how often, a blank, and its address. */
static bool take_blame(struct rendezvous_state *state, struct slice *rest) {
    struct rendezvous_blame *blame = &state->blames[state->blame_count];
    size_t at = 0;
    size_t length = 0;
    int64_t count = 0;
    for (; at < rest->length && text_is_digit(rest->data[at]) && count < INT32_MAX; at++) {
        count = 10 * count + (rest->data[at] - '0');
    }
    if (at == 0 || at == rest->length || rest->data[at] != ' ' || count > INT32_MAX) {
        return false;
    }
    const uint8_t *address = rest->data + at + 1;
    size_t left = rest->length - at - 1;
    while (length < left && address[length] != '\n') {
        length++;
    }
    if (length == left || length >= sizeof blame->address || memchr(address, 0, length) != NULL) {
        return false;
    }
    *blame = (struct rendezvous_blame){.count = count};
    memcpy(blame->address, address, length);
    state->blame_count++;
    *rest = (struct slice){address + length + 1, left - length - 1};
    return true;
}

static enum failure_code read_blames(struct reader *reader) {
    static const char name[] = "muster_blames";
    const struct pickle_value *value;
    if (!has(reader, name)) {
        return FAILURE_NONE;
    }
    enum failure_code code = find_kind(reader, reader->root, name, PICKLE_VALUE_TEXT, &value);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct slice rest = value->bytes;
    struct rendezvous_state *state = &reader->state;
    state->blames = memory_allocate(RENDEZVOUS_BLAMES_MAXIMUM * sizeof *state->blames);
    while (rest.length > 0) {
        if (state->blame_count == RENDEZVOUS_BLAMES_MAXIMUM || !take_blame(state, &rest)) {
            text_append_format(reader->reason, "%s are no lines of a number and a node", name);
            return FAILURE_MALFORMED;
        }
    }
    return FAILURE_NONE;
}

/* Reads Muster's own attributes. An attribute may be absent. */
static enum failure_code read_extras(struct reader *reader) {
    struct rendezvous_state *state = &reader->state;
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {{"muster_origin", &state->origin}, {"muster_base", &state->base},
        {"muster_next_base", &state->next_base}, {"muster_restarts", &state->restarts},
        {"muster_next_restarts", &state->next_restarts}, {"muster_wanted", &state->wanted},
        {"muster_size", &state->size}, {"muster_ranked", &state->ranked},
        {"muster_signal", &state->signal}};
    const struct {
        const char *name;
        bool *boolean;
    } booleans[] = {{"muster_draining", &state->is_draining}, {"muster_frozen", &state->is_frozen},
        {"muster_charged", &state->is_charged}, {"muster_doubted", &state->is_doubted},
        {"muster_failed", &state->has_failed}};
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && code == FAILURE_NONE; i++) {
        if (has(reader, numbers[i].name)) {
            code = read_number(reader, numbers[i].name, numbers[i].number);
        }
    }
    for (size_t i = 0; i < sizeof booleans / sizeof *booleans && code == FAILURE_NONE; i++) {
        if (has(reader, booleans[i].name)) {
            code = read_boolean(reader, booleans[i].name, booleans[i].boolean);
        }
    }
    code = code == FAILURE_NONE ? check_base(reader) : code;
    code = code == FAILURE_NONE ? read_ages(reader) : code;
    code = code == FAILURE_NONE ? read_blames(reader) : code;
    if (code == FAILURE_NONE && has(reader, "muster_reason")) {
        const struct pickle_value *value;
        code = find_kind(reader, reader->root, "muster_reason", PICKLE_VALUE_TEXT, &value);
        if (code == FAILURE_NONE) {
            copy_reason(value->bytes, state->reason);
        }
    }
    return code;
}

/* Reads the document's root. `out_state` must be empty. On failure it is untouched, and one line is
 * appended to `out_reason`. FAILURE_MALFORMED: it is not a state, an attribute is missing or has
 * another type. FAILURE_LIMIT: too many nodes, or a number, date or address out of range. */
static enum failure_code rendezvous_state_unpickle(const struct pickle_document *document,
    struct rendezvous_state *out_state, struct text *out_reason) {
    static enum failure_code (*const parts[])(struct reader * reader) = {read_round, read_complete,
        read_deadline, read_closed, read_participants, read_wait_list, read_redundancy_list,
        read_heartbeats, read_done, read_extras};
    const struct pickle_value *root = pickle_document_root(document);
    if (!pickle_value_is_object(root, PICKLE_CLASS_RENDEZVOUS_STATE)) {
        text_append_format(out_reason, "%s, not a _RendezvousState", pickle_kind_name(root->kind));
        return FAILURE_MALFORMED;
    }
    struct reader reader = {.document = document, .root = root, .reason = out_reason};
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && code == FAILURE_NONE; i++) {
        code = parts[i](&reader);
    }
    node_table_clear(&reader.places);
    if (code == FAILURE_NONE) {
        *out_state = reader.state;
    } else {
        rendezvous_state_clear(&reader.state);
    }
    return code;
}

/* State pickle. */

#define PICKLE_MAXIMUM_BYTES (RENDEZVOUS_STATE_TEXT_MAXIMUM / 4 * 3)
/* An upper bound: a node that is spelled out twice, classes included, needs less. */
#define VALUES_PER_NODE 32

/* Reading. */

enum failure_code rendezvous_state_read_pickle(
    struct slice input, struct rendezvous_state *out_state, struct text *out_reason) {
    static const struct pickle_limits limits = {
        .bytes = PICKLE_MAXIMUM_BYTES,
        .values = (size_t)RENDEZVOUS_NODES_MAXIMUM * VALUES_PER_NODE,
        .items = RENDEZVOUS_NODES_MAXIMUM,
    };
    struct pickle_document document;
    enum failure_code code = pickle_read(input, &limits, &document, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct rendezvous_state state = {0};
    code = rendezvous_state_unpickle(&document, &state, out_reason);
    pickle_document_clear(&document);
    if (code == FAILURE_NONE) {
        rendezvous_state_clear(out_state);
        *out_state = state;
    }
    return code;
}

static enum failure_code check_length(struct slice input, struct text *out_reason) {
    if (input.length <= RENDEZVOUS_STATE_TEXT_MAXIMUM) {
        return FAILURE_NONE;
    }
    text_append_format(out_reason, "%zu bytes long, the limit is %zu", input.length,
        RENDEZVOUS_STATE_TEXT_MAXIMUM);
    return FAILURE_LIMIT;
}

enum failure_code rendezvous_state_read_text(struct slice input, bool *out_is_absent,
    struct rendezvous_state *out_state, struct text *out_reason) {
    if (slice_equals(input, slice_from_string(RENDEZVOUS_STATE_ABSENT))) {
        rendezvous_state_clear(out_state);
        *out_is_absent = true;
        return FAILURE_NONE;
    }
    enum failure_code code = check_length(input, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct bytes pickle = {0};
    code = base64_decode(input, &pickle);
    if (code == FAILURE_NONE) {
        code = rendezvous_state_read_pickle(bytes_slice(&pickle), out_state, out_reason);
    } else {
        text_append(out_reason, "no base64");
    }
    bytes_clear(&pickle);
    if (code == FAILURE_NONE) {
        *out_is_absent = false;
    }
    return code;
}

/* Writing. Values that occur several times are stored in the memo first. So each use is short, and
 * the order of the attributes does not matter. */

struct writer {
    struct pickle_writer pickle;
    uint32_t *node_slots; /* the node's slot of the memo plus one; 0: not written yet */
    uint32_t node_class;
    uint32_t address_name;
    uint32_t pid_name;
    uint32_t local_id_name;
    uint32_t process_names[2]; /* where the record has nodes whose processes are known */
    uint32_t datetime_class;
    uint32_t utc;
};

static uint32_t keep_apart(struct pickle_writer *pickle) {
    uint32_t slot = pickle_write_keep(pickle);
    pickle_write_opcode(pickle, PICKLE_POP);
    return slot;
}

static uint32_t keep_text(struct pickle_writer *pickle, const char *text) {
    pickle_write_text(pickle, slice_from_string(text));
    return keep_apart(pickle);
}

/* Stores timezone(timedelta(0, 0, 0)) in the memo. */
static uint32_t keep_utc(struct pickle_writer *pickle) {
    pickle_write_class(pickle, PICKLE_CLASS_TIMEZONE);
    pickle_write_class(pickle, PICKLE_CLASS_TIMEDELTA);
    for (int i = 0; i < 3; i++) {
        pickle_write_integer(pickle, 0);
    }
    pickle_write_opcode(pickle, PICKLE_TUPLE3);
    pickle_write_opcode(pickle, PICKLE_REDUCE);
    pickle_write_opcode(pickle, PICKLE_TUPLE1);
    pickle_write_opcode(pickle, PICKLE_REDUCE);
    return keep_apart(pickle);
}

static bool knows_processes(const struct rendezvous_state *state) {
    bool knows = false;
    for (size_t i = 0; i < state->count && !knows; i++) {
        knows = node_process_is_known(&state->nodes[i].identity.process);
    }
    return knows;
}

static void keep_repeated_values(struct writer *writer, const struct rendezvous_state *state) {
    struct pickle_writer *pickle = &writer->pickle;
    pickle_write_class(pickle, PICKLE_CLASS_NODE);
    writer->node_class = keep_apart(pickle);
    writer->address_name = keep_text(pickle, "addr");
    writer->pid_name = keep_text(pickle, "pid");
    writer->local_id_name = keep_text(pickle, "local_id");
    if (knows_processes(state)) {
        writer->process_names[0] = keep_text(pickle, "muster_high");
        writer->process_names[1] = keep_text(pickle, "muster_low");
    }
    pickle_write_class(pickle, PICKLE_CLASS_DATETIME);
    writer->datetime_class = keep_apart(pickle);
    writer->utc = keep_utc(pickle);
}

static void write_time(struct writer *writer, struct wall_time time) {
    uint8_t bytes[PICKLE_DATETIME_BYTES];
    pickle_datetime_encode(time, bytes);
    pickle_write_recall(&writer->pickle, writer->datetime_class);
    pickle_write_bytes(&writer->pickle, (struct slice){bytes, sizeof bytes});
    pickle_write_recall(&writer->pickle, writer->utc);
    pickle_write_opcode(&writer->pickle, PICKLE_TUPLE2);
    pickle_write_opcode(&writer->pickle, PICKLE_REDUCE);
}

static void begin_object(struct pickle_writer *pickle) {
    pickle_write_opcode(pickle, PICKLE_EMPTY_TUPLE);
    pickle_write_opcode(pickle, PICKLE_NEWOBJ);
    pickle_write_opcode(pickle, PICKLE_EMPTY_DICT);
    pickle_write_opcode(pickle, PICKLE_MARK);
}

static void end_object(struct pickle_writer *pickle) {
    pickle_write_opcode(pickle, PICKLE_SETITEMS);
    pickle_write_opcode(pickle, PICKLE_BUILD);
}

static void write_node(struct writer *writer, const struct rendezvous_state *state, size_t place) {
    struct pickle_writer *pickle = &writer->pickle;
    if (writer->node_slots[place] != 0) {
        pickle_write_recall(pickle, writer->node_slots[place] - 1);
        return;
    }
    const struct node_identity *identity = &state->nodes[place].identity;
    pickle_write_recall(pickle, writer->node_class);
    begin_object(pickle);
    pickle_write_recall(pickle, writer->address_name);
    pickle_write_text(pickle, slice_from_string(identity->address));
    pickle_write_recall(pickle, writer->pid_name);
    pickle_write_integer(pickle, identity->pid);
    pickle_write_recall(pickle, writer->local_id_name);
    pickle_write_integer(pickle, identity->local_id);
    if (node_process_is_known(&identity->process)) {
        pickle_write_recall(pickle, writer->process_names[0]);
        pickle_write_integer(pickle, (int64_t)identity->process.high);
        pickle_write_recall(pickle, writer->process_names[1]);
        pickle_write_integer(pickle, (int64_t)identity->process.low);
    }
    end_object(pickle);
    writer->node_slots[place] = pickle_write_keep(pickle) + 1;
}

static void begin_attribute(struct writer *writer, const char *name) {
    pickle_write_text(&writer->pickle, slice_from_string(name));
}

static void begin_collection(
    struct writer *writer, const char *name, enum pickle_opcode empty_collection) {
    begin_attribute(writer, name);
    pickle_write_opcode(&writer->pickle, empty_collection);
    pickle_write_opcode(&writer->pickle, PICKLE_MARK);
}

static void write_participants(struct writer *writer, const struct rendezvous_state *state) {
    begin_collection(writer, "participants", PICKLE_EMPTY_DICT);
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_participant) {
            write_node(writer, state, i);
            pickle_write_integer(&writer->pickle, state->nodes[i].rank);
        }
    }
    pickle_write_opcode(&writer->pickle, PICKLE_SETITEMS);
}

static void write_lists(struct writer *writer, const struct rendezvous_state *state) {
    begin_collection(writer, "wait_list", PICKLE_EMPTY_SET);
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_waiting) {
            write_node(writer, state, i);
        }
    }
    pickle_write_opcode(&writer->pickle, PICKLE_ADDITEMS);
    begin_collection(writer, "redundancy_list", PICKLE_EMPTY_SET);
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_redundant) {
            write_node(writer, state, i);
        }
    }
    pickle_write_opcode(&writer->pickle, PICKLE_ADDITEMS);
}

static bool has_done(const struct rendezvous_state *state) {
    bool has = false;
    for (size_t i = 0; i < state->count && !has; i++) {
        has = state->nodes[i].is_done;
    }
    return has;
}

static void write_done(struct writer *writer, const struct rendezvous_state *state) {
    if (!has_done(state)) {
        return;
    }
    begin_collection(writer, "muster_done", PICKLE_EMPTY_SET);
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_done) {
            write_node(writer, state, i);
        }
    }
    pickle_write_opcode(&writer->pickle, PICKLE_ADDITEMS);
}

static void write_heartbeats(struct writer *writer, const struct rendezvous_state *state) {
    begin_collection(writer, "last_heartbeats", PICKLE_EMPTY_DICT);
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].has_heartbeat) {
            write_node(writer, state, i);
            write_time(writer, state->nodes[i].heartbeat);
        }
    }
    pickle_write_opcode(&writer->pickle, PICKLE_SETITEMS);
}

static void write_round(struct writer *writer, const struct rendezvous_state *state) {
    struct pickle_writer *pickle = &writer->pickle;
    begin_attribute(writer, "round");
    pickle_write_integer(pickle, state->round);
    begin_attribute(writer, "complete");
    pickle_write_boolean(pickle, state->is_complete);
    begin_attribute(writer, "deadline");
    if (state->has_deadline) {
        write_time(writer, state->deadline);
    } else {
        pickle_write_opcode(pickle, PICKLE_NONE);
    }
    begin_attribute(writer, "closed");
    pickle_write_boolean(pickle, state->is_closed);
}

/* Writes text that every reader can decode, whatever the bytes are: a bad reason must not end a
 * job. */
static void write_repaired_text(struct pickle_writer *pickle, const char *text) {
    struct text repaired = {0};
    struct slice rest = slice_from_string(text);
    while (rest.length > 0) {
        size_t length = utf8_character_length(rest.data, rest.length);
        size_t taken = length == 0 ? 1 : length;
        text_append_bytes(&repaired, length == 0 ? "?" : (const char *)rest.data, taken);
        rest.data += taken;
        rest.length -= taken;
    }
    pickle_write_text(pickle, slice_from_string(text_string(&repaired)));
    text_clear(&repaired);
}

static void write_blames(struct writer *writer, const struct rendezvous_state *state) {
    struct text lines = {0};
    for (size_t i = 0; i < state->blame_count; i++) {
        const struct rendezvous_blame *blame = &state->blames[i];
        if (strchr(blame->address, '\n') == NULL) {
            text_append_format(&lines, "%" PRId64 " %s\n", blame->count, blame->address);
        }
    }
    if (lines.length > 0) {
        begin_attribute(writer, "muster_blames");
        write_repaired_text(&writer->pickle, text_string(&lines));
    }
    text_clear(&lines);
}

static void write_extras(struct writer *writer, const struct rendezvous_state *state) {
    if (state->origin != 0) {
        begin_attribute(writer, "muster_origin");
        pickle_write_integer(&writer->pickle, state->origin);
    }
    if (state->base != 0) {
        begin_attribute(writer, "muster_base");
        pickle_write_integer(&writer->pickle, state->base);
    }
    if (state->next_base != 0) {
        begin_attribute(writer, "muster_next_base");
        pickle_write_integer(&writer->pickle, state->next_base);
    }
    if (state->restarts != 0) {
        begin_attribute(writer, "muster_restarts");
        pickle_write_integer(&writer->pickle, state->restarts);
    }
    if (state->ages.count > 0) {
        struct text ages = {0};
        restart_ages_write(&state->ages, RESTART_AGES_TEXT_MAXIMUM, &ages);
        begin_attribute(writer, "muster_restart_ages");
        pickle_write_text(&writer->pickle, slice_from_string(text_string(&ages)));
        text_clear(&ages);
    }
    write_blames(writer, state);
    if (state->next_restarts != 0) {
        begin_attribute(writer, "muster_next_restarts");
        pickle_write_integer(&writer->pickle, state->next_restarts);
    }
    if (state->wanted != 0) {
        begin_attribute(writer, "muster_wanted");
        pickle_write_integer(&writer->pickle, state->wanted);
    }
    if (state->size != 0) {
        begin_attribute(writer, "muster_size");
        pickle_write_integer(&writer->pickle, state->size);
    }
    if (state->ranked != 0) {
        begin_attribute(writer, "muster_ranked");
        pickle_write_integer(&writer->pickle, state->ranked);
    }
    if (state->is_draining) {
        begin_attribute(writer, "muster_draining");
        pickle_write_boolean(&writer->pickle, true);
    }
    if (state->is_frozen) {
        begin_attribute(writer, "muster_frozen");
        pickle_write_boolean(&writer->pickle, true);
    }
    if (state->is_charged) {
        begin_attribute(writer, "muster_charged");
        pickle_write_boolean(&writer->pickle, true);
    }
    if (state->is_doubted) {
        begin_attribute(writer, "muster_doubted");
        pickle_write_boolean(&writer->pickle, true);
    }
    if (state->has_failed) {
        begin_attribute(writer, "muster_failed");
        pickle_write_boolean(&writer->pickle, true);
    }
    if (state->signal != 0) {
        begin_attribute(writer, "muster_signal");
        pickle_write_integer(&writer->pickle, state->signal);
    }
    if (state->reason[0] != '\0') {
        begin_attribute(writer, "muster_reason");
        write_repaired_text(&writer->pickle, state->reason);
    }
}

enum failure_code rendezvous_state_write_pickle(
    const struct rendezvous_state *state, struct bytes *out) {
    struct writer writer = {
        .node_slots = memory_allocate(state->count * sizeof *writer.node_slots)};
    pickle_writer_begin(&writer.pickle, out);
    keep_repeated_values(&writer, state);
    pickle_write_class(&writer.pickle, PICKLE_CLASS_RENDEZVOUS_STATE);
    begin_object(&writer.pickle);
    write_round(&writer, state);
    write_participants(&writer, state);
    write_lists(&writer, state);
    write_heartbeats(&writer, state);
    write_done(&writer, state);
    write_extras(&writer, state);
    end_object(&writer.pickle);
    free(writer.node_slots);
    return pickle_writer_end(&writer.pickle);
}

enum failure_code rendezvous_state_write_text(
    const struct rendezvous_state *state, struct bytes *out) {
    struct bytes pickle;
    bytes_init(&pickle, PICKLE_MAXIMUM_BYTES);
    enum failure_code code = rendezvous_state_write_pickle(state, &pickle);
    if (code == FAILURE_NONE) {
        code = base64_encode(bytes_slice(&pickle), out);
    }
    bytes_clear(&pickle);
    return code;
}
