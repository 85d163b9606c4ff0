/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said without etcd. tests/interop asks a real one. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/register/etcd_register.h"
#include "host/register/http_client.h"
#include "wire/register/register_entry_text.h"

struct fixture {
    struct event_loop *loop;
    struct job_register *job_register;
    enum register_event_kind kind;
    bool is_final;
    struct failure failure;
};

static void told(void *context, const struct register_event *event) {
    struct fixture *fixture = context;
    fixture->kind = event->kind;
    fixture->is_final = event->is_final;
    if (event->failure != NULL) {
        fixture->failure = *event->failure;
    }
    event_loop_stop(fixture->loop);
}

static enum failure_code open_at(struct fixture *fixture, const char *endpoint) {
    const struct register_settings settings = {
        .endpoint = endpoint,
        .run_id = "job",
        .node_name = "node",
        .observer = {told, fixture},
    };
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    return register_open(
        fixture->loop, &etcd_register_engine, &settings, &fixture->job_register, &fixture->failure);
}

static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    assert_true(event_loop_free(fixture->loop));
}

static bool has_curl(void) {
    struct curl_library library;
    return curl_library_load(CURL_LIBRARY_NAME, &library, NULL) == FAILURE_NONE;
}

TEST(endpoint_that_cannot_be_read_does_not_open) {
    struct fixture fixture;
    assert_int_equal(open_at(&fixture, "a:x"), FAILURE_INVALID);
    assert_non_null(strstr(fixture.failure.message, "--rdzv-endpoint"));
    tear_down(&fixture);
}

TEST(member_that_is_not_there_is_named_at_the_deadline) {
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    /* port 1 of the loopback: nobody listens there */
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(700));
    register_read(fixture.job_register, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_FAILED);
    assert_false(fixture.is_final);
    tear_down(&fixture);
}

static struct register_entry new_entry(int64_t number) {
    return (struct register_entry){.number = number,
        .term = 1,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string(""),
        .nonce = "0123456789abcdef0123456789abcdef"};
}

TEST(append_that_nobody_hears_is_unknown) {
    struct fixture fixture;
    struct register_entry entry = new_entry(1);
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1,[::1]:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(100));
    register_append(fixture.job_register, &entry, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_UNKNOWN);
    register_entry_clear(&entry);
    tear_down(&fixture);
}

