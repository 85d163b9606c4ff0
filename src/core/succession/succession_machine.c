/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

#define SUCCESSION_TURN_MILLISECONDS 20

/* Whether a host has lost the greater part of the committed world to silence. Perhaps those nodes
 * are dead. Perhaps it is the host that is cut off, and they are together: then they should have
 * another host, and the register would never give them one while this one renews its term. So such
 * a host does not renew it, and commits nothing, for a time in which they can claim. Nodes whose
 * processes have ended claim nothing, and do not count; nor do nodes whose workers are done.
 *
 * One cut is found out node by node, and between two of them a smaller world may be committed. So
 * those who fell silent within a while are counted together: with the committed world, and with the
 * nodes that it has lost to silence in that while.
 *
 * Of a host that is not in the committed world itself this is not asked: the world's nodes are
 * those of an earlier start of the job. */
struct succession_missing {
    struct node_identity identity;
    struct instant missed_at;
    bool was_in_world; /* the committed one has had it since */
    bool is_back;      /* the record that was seen last has this process */
};

/* A zeroed struct is valid: nobody is missing. */
struct succession_majority {
    struct succession_missing *missing;
    size_t count;
    size_t capacity;
    struct node_table places; /* of their processes: a record may list any number of nodes */
};

/* Whether the host of the job's store is silent to everybody, and not to this node alone: a host
 * that is there renews its term in the register all the time, whoever cannot reach it. So a node
 * that hears nothing of the host looks at its renewal there, by a clock of its own. It begins when
 * it first has reason to doubt, long before the connection is taken for lost (core/store/
 * connection_silence). By then it knows already. TorchElastic has nothing like it.
 *
 * A zeroed struct is valid: there is no doubt. */
struct succession_silence {
    bool is_watched;
    bool is_looking; /* a look is not answered yet */
    struct instant asked_at;
    struct moment look_at;
    char *renewal;             /* as it was seen last; NULL: not yet, or the register was away */
    struct instant seen_at;    /* when it was seen first */
    struct duration stood_for; /* from then to the last look that found it unchanged */
};

/* A failure of the register is told as it is, with what may help at its end. */
#define SUCCESSION_REASON_SIZE FAILURE_MESSAGE_SIZE

enum succession_request {
    SUCCESSION_REQUEST_NONE,
    SUCCESSION_REQUEST_READ,
    SUCCESSION_REQUEST_APPEND,
};

enum succession_suspicion_kind {
    SUCCESSION_SUSPICION_NONE,
    SUCCESSION_SUSPICION_REFUSED,
    SUCCESSION_SUSPICION_SILENT,
};

/* Of the host that this node cannot reach. */
struct succession_suspicion {
    enum succession_suspicion_kind kind;
    /* The next READ that finds nothing new is followed by a claim; REFUSED: unless other nodes have
     * their turns before. */
    bool is_turn;
    int turns_before;      /* REFUSED: which have not begun yet */
    struct moment turn_at; /* REFUSED: when the turn of another node is over */
    int64_t watched;       /* the number of the entry after which the register is watched */
};

/* Of the host, when it leaves. */
enum succession_handover_stage {
    SUCCESSION_HANDOVER_NONE,
    SUCCESSION_HANDOVER_SETTLING, /* the others form their round; it is appended */
    SUCCESSION_HANDOVER_NAMED,    /* the successor was told */
    SUCCESSION_HANDOVER_OVER,
};

struct succession_handover {
    enum succession_handover_stage stage;
    bool has_named; /* nothing is appended or renewed any more */
    struct node_identity successor;
    struct moment quiet_at; /* SETTLING; not set: it is quiet */
    struct moment until;    /* SETTLING, NAMED */
};

struct succession_machine {
    struct succession_settings settings;
    enum succession_state state;
    struct succession_entry entry;  /* the last one known; number 0: none */
    struct rendezvous_state record; /* what it has committed */
    struct node_identity formers[SUCCESSION_FORMERS_MAXIMUM]; /* hosts of terms since that commit */
    size_t former_count;
    /* Host: the record of a round that is whole, and no entry yet; and what is being appended. */
    struct rendezvous_state seen;
    struct rendezvous_state appended;
    bool is_uncommitted;
    bool is_open; /* the round seen last has not its nodes yet */
    struct succession_majority majority;
    struct moment count_at;      /* somebody has fallen silent just now */
    struct moment patient_until; /* set: most of the committed world is missing */
    enum succession_request request;
    bool is_claim;      /* the append under way, or the one that is unresolved */
    bool is_unresolved; /* nobody knows whether the append was won */
    bool is_seeking;
    struct instant deadline; /* of SEEK */
    bool has_read;           /* since SEEK */
    bool is_dialing;
    bool is_connected;
    bool is_named; /* by the host that this node is connected to, as its successor */
    bool was_connected;
    int64_t connected_term; /* of the connection, or of the last one */
    struct succession_suspicion suspicion;
    struct succession_silence silence; /* begins before the suspicion */
    struct moment renew_at;
    bool is_renewing; /* the last renewal is not answered … */
    bool is_stuck;    /* … nor was the one before, or it was refused */
    uint64_t renewal_count;
    struct moment retry_at;
    struct succession_handover handover;
    struct instant asked_at; /* the last READ or APPEND */
    /* Of the host, or what the register has as its last entry. A renewal does not count: it tells
     * nothing of other terms, in which the others may have gone on. */
    struct instant heard_at;
    bool is_fenced;
    char reason[SUCCESSION_REASON_SIZE];
};

struct succession_step {
    struct succession_machine *machine;
    const struct succession_event *event;
    struct succession_effects *effects;
};

static void succession_give_up(struct succession_step *step);
static bool succession_is_news(
    const struct rendezvous_state *seen, const struct rendezvous_state *known);

static void succession_majority_clear(struct succession_majority *majority) {
    free(majority->missing);
    node_table_clear(&majority->places);
    *majority = (struct succession_majority){0};
}

static struct succession_missing *find(
    const struct succession_majority *majority, const struct node_identity *identity) {
    struct node_identity process = node_identity_of_process(identity);
    size_t place = node_table_find(&majority->places, &process);
    return place == NODE_TABLE_ABSENT ? NULL : &majority->missing[place];
}

