/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/rendezvous_state_pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "wire/pickle/pickle_document.h"
#include "wire/pickle/pickle_reader.h"
#include "wire/pickle/pickle_writer.h"
#include "wire/rendezvous/base64.h"
#include "wire/rendezvous/rendezvous_state_unpickle.h"

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
