/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses the input as a sequence of requests from a few clients to the store table, and compares the
 * results with a simple model: for each key a value, a number of queued items and a queue of
 * clients; for each client the set of keys it still waits for, or the queue. The keys below /kept/
 * are the owner's. After each step the table must have answered exactly the clients that the model
 * releases, in that order. At the end no memory may be left. */
#include "fuzz_input.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "core/store/store_table.h"

#define KEYS 5
#define CLIENTS 4
#define VALUE_SIZE 600
#define MEMORY_LIMIT 3000
#define OWN_PREFIX "/kept/"

static const char *const key_names[KEYS] = {"/a", "/b", "/kept/c", "/kept/d", ""};
static const char *const value_texts[] = {
    "", "7", " -12x", "text", "9223372036854775807", "99999999999999999999"};
#define VALUES (sizeof value_texts / sizeof value_texts[0])

struct model_key {
    bool has_value;
    char value[VALUE_SIZE + 1];
    size_t items;
    size_t line[CLIENTS]; /* clients that wait for the key, in order */
    size_t line_length;
};

struct model {
    struct model_key keys[KEYS];
    unsigned missing[CLIENTS]; /* one bit per key */
    bool takes[CLIENTS];       /* waits for an item of its one key */
    struct {
        size_t client;
        struct store_reply reply;
    } replies[2 * CLIENTS];
    size_t reply_count;
    bool is_closed; /* the client sent an invalid request */
    char text[32];
};

struct world {
    struct store_table *table;
    struct store_effects effects;
    struct store_connection clients[CLIENTS];
    struct model model;
};

static void expect(struct model *model, size_t client, struct store_reply reply) {
    model->replies[model->reply_count].client = client;
    model->replies[model->reply_count++].reply = reply;
}

static void expect_byte(struct model *model, size_t client, uint8_t byte) {
    expect(model, client, (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = byte});
}

static void expect_integer(struct model *model, size_t client, int64_t integer) {
    expect(model, client, (struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = integer});
}

static void leave_line(struct model_key *key, size_t position) {
    key->line_length--;
    for (size_t i = position; i < key->line_length; i++) {
        key->line[i] = key->line[i + 1];
    }
}

static void model_drop(struct model *model, size_t client) {
    model->missing[client] = 0;
    model->takes[client] = false;
    for (size_t i = 0; i < KEYS; i++) {
        for (size_t j = model->keys[i].line_length; j > 0; j--) {
            if (model->keys[i].line[j - 1] == client) {
                leave_line(&model->keys[i], j - 1);
            }
        }
    }
}

static void model_line_up(struct model *model, size_t client, size_t key) {
    if ((model->missing[client] & 1U << key) == 0) {
        model->missing[client] |= 1U << key;
        model->keys[key].line[model->keys[key].line_length++] = client;
    }
}

static void model_pop(struct model *model, size_t client, struct model_key *key) {
    struct store_reply reply = {.kind = STORE_REPLY_POP};
    reply.pop.length = (int64_t)key->items;
    expect(model, client, reply);
    key->items -= key->items > 0 ? 1 : 0;
}

/* Serves the first client in the queue. Returns true when it waits for nothing else and is
 * released. */
static bool model_serve_first(struct model *model, size_t key) {
    size_t client = model->keys[key].line[0];
    leave_line(&model->keys[key], 0);
    model->missing[client] &= ~(1U << key);
    if (model->missing[client] == 0 && model->takes[client]) {
        model->takes[client] = false;
        model_pop(model, client, &model->keys[key]);
    } else if (model->missing[client] == 0) {
        expect_byte(model, client, STORE_STOP_WAITING);
    }
    return model->missing[client] == 0;
}

static void model_wake_one(struct model *model, size_t key) {
    bool is_released = false;
    while (model->keys[key].line_length > 0 && !is_released) {
        is_released = model_serve_first(model, key);
    }
}

static void model_wake_all(struct model *model, size_t key) {
    while (model->keys[key].line_length > 0) {
        (void)model_serve_first(model, key);
    }
}

static void model_set(struct model *model, size_t key, const char *value) {
    model->keys[key].has_value = true;
    (void)snprintf(model->keys[key].value, sizeof model->keys[key].value, "%s", value);
}

