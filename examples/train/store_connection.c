/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum operation {
    OPERATION_VALIDATE = 0x00,
    OPERATION_SET = 0x01,
    OPERATION_GET = 0x03,
    OPERATION_WAIT = 0x06,
    OPERATION_DELETE = 0x08,
    OPERATION_PING = 0x0d,
};

#define HANDSHAKE_MAGIC 0x3C85F7CEu
#define REQUEST_CAPACITY 65536

/* A request that is being built. It is sent with one write. */
struct request {
    unsigned char bytes[REQUEST_CAPACITY];
    size_t size;
};

static _Noreturn void give_up(const char *what) {
    fprintf(stderr, "store: %s: %s\n", what, errno == 0 ? "connection closed" : strerror(errno));
    exit(1);
}

static void put_bytes(struct request *request, const void *bytes, size_t size) {
    if (size > sizeof(request->bytes) - request->size) {
        errno = EMSGSIZE;
        give_up("request");
    }
    memcpy(request->bytes + request->size, bytes, size);
    request->size += size;
}

/* TCPStore sends integers in little-endian order. */
static void put_integer(struct request *request, uint64_t value, int width) {
    for (int i = 0; i < width; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        put_bytes(request, &byte, 1);
    }
}

/* PyTorch's clients put a slash in front of every key. */
static void put_key(struct request *request, const char *key) {
    put_integer(request, strlen(key) + 1, 8);
    put_bytes(request, "/", 1);
    put_bytes(request, key, strlen(key));
}

static void send_request(struct store_connection *store, const struct request *request) {
    size_t sent = 0;
    while (sent < request->size) {
        ssize_t count = send(store->fd, request->bytes + sent, request->size - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            give_up("send");
        }
        sent += count > 0 ? (size_t)count : 0;
    }
}

static void receive(struct store_connection *store, void *out_bytes, size_t size) {
    unsigned char *bytes = out_bytes;
    while (size > 0) {
        ssize_t count = recv(store->fd, bytes, size, 0);
        if (count == 0) {
            errno = 0;
        }
        if (count <= 0 && errno != EINTR) {
            give_up("receive");
        }
        if (count > 0) {
            bytes += count;
            size -= (size_t)count;
        }
    }
}

static uint64_t receive_integer(struct store_connection *store) {
    unsigned char bytes[8];
    receive(store, bytes, sizeof(bytes));
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
    int problem = getaddrinfo(host, port, &hints, &addresses);
    if (problem != 0) {
        fprintf(stderr, "store: %s port %s: %s\n", host, port, gai_strerror(problem));
        exit(1);
    }
    int fd = -1;
    for (struct addrinfo *one = addresses; one != NULL && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(addresses);
    return fd;
}

void store_connect(struct store_connection *store, const char *host, const char *port) {
    store->fd = connect_to(host, port);
    if (store->fd < 0) {
        give_up("connect");
    }
    int yes = 1;
    setsockopt(store->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    uint32_t nonce = (uint32_t)getpid(), echo = 0;
    struct request request = {.size = 0};
    put_integer(&request, OPERATION_VALIDATE, 1);
    put_integer(&request, HANDSHAKE_MAGIC, 4);
    put_integer(&request, OPERATION_PING, 1);
    put_bytes(&request, &nonce, sizeof(nonce));
    send_request(store, &request);
    receive(store, &echo, sizeof(echo));
    if (echo != nonce) {
        errno = EPROTO;
        give_up("handshake");
    }
}

void store_set(struct store_connection *store, const char *key, const void *value, size_t size) {
    struct request request = {.size = 0};
    put_integer(&request, OPERATION_SET, 1);
    put_key(&request, key);
    put_integer(&request, size, 8);
    put_bytes(&request, value, size);
    send_request(store, &request);
}

void store_get(struct store_connection *store, const char *key, void *out_value, size_t size) {
    /* A GET of a missing key fails at once, so a WAIT for the key is sent first. */
    struct request request = {.size = 0};
    put_integer(&request, OPERATION_WAIT, 1);
    put_integer(&request, 1, 8);
    put_key(&request, key);
    send_request(store, &request);
    unsigned char released;
    receive(store, &released, 1);
    request.size = 0;
    put_integer(&request, OPERATION_GET, 1);
    put_key(&request, key);
    send_request(store, &request);
    if (released != 0 || receive_integer(store) != size) {
        errno = EPROTO;
        give_up(key);
    }
    receive(store, out_value, size);
}

void store_delete(struct store_connection *store, const char *key) {
    struct request request = {.size = 0};
    put_integer(&request, OPERATION_DELETE, 1);
    put_key(&request, key);
    send_request(store, &request);
    receive_integer(store);
}

void store_disconnect(struct store_connection *store) {
    close(store->fd);
    store->fd = -1;
}
