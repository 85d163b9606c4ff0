/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/round/round_step.h"

/* How long this node waits for the store to say how many nodes are in the barrier. */
#define COUNTING_SECONDS 2
/* How often a node in the barrier counts again. The node that came last may have died, or have lost
 * its connection, after it was counted and before it could tell the others. */
#define RECOUNTING_SECONDS 5

#define ANY_VALUE "<val_ignored>" /* the value that torchrun writes */

/* The address: by it all nodes of the round agree on one store for the workers. What torchrun's
 * nodes do is next_rendezvous in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

/* Rank 0 has opened the store of the workers: the host tells the others. */
static void round_told_note_opened(struct round_step *step) {
    const struct round_address *agreed = &step->exchange->address;
    if (step->exchange->is_ranked) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_OPENED,
                                  .opened = {text_string(&agreed->text), agreed->port}});
    }
}

/* What follows from a decision. */

static void settle_on(struct round_step *step, int owner, const char *address, int port) {
    struct round_address *agreed = &step->exchange->address;
    struct text text = {0};
    text_append(&text, address);
    text_clear(&agreed->text);
    agreed->text = text;
    agreed->port = port;
    snprintf(agreed->port_text, sizeof agreed->port_text, "%d", port);
    agreed->owner = owner;
    text_clear(&agreed->owner_text);
    node_identity_write(round_step_node(step, owner), &agreed->owner_text);
}

/* Another node publishes the address, or has published it. */
static void expect(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    step->exchange->address.stage = ROUND_ADDRESS_EXPECTED;
    round_step_want(step, exchange->has_ranks
                              ? round_step_key(step, ROUND_KEY_ADDRESS)
                              : round_step_node_key(step, ROUND_KEY_WORLD, exchange->group_rank));
}

static void push_publication(struct round_step *step) {
    const struct round_address *agreed = &step->exchange->address;
    round_step_push(step, (struct round_effect){
                              .kind = ROUND_EFFECT_PUBLISH,
                              .key = round_step_key(step, ROUND_KEY_PUBLICATION),
                              .publication = {.address = text_string(&agreed->text),
                                  .port = agreed->port_text,
                                  .publisher = text_string(&agreed->owner_text)},
                          });
}

/* Publishes the address on which this node has settled. Rank 0 then knows all it needs. Any other
 * node still needs its ranks, and reads both together. */
static void publish(struct round_step *step) {
    struct round_address *agreed = &step->exchange->address;
    push_publication(step);
    if (round_step_is_first(step)) {
        agreed->stage = ROUND_ADDRESS_KNOWN;
        round_told_note_opened(step);
        round_step_gather(step);
        round_step_join(step);
    } else {
        expect(step);
    }
}

static void publish_own(struct round_step *step) {
    struct round_address *agreed = &step->exchange->address;
    settle_on(step, step->exchange->group_rank, text_string(&agreed->own_text), agreed->own_port);
    publish(step);
}

static void open_own(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->address.is_open) {
        publish_own(step);
    } else if (exchange->address.stage != ROUND_ADDRESS_OPENING) {
        exchange->address.stage = ROUND_ADDRESS_OPENING;
        exchange->address.has_opened = true;
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_OPEN_WORKER_STORE,
                                  .is_fresh = !exchange->has_met_foreign});
    }
}

/* Rank 0 names the node whose store the workers get. */
static void summon(struct round_step *step) {
    struct round_address *agreed = &step->exchange->address;
    agreed->stage = ROUND_ADDRESS_SUMMONED;
    round_step_set(step, ROUND_KEY_PUBLISHER, text_string(&agreed->owner_text));
    round_step_gather(step);
    round_step_want(step, round_step_key(step, ROUND_KEY_ADDRESS));
}

/* Listening for a role info. torchrun's node writes its role info only after it has an address. */

static void listen_to(struct round_step *step, int node) {
    struct round_exchange *exchange = step->exchange;
    exchange->address.stage = ROUND_ADDRESS_LISTENING;
    bool is_first = round_step_is_first(step);
    if (is_first && exchange->settings.is_uniform) {
        publish(step); /* no role info will come; torchrun's node probably shares its store */
        return;
    }
    round_step_want(step, exchange->settings.is_uniform
                              ? round_step_key(step, ROUND_KEY_ADDRESS)
                              : round_step_node_key(step, ROUND_KEY_ROLE_INFO, node));
    if (is_first || exchange->settings.is_uniform) {
        struct instant grace =
            instant_after(step->event->now, duration_from_seconds(ROUND_EXCHANGE_GRACE_SECONDS));
        round_step_arm_timer(
            step, instant_is_before(grace, exchange->deadline) ? grace : exchange->deadline);
    }
}

/* torchrun's rank 0 has published by now, if it publishes in this round at all. */
static void look_for_address(struct round_step *step) {
    round_step_push_key(step, ROUND_EFFECT_CHECK, round_step_key(step, ROUND_KEY_ADDRESS));
}

static void round_address_take_sign(struct round_step *step) {
    if (step->exchange->address.stage != ROUND_ADDRESS_LISTENING) {
        return;
    }
    if (round_step_is_first(step)) {
        round_step_arm_timer(step, step->exchange->deadline);
        publish(step);
    } else {
        look_for_address(step);
    }
}

static void round_address_take_silence(struct round_step *step) {
    if (step->exchange->address.stage != ROUND_ADDRESS_LISTENING) {
        return;
    }
    if (round_step_is_first(step)) {
        open_own(step);
    } else {
        look_for_address(step);
    }
}

/* Seeking the address in earlier rounds. */

static struct round_key sought_key(const struct round_step *step, enum round_key_kind kind) {
    return (struct round_key){.kind = kind, .round = step->exchange->address.sought};
}

