/* SPDX-License-Identifier: BSD-3-Clause */
/* A load generator for TCPStore servers, and for the bare servers they are compared with
 * (bench/echo_server): one thread, epoll, one request in flight per connection. It prints one line
 * of JSON.
 *
 *     store_load --port P [--connections N] [--seconds S] [--operation NAME]
 *         sends set, get, add, check or ping requests
 *     store_load --port P --release N
 *         N clients wait for a key, the key is set: when is the last client released?
 *     store_load --port P --hold N
 *         opens N connections, reports it, and holds them until stdin ends
 *
 * Options for all: --idle N (more connections that do nothing), --half (one client sends half a
 * request first), --bare (no handshake, because the server is bench/echo_server). */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/store/store_codec.h"

#define KEPT_LATENCIES 4000000
#define EVENTS 512
#define SILENCE_MILLISECONDS 1000 /* a server that answers no client for this long has stalled */
#define RELEASE_ROUNDS 15

struct options {
    int port;
    int connections;
    double seconds;
    const char *operation;
    int idle;
    int release;
    int hold;
    bool is_half;
    bool is_bare;
};

struct load {
    struct options options;
    struct bytes request;
    size_t reply_length;
    int epoll;
    int *fds;
    uint64_t *sent_at;
    size_t *received;
    uint32_t *latencies;
    size_t count;
};

static void exit_with_error(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void encode(struct bytes *out, struct store_request request) {
    if (store_request_encode(&request, out) != FAILURE_NONE) {
        abort();
    }
}

static void send_all(int fd, const void *data, size_t length) {
    if (send(fd, data, length, MSG_NOSIGNAL) != (ssize_t)length) {
        exit_with_error("send");
    }
}

static void receive_all(int fd, void *data, size_t length) {
    for (size_t got = 0; got < length;) {
        ssize_t now = recv(fd, (uint8_t *)data + got, length - got, 0);
        if (now <= 0) {
            exit_with_error("recv");
        }
        got += (size_t)now;
    }
}

static void ping(int fd) {
    uint8_t nonce[4];
    struct bytes bytes = {0};
    encode(&bytes, (struct store_request){.operation = STORE_PING, .nonce = 1});
    send_all(fd, bytes.data, bytes.length);
    receive_all(fd, nonce, sizeof nonce);
    bytes_clear(&bytes);
}

static int open_connection(const struct options *options) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        exit_with_error("connect");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!options->is_bare) {
        struct bytes bytes = {0};
        encode(&bytes, (struct store_request){.operation = STORE_VALIDATE});
        send_all(fd, bytes.data, bytes.length);
        bytes_clear(&bytes);
        ping(fd);
    }
    return fd;
}

static void open_idle(const struct options *options) {
    for (int i = 0; i < options->idle; i++) {
        (void)open_connection(options); /* the end of the process closes it */
    }
}

static const struct slice key = {(const uint8_t *)"/bench/key", 10};
static const struct slice counter = {(const uint8_t *)"/bench/counter", 14};
static const struct slice value = {(const uint8_t *)"0123456789abcdef", 16};

/* SET has no reply of its own. A PING in the same segment shows that the SET was carried out. */
static void choose_request(struct load *load) {
    const char *name = load->options.operation;
    struct store_request ping_request = {.operation = STORE_PING, .nonce = 1};
    if (strcmp(name, "set") == 0) {
        encode(&load->request,
            (struct store_request){.operation = STORE_SET, .key = key, .value = value});
        encode(&load->request, ping_request);
        load->reply_length = 4;
    } else if (strcmp(name, "get") == 0) {
        encode(&load->request, (struct store_request){.operation = STORE_GET, .key = key});
        load->reply_length = 8 + value.length;
    } else if (strcmp(name, "add") == 0) {
        encode(&load->request,
            (struct store_request){.operation = STORE_ADD, .key = counter, .number = 1});
        load->reply_length = 8;
    } else if (strcmp(name, "check") == 0) {
        encode(&load->request,
            (struct store_request){.operation = STORE_CHECK, .keys = &key, .count = 1});
        load->reply_length = 1;
    } else if (strcmp(name, "ping") == 0) {
        encode(&load->request, ping_request);
        load->reply_length = 4;
    } else {
        fprintf(stderr, "unknown operation %s\n", name);
        exit(2);
    }
}

