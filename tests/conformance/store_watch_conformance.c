/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting, and what a rendezvous makes of it: watching a record that others change, so that no
 * change is missed. As store_conformance:
 *
 *     store_watch_conformance own | tcp HOST PORT | file [PATH] */
#include "store_under_test.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/random.h"
#include "base/text.h"

#define WRITERS 3
#define WATCHERS 3
#define CHANGES 40 /* by each writer */

static void begin_wait(
    struct store_access *client, const char *const *names, size_t count, struct answer *answer) {
    struct slice keys[3];
    assert_true(count <= sizeof keys / sizeof keys[0]);
    for (size_t i = 0; i < count; i++) {
        keys[i] = slice_from_string(names[i]);
    }
    begin(client, &(struct store_request){.operation = STORE_WAIT, .keys = keys, .count = count},
        answer);
}

/* Turns that others work in, in which the answer does not come. */
static void expect_no_answer(struct store_under_test *store, const struct answer *answer) {
    char *key = unused_key("meanwhile");
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(add(store, store->second, key, 1), i);
        assert_int_equal(answer->calls, 0);
    }
    free(key);
}

static void wait_ends_when_another_client_sets_the_key(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("awaited");
    struct answer answer;
    begin_wait(store->first, (const char *[]){key}, 1, &answer);
    expect_no_answer(store, &answer);
    set(store, store->second, key, "v");
    await(store, &answer);
    assert_int_equal(answer.reply.byte, STORE_STOP_WAITING);
    free(key);
}

static void wait_for_keys_that_exist_ends_at_once(void **state) {
    struct store_under_test *store = *state;
    char *first = unused_key("existing-1");
    char *second = unused_key("existing-2");
    set(store, store->second, first, "");
    set(store, store->second, second, "v");
    struct answer answer;
    begin_wait(store->first, (const char *[]){first, second}, 2, &answer);
    await(store, &answer);
    assert_int_equal(answer.reply.byte, STORE_STOP_WAITING);
    free(first);
    free(second);
}

static void wait_needs_every_key_however_it_comes(void **state) {
    struct store_under_test *store = *state;
    char *counter = unused_key("needed-counter");
    char *plain = unused_key("needed-plain");
    char *last = unused_key("needed-last");
    struct answer answer;
    begin_wait(store->first, (const char *[]){counter, plain, last}, 3, &answer);
    set(store, store->second, plain, "v");
    assert_int_equal(add(store, store->second, counter, 1), 1);
    expect_no_answer(store, &answer);
    set(store, store->second, last, "");
    await(store, &answer);
    free(counter);
    free(plain);
    free(last);
}

/* One that succeeds may or may not: PyTorch's server without libuv wakes nobody then. */
static void compare_set_that_fails_ends_no_wait(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("refused");
    struct answer answer;
    begin_wait(store->first, (const char *[]){key}, 1, &answer);
    struct answer refused = compare_set(
        store, store->second, key, slice_from_string("something"), slice_from_string("v"));
    answer_clear(&refused);
    expect_no_answer(store, &answer);
    set(store, store->second, key, "v");
    await(store, &answer);
    free(key);
}

static void get_waits_for_a_key_that_comes_later(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("later");
    struct answer answer;
    begin_get(store->first,
        &(struct store_request){.operation = STORE_GET, .key = slice_from_string(key)}, &answer);
    expect_no_answer(store, &answer);
    set(store, store->second, key, "late");
    await(store, &answer);
    assert_true(slice_equals(bytes_slice(&answer.blob), slice_from_string("late")));
    answer_clear(&answer);
    free(key);
}

static void remember_code(void *context, const struct store_client_result *result) {
    *(enum failure_code *)context = result->code;
}

static void client_works_on_after_a_wait_that_timed_out(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("never");
    struct slice keys[] = {slice_from_string(key)};
    enum failure_code code = FAILURE_NONE;
    store_access_send(store->first,
        &(struct store_client_call){.request = {.operation = STORE_WAIT, .keys = keys, .count = 1},
            .timeout = duration_from_milliseconds(50),
            .done = remember_code,
            .context = &code});
    while (code == FAILURE_NONE) {
        (void)event_loop_run_ready(store->loop);
    }
    assert_int_equal(code, FAILURE_TIMEOUT);
    set(store, store->first, key, "v");
    expect_stored(store, store->first, key, "v");
    free(key);
}