static void keep_place(struct succession_majority *majority, size_t place) {
    struct node_identity process = node_identity_of_process(&majority->missing[place].identity);
    node_table_put(&majority->places, &process, place);
}

/* The machine of this node is silent. */
static void succession_majority_miss(struct succession_majority *majority,
    const struct node_identity *identity, struct instant now) {
    struct succession_missing *missing = find(majority, identity);
    if (missing == NULL) {
        majority->missing = memory_reserve(
            majority->missing, &majority->capacity, majority->count + 1, sizeof *majority->missing);
        missing = &majority->missing[majority->count];
        *missing = (struct succession_missing){.identity = *identity};
        keep_place(majority, majority->count++);
    }
    missing->missed_at = now;
    missing->is_back = false;
}

/* The host's store has this record now. */
static void succession_majority_see(
    struct succession_majority *majority, const struct rendezvous_state *record) {
    for (size_t i = 0; i < majority->count; i++) {
        majority->missing[i].is_back = false;
    }
    for (size_t i = 0; i < record->count && majority->count > 0; i++) {
        struct succession_missing *missing = find(majority, &record->nodes[i].identity);
        if (missing != NULL) {
            missing->is_back = true;
        }
    }
}

/* The participants of the committed world, by their processes. The caller clears the table. */
static struct node_table list_participants(const struct rendezvous_state *committed) {
    struct node_table table = {0};
    for (size_t i = 0; i < committed->count; i++) {
        if (committed->nodes[i].is_participant) {
            struct node_identity process = node_identity_of_process(&committed->nodes[i].identity);
            node_table_put(&table, &process, i);
        }
    }
    return table;
}

static const struct rendezvous_node *participant(const struct succession_missing *missing,
    const struct rendezvous_state *committed, const struct node_table *participants) {
    struct node_identity process = node_identity_of_process(&missing->identity);
    size_t place = node_table_find(participants, &process);
    return place == NODE_TABLE_ABSENT ? NULL : &committed->nodes[place];
}

/* Nodes that fell silent at `until` or earlier count no more, unless the committed world has them.
 */
static void succession_majority_forget(struct succession_majority *majority,
    const struct rendezvous_state *committed, struct instant until) {
    size_t kept = 0;
    if (majority->count == 0) {
        return;
    }
    struct node_table participants = list_participants(committed);
    node_table_clear(&majority->places);
    for (size_t i = 0; i < majority->count; i++) {
        const struct succession_missing *missing = &majority->missing[i];
        const struct rendezvous_node *node = participant(missing, committed, &participants);
        /* Who is done may be gone: it is missed by nobody. */
        bool is_in_world = node != NULL && !node->is_done;
        if (instant_is_before(until, missing->missed_at) || is_in_world) {
            majority->missing[kept] = *missing;
            keep_place(majority, kept++);
        }
    }
    majority->count = kept;
    node_table_clear(&participants);
}

/* Whether more than half are missing of the committed world's nodes and of those that it has lost
 * to silence, `self` being in that world. */
static bool succession_majority_is_missing(struct succession_majority *majority,
    const struct rendezvous_state *committed, const struct node_identity *self) {
    size_t all = 0;
    size_t missing_count = 0;
    bool has_self = false;
    if (majority->count == 0) {
        return false;
    }
    struct node_table participants = list_participants(committed);
    for (size_t i = 0; i < committed->count; i++) {
        if (committed->nodes[i].is_participant) {
            all += committed->nodes[i].is_done ? 0 : 1;
            has_self =
                has_self || node_identity_is_same_process(&committed->nodes[i].identity, self);
        }
    }
    for (size_t i = 0; i < majority->count; i++) {
        struct succession_missing *missing = &majority->missing[i];
        const struct rendezvous_node *node = participant(missing, committed, &participants);
        bool is_done = node != NULL && node->is_done;
        bool is_in = node != NULL && !is_done;
        missing->was_in_world = missing->was_in_world || is_in;
        if (missing->was_in_world && !missing->is_back && !is_done) {
            missing_count++;
            all += is_in ? 0 : 1;
        }
    }
    node_table_clear(&participants);
    return has_self && 2 * missing_count > all;
}

/* Silence. */

/* How often a node that hears nothing of the host looks. Less than that is no silence. */
#define SUCCESSION_LOOK_MILLISECONDS 500

#define RENEWALS_MISSED 2

static struct duration limit_of(struct duration silence_timeout) {
    int64_t least =
        duration_from_milliseconds(RENEWALS_MISSED * SUCCESSION_RENEWAL_MILLISECONDS).nanoseconds;
    int64_t limit = silence_timeout.nanoseconds -
                    duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS).nanoseconds;
    return (struct duration){limit > least ? limit : least};
}

/* Begins, unless it has begun: the first look is due at once. */
static void succession_silence_begin(struct succession_silence *silence, struct instant now) {
    if (!silence->is_watched) {
        silence->is_watched = true;
        moment_set(&silence->look_at, now);
    }
}

/* Frees what is kept. */
static void succession_silence_end(struct succession_silence *silence) {
    free(silence->renewal);
    *silence = (struct succession_silence){0};
}

/* Whether to look now. The look before has to be answered. */
static bool succession_silence_is_due(
    const struct succession_silence *silence, struct instant now) {
    return silence->is_watched && !silence->is_looking && moment_has_come(&silence->look_at, now);
}

/* When to look next; not set while nothing is watched, or a look is under way. */
static struct moment succession_silence_next(const struct succession_silence *silence) {
    return silence->is_watched && !silence->is_looking ? silence->look_at : (struct moment){0};
}

/* A look is asked for. */
static void succession_silence_ask(struct succession_silence *silence, struct instant now) {
    silence->is_looking = true;
    silence->asked_at = now;
    moment_set_after(
        &silence->look_at, now, duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS));
}

/* What was seen is as old as its answer, and what is seen again is as new as its question. */
static void compare(struct succession_silence *silence, const char *renewal, struct instant now) {
    if (silence->renewal != NULL && text_equals(silence->renewal, renewal)) {
        silence->stood_for = instant_until(silence->seen_at, silence->asked_at);
        return;
    }
    free(silence->renewal);
    silence->renewal = memory_duplicate_string(renewal);
    silence->seen_at = now;
    silence->stood_for = (struct duration){0};
}