static bool model_count(struct model *model, size_t key, int64_t delta, int64_t *value) {
    *value = 0;
    if (model->keys[key].has_value) {
        char *end = NULL;
        errno = 0;
        *value = strtoll(model->keys[key].value, &end, 10);
        if (end == model->keys[key].value || errno == ERANGE) {
            model->is_closed = true;
            return false;
        }
    }
    *value = (int64_t)((uint64_t)*value + (uint64_t)delta);
    (void)snprintf(model->text, sizeof model->text, "%lld", (long long)*value);
    model_set(model, key, model->text);
    return true;
}

/* One request, as small numbers. */
struct command {
    enum store_operation operation;
    size_t client;
    size_t keys[4];
    size_t count;
    const char *value;
    const char *expected;
    int64_t number;
};

static bool is_present(const struct model *model, size_t key) {
    return model->keys[key].has_value || model->keys[key].items > 0;
}

static size_t count_absent(const struct model *model, const struct command *command) {
    size_t absent = 0;
    for (size_t i = 0; i < command->count; i++) {
        absent += is_present(model, command->keys[i]) ? 0 : 1;
    }
    return absent;
}

static void model_wait(struct model *model, const struct command *command) {
    model_drop(model, command->client);
    if (count_absent(model, command) == 0) {
        expect_byte(model, command->client, STORE_STOP_WAITING);
    }
    for (size_t i = 0; i < command->count; i++) {
        if (!is_present(model, command->keys[i])) {
            model_line_up(model, command->client, command->keys[i]);
        }
    }
}

static void model_barrier(struct model *model, const struct command *command) {
    int64_t arrived = 0;
    if (!model_count(model, command->keys[0], 1, &arrived)) {
        return;
    }
    model_drop(model, command->client);
    if (arrived >= command->number) {
        expect_byte(model, command->client, STORE_STOP_WAITING);
        model_wake_all(model, command->keys[0]);
    } else {
        model_line_up(model, command->client, command->keys[0]);
    }
}

static void model_compare_set(struct model *model, const struct command *command) {
    struct model_key *key = &model->keys[command->keys[0]];
    const char *current = key->has_value ? key->value : "";
    bool is_stored = text_equals(current, command->expected);
    if (is_stored) {
        model_set(model, command->keys[0], command->value);
    }
    const char *answer = key->has_value ? key->value : command->expected;
    expect(model, command->client,
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = slice_from_string(answer)});
    if (is_stored) {
        model_wake_all(model, command->keys[0]);
    }
}

static void model_write(struct model *model, const struct command *command) {
    for (size_t i = 0; i < command->count; i++) {
        model_set(model, command->keys[i], command->value);
        model_wake_all(model, command->keys[i]);
    }
}

static void model_append(struct model *model, const struct command *command) {
    struct model_key *key = &model->keys[command->keys[0]];
    size_t length = strlen(key->value);
    key->has_value = true;
    (void)snprintf(key->value + length, sizeof key->value - length, "%s", command->value);
    model_wake_all(model, command->keys[0]);
}

static void model_delete(struct model *model, const struct command *command) {
    struct model_key *key = &model->keys[command->keys[0]];
    expect_integer(model, command->client, key->has_value ? 1 : 0);
    key->has_value = false;
    key->value[0] = '\0';
}

static int64_t model_value_count(const struct model *model) {
    int64_t count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        count += model->keys[i].has_value ? 1 : 0;
    }
    return count;
}

static void model_queue(struct model *model, const struct command *command) {
    struct model_key *key = &model->keys[command->keys[0]];
    if (command->operation == STORE_QUEUE_PUSH) {
        key->items++;
        model_wake_one(model, command->keys[0]);
        return;
    }
    if (command->operation == STORE_QUEUE_LENGTH) {
        expect_integer(model, command->client, (int64_t)key->items);
        return;
    }
    if (key->items == 0 && text_starts_with(key_names[command->keys[0]], OWN_PREFIX)) {
        model_drop(model, command->client);
        model_line_up(model, command->client, command->keys[0]);
        model->takes[command->client] = true;
        return;
    }
    model_pop(model, command->client, key);
}

static void model_add(struct model *model, const struct command *command) {
    int64_t value = 0;
    if (model_count(model, command->keys[0], command->number, &value)) {
        expect_integer(model, command->client, value);
        model_wake_all(model, command->keys[0]);
    }
}

