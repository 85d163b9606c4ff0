/* SPDX-License-Identifier: BSD-3-Clause */
/* The bare servers that a store is compared with, on the same kind of loop (libuv). They parse
 * nothing, look nothing up and store nothing.
 *
 *     echo_server REQUEST_BYTES REPLY_BYTES    answers each REQUEST_BYTES with REPLY_BYTES
 *     echo_server broadcast    for each byte received, sends one byte to every other client
 *
 * Prints "PORT <n>" when it listens. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <uv.h>

#define MAXIMUM_REPLY 256

struct client {
    uv_tcp_t tcp;
    size_t pending; /* bytes of an unfinished request */
    struct client *next;
};

struct echo {
    size_t request_length;
    size_t reply_length;
    bool is_broadcast;
    struct client *first;
    char reply[MAXIMUM_REPLY];
    char buffer[65536];
};

static struct echo echo;

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer) {
    (void)handle;
    (void)suggested;
    *out_buffer = uv_buf_init(echo.buffer, sizeof echo.buffer);
}

static void write_bytes(struct client *client, size_t length) {
    uv_buf_t buffer = uv_buf_init(echo.reply, (unsigned int)length);
    (void)uv_try_write((uv_stream_t *)&client->tcp, &buffer, 1); /* so few bytes always fit */
}

static void broadcast(const struct client *sender) {
    for (struct client *client = echo.first; client != NULL; client = client->next) {
        if (client != sender) {
            write_bytes(client, 1);
        }
    }
}

static void client_closed(uv_handle_t *handle) {
    struct client **place = &echo.first;
    while (*place != handle->data) {
        place = &(*place)->next;
    }
    *place = (*place)->next;
    free(handle->data);
}

static void received(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer) {
    (void)buffer;
    struct client *client = stream->data;
    if (length < 0) {
        uv_close((uv_handle_t *)stream, client_closed);
        return;
    }
    if (echo.is_broadcast) {
        broadcast(client);
        return;
    }
    client->pending += (size_t)length;
    while (client->pending >= echo.request_length) {
        client->pending -= echo.request_length;
        write_bytes(client, echo.reply_length);
    }
}

static void connected(uv_stream_t *listener, int status) {
    if (status != 0) {
        return;
    }
    struct client *client = calloc(1, sizeof *client);
    uv_tcp_init(listener->loop, &client->tcp);
    client->tcp.data = client;
    uv_accept(listener, (uv_stream_t *)&client->tcp);
    uv_tcp_nodelay(&client->tcp, 1);
    client->next = echo.first;
    echo.first = client;
    uv_read_start((uv_stream_t *)&client->tcp, allocate, received);
}

int main(int argument_count, char **arguments) {
    if (argument_count == 2 && strcmp(arguments[1], "broadcast") == 0) {
        echo.is_broadcast = true;
    } else if (argument_count == 3) {
        echo.request_length = strtoul(arguments[1], NULL, 10);
        echo.reply_length = strtoul(arguments[2], NULL, 10);
    }
    if (!echo.is_broadcast && (echo.request_length == 0 || echo.reply_length > MAXIMUM_REPLY)) {
        fputs("usage: echo_server REQUEST_BYTES REPLY_BYTES | broadcast\n", stderr);
        return 2;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(loop, &listener);
    uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    if (uv_listen((uv_stream_t *)&listener, SOMAXCONN, connected) != 0) {
        fputs("echo_server: cannot listen\n", stderr);
        return 1;
    }
    int length = sizeof address;
    uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length);
    printf("PORT %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}
