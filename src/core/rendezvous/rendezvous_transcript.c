/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_transcript.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* Transcript. */

static const char *const event_names[RENDEZVOUS_EVENT_KIND_COUNT] = {
    [RENDEZVOUS_EVENT_JOIN_ASKED] = "join_asked",
    [RENDEZVOUS_EVENT_RESTART_ASKED] = "restart_asked",
    [RENDEZVOUS_EVENT_FAILURE_ASKED] = "failure_asked",
    [RENDEZVOUS_EVENT_WARMED] = "warmed",
    [RENDEZVOUS_EVENT_OPENED] = "opened",
    [RENDEZVOUS_EVENT_PLACED] = "placed",
    [RENDEZVOUS_EVENT_DONE_ASKED] = "done_asked",
    [RENDEZVOUS_EVENT_CLOSE_ASKED] = "close_asked",
    [RENDEZVOUS_EVENT_LEAVE_ASKED] = "leave_asked",
    [RENDEZVOUS_EVENT_CONNECTED] = "connected",
    [RENDEZVOUS_EVENT_CONNECTION_LOST] = "connection_lost",
    [RENDEZVOUS_EVENT_RECORD] = "record",
    [RENDEZVOUS_EVENT_WRITTEN] = "written",
    [RENDEZVOUS_EVENT_CHANGED] = "changed",
    [RENDEZVOUS_EVENT_STRANGER_WROTE] = "stranger_wrote",
    [RENDEZVOUS_EVENT_NODE_GONE] = "node_gone",
    [RENDEZVOUS_EVENT_WISHED] = "wished",
    [RENDEZVOUS_EVENT_STANDING] = "standing",
    [RENDEZVOUS_EVENT_HOST_LEAVES] = "host_leaves",
    [RENDEZVOUS_EVENT_FINISHED_COUNT] = "finished_count",
    [RENDEZVOUS_EVENT_ROLL_ANSWERED] = "roll_answered",
    [RENDEZVOUS_EVENT_BROKEN] = "broken",
    [RENDEZVOUS_EVENT_FENCED] = "fenced",
    [RENDEZVOUS_EVENT_REGISTER] = "register",
    [RENDEZVOUS_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[RENDEZVOUS_EFFECT_KIND_COUNT] = {
    [RENDEZVOUS_EFFECT_CONNECT] = "connect",
    [RENDEZVOUS_EFFECT_PRESENT] = "present",
    [RENDEZVOUS_EFFECT_BEAT] = "beat",
    [RENDEZVOUS_EFFECT_FETCH] = "fetch",
    [RENDEZVOUS_EFFECT_WRITE] = "write",
    [RENDEZVOUS_EFFECT_TELL_WATCHERS] = "tell_watchers",
    [RENDEZVOUS_EFFECT_COUNT_FINISHED] = "count_finished",
    [RENDEZVOUS_EFFECT_CALL_ROLL] = "call_roll",
    [RENDEZVOUS_EFFECT_ANSWER_ROLL] = "answer_roll",
    [RENDEZVOUS_EFFECT_WARM] = "warm",
    [RENDEZVOUS_EFFECT_TELL_STANDINGS] = "tell_standings",
    [RENDEZVOUS_EFFECT_CUT_OFF] = "cut_off",
    [RENDEZVOUS_EFFECT_ARM_TIMER] = "arm_timer",
    [RENDEZVOUS_EFFECT_WORLD] = "world",
    [RENDEZVOUS_EFFECT_RELEASED] = "released",
    [RENDEZVOUS_EFFECT_ROUND_OVER] = "round_over",
    [RENDEZVOUS_EFFECT_STORE_AWAITED] = "store_awaited",
    [RENDEZVOUS_EFFECT_CLOSED] = "closed",
    [RENDEZVOUS_EFFECT_EXCLUDED] = "excluded",
    [RENDEZVOUS_EFFECT_FAILED] = "failed",
    [RENDEZVOUS_EFFECT_FAILURE_STANDS] = "failure_stands",
    [RENDEZVOUS_EFFECT_SETTLED] = "settled",
};

static void describe_record(const struct rendezvous_state *state, struct text *out) {
    text_append(out, " ");
    if (state == NULL) {
        text_append(out, "absent");
    } else {
        rendezvous_state_describe(state, out);
    }
}

static void describe_reason(const char *reason, struct text *out) {
    if (reason[0] != '\0') {
        text_append_format(out, " %s", reason);
    }
}

static void describe_signal(int signal_or_none, struct text *out) {
    if (signal_or_none != 0) {
        text_append_format(out, " signal=%d", signal_or_none);
    }
}

static void describe_node(
    const struct node_identity *identity, bool has_finished, struct text *out) {
    text_append(out, " ");
    node_identity_describe(identity, out);
    text_append(out, has_finished ? " finished" : "");
}

static void describe_round(const char *name, int64_t round, struct text *out) {
    if (round != RENDEZVOUS_WISH_NO_ROUND) {
        text_append_format(out, " %s %" PRId64, name, round);
    }
}

static void describe_meeting(const struct rendezvous_meeting *meeting, struct text *out) {
    if (meeting->port != 0) {
        text_append_format(out, " meets at %s port %d", meeting->address, meeting->port);
    }
}

static void describe_wish(const struct rendezvous_wish *wish, struct text *out) {
    static const char *const names[RENDEZVOUS_WISH_KIND_COUNT] = {
        "nothing", "own", "look", "join", "leave", "close"};
    text_append_format(out, " wish %" PRId64 " %s", wish->sequence, names[wish->kind]);
    if (wish->kind == RENDEZVOUS_WISH_NONE) {
        return;
    }
    describe_round("finished", wish->finished_round, out);
    describe_round(wish->is_charged ? "failed" : "ended", wish->ended_round, out);
    describe_round("doubted", wish->doubted_round, out);
    if (wish->local_world_size > 0) {
        text_append_format(out, " as %s with %d", wish->role, wish->local_world_size);
        text_append(out, wish->meeting.round == RENDEZVOUS_WISH_ANY_ROUND ? " new" : "");
    }
    if (wish->meeting.round >= 0) {
        describe_round("ready", wish->meeting.round, out);
    }
    describe_meeting(&wish->meeting, out);
    describe_signal(wish->signal, out);
    describe_reason(wish->reason, out);
}

static void describe_present(const struct rendezvous_effect *effect, struct text *out) {
    describe_node(&effect->present.identity, effect->present.has_finished, out);
    if (effect->present.wish != NULL) {
        describe_wish(effect->present.wish, out);
    }
}

static void describe_standing(const struct rendezvous_event *event, struct text *out) {
    if (event->standing.is_withdrawn) {
        text_append(out, " withdrawn");
    } else {
        text_append_format(out, " to wish %" PRId64, event->standing.answers);
        describe_record(event->standing.state, out);
        text_append(out, event->standing.is_held ? " held" : "");
        describe_meeting(&event->standing.meeting, out);
    }
}

static void describe_deadline(struct instant deadline, struct text *out) {
    text_append_format(
        out, " %.3f", duration_seconds((struct duration){.nanoseconds = deadline.nanoseconds}));
}

static void describe_world(const struct rendezvous_effect *effect, struct text *out) {
    text_append_format(out, " round %" PRId64 " rank %d of %d%s%s", effect->world.round,
        effect->world.group_rank, effect->world.node_count,
        effect->world.ranks.world_size > 0 ? " ranked" : "", effect->world.is_held ? " held" : "");
    describe_meeting(&effect->world.meeting, out);
}

static void describe_opened(const struct rendezvous_event *event, struct text *out) {
    text_append_format(out, " round %" PRId64 " at %s port %d", event->opened.round,
        event->opened.address, event->opened.port);
}

static void describe_connected(const struct rendezvous_event *event, struct text *out) {
    text_append(out, event->connected.has_presence ? " presence" : "");
    text_append(out, event->connected.is_host ? " host" : "");
    text_append(out, event->connected.is_same_store ? " again" : "");
    text_append(out, event->connected.offers_delegation ? " offer" : "");
}

void rendezvous_event_describe(const struct rendezvous_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    describe_signal(event->signal, out);
    switch (event->kind) {
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
        describe_reason(event->reason, out);
        break;
    case RENDEZVOUS_EVENT_REGISTER:
        text_append(out, event->is_register_stuck ? " stuck" : " well");
        break;
    case RENDEZVOUS_EVENT_CONNECTED:
        describe_connected(event, out);
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        text_append(out, event->lost.is_silent ? " silent" : "");
        text_append(out, event->lost.was_heard ? " heard" : "");
        text_append(out, event->lost.is_host_sought ? " host_sought" : "");
        text_append(out, event->lost.keeps_hosting ? " still_host" : "");
        describe_reason(event->lost.reason, out);
        break;
    case RENDEZVOUS_EVENT_RECORD:
        describe_record(event->state, out);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        text_append(out, event->written.has_won ? " won" : " lost");
        if (!event->written.has_won) {
            describe_record(event->written.state, out);
        }
        break;
    case RENDEZVOUS_EVENT_NODE_GONE:
        describe_node(&event->gone.identity, event->gone.has_finished, out);
        break;
    case RENDEZVOUS_EVENT_WISHED:
        describe_node(&event->wished.identity, false, out);
        describe_wish(&event->wished.wish, out);
        break;
    case RENDEZVOUS_EVENT_STANDING:
        describe_standing(event, out);
        break;
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
        text_append_format(out, " %" PRId64, event->finished_count);
        break;
    case RENDEZVOUS_EVENT_OPENED:
        describe_opened(event, out);
        break;
    case RENDEZVOUS_EVENT_JOIN_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

static void describe_end(const struct rendezvous_effect *effect, struct text *out) {
    text_append(out, effect->told.is_next_whole ? " next_whole" : "");
    describe_signal(effect->told.signal, out);
    describe_reason(effect->told.reason, out);
}

static void describe_release(const struct rendezvous_effect *effect, struct text *out) {
    text_append_format(out, " round %" PRId64, effect->released.round);
    describe_meeting(&effect->released.meeting, out);
}

static void describe_connect(const struct rendezvous_effect *effect, struct text *out) {
    describe_deadline(effect->deadline, out);
    if (effect->refusal_patience.nanoseconds > 0) {
        text_append_format(out, " or refused for %.3f", duration_seconds(effect->refusal_patience));
    }
}

void rendezvous_effect_describe(const struct rendezvous_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_PRESENT:
        describe_present(effect, out);
        break;
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
        text_append_format(out, " %zu%s", effect->standings.count,
            effect->standings.is_withdrawn ? " withdrawn" : "");
        break;
    case RENDEZVOUS_EFFECT_CUT_OFF:
        describe_node(&effect->cut_off, false, out);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        text_append(out, effect->write.is_quiet ? " quietly" : "");
        describe_record(effect->write.state, out);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        text_append_format(out, " %" PRId64, effect->round);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        text_append_format(out, " round %" PRId64 "%s%d", effect->roll.round,
            effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL ? " of " : " rank ", effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
        describe_connect(effect, out);
        break;
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        describe_deadline(effect->deadline, out);
        break;
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
        text_append_format(out, " for %.3f left %.3f", duration_seconds(effect->awaited.waited),
            duration_seconds(effect->awaited.left));
        break;
    case RENDEZVOUS_EFFECT_WORLD:
        describe_world(effect, out);
        break;
    case RENDEZVOUS_EFFECT_RELEASED:
        describe_release(effect, out);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
        text_append(out, effect->told.is_spare ? " spare" : "");
        describe_end(effect, out);
        break;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_FAILED:
        describe_end(effect, out);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_EXCLUDED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_SETTLED:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    }
}

/* Diary. */

#define HANDLER "dynamic_rendezvous.py:DynamicRendezvousHandler."
#define EXECUTOR "dynamic_rendezvous.py:_DistributedRendezvousOpExecutor."
#define HOLDER "dynamic_rendezvous.py:_BackendRendezvousStateHolder."
#define BACKEND "c10d_rendezvous_backend.py:"

void rendezvous_diary_clear(struct rendezvous_diary *diary) {
    free(diary->lost);
    diary->lost = NULL;
}

static struct event_rendezvous record_of(const struct rendezvous_diary *diary,
    const struct node_identity *me, const char *name, const char *message) {
    return (struct event_rendezvous){
        .run_id = diary->run_id,
        .name = name,
        .message = message,
        .trouble = "",
        .host_name = me->address,
        .pid = me->pid,
        .state = EVENT_NODE_RUNNING,
        .has_local_id = true,
        .local_id = me->local_id,
    };
}

static void write_record(struct rendezvous_diary *diary, const struct event_rendezvous *record) {
    diary->count++;
    diary->record(diary->context, record);
}

/* "The node 'host_1_0' MIDDLE 'run id'END" */
static char *describe(const struct rendezvous_diary *diary, const struct node_identity *me,
    const char *middle, const char *end) {
    struct text message = {0};
    text_append(&message, "The node '");
    node_identity_describe(me, &message);
    text_append_format(&message, "' %s '%s'%s", middle, diary->run_id, end);
    return text_take(&message);
}

static void tell(struct rendezvous_diary *diary, const struct node_identity *me, const char *name,
    enum event_node_state state, const char *middle, const char *end) {
    char *message = describe(diary, me, middle, end);
    struct event_rendezvous record = record_of(diary, me, name, message);
    record.state = state;
    write_record(diary, &record);
    free(message);
}

/* torchrun has a traceback in the place of `trouble`. */
static void tell_failure(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *name, const char *message, const char *trouble) {
    struct event_rendezvous record = record_of(diary, me, name, message);
    record.state = EVENT_NODE_FAILED;
    record.trouble = trouble;
    write_record(diary, &record);
}

/* The message has the form in which Python shows an exception. */
static void tell_exception(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *kind, const char *reason) {
    const char *name = diary->is_joining ? HANDLER "next_rendezvous" : HANDLER "num_nodes_waiting";
    char *message = text_format("%s: %s", kind, reason);
    tell_failure(diary, me, name, message, reason);
    free(message);
    diary->is_joining = false;
}

void rendezvous_diary_host(struct rendezvous_diary *diary, const struct node_identity *me) {
    if (diary->record == NULL) {
        return;
    }
    char *message = text_format(
        "Process %" PRId64 " hosts the TCP store for the C10d rendezvous backend.", me->pid);
    struct event_rendezvous record = record_of(diary, me, BACKEND "_create_tcp_store", message);
    record.state = EVENT_NODE_INIT;
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

void rendezvous_diary_fail_to_host(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason) {
    if (diary->record == NULL) {
        return;
    }
    char *message = text_format("RendezvousConnectionError: %s", reason);
    struct event_rendezvous record = record_of(diary, me, BACKEND "create_backend", message);
    record.state = EVENT_NODE_FAILED;
    record.trouble = reason;
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

void rendezvous_diary_attempt(struct rendezvous_diary *diary, const struct node_identity *me) {
    if (diary->record != NULL) {
        diary->is_joining = true;
        tell(diary, me, HANDLER "next_rendezvous", EVENT_NODE_RUNNING,
            "attempts to join the next round of the rendezvous", ".");
    }
}

void rendezvous_diary_join(struct rendezvous_diary *diary, const struct node_identity *me,
    int64_t round, int rank, int count) {
    if (diary->record == NULL) {
        return;
    }
    char *middle = text_format("has joined round %" PRId64 " of the rendezvous", round);
    char *end = text_format(" as rank %d in a world of size %d.", rank, count);
    char *message = describe(diary, me, middle, end);
    struct event_rendezvous record = record_of(diary, me, HANDLER "next_rendezvous", message);
    record.has_rank = true;
    record.rank = rank;
    diary->is_joining = false;
    write_record(diary, &record);
    free(message);
    free(end);
    free(middle);
}

void rendezvous_diary_close(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_closed) {
    if (diary->record == NULL) {
        return;
    }
    if (has_closed) {
        tell(diary, me, HANDLER "_close", EVENT_NODE_SUCCEEDED, "has closed the rendezvous", ".");
        return;
    }
    const char *kind = diary->is_connected ? "RendezvousTimeoutError" : "RendezvousConnectionError";
    char *end = text_format(" due to an error of type %s.", kind);
    char *message = describe(diary, me, "has failed to shutdown the rendezvous", end);
    tell_failure(diary, me, HANDLER "shutdown", message, kind);
    free(message);
    free(end);
}

/* The changes of a write. */

static void tell_change(struct rendezvous_diary *diary, const struct node_identity *me,
    const char *name, const char *what, int64_t round) {
    char *middle = text_format("%s of round %" PRId64 " of the rendezvous", what, round);
    tell(diary, me, name, EVENT_NODE_RUNNING, middle, ". Pending sync.");
    free(middle);
}

/* Only called when the node has left the record. For a node that moves from one list to another
 * only the new list is recorded. */
static void tell_of_my_leaving(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_node *mine) {
    if (mine->is_participant) {
        tell_change(diary, me, EXECUTOR "_remove_from_participants",
            "removed itself from the participants", before->round);
    } else if (mine->is_waiting) {
        tell_change(diary, me, EXECUTOR "_remove_from_wait_list",
            "removed itself from the wait list", before->round + 1);
    } else if (mine->is_redundant) {
        tell_change(diary, me, EXECUTOR "_remove_from_redundancy_list",
            "removed itself from the redundant list", before->round + 1);
    }
}

static void tell_of_my_coming(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *after, const struct rendezvous_node *mine) {
    if (mine->is_participant) {
        tell_change(diary, me, EXECUTOR "_add_to_participants", "added itself to the participants",
            after->round);
    } else if (mine->is_waiting) {
        tell_change(diary, me, EXECUTOR "_add_to_wait_list", "added itself to the wait list",
            after->round + 1);
    } else if (mine->is_redundant) {
        tell_change(diary, me, EXECUTOR "_add_to_redundancy_list",
            "added itself to the redundancy list", after->round + 1);
    }
}

/* Both may be NULL: the node is not in the record. */
static bool is_same_place(const struct rendezvous_node *left, const struct rendezvous_node *right) {
    return left != NULL && right != NULL && left->is_participant == right->is_participant &&
           left->is_waiting == right->is_waiting && left->is_redundant == right->is_redundant;
}

static void tell_of_my_place(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_state *after) {
    const struct rendezvous_node *old = rendezvous_state_find(before, me);
    const struct rendezvous_node *mine = rendezvous_state_find(after, me);
    bool is_in_another_round =
        mine != NULL && mine->is_participant && before->round != after->round;
    if (mine == NULL && old != NULL) {
        tell_of_my_leaving(diary, me, before, old);
    } else if (mine != NULL && (is_in_another_round || !is_same_place(old, mine))) {
        tell_of_my_coming(diary, me, after, mine);
    }
    if (mine != NULL && mine->has_heartbeat &&
        (old == NULL || old->heartbeat.nanoseconds != mine->heartbeat.nanoseconds)) {
        tell(diary, me, EXECUTOR "_keep_alive", EVENT_NODE_RUNNING,
            "updated its keep-alive heartbeat time for the rendezvous", ". Pending sync.");
    }
}

/* For example "'a_1_0', 'b_1_0'"; NULL when there is none. */
static char *name_lost(const struct node_identity *me, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    struct text names = {0};
    struct node_table places = rendezvous_state_places(after);
    for (size_t i = 0; i < before->count; i++) {
        const struct node_identity *identity = &before->nodes[i].identity;
        if (!node_identity_equals(identity, me) &&
            node_table_find(&places, identity) == NODE_TABLE_ABSENT) {
            text_append(&names, names.length > 0 ? ", '" : "'");
            node_identity_describe(identity, &names);
            text_append(&names, "'");
        }
    }
    node_table_clear(&places);
    return names.length > 0 ? text_take(&names) : NULL;
}

static void tell_of_write(struct rendezvous_diary *diary, const struct node_identity *me,
    const struct rendezvous_state *before, const struct rendezvous_state *after) {
    uint64_t count = diary->count;
    tell_of_my_place(diary, me, before, after);
    if (after->is_complete && (!before->is_complete || before->round != after->round)) {
        char *middle = text_format("marked round %" PRId64 " of the rendezvous", after->round);
        tell(diary, me, EXECUTOR "_mark_rendezvous_complete", EVENT_NODE_SUCCEEDED, middle,
            " as complete. Pending sync.");
        free(middle);
    }
    if (after->is_closed && !before->is_closed) {
        tell(diary, me, EXECUTOR "_mark_rendezvous_closed", EVENT_NODE_SUCCEEDED,
            "marked the rendezvous", " as closed. Pending sync.");
    }
    free(diary->lost);
    diary->lost = name_lost(me, before, after);
    diary->is_change_told = diary->count > count || diary->lost != NULL;
}

/* torchrun's message ends in "since they had no heartbeat". Its record names no node, so it has no
 * local id. */
static void tell_of_lost_nodes(struct rendezvous_diary *diary, const struct node_identity *me) {
    char *message = text_format("As part of the sync operation the node(s) %s have been removed "
                                "from the rendezvous '%s' since they are gone.",
        diary->lost, diary->run_id);
    struct event_rendezvous record = record_of(diary, me, HOLDER "sync", message);
    record.has_local_id = false;
    write_record(diary, &record);
    free(message);
}

/* A write that changes only what torchrun's record does not have gives no record. */
static void tell_of_sync(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_won) {
    if (!diary->is_change_told) {
        return;
    }
    if (has_won && diary->lost != NULL) {
        tell_of_lost_nodes(diary, me);
    }
    rendezvous_diary_clear(diary);
    diary->is_change_told = false;
    tell(diary, me, EXECUTOR "run", EVENT_NODE_RUNNING,
        has_won ? "has successfully synced its local changes with other nodes in the rendezvous"
                : "has a stale state and failed to sync its local changes with other nodes in the "
                  "rendezvous",
        ".");
}

/* Muster notices a lost connection not only by a heartbeat, but gives torchrun's record of a failed
 * heartbeat. */
static void tell_of_lost_connection(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason) {
    rendezvous_diary_clear(diary);
    if (diary->is_connected) {
        char *message =
            describe(diary, me, "has failed to send a keep-alive heartbeat to the rendezvous",
                " due to an error of type RendezvousConnectionError.");
        tell_failure(diary, me, HANDLER "_keep_alive", message, reason);
        free(message);
    }
    diary->is_connected = false;
}

void rendezvous_diary_take(struct rendezvous_diary *diary, const struct rendezvous_machine *machine,
    const struct rendezvous_event *event) {
    const struct node_identity *me = rendezvous_machine_identity(machine);
    if (diary->record == NULL) {
        return;
    }
    switch (event->kind) {
    case RENDEZVOUS_EVENT_JOIN_ASKED:
        rendezvous_diary_attempt(diary, me);
        break;
    case RENDEZVOUS_EVENT_CONNECTED:
        diary->is_connected = true;
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        tell_of_lost_connection(diary, me, event->lost.reason);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        tell_of_sync(diary, me, event->written.has_won);
        break;
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
        diary->is_closing = true;
        break;
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_OPENED:
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_RECORD:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_NODE_GONE:
    case RENDEZVOUS_EVENT_WISHED:
    case RENDEZVOUS_EVENT_STANDING:
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
    case RENDEZVOUS_EVENT_REGISTER:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

void rendezvous_diary_follow(struct rendezvous_diary *diary,
    const struct rendezvous_machine *machine, const struct rendezvous_effect *effect) {
    const struct node_identity *me = rendezvous_machine_identity(machine);
    const struct rendezvous_state *seen = rendezvous_machine_state(machine);
    if (diary->record == NULL) {
        return;
    }
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_BEAT:
        tell(diary, me, HANDLER "_keep_alive", EVENT_NODE_RUNNING,
            "has sent a keep-alive heartbeat to the rendezvous", ".");
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        tell_of_write(diary, me, seen, effect->write.state);
        break;
    case RENDEZVOUS_EFFECT_WORLD:
        rendezvous_diary_join(
            diary, me, effect->world.round, effect->world.group_rank, effect->world.node_count);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
        if (diary->is_joining) {
            tell_exception(diary, me,
                effect->told.is_spare ? "RendezvousGracefulExitError" : "RendezvousClosedError",
                effect->told.reason);
        }
        break;
    case RENDEZVOUS_EFFECT_FAILED:
        tell_exception(diary, me,
            diary->is_connected ? "RendezvousError" : "RendezvousConnectionError",
            effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_SETTLED:
        if (diary->is_closing) {
            rendezvous_diary_close(diary, me, seen->is_closed);
        }
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
    case RENDEZVOUS_EFFECT_PRESENT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
    case RENDEZVOUS_EFFECT_RELEASED:
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_EXCLUDED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    }
}
