/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_delegation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct rendezvous_meeting rendezvous_meeting_at(int64_t round, const char *address, int port) {
    struct rendezvous_meeting meeting = {.round = round};
    if (address != NULL && address[0] != '\0' && strlen(address) < sizeof meeting.address) {
        meeting.port = port;
        snprintf(meeting.address, sizeof meeting.address, "%s", address);
    }
    return meeting;
}

static bool rendezvous_meeting_equals(
    const struct rendezvous_meeting *left, const struct rendezvous_meeting *right) {
    return left->round == right->round && left->port == right->port &&
           strcmp(left->address, right->address) == 0;
}

struct rendezvous_wish rendezvous_wish_of(enum rendezvous_wish_kind kind) {
    return (struct rendezvous_wish){.kind = kind,
        .finished_round = RENDEZVOUS_WISH_NO_ROUND,
        .ended_round = RENDEZVOUS_WISH_NO_ROUND,
        .doubted_round = RENDEZVOUS_WISH_NO_ROUND,
        .meeting = {.round = RENDEZVOUS_WISH_NO_ROUND}};
}

/* Whether both want the same of the record. They may say something else of who is ready for which
 * round, and of where its workers meet. */
static bool rendezvous_wish_wants_the_same(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    return left->kind == right->kind && left->finished_round == right->finished_round &&
           left->ended_round == right->ended_round && left->is_charged == right->is_charged &&
           left->doubted_round == right->doubted_round && left->signal == right->signal &&
           left->local_world_size == right->local_world_size &&
           strcmp(left->role, right->role) == 0 && strcmp(left->reason, right->reason) == 0;
}

/* Whether both say the same, whatever their sequence numbers. */
static bool rendezvous_wish_equals(
    const struct rendezvous_wish *left, const struct rendezvous_wish *right) {
    return rendezvous_wish_wants_the_same(left, right) &&
           rendezvous_meeting_equals(&left->meeting, &right->meeting);
}

bool rendezvous_wish_closes(const struct rendezvous_wish *wish, int64_t round) {
    bool has_succeeded = wish->reason[0] == '\0' && wish->signal == 0;
    bool is_of_another = has_succeeded && wish->finished_round != RENDEZVOUS_WISH_NO_ROUND &&
                         wish->finished_round != round;
    return wish->kind == RENDEZVOUS_WISH_CLOSE && !is_of_another;
}

/* Delegating. */

void rendezvous_delegating_begin(
    struct rendezvous_delegating *delegating, bool is_on, bool says_role, bool is_new) {
    *delegating = (struct rendezvous_delegating){
        .is_on = is_on, .says_role = is_on && says_role, .is_new = is_new};
}

void rendezvous_delegating_take_answer(struct rendezvous_delegating *delegating, int64_t answered) {
    delegating->answered = answered;
}

void rendezvous_delegating_take_ranks(struct rendezvous_delegating *delegating, int64_t round,
    bool is_held, const struct rank_assignment *ranks, const struct rendezvous_meeting *meeting) {
    delegating->ranked_round = round;
    delegating->is_held = is_held;
    delegating->ranks = *ranks;
    delegating->meeting = *meeting;
}

bool rendezvous_delegating_is_held(const struct rendezvous_delegating *delegating, int64_t round) {
    return delegating->is_held && delegating->ranked_round == round;
}

void rendezvous_delegating_end(struct rendezvous_delegating *delegating) {
    *delegating = (struct rendezvous_delegating){0};
}

bool rendezvous_delegating_wish(
    struct rendezvous_delegating *delegating, const struct rendezvous_wish *wish) {
    int64_t sequence = delegating->wish.sequence;
    if (sequence > 0 && rendezvous_wish_equals(&delegating->wish, wish)) {
        return false;
    }
    delegating->wish = *wish;
    delegating->wish.sequence = sequence + 1;
    return true;
}

bool rendezvous_delegating_may_settle(const struct rendezvous_delegating *delegating) {
    return !delegating->is_on || (delegating->wish.kind == RENDEZVOUS_WISH_LEAVE &&
                                     delegating->answered >= delegating->wish.sequence);
}

