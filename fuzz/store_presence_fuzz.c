/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses the input as a sequence of operations that a few connections do with presence keys, and
 * compares the results with a simple model: for each key, its holder and its value. Nobody but its
 * holder may write a key, whatever the operation. When a connection ends, it must be reported with
 * all keys that it held, and no other connection may be reported. */
#include "fuzz_input.h"

#include <string.h>

#include "core/store/store_presence.h"

#define PREFIX "/p/"
#define CLIENTS 4
#define KEYS 6
#define NOBODY (-1)

/* The last keys are not presence keys, or are refused. */
static const char *const key_names[] = {PREFIX "a", PREFIX "b", PREFIX "ab", PREFIX "/", PREFIX "c",
    PREFIX "served ", PREFIX "served", PREFIX, "/p", "/q/a", ""};
#define NAMES (sizeof key_names / sizeof key_names[0])

struct world {
    struct store_presence *presence;
    struct store_presence_holder clients[CLIENTS];
    int holder[KEYS];
    uint8_t value[KEYS];
    struct slice keys[2]; /* of a request for several */
    struct slice values[2];
};

static void check_one_gone(struct world *world, struct store_presence_key *key, int client) {
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(key->raw_key, key_names[i]) == 0) {
            FUZZ_REQUIRE(world->holder[i] == client);
            FUZZ_REQUIRE((uint8_t)key->value[0] == world->value[i]);
            FUZZ_REQUIRE(strcmp(key->name, key_names[i] + strlen(PREFIX)) == 0);
            world->holder[i] = NOBODY;
            return;
        }
    }
    FUZZ_REQUIRE(false);
}

static void end_client(struct world *world, int client) {
    store_presence_leave(world->presence, &world->clients[client]);
    struct store_presence_key *key;
    while ((key = store_presence_take_gone(world->presence)) != NULL) {
        check_one_gone(world, key, client);
        store_presence_key_free(key);
    }
    for (int i = 0; i < KEYS; i++) {
        FUZZ_REQUIRE(world->holder[i] != client);
    }
}

static bool is_writing(enum store_operation operation) {
    return operation == STORE_SET || operation == STORE_COMPARE_SET || operation == STORE_ADD ||
           operation == STORE_DELETE || operation == STORE_APPEND || operation == STORE_MULTI_SET ||
           operation == STORE_BARRIER;
}

/* Whether the key with that name is another's, or the server's. */
static bool is_anothers(const struct world *world, int client, int name) {
    return name < KEYS ? world->holder[name] != NOBODY && world->holder[name] != client
                       : strcmp(key_names[name], PREFIX "served") == 0;
}

static void apply(struct world *world, int client, const struct store_request *request, int name) {
    if (store_presence_objection(world->presence, request) != NULL) {
        FUZZ_REQUIRE(name >= KEYS || request->value.length > STORE_PRESENCE_VALUE_BYTES ||
                     request->value.data[0] == 0);
        end_client(world, client);
        return;
    }
    bool is_refused =
        store_presence_refusal(world->presence, &world->clients[client], request) != NULL;
    FUZZ_REQUIRE(
        is_refused == (is_writing(request->operation) && is_anothers(world, client, name)));
    if (is_refused) {
        return;
    }
    const struct store_presence_key *key =
        store_presence_note(world->presence, &world->clients[client], request);
    FUZZ_REQUIRE((key != NULL) == (name < KEYS && request->operation == STORE_SET));
    if (key != NULL) {
        world->holder[name] = client;
        world->value[name] = request->value.data[0];
    } else if (name < KEYS && request->operation == STORE_DELETE && world->holder[name] == client) {
        world->holder[name] = NOBODY;
    }
}

static void check_holders(const struct world *world) {
    for (int i = 0; i < KEYS; i++) {
        const struct store_presence_holder *holder =
            store_presence_find(world->presence, key_names[i] + strlen(PREFIX));
        FUZZ_REQUIRE(
            holder == (world->holder[i] == NOBODY ? NULL : &world->clients[world->holder[i]]));
    }
}

static void step(struct world *world, struct slice *input) {
    uint8_t value[STORE_PRESENCE_VALUE_BYTES + 1];
    uint8_t kind = fuzz_take_byte(input);
    int client = kind % CLIENTS;
    int name = (int)(fuzz_take_byte(input) % NAMES);
    memset(value, fuzz_take_byte(input), sizeof value);
    struct store_request request = {
        .operation = (enum store_operation)(kind / CLIENTS % STORE_OPERATION_COUNT),
        .key = slice_from_string(key_names[name]),
        .value = {value, value[0] >= 250 ? sizeof value : 1},
    };
    if (request.operation == STORE_MULTI_SET || request.operation == STORE_MULTI_GET) {
        const struct slice keys[] = {slice_from_string("/k"), request.key};
        const struct slice values[] = {request.value, request.value};
        memcpy(world->keys, keys, sizeof keys);
        memcpy(world->values, values, sizeof values);
        request.key = request.value = (struct slice){0};
        request.keys = world->keys;
        request.values = world->values;
        request.count = 2;
    }
    if (kind / CLIENTS == STORE_OPERATION_COUNT) {
        end_client(world, client);
    } else {
        apply(world, client, &request, name);
    }
    check_holders(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct world world = {.presence = store_presence_new(PREFIX)};
    for (int i = 0; i < KEYS; i++) {
        world.holder[i] = NOBODY;
    }
    while (input.length > 0) {
        step(&world, &input);
    }
    store_presence_free(world.presence);
    return 0;
}
