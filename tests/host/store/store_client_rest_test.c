/* SPDX-License-Identifier: BSD-3-Clause */
/* A QUEUE_POP that rests at the server while its client asks other things. */
#include "unit.h"

#include "host/store_client_fixture.h"

#define QUEUE "/own/queue"
#define OTHER_QUEUE "/own/other"

static void serve_own_keys(struct fixture *fixture) {
    open_port(fixture);
    assert_int_equal(
        store_server_new(fixture->loop, fixture->listening_fd,
            &(struct store_server_settings){.own_prefix = "/own/"}, &fixture->server, NULL),
        FAILURE_NONE);
    start_client(fixture, LONG);
}

struct item {
    int calls;
    enum failure_code code;
    int64_t length;
    char text[64];
};

static void take_item(void *context, const struct store_client_result *result) {
    struct item *item = context;
    item->calls++;
    item->code = result->code;
    if (result->code == FAILURE_NONE) {
        const struct slice front = result->reply->pop.front;
        item->length = result->reply->pop.length;
        snprintf(
            item->text, sizeof item->text, "%.*s", (int)front.length, (const char *)front.data);
    }
}

static void rest_at(struct fixture *fixture, const char *queue, struct item *item) {
    *item = (struct item){0};
    store_client_send(fixture->client,
        &(struct store_client_call){
            .request = {.operation = STORE_QUEUE_POP, .key = slice_from_string(queue)},
            .is_raw = true,
            .rests = true,
            .done = take_item,
            .context = item});
}

static void rest(struct fixture *fixture, struct item *item) {
    rest_at(fixture, QUEUE, item);
}

static void add(struct fixture *fixture, int64_t expected) {
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 1}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(answer.reply.integer, expected);
}

static void set(struct fixture *fixture, struct answer *answer) {
    send_request(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("7")},
        LONG, answer);
}

/* The server puts a word into the queue, and the call that rests gets it, once. */
static void tell(struct fixture *fixture, struct item *item, const char *word) {
    store_server_tell(fixture->server, QUEUE, word);
    turn_until(fixture, &item->calls);
    assert_int_equal(item->calls, 1);
    assert_string_equal(item->text, word);
}

TEST(what_rests_holds_up_nothing_and_gets_its_item) {
    struct fixture fixture;
    struct item item;
    struct answer answer;
    serve_own_keys(&fixture);
    rest(&fixture, &item);
    for (int64_t i = 1; i <= 50; i++) {
        add(&fixture, i);
    }
    set(&fixture, &answer);
    turn_until(&fixture, &answer.calls);
    add(&fixture, 8);
    assert_int_equal(item.calls, 0);
    tell(&fixture, &item, "word");
    rest(&fixture, &item);
    add(&fixture, 9);
    tell(&fixture, &item, "next");
    tear_down(&fixture);
}

/* Items come at any moment: each is given once, in their order, and no reply is taken for another.
 */
TEST(items_and_replies_are_never_mixed_up) {
    struct fixture fixture;
    struct item item;
    int64_t count = 0;
    serve_own_keys(&fixture);
    rest(&fixture, &item);
    for (int i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        if (i % 3 != 0) {
            add(&fixture, ++count);
        }
        store_server_tell(fixture.server, QUEUE, text);
        if (i % 2 == 0) {
            add(&fixture, ++count);
        }
        if (i % 5 == 0) {
            (void)store_client_look(fixture.client);
        }
        turn_until(&fixture, &item.calls);
        assert_int_equal(item.calls, 1);
        assert_string_equal(item.text, text);
        rest(&fixture, &item);
    }
    tear_down(&fixture);
}

TEST(signs_of_life_are_answered_while_something_rests) {
    struct fixture fixture;
    struct item item;
    serve_own_keys(&fixture);
    rest(&fixture, &item);
    add(&fixture, 1);
    for (int i = 0; i < 40; i++) { /* more than may be unanswered */
        (void)store_client_look(fixture.client);
        for (int turns = 0; turns < i % 4; turns++) {
            event_loop_run_ready(fixture.loop);
        }
    }
    add(&fixture, 2);
    (void)store_client_look(fixture.client);
    tell(&fixture, &item, "word");
    assert_int_equal(fixture.lost, 0);
    tear_down(&fixture);
}

/* The server would forget a wait for the sake of a QUEUE_POP behind it. */
TEST(what_rests_comes_back_after_a_wait) {
    struct fixture fixture;
    struct item item;
    struct answer answer;
    const struct store_request wait = {.operation = STORE_WAIT, .keys = &key, .count = 1};
    serve_own_keys(&fixture);
    rest(&fixture, &item);
    ask(&fixture, &wait, SOON, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    send_request(&fixture, &wait, LONG, &answer);
    for (int i = 0; i < 20; i++) {
        event_loop_run_ready(fixture.loop);
    }
    int fd = client_open(fixture.port);
    client_set(fd, "/k", "v");
    turn_until(&fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    tell(&fixture, &item, "word");
    close(fd);
    tear_down(&fixture);
}

TEST(a_later_one_takes_the_place_and_the_end_fails_it) {
    struct fixture fixture;
    struct item first;
    struct item second;
    serve_own_keys(&fixture);
    rest(&fixture, &first);
    add(&fixture, 1);
    rest(&fixture, &second);
    turn_until(&fixture, &first.calls);
    assert_int_equal(first.code, FAILURE_CANCELLED);
    tell(&fixture, &second, "of the same queue");
    rest(&fixture, &second);
    add(&fixture, 2);
    store_server_renew(fixture.server, NULL);
    turn_until(&fixture, &second.calls);
    assert_int_equal(second.code, FAILURE_DISCONNECTED);
    tear_down(&fixture);
}

/* What comes into the first queue is nobody's from then on, whenever it comes. */
TEST(one_of_another_queue_is_told_of_that_queue_alone) {
    struct fixture fixture;
    struct item first;
    struct item second;
    serve_own_keys(&fixture);
    for (int64_t i = 1; i <= 8; i++) {
        rest(&fixture, &first);
        if (i % 2 == 0) {
            add(&fixture, i / 2);
        }
        if (i % 3 == 0) {
            tell(&fixture, &first, "to the first");
        }
        if (i % 4 < 2) {
            store_server_tell(fixture.server, QUEUE, "to nobody");
        }
        rest_at(&fixture, OTHER_QUEUE, &second);
        store_server_tell(fixture.server, OTHER_QUEUE, "to the second");
        turn_until(&fixture, &second.calls);
        assert_string_equal(second.text, "to the second");
        assert_int_equal(first.calls, 1);
        store_server_tell(fixture.server, QUEUE, NULL);
        assert_int_equal(fixture.lost, 0);
    }
    tear_down(&fixture);
}

TEST(what_rests_ends_with_its_client) {
    struct fixture fixture;
    struct item item;
    serve_own_keys(&fixture);
    rest(&fixture, &item);
    add(&fixture, 1);
    store_client_free(fixture.client);
    fixture.client = NULL;
    assert_int_equal(item.calls, 1);
    assert_int_equal(item.code, FAILURE_CANCELLED);
    tear_down(&fixture);
}

/* A server that answers at once is told of, instead of being asked again for ever. */
FIXTURE_TEST(a_server_that_keeps_nothing_answers_that_there_is_none) {
    struct item item;
    rest(fixture, &item);
    turn_until(fixture, &item.calls);
    assert_int_equal(item.code, FAILURE_NONE);
    assert_int_equal(item.length, 0);
}