static void seek(struct round_step *step, int64_t round) {
    struct round_exchange *exchange = step->exchange;
    if (round >= 0 && round >= exchange->round - ROUND_EXCHANGE_LOOK_BACK) {
        exchange->address.stage = ROUND_ADDRESS_SEEKING;
        exchange->address.sought = round;
        round_step_push_key(step, ROUND_EFFECT_CHECK, sought_key(step, ROUND_KEY_ADDRESS));
    } else if (round_step_is_first(step)) {
        open_own(step);
    } else {
        expect(step);
    }
}

/* CHECKED of the present round: whether torchrun's rank 0 has published. */
static void take_foreign_publication(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (!step->event->is_present) {
        seek(step, exchange->round - 1);
        return;
    }
    text_clear(&exchange->address.owner_text);
    node_identity_write(round_step_node(step, 0), &exchange->address.owner_text);
    round_step_set(step, ROUND_KEY_PUBLISHER, text_string(&exchange->address.owner_text));
    expect(step);
}

static void round_address_take_checked(struct round_step *step) {
    const struct round_address *address = &step->exchange->address;
    const struct round_key *key = &step->event->key;
    bool is_present = step->event->is_present;
    if (address->stage == ROUND_ADDRESS_LISTENING && key->round == step->exchange->round) {
        take_foreign_publication(step);
    } else if (address->stage != ROUND_ADDRESS_SEEKING || key->round != address->sought) {
        return;
    } else if (key->kind == ROUND_KEY_PUBLISHER) {
        round_step_push_key(step, ROUND_EFFECT_GET,
            sought_key(step, is_present ? ROUND_KEY_PUBLICATION : ROUND_KEY_ADDRESS));
    } else if (is_present) {
        round_step_push_key(step, ROUND_EFFECT_CHECK, sought_key(step, ROUND_KEY_PUBLISHER));
    } else {
        seek(step, address->sought - 1);
    }
}

static bool is_named(const struct round_step *step, int node, const char *name) {
    struct text text = {0};
    node_identity_write(round_step_node(step, node), &text);
    bool is_same = text_equals(text_string(&text), name);
    text_clear(&text);
    return is_same;
}

/* The node whose store was published, or -1. A node of Muster publishes its name with the address.
 * Without a name, torchrun's rank 0 of that round has published its own address; of several nodes
 * on that host, it had the lowest rank. */
static int find_owner(const struct round_step *step, const struct round_values *values) {
    for (int node = 0; node < step->exchange->node_count; node++) {
        if (values->publisher != NULL
                ? is_named(step, node, values->publisher)
                : round_step_is_foreign(step, node) &&
                      text_equals(round_step_node(step, node)->address, values->address)) {
            return node;
        }
    }
    return -1;
}

static void round_address_take_found(struct round_step *step) {
    const struct round_address *address = &step->exchange->address;
    const struct round_values *values = &step->event->values;
    if (address->stage != ROUND_ADDRESS_SEEKING || step->event->key.round != address->sought) {
        return;
    }
    bool is_sound = values->address != NULL && values->port != 0;
    int owner = is_sound ? find_owner(step, values) : -1;
    if (!round_step_is_first(step)) {
        if (owner == 0) {
            settle_on(step, owner, values->address, values->port);
            publish(step); /* again for new nodes, since rank 0 does not */
        } else {
            seek(step, address->sought - 1);
        }
    } else if (owner == -1 || owner == step->exchange->group_rank) {
        open_own(step);
    } else {
        settle_on(step, owner, values->address, values->port);
        if (round_step_is_foreign(step, owner)) {
            listen_to(step, owner);
        } else {
            summon(step);
        }
    }
}

/* GET of PUBLISHER: rank 0 has named a node. */
static void round_address_take_publisher(struct round_step *step) {
    const char *publisher = step->event->values.publisher;
    if (publisher != NULL && is_named(step, step->exchange->group_rank, publisher)) {
        open_own(step);
    } else {
        expect(step);
    }
}

/* Answers:
 * - `opened`: this node's store is open;
 * - `sign`: the role info for which this node listens is there;
 * - `silence`: it is not there after the time of grace;
 * - `checked`: CHECK of ADDRESS or PUBLISHER;
 * - `publisher`: GET of PUBLISHER in this round;
 * - `found`: GET of ADDRESS or PUBLICATION in an earlier round. */
static void round_address_take_opened(struct round_step *step) {
    struct round_address *address = &step->exchange->address;
    address->is_open = true;
    text_clear(&address->own_text);
    text_append(&address->own_text, step->event->opened.address);
    address->own_port = step->event->opened.port;
    if (address->stage == ROUND_ADDRESS_OPENING) {
        publish_own(step);
    }
}

/* The start. */

/* The round begins, and the host of the job's store has told the address with it. */
static void round_address_be_told(struct round_step *step, const char *told, int port) {
    struct round_address *address = &step->exchange->address;
    text_append(&address->text, told);
    address->port = port;
    address->stage = ROUND_ADDRESS_KNOWN;
    round_step_join(step);
}

static void start_first(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    if (exchange->has_foreign && exchange->round > 0) {
        seek(step, exchange->round - 1);
    } else {
        open_own(step);
        round_step_gather(step);
    }
}

/* The round begins. */
static void round_address_start(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (round_step_is_first(step)) {
        start_first(step);
    } else if (round_step_is_foreign(step, 0)) {
        listen_to(step, 0);
    } else if (exchange->has_foreign && exchange->address.has_opened) {
        round_step_want(step, round_step_key(step, ROUND_KEY_PUBLISHER));
    } else {
        expect(step);
    }
}

/* What the host of the job's store tells the nodes of a round, which then exchange nothing. It
 * tells the ranks when the round begins; or, when nodes of the round may still end their old
 * workers, it holds the round, and tells them when all are ready. */