static void many_wait_for_one_key(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("popular");
    struct store_access *clients[8];
    struct answer answers[8];
    for (int i = 0; i < 8; i++) {
        clients[i] = store_client_open(store);
        begin_wait(clients[i], (const char *[]){key}, 1, &answers[i]);
    }
    set(store, store->second, key, "v");
    for (int i = 0; i < 8; i++) {
        await(store, &answers[i]);
        store_access_free(clients[i]);
    }
    free(key);
}

/* The watch of a rendezvous. Who has changed the record takes the next number (ADD 1) and makes the
 * key of that number. Who watches reads the last number (ADD 0), then the record, then waits for
 * the key of the next number: a change made before the record was read is in it, and any later one
 * has a later number. Writers write again as soon as every watcher has read what they wrote: in the
 * very moment when a wake-up could be lost, and then all would stand still. Everybody dawdles
 * between two requests, so that they come in every order. */
struct record {
    char *value;   /* "<count> by <writer>", changed by compare-and-set */
    char *changes; /* the last number */
    char *changed; /* what the keys of the numbers start with */
};

enum step { STEP_READ, STEP_SWAP, STEP_NUMBER, STEP_TELL, STEP_AWAIT, STEP_REST, STEP_DONE };

struct actor {
    struct store_access *client;
    struct answer answer;
    enum step step; /* whose answer is awaited */
    int number;     /* of the actor */
    char seen[32];  /* the record, as read last */
    char wanted[32];
    int64_t change;
    struct random dawdling;
    int written;
    int woken;
};

static void ask_about(struct actor *actor, enum step step, const struct store_request *request) {
    actor->step = step;
    begin(actor->client, request, &actor->answer);
}

static void ask_number(const struct record *record, struct actor *actor, int64_t step) {
    ask_about(actor, STEP_NUMBER,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(record->changes), .number = step});
}

static void ask_record(const struct record *record, struct actor *actor) {
    ask_about(actor, STEP_READ,
        &(struct store_request){.operation = STORE_GET, .key = slice_from_string(record->value)});
}

static void take_record(struct actor *actor) {
    struct slice blob = bytes_slice(&actor->answer.blob);
    assert_true(blob.length < sizeof actor->seen);
    assert_true(atoi((const char *)blob.data) >= atoi(actor->seen));
    memcpy(actor->seen, blob.data, blob.length);
    actor->seen[blob.length] = '\0';
    answer_clear(&actor->answer);
}

/* A key of a number: made by who writes, waited for by who watches. */
static void ask_change(const struct record *record, struct actor *actor, enum step step) {
    char *name = text_format("%s%" PRId64, record->changed, actor->change);
    struct slice key = slice_from_string(name);
    struct store_request request = {.operation = STORE_SET, .key = key};
    if (step == STEP_AWAIT) {
        request = (struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1};
    }
    ask_about(actor, step, &request);
    free(name);
}

static void swap(const struct record *record, struct actor *actor) {
    (void)snprintf(
        actor->wanted, sizeof actor->wanted, "%d by %d", atoi(actor->seen) + 1, actor->number);
    ask_about(actor, STEP_SWAP,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(record->value),
            .expected = slice_from_string(actor->seen),
            .value = slice_from_string(actor->wanted)});
}

static void go_on_writing(const struct record *record, struct actor *actor) {
    if (actor->step == STEP_SWAP) {
        take_record(actor);
        if (strcmp(actor->seen, actor->wanted) == 0) {
            ask_number(record, actor, 1);
        } else {
            swap(record, actor);
        }
    } else if (actor->step == STEP_NUMBER) {
        actor->change = actor->answer.reply.integer;
        ask_change(record, actor, STEP_TELL);
    } else {
        actor->step = ++actor->written < CHANGES ? STEP_REST : STEP_DONE;
    }
}

