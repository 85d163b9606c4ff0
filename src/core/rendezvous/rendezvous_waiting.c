/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_waiting.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
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

/* Waiting. */

/* How many names are listed at most. */
#define RENDEZVOUS_WAITING_NAMES 16

#define SECONDS_PER_MINUTE 60

struct duration rendezvous_waiting_moment(int count) {
    static const int first[] = {5, 15};
    int known = (int)(sizeof first / sizeof *first);
    return duration_from_seconds(
        count < known ? first[count] : (double)(count - known + 1) * SECONDS_PER_MINUTE);
}

/* Appends names with commas between them, and says how many there is no room for. */
struct listing {
    struct text *out;
    size_t count;
};

static void list_name(struct listing *listing, const char *name) {
    if (listing->count < RENDEZVOUS_WAITING_NAMES) {
        text_append_format(listing->out, "%s%s", listing->count == 0 ? "" : ", ", name);
    }
    listing->count++;
}

/* `others`: so many more, whose names are not known. */
static void end_listing(const struct listing *listing, size_t others) {
    size_t named =
        listing->count > RENDEZVOUS_WAITING_NAMES ? RENDEZVOUS_WAITING_NAMES : listing->count;
    size_t more = listing->count - named + others;
    if (more > 0) {
        text_append_format(listing->out, "%s%zu %s", named > 0 ? " and " : "", more,
            named > 0 ? "more" : "whose names are not known here");
    }
}

static bool is_named(const struct rendezvous_node *node, const char *name) {
    size_t length = strlen(name);
    const char *address = node->identity.address;
    return strncmp(address, name, length) == 0 &&
           (address[length] == '\0' || address[length] == '.');
}

static bool is_here(const struct rendezvous_state *state, const char *name) {
    for (size_t i = 0; i < state->count; i++) {
        if (is_named(&state->nodes[i], name)) {
            return true;
        }
    }
    return false;
}

static size_t list_participants(const struct rendezvous_state *state, struct text *out) {
    struct listing listing = {out, 0};
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_participant) {
            list_name(&listing, state->nodes[i].identity.address);
        }
    }
    end_listing(&listing, state->crowd.participants);
    return listing.count + state->crowd.participants;
}

static void append_missing(
    const struct rendezvous_state *state, const struct text_list *expected, struct text *out) {
    struct listing listing = {out, 0};
    for (size_t i = 0; i < expected->count; i++) {
        if (!is_here(state, expected->items[i])) {
            text_append(out, listing.count == 0 ? "; missing: " : "");
            list_name(&listing, expected->items[i]);
        }
    }
    end_listing(&listing, 0);
}

static void append_sizes(const struct rendezvous_settings *settings, struct text *out) {
    text_append_format(out, "%d", settings->minimum_nodes);
    if (settings->maximum_nodes != settings->minimum_nodes) {
        text_append_format(out, " to %d", settings->maximum_nodes);
    }
}

/* The last call ends by the clock of the node that began it. */
static void append_what_follows(const struct rendezvous_state *state,
    const struct rendezvous_settings *settings, struct wall_time now, struct text *out) {
    struct duration left = {state->deadline.nanoseconds - now.nanoseconds};
    if (state->is_complete && state->is_frozen) {
        text_append(out, "; their host admits nobody as long as it cannot write the job's register,"
                         " and says why");
    }
    if (!state->is_complete && state->has_deadline && left.nanoseconds > 0) {
        text_append_format(out, "; they begin without others in %.0f s (last_call_timeout: %.0f s)",
            duration_seconds(left), duration_seconds(settings->last_call_timeout));
    } else {
        text_append_format(
            out, " (join_timeout: %.0f s)", duration_seconds(settings->join_timeout));
    }
}

void rendezvous_waiting_describe(const struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct text_list *expected,
    struct duration waited, struct wall_time now, struct text *out) {
    struct text names = {0};
    struct text line = {0};
    size_t count = list_participants(state, &names);
    text_append_format(&line, "waiting for other nodes for %.0f s: ", duration_seconds(waited));
    if (state->is_complete) {
        text_append_format(
            &line, "%zu nodes are at work without this one: %s", count, text_string(&names));
    } else if (count == 0) {
        text_append(&line, "none is known yet, and ");
        append_sizes(settings, &line);
        text_append(&line, " are needed");
    } else {
        text_append_format(&line, "%zu of ", count);
        append_sizes(settings, &line);
        text_append_format(&line, " %s here: %s", count == 1 ? "is" : "are", text_string(&names));
    }
    if (!state->is_complete && state->crowd.participants == 0) {
        append_missing(state, expected, &line);
    }
    append_what_follows(state, settings, now, &line);
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&line);
    text_clear(&names);
}