/* Gathering. */

/* A record of fewer participants costs little. */
#define LISTED_LEAST 8
/* How long a node may wait to be in the record. Of a round that runs: as long as those who wait are
 * gathered before they are admitted. Of an open round: shortly while its last call is on, and else
 * long, since the round begins when it is whole. A job whose nodes start at once is written once.
 */
#define GATHER_RUNNING_MILLISECONDS 10
#define GATHER_LAST_CALL_MILLISECONDS 100
#define GATHER_SOON_MILLISECONDS 1000
#define GATHER_MILLISECONDS 5000

void rendezvous_gathering_look(struct rendezvous_gathering *gathering, size_t participants) {
    gathering->listed = participants;
}

static void begin(struct rendezvous_gathering *gathering, const struct rendezvous_state *seen,
    struct instant now) {
    int milliseconds = seen->is_complete    ? GATHER_RUNNING_MILLISECONDS
                       : seen->has_deadline ? GATHER_LAST_CALL_MILLISECONDS
                                            : GATHER_MILLISECONDS;
    moment_set_after(&gathering->end, now, duration_from_milliseconds(milliseconds));
    if (milliseconds == GATHER_MILLISECONDS) {
        moment_set_after(
            &gathering->soon, now, duration_from_milliseconds(GATHER_SOON_MILLISECONDS));
    }
}

void rendezvous_gathering_hear(struct rendezvous_gathering *gathering, bool is_newcomer,
    const struct rendezvous_state *seen, struct instant now) {
    if (!is_newcomer) {
        gathering->is_urgent = true;
        return;
    }
    if (gathering->newcomers++ == 0) {
        begin(gathering, seen, now);
    }
}

/* Whether the newcomers bring the round to this size. */
static bool would_reach(const struct rendezvous_gathering *gathering, int64_t size) {
    int64_t listed = (int64_t)gathering->listed;
    return listed < size && listed + (int64_t)gathering->newcomers >= size;
}

bool rendezvous_gathering_holds(const struct rendezvous_gathering *gathering,
    const struct rendezvous_state *seen, const struct rendezvous_settings *settings,
    struct instant now) {
    if (gathering->newcomers == 0 || gathering->is_urgent || seen->is_closed ||
        gathering->listed < LISTED_LEAST || moment_has_come(&gathering->end, now)) {
        return false;
    }
    bool are_few = gathering->newcomers < gathering->listed / 2 ||
                   (gathering->soon.is_set && !moment_has_come(&gathering->soon, now));
    return seen->is_complete || (are_few && !would_reach(gathering, settings->minimum_nodes) &&
                                    !would_reach(gathering, settings->maximum_nodes) &&
                                    !would_reach(gathering, seen->wanted));
}

bool rendezvous_gathering_end(struct rendezvous_gathering *gathering, struct instant now) {
    bool has_waited = moment_has_come(&gathering->end, now);
    gathering->newcomers = 0;
    gathering->is_urgent = false;
    moment_clear(&gathering->soon);
    moment_clear(&gathering->end);
    return has_waited;
}

void rendezvous_gathering_wake(
    const struct rendezvous_gathering *gathering, struct instant now, struct moment *next) {
    moment_wake(&gathering->soon, now, next);
    moment_wake(&gathering->end, now, next);
}

/* Ranking. */

static void rendezvous_ranking_clear(struct rendezvous_ranking *ranking) {
    free(ranking->items);
    *ranking = (struct rendezvous_ranking){0};
}

static bool are_known(const struct node_role *roles, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (roles[i].role == NULL) {
            return false;
        }
    }
    return count > 0;
}

