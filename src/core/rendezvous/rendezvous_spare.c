/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_spare.h"

#include <inttypes.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/utf8.h"

/* Two numbers of so many digits, with a space between them. */
#define NUMBER_DIGITS 16
#define PROGRAM_LENGTH (2 * NUMBER_DIGITS + 1)

static uint64_t hash(const struct text *text) {
    static const uint64_t key[2];
    return keyed_hash(key, (struct slice){(const uint8_t *)text->data, text->length});
}

static void append_with_end(struct text *out, const char *part) {
    text_append_bytes(out, part, strlen(part) + 1);
}

/* Nodes of one job may be given numbers of their own: ranks, addresses. */
static void append_without_digits(struct text *out, const char *part) {
    for (; *part != '\0'; part++) {
        if (!text_is_digit(*part)) {
            text_append_bytes(out, part, 1);
        }
    }
    append_with_end(out, "");
}

void rendezvous_spare_write_program(const struct launch_config *config, struct text *out) {
    const char *script = config->script != NULL ? config->script : "";
    const char *slash = strrchr(script, '/');
    struct text name = {0};
    struct text rest = {0};
    append_with_end(&name, slash != NULL ? slash + 1 : script);
    text_append_format(&rest, "%d", (int)config->entry);
    append_with_end(&rest, "");
    for (size_t i = 0; i < config->script_arguments.count; i++) {
        append_without_digits(&rest, config->script_arguments.items[i]);
    }
    text_append_format(out, "%016" PRIx64 " %016" PRIx64, hash(&name), hash(&rest));
    text_clear(&name);
    text_clear(&rest);
}

static bool is_program(struct slice text) {
    bool is = text.length == PROGRAM_LENGTH && text.data[NUMBER_DIGITS] == ' ';
    for (size_t i = 0; is && i < text.length; i++) {
        is = i == NUMBER_DIGITS || strchr("0123456789abcdef", text.data[i]) != NULL;
    }
    return is;
}

static bool differs(struct slice theirs, const char *own, size_t length) {
    return is_program(theirs) && memcmp(theirs.data, own, length) != 0;
}

static const struct rendezvous_node *find_participant_at(
    const struct rendezvous_state *record, const char *address) {
    for (size_t i = 0; i < record->count; i++) {
        if (record->nodes[i].is_participant &&
            text_equals(record->nodes[i].identity.address, address)) {
            return &record->nodes[i];
        }
    }
    return NULL;
}

bool rendezvous_spare_is_mixed(const struct rendezvous_state *world,
    const struct node_identity *self, struct slice theirs, const char *own) {
    bool is_shared = false;
    for (size_t i = 0; i < world->count && !is_shared; i++) {
        const struct rendezvous_node *node = &world->nodes[i];
        is_shared = node->is_participant && text_equals(node->identity.address, self->address) &&
                    !node_identity_equals(&node->identity, self);
    }
    return rendezvous_state_participants(world) > 1 &&
           differs(theirs, own, is_shared ? PROGRAM_LENGTH : NUMBER_DIGITS);
}

bool rendezvous_spare_find_misplaced(const struct rendezvous_state *record, const char *address,
    struct slice theirs, const char *own, struct text *out) {
    const struct rendezvous_node *here = find_participant_at(record, address);
    if (differs(theirs, own, NUMBER_DIGITS)) {
        text_append(out, "the nodes of that job run another program");
    } else if (differs(theirs, own, PROGRAM_LENGTH)) {
        text_append(out, "the nodes of that job run their program with other arguments");
    } else if (here != NULL) {
        text_append_format(
            out, "a node of that job is on this machine, process %" PRId64, here->identity.pid);
    } else {
        return false;
    }
    if (here != NULL && is_program(theirs) && differs(theirs, own, PROGRAM_LENGTH)) {
        text_append_format(
            out, ", and one of them is on this machine, process %" PRId64, here->identity.pid);
    }
    return true;
}

void rendezvous_spare_describe(const struct launch_config *config, const char *run_id,
    const char *where, bool is_spare, const char *misplaced, struct text *out) {
    struct text line = {0};
    text_append_format(&line, "job '%s' at %s ", run_id, where);
    if (is_spare) {
        text_append_format(&line,
            "has all nodes that it may have (--nnodes %d:%d): this one is a spare, and starts no "
            "worker before one of them is lost",
            config->minimum_nodes, config->maximum_nodes);
    } else {
        text_append(&line, "is at work without this node, which waits to be let in (--scale-up)");
    }
    if (misplaced != NULL) {
        text_append_format(&line,
            "; but %s: if these are two jobs, give this one an --rdzv-id of its own (this node "
            "ends with status 1 if the other job does not need it)",
            misplaced);
    }
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&line);
}