static bool take_ranks(struct round_step *step, const struct rank_assignment *ranks) {
    struct round_exchange *exchange = step->exchange;
    exchange->ranks = *ranks;
    exchange->has_ranks = true;
    bool are_sound = ranks->world_size - ranks->base_rank >= exchange->settings.local_world_size;
    if (!are_sound) {
        round_step_fail(step, "the host of the job's store has told ranks that make no sense");
    }
    return are_sound;
}

/* The round begins. Returns whether it goes on: what it was told makes sense. */
static bool round_told_begin(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct rank_assignment *ranks = &step->event->begin.ranks;
    exchange->is_held = step->event->begin.is_held;
    exchange->is_ranked = exchange->is_held || ranks->world_size > 0;
    return exchange->is_held || !exchange->is_ranked || take_ranks(step, ranks);
}

/* All nodes of the round, which was held, are ready. */
static void round_told_take_release(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_event *event = step->event;
    if (exchange->phase != ROUND_JOINING || !exchange->is_held) {
        return;
    }
    exchange->is_held = false;
    if (!take_ranks(step, &event->released.ranks)) {
        return;
    }
    if (round_step_is_first(step)) {
        round_step_join(step);
    } else if (event->released.master_address != NULL) {
        round_address_be_told(step, event->released.master_address, event->released.master_port);
    } else {
        round_address_start(step);
    }
}

/* The exit barrier, in which a node whose workers are done waits for the other nodes. Matches
 * barrier() in torch/distributed/elastic/utils/store.py, as SimpleElasticAgent calls it. */

/* A node that delegates is told when the record is closed, which whoever passes the barrier asks
 * for. So it does not wait for the key that the others wait for. */
static bool waits_for_last(const struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    bool delegates = exchange->nodes == NULL && !round_step_is_fixed(step);
    return !delegates || exchange->stays_in_barrier;
}

static void count(struct round_step *step, int64_t amount) {
    round_step_add(step, round_step_key(step, ROUND_KEY_NUM_MEMBERS), amount);
}

static void arm_recount(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    struct instant next =
        instant_after(step->event->now, duration_from_seconds(RECOUNTING_SECONDS));
    bool is_last = !exchange->is_barrier_late && instant_is_before(exchange->deadline, next);
    round_step_arm_timer(step, is_last ? exchange->deadline : next);
}

static void round_barrier_enter(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_JOINED || exchange->is_cut_off) {
        text_clear(&exchange->reason);
        text_append(&exchange->reason, "this node is in no round");
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
        return;
    }
    exchange->phase = ROUND_LEAVING;
    exchange->stays_in_barrier = step->event->is_host;
    exchange->deadline = instant_after(step->event->now, exchange->settings.exit_barrier_timeout);
    if (exchange->is_coordinated) {
        round_step_arm_timer(step, exchange->deadline);
        round_step_add(step, round_step_attempt_key(step, ROUND_KEY_FINISHED, 0), 1);
    } else if (exchange->settings.has_succession) {
        round_step_arm_timer(step, exchange->deadline);
        round_step_push(
            step, (struct round_effect){.kind = ROUND_EFFECT_SET,
                      .key = round_step_node_key(step, ROUND_KEY_DONE, exchange->group_rank),
                      .text = ANY_VALUE});
        round_step_want(step, round_step_node_key(step, ROUND_KEY_ALL_DONE, exchange->node_count));
    } else {
        arm_recount(step);
        count(step, 1);
        if (waits_for_last(step)) {
            round_step_want(step, round_step_key(step, ROUND_KEY_LAST_MEMBER));
        }
    }
}

static void let_all_go(struct round_step *step) {
    round_step_set(step, ROUND_KEY_LAST_MEMBER, ANY_VALUE);
}

static void explain_lateness(struct round_exchange *exchange) {
    double seconds = duration_seconds(exchange->settings.exit_barrier_timeout);
    text_clear(&exchange->reason);
    if (exchange->settings.has_succession) {
        text_append_format(&exchange->reason,
            "not all of %d nodes had come to the exit barrier within %g s", exchange->node_count,
            seconds);
    } else {
        text_append_format(&exchange->reason,
            "%" PRId64 " of %d nodes had come to the exit barrier within %g s", exchange->arrived,
            exchange->node_count, seconds);
    }
}

static void end_late(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    explain_lateness(exchange);
    if (exchange->stays_in_barrier && !exchange->settings.has_succession) {
        exchange->phase = ROUND_LEAVING;
        exchange->is_barrier_late = true;
        arm_recount(step);
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_LATE,
                                  .reason = text_string(&exchange->reason)});
    } else {
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
    }
}

/* Every node that sees the barrier complete writes LAST_MEMBER, since the node that came last may
 * have died before it could. */
static void round_barrier_take_count(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (!round_step_is_in_barrier(step)) {
        return;
    }
    exchange->arrived = step->event->count;
    bool is_complete = exchange->arrived >= exchange->node_count;
    if (is_complete) {
        let_all_go(step);
    }
    if (exchange->phase == ROUND_COUNTING) {
        (is_complete ? round_barrier_take_waited : end_late)(step);
    } else if (is_complete && !waits_for_last(step)) {
        round_barrier_take_waited(step);
    }
}

static void round_barrier_time_out(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    struct instant now = step->event->now;
    if (exchange->phase == ROUND_COUNTING || exchange->settings.has_succession) {
        end_late(step);
        return;
    }
    if (exchange->is_barrier_late || instant_is_before(now, exchange->deadline)) {
        arm_recount(step);
    } else {
        exchange->phase = ROUND_COUNTING;
        round_step_arm_timer(step, instant_after(now, duration_from_seconds(COUNTING_SECONDS)));
    }
    count(step, 0);
}

