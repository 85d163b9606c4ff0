/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses arbitrary bytes as values that other programs left in the store beside a job's record. The
 * first byte chooses the question that they answer; the questions before it get correct answers.
 * The node must go on, or must report in one clean line why it does not. It gets at most one event
 * per call, and its requests must be valid. */
#include <string.h>

#include "fuzz_input.h"
#include "wire/rendezvous/rendezvous_record_store.h"
#include "wire/store/store_codec.h"

struct node {
    struct rendezvous_record_store *store;
    uint64_t tags[16]; /* of the latest requests, in their order */
    size_t sent;
    bool is_broken;
};

static void check_reason(const char *reason) {
    FUZZ_REQUIRE(*reason != '\0');
    for (; *reason != '\0'; reason++) {
        FUZZ_REQUIRE((uint8_t)*reason >= ' ' && *reason != 0x7f);
    }
}

static void check_request(const struct store_request *request) {
    struct bytes encoded = {0};
    FUZZ_REQUIRE(store_request_encode(request, &encoded) == FAILURE_NONE && encoded.length > 0);
    bytes_clear(&encoded);
}

static void take_effects(struct node *node, struct record_effects *effects) {
    node->sent = 0;
    for (size_t i = 0; i < effects->count; i++) {
        const struct record_effect *effect = &effects->items[i];
        FUZZ_REQUIRE(!node->is_broken);
        if (effect->kind == RECORD_EFFECT_SEND) {
            check_request(&effect->send.own.request);
            FUZZ_REQUIRE(node->sent < sizeof node->tags / sizeof *node->tags);
            node->tags[node->sent++] = effect->send.tag;
        } else if (effect->kind == RECORD_EFFECT_TELL) {
            FUZZ_REQUIRE(i + 1 == effects->count);
            node->is_broken = effect->told.kind == RENDEZVOUS_EVENT_BROKEN;
            if (node->is_broken) {
                check_reason(effect->told.reason);
            }
        }
    }
    FUZZ_REQUIRE(!node->is_broken || !rendezvous_record_store_is_up(node->store));
    record_effects_clear(effects);
}

static void ask(struct node *node, struct rendezvous_effect asked) {
    struct record_effects effects = {0};
    rendezvous_record_store_ask(node->store, &asked, &effects);
    take_effects(node, &effects);
}

static void ask_kind(struct node *node, enum rendezvous_effect_kind kind) {
    ask(node, (struct rendezvous_effect){.kind = kind});
}

/* Answers one of the latest requests. */
static void reply(struct node *node, size_t which, struct store_reply given) {
    struct record_effects effects = {0};
    if (which < node->sent) {
        rendezvous_record_store_take_reply(node->store, node->tags[which], &given, &effects);
        take_effects(node, &effects);
    }
}

static struct store_reply blob(struct slice text) {
    return (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = text};
}

static struct store_reply integer(struct slice input) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | fuzz_take_byte(&input);
    }
    return (struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = (int64_t)number};
}

static void write_record(struct node *node) {
    struct rendezvous_state state = {.round = 1};
    ask(node,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&state, false}});
}

static void connect(struct node *node, struct slice protocol, struct slice settings) {
    struct record_effects effects = {0};
    ask_kind(node, RENDEZVOUS_EFFECT_CONNECT);
    rendezvous_record_store_take_opened(node->store, &effects);
    take_effects(node, &effects);
    uint64_t asked = node->tags[1];
    reply(node, 0, (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = STORE_READY});
    node->tags[0] = asked;
    node->sent = 1;
    reply(node, 0, blob(protocol));
    if (node->sent == 2) { /* another version: the server is told, and asked whether it has heard */
        uint64_t heard = node->tags[1];
        reply(node, 0, (struct store_reply){.kind = STORE_REPLY_NONE});
        node->tags[0] = heard;
        node->sent = 1;
        reply(node, 0, (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = STORE_READY});
        FUZZ_REQUIRE(node->is_broken);
        return;
    }
    reply(node, 0, blob(settings));
}

static void answer_by_choice(struct node *node, uint8_t choice, struct slice input) {
    connect(node, choice == 7 ? input : slice_from_string("1 muster"),
        choice == 0 ? input : slice_from_string("1:4"));
    switch (choice) {
    case 1:
        ask_kind(node, RENDEZVOUS_EFFECT_FETCH);
        reply(node, 1, blob(input));
        break;
    case 2:
        write_record(node);
        reply(node, 0, blob(input));
        break;
    case 3: /* the count of changes, twice, because at the second read the node already waits */
        ask_kind(node, RENDEZVOUS_EFFECT_BEAT);
        reply(node, 0, integer((struct slice){0}));
        ask_kind(node, RENDEZVOUS_EFFECT_BEAT);
        reply(node, 0, integer(input));
        break;
    case 4:
        ask_kind(node, RENDEZVOUS_EFFECT_TELL_WATCHERS);
        reply(node, 0, integer(input));
        break;
    case 5: /* a wait that ends with a reply of any byte */
        ask(node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {1, 2}});
        reply(node, 0,
            (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = fuzz_take_byte(&input)});
        break;
    case 6: /* a reply of any kind */
        ask_kind(node, RENDEZVOUS_EFFECT_FETCH);
        reply(node, 1, (struct store_reply){.kind = (enum store_reply_kind)(input.length % 8)});
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct rendezvous_record_store_settings settings = {
        .run_id = "job", .minimum_nodes = 1, .maximum_nodes = 4};
    struct node node = {.store = rendezvous_record_store_new(&settings)};
    uint8_t choice = fuzz_take_byte(&input);
    answer_by_choice(&node, choice % 8, input);
    if (!node.is_broken) {
        write_record(&node); /* a write on top of the record that was read */
    }
    rendezvous_record_store_free(node.store);
    return 0;
}