static void go_on_watching(const struct record *record, struct actor *actor) {
    if (actor->step == STEP_NUMBER) {
        actor->change = actor->answer.reply.integer + 1;
        ask_record(record, actor);
    } else if (actor->step == STEP_AWAIT) {
        actor->woken++;
        ask_number(record, actor, 0);
    } else {
        take_record(actor);
        if (atoi(actor->seen) < WRITERS * CHANGES) {
            ask_change(record, actor, STEP_AWAIT);
        } else {
            actor->step = STEP_DONE;
        }
    }
}

/* Writers first, then watchers. */
static void begin_acting(
    struct store_under_test *store, const struct record *record, struct actor *actors) {
    for (int i = 0; i < WRITERS + WATCHERS; i++) {
        actors[i].number = i;
        random_init(&actors[i].dawdling, (uint64_t)i);
        actors[i].client = store_client_open(store);
        if (i < WRITERS) {
            (void)snprintf(actors[i].seen, sizeof actors[i].seen, "0");
            swap(record, &actors[i]);
        } else {
            ask_number(record, &actors[i], 0);
        }
    }
}

/* The oldest record that a watcher has read last. */
static int oldest_seen(const struct actor *actors) {
    int oldest = INT_MAX;
    for (int i = WRITERS; i < WRITERS + WATCHERS; i++) {
        int seen = atoi(actors[i].seen);
        oldest = seen < oldest ? seen : oldest;
    }
    return oldest;
}

static bool go_on(const struct record *record, struct actor *actor, int oldest) {
    if (random_below(&actor->dawdling, 8) > 0) {
        return actor->step == STEP_DONE;
    }
    if (actor->step == STEP_REST && atoi(actor->seen) <= oldest) {
        swap(record, actor);
    }
    if (actor->step == STEP_REST || actor->step == STEP_DONE || actor->answer.calls == 0) {
        return actor->step == STEP_DONE;
    }
    assert_int_equal(actor->answer.code, FAILURE_NONE);
    if (actor->number < WRITERS) {
        go_on_writing(record, actor);
    } else {
        go_on_watching(record, actor);
    }
    return actor->step == STEP_DONE;
}

static void watchers_miss_no_change(void **state) {
    struct store_under_test *store = *state;
    struct record record = {unused_key("record"), unused_key("changes"), unused_key("changed/")};
    struct actor actors[WRITERS + WATCHERS] = {0};
    set(store, store->first, record.value, "0");
    begin_acting(store, &record, actors);
    for (int done = 0; done < WRITERS + WATCHERS;) {
        (void)event_loop_run_ready(store->loop);
        done = 0;
        for (int i = 0; i < WRITERS + WATCHERS; i++) {
            done += go_on(&record, &actors[i], oldest_seen(actors));
        }
    }
    assert_int_equal(add(store, store->first, record.changes, 0), WRITERS * CHANGES);
    for (int i = 0; i < WRITERS + WATCHERS; i++) {
        assert_true(i < WRITERS ? actors[i].written == CHANGES : actors[i].woken > 0);
        store_access_free(actors[i].client);
    }
    free(record.value);
    free(record.changes);
    free(record.changed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wait_ends_when_another_client_sets_the_key),
    cmocka_unit_test(wait_for_keys_that_exist_ends_at_once),
    cmocka_unit_test(wait_needs_every_key_however_it_comes),
    cmocka_unit_test(compare_set_that_fails_ends_no_wait),
    cmocka_unit_test(get_waits_for_a_key_that_comes_later),
    cmocka_unit_test(client_works_on_after_a_wait_that_timed_out),
    cmocka_unit_test(many_wait_for_one_key),
    cmocka_unit_test(watchers_miss_no_change),
};

int main(int argument_count, char **arguments) {
    if (!store_under_test_parse(argument_count, arguments)) {
        return 2;
    }
    return cmocka_run_group_tests_name(
        "store watch", tests, store_under_test_set_up, store_under_test_tear_down);
}
