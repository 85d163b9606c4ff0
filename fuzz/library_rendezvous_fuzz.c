/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous.h by a hostile backend of the program's own, which two nodes share: the input
 * says what the backend answers, and what the program calls meanwhile. Every round that is asked
 * for must be called back once at most, every wait but a spare's must end, and a node must be where
 * it says.
 *
 * Time is made up: it passes when something waits for it, and a little with each question to the
 * backend. So whoever waits for what never comes is found, and hours take no time. */
#include "fuzz_input.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <muster/rendezvous.h>

#include "virtual_time.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

#define NODES 2
#define EARLIER 4
#define MOST_CALLS 96
#define MOST_QUESTIONS 100000
#define LONGEST_ROUGH_BYTES 4096
#define SPARES_PATIENCE_MILLISECONDS (3600 * 1000)

struct program;

struct node {
    struct program *program;
    struct muster_rendezvous *rendezvous;
    bool is_asked;   /* for the next round */
    bool is_waiting; /* for the same */
    int64_t wait_began;
    bool is_over; /* it was shut down */
};

struct program {
    struct slice input;
    struct node nodes[NODES];
    int watch;
    bool has_record;
    uint32_t version;
    struct bytes states[EARLIER]; /* the newest is at version % EARLIER */
    struct bytes rough;
    int questions;
};

/* Names and pauses are drawn: an input plays the same each time. */
static uint8_t draws;

ssize_t getrandom(void *out, size_t length, unsigned flags) {
    (void)flags;
    memset(out, ++draws, length);
    return (ssize_t)length;
}

/* What the backend answers. */

#define ROUGH_TOKEN "rough"
#define SOME "some"

static void give(struct muster_rendezvous_record *record, struct slice state, struct slice token) {
    record->exists = 1;
    record->state = state.data;
    record->state_length = state.length;
    record->token = token.data;
    record->token_length = token.length;
}

static void give_kept(
    const struct program *program, struct muster_rendezvous_record *record, unsigned age) {
    const struct bytes *kept = &program->states[(program->version - age) % EARLIER];
    if (program->has_record && kept->length > 0) {
        give(record, bytes_slice(kept),
            (struct slice){(const uint8_t *)&program->version, sizeof program->version});
    }
}

/* Bytes of the input, or the record that is kept with some of them changed. */
static void give_rough(
    struct program *program, struct muster_rendezvous_record *record, bool is_kept) {
    const struct bytes *kept = &program->states[program->version % EARLIER];
    struct bytes *rough = &program->rough;
    bytes_clear(rough);
    size_t count = fuzz_take_byte(&program->input);
    if (is_kept && kept->length > 0) {
        FUZZ_REQUIRE(bytes_append(rough, kept->data, kept->length) == FAILURE_NONE);
        for (size_t i = 0; i < count % 8; i++) {
            size_t place = fuzz_take_byte(&program->input);
            place = (place << 8 | fuzz_take_byte(&program->input)) % rough->length;
            rough->data[place] = fuzz_take_byte(&program->input);
        }
    } else {
        count = count << 4 | (fuzz_take_byte(&program->input) & 15);
        for (size_t i = 0; i < count % LONGEST_ROUGH_BYTES; i++) {
            uint8_t byte = fuzz_take_byte(&program->input);
            FUZZ_REQUIRE(bytes_append(rough, &byte, 1) == FAILURE_NONE);
        }
    }
    give(record, bytes_slice(rough), slice_from_string(ROUGH_TOKEN));
}

/* Parts of a record are missing, or said to be larger than they may be. */
static void give_part(struct program *program, struct muster_rendezvous_record *record) {
    struct slice good = slice_from_string(SOME);
    switch (fuzz_take_byte(&program->input) % 6) {
    case 0:
        give(record, (struct slice){NULL, 0}, good);
        break;
    case 1:
        give(record, good, (struct slice){NULL, 0});
        break;
    case 2:
        give(record, good, (struct slice){good.data, 0});
        break;
    case 3:
        give(record, good, (struct slice){good.data, MUSTER_RENDEZVOUS_TOKEN_MAXIMUM + 1});
        break;
    case 4:
        give(record, (struct slice){good.data, (size_t)MUSTER_RENDEZVOUS_STATE_MAXIMUM + 1}, good);
        break;
    default:
        give(record, (struct slice){good.data, 0}, good);
        break;
    }
}

static enum muster_error be_away(struct program *program, struct muster_failure *failure) {
    static const enum muster_error errors[] = {MUSTER_ERROR_DISCONNECTED, MUSTER_ERROR_SYSTEM,
        MUSTER_ERROR_TIMEOUT, MUSTER_ERROR_PROTOCOL, (enum muster_error)4711};
    uint8_t choice = fuzz_take_byte(&program->input);
    memset(failure->message, choice >= 128 ? 'x' : 0, sizeof failure->message);
    return errors[choice % (sizeof errors / sizeof *errors)];
}