/* The host has given another sign of life than a renewal. */
static void succession_silence_hear(struct succession_silence *silence) {
    free(silence->renewal);
    silence->renewal = NULL;
    silence->stood_for = (struct duration){0};
}

/* The look is answered. `renewal` NULL: the register is away, so what was seen before shows
 * nothing. `silence_timeout` as below. */
static void succession_silence_take(struct succession_silence *silence, const char *renewal,
    struct duration silence_timeout, struct instant now) {
    if (!silence->is_looking) {
        return; /* of a doubt that is over */
    }
    silence->is_looking = false;
    if (renewal == NULL) {
        succession_silence_hear(silence);
        return;
    }
    compare(silence, renewal, now);
    struct instant end = instant_after(silence->seen_at, limit_of(silence_timeout));
    struct instant after_next = instant_after(
        silence->look_at.at, duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS));
    if (instant_is_before(now, end) && instant_is_before(end, after_next)) {
        moment_set(&silence->look_at, end); /* the look that settles it comes when it can */
    }
}

/* Whether the host has not renewed its term for as long as a host that is there never takes: half a
 * second less than silence_timeout, since the half second before the first look is a silence, too;
 * and two renewals at least. */
static bool succession_silence_has_lasted(
    const struct succession_silence *silence, struct duration silence_timeout) {
    return silence->stood_for.nanoseconds >= limit_of(silence_timeout).nanoseconds;
}

/* Step. */

/* A host that has lost its term without an append of its own learns it by a read. */
#define SUCCESSION_RENEWALS_PER_READ 8

/* Effects. */

/* Appends an effect. `_kind` appends an effect without values. */
static void succession_push(struct succession_step *step, struct succession_effect effect) {
    assert(step->effects->count < SUCCESSION_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

static void succession_push_kind(struct succession_step *step, enum succession_effect_kind kind) {
    succession_push(step, (struct succession_effect){.kind = kind});
}

/* Asks the register, unless a request is under way. */
static void succession_read(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_NONE) {
        step->machine->request = SUCCESSION_REQUEST_READ;
        step->machine->asked_at = step->event->now;
        succession_push_kind(step, SUCCESSION_EFFECT_READ);
    }
}

/* Dials the host, if a connection is wanted. A dial is given up after silence_timeout, so that the
 * host comes to be suspected. */
static void succession_dial(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!instant_is_before(step->event->now, machine->deadline)) {
        succession_give_up(step);
    } else if (machine->is_seeking && !machine->is_connected) {
        machine->is_dialing = true;
        struct instant end = instant_after(step->event->now, machine->settings.silence_timeout);
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_DIAL,
                                  .dial = {machine->state == SUCCESSION_HOST,
                                      instant_earlier(end, machine->deadline)}});
    }
}

/* Appends an entry after the one known: a claim of the next term, or a commit in this one. */
static void succession_append(
    struct succession_step *step, bool is_claim, const struct rendezvous_state *record) {
    struct succession_machine *machine = step->machine;
    machine->request = SUCCESSION_REQUEST_APPEND;
    machine->asked_at = step->event->now;
    machine->is_claim = is_claim;
    machine->is_unresolved = false;
    rendezvous_state_copy(record, &machine->appended);
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_APPEND,
                              .append = {.is_claim = is_claim,
                                  .is_named = is_claim && machine->is_named,
                                  .number = machine->entry.number + 1,
                                  .term = machine->entry.term + (is_claim ? 1 : 0),
                                  .record = &machine->appended}});
}

static void succession_retry_later(struct succession_step *step) {
    moment_set_after(&step->machine->retry_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RETRY_MILLISECONDS));
}

static void tell_lost(struct succession_step *step) {
    step->machine->is_connected = false;
    step->machine->is_named = false;
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_LOST,
                              .keeps_hosting = step->machine->state == SUCCESSION_HOST});
}

/* The store of another term is not the job's any more. SEEK follows. */
static void succession_leave_connection(struct succession_step *step) {
    if (step->machine->is_connected) {
        tell_lost(step);
    }
}

/* Workers of a node that is not connected end when the others may have gone on without it. */
static void succession_fence(struct succession_step *step, const char *reason) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_fenced && machine->was_connected && !machine->is_connected) {
        machine->is_fenced = true;
        succession_push(
            step, (struct succession_effect){.kind = SUCCESSION_EFFECT_FENCED, .reason = reason});
    }
}

/* Who is who. */

static const struct rendezvous_node *succession_find_self(
    const struct succession_machine *machine, const struct rendezvous_state *record) {
    for (size_t i = 0; i < record->count; i++) {
        if (node_identity_is_same_process(
                &record->nodes[i].identity, &machine->settings.identity)) {
            return &record->nodes[i];
        }
    }
    return NULL;
}

/* What the host has committed since this node has read, this node has seen. A node that delegates
 * sees no record, and knows it when it has read. */
static const struct rendezvous_state *latest_world(const struct succession_machine *machine) {
    const struct rendezvous_state *seen = &machine->seen;
    const struct rendezvous_state *read = &machine->record;
    return seen->count > 0 && (seen->round > read->round || read->count == 0) ? seen : read;
}

/* How many nodes of the world known last claim before this one. */
static int succession_turn(const struct succession_machine *machine) {
    const struct rendezvous_state *world = latest_world(machine);
    const struct rendezvous_node *self = succession_find_self(machine, world);
    int before = 0;
    for (size_t i = 0; i < world->count && before < SUCCESSION_TURNS_MAXIMUM; i++) {
        const struct rendezvous_node *other = &world->nodes[i];
        bool is_earlier = self == NULL || !self->is_participant || other->rank < self->rank;
        if (other->is_participant && is_earlier && other != self &&
            !node_identity_is_same_process(&other->identity, &machine->entry.host)) {
            before++;
        }
    }
    return before;
}

static void succession_forget_suspicion(struct succession_machine *machine) {
    succession_silence_end(&machine->silence);
    machine->suspicion = (struct succession_suspicion){.kind = SUCCESSION_SUSPICION_NONE};
    if (machine->state == SUCCESSION_SUSPECT) {
        machine->state = SUCCESSION_FOLLOW;
    }
}

/* Ends the search for a host. */
static void succession_give_up(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->is_seeking) {
        machine->is_seeking = false;
        if (machine->reason[0] == '\0') {
            snprintf(machine->reason, sizeof machine->reason, "no node hosts the job's store");
        }
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_GAVE_UP, .reason = machine->reason});
    }
}

