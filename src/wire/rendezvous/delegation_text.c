/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/delegation_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Numbers of a record; more than any job reaches, and far from what a sum could overflow. */
#define NUMBER_MAXIMUM (INT64_MAX / 4)
#define SIGNAL_LARGEST 64
#define PORT_LARGEST 65535
/* Of the ages of restarts in a standing: the last ones tell most. */
#define AGES_BYTES ((size_t)240)

static const char *const wish_names[RENDEZVOUS_WISH_KIND_COUNT] = {
    [RENDEZVOUS_WISH_OWN] = "own",
    [RENDEZVOUS_WISH_LOOK] = "look",
    [RENDEZVOUS_WISH_JOIN] = "join",
    [RENDEZVOUS_WISH_LEAVE] = "leave",
    [RENDEZVOUS_WISH_CLOSE] = "close",
};

enum {
    MARK_COMPLETE = 1,
    MARK_CLOSED = 2,
    MARK_FAILED = 4,
    MARK_DRAINING = 8,
    MARK_DOUBTED = 16,
    MARK_CHARGED = 32,
    MARK_GAPS = 64,
    MARK_RANKED = 128,
    MARK_RANKED_BY_ANOTHER = 256,
    MARK_MEETING = 512,
    MARK_HELD = 1024,
    MARK_FROZEN = 2048,
    MARKS = 4095,
};

enum { LIST_NONE, LIST_PARTICIPANT, LIST_WAITING, LIST_REDUNDANT, LISTS };

/* Reading: words with one blank between them. */

struct words {
    const char *rest;
    bool is_sound;
};

static void take_word(struct words *words, const char *word) {
    size_t length = strlen(word);
    words->is_sound = words->is_sound && strncmp(words->rest, word, length) == 0;
    words->rest += words->is_sound ? length : 0;
}

/* A blank and a decimal number from `least` to `most`. */
static int64_t take_number(struct words *words, int64_t least, int64_t most) {
    int64_t number = 0;
    take_word(words, " ");
    bool is_negative = words->is_sound && *words->rest == '-';
    const char *digit = words->rest + (is_negative ? 1 : 0);
    size_t count = words->is_sound ? strspn(digit, "0123456789") : 0;
    for (size_t i = 0; i < count && number <= NUMBER_MAXIMUM; i++) {
        number = number > NUMBER_MAXIMUM / 10 ? NUMBER_MAXIMUM + 1 : number * 10 + (digit[i] - '0');
    }
    number = is_negative ? -number : number;
    words->is_sound = words->is_sound && count > 0 && number >= least && number <= most;
    words->rest = words->is_sound ? digit + count : words->rest;
    return words->is_sound ? number : 0;
}

/* What is left, after a blank, or nothing. */
static void take_rest(struct words *words, char *out, size_t size) {
    out[0] = '\0';
    if (words->is_sound && *words->rest != '\0') {
        take_word(words, " ");
        words->is_sound = words->is_sound && strlen(words->rest) < size;
        snprintf(out, size, "%s", words->is_sound ? words->rest : "");
    }
}

/* A blank and so many bytes, whatever they are. */
static void take_bytes(struct words *words, size_t length, char *out) {
    take_word(words, " ");
    words->is_sound = words->is_sound && strlen(words->rest) >= length;
    memcpy(out, words->rest, words->is_sound ? length : 0);
    out[words->is_sound ? length : 0] = '\0';
    words->rest += words->is_sound ? length : 0;
}

/* Where the workers of a round meet. */

static void write_place(const struct rendezvous_meeting *meeting, struct text *out) {
    text_append_format(out, " %d", meeting->port);
    if (meeting->port > 0) {
        text_append_format(out, " %zu %s", strlen(meeting->address), meeting->address);
    }
}

static void take_place(struct words *words, int least_port, struct rendezvous_meeting *meeting) {
    meeting->port = (int)take_number(words, least_port, PORT_LARGEST);
    if (meeting->port > 0) {
        size_t length = (size_t)take_number(words, 1, RENDEZVOUS_MEETING_ADDRESS_SIZE - 1);
        take_bytes(words, length, meeting->address);
    }
}

/* Wishes. */