void rendezvous_waiting_describe_round(const struct rendezvous_state *state,
    const struct text_list *unready, struct duration waited, struct text *out) {
    struct text line = {0};
    struct text names = {0};
    struct listing listing = {&names, 0};
    text_append_format(&line,
        "waiting for other nodes for %.0f s: round %" PRId64 " of %zu nodes begins when all are "
        "ready and their old workers have ended",
        duration_seconds(waited), state->round, rendezvous_state_crowd(state).participants);
    for (size_t i = 0; i < unready->count; i++) {
        list_name(&listing, unready->items[i]);
    }
    end_listing(&listing, 0);
    if (names.length > 0) {
        text_append_format(&line, "; not ready: %s", text_string(&names));
    }
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&names);
    text_clear(&line);
}

void rendezvous_waiting_describe_admission(struct duration left, bool is_paused, struct text *out) {
    text_append_format(out, "the next are let in in %.0f s, %s", duration_seconds(left),
        is_paused ? "a pause that doubles up to 60 s while nodes that make the world larger are "
                    "lost within 10 s"
                  : "as --scale-up says");
}

static void append_speaker(const char *who, struct duration waited, struct text *out) {
    struct text line = {0};
    text_append_format(&line, "waiting for other nodes for %.0f s: %s says for which",
        duration_seconds(waited), who);
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&line);
}

bool rendezvous_waiting_describe_speaker(const struct rendezvous_state *state,
    const struct node_identity *me, bool is_host_of_delegates, struct duration waited,
    struct text *out) {
    const struct node_identity *first = NULL;
    bool is_among_them = false;
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (!node->is_participant) {
            continue;
        }
        is_among_them = is_among_them || node_identity_equals(&node->identity, me);
        if (first == NULL || node_identity_compare_naturally(&node->identity, first) < 0) {
            first = &node->identity;
        }
    }
    if (!is_among_them || is_host_of_delegates ||
        (state->crowd.participants == 0 && node_identity_equals(first, me))) {
        return false;
    }
    append_speaker(state->crowd.participants > 0 ? "the node that hosts the store" : first->address,
        waited, out);
    return true;
}

bool rendezvous_waiting_describe_fixed_speaker(
    const struct launch_config *config, struct duration waited, struct text *out) {
    if (config->node_rank == 0) {
        return false;
    }
    append_speaker("node 0 (--node-rank)", waited, out);
    return true;
}

bool rendezvous_waiting_describe_neighbour(const struct rendezvous_state *state,
    const char *their_run_id, const char *run_id, struct text *out) {
    struct text names = {0};
    struct text line = {0};
    bool waits = !state->is_complete && !state->is_closed && list_participants(state, &names) > 0;
    if (waits) {
        text_append_format(&line,
            "another job waits for nodes at the same store, --rdzv-id '%s': %s; this one is "
            "--rdzv-id '%s', and nodes of one job need the same",
            their_run_id, text_string(&names), run_id);
        utf8_make_line_printable(line.data);
        text_append(out, line.data);
    }
    text_clear(&line);
    text_clear(&names);
    return waits;
}

void rendezvous_waiting_describe_fixed(
    const struct launch_config *config, struct duration waited, struct text *out) {
    int last = config->maximum_nodes - 1;
    struct text line = {0};
    text_append_format(&line,
        "waiting for other nodes for %.0f s: this one has rank %d of 0 to %d (--node-rank), and "
        "all "
        "meet at %s:%d; a rank is missing, or two nodes have the same (timeout: %.0f s)",
        duration_seconds(waited), config->node_rank, last, config->master_host, config->master_port,
        duration_seconds(config->store_timeout));
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&line);
}

void rendezvous_waiting_describe_obstacle(const struct launch_config *config,
    const struct rendezvous_settings *settings, const char *obstacle, struct duration waited,
    struct text *out) {
    struct duration limit = config != NULL ? config->store_timeout : settings->join_timeout;
    struct text line = {0};
    text_append_format(&line, "waiting for the job's store for %.0f s: %s (%s: %.0f s)",
        duration_seconds(waited), obstacle, config != NULL ? "timeout" : "join_timeout",
        duration_seconds(limit));
    utf8_make_line_printable(line.data);
    text_append(out, line.data);
    text_clear(&line);
}
