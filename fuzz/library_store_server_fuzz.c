/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store_server.h fed by hostile clients: each piece of the input is sent by one of three
 * connections. A store of the library, which connects afterwards, is served as if nothing were. */
#include "fuzz_input.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <muster/store.h>
#include <muster/store_server.h>

#define CLIENTS 3
#define MOST_TURNS 64
#define LONG_MILLISECONDS 10000

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)port)};
    const struct linger at_once = {1, 0}; /* leaves no port behind that waits */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return fd;
}

static void process(struct muster_store_server *server) {
    struct pollfd waiting = {.fd = muster_store_server_fd(server), .events = POLLIN};
    for (int turn = 0; turn < MOST_TURNS && poll(&waiting, 1, 0) > 0; turn++) {
        FUZZ_REQUIRE(muster_store_server_process(server, NULL) == MUSTER_OK);
    }
}

static void drain(int fd) {
    char bytes[4096];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void take_answer(void *context, const struct muster_store_result *result) {
    FUZZ_REQUIRE(result->error == MUSTER_OK);
    *(int *)context = 1;
}

static void expect_service(struct muster_store_server *server) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store_request request = MUSTER_STORE_REQUEST; /* a ping */
    struct muster_store *store = NULL;
    int is_answered = 0;
    settings.host = "127.0.0.1";
    settings.port = muster_store_server_port(server);
    FUZZ_REQUIRE(muster_store_new_tcp(&settings, &store, NULL) == MUSTER_OK);
    FUZZ_REQUIRE(
        muster_store_submit(store, &request, take_answer, &is_answered, NULL) == MUSTER_OK);
    while (!is_answered) {
        struct pollfd waiting[] = {{.fd = muster_store_fd(store), .events = POLLIN},
            {.fd = muster_store_server_fd(server), .events = POLLIN}};
        FUZZ_REQUIRE(poll(waiting, 2, LONG_MILLISECONDS) > 0);
        FUZZ_REQUIRE(muster_store_server_process(server, NULL) == MUSTER_OK);
        FUZZ_REQUIRE(muster_store_process(store, NULL) == MUSTER_OK);
    }
    muster_store_free(store);
}

/* A piece: a byte with who sends it and its length, then its bytes. */
static void play(
    struct muster_store_server *server, const int clients[CLIENTS], struct slice input) {
    while (input.length > 0) {
        uint8_t head = fuzz_take_byte(&input);
        size_t length = (size_t)head / CLIENTS + 1;
        length = length < input.length ? length : input.length;
        int fd = clients[head % CLIENTS];
        (void)!send(fd, input.data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        input.data += length;
        input.length -= length;
        process(server);
        drain(fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    struct muster_store_server *server = NULL;
    int clients[CLIENTS];
    settings.host = "127.0.0.1";
    settings.is_polled = 1;
    settings.memory = 1 << 20;
    FUZZ_REQUIRE(muster_store_server_new(&settings, &server, NULL) == MUSTER_OK);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to(muster_store_server_port(server));
    }
    play(server, clients, (struct slice){data, size});
    expect_service(server);
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    process(server);
    muster_store_server_free(server);
    return 0;
}