void delegation_wish_write(const struct rendezvous_wish *wish, struct text *out) {
    text_append_format(out, "wish %s %" PRId64 " %" PRId64 " %" PRId64 " %d %" PRId64 " %d %d",
        wish_names[wish->kind], wish->sequence, wish->finished_round, wish->ended_round,
        wish->is_charged ? 1 : 0, wish->doubted_round, wish->signal, wish->local_world_size);
    if (wish->local_world_size > 0) {
        text_append_format(out, " %zu %s", strlen(wish->role), wish->role);
    }
    text_append_format(out, " %" PRId64, wish->meeting.round);
    if (wish->meeting.round >= 0) {
        write_place(&wish->meeting, out);
    }
    text_append_format(out, "%s%s", wish->reason[0] != '\0' ? " " : "", wish->reason);
}

static void take_role(struct words *words, struct rendezvous_wish *wish) {
    wish->local_world_size = (int)take_number(words, 0, INT_MAX);
    if (wish->local_world_size > 0) {
        size_t length = (size_t)take_number(words, 0, RENDEZVOUS_WISH_ROLE_SIZE - 1);
        take_bytes(words, length, wish->role);
    }
}

static enum rendezvous_wish_kind take_kind(struct words *words) {
    take_word(words, "wish ");
    for (int kind = RENDEZVOUS_WISH_OWN; words->is_sound && kind < RENDEZVOUS_WISH_KIND_COUNT;
         kind++) {
        size_t length = strlen(wish_names[kind]);
        if (strncmp(words->rest, wish_names[kind], length) == 0 && words->rest[length] == ' ') {
            words->rest += length;
            return (enum rendezvous_wish_kind)kind;
        }
    }
    words->is_sound = false;
    return RENDEZVOUS_WISH_NONE;
}

enum failure_code delegation_wish_read(const char *text, struct rendezvous_wish *out_wish) {
    struct words words = {text, strlen(text) <= DELEGATION_WISH_BYTES};
    struct rendezvous_wish wish = {0};
    wish.kind = take_kind(&words);
    wish.sequence = take_number(&words, 1, NUMBER_MAXIMUM);
    wish.finished_round = take_number(&words, RENDEZVOUS_WISH_NO_ROUND, NUMBER_MAXIMUM);
    wish.ended_round = take_number(&words, RENDEZVOUS_WISH_NO_ROUND, NUMBER_MAXIMUM);
    wish.is_charged = take_number(&words, 0, 1) == 1;
    wish.doubted_round = take_number(&words, RENDEZVOUS_WISH_NO_ROUND, NUMBER_MAXIMUM);
    wish.signal = (int)take_number(&words, 0, SIGNAL_LARGEST);
    take_role(&words, &wish);
    wish.meeting.round = take_number(&words, RENDEZVOUS_WISH_ANY_ROUND, NUMBER_MAXIMUM);
    if (wish.meeting.round >= 0) {
        take_place(&words, 0, &wish.meeting);
    }
    take_rest(&words, wish.reason, sizeof wish.reason);
    if (!words.is_sound) {
        return FAILURE_MALFORMED;
    }
    *out_wish = wish;
    return FAILURE_NONE;
}

/* Standings. */

void delegation_standing_clear(struct delegation_standing *standing) {
    rendezvous_state_clear(&standing->state);
}

/* What is said of the ranks of a participant, and of where its workers meet. */
static int ranking_marks(const struct rendezvous_state *record, const struct rendezvous_node *node,
    const struct rendezvous_telling *telling) {
    if (telling->is_held) {
        return MARK_HELD;
    }
    if (telling->ranks.world_size > 0) {
        return MARK_RANKED | (telling->meeting.port > 0 ? MARK_MEETING : 0);
    }
    /* A host before this one has ranked the round, and told the ranks to some. */
    bool is_of_another = node->is_participant && rendezvous_state_is_ranked(record);
    return is_of_another ? MARK_RANKED_BY_ANOTHER : 0;
}

static int marks_of(const struct rendezvous_state *record, bool has_gaps) {
    return (record->is_complete ? MARK_COMPLETE : 0) | (record->is_closed ? MARK_CLOSED : 0) |
           (record->has_failed ? MARK_FAILED : 0) | (record->is_draining ? MARK_DRAINING : 0) |
           (record->is_doubted ? MARK_DOUBTED : 0) | (record->is_charged ? MARK_CHARGED : 0) |
           (has_gaps ? MARK_GAPS : 0) | (record->is_frozen ? MARK_FROZEN : 0);
}

static int list_of(const struct rendezvous_node *node) {
    return node->is_participant ? LIST_PARTICIPANT
           : node->is_waiting   ? LIST_WAITING
           : node->is_redundant ? LIST_REDUNDANT
                                : LIST_NONE;
}

static void write_ages(const struct restart_ages *ages, struct text *out) {
    if (ages->count > 0) {
        text_append(out, " {");
        restart_ages_write(ages, AGES_BYTES, out);
        text_append(out, "}");
    }
}