bool rendezvous_ranking_compute(struct rendezvous_ranking *ranking, int64_t round,
    const struct node_role *roles, size_t count) {
    rendezvous_ranking_clear(ranking);
    if (!are_known(roles, count)) {
        return false;
    }
    struct rank_assignment *items = memory_allocate(count * sizeof *items);
    if (rank_assignment_compute(roles, count, items) != FAILURE_NONE) {
        free(items);
        return false;
    }
    *ranking = (struct rendezvous_ranking){.round = round, .count = count, .items = items};
    return true;
}

/* The ranks of this node in this round. Its world size is 0 where there are none. */
static struct rank_assignment rendezvous_ranking_of(
    const struct rendezvous_ranking *ranking, int64_t round, int64_t group_rank) {
    bool is_known = ranking->items != NULL && ranking->round == round && group_rank >= 0 &&
                    (uint64_t)group_rank < ranking->count;
    return is_known ? ranking->items[group_rank] : (struct rank_assignment){0};
}

/* Delegates. */

/* A signal to all nodes does not come to all at once. And while a host that alone is told to end
 * stays for so long, the others begin their next round at its store. */
#define LEAVING_MILLISECONDS 250
/* So many places for what is to be told are kept from step to step. */
#define TELLINGS_KEPT 256

/* Of a told standing. */
enum {
    TOLD_COMPLETE = 1,
    TOLD_CLOSED = 2,
    TOLD_FAILED = 4,
    TOLD_DOUBTED = 8,
    TOLD_DRAINING = 16,
    TOLD_PARTICIPANT = 32,
    TOLD_WAITING = 64,
    TOLD_REDUNDANT = 128,
    TOLD_GAPS = 256,
    TOLD_HELD = 512,
    TOLD_FROZEN = 1024,
};

void rendezvous_delegates_clear(struct rendezvous_delegates *delegates) {
    node_table_clear(&delegates->places);
    free(delegates->items);
    free(delegates->tellings);
    rendezvous_ranking_clear(&delegates->ranking);
    *delegates = (struct rendezvous_delegates){0};
}

/* Who is in the round that was ranked last, who is ready for it, and where its workers meet. */

static bool is_of_ranking(const struct rendezvous_delegates *delegates, int64_t round) {
    return delegates->ranking.items != NULL && delegates->ranking.round == round;
}

/* Until now it had no world. */
static bool is_new(const struct rendezvous_delegate *delegate) {
    return !delegate->had_world && delegate->wish.meeting.round == RENDEZVOUS_WISH_ANY_ROUND;
}

void rendezvous_delegates_note_ranking(
    struct rendezvous_delegates *delegates, const struct node_identity *first) {
    delegates->first = *first;
    delegates->meeting = (struct rendezvous_meeting){.round = RENDEZVOUS_WISH_NO_ROUND};
    delegates->is_held = false;
    delegates->is_host_awaited = false;
    delegates->awaited = 0;
}

static void await(struct rendezvous_delegates *delegates) {
    delegates->is_held = true;
    delegates->awaited++;
}

void rendezvous_delegates_note_ranked(
    struct rendezvous_delegates *delegates, const struct node_identity *identity) {
    size_t place = node_table_find(&delegates->places, identity);
    if (place == NODE_TABLE_ABSENT) {
        return;
    }
    struct rendezvous_delegate *delegate = &delegates->items[place];
    delegate->ranked_round = delegates->ranking.round;
    delegate->is_ready = is_new(delegate);
    if (!delegate->is_ready) {
        await(delegates);
    }
}

void rendezvous_delegates_note_ranked_host(struct rendezvous_delegates *delegates, bool is_ready) {
    delegates->is_host_awaited = !is_ready;
    if (!is_ready) {
        await(delegates);
    }
}

/* Whether all nodes of the round may begin, once they know where they meet. */
static bool is_released(const struct rendezvous_delegates *delegates) {
    return !delegates->is_held ||
           (delegates->awaited == 0 && delegates->meeting.round == delegates->ranking.round);
}

void rendezvous_delegates_list_unready(
    const struct rendezvous_delegates *delegates, struct text_list *out_names) {
    for (size_t i = 0; i < delegates->count; i++) {
        const struct rendezvous_delegate *delegate = &delegates->items[i];
        if (delegate->ranked_round == delegates->ranking.round && !delegate->is_ready) {
            text_list_add(out_names, delegate->identity.address);
        }
    }
}