TEST(request_under_way_ends_with_the_register) {
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    register_renew(fixture.job_register, 1,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run_ready(fixture.loop);
    tear_down(&fixture);
}

/* A server that speaks as much HTTP/2 as is needed to answer one request after the other, each on a
 * connection of its own, with one message. */

#define FRAME_HEAD 9
#define FRAME_DATA 0
#define FRAME_HEADERS 1
#define FRAME_SETTINGS 4
#define END_OF_STREAM 1
#define END_OF_HEADERS 4
#define MOST_REPLIES 4

struct reply {
    struct slice message;
    bool is_refusal; /* gRPC's status 14 instead */
    bool goes_on;    /* more messages could follow */
};

struct server {
    int listening;
    char endpoint[32];
    struct reply replies[MOST_REPLIES];
    int count;
    pthread_t thread;
};

static void receive(int connection, void *data, size_t length) {
    assert_int_equal(recv(connection, data, length, MSG_WAITALL), (ssize_t)length);
}

static void await_request(int connection) {
    uint8_t head[FRAME_HEAD] = {0};
    uint8_t content[65536];
    receive(connection, content, strlen("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    while (head[3] != FRAME_DATA || (head[4] & END_OF_STREAM) == 0) {
        receive(connection, head, sizeof head);
        size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        assert_true(length <= sizeof content);
        receive(connection, content, length);
    }
}

static void send_frame(
    int connection, uint8_t type, uint8_t flags, uint8_t stream, const void *data, size_t length) {
    const uint8_t head[FRAME_HEAD] = {
        0, (uint8_t)(length >> 8), (uint8_t)length, type, flags, 0, 0, 0, stream};
    assert_int_equal(send(connection, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    assert_int_equal(send(connection, data, length, MSG_NOSIGNAL), (ssize_t)length);
}

static void send_reply(int connection, const struct reply *reply) {
    static const char good[] = "\x00\x0bgrpc-status\x01"
                               "0";
    static const char bad[] = "\x00\x0bgrpc-status\x02"
                              "14";
    uint8_t body[1024] = {0}; /* not compressed, and its length */
    size_t length = reply->message.length;
    assert_true(5 + length <= sizeof body);
    body[3] = (uint8_t)(length >> 8);
    body[4] = (uint8_t)length;
    if (length > 0) {
        memcpy(body + 5, reply->message.data, length);
    }
    send_frame(connection, FRAME_SETTINGS, 0, 0, "", 0);
    send_frame(connection, FRAME_SETTINGS, 1, 0, "", 0); /* the client's are known */
    send_frame(connection, FRAME_HEADERS, END_OF_HEADERS, 1, "\x88", 1); /* 200 */
    if (!reply->is_refusal) {
        send_frame(connection, FRAME_DATA, 0, 1, body, 5 + length);
    }
    if (!reply->goes_on) {
        send_frame(connection, FRAME_HEADERS, END_OF_HEADERS | END_OF_STREAM, 1,
            reply->is_refusal ? bad : good, reply->is_refusal ? sizeof bad - 1 : sizeof good - 1);
    }
}

static void await_end(int connection) {
    char byte;
    while (recv(connection, &byte, 1, 0) > 0) { /* it is closed by the client */
    }
    close(connection);
}

static void *serve(void *context) {
    const struct server *server = context;
    int open[MOST_REPLIES];
    int open_count = 0;
    for (int i = 0; i < server->count; i++) {
        int connection = accept(server->listening, NULL, NULL);
        if (connection < 0) { /* no more is asked for */
            break;
        }
        await_request(connection);
        send_reply(connection, &server->replies[i]);
        if (server->replies[i].goes_on) {
            open[open_count++] = connection;
        } else {
            await_end(connection);
        }
    }
    for (int i = 0; i < open_count; i++) {
        await_end(open[i]);
    }
    return NULL;
}

static void start_server(struct server *server, const struct reply *replies, int count) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    *server = (struct server){.listening = socket(AF_INET, SOCK_STREAM, 0), .count = count};
    memcpy(server->replies, replies, (size_t)count * sizeof *replies);
    assert_int_equal(bind(server->listening, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server->listening, MOST_REPLIES), 0);
    assert_int_equal(getsockname(server->listening, (struct sockaddr *)&address, &length), 0);
    snprintf(server->endpoint, sizeof server->endpoint, "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* When the client has closed all its connections. */
static void end_server(struct server *server) {
    shutdown(server->listening, SHUT_RDWR);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    close(server->listening);
}

static struct reply one_message(const char *message) {
    return (struct reply){.message = slice_from_string(message)};
}

TEST(reply_that_cannot_be_read_is_a_failure) {
    struct fixture fixture;
    struct server server;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    start_server(&server, (struct reply[]){one_message("\x12\x05k")}, 1);
    assert_int_equal(open_at(&fixture, server.endpoint), FAILURE_NONE);
    register_read(fixture.job_register,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_FAILED);
    assert_true(fixture.is_final);
    assert_non_null(strstr(fixture.failure.message, "has sent a reply that cannot be read"));
    tear_down(&fixture);
    end_server(&server);
}

/* etcd may have carried it out. It is asked again, until the deadline. */
TEST(append_whose_reply_cannot_be_read_is_unknown) {
    struct fixture fixture;
    struct server server;
    struct register_entry entry = new_entry(1);
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    start_server(&server, (struct reply[]){one_message("\x1a\x05k")}, 1);
    assert_int_equal(open_at(&fixture, server.endpoint), FAILURE_NONE);
    register_append(fixture.job_register, &entry,
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(500)));
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_UNKNOWN);
    tear_down(&fixture);
    end_server(&server);
    register_entry_clear(&entry);
}

/* A field of bytes, of two bytes for its length. */
static void write_field(int number, const struct text *value, struct text *out) {
    const char head[] = {
        (char)(number << 3 | 2), (char)(value->length % 128 | 128), (char)(value->length / 128)};
    text_append_bytes(out, head, sizeof head);
    text_append_bytes(out, text_string(value), value->length);
}

/* What a read of the last entry is answered with: its key and what it holds. */
static void write_last(const struct register_entry *entry, struct text *out) {
    struct text key = {0};
    struct text value = {0};
    struct text pair = {0};
    text_append_format(&key, "muster/job/entry/%012d", (int)entry->number);
    register_entry_write(entry, &value);
    write_field(1, &key, &pair);
    write_field(5, &value, &pair);
    write_field(2, &pair, out);
    text_clear(&key);
    text_clear(&value);
    text_clear(&pair);
}

/* Whether the entry was there before the watch is not known without that answer: while etcd
 * chooses its leader, it may fail though the watch goes on. */
TEST(watch_begins_anew_when_the_entries_before_it_cannot_be_read) {
    struct fixture fixture;
    struct server server;
    struct register_entry entry = new_entry(2);
    struct text last = {0};
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    write_last(&entry, &last);
    const struct reply watch = {.message = slice_from_string("\x18\x01"), .goes_on = true};
    const struct reply found = {.message = {(const uint8_t *)text_string(&last), last.length}};
    const struct reply replies[] = {watch, {.is_refusal = true}, watch, found};
    start_server(&server, replies, 4);
    assert_int_equal(open_at(&fixture, server.endpoint), FAILURE_NONE);
    assert_int_not_equal(
        register_watch(fixture.job_register, 1,
            instant_after(event_loop_now(fixture.loop), duration_from_seconds(60))),
        0);
    event_loop_run(fixture.loop);
    tear_down(&fixture);
    end_server(&server);
    assert_int_equal(fixture.kind, REGISTER_NEWS);
    text_clear(&last);
    register_entry_clear(&entry);
}