/* Whoever waits for an item is told before its next request that there is none. */
static void model_give_way(struct model *model, size_t client) {
    if (model->takes[client]) {
        model_drop(model, client);
        expect(model, client, (struct store_reply){.kind = STORE_REPLY_POP});
    }
}

static void model_apply(struct model *model, const struct command *command) {
    const struct model_key *key = &model->keys[command->keys[0]];
    model_give_way(model, command->client);
    switch (command->operation) {
    case STORE_VALIDATE:
        break;
    case STORE_SET:
    case STORE_MULTI_SET:
        model_write(model, command);
        break;
    case STORE_COMPARE_SET:
        model_compare_set(model, command);
        break;
    case STORE_GET:
        expect(model, command->client,
            (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = slice_from_string(key->value)});
        break;
    case STORE_ADD:
        model_add(model, command);
        break;
    case STORE_CHECK:
        expect_byte(model, command->client, count_absent(model, command) == 0 ? 0 : 1);
        break;
    case STORE_WAIT:
        model_wait(model, command);
        break;
    case STORE_COUNT_KEYS:
        expect_integer(model, command->client, model_value_count(model));
        break;
    case STORE_DELETE:
        model_delete(model, command);
        break;
    case STORE_APPEND:
        model_append(model, command);
        break;
    case STORE_MULTI_GET:
    case STORE_LIST_KEYS:
    case STORE_PING:
        expect(model, command->client,
            (struct store_reply){.kind = store_operation_reply_kind(command->operation)});
        break;
    case STORE_CANCEL_WAIT:
        model_drop(model, command->client);
        expect_byte(model, command->client, STORE_WAIT_CANCELLED);
        break;
    case STORE_QUEUE_PUSH:
    case STORE_QUEUE_POP:
    case STORE_QUEUE_LENGTH:
        model_queue(model, command);
        break;
    case STORE_BARRIER:
        model_barrier(model, command);
        break;
    }
}

static bool is_list(enum store_operation operation) {
    return operation == STORE_CHECK || operation == STORE_WAIT || operation == STORE_MULTI_GET ||
           operation == STORE_MULTI_SET;
}

static void read_command(struct slice *input, struct command *command) {
    *command = (struct command){.count = 1};
    command->operation = (enum store_operation)(fuzz_take_byte(input) % STORE_OPERATION_COUNT);
    uint8_t mixed = fuzz_take_byte(input);
    command->client = mixed % CLIENTS;
    if (is_list(command->operation)) {
        command->count = mixed / CLIENTS % 5;
    }
    for (size_t i = 0; i < command->count; i++) {
        command->keys[i] = fuzz_take_byte(input) % KEYS;
    }
    mixed = fuzz_take_byte(input);
    command->value = value_texts[mixed % VALUES];
    command->expected = value_texts[mixed / VALUES % VALUES];
    command->number = (int8_t)fuzz_take_byte(input);
}

static void table_apply(struct world *world, const struct command *command) {
    struct slice keys[4];
    struct slice values[4];
    for (size_t i = 0; i < command->count; i++) {
        keys[i] = slice_from_string(key_names[command->keys[i]]);
        values[i] = slice_from_string(command->value);
    }
    struct store_request request = {.operation = command->operation,
        .key = slice_from_string(key_names[command->keys[0]]),
        .value = slice_from_string(command->value),
        .expected = slice_from_string(command->expected),
        .number = command->number,
        .keys = keys,
        .values = values,
        .count = is_list(command->operation) ? command->count : 0};
    store_table_apply(world->table, &world->clients[command->client], &request, &world->effects);
}

static void check_reply(const struct store_reply *actual, const struct store_reply *expected) {
    FUZZ_REQUIRE(actual->kind == expected->kind);
    if (expected->kind == STORE_REPLY_BYTE) {
        FUZZ_REQUIRE(actual->byte == expected->byte);
    }
    if (expected->kind == STORE_REPLY_INTEGER) {
        FUZZ_REQUIRE(actual->integer == expected->integer);
    }
    if (expected->kind == STORE_REPLY_BLOB) {
        FUZZ_REQUIRE(slice_equals(actual->blob, expected->blob));
    }
    if (expected->kind == STORE_REPLY_POP) {
        FUZZ_REQUIRE(actual->pop.length == expected->pop.length);
    }
}

