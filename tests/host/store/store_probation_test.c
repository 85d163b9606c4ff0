/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"
#include "wire/store_proof_key.h"

#define MAXIMUM 8
#define MOST 16

struct scene {
    struct fixture fixture;
    struct plain_key plain;
    struct store_key key;
    int clients[MOST];
    int count;
};

static void begin(struct scene *scene, const struct store_server_settings *wanted) {
    *scene = (struct scene){.plain = {.token = 7}};
    struct fixture *fixture = &scene->fixture;
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    scene->key = plain_store_key(&scene->plain);
    struct store_server_settings settings = *wanted;
    settings.log = &fixture->log.log;
    settings.key = &scene->key;
    settings.unproven_maximum = MAXIMUM;
    fixture->peers = store_peers_new(fixture->loop, &settings);
}

static void end(struct scene *scene) {
    for (int i = 0; i < scene->count; i++) {
        close(scene->clients[i]);
    }
    tear_down(&scene->fixture);
}

/* A client of the machine with this number. */
static int come(struct scene *scene, uint32_t machine) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const union tcp_address address = {
        .ipv4 = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000000 + machine)}}};
    store_peers_add(scene->fixture.peers, ends[0], &address);
    scene->clients[scene->count++] = ends[1];
    return ends[1];
}

static bool is_closed(struct scene *scene, int client) {
    char byte;
    turn(&scene->fixture);
    return recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void prove(struct scene *scene, int client) {
    struct store_proof proof = {0};
    uint8_t answer[STORE_PROOF_REPLY_BYTES];
    client_ask(client, &(struct store_request){.operation = STORE_VALIDATE});
    struct store_proof_step step = store_proof_begin(&proof, &scene->key);
    client_send(client, step.reply, step.reply_length);
    for (size_t length = STORE_PROOF_NONCE_BYTES; length > 0;
         length = length == STORE_PROOF_NONCE_BYTES ? STORE_PROOF_REPLY_BYTES : 0) {
        client_await(scene->fixture.loop, client);
        assert_int_equal(recv(client, answer, length, 0), length);
        step = store_proof_continue(&proof, &scene->key, (struct slice){answer, length});
        client_send(client, step.reply, step.reply_length);
    }
    assert_int_equal(step.outcome, STORE_PROOF_DONE);
}

/* As if the clients that are there had come so long ago. */
static void let_pass(struct scene *scene, int64_t seconds) {
    struct store_peers *peers = scene->fixture.peers;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL;
         peer = peer->unproven_next) {
        peer->came_at.nanoseconds -= seconds * NANOSECONDS_PER_SECOND;
    }
    event_timer_set(peers->unproven.timer, event_loop_now(peers->loop));
    turn(&scene->fixture);
}

TEST(who_has_not_proved_itself_in_time_is_closed) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){0});
    int silent = come(&scene, 1);
    int node = come(&scene, 2);
    prove(&scene, node);
    let_pass(&scene, STORE_PROBATION_SECONDS - 1);
    int late = come(&scene, 3);
    assert_false(is_closed(&scene, silent));
    let_pass(&scene, 1);
    assert_true(is_closed(&scene, silent));
    assert_false(is_closed(&scene, node));
    assert_false(is_closed(&scene, late));
    assert_true(remembered_log_has(&scene.fixture.log, "has not proved itself within 10 s"));
    end(&scene);
}

TEST(who_has_not_proved_itself_is_not_counted) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){.observer = {.connections = remember_connections,
                                                      .context = &scene.fixture}});
    scene.fixture.tells_count = true;
    (void)come(&scene, 1);
    expect_news(&scene.fixture, "0 connections\n");
    prove(&scene, come(&scene, 2));
    expect_news(&scene.fixture, "0 connections\n1 connections\n");
    end(&scene);
}

TEST(when_there_is_no_room_the_oldest_makes_way) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){0});
    int node = come(&scene, 99);
    prove(&scene, node);
    for (uint32_t i = 1; i <= MAXIMUM + 2; i++) {
        (void)come(&scene, i);
    }
    for (int i = 1; i < scene.count; i++) {
        assert_int_equal(is_closed(&scene, scene.clients[i]), i <= 2);
    }
    assert_false(is_closed(&scene, node));
    end(&scene);
}

TEST(one_address_does_not_take_the_room_of_others) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){0});
    int other = come(&scene, 1);
    for (int i = 1; i < MOST; i++) {
        (void)come(&scene, 2);
    }
    assert_false(is_closed(&scene, other));
    for (int i = 1; i < MOST; i++) {
        assert_int_equal(is_closed(&scene, scene.clients[i]), i < MOST - MAXIMUM / 2);
    }
    prove(&scene, other);
    end(&scene);
}

TEST(where_only_some_keys_need_a_proof_nobody_is_hurried) {
    struct scene scene;
    begin(&scene,
        &(struct store_server_settings){.own_prefix = "/agents/", .guards_only_own_keys = true});
    for (int i = 0; i < MOST; i++) {
        (void)come(&scene, 2);
    }
    for (int i = 0; i < MOST; i++) {
        assert_false(is_closed(&scene, scene.clients[i]));
    }
    end(&scene);
}
