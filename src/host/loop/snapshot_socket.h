/* SPDX-License-Identifier: BSD-3-Clause */
/* A Unix socket that sends one text to each client and closes the connection: a running program
 * shows its state to other processes of the same user. The owner makes the text. What it is may
 * follow from a question, which is the head of an HTTP request. */
#ifndef MUSTER_HOST_LOOP_SNAPSHOT_SOCKET_H
#define MUSTER_HOST_LOOP_SNAPSHOT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
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

struct snapshot_question {
    const char *path; /* of a GET; "": it is none */
    uint64_t ticket;
    int64_t place; /* for who answers, from one piece to the next; 0 at first */
};

enum snapshot_answer {
    SNAPSHOT_WHOLE,    /* this is all, or the last of it */
    SNAPSHOT_LATER,    /* snapshot_socket_answer says it, with the ticket */
    SNAPSHOT_PIECE,    /* and more, when it has been written */
    SNAPSHOT_FOLLOWED, /* and more, when there is: snapshot_socket_wake */
};

/* The same with a question before each text, of this user or root. Who does not ask, or does not
 * read, is closed after some seconds, and so is who gets no answer. Eight are answered at a time,
 * and eight may follow; where there are more, the others wait. `answer` is called again for each
 * piece. A piece should have SNAPSHOT_PIECE_BYTES at most: so the loop's other work waits for one
 * piece only. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_new_asked(
    struct event_loop *loop, const char *path,
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out),
    void *context, struct snapshot_socket **out_socket, struct failure *failure);

#define SNAPSHOT_PIECE_BYTES ((size_t)64 * 1024)

/* Appends an answer as HTTP has it: JSON for "200 OK", words for another status. */
void snapshot_answer_append(const char *status, struct slice body, struct text *out);

/* Sends the text to who has this ticket, if it is still there. */
void snapshot_socket_answer(
    struct snapshot_socket *socket, uint64_t ticket, struct text *text_taken);

/* Those who follow are to be told what is new. */
void snapshot_socket_wake(struct snapshot_socket *socket);

/* Removes the socket, unless something else is at its path by now. Accepts NULL. */
void snapshot_socket_free(struct snapshot_socket *socket);

/* The client's side: connects, says the question unless that is NULL, and calls `take` for each
 * line of the text as it comes, without its newline. It blocks, but no longer than `patience`
 * without a byte. FAILURE_SYSTEM when there is no server, FAILURE_TIMEOUT when it has no place or
 * says nothing, FAILURE_LIMIT for a text with a line of more than SNAPSHOT_LINE_MAXIMUM bytes. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_read(const char *path,
    const char *question, struct duration patience, void (*take)(void *context, struct slice line),
    void *context, struct failure *failure);

/* The same in steps, for who follows several. The caller closes the descriptor. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_ask(const char *path,
    const char *question, struct duration patience, int *out_fd, struct failure *failure);
/* Reads once, which may block; `come` was made for SNAPSHOT_ROOM bytes. False at the end: errno is
 * in `out_error`, or 0, or EMSGSIZE for a line that is too long. */
bool snapshot_socket_take(int fd, struct bytes *come,
    void (*take)(void *context, struct slice line), void *context, int *out_error);

#define SNAPSHOT_LINE_MAXIMUM ((size_t)1 << 20)
#define SNAPSHOT_ROOM (SNAPSHOT_LINE_MAXIMUM + 65536)

#endif