/* A reason may begin with a brace, too. */
static void take_ages(struct words *words, struct restart_ages *ages) {
    const char *start =
        words->is_sound && text_starts_with(words->rest, " {") ? words->rest + 2 : "";
    size_t length = strcspn(start, "}");
    struct slice text = {(const uint8_t *)start, length};
    if (start[length] == '}' && length > 0 &&
        (start[length + 1] == '\0' || start[length + 1] == ' ') && restart_ages_read(text, ages)) {
        words->rest = start + length + 1;
    }
}

/* A number of a record that somebody else wrote may be anything. */
static int64_t within(int64_t number, int64_t most) {
    return number < 0 ? 0 : number > most ? most : number;
}

void delegation_standing_write(const struct rendezvous_state *record,
    const struct rendezvous_crowd *crowd, const struct rendezvous_telling *telling,
    bool is_withdrawn, struct text *out) {
    static const struct rendezvous_node nobody;
    bool is_listed = telling->place != NODE_TABLE_ABSENT;
    const struct rendezvous_node *node = is_listed ? &record->nodes[telling->place] : &nobody;
    int ranking = ranking_marks(record, node, telling);
    if (is_withdrawn) {
        text_append_format(out, "withdrawn %" PRId64, telling->answers);
        return;
    }
    text_append_format(out,
        "standing %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
        " %" PRId64 " %" PRId64 " %d %zu %zu %zu %d %" PRId64,
        telling->answers, within(record->round, NUMBER_MAXIMUM),
        within(record->base, NUMBER_MAXIMUM), within(record->next_base, NUMBER_MAXIMUM),
        within(record->origin, NUMBER_MAXIMUM), within(record->restarts, NUMBER_MAXIMUM),
        within(record->next_restarts, NUMBER_MAXIMUM), within(record->size, NUMBER_MAXIMUM),
        within(record->signal, SIGNAL_LARGEST), marks_of(record, crowd->has_gaps) | ranking,
        crowd->participants, crowd->waiting, crowd->redundant, list_of(node),
        within(node->rank, NUMBER_MAXIMUM));
    if ((ranking & MARK_RANKED) != 0) {
        text_append_format(out, " %d %d %d %d", telling->ranks.base_rank, telling->ranks.world_size,
            telling->ranks.role_base_rank, telling->ranks.role_world_size);
    }
    if ((ranking & MARK_MEETING) != 0) {
        write_place(&telling->meeting, out);
    }
    write_ages(&record->ages, out);
    text_append_format(out, "%s%s", record->reason[0] != '\0' ? " " : "", record->reason);
}

/* Returns the marks of the ranking: MARK_RANKED, MARK_MEETING, MARK_HELD. */
static int64_t take_marks(struct words *words, struct rendezvous_state *state) {
    int64_t marks = take_number(words, 0, MARKS);
    state->is_complete = (marks & MARK_COMPLETE) != 0;
    state->is_closed = (marks & MARK_CLOSED) != 0;
    state->has_failed = (marks & MARK_FAILED) != 0;
    state->is_draining = (marks & MARK_DRAINING) != 0;
    state->is_doubted = (marks & MARK_DOUBTED) != 0;
    state->is_charged = (marks & MARK_CHARGED) != 0;
    state->is_frozen = (marks & MARK_FROZEN) != 0;
    state->crowd.has_gaps = (marks & MARK_GAPS) != 0;
    state->ranked = (marks & MARK_RANKED_BY_ANOTHER) != 0 ? state->round + 1 : 0;
    return marks & (MARK_RANKED | MARK_MEETING | MARK_HELD);
}

/* Counts among the crowd those that are not this node. */
static void take_self(
    struct words *words, struct rendezvous_state *state, const struct node_identity *nobody) {
    size_t *const counts[LISTS] = {
        NULL, &state->crowd.participants, &state->crowd.waiting, &state->crowd.redundant};
    int64_t list = take_number(words, LIST_NONE, LIST_REDUNDANT);
    int64_t rank = take_number(words, 0, NUMBER_MAXIMUM);
    bool is_ranked = state->is_complete && list == LIST_PARTICIPANT && !state->crowd.has_gaps;
    if (!words->is_sound || list == LIST_NONE) {
        return;
    }
    if (*counts[list] == 0 || (is_ranked && rank >= (int64_t)state->crowd.participants)) {
        words->is_sound = false;
        return;
    }
    (*counts[list])--;
    struct rendezvous_node *self = rendezvous_state_obtain(state, nobody);
    self->is_participant = list == LIST_PARTICIPANT;
    self->is_waiting = list == LIST_WAITING;
    self->is_redundant = list == LIST_REDUNDANT;
    self->rank = rank;
}