/* What a callback may not do, and that it may free. */
static void misbehave(struct node *node) {
    const struct muster_rendezvous_info *info;
    struct muster_rendezvous *rendezvous = node->rendezvous;
    if (rendezvous == NULL) { /* it has given up just now */
        return;
    }
    FUZZ_REQUIRE(muster_rendezvous_process(rendezvous, NULL) == MUSTER_ERROR_STATE);
    FUZZ_REQUIRE(muster_rendezvous_next(rendezvous, 1, &info, NULL) == MUSTER_ERROR_STATE);
    FUZZ_REQUIRE(muster_rendezvous_set_closed(rendezvous, NULL) == MUSTER_ERROR_STATE);
    FUZZ_REQUIRE(muster_rendezvous_shutdown(rendezvous, NULL) == MUSTER_ERROR_STATE);
    if (fuzz_take_byte(&node->program->input) % 4 == 0) {
        muster_rendezvous_free(rendezvous);
        node->rendezvous = NULL;
    }
}

static bool has_spare(struct program *program) {
    struct slice kept = bytes_slice(&program->states[program->version % EARLIER]);
    struct rendezvous_state state = {0};
    struct text reason = {0};
    bool has_spare = rendezvous_state_read_pickle(kept, &state, &reason) == FAILURE_NONE &&
                     rendezvous_state_redundant(&state) > 0;
    rendezvous_state_clear(&state);
    text_clear(&reason);
    return has_spare;
}

/* A spare waits until there is room for it, which may be never: then it gives up. */
static void count_question(struct node *node) {
    int64_t patience_ends = node->wait_began + SPARES_PATIENCE_MILLISECONDS;
    FUZZ_REQUIRE(node->program->questions++ < MOST_QUESTIONS);
    virtual_time_pass(10);
    if (node->is_waiting && virtual_time.milliseconds > patience_ends && has_spare(node->program)) {
        muster_rendezvous_free(node->rendezvous);
        node->rendezvous = NULL;
    }
}

static enum muster_error get_state(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    struct node *node = context;
    struct program *program = node->program;
    FUZZ_REQUIRE(node->rendezvous != NULL);
    count_question(node);
    uint8_t choice = fuzz_take_byte(&program->input);
    switch (choice % 16) {
    case 9:
        return be_away(program, failure);
    case 10:
        break; /* there is none */
    case 11:
        give_rough(program, record, true);
        break;
    case 12:
        give_rough(program, record, false);
        break;
    case 13:
        give_kept(program, record, choice / 16 % EARLIER);
        break;
    case 14:
        give_part(program, record);
        break;
    case 15:
        misbehave(node);
        break;
    default:
        give_kept(program, record, 0);
        break;
    }
    return MUSTER_OK;
}

static void keep(struct program *program, struct slice state) {
    program->version++;
    program->has_record = true;
    struct bytes *kept = &program->states[program->version % EARLIER];
    bytes_clear(kept);
    FUZZ_REQUIRE(bytes_append(kept, state.data, state.length) == FAILURE_NONE);
}

/* Sets it only where that is right. */
static void set_honestly(struct node *node, struct slice state, struct slice token,
    struct muster_rendezvous_record *record) {
    struct program *program = node->program;
    bool is_newest = token.length == sizeof program->version &&
                     memcmp(token.data, &program->version, token.length) == 0;
    if (program->has_record ? is_newest : token.length == 0) {
        keep(program, state);
        record->is_set = 1;
    }
    give_kept(program, record, 0);
}

/* It is one that was given with a record. */
static void check_token(const struct program *program, struct slice token) {
    uint32_t version = 0;
    if (token.length == sizeof version) {
        memcpy(&version, token.data, sizeof version);
        FUZZ_REQUIRE(version <= program->version || memcmp(token.data, SOME, sizeof version) == 0);
    } else if (token.length > 0) {
        FUZZ_REQUIRE(slice_equals(token, slice_from_string(ROUGH_TOKEN)));
    }
}