/* A part of the round exchange: whom the workers' store serves, where it is to serve only machines
 * of the round's nodes. Each node of Muster tells the addresses of its machine in its role info.
 * Rank 0 collects them and tells the performer, before it writes the ranks: without these no other
 * node starts workers. Nodes of torchrun tell no addresses, and where ranks are not exchanged
 * nobody does. Then the addresses are not known, and the store has to serve everybody. */

/* Before the effects that come with it, so that the store knows whom it serves before they act. */
static void push(struct round_step *step, const char *addresses, const char *silent) {
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_ADMIT,
                              .admitted = {.addresses = addresses, .silent = silent}});
}

/* The role infos of all nodes are known; a node alone has none. Does nothing where the settings do
 * not ask for it. */
static void round_admission_tell(
    struct round_step *step, const struct role_info *infos, size_t count) {
    struct round_exchange *exchange = step->exchange;
    if (!exchange->settings.is_store_for_round) {
        return;
    }
    text_clear(&exchange->admitted);
    text_clear(&exchange->silent);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].addresses == NULL) {
            round_step_describe_node(step, (int)i, &exchange->silent);
            push(step, NULL, text_string(&exchange->silent));
            return;
        }
        text_append_format(&exchange->admitted, "%s%s", i == 0 ? "" : " ", infos[i].addresses);
    }
    push(step, text_string(&exchange->admitted), NULL);
}

/* No node will tell its addresses. Does nothing where this node is not of rank 0. */
static void round_admission_tell_nothing(struct round_step *step) {
    if (step->exchange->settings.is_store_for_round && round_step_is_first(step)) {
        push(step, NULL, NULL);
    }
}

/* Exchange. */

static void begin(struct round_step *step);
static void abandon(struct round_step *step);
static void take_connected(struct round_step *step);
static void take_opened(struct round_step *step);
static void take_store_failure(struct round_step *step);
static void take_waited(struct round_step *step);
static void take_checked(struct round_step *step);
static void take_count(struct round_step *step);
static void take_role_infos(struct round_step *step);
static void take_values(struct round_step *step);
static void time_out(struct round_step *step);

static const struct {
    void (*handle)(struct round_step *step);
    bool is_answer; /* ignored when it belongs to another round */
} handlers[ROUND_EVENT_KIND_COUNT] = {
    [ROUND_EVENT_BEGIN] = {begin, false},
    [ROUND_EVENT_RELEASED] = {round_told_take_release, true},
    [ROUND_EVENT_ABANDON] = {abandon, false},
    [ROUND_EVENT_BARRIER_ASKED] = {round_barrier_enter, false},
    [ROUND_EVENT_RESTART_ASKED] = {static_round_restart, false},
    [ROUND_EVENT_FAILURE_ASKED] = {static_round_fail, false},
    [ROUND_EVENT_CONNECTED] = {take_connected, false},
    [ROUND_EVENT_CONNECTION_LOST] = {static_round_lose_connection, false},
    [ROUND_EVENT_STORE_OPENED] = {take_opened, true},
    [ROUND_EVENT_STORE_FAILED] = {take_store_failure, true},
    [ROUND_EVENT_WAITED] = {take_waited, true},
    [ROUND_EVENT_CHECKED] = {take_checked, true},
    [ROUND_EVENT_COUNTED] = {take_count, true},
    [ROUND_EVENT_ROLE_INFOS] = {take_role_infos, true},
    [ROUND_EVENT_VALUES] = {take_values, true},
    [ROUND_EVENT_TIMER_FIRED] = {time_out, false},
};

struct node_role round_settings_role(const struct round_settings *settings) {
    bool needs_others = settings->is_uniform || settings->is_store_for_round;
    return needs_others ? (struct node_role){0}
                        : (struct node_role){settings->role, settings->local_world_size};
}

struct round_exchange *round_exchange_new(const struct round_settings *settings) {
    struct round_exchange *exchange = memory_allocate(sizeof *exchange);
    exchange->settings = *settings;
    return exchange;
}

/* Forgets the round. It keeps the members that hold for the whole run. */
static void forget_round(struct round_exchange *exchange) {
    free(exchange->nodes);
    free(exchange->assignments);
    text_clear(&exchange->address.text);
    text_clear(&exchange->address.owner_text);
    text_clear(&exchange->address.own_text);
    text_clear(&exchange->reason);
    text_clear(&exchange->admitted);
    text_clear(&exchange->silent);
    round_claim_clear(&exchange->claim);
    struct round_settings settings = exchange->settings;
    bool has_opened = exchange->address.has_opened;
    bool has_met_foreign = exchange->has_met_foreign;
    struct round_clearing clearing = exchange->clearing;
    *exchange = (struct round_exchange){.settings = settings,
        .clearing = clearing,
        .has_met_foreign = has_met_foreign,
        .address = {.has_opened = has_opened}};
}

void round_exchange_free(struct round_exchange *exchange) {
    if (exchange != NULL) {
        forget_round(exchange);
        free(exchange);
    }
}

void round_exchange_step(struct round_exchange *exchange, const struct round_event *event,
    struct round_effects *effects) {
    effects->count = 0;
    struct round_step step = {.exchange = exchange, .event = event, .effects = effects};
    if (handlers[event->kind].is_answer &&
        (exchange->phase == ROUND_IDLE || event->round != exchange->round)) {
        return;
    }
    handlers[event->kind].handle(&step);
}

/* The beginning. */

static void abandon(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->is_waiting) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_CANCEL_WAIT});
    }
    if (exchange->settings.has_succession && exchange->phase != ROUND_IDLE) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_FORGET});
    }
    round_step_disarm_timer(step);
    forget_round(exchange);
}