bool rendezvous_delegates_hold(const struct rendezvous_delegates *delegates, int64_t round) {
    return is_of_ranking(delegates, round) && !is_released(delegates);
}

struct rank_assignment rendezvous_delegates_ranks(
    const struct rendezvous_delegates *delegates, int64_t round, int64_t group_rank) {
    return is_released(delegates) ? rendezvous_ranking_of(&delegates->ranking, round, group_rank)
                                  : (struct rank_assignment){0};
}

static void end_await(struct rendezvous_delegates *delegates) {
    delegates->awaited--;
    delegates->is_record_news = delegates->is_record_news || is_released(delegates);
}

void rendezvous_delegates_note_host_ready(struct rendezvous_delegates *delegates, int64_t round) {
    if (delegates->is_host_awaited && is_of_ranking(delegates, round)) {
        delegates->is_host_awaited = false;
        end_await(delegates);
    }
}

/* A node that has said so may give the round up before it begins. */
static void note_readiness(
    struct rendezvous_delegates *delegates, struct rendezvous_delegate *delegate) {
    int64_t round = delegates->ranking.round;
    bool is_ready = delegate->wish.meeting.round == round || is_new(delegate);
    if (delegate->ranked_round != round || is_ready == delegate->is_ready ||
        !rendezvous_delegates_hold(delegates, round)) {
        return;
    }
    delegate->is_ready = is_ready;
    if (is_ready) {
        end_await(delegates);
    } else {
        await(delegates);
    }
}

void rendezvous_delegates_note_meeting(struct rendezvous_delegates *delegates,
    const struct node_identity *identity, const struct rendezvous_meeting *meeting) {
    if (is_of_ranking(delegates, meeting->round) &&
        node_identity_equals(identity, &delegates->first) &&
        !rendezvous_meeting_equals(&delegates->meeting, meeting)) {
        delegates->meeting = *meeting;
        delegates->is_record_news = delegates->is_record_news || is_released(delegates);
    }
}

/* Nobody waits for what a node that is gone would have said. */
static void say_no_meeting(
    struct rendezvous_delegates *delegates, const struct node_identity *identity) {
    const struct rendezvous_meeting nowhere = {.round = delegates->ranking.round};
    if (delegates->meeting.round != nowhere.round) {
        rendezvous_delegates_note_meeting(delegates, identity, &nowhere);
    }
}

void rendezvous_delegates_note_record(struct rendezvous_delegates *delegates) {
    delegates->is_record_news = true;
    delegates->are_served = false;
}

void rendezvous_delegates_forget(
    struct rendezvous_delegates *delegates, const struct node_identity *identity) {
    size_t place = node_table_find(&delegates->places, identity);
    if (place == NODE_TABLE_ABSENT) {
        return;
    }
    say_no_meeting(delegates, identity);
    node_table_remove(&delegates->places, identity);
    delegates->count--;
    if (place < delegates->count) {
        delegates->items[place] = delegates->items[delegates->count];
        node_table_put(&delegates->places, &delegates->items[place].identity, place);
    }
}

static struct rendezvous_delegate *add(
    struct rendezvous_delegates *delegates, const struct node_identity *identity) {
    delegates->items = memory_reserve(
        delegates->items, &delegates->capacity, delegates->count + 1, sizeof *delegates->items);
    node_table_put(&delegates->places, identity, delegates->count);
    delegates->items[delegates->count] = (struct rendezvous_delegate){
        .identity = *identity, .ranked_round = RENDEZVOUS_WISH_NO_ROUND};
    return &delegates->items[delegates->count++];
}