/* Claims the next term. */
static void succession_claim(struct succession_step *step) {
    step->machine->state = SUCCESSION_CLAIM;
    succession_append(step, true, &step->machine->record);
}

/* Only few nodes do so: more would delay the one that claims. */
static void watch(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    bool is_early = succession_turn(machine) < SUCCESSION_TURNS_MAXIMUM;
    if (is_early && machine->suspicion.watched != machine->entry.number) {
        machine->suspicion.watched = machine->entry.number;
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_WATCH,
                                  .number = machine->entry.number});
    }
}

/* While other nodes have their turns, this one looks after each whether one of them has claimed. */
static void take_turn(struct succession_step *step) {
    struct succession_suspicion *suspicion = &step->machine->suspicion;
    if (!suspicion->is_turn) {
        suspicion->is_turn = true;
        suspicion->turns_before = succession_turn(step->machine);
    }
    if (!suspicion->turn_at.is_set && suspicion->turns_before == 0) {
        succession_claim(step);
        return;
    }
    if (!suspicion->turn_at.is_set) {
        suspicion->turns_before--;
        moment_set_after(&suspicion->turn_at, step->event->now,
            duration_from_milliseconds(SUCCESSION_TURN_MILLISECONDS));
    }
    watch(step);
}

/* The register has no later entry. The host that this node cannot reach is claimed when it is this
 * node's turn. A host that is not suspected is dialled. */
static void succession_claim_in_turn(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct succession_suspicion *suspicion = &machine->suspicion;
    if (suspicion->kind == SUCCESSION_SUSPICION_REFUSED) {
        take_turn(step);
    } else if (suspicion->is_turn || machine->is_named) {
        succession_claim(step);
    } else if (!machine->is_dialing) {
        succession_dial(step);
    }
}

/* Time. */

/* When a node that hears of nobody ends its workers. */
static struct instant succession_fence_time(const struct succession_machine *machine) {
    return instant_after(machine->heard_at, machine->settings.fence_timeout);
}

/* Also for what has come: the event of this step need not be the timer's, which acts on it. */
static void wake(const struct moment *moment, struct moment *next) {
    if (moment->is_set && (!next->is_set || instant_is_before(moment->at, next->at))) {
        *next = *moment;
    }
}

/* The one timer, for what comes next. */
static void succession_arm_timer(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct moment next = {0};
    wake(&machine->suspicion.turn_at, &next);
    struct moment look_at = succession_silence_next(&machine->silence);
    wake(&look_at, &next);
    wake(&machine->renew_at, &next);
    wake(&machine->retry_at, &next);
    wake(&machine->count_at, &next);
    wake(&machine->handover.quiet_at, &next);
    wake(&machine->handover.until, &next);
    if (machine->state == SUCCESSION_HOST && machine->is_uncommitted &&
        instant_is_before(step->event->now, machine->patient_until.at)) {
        wake(&machine->patient_until, &next);
    }
    if (machine->is_seeking && !machine->is_connected) {
        struct moment deadline = {true, machine->deadline};
        wake(&deadline, &next);
    }
    if (machine->was_connected && !machine->is_connected && !machine->is_fenced) {
        struct moment fence_at = {true, succession_fence_time(machine)};
        wake(&fence_at, &next);
    }
    if (next.is_set) {
        succession_push(step,
            (struct succession_effect){.kind = SUCCESSION_EFFECT_ARM_TIMER, .deadline = next.at});
    }
}

/* How the place of a host that leaves goes over to the node that it names, and how the others learn
 * of it. The successor claims as any node does, so that the register decides: the host only saves
 * it the suspicion, and the others their turns. */

/* The host. */

static bool comes_before(const struct rendezvous_node *node, const struct rendezvous_node *other) {
    return node->is_participant != other->is_participant
               ? node->is_participant
               : node->is_participant && node->rank < other->rank;
}

/* NULL: nobody stays. A node that leaves, too, is not in the record any more. */
static const struct rendezvous_node *find_successor(
    const struct succession_machine *machine, const struct rendezvous_state *record) {
    const struct rendezvous_node *first = NULL;
    for (size_t i = 0; i < record->count && !record->is_closed; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        bool stays = !node->is_done &&
                     !node_identity_is_same_process(&node->identity, &machine->settings.identity);
        if (stays && (first == NULL || comes_before(node, first))) {
            first = node;
        }
    }
    return first;
}

static void name(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->handover.stage = SUCCESSION_HANDOVER_NAMED;
    machine->handover.has_named = true;
    moment_clear(&machine->renew_at);
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_NAME,
                              .successor = machine->handover.successor});
}

static void dismiss(struct succession_step *step, bool has_successor) {
    struct succession_handover *handover = &step->machine->handover;
    handover->stage = SUCCESSION_HANDOVER_OVER;
    moment_clear(&handover->quiet_at);
    moment_clear(&handover->until);
    succession_push(step, (struct succession_effect){
                              .kind = SUCCESSION_EFFECT_DISMISS, .has_successor = has_successor});
}

static void wait_for_quiet(struct succession_step *step) {
    moment_set_after(&step->machine->handover.quiet_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_QUIET_MILLISECONDS));
}

static void succession_see_who_stays(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->handover.stage != SUCCESSION_HANDOVER_SETTLING) {
        return;
    }
    const struct rendezvous_node *successor = find_successor(machine, step->event->record);
    if (successor == NULL) {
        dismiss(step, false);
    } else {
        machine->handover.successor = successor->identity;
        wait_for_quiet(step);
    }
}

/* The host: LEAVE and NODE_GONE; and SEEN after LEAVE. */
static void succession_take_leave(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state != SUCCESSION_HOST) {
        dismiss(step, false);
        return;
    }
    machine->handover.stage = SUCCESSION_HANDOVER_SETTLING;
    moment_set_after(&machine->handover.until, step->event->now,
        duration_from_milliseconds(SUCCESSION_HANDOVER_MILLISECONDS));
    succession_see_who_stays(step);
}

/* It hosts by now, or has died: either way the others find out. */
static void succession_take_gone_node(struct succession_step *step) {
    const struct succession_handover *handover = &step->machine->handover;
    if (handover->stage == SUCCESSION_HANDOVER_NAMED &&
        node_identity_is_same_process(&handover->successor, &step->event->gone)) {
        dismiss(step, true);
    }
}

