/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said without etcd. tests/interop asks a real one. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "one_register.h"
#include "wire/register/register_entry_text.h"

TEST(settings_with_which_no_etcd_can_be_asked_do_not_open) {
    static const struct refused_settings refused[] = {
        {"", {NULL}, "one of its members is empty"},
        {"a:1,,b:2", {NULL}, "one of its members is empty"},
        {"a:x", {NULL}, "--rdzv-endpoint: "},
        {"a:x", {NULL}, "'a:x'"},
        {"https://a:1,b:2", {NULL}, "some of its members have https://"},
        {"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", {NULL}, "names 17 members of etcd"},
        {"a", {"protocol=tcp"}, "it is http or https"},
        {"https://a", {"protocol=http"}, "have https://"},
        {"a", {"ca_cert=/dev/null"}, "certificates need protocol=https"},
        {"a", {"ca_cert=/missing"}, "ca_cert=/missing"},
        {"https://a", {"cert=/dev/null"}, "need each other"},
        {"a", {"user=me"}, "user needs password"},
        {"a", {"password=x"}, "user needs password"},
        {"a", {"user=me", "password_file=/missing"}, "/missing does not exist"},
    };
    struct one_register one;
    one_register_set_up(&one);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        one_register_expect_refused(&one, "etcd", &refused[i]);
    }
    one_register_tear_down(&one);
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
    const char *status; /* of gRPC; NULL: 0, with the message */
    const char *words;  /* of the status */
    bool is_foreign;    /* it speaks HTTP/1.1, whatever it is asked */
    bool goes_on;       /* more messages could follow */
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

/* A header that stands in no table of HTTP/2. */
static size_t write_header(uint8_t *out, const char *name, const char *value) {
    const size_t name_length = strlen(name);
    const size_t value_length = strlen(value);
    out[0] = 0;
    out[1] = (uint8_t)name_length;
    memcpy(out + 2, name, name_length);
    out[2 + name_length] = (uint8_t)value_length;
    memcpy(out + 3 + name_length, value, value_length);
    return 3 + name_length + value_length;
}

