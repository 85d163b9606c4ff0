/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h fed by a hostile server: requests that the first two bytes choose, and the rest is
 * what a server answers, over a real connection. Every request must be called back exactly once,
 * at the latest when the store is freed. */
#include "fuzz_input.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <muster/store.h>

#define REQUESTS 16
#define MOST_TURNS 64
#define CONNECTING_MILLISECONDS 10000

static void take_answer(void *context, const struct muster_store_result *result) {
    int *count = context;
    size_t bytes = result->value.length;
    (*count)++;
    FUZZ_REQUIRE(*count == 1);
    FUZZ_REQUIRE(result->error != MUSTER_OK || *result->message == '\0');
    FUZZ_REQUIRE(result->error == MUSTER_OK || *result->message != '\0');
    for (size_t i = 0; i < result->count; i++) {
        bytes += result->values[i].length;
    }
    FUZZ_REQUIRE(bytes <= MUSTER_STORE_VALUE_MAXIMUM * (result->count + 1));
}

static int listen_here(int *out_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    FUZZ_REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    FUZZ_REQUIRE(listen(fd, 16) == 0);
    FUZZ_REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

static void submit(struct muster_store *store, unsigned operation, int *count) {
    static const char *const keys[] = {"a", "b"};
    static const struct muster_slice values[] = {{"1", 1}, {"22", 2}};
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = (enum muster_store_operation)operation;
    request.key = "key";
    request.value = (struct muster_slice){"value", 5};
    request.expected = (struct muster_slice){"old", 3};
    request.number = 1;
    request.keys = keys;
    request.values = values;
    request.count = 2;
    if (muster_store_submit(store, &request, take_answer, count, NULL) != MUSTER_OK) {
        *count = 1; /* refused at once: no such operation */
    }
}

/* The hostile side: it sends everything at once, and reads whatever comes. */
static int accept_one(int listener, struct muster_store *store) {
    struct pollfd waiting[] = {{.fd = listener, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            return fd;
        }
        waiting[1].fd = muster_store_fd(store);
        FUZZ_REQUIRE(poll(waiting, 2, CONNECTING_MILLISECONDS) > 0);
        FUZZ_REQUIRE(muster_store_process(store, NULL) == MUSTER_OK);
    }
    return -1;
}

static void drain(int fd) {
    char bytes[4096];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void play(struct muster_store *store, int fd, struct slice input) {
    struct pollfd waiting = {.fd = muster_store_fd(store), .events = POLLIN};
    (void)!send(fd, input.data, input.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int turn = 0; turn < MOST_TURNS && poll(&waiting, 1, 0) > 0; turn++) {
        FUZZ_REQUIRE(muster_store_process(store, NULL) == MUSTER_OK);
        drain(fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    const struct linger at_once = {1, 0}; /* leaves no port behind that waits */
    struct muster_store *store = NULL;
    int counts[REQUESTS + 1] = {0};
    int listener = listen_here(&settings.port);
    settings.host = "127.0.0.1";
    settings.value_maximum = 4096;
    FUZZ_REQUIRE(muster_store_new_tcp(&settings, &store, NULL) == MUSTER_OK);
    unsigned chosen = (unsigned)fuzz_take_byte(&input) | (unsigned)fuzz_take_byte(&input) << 8;
    for (unsigned i = 0; i <= REQUESTS; i++) {
        if (i == REQUESTS || (chosen >> i & 1) != 0) {
            submit(store, i + 1, &counts[i]);
        } else {
            counts[i] = 1;
        }
    }
    int fd = accept_one(listener, store);
    close(listener);
    if (fd >= 0) {
        play(store, fd, input);
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fd);
        (void)muster_store_process(store, NULL);
    }
    muster_store_free(store);
    for (int i = 0; i <= REQUESTS; i++) {
        FUZZ_REQUIRE(counts[i] == 1);
    }
    return 0;
}
