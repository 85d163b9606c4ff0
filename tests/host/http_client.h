/* SPDX-License-Identifier: BSD-3-Clause */
/* A client for an HTTP server on a loop of the same thread. */
#ifndef MUSTER_TESTS_HOST_HTTP_CLIENT_H
#define MUSTER_TESTS_HOST_HTTP_CLIENT_H

#include <string.h>

#include "base/text.h"
#include "host/raw_client.h"

/* Reads everything until the server closes the connection. */
static inline void http_read(struct event_loop *loop, int fd, struct text *out) {
    char part[4096];
    ssize_t count;
    do {
        client_await(loop, fd);
        count = recv(fd, part, sizeof part, 0);
        if (count > 0) {
            text_append_bytes(out, part, (size_t)count);
        }
    } while (count > 0);
    close(fd);
}

/* Sends one request, such as "GET /health HTTP/1.1", and returns the answer. */
static inline void http_ask(
    struct event_loop *loop, int port, const char *request, struct text *out) {
    int fd = client_connect(port);
    char *head = text_format("%s\r\nHost: localhost\r\n\r\n", request);
    client_send(fd, head, strlen(head));
    free(head);
    http_read(loop, fd, out);
}

#endif