static bool is_settled(const struct succession_machine *machine) {
    return !machine->handover.quiet_at.is_set && machine->request == SUCCESSION_REQUEST_NONE &&
           !machine->is_unresolved && !machine->is_uncommitted;
}

/* A round that was committed just now begins. */
static void listen(struct succession_step *step) {
    struct succession_handover *handover = &step->machine->handover;
    if (step->event->kind == SUCCESSION_EVENT_WON) {
        wait_for_quiet(step);
    } else if (moment_has_come(&handover->quiet_at, step->event->now)) {
        moment_clear(&handover->quiet_at);
    }
}

/* After each step: names the successor when nothing is being appended any more, and dismisses the
 * others when it is time. */
static void succession_hand_over(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct succession_handover *handover = &machine->handover;
    if (handover->stage == SUCCESSION_HANDOVER_NONE ||
        handover->stage == SUCCESSION_HANDOVER_OVER) {
        return;
    }
    if (machine->state != SUCCESSION_HOST || moment_has_come(&handover->until, step->event->now)) {
        dismiss(step, false);
    } else if (handover->stage == SUCCESSION_HANDOVER_SETTLING) {
        listen(step);
        if (is_settled(machine)) {
            name(step);
        }
    }
}

/* Whether this host has named its successor: what it appends now would only cross its claim. */
static bool succession_has_handed_over(const struct succession_machine *machine) {
    return machine->handover.has_named;
}

/* The others. */

static bool follows(const struct succession_machine *machine) {
    return machine->state == SUCCESSION_FOLLOW && machine->is_connected;
}

/* The others: NAMED and MOVED. */
/* What the host has committed meanwhile, this node may not know. */
static void succession_take_named(struct succession_step *step) {
    if (follows(step->machine)) {
        step->machine->is_named = true;
        succession_read(step);
    }
}

static void succession_take_moved(struct succession_step *step) {
    if (follows(step->machine)) {
        succession_read(step);
    }
}

/* What a succession machine does as the host of a term: it begins and ends to host, makes rounds
 * that are whole entries of its term, and renews it. When its most nodes are missing it does
 * neither for a while. */

/* Whether what this host writes there is taken; told where it has changed. */
static void succession_tell_register(struct succession_step *step, bool is_stuck) {
    if (step->machine->is_stuck != is_stuck) {
        step->machine->is_stuck = is_stuck;
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_TELL_REGISTER, .is_stuck = is_stuck});
    }
}

/* This node is the host of the entry known last. */
static void succession_host(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_renewing = false;
    succession_tell_register(step, false); /* its claim was taken */
    succession_forget_suspicion(machine);
    succession_leave_connection(step);
    machine->state = SUCCESSION_HOST;
    machine->is_uncommitted = false;
    succession_majority_clear(&machine->majority);
    moment_clear(&machine->patient_until);
    moment_set_after(&machine->renew_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_HOST,
                              .host = {machine->entry.term, machine->formers, machine->former_count,
                                  &machine->record}});
    succession_dial(step);
}

static void succession_end_hosting(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->state = SUCCESSION_FOLLOW;
    machine->is_uncommitted = false;
    moment_clear(&machine->renew_at);
    succession_push_kind(step, SUCCESSION_EFFECT_END_HOSTING);
    succession_leave_connection(step);
}

static void forget_missing(struct succession_machine *machine, struct instant until) {
    succession_majority_forget(&machine->majority, &machine->record, until);
}

/* They have to find the host silent before they claim: by then half of this has passed. */
static struct duration patience_of(const struct succession_machine *machine) {
    return (struct duration){2 * machine->settings.fence_timeout.nanoseconds};
}

/* Those who are missing may be together, and this node alone: they are given time to claim. Who has
 * been missing for so long while this node held its term has had that time. */
static bool is_outnumbered(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->patient_until.is_set) {
        forget_missing(machine,
            (struct instant){step->event->now.nanoseconds - patience_of(machine).nanoseconds});
    }
    if (!succession_majority_is_missing(
            &machine->majority, &machine->record, &machine->settings.identity)) {
        moment_clear(&machine->patient_until);
        return false;
    }
    if (!machine->patient_until.is_set) {
        moment_set_after(&machine->patient_until, step->event->now, patience_of(machine));
    }
    return true;
}

static bool is_patient(struct succession_step *step) {
    return is_outnumbered(step) &&
           !moment_has_come(&step->machine->patient_until, step->event->now);
}

/* Whether what was seen is the good end of the world that is committed. Whoever is missing has been
 * in no later one, and so has none that this would take away. Nobody stays to append it later. */
static bool is_good_end(const struct succession_machine *machine) {
    return machine->seen.is_closed && !machine->seen.has_failed &&
           machine->seen.round == machine->record.round &&
           machine->seen.base == machine->record.base;
}

/* Appends the record of a round that is whole and no entry yet, if nothing else is being appended.
 */
static void succession_commit(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_HOST && machine->is_uncommitted &&
        machine->request == SUCCESSION_REQUEST_NONE && !machine->is_unresolved &&
        !succession_has_handed_over(machine) && (is_good_end(machine) || !is_patient(step))) {
        succession_append(step, false, &machine->seen);
    }
}

/* The last entry's round may be used by those who are connected. */
static void succession_tell_committed(struct succession_step *step) {
    const struct rendezvous_state *record = &step->machine->record;
    if (step->machine->is_connected && record->is_complete) {
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_COMMITTED,
                                  .round = record->round});
    }
}

/* What this node has appended is the last entry. */
static void succession_take_commit_won(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->former_count = 0;
    rendezvous_state_copy(&machine->appended, &machine->record);
    if (moment_has_come(&machine->patient_until, step->event->now)) {
        forget_missing(machine, step->event->now); /* nobody has claimed: they are dead */
    }
    machine->is_uncommitted =
        machine->is_uncommitted && succession_is_news(&machine->seen, &machine->record);
    succession_tell_committed(step);
    succession_commit(step);
}

static size_t count_done(const struct rendezvous_state *record) {
    size_t count = 0;
    for (size_t i = 0; i < record->count; i++) {
        count += record->nodes[i].is_done ? 1 : 0;
    }
    return count;
}

