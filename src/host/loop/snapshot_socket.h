/* SPDX-License-Identifier: BSD-3-Clause */
/* A Unix socket that sends one text to each client and closes the connection: a running program
 * shows its state to other processes of the same user. The owner makes the text. What it is may
 * follow from a question, which is the head of an HTTP request. */
#ifndef MUSTER_HOST_LOOP_SNAPSHOT_SOCKET_H
#define MUSTER_HOST_LOOP_SNAPSHOT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

struct snapshot_socket;

/* Creates the socket (mode 0600) at `path`. An older socket of this user at that path is replaced.
 * `append` makes the text; it is called from the event loop. A few clients are served at a time,
 * further ones are closed. FAILURE_INVALID when something else is at `path`, FAILURE_SYSTEM
 * otherwise. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_new(struct event_loop *loop,
    const char *path, void (*append)(void *context, struct text *out), void *context,
    struct snapshot_socket **out_socket, struct failure *failure);

/* Who has asked; no other client gets the same number. */
typedef uint64_t snapshot_client;

/* The same with a question before each text, of this user or root: `answer` gets its path, which is
 * empty where that is no GET. It returns whether it has made the text; if not, it is sent with
 * snapshot_socket_send. Who does not ask, or does not read, is closed after some seconds. Where
 * there are many, the others wait for them. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_new_asked(
    struct event_loop *loop, const char *path,
    bool (*answer)(void *context, const char *asked, snapshot_client client, struct text *out),
    void *context, struct snapshot_socket **out_socket, struct failure *failure);

/* Appends an HTTP answer: JSON, or words where there is a status as "404 Not Found". */
void snapshot_answer_write(const char *status, const struct text *body, struct text *out);

/* The answer to who waits for one; it is taken. Does nothing for a client that has gone. */
void snapshot_socket_send(
    struct snapshot_socket *socket, snapshot_client client, struct text *text);

/* Removes the socket, unless something else is at its path by now. Accepts NULL. */
void snapshot_socket_free(struct snapshot_socket *socket);

/* The client's side: connects, says the question unless that is NULL, and calls `take` for each
 * line of the text as it comes, without its newline. It blocks, but no longer than some seconds
 * without a byte. FAILURE_SYSTEM when there is no server, FAILURE_LIMIT for a text with a line of
 * more than SNAPSHOT_LINE_MAXIMUM bytes. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_read(const char *path,
    const char *question, void (*take)(void *context, struct slice line), void *context,
    struct failure *failure);

#define SNAPSHOT_LINE_MAXIMUM ((size_t)1 << 20)

#endif
