/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_address.h"

#include <stdio.h>

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

bool round_told_begin(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct rank_assignment *ranks = &step->event->begin.ranks;
    exchange->is_held = step->event->begin.is_held;
    exchange->is_ranked = exchange->is_held || ranks->world_size > 0;
    return exchange->is_held || !exchange->is_ranked || take_ranks(step, ranks);
}

void round_told_take_release(struct round_step *step) {
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

/* Rank 0 has opened the store of the workers: the host tells the others. */
static void round_told_note_opened(struct round_step *step) {
    const struct round_address *agreed = &step->exchange->address;
    if (step->exchange->is_ranked) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_OPENED,
                                  .opened = {text_string(&agreed->text), agreed->port}});
    }
}

/* Address. */

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

void round_address_take_sign(struct round_step *step) {
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

void round_address_take_silence(struct round_step *step) {
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

void round_address_take_checked(struct round_step *step) {
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

void round_address_take_found(struct round_step *step) {
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
void round_address_take_publisher(struct round_step *step) {
    const char *publisher = step->event->values.publisher;
    if (publisher != NULL && is_named(step, step->exchange->group_rank, publisher)) {
        open_own(step);
    } else {
        expect(step);
    }
}

void round_address_take_opened(struct round_step *step) {
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

void round_address_be_told(struct round_step *step, const char *told, int port) {
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

void round_address_start(struct round_step *step) {
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