struct rendezvous_delegate *rendezvous_delegates_hear(struct rendezvous_delegates *delegates,
    const struct node_identity *identity, const struct rendezvous_wish *wish) {
    size_t place = node_table_find(&delegates->places, identity);
    bool is_known = place != NODE_TABLE_ABSENT;
    if (wish->kind == RENDEZVOUS_WISH_NONE) {
        rendezvous_delegates_forget(delegates, identity);
        return NULL;
    }
    if (!is_known && delegates->count >= RENDEZVOUS_NODES_MAXIMUM) {
        return NULL; /* the store has no room for more presence keys either */
    }
    struct rendezvous_delegate *delegate =
        is_known ? &delegates->items[place] : add(delegates, identity);
    /* Who leaves is told that the last wish was heard. */
    bool is_heard =
        delegate->wish.sequence == wish->sequence || wish->kind != RENDEZVOUS_WISH_LEAVE;
    bool is_same = is_known && is_heard && rendezvous_wish_wants_the_same(&delegate->wish, wish);
    delegate->wish = *wish;
    delegates->are_served = delegates->are_served && is_same;
    rendezvous_delegates_note_meeting(delegates, identity, &wish->meeting);
    note_readiness(delegates, delegate);
    return is_same ? NULL : delegate;
}

struct node_role rendezvous_delegates_role(
    const struct rendezvous_delegates *delegates, const struct node_identity *identity) {
    size_t place = node_table_find(&delegates->places, identity);
    const struct rendezvous_delegate *delegate =
        place == NODE_TABLE_ABSENT ? NULL : &delegates->items[place];
    bool is_known = delegate != NULL && delegate->wish.local_world_size > 0 &&
                    delegate->wish.kind == RENDEZVOUS_WISH_JOIN;
    return is_known ? (struct node_role){delegate->wish.role, delegate->wish.local_world_size}
                    : (struct node_role){0};
}

void rendezvous_delegates_note_leaving(struct rendezvous_delegates *delegates, struct instant now) {
    if (delegates->count > 0) {
        moment_set_after(
            &delegates->leaving_until, now, duration_from_milliseconds(LEAVING_MILLISECONDS));
    }
}

bool rendezvous_delegates_are_leaving(
    const struct rendezvous_delegates *delegates, struct instant now) {
    bool are_leaving =
        delegates->leaving_until.is_set && !moment_has_come(&delegates->leaving_until, now);
    for (size_t i = 0; i < delegates->count && !are_leaving; i++) {
        const struct rendezvous_delegate *delegate = &delegates->items[i];
        are_leaving = delegate->wish.kind == RENDEZVOUS_WISH_LEAVE &&
                      delegate->told.answered != delegate->wish.sequence;
    }
    return are_leaving;
}

/* Where thousands were told at once, their places would not be needed again for long. */
void rendezvous_delegates_begin(struct rendezvous_delegates *delegates) {
    if (delegates->telling_count > TELLINGS_KEPT) {
        free(delegates->tellings);
        delegates->tellings = NULL;
        delegates->telling_capacity = 0;
    }
    delegates->telling_count = 0;
}

static unsigned flag(bool is_set, unsigned value) {
    return is_set ? value : 0;
}

/* What a participant of an open round is told does not change with those who come. */
static struct rendezvous_told standing_of(const struct rendezvous_delegate *delegate,
    const struct rendezvous_state *record, const struct rendezvous_crowd *crowd, size_t place) {
    static const struct rendezvous_node nobody;
    const struct rendezvous_node *node =
        place == NODE_TABLE_ABSENT ? &nobody : &record->nodes[place];
    bool is_in_world = node->is_participant && record->is_complete;
    bool is_leaving = delegate->wish.kind == RENDEZVOUS_WISH_LEAVE;
    return (struct rendezvous_told){.is_anything = true,
        .flags = flag(record->is_complete, TOLD_COMPLETE) | flag(record->is_closed, TOLD_CLOSED) |
                 flag(record->has_failed, TOLD_FAILED) | flag(record->is_doubted, TOLD_DOUBTED) |
                 flag(record->is_draining && !is_in_world, TOLD_DRAINING) |
                 flag(record->is_frozen && !is_in_world, TOLD_FROZEN) |
                 flag(node->is_participant, TOLD_PARTICIPANT) |
                 flag(node->is_waiting, TOLD_WAITING) | flag(node->is_redundant, TOLD_REDUNDANT) |
                 flag(is_in_world && crowd->has_gaps, TOLD_GAPS),
        .round = record->round,
        .rank = is_in_world ? node->rank : 0,
        .restarts = record->is_complete ? record->restarts : 0,
        .participants = is_in_world ? crowd->participants : 0,
        .answered = is_leaving && place == NODE_TABLE_ABSENT ? delegate->wish.sequence : 0};
}