/* Whether `seen` has to become an entry after `known`. */
static bool succession_is_news(
    const struct rendezvous_state *seen, const struct rendezvous_state *known) {
    return seen->round != known->round || seen->base != known->base ||
           seen->is_closed != known->is_closed || seen->is_complete != known->is_complete ||
           count_done(seen) != count_done(known);
}

/* SEEN: perhaps there is something to append. */
static void succession_take_seen(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct rendezvous_state *record = step->event->record;
    bool is_whole = record->is_complete && rendezvous_state_is_whole(record);
    succession_majority_see(&machine->majority, record);
    machine->is_open = !is_whole && !record->is_closed;
    machine->is_uncommitted =
        (is_whole || record->is_closed) && succession_is_news(record, &machine->record);
    if (machine->is_uncommitted) {
        rendezvous_state_copy(record, &machine->seen);
    }
    succession_see_who_stays(step);
    succession_commit(step);
}

/* No network parts nodes of one machine: one that does not come is dead, or stands still. */
static bool is_on_own_machine(const struct succession_step *step) {
    return text_equals(step->event->silent.address, step->machine->settings.identity.address);
}

/* NODE_SILENT. Those who fall silent at one moment are counted once, when the timer fires. */
static void succession_take_silent_node(struct succession_step *step) {
    if (step->machine->state == SUCCESSION_HOST && !is_on_own_machine(step)) {
        succession_majority_miss(&step->machine->majority, &step->event->silent, step->event->now);
        moment_set(&step->machine->count_at, step->event->now);
    }
}

static void succession_count_missing(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (moment_has_come(&machine->count_at, step->event->now)) {
        moment_clear(&machine->count_at);
        if (machine->state == SUCCESSION_HOST) {
            (void)is_outnumbered(step);
        }
    }
}

/* A node that stood still may have been deposed meanwhile; so may one that is cut off, whose round
 * stays open. Any other finds out when it appends. */
static bool may_be_deposed(const struct succession_step *step) {
    const struct succession_machine *machine = step->machine;
    struct instant late = instant_after(
        machine->renew_at.at, duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    return machine->is_open || machine->is_renewing || instant_is_before(late, step->event->now) ||
           machine->renewal_count % SUCCESSION_RENEWALS_PER_READ == 0;
}

/* Renews the term when it is time. */
static void succession_renew(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state != SUCCESSION_HOST || succession_has_handed_over(machine) ||
        !moment_has_come(&machine->renew_at, step->event->now)) {
        return;
    }
    bool is_held = !is_outnumbered(step);
    machine->renewal_count++;
    if (!is_held || may_be_deposed(step)) {
        succession_read(step); /* a renewal does not tell that the term is over */
    }
    moment_set_after(&machine->renew_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    if (is_held) {
        succession_tell_register(step, machine->is_renewing);
        machine->is_renewing = true;
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_RENEW, .term = machine->entry.term});
    }
}

/* Machine. */

struct succession_machine *succession_machine_new(const struct succession_settings *settings) {
    struct succession_machine *machine = memory_allocate(sizeof *machine);
    machine->settings = *settings;
    return machine;
}

void succession_machine_free(struct succession_machine *machine) {
    if (machine != NULL) {
        rendezvous_state_clear(&machine->record);
        rendezvous_state_clear(&machine->seen);
        rendezvous_state_clear(&machine->appended);
        succession_silence_end(&machine->silence);
        succession_majority_clear(&machine->majority);
        free(machine);
    }
}

enum succession_state succession_machine_state(const struct succession_machine *machine) {
    return machine->state;
}

bool succession_machine_owes_end(const struct succession_machine *machine) {
    return machine->state == SUCCESSION_HOST && machine->is_uncommitted &&
           machine->seen.is_closed && !machine->handover.has_named;
}

/* Suspicion. */

/* Who is the first to claim asks the register before, unless it has done so since it sought the
 * host. */
static void suspect_ended(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct succession_suspicion *suspicion = &machine->suspicion;
    bool knows_register = machine->has_read && suspicion->kind == SUCCESSION_SUSPICION_NONE;
    if (suspicion->kind != SUCCESSION_SUSPICION_REFUSED) {
        succession_forget_suspicion(machine);
        suspicion->kind = SUCCESSION_SUSPICION_REFUSED;
    }
    machine->state = SUCCESSION_SUSPECT;
    moment_clear(&machine->retry_at);
    if (machine->is_unresolved || (!knows_register && succession_turn(machine) == 0)) {
        succession_read(step);
    } else if (machine->request == SUCCESSION_REQUEST_NONE) {
        succession_claim_in_turn(step);
    }
}

static bool look_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    bool is_due = succession_silence_is_due(&machine->silence, step->event->now);
    if (is_due) {
        succession_silence_ask(&machine->silence, step->event->now);
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_LOOK, .term = machine->entry.term});
    }
    return is_due;
}

/* What is seen of the renewal counts from the first doubt on. */
static void judge_silence(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->suspicion.kind == SUCCESSION_SUSPICION_SILENT) {
        machine->suspicion.is_turn =
            succession_silence_has_lasted(&machine->silence, machine->settings.silence_timeout);
        if (machine->suspicion.is_turn) {
            succession_read(step);
        }
    }
}

static void suspect_silent(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->state = SUCCESSION_SUSPECT;
    if (machine->suspicion.kind != SUCCESSION_SUSPICION_SILENT) {
        machine->suspicion = (struct succession_suspicion){.kind = SUCCESSION_SUSPICION_SILENT};
        succession_silence_begin(&machine->silence, step->event->now);
        judge_silence(step);
        (void)look_in_time(step);
    }
}

static void take_doubt(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_connected || machine->state == SUCCESSION_HOST) {
        return;
    }
    if (step->event->is_doubted) {
        succession_silence_begin(&machine->silence, step->event->now);
        (void)look_in_time(step);
        succession_read(step); /* what it has committed by now is no sign of life later */
    } else {
        succession_silence_end(&machine->silence);
    }
}

/* Its term is over, and has committed nothing. When more of them follow each other than there is
 * room for, the first ones are missed by their silence. */
static void note_former(struct succession_machine *machine) {
    const struct node_identity *host = &machine->entry.host;
    if (machine->entry.number > 0 && machine->former_count < SUCCESSION_FORMERS_MAXIMUM &&
        !node_identity_is_same_process(host, &machine->settings.identity)) {
        machine->formers[machine->former_count++] = *host;
    }
}