static void send_reply(int connection, const struct reply *reply) {
    static const char foreign[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    uint8_t body[1024] = {0}; /* not compressed, and its length */
    uint8_t end[256];
    size_t length = reply->message.length;
    if (reply->is_foreign) {
        assert_int_equal(send(connection, foreign, strlen(foreign), MSG_NOSIGNAL), strlen(foreign));
        return;
    }
    assert_true(5 + length <= sizeof body);
    body[3] = (uint8_t)(length >> 8);
    body[4] = (uint8_t)length;
    if (length > 0) {
        memcpy(body + 5, reply->message.data, length);
    }
    send_frame(connection, FRAME_SETTINGS, 0, 0, "", 0);
    send_frame(connection, FRAME_SETTINGS, 1, 0, "", 0); /* the client's are known */
    send_frame(connection, FRAME_HEADERS, END_OF_HEADERS, 1, "\x88", 1); /* 200 */
    if (reply->status == NULL) {
        send_frame(connection, FRAME_DATA, 0, 1, body, 5 + length);
    }
    if (!reply->goes_on) {
        size_t end_length =
            write_header(end, "grpc-status", reply->status == NULL ? "0" : reply->status);
        if (reply->words != NULL) {
            end_length += write_header(end + end_length, "grpc-message", reply->words);
        }
        send_frame(connection, FRAME_HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, end, end_length);
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

/* A register whose etcd is that server. */
struct fixture {
    struct one_register one;
    struct server server;
};

static void set_up(struct fixture *fixture, const struct reply *replies, int count) {
    one_register_set_up(&fixture->one);
    start_server(&fixture->server, replies, count);
    assert_int_equal(
        one_register_open(&fixture->one, "etcd-v3", fixture->server.endpoint), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    one_register_tear_down(&fixture->one);
    end_server(&fixture->server);
}

#define NEED_CURL()                                                                                \
    if (!has_curl()) {                                                                             \
        SKIP_BECAUSE("libcurl is not installed");                                                  \
    }

/* What only the user can mend is final, and comes with advice. What may pass is asked again. */
TEST(refusals_are_final_or_asked_again) {
    static const struct {
        struct reply reply;
        const char *words; /* NULL: it is asked again, and answered */
    } rows[] = {
        {{.status = "7", .words = "etcdserver%3A permission denied %zz%"},
            "etcdserver: permission denied %zz% (gRPC status 7); the user needs a role that may "
            "read and write the keys from muster/ up to muster0"},
        {{.status = "16", .words = "invalid auth token"}, "invalid auth token (gRPC status 16)"},
        {{.status = "8", .words = "etcdserver: mvcc: database space exceeded"},
            "; make room there (etcdctl compact, defrag, alarm disarm)"},
        {{.status = "12"}, "no reason given (gRPC status 12)"},
        {{.message = {(const uint8_t *)"\x12\x05k", 3}}, "has sent a reply that cannot be read"},
        {{.status = "8", .words = "etcdserver: too many requests"}, NULL},
        {{.status = "14", .words = "etcdserver: no leader"}, NULL},
        {{.status = "x"}, NULL},
        {{.is_foreign = true}, NULL},
    };
    NEED_CURL();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture fixture;
        const struct reply replies[] = {rows[i].reply, {.message = {0}}};
        set_up(&fixture, replies, rows[i].words == NULL ? 2 : 1);
        one_register_read(&fixture.one, FAR);
        if (rows[i].words == NULL) {
            one_register_expect(&fixture.one, REGISTER_READ, false, "");
        } else {
            one_register_expect(&fixture.one, REGISTER_FAILED, true, rows[i].words);
            one_register_expect(&fixture.one, REGISTER_FAILED, true, fixture.server.endpoint);
        }
        tear_down(&fixture);
    }
}

/* etcd may have carried it out. It is asked again. */
TEST(append_whose_reply_cannot_be_read_is_tried_again) {
    struct fixture fixture;
    const struct reply replies[] = {
        {.message = slice_from_string("\x1a\x05k")}, {.message = slice_from_string("\x10\x01")}};
    NEED_CURL();
    set_up(&fixture, replies, 2);
    one_register_append(&fixture.one, 1, FAR);
    one_register_expect(&fixture.one, REGISTER_WON, false, "");
    tear_down(&fixture);
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
    struct text last = {0};
    NEED_CURL();
    const struct one_register one = {.term = 1};
    struct register_entry entry = one_register_entry(&one, 2);
    write_last(&entry, &last);
    const struct reply watch = {.message = slice_from_string("\x18\x01"), .goes_on = true};
    const struct reply found = {.message = {(const uint8_t *)text_string(&last), last.length}};
    const struct reply replies[] = {watch, {.status = "14"}, watch, found};
    set_up(&fixture, replies, 4);
    one_register_await(&fixture.one,
        register_watch(fixture.one.job_register, 1, one_register_deadline(&fixture.one, FAR)));
    one_register_expect(&fixture.one, REGISTER_NEWS, false, "");
    assert_int_equal(fixture.one.number, 2);
    tear_down(&fixture);
    text_clear(&last);
    register_entry_clear(&entry);
}

TEST(a_watch_that_etcd_ends_is_told) {
    struct fixture fixture;
    const struct reply canceled = {.message = slice_from_string("\x20\x01")};
    NEED_CURL();
    set_up(&fixture, &canceled, 1);
    one_register_await(&fixture.one,
        register_watch(fixture.one.job_register, 1, one_register_deadline(&fixture.one, FAR)));
    one_register_expect(&fixture.one, REGISTER_FAILED, true, "does not tell of new entries");
    tear_down(&fixture);
}

/* {a user's password from a file, what the server answers to its login} */
TEST(a_login_without_a_token_is_told) {
    struct fixture fixture;
    char *place = temporary_place_new();
    char *setting = text_format("password_file=%s/password", place);
    const struct reply none = {.message = slice_from_string("\x12\x05k")};
    NEED_CURL();
    write_whole_file(setting + strlen("password_file="), "secret\n");
    one_register_set_up(&fixture.one);
    text_list_add(&fixture.one.conf, "user=me");
    text_list_add_taken(&fixture.one.conf, setting);
    start_server(&fixture.server, &none, 1);
    assert_int_equal(
        one_register_open(&fixture.one, "etcd", fixture.server.endpoint), FAILURE_NONE);
    one_register_read(&fixture.one, FAR);
    one_register_expect(&fixture.one, REGISTER_FAILED, true, "has sent no token for its user");
    tear_down(&fixture);
    temporary_place_free(place);
}