static bool is_in_ranked_round(const struct rendezvous_state *state) {
    return rendezvous_state_is_ranked(state) && state->count == 1 && state->nodes[0].is_participant;
}

static void take_hold(struct words *words, int64_t ranking, struct delegation_standing *standing) {
    standing->is_held = true;
    standing->state.ranked = standing->state.round + 1;
    words->is_sound =
        words->is_sound && ranking == MARK_HELD && is_in_ranked_round(&standing->state);
}

static void take_ranks(struct words *words, struct delegation_standing *standing) {
    struct rank_assignment *ranks = &standing->ranks;
    struct rendezvous_state *state = &standing->state;
    ranks->base_rank = (int)take_number(words, 0, INT_MAX);
    ranks->world_size = (int)take_number(words, 1, INT_MAX);
    ranks->role_base_rank = (int)take_number(words, 0, INT_MAX);
    ranks->role_world_size = (int)take_number(words, 1, INT_MAX);
    state->ranked = state->round + 1;
    words->is_sound = words->is_sound && is_in_ranked_round(state) &&
                      ranks->base_rank < ranks->world_size &&
                      ranks->role_base_rank < ranks->role_world_size &&
                      ranks->role_world_size <= ranks->world_size;
}

static void take_standing(struct words *words, struct delegation_standing *standing) {
    static const struct node_identity nobody;
    struct rendezvous_state *state = &standing->state;
    standing->answers = take_number(words, 0, NUMBER_MAXIMUM);
    state->round = take_number(words, 0, NUMBER_MAXIMUM);
    state->base = take_number(words, 0, NUMBER_MAXIMUM);
    state->next_base = take_number(words, 0, NUMBER_MAXIMUM);
    state->origin = take_number(words, 0, NUMBER_MAXIMUM);
    state->restarts = take_number(words, 0, NUMBER_MAXIMUM);
    state->next_restarts = take_number(words, 0, NUMBER_MAXIMUM);
    state->size = take_number(words, 0, NUMBER_MAXIMUM);
    state->signal = take_number(words, 0, SIGNAL_LARGEST);
    int64_t ranking = take_marks(words, state);
    state->crowd.participants = (size_t)take_number(words, 0, RENDEZVOUS_NODES_MAXIMUM);
    state->crowd.waiting = (size_t)take_number(words, 0, RENDEZVOUS_NODES_MAXIMUM);
    state->crowd.redundant = (size_t)take_number(words, 0, RENDEZVOUS_NODES_MAXIMUM);
    take_self(words, state, &nobody);
    if (state->ranked > 0) {
        words->is_sound = words->is_sound && ranking == 0 && is_in_ranked_round(state);
    }
    if ((ranking & MARK_HELD) != 0) {
        take_hold(words, ranking, standing);
    }
    if ((ranking & MARK_RANKED) != 0) {
        take_ranks(words, standing);
    }
    if ((ranking & MARK_MEETING) != 0) {
        words->is_sound = words->is_sound && (ranking & MARK_RANKED) != 0;
        standing->meeting.round = state->round;
        take_place(words, 1, &standing->meeting);
    }
    take_ages(words, &state->ages);
    take_rest(words, state->reason, sizeof state->reason);
}

enum failure_code delegation_standing_read(
    struct slice text, struct delegation_standing *out_standing) {
    struct delegation_standing standing = {0};
    struct text copy = {0};
    if (text.length > DELEGATION_STANDING_BYTES) {
        return FAILURE_LIMIT;
    }
    text_append_bytes(&copy, (const char *)text.data, text.length);
    struct words words = {text_string(&copy), strlen(text_string(&copy)) == text.length};
    if (words.is_sound && strncmp(words.rest, "withdrawn", strlen("withdrawn")) == 0) {
        take_word(&words, "withdrawn");
        standing.is_withdrawn = true;
        standing.answers = take_number(&words, 0, NUMBER_MAXIMUM);
        words.is_sound = words.is_sound && *words.rest == '\0';
    } else {
        take_word(&words, "standing");
        take_standing(&words, &standing);
    }
    text_clear(&copy);
    if (!words.is_sound) {
        delegation_standing_clear(&standing);
        return FAILURE_MALFORMED;
    }
    *out_standing = standing;
    return FAILURE_NONE;
}