static void take_win(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_unresolved = false;
    if (machine->is_claim) {
        note_former(machine);
    }
    machine->entry.number++;
    if (machine->is_claim) {
        machine->entry.term++;
        machine->entry.host = machine->settings.identity;
        succession_host(step);
    } else {
        succession_take_commit_won(step);
    }
}

/* What the register says. */

/* Whether an append of this node was won while nobody knew: nobody else writes its name. It need
 * not be the last one, since an earlier one may have been given up before it took effect. */
static bool is_own_win(
    const struct succession_machine *machine, const struct succession_entry *entry) {
    return machine->is_unresolved && entry->number == machine->entry.number + 1 &&
           node_identity_is_same_process(&entry->host, &machine->settings.identity);
}

/* Where it is not connected, this node learns here that a round goes on without it. */
static void leave_world_of_others(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->record.is_complete && succession_find_self(machine, &machine->record) == NULL) {
        succession_fence(
            step, "the others have gone on without this node, which cannot reach them");
    }
}

/* The host of the term that this node knows has committed something. */
static void take_commit(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_HOST) {
        succession_commit(step);
        return;
    }
    if (machine->state == SUCCESSION_CLAIM) {
        machine->state = SUCCESSION_SUSPECT;
    }
    if (machine->suspicion.kind == SUCCESSION_SUSPICION_SILENT) { /* to this node alone */
        machine->suspicion.is_turn = false;
        succession_silence_hear(&machine->silence);
    }
    leave_world_of_others(step);
    succession_claim_in_turn(step);
}

/* Of a job that is over nobody needs to host the store, and its last host may be gone without a
 * word. */
static bool comes_too_late(const struct succession_machine *machine) {
    return machine->record.is_closed && machine->is_seeking && !machine->was_connected;
}

static void begin_term(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (comes_too_late(machine)) {
        snprintf(machine->reason, sizeof machine->reason,
            "the job is over: its record is closed; a new job needs another --rdzv-id");
        succession_give_up(step);
        return;
    }
    succession_forget_suspicion(machine);
    if (machine->state == SUCCESSION_HOST) {
        succession_end_hosting(step);
    }
    succession_leave_connection(step);
    leave_world_of_others(step);
    if (node_identity_is_same_process(&machine->entry.host, &machine->settings.identity)) {
        succession_host(step);
    } else {
        machine->state = SUCCESSION_FOLLOW;
        succession_dial(step);
    }
}

static void follow(struct succession_step *step, const struct succession_entry *entry) {
    struct succession_machine *machine = step->machine;
    bool is_same_term = machine->entry.number > 0 && entry->term == machine->entry.term;
    machine->is_unresolved = false;
    if (is_same_term || succession_is_news(step->event->record, &machine->record)) {
        machine->former_count = 0;
    }
    if (!is_same_term) {
        note_former(machine);
    }
    machine->entry = *entry;
    rendezvous_state_copy(step->event->record, &machine->record);
    if (is_same_term) {
        take_commit(step);
    } else {
        begin_term(step);
    }
}

static void take_entry(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct succession_entry *entry = &step->event->entry;
    if (is_own_win(machine, entry)) {
        rendezvous_state_copy(step->event->record, &machine->appended);
        take_win(step);
    } else if (entry->number > machine->entry.number) {
        follow(step, entry);
    } else if (machine->is_unresolved) {
        succession_append(
            step, machine->is_claim, machine->is_claim ? &machine->record : &machine->appended);
    } else if (machine->state == SUCCESSION_HOST) {
        succession_commit(step);
    } else {
        succession_claim_in_turn(step);
    }
}

static void hear(struct succession_step *step) {
    step->machine->heard_at = step->event->now;
}

/* An answer may be late: what was committed after it was asked for, it need not tell. */
static void hear_of_asking(struct succession_machine *machine) {
    if (instant_is_before(machine->heard_at, machine->asked_at)) {
        machine->heard_at = machine->asked_at;
    }
}

static void take_read(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->request != SUCCESSION_REQUEST_READ) {
        return;
    }
    machine->request = SUCCESSION_REQUEST_NONE;
    machine->has_read = true;
    hear_of_asking(machine);
    if (step->event->is_there) {
        take_entry(step);
    } else if (machine->entry.number == 0) {
        succession_claim(step);
    } else { /* the register has forgotten what it had: perhaps its file system is not there */
        succession_retry_later(step);
    }
}

static void take_won(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_APPEND) {
        step->machine->request = SUCCESSION_REQUEST_NONE;
        hear_of_asking(step->machine);
        take_win(step);
    }
}

static void take_lost_append(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_APPEND) {
        step->machine->request = SUCCESSION_REQUEST_NONE;
        hear_of_asking(step->machine);
        follow(step, &step->event->entry);
    }
}

/* What is asked at the moment tells it, too. */
static void take_news(struct succession_step *step) {
    const struct succession_machine *machine = step->machine;
    if (machine->request == SUCCESSION_REQUEST_NONE && !machine->is_unresolved &&
        machine->state != SUCCESSION_HOST && step->event->entry.number > machine->entry.number) {
        follow(step, &step->event->entry);
    }
}

static void take_unknown(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->request == SUCCESSION_REQUEST_APPEND) {
        machine->request = SUCCESSION_REQUEST_NONE;
        machine->is_unresolved = true;
        succession_retry_later(step);
    }
}

static void take_renewed(struct succession_step *step) {
    if (step->machine->state != SUCCESSION_HOST) {
        return; /* any more */
    }
    succession_tell_register(step, step->event->is_refused);
    if (step->event->is_refused) {
        return;
    }
    step->machine->is_renewing = false;
    hear(step);
}

static void take_renewal(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    succession_silence_take(&machine->silence, step->event->renewal,
        machine->settings.silence_timeout, step->event->now);
    judge_silence(step);
}

static void take_register_failure(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->request = SUCCESSION_REQUEST_NONE;
    snprintf(machine->reason, sizeof machine->reason, "%s", step->event->failed.reason);
    if (step->event->failed.is_final && machine->entry.number == 0) {
        succession_give_up(step);
    } else {
        succession_retry_later(step);
    }
}