static bool is_news(const struct rendezvous_told *before, const struct rendezvous_told *now) {
    if (before->is_withdrawn && now->is_withdrawn) {
        return false; /* whatever the record says, this node reads it itself */
    }
    return !before->is_anything || before->is_withdrawn != now->is_withdrawn ||
           before->flags != now->flags || before->round != now->round ||
           before->rank != now->rank || before->restarts != now->restarts ||
           before->participants != now->participants || before->answered != now->answered;
}

/* A node that is in the round the host has ranked is told its ranks with each standing, since it
 * may have taken no earlier one. */
static struct rank_assignment ranks_in(const struct rendezvous_delegates *delegates,
    const struct rendezvous_state *record, size_t place) {
    bool is_ranked = place != NODE_TABLE_ABSENT && rendezvous_state_is_ranked(record) &&
                     record->nodes[place].is_participant;
    return is_ranked
               ? rendezvous_delegates_ranks(delegates, record->round, record->nodes[place].rank)
               : (struct rank_assignment){0};
}

static bool is_held_in(const struct rendezvous_delegates *delegates,
    const struct rendezvous_state *record, size_t place) {
    return place != NODE_TABLE_ABSENT && rendezvous_state_is_ranked(record) &&
           record->nodes[place].is_participant &&
           rendezvous_delegates_hold(delegates, record->round);
}

/* The world of a ranked round is told with the place where its workers meet. Rank 0 is told first,
 * since it opens that place. Of a round that is held, who has workers to end is told first, too. */
static bool awaits_word(const struct rendezvous_delegates *delegates,
    const struct rendezvous_delegate *delegate, const struct rendezvous_state *record,
    const struct rendezvous_telling *telling) {
    if (record->is_closed || (!telling->is_held && telling->ranks.world_size == 0) ||
        record->nodes[telling->place].rank == 0) {
        return false;
    }
    return telling->is_held ? is_new(delegate) : delegates->meeting.round != record->round;
}

void rendezvous_delegates_tell(struct rendezvous_delegates *delegates,
    struct rendezvous_delegate *delegate, const struct rendezvous_state *record,
    const struct rendezvous_crowd *crowd, size_t place, bool is_withdrawn) {
    struct rendezvous_told now = standing_of(delegate, record, crowd, place);
    struct rendezvous_telling telling = {.identity = delegate->identity,
        .place = place,
        .answers = delegate->wish.sequence,
        .is_held = is_held_in(delegates, record, place),
        .ranks = ranks_in(delegates, record, place)};
    now.is_withdrawn = is_withdrawn;
    now.flags |= flag(telling.is_held, TOLD_HELD);
    if ((!is_withdrawn && awaits_word(delegates, delegate, record, &telling)) ||
        !is_news(&delegate->told, &now)) {
        return;
    }
    telling.meeting = telling.ranks.world_size > 0 ? delegates->meeting : telling.meeting;
    /* Twice in one step at most: a wish is answered, and the end of this node's part is told. */
    delegates->tellings = memory_reserve(delegates->tellings, &delegates->telling_capacity,
        2 * delegates->count, sizeof *delegates->tellings);
    delegates->tellings[delegates->telling_count++] = telling;
    delegate->told = now;
    delegate->had_world =
        delegate->had_world || ((now.flags & TOLD_COMPLETE) != 0 &&
                                   (now.flags & TOLD_PARTICIPANT) != 0 && !telling.is_held);
}