/* A node that delegates knows of the others only that they are Muster's. */
static bool take_crowd(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct rendezvous_state *state = step->event->begin.state;
    const struct rendezvous_node *self = rendezvous_state_find(state, step->event->begin.identity);
    exchange->self = *step->event->begin.identity;
    exchange->other = (struct node_identity){.local_id = node_identity_muster_local_id(0)};
    return self != NULL && self->is_participant && self->rank == step->event->begin.group_rank;
}

static bool take_listed(struct round_step *step, size_t count) {
    struct round_exchange *exchange = step->exchange;
    const struct rendezvous_state *state = step->event->begin.state;
    exchange->nodes = memory_allocate(count * sizeof *exchange->nodes);
    bool *is_taken = memory_allocate(count * sizeof *is_taken);
    size_t taken = 0;
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (node->is_participant && node->rank >= 0 && (uint64_t)node->rank < count &&
            !is_taken[node->rank]) {
            is_taken[node->rank] = true;
            exchange->nodes[node->rank] = node->identity;
            taken++;
        }
    }
    free(is_taken);
    return taken == count && node_identity_equals(&exchange->nodes[step->event->begin.group_rank],
                                 step->event->begin.identity);
}

/* Takes the nodes of the round by rank. Returns whether every rank has one node, and this node has
 * the rank that the record gives it. */
static bool take_nodes(struct round_step *step) {
    const struct rendezvous_state *state = step->event->begin.state;
    size_t count = rendezvous_state_participants(state);
    int rank = step->event->begin.group_rank;
    if (count == 0 || count != (size_t)step->event->begin.node_count || rank < 0 ||
        (size_t)rank >= count || state->round < 0) {
        return false;
    }
    return state->crowd.participants > 0 ? take_crowd(step) : take_listed(step, count);
}

static void set_assignments(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    round_step_push(step, (struct round_effect){
                              .kind = ROUND_EFFECT_SET_ASSIGNMENTS,
                              .key = round_step_key(step, ROUND_KEY_ASSIGNED_RANKS),
                              .assignments = {.items = exchange->assignments,
                                  .count = (size_t)exchange->node_count,
                                  .is_coordinated = exchange->is_coordinated},
                          });
}

static void assign(struct round_step *step, const struct node_role *roles) {
    struct round_exchange *exchange = step->exchange;
    size_t count = (size_t)exchange->node_count;
    exchange->assignments = memory_allocate(count * sizeof *exchange->assignments);
    if (rank_assignment_compute(roles, count, exchange->assignments) != FAILURE_NONE) {
        round_step_fail(step, "the workers of %zu nodes are too many", count);
        return;
    }
    exchange->ranks = exchange->assignments[0];
    exchange->has_ranks = true;
    set_assignments(step);
    round_step_join(step);
}

/* Starts what does not need the address: writes this node's role info, and computes the ranks where
 * no other node is needed for them. */
static void start_ranks(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_settings *settings = &exchange->settings;
    if (exchange->has_ranks) {
        round_admission_tell_nothing(step);
        return;
    }
    if (settings->is_uniform) {
        int before = exchange->group_rank * settings->local_world_size;
        int all = exchange->node_count * settings->local_world_size;
        exchange->ranks = (struct rank_assignment){before, all, before, all};
        exchange->has_ranks = true;
        round_admission_tell_nothing(step);
        return;
    }
    struct node_role role = {settings->role, settings->local_world_size};
    round_step_push(
        step, (struct round_effect){
                  .kind = ROUND_EFFECT_SET_ROLE_INFO,
                  .key = round_step_node_key(step, ROUND_KEY_ROLE_INFO, exchange->group_rank),
                  .node = role,
              });
    if (exchange->node_count == 1) {
        round_admission_tell(step, NULL, 0);
        assign(step, &role);
    }
}

/* While the round is held, rank 0 opens its store. */
static void start(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    const char *told = step->event->begin.master_address;
    round_step_arm_timer(step, exchange->deadline);
    if (exchange->is_held && !round_step_is_first(step)) {
        return;
    }
    if (!exchange->is_held) {
        start_ranks(step);
    }
    if (exchange->has_ranks && told != NULL) {
        round_address_be_told(step, told, step->event->begin.master_port);
    } else {
        round_address_start(step);
    }
}

static void begin_with_record(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    abandon(step);
    exchange->round = step->event->round;
    exchange->phase = ROUND_JOINING;
    if (!take_nodes(step)) {
        round_step_fail(step,
            "the record of round %" PRId64 " makes no sense: its ranks are not those of its nodes",
            exchange->round);
        return;
    }
    exchange->group_rank = step->event->begin.group_rank;
    exchange->node_count = step->event->begin.node_count;
    exchange->restarts = step->event->begin.state->restarts;
    exchange->has_foreign = rendezvous_state_has_foreign_participant(step->event->begin.state);
    exchange->has_met_foreign |= exchange->has_foreign;
    exchange->deadline = instant_after(step->event->now, exchange->settings.timeout);
    bool is_sound = round_told_begin(step);
    round_clearing_note_begin(step);
    if (is_sound) {
        start(step);
    }
}

static void begin(struct round_step *step) {
    if (step->event->round == ROUND_OF_FIXED_NODES) {
        static_round_begin(step);
    } else {
        begin_with_record(step);
    }
}

static void meet(struct round_step *step) {
    static_round_meet(step);
    start_ranks(step);
    static_round_start(step);
}

/* Fixed nodes have no record, and begin with their role info. */
static void take_connected(struct round_step *step) {
    if (step->exchange->phase == ROUND_CONNECTING && round_claim_begin(step)) {
        meet(step);
    }
}

/* Answers. */

static void take_opened(struct round_step *step) {
    if (step->exchange->phase == ROUND_JOINING) {
        (round_step_is_fixed(step) ? static_round_take_renewed : round_address_take_opened)(step);
    }
}