/* What the rendezvous machine asks, and what the store says. */

/* Another node may be host by now. Who does not claim first has time to learn it: the host of the
 * entry known says before whether it is there. */
static void read_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_FOLLOW && machine->is_dialing &&
        succession_turn(machine) > 0) {
        moment_set_after(&machine->retry_at, step->event->now,
            duration_from_milliseconds(SUCCESSION_TURN_MILLISECONDS));
    } else if (machine->state == SUCCESSION_FOLLOW || machine->state == SUCCESSION_SUSPECT) {
        succession_read(step);
    }
}

static void seek(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_seeking = true;
    machine->has_read = false;
    machine->deadline = step->event->deadline;
    if (machine->entry.number > 0 && machine->state != SUCCESSION_CLAIM) {
        succession_dial(step);
    }
    read_in_time(step);
}

static void take_connected(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_seeking) {
        return;
    }
    succession_forget_suspicion(machine);
    machine->is_seeking = false;
    machine->is_dialing = false;
    machine->is_connected = true;
    machine->was_connected = true;
    machine->is_fenced = false;
    hear(step);
    succession_push(
        step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_CONNECTED,
                  .connected = {.is_same_term = machine->connected_term == machine->entry.term,
                      .offers_delegation = step->event->offers_delegation}});
    machine->connected_term = machine->entry.term;
    if (machine->state == SUCCESSION_HOST) {
        succession_tell_committed(step);
    }
}

/* A machine that has fallen silent was heard so long ago at least, and the others may have gone on
 * since. */
static void hear_until_loss(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct instant heard = step->event->now;
    if (step->event->loss == SUCCESSION_LOSS_SILENT) {
        heard.nanoseconds -= machine->settings.silence_timeout.nanoseconds +
                             duration_from_milliseconds(SUCCESSION_LOOK_MILLISECONDS).nanoseconds;
    }
    if (instant_is_before(machine->heard_at, heard)) {
        machine->heard_at = heard;
    }
}

static void take_connection_loss(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    enum succession_loss loss = step->event->loss;
    bool was_connected = machine->is_connected;
    machine->is_dialing = false;
    if (was_connected) {
        hear_until_loss(step);
        succession_leave_connection(step);
    }
    if (machine->state == SUCCESSION_CLAIM || (was_connected && loss != SUCCESSION_LOSS_SILENT)) {
        return; /* SEEK follows */
    }
    if (machine->state == SUCCESSION_HOST) {
        succession_retry_later(step);
    } else if (loss == SUCCESSION_LOSS_REFUSED) {
        suspect_ended(step);
    } else if (loss == SUCCESSION_LOSS_SILENT) {
        suspect_silent(step);
        succession_dial(step);
    } else { /* somebody listens there who does not host: it may come to, or be another process */
        suspect_silent(step);
        succession_retry_later(step);
    }
}

/* Time. */

/* What has waited for the register, or for a store that is not served yet. */
static void try_again(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    moment_clear(&machine->retry_at);
    if (machine->state == SUCCESSION_CLAIM && machine->request == SUCCESSION_REQUEST_NONE) {
        machine->state = SUCCESSION_SUSPECT;
    }
    if (machine->state == SUCCESSION_HOST && !machine->is_unresolved) {
        succession_commit(step);
        succession_dial(step);
    } else if (machine->is_seeking || machine->is_unresolved || machine->is_named) {
        succession_read(step);
    }
}

static void claim_in_time(struct succession_step *step) {
    struct succession_suspicion *suspicion = &step->machine->suspicion;
    if (moment_has_come(&suspicion->turn_at, step->event->now)) {
        moment_clear(&suspicion->turn_at);
        succession_read(step);
    }
}

static void give_up_in_time(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->is_seeking && !machine->is_connected &&
        !instant_is_before(step->event->now, machine->deadline)) {
        succession_give_up(step);
    }
}

static void take_timer(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct instant now = step->event->now;
    if (moment_has_come(&machine->retry_at, now)) {
        try_again(step);
    }
    claim_in_time(step);
    if (look_in_time(step) && !machine->is_connected) {
        succession_read(step); /* the others may have gone on without this node */
    }
    succession_count_missing(step);
    succession_renew(step);
    succession_commit(step); /* for which it may have been patient */
    if (!instant_is_before(now, succession_fence_time(machine))) {
        succession_fence(step,
            "neither the host of the job's store nor its register was heard of for "
            "fence_timeout");
    }
    give_up_in_time(step);
}

static void (*const handlers[SUCCESSION_EVENT_KIND_COUNT])(struct succession_step *step) = {
    [SUCCESSION_EVENT_SEEK] = seek,
    [SUCCESSION_EVENT_SEEN] = succession_take_seen,
    [SUCCESSION_EVENT_READ] = take_read,
    [SUCCESSION_EVENT_WON] = take_won,
    [SUCCESSION_EVENT_LOST] = take_lost_append,
    [SUCCESSION_EVENT_UNKNOWN] = take_unknown,
    [SUCCESSION_EVENT_RENEWED] = take_renewed,
    [SUCCESSION_EVENT_RENEWAL] = take_renewal,
    [SUCCESSION_EVENT_NEWS] = take_news,
    [SUCCESSION_EVENT_FAILED] = take_register_failure,
    [SUCCESSION_EVENT_CONNECTED] = take_connected,
    [SUCCESSION_EVENT_CONNECTION_LOST] = take_connection_loss,
    [SUCCESSION_EVENT_NODE_SILENT] = succession_take_silent_node,
    [SUCCESSION_EVENT_NODE_GONE] = succession_take_gone_node,
    [SUCCESSION_EVENT_DOUBTED] = take_doubt,
    [SUCCESSION_EVENT_NAMED] = succession_take_named,
    [SUCCESSION_EVENT_MOVED] = succession_take_moved,
    [SUCCESSION_EVENT_LEAVE] = succession_take_leave,
    [SUCCESSION_EVENT_TIMER_FIRED] = take_timer,
};

void succession_machine_step(struct succession_machine *machine,
    const struct succession_event *event, struct succession_effects *effects) {
    effects->count = 0;
    struct succession_step step = {.machine = machine, .event = event, .effects = effects};
    handlers[event->kind](&step);
    succession_hand_over(&step);
    succession_arm_timer(&step);
}