static void prepare_key(const struct load *load) {
    struct bytes bytes = {0};
    encode(&bytes, (struct store_request){.operation = STORE_SET, .key = key, .value = value});
    send_all(load->fds[0], bytes.data, bytes.length);
    bytes_clear(&bytes);
    ping(load->fds[0]);
}

static void watch(int epoll, int fd, int index) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        exit_with_error("epoll_ctl");
    }
}

static void start_request(struct load *load, size_t index) {
    load->received[index] = 0;
    load->sent_at[index] = now_nanoseconds();
    send_all(load->fds[index], load->request.data, load->request.length);
}

static void handle_reply(struct load *load, size_t index) {
    uint8_t buffer[256];
    ssize_t length = recv(load->fds[index], buffer, sizeof buffer, 0);
    if (length <= 0) {
        exit_with_error("the server closed a connection");
    }
    load->received[index] += (size_t)length;
    if (load->received[index] < load->reply_length) {
        return;
    }
    uint64_t latency = now_nanoseconds() - load->sent_at[index];
    if (load->count < KEPT_LATENCIES) {
        load->latencies[load->count] = latency > UINT32_MAX ? UINT32_MAX : (uint32_t)latency;
    }
    load->count++;
    start_request(load, index);
}

static int compare_latencies(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void print_latencies(struct load *load, double seconds, bool is_stalled) {
    size_t kept = load->count < KEPT_LATENCIES ? load->count : KEPT_LATENCIES;
    qsort(load->latencies, kept, sizeof *load->latencies, compare_latencies);
    printf("{\"operations_per_second\": %.1f, \"operations\": %zu, \"p50_microseconds\": %.2f, "
           "\"p99_microseconds\": %.2f, \"largest_microseconds\": %.2f, \"stalled\": %s}\n",
        (double)load->count / seconds, load->count,
        kept > 0 ? load->latencies[kept / 2] / 1000.0 : 0,
        kept > 0 ? load->latencies[kept * 99 / 100] / 1000.0 : 0,
        kept > 0 ? load->latencies[kept - 1] / 1000.0 : 0, is_stalled ? "true" : "false");
}

static void run_requests(struct load *load) {
    uint64_t start = now_nanoseconds();
    uint64_t end = start + (uint64_t)(load->options.seconds * 1e9);
    bool is_stalled = false;
    for (size_t i = 0; i < (size_t)load->options.connections; i++) {
        start_request(load, i);
    }
    while (!is_stalled && now_nanoseconds() < end) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(load->epoll, events, EVENTS, SILENCE_MILLISECONDS);
        is_stalled = count == 0;
        for (int i = 0; i < count; i++) {
            handle_reply(load, events[i].data.u32);
        }
    }
    print_latencies(load, (double)(now_nanoseconds() - start) / 1e9, is_stalled);
}

/* Sends an operation byte and half a key length, so the server must wait for the rest. */
static void send_half(const struct options *options) {
    int fd = open_connection(options);
    send_all(fd, "\x01\x05\0\0", 4);
}

static void measure_requests(struct load *load) {
    size_t connections = (size_t)load->options.connections;
    load->fds = calloc(connections, sizeof *load->fds);
    load->sent_at = calloc(connections, sizeof *load->sent_at);
    load->received = calloc(connections, sizeof *load->received);
    load->latencies = calloc(KEPT_LATENCIES, sizeof *load->latencies);
    load->epoll = epoll_create1(0);
    for (size_t i = 0; i < connections; i++) {
        load->fds[i] = open_connection(&load->options);
        watch(load->epoll, load->fds[i], (int)i);
    }
    choose_request(load);
    if (!load->options.is_bare) {
        prepare_key(load);
    }
    open_idle(&load->options);
    if (load->options.is_half) {
        send_half(&load->options);
    }
    run_requests(load);
}