static void take_store_failure(struct round_step *step) {
    if (step->exchange->phase == ROUND_JOINING) {
        round_step_fail(
            step, "the store for the workers cannot be opened: %s", step->event->reason);
    }
}

static void take_waited(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    struct round_key key = exchange->waiting;
    if (!exchange->is_waiting) {
        return;
    }
    exchange->is_waiting = false;
    if (exchange->phase == ROUND_ENDED) {
        return;
    }
    if (exchange->has_wanted) {
        exchange->has_wanted = false;
        round_step_want(step, exchange->wanted);
    }
    if (key.kind == ROUND_KEY_LAST_MEMBER || key.kind == ROUND_KEY_ALL_DONE) {
        round_barrier_take_waited(step);
    } else if (key.kind == ROUND_KEY_COMMITTED) {
        exchange->is_committed = true;
        round_step_join(step);
    } else if (exchange->phase != ROUND_JOINING && !round_key_is_decision(key.kind)) {
        return;
    } else if (key.kind == ROUND_KEY_ROLE_INFO) {
        round_address_take_sign(step);
    } else {
        if (key.kind == ROUND_KEY_ASSIGNED_RANKS) {
            round_step_push_key(
                step, ROUND_EFFECT_CHECK, round_step_key(step, ROUND_KEY_COORDINATED));
        }
        round_step_push_key(step, ROUND_EFFECT_GET, key);
        (void)round_step_awaits_commit(step);
    }
}

static void take_checked(struct round_step *step) {
    if (step->exchange->phase == ROUND_DIAGNOSING) {
        round_diagnosis_take_checked(step);
    } else if (step->event->key.kind == ROUND_KEY_CLAIM_SERVED) {
        if (round_claim_take_checked(step)) {
            meet(step);
        }
    } else if (step->event->key.kind == ROUND_KEY_COORDINATED) {
        step->exchange->is_coordinated = step->event->is_present;
    } else if (round_step_is_fixed(step)) {
        static_round_take_checked(step);
    } else if (step->exchange->phase == ROUND_JOINING) {
        round_address_take_checked(step);
    }
}

static void take_count(struct round_step *step) {
    bool is_barrier = step->event->key.kind == ROUND_KEY_NUM_MEMBERS;
    (is_barrier ? round_barrier_take_count : static_round_take_count)(step);
}

/* "node 1 (b_2_0) reported a role that makes no sense" */
static void fail_on_node(struct round_step *step, int node, const char *what) {
    struct text name = {0};
    round_step_describe_node(step, node, &name);
    round_step_fail(step, "%s %s", text_string(&name), what);
    text_clear(&name);
}

/* What this node was told to be there has been cleared away since: it was stopped meanwhile, and
 * the others have left the round behind. It will be told so. */
static bool is_left_behind(const struct round_step *step) {
    return step->event->is_gone && step->event->key.round == step->exchange->round;
}

static void take_role_infos(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    size_t count = step->event->role_infos.count;
    if (exchange->phase != ROUND_JOINING || is_left_behind(step) || exchange->assignments != NULL ||
        !round_step_is_first(step) || count != (size_t)exchange->node_count) {
        return;
    }
    struct node_role *roles = memory_allocate(count * sizeof *roles);
    exchange->is_coordinated = round_step_is_fixed(step);
    for (size_t i = 0; i < count; i++) {
        const struct role_info *info = &step->event->role_infos.infos[i];
        if (info->role == NULL || info->group_rank != (int)i) {
            fail_on_node(step, (int)i, "reported a role info that makes no sense");
            free(roles);
            return;
        }
        roles[i] = (struct node_role){info->role, info->local_world_size};
        if (info->muster_version != ROUND_EXCHANGE_MUSTER_VERSION) {
            exchange->is_coordinated = false;
        }
    }
    round_admission_tell(step, step->event->role_infos.infos, count);
    assign(step, roles);
    free(roles);
}

static bool take_address(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_values *values = &step->event->values;
    if (values->address == NULL || values->port == 0) {
        round_step_fail(
            step, "the address of the workers' store that was published makes no sense");
        return false;
    }
    text_clear(&exchange->address.text);
    text_append(&exchange->address.text, values->address);
    exchange->address.port = values->port;
    exchange->address.stage = ROUND_ADDRESS_KNOWN;
    return true;
}

/* GET of WORLD, or of a part of it, in this round: that on which the nodes have agreed. */
static void take_agreed(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_values *values = &step->event->values;
    enum round_key_kind kind = step->event->key.kind;
    if (kind != ROUND_KEY_ASSIGNED_RANKS && !take_address(step)) {
        return;
    }
    if (kind != ROUND_KEY_ADDRESS) {
        if (!values->has_ranks || values->ranks.world_size - values->ranks.base_rank <
                                      exchange->settings.local_world_size) {
            fail_on_node(step, 0, "assigned ranks that make no sense");
            return;
        }
        exchange->ranks = values->ranks;
        exchange->has_ranks = true;
    }
    round_step_join(step);
}

static void take_claim(struct round_step *step) {
    if (step->event->key.kind == ROUND_KEY_RIVAL) {
        round_claim_take_rival(step);
    } else if (round_claim_take_values(step)) {
        meet(step);
    }
}

static void take_values(struct round_step *step) {
    const struct round_key *key = &step->event->key;
    if (round_key_is_decision(key->kind)) {
        static_round_take_decision(step);
        return;
    }
    if (key->kind == ROUND_KEY_CLAIM || key->kind == ROUND_KEY_RIVAL) {
        take_claim(step);
        return;
    }
    if (step->exchange->phase != ROUND_JOINING || is_left_behind(step)) {
        return;
    }
    if (key->round != step->exchange->round) {
        round_address_take_found(step);
    } else if (key->kind == ROUND_KEY_PUBLISHER) {
        round_address_take_publisher(step);
    } else {
        take_agreed(step);
    }
}