static enum muster_error set_state(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    struct node *node = context;
    struct program *program = node->program;
    struct slice written = {state, length};
    FUZZ_REQUIRE(node->rendezvous != NULL);
    FUZZ_REQUIRE(length > 0 && length <= MUSTER_RENDEZVOUS_STATE_MAXIMUM);
    check_token(program, (struct slice){token, token_length});
    count_question(node);
    switch (fuzz_take_byte(&program->input) % 16) {
    case 8:
        return be_away(program, failure);
    case 9: /* it was set, though nobody hears of it */
        keep(program, written);
        return be_away(program, failure);
    case 10:
        give_kept(program, record, 0);
        break;
    case 11: /* a lie */
        record->is_set = 1;
        give_kept(program, record, 1);
        break;
    case 12:
        record->is_set = 1;
        give_rough(program, record, false);
        break;
    case 13:
        give_rough(program, record, true);
        break;
    case 14:
        record->is_set = 1;
        break;
    case 15:
        misbehave(node);
        break;
    default:
        set_honestly(node, written, (struct slice){token, token_length}, record);
        break;
    }
    return MUSTER_OK;
}

static enum muster_error present(void *context, const char *name, struct muster_failure *failure) {
    struct node *node = context;
    FUZZ_REQUIRE(name == NULL || strncmp(name, "127.0.0.1_", 10) == 0);
    uint8_t choice = fuzz_take_byte(&node->program->input) % 16;
    if (name != NULL && choice == 15) {
        misbehave(node);
    }
    return choice == 9 ? be_away(node->program, failure) : MUSTER_OK;
}

static int is_gone(void *context, const char *name) {
    struct node *node = context;
    FUZZ_REQUIRE(node->rendezvous != NULL && *name != '\0');
    uint8_t choice = fuzz_take_byte(&node->program->input) % 16;
    if (choice == 15) {
        misbehave(node);
    }
    return choice >= 12;
}

static void changed(void *context) {
    const struct node *node = context;
    uint64_t count;
    (void)!read(node->program->watch, &count, sizeof count);
}

/* What the program is told. */

static void check_info(const struct node *node, const struct muster_rendezvous_info *info) {
    FUZZ_REQUIRE(node->rendezvous != NULL);
    FUZZ_REQUIRE(info->rank >= 0 && info->rank < info->world_size);
    FUZZ_REQUIRE(info->world_size <= MUSTER_RENDEZVOUS_NODES_MAXIMUM);
    FUZZ_REQUIRE(strncmp(info->store_prefix, "torch.rendezvous.job.", 21) == 0);
    FUZZ_REQUIRE(strncmp(info->node, "127.0.0.1_", 10) == 0);
    FUZZ_REQUIRE(info->store_host == NULL && info->master_addr == NULL);
}

static void take_round(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *info) {
    struct node *node = context;
    FUZZ_REQUIRE(node->is_asked);
    node->is_asked = false;
    FUZZ_REQUIRE((error == MUSTER_OK) == (info != NULL));
    FUZZ_REQUIRE((error == MUSTER_OK) == (*message == '\0'));
    if (info != NULL) {
        check_info(node, info);
    }
    if (fuzz_take_byte(&node->program->input) % 16 == 15) {
        misbehave(node);
    }
}

static void ask(struct node *node) {
    bool was_asked = node->is_asked;
    node->is_asked = true;
    enum muster_error error =
        muster_rendezvous_submit_next(node->rendezvous, take_round, node, NULL);
    FUZZ_REQUIRE(error == MUSTER_OK || error == MUSTER_ERROR_STATE);
    FUZZ_REQUIRE(error == MUSTER_OK || was_asked || node->is_waiting || node->is_over);
    FUZZ_REQUIRE(error != MUSTER_OK || !(was_asked || node->is_over));
    node->is_asked = was_asked || error == MUSTER_OK;
}

static void take_end_of_round(void *context, const char *reason) {
    struct node *node = context;
    FUZZ_REQUIRE(node->rendezvous != NULL && *reason != '\0');
    uint8_t choice = fuzz_take_byte(&node->program->input) % 16;
    if (choice < 8) {
        ask(node);
    } else if (choice == 15) {
        misbehave(node);
    }
}

static void take_log(void *context, int level, const char *origin, const char *message) {
    const struct node *node = context;
    FUZZ_REQUIRE(node->rendezvous != NULL && level >= 10 && *origin != '\0' && *message != '\0');
}

/* What the program does. */