/* Makes every client wait for the key of this round, and checks that all of them wait. A bare
 * server needs no request for that. */
static void wait_for_round(const struct load *load, struct slice round_key) {
    struct bytes bytes = {0};
    encode(&bytes, (struct store_request){.operation = STORE_WAIT, .keys = &round_key, .count = 1});
    for (int i = 0; i < load->options.release && !load->options.is_bare; i++) {
        send_all(load->fds[i], bytes.data, bytes.length);
        ping(load->fds[i]);
    }
    bytes_clear(&bytes);
}

/* The milliseconds from the SET until the last client is released. */
static double release_round(struct load *load, int setter, int round) {
    char name[48];
    int length = snprintf(name, sizeof name, "/bench/%d/round%d", (int)getpid(), round);
    struct slice round_key = {(const uint8_t *)name, (size_t)length};
    wait_for_round(load, round_key);
    struct bytes set = {0};
    if (load->options.is_bare) {
        (void)!bytes_append(&set, "x", 1);
    } else {
        encode(
            &set, (struct store_request){.operation = STORE_SET, .key = round_key, .value = value});
    }
    uint64_t start = now_nanoseconds();
    send_all(setter, set.data, set.length);
    bytes_clear(&set);
    for (int released = 0; released < load->options.release;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(load->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            uint8_t byte;
            receive_all(load->fds[events[i].data.u32], &byte, 1);
            released++;
        }
    }
    return (double)(now_nanoseconds() - start) / 1e6;
}

static void measure_release(struct load *load) {
    size_t waiting = (size_t)load->options.release;
    load->fds = calloc(waiting, sizeof *load->fds);
    load->epoll = epoll_create1(0);
    for (size_t i = 0; i < waiting; i++) {
        load->fds[i] = open_connection(&load->options);
        watch(load->epoll, load->fds[i], (int)i);
    }
    int setter = open_connection(&load->options);
    printf("{\"last_release_milliseconds\": [");
    for (int round = 0; round < RELEASE_ROUNDS; round++) {
        printf("%s%.3f", round == 0 ? "" : ", ", release_round(load, setter, round));
    }
    printf("]}\n");
}

static void hold(const struct options *options) {
    for (int i = 0; i < options->hold; i++) {
        (void)open_connection(options);
    }
    printf("{\"held\": %d}\n", options->hold);
    fflush(stdout);
    while (getchar() != EOF) {
    }
}

static struct options read_options(int argument_count, char **arguments) {
    static const struct option known[] = {{"port", 1, NULL, 'p'}, {"connections", 1, NULL, 'c'},
        {"seconds", 1, NULL, 's'}, {"operation", 1, NULL, 'o'}, {"idle", 1, NULL, 'i'},
        {"release", 1, NULL, 'r'}, {"hold", 1, NULL, 'h'}, {"half", 0, NULL, 'f'},
        {"bare", 0, NULL, 'b'}, {NULL, 0, NULL, 0}};
    struct options options = {.connections = 1, .seconds = 1, .operation = "ping"};
    for (int found; (found = getopt_long(argument_count, arguments, "", known, NULL)) != -1;) {
        switch (found) {
        case 'p':
            options.port = atoi(optarg);
            break;
        case 'c':
            options.connections = atoi(optarg);
            break;
        case 's':
            options.seconds = atof(optarg);
            break;
        case 'o':
            options.operation = optarg;
            break;
        case 'i':
            options.idle = atoi(optarg);
            break;
        case 'r':
            options.release = atoi(optarg);
            break;
        case 'h':
            options.hold = atoi(optarg);
            break;
        case 'f':
            options.is_half = true;
            break;
        case 'b':
            options.is_bare = true;
            break;
        default:
            exit(2);
        }
    }
    return options;
}

int main(int argument_count, char **arguments) {
    struct load load = {.options = read_options(argument_count, arguments)};
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (load.options.hold > 0) {
        hold(&load.options);
    } else if (load.options.release > 0) {
        measure_release(&load);
    } else {
        measure_requests(&load);
    }
    return 0;
}