static void time_out(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    struct instant now = step->event->now;
    if (!exchange->is_timer_armed || instant_is_before(now, exchange->timer)) {
        return;
    }
    exchange->is_timer_armed = false;
    switch (exchange->phase) {
    case ROUND_CONNECTING:
        static_round_join_late(step);
        break;
    case ROUND_CLAIMING:
        round_claim_wait_on(step);
        break;
    case ROUND_JOINING:
        if (round_step_is_fixed(step)) {
            static_round_wait_on(step);
        } else if (instant_is_before(now, exchange->deadline)) {
            round_step_arm_timer(step, exchange->deadline);
            round_address_take_silence(step);
        } else {
            round_diagnosis_start(step);
        }
        break;
    case ROUND_DIAGNOSING:
        round_diagnosis_time_out(step);
        break;
    case ROUND_LEAVING:
    case ROUND_COUNTING:
        (exchange->is_coordinated ? static_round_leave_late : round_barrier_time_out)(step);
        break;
    case ROUND_IDLE:
    case ROUND_JOINED:
    case ROUND_ENDED:
        break;
    }
}

/* Transcript. */

static const char *const event_names[ROUND_EVENT_KIND_COUNT] = {
    [ROUND_EVENT_BEGIN] = "begin",
    [ROUND_EVENT_RELEASED] = "released",
    [ROUND_EVENT_ABANDON] = "abandon",
    [ROUND_EVENT_BARRIER_ASKED] = "barrier_asked",
    [ROUND_EVENT_RESTART_ASKED] = "restart_asked",
    [ROUND_EVENT_FAILURE_ASKED] = "failure_asked",
    [ROUND_EVENT_CONNECTED] = "connected",
    [ROUND_EVENT_CONNECTION_LOST] = "connection_lost",
    [ROUND_EVENT_STORE_OPENED] = "store_opened",
    [ROUND_EVENT_STORE_FAILED] = "store_failed",
    [ROUND_EVENT_WAITED] = "waited",
    [ROUND_EVENT_CHECKED] = "checked",
    [ROUND_EVENT_COUNTED] = "counted",
    [ROUND_EVENT_ROLE_INFOS] = "role_infos",
    [ROUND_EVENT_VALUES] = "values",
    [ROUND_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[ROUND_EFFECT_KIND_COUNT] = {
    [ROUND_EFFECT_CONNECT] = "connect",
    [ROUND_EFFECT_OPEN_WORKER_STORE] = "open_worker_store",
    [ROUND_EFFECT_ADMIT] = "admit",
    [ROUND_EFFECT_SET_ROLE_INFO] = "set_role_info",
    [ROUND_EFFECT_SET_ASSIGNMENTS] = "set_assignments",
    [ROUND_EFFECT_PUBLISH] = "publish",
    [ROUND_EFFECT_SET] = "set",
    [ROUND_EFFECT_DECIDE] = "decide",
    [ROUND_EFFECT_ADD] = "add",
    [ROUND_EFFECT_CHECK] = "check",
    [ROUND_EFFECT_GET] = "get",
    [ROUND_EFFECT_WAIT] = "wait",
    [ROUND_EFFECT_CANCEL_WAIT] = "cancel_wait",
    [ROUND_EFFECT_FORGET] = "forget",
    [ROUND_EFFECT_CLEAR] = "clear",
    [ROUND_EFFECT_ARM_TIMER] = "arm_timer",
    [ROUND_EFFECT_DISARM_TIMER] = "disarm_timer",
    [ROUND_EFFECT_OPENED] = "opened",
    [ROUND_EFFECT_JOINED] = "joined",
    [ROUND_EFFECT_JOIN_FAILED] = "join_failed",
    [ROUND_EFFECT_BARRIER_PASSED] = "barrier_passed",
    [ROUND_EFFECT_BARRIER_FAILED] = "barrier_failed",
    [ROUND_EFFECT_BARRIER_LATE] = "barrier_late",
    [ROUND_EFFECT_RANK_DISPUTED] = "rank_disputed",
    [ROUND_EFFECT_PEER_RESTART] = "peer_restart",
    [ROUND_EFFECT_PEER_FAILED] = "peer_failed",
};

static void describe_key(const struct round_key *key, struct text *out) {
    text_append(out, " ");
    round_key_describe(key, out);
}

static void describe_ranks(const struct rank_assignment *ranks, struct text *out) {
    text_append_format(out, " [%d, %d, %d, %d]", ranks->base_rank, ranks->world_size,
        ranks->role_base_rank, ranks->role_world_size);
}

static void describe_round(int64_t round, struct text *out) {
    if (round != ROUND_OF_FIXED_NODES) {
        text_append_format(out, " %" PRId64, round);
    }
}

static void describe_values(const struct round_values *values, struct text *out) {
    if (values->address != NULL || values->port != 0) {
        text_append_format(
            out, " %s:%d", values->address != NULL ? values->address : "", values->port);
    }
    if (values->publisher != NULL) {
        text_append_format(out, " of %s", values->publisher);
    }
    if (values->has_ranks) {
        describe_ranks(&values->ranks, out);
    }
    if (values->claim != NULL) {
        text_append_format(out, " %s", values->claim);
    }
    if (values->decision != NULL) {
        text_append_format(out, " %s", values->decision);
    }
}

static void describe_answer(const struct round_event *event, struct text *out) {
    describe_key(&event->key, out);
    if (event->kind == ROUND_EVENT_CHECKED) {
        text_append(out, event->is_present ? " present" : " absent");
    } else if (event->kind == ROUND_EVENT_COUNTED) {
        text_append_format(out, " %" PRId64, event->count);
    } else if (event->kind == ROUND_EVENT_VALUES) {
        describe_values(&event->values, out);
    }
}

void round_event_describe(const struct round_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case ROUND_EVENT_BEGIN:
        describe_round(event->round, out);
        text_append_format(out, " rank=%d of %d", event->begin.group_rank, event->begin.node_count);
        text_append(out, event->begin.ranks.world_size > 0 ? " ranked" : "");
        text_append(out, event->begin.is_held ? " held" : "");
        if (event->round == ROUND_OF_FIXED_NODES) {
            text_append_format(out, " attempt=%d", event->begin.attempt);
        }
        break;
    case ROUND_EVENT_RELEASED:
        describe_round(event->round, out);
        describe_ranks(&event->released.ranks, out);
        if (event->released.master_address != NULL) {
            text_append_format(
                out, " %s:%d", event->released.master_address, event->released.master_port);
        }
        break;
    case ROUND_EVENT_STORE_OPENED:
        text_append_format(out, " %s:%d", event->opened.address, event->opened.port);
        break;
    case ROUND_EVENT_STORE_FAILED:
        text_append_format(out, " %s", event->reason);
        break;
    case ROUND_EVENT_WAITED:
    case ROUND_EVENT_CHECKED:
    case ROUND_EVENT_COUNTED:
    case ROUND_EVENT_ROLE_INFOS:
    case ROUND_EVENT_VALUES:
        describe_answer(event, out);
        break;
    case ROUND_EVENT_ABANDON:
    case ROUND_EVENT_BARRIER_ASKED:
    case ROUND_EVENT_RESTART_ASKED:
    case ROUND_EVENT_FAILURE_ASKED:
    case ROUND_EVENT_CONNECTED:
    case ROUND_EVENT_CONNECTION_LOST:
    case ROUND_EVENT_TIMER_FIRED:
    case ROUND_EVENT_KIND_COUNT:
        break;
    }
}

static void describe_deadline(struct instant deadline, struct text *out) {
    int64_t milliseconds = deadline.nanoseconds / 1000000;
    text_append_format(out, " at=%" PRId64 ".%03" PRId64, milliseconds / 1000, milliseconds % 1000);
}

static void describe_admitted(const char *addresses, struct text *out) {
    const char *all = addresses != NULL ? addresses : "everybody";
    text_append_format(out, " %s", *all != '\0' ? all : "nobody else");
}

static void describe_joined(const struct round_effect *effect, struct text *out) {
    describe_round(effect->round, out);
    text_append_format(out, " rank=%d of %d", effect->joined.group_rank, effect->joined.node_count);
    describe_ranks(&effect->joined.ranks, out);
    text_append_format(out, " %s:%d restarts=%" PRId64, effect->joined.master_address,
        effect->joined.master_port, effect->joined.restarts);
}

static void describe_request(const struct round_effect *effect, struct text *out) {
    describe_key(&effect->key, out);
    if (effect->kind == ROUND_EFFECT_SET || effect->kind == ROUND_EFFECT_DECIDE) {
        text_append_format(out, " %s", effect->text);
    } else if (effect->kind == ROUND_EFFECT_ADD) {
        text_append_format(out, " %" PRId64, effect->amount);
    } else if (effect->kind == ROUND_EFFECT_SET_ASSIGNMENTS) {
        text_append_format(out, " of %zu%s", effect->assignments.count,
            effect->assignments.is_coordinated ? " coordinated" : "");
    } else if (effect->kind == ROUND_EFFECT_PUBLISH) {
        text_append_format(out, " %s:%s of %s", effect->publication.address,
            effect->publication.port, effect->publication.publisher);
    }
}

void round_effect_describe(const struct round_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        text_append(out, effect->is_fresh ? " fresh" : " wiped");
        break;
    case ROUND_EFFECT_SET_ROLE_INFO:
    case ROUND_EFFECT_SET_ASSIGNMENTS:
    case ROUND_EFFECT_PUBLISH:
    case ROUND_EFFECT_SET:
    case ROUND_EFFECT_DECIDE:
    case ROUND_EFFECT_ADD:
    case ROUND_EFFECT_CHECK:
    case ROUND_EFFECT_GET:
    case ROUND_EFFECT_WAIT:
        describe_request(effect, out);
        break;
    case ROUND_EFFECT_ADMIT:
        describe_admitted(effect->admitted.addresses, out);
        break;
    case ROUND_EFFECT_ARM_TIMER:
        describe_deadline(effect->deadline, out);
        break;
    case ROUND_EFFECT_OPENED:
        text_append_format(out, " %s:%d", effect->opened.address, effect->opened.port);
        break;
    case ROUND_EFFECT_JOINED:
        describe_joined(effect, out);
        break;
    case ROUND_EFFECT_JOIN_FAILED:
    case ROUND_EFFECT_BARRIER_FAILED:
    case ROUND_EFFECT_BARRIER_LATE:
    case ROUND_EFFECT_RANK_DISPUTED:
    case ROUND_EFFECT_PEER_FAILED:
        text_append_format(out, " %s", effect->reason);
        break;
    case ROUND_EFFECT_PEER_RESTART:
        text_append_format(out, " attempt=%" PRId64, effect->attempt);
        break;
    case ROUND_EFFECT_CLEAR:
        text_append_format(out, " %" PRId64 " to %" PRId64 " of %d", effect->clear.first,
            effect->clear.last, effect->clear.node_count);
        break;
    case ROUND_EFFECT_CONNECT:
    case ROUND_EFFECT_CANCEL_WAIT:
    case ROUND_EFFECT_FORGET:
    case ROUND_EFFECT_DISARM_TIMER:
    case ROUND_EFFECT_BARRIER_PASSED:
    case ROUND_EFFECT_KIND_COUNT:
        break;
    }
}