static void open_node(struct program *program, struct node *node) {
    static const double intervals[] = {0, 0.5, 60};
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    struct muster_rendezvous_backend backend = MUSTER_RENDEZVOUS_BACKEND;
    uint8_t sizes = fuzz_take_byte(&program->input);
    uint8_t times = fuzz_take_byte(&program->input);
    settings.run_id = "job";
    settings.local_addr = "127.0.0.1";
    settings.backend = &backend;
    settings.min_nodes = 1 + sizes % 4;
    settings.max_nodes = settings.min_nodes + sizes / 4 % 4;
    settings.is_torchrun = sizes / 16 % 2;
    settings.keep_alive_interval = intervals[times % 3];
    settings.last_call_timeout = times / 4 % 2 == 0 ? 0.1 : 0;
    settings.join_timeout = times / 8 % 2 == 0 ? 20 : 0;
    settings.round_over = take_end_of_round;
    settings.log = take_log;
    settings.context = node;
    backend.get_state = get_state;
    backend.set_state = set_state;
    if (times / 64 % 2 == 1) {
        backend.present = present;
        backend.is_gone = is_gone;
    }
    backend.has_watch = times / 16 % 2;
    backend.watch_fd = program->watch;
    backend.changed = times / 32 % 2 == 0 ? changed : NULL;
    if (backend.changed == NULL) {
        backend.has_watch = 0;
    }
    backend.context = node;
    *node = (struct node){.program = program};
    FUZZ_REQUIRE(muster_rendezvous_new(&settings, &node->rendezvous, NULL) == MUSTER_OK);
}

static void wait_for_round(struct node *node, double timeout) {
    struct muster_failure failure = {0};
    const struct muster_rendezvous_info *info = NULL;
    node->is_waiting = true;
    node->wait_began = virtual_time.milliseconds;
    enum muster_error error = muster_rendezvous_next(node->rendezvous, timeout, &info, &failure);
    node->is_waiting = false;
    FUZZ_REQUIRE((error == MUSTER_OK) == (info != NULL));
    FUZZ_REQUIRE((error == MUSTER_OK) == (failure.message[0] == '\0'));
    if (info != NULL && node->rendezvous != NULL) {
        check_info(node, info);
    }
}

static void look(struct node *node) {
    int is_closed = -1;
    size_t count = SIZE_MAX;
    enum muster_error error = muster_rendezvous_is_closed(node->rendezvous, &is_closed, NULL);
    FUZZ_REQUIRE((error == MUSTER_OK) == (is_closed >= 0));
    if (node->rendezvous != NULL) {
        error = muster_rendezvous_num_nodes_waiting(node->rendezvous, &count, NULL);
        FUZZ_REQUIRE((error == MUSTER_OK) == (count <= MUSTER_RENDEZVOUS_NODES_MAXIMUM));
    }
}

static void do_call(struct program *program) {
    static const int milliseconds[] = {0, 1, 50, 300, 1000, 6000, 40000, 700000};
    uint8_t choice = fuzz_take_byte(&program->input);
    struct node *node = &program->nodes[choice % NODES];
    uint64_t one = 1;
    if (node->rendezvous == NULL) {
        open_node(program, node);
        return;
    }
    switch (choice / NODES % 8) {
    case 0:
        virtual_time_pass(milliseconds[choice / 16 % 8]);
        FUZZ_REQUIRE(muster_rendezvous_process(node->rendezvous, NULL) == MUSTER_OK);
        break;
    case 1:
        ask(node);
        break;
    case 2:
        wait_for_round(node, choice / 16 % 8 == 0 ? 0 : choice / 16);
        break;
    case 3:
        look(node);
        break;
    case 4:
        (void)!write(program->watch, &one, sizeof one);
        break;
    case 5:
        if (choice / 16 < 8) {
            (void)muster_rendezvous_set_closed(node->rendezvous, NULL);
        } else {
            (void)muster_rendezvous_shutdown(node->rendezvous, NULL);
            node->is_over = true;
        }
        break;
    case 6:
        muster_rendezvous_free(node->rendezvous);
        node->rendezvous = NULL;
        break;
    default:
        FUZZ_REQUIRE(strcmp(muster_rendezvous_run_id(node->rendezvous), "job") == 0);
        FUZZ_REQUIRE(muster_rendezvous_fd(node->rendezvous) >= 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct program program = {.input = {data, size}};
    draws = 0;
    virtual_time_begin();
    program.watch = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    FUZZ_REQUIRE(program.watch >= 0);
    for (int i = 0; i < EARLIER; i++) {
        bytes_init(&program.states[i], MUSTER_RENDEZVOUS_STATE_MAXIMUM);
    }
    bytes_init(&program.rough, MUSTER_RENDEZVOUS_STATE_MAXIMUM);
    for (int i = 0; i < NODES; i++) {
        open_node(&program, &program.nodes[i]);
    }
    for (int i = 0; i < MOST_CALLS && program.input.length > 0; i++) {
        do_call(&program);
    }
    for (int i = 0; i < NODES; i++) {
        muster_rendezvous_free(program.nodes[i].rendezvous);
    }
    for (int i = 0; i < EARLIER; i++) {
        bytes_clear(&program.states[i]);
    }
    bytes_clear(&program.rough);
    close(program.watch);
    virtual_time_end();
    return 0;
}