static void check_effects(const struct world *world) {
    FUZZ_REQUIRE(world->effects.count == world->model.reply_count);
    for (size_t i = 0; i < world->effects.count; i++) {
        const struct store_effect *effect = &world->effects.items[i];
        FUZZ_REQUIRE(effect->kind == STORE_EFFECT_REPLY);
        FUZZ_REQUIRE(effect->connection == &world->clients[world->model.replies[i].client]);
        check_reply(&effect->reply, &world->model.replies[i].reply);
    }
}

static void check_state(const struct world *world) {
    size_t waiting = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        FUZZ_REQUIRE((world->clients[i].wait != NULL) == (world->model.missing[i] != 0));
        waiting += world->model.missing[i] != 0 ? 1 : 0;
    }
    FUZZ_REQUIRE(store_table_waiting(world->table) == waiting);
    struct store_connection asker = {0};
    struct store_effects answer = {0};
    store_table_apply(
        world->table, &asker, &(struct store_request){.operation = STORE_COUNT_KEYS}, &answer);
    FUZZ_REQUIRE(answer.items[0].reply.integer == model_value_count(&world->model));
    store_effects_clear(&answer);
    FUZZ_REQUIRE(store_table_memory(world->table) <= MEMORY_LIMIT);
}

static void disconnect(struct world *world, size_t client) {
    store_table_disconnect(world->table, &world->clients[client]);
    model_drop(&world->model, client);
}

static bool is_closing(const struct store_effects *effects, const char *reason) {
    size_t own = effects->count == 2 && effects->items[0].may_wait ? 1 : 0; /* one has given way */
    return effects->count == own + 1 && effects->items[own].kind == STORE_EFFECT_CLOSE &&
           strstr(effects->items[own].reason, reason) != NULL;
}

static void play_command(struct world *world, struct slice *input) {
    struct command command;
    read_command(input, &command);
    if (command.operation == STORE_APPEND &&
        strlen(world->model.keys[command.keys[0]].value) + 32 > VALUE_SIZE) {
        return;
    }
    store_effects_reset(&world->effects);
    table_apply(world, &command);
    if (is_closing(&world->effects, "memory limit")) {
        disconnect(world, command.client); /* and nothing else may have changed */
        return;
    }
    world->model.reply_count = 0;
    world->model.is_closed = false;
    model_apply(&world->model, &command);
    if (world->model.is_closed) {
        FUZZ_REQUIRE(is_closing(&world->effects, "decimal number"));
        disconnect(world, command.client);
        return;
    }
    check_effects(world);
}

static void play_renewal(struct world *world, const char *kept_prefix) {
    store_effects_reset(&world->effects);
    store_table_renew(world->table, slice_from_string(kept_prefix), &world->effects);
    size_t closed = 0;
    for (size_t i = 0; i < KEYS; i++) {
        struct model_key *key = &world->model.keys[i];
        if (kept_prefix[0] != '\0' && text_starts_with(key_names[i], kept_prefix)) {
            continue;
        }
        while (key->line_length > 0) {
            model_drop(&world->model, key->line[0]);
            closed++;
        }
        *key = (struct model_key){0};
    }
    FUZZ_REQUIRE(world->effects.count == closed);
    for (size_t i = 0; i < closed; i++) {
        FUZZ_REQUIRE(world->effects.items[i].kind == STORE_EFFECT_CLOSE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = MEMORY_LIMIT;
    static struct world world;
    memset(&world, 0, sizeof world);
    world.table = store_table_new(&limits);
    store_table_own(world.table, slice_from_string(OWN_PREFIX));
    struct slice input = {data, size};
    while (input.length > 0) {
        uint8_t choice = fuzz_take_byte(&input);
        if (choice < 8) {
            disconnect(&world, choice % CLIENTS);
        } else if (choice < 12) {
            play_renewal(&world, choice < 10 ? "/kept/" : "");
        } else {
            play_command(&world, &input);
        }
        check_state(&world);
    }
    play_renewal(&world, "");
    FUZZ_REQUIRE(store_table_memory(world.table) == 0);
    FUZZ_REQUIRE(store_table_waiting(world.table) == 0);
    store_table_free(world.table);
    store_effects_clear(&world.effects);
    return 0;
}
