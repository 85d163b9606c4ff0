/* SPDX-License-Identifier: BSD-3-Clause */
/* A store server on a thread of its own with its own event loop. So a slow disk or many log lines
 * in the agent delay no worker, and a storm of requests to the store delays no kill deadline. The
 * two threads share nothing but a queue of messages. No signal is ever delivered to the store
 * thread. */
#ifndef MUSTER_HOST_STORE_STORE_THREAD_H
#define MUSTER_HOST_STORE_STORE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/table.h"
#include "host/loop/event_loop.h"
#include "host/store/store_server.h"

/* A mailbox between the store thread and its user. Any thread may post a letter; one thread takes
 * them, first in, first out. A letter that replaces an older one of its kind takes that one's place
 * in the queue, so that a busy user finds little more than one letter per client. host/store_thread
 * wakes the reader and gives letters their meaning. */

enum store_letter_kind {
    /* to the store's thread */
    STORE_LETTER_RENEW,    /* name: the prefix to keep, or NULL; done */
    STORE_LETTER_SERVE,    /* seeds; done */
    STORE_LETTER_STAND_BY, /* value: the answer; done */
    STORE_LETTER_DROP,     /* name */
    STORE_LETTER_TELL,     /* name: a queue; value, or NULL */
    STORE_LETTER_STOP,
    /* to its user */
    STORE_LETTER_DONE,    /* of RENEW, SERVE and STAND_BY: done, unless it is NULL */
    STORE_LETTER_BEAT,    /* name, value */
    STORE_LETTER_GONE,    /* name, value */
    STORE_LETTER_SILENT,  /* name */
    STORE_LETTER_REACHED, /* name: the address */
    STORE_LETTER_WATCHED_WRITTEN,
    STORE_LETTER_CONNECTIONS, /* count */
};

struct store_letter {
    struct store_letter *next;
    enum store_letter_kind kind;
    char *name;
    char *value;
    size_t count;
    struct store_seeds seeds;
    void (*done)(void *context);
    void *context;
};

/* Copies the strings, each of which may be NULL. Never NULL. */
struct store_letter *store_letter_new(
    enum store_letter_kind kind, const char *name, const char *value);
/* NULL is fine. */
void store_letter_free(struct store_letter *letter);

struct store_mail {
    pthread_mutex_t lock;
    struct store_letter *first;
    struct store_letter **end; /* where the next letter is linked */
    struct table *beats; /* name -> its BEAT that is still in the box, unless a GONE followed it */
    struct store_letter *connections; /* always after all other letters; NULL: none */
};

void store_mail_init(struct store_mail *mail);
/* Frees the letters in it. */
void store_mail_clear(struct store_mail *mail);

/* May be called from another thread. A BEAT updates the value of an earlier BEAT of the same name
 * that is still in the box, unless a GONE of that name is between them. Only the last CONNECTIONS
 * is kept; it is taken after all other letters. */
void store_mail_post(struct store_mail *mail, struct store_letter *letter_taken);

/* Removes and returns the next letter, which the caller frees; or NULL. */
struct store_letter *store_mail_take(struct store_mail *mail);

bool store_mail_is_empty(struct store_mail *mail);

struct store_thread;

/* Starts serving `listening_fd_taken` and the listening sockets of the settings, which are closed
 * when this fails. `loop` is the caller's own:
 * callbacks of this module, the observer's included, run on it. The log's write function is called
 * from the store thread, so it must be thread-safe. FAILURE_SYSTEM when no thread or loop can be
 * created. */
__attribute__((warn_unused_result)) enum failure_code store_thread_start(struct event_loop *loop,
    int listening_fd_taken, const struct store_server_settings *settings,
    struct store_thread **out_thread, struct failure *failure);

/* The port clients connect to. */
int store_thread_port(const struct store_thread *thread);

/* Asks for an empty store on the same port (see store_server_renew; `kept_prefix` is copied, NULL
 * keeps nothing). `done` is called on the caller's loop once the old store is gone. Several
 * requests are answered in their order. */
void store_thread_renew(struct store_thread *thread, const char *kept_prefix,
    void (*done)(void *context), void *context);

/* Begins to serve what stood by (store_server_serve). The seeds are taken: the caller's list is
 * empty then. `done`, unless it is NULL, is called on the caller's loop once clients are served. */
void store_thread_serve(struct store_thread *thread, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context);

/* Stands by (store_server_stand_by; `answer` is copied). `done`, unless it is NULL, is called on
 * the caller's loop once every connection of a store that was served is closed. What the observer
 * is told before that is still about that store, and includes `gone` of every client of it. */
void store_thread_stand_by(
    struct store_thread *thread, const char *answer, void (*done)(void *context), void *context);

/* Closes the connection that holds the presence key `name` (copied), because its client has
 * stalled. The observer's `gone` follows, unless it was already on its way. */
void store_thread_drop(struct store_thread *thread, const char *name);

/* Puts a value into a queue, in place of all that is in it (store_server_tell); copies both. */
void store_thread_tell(struct store_thread *thread, const char *raw_key, const char *value_or_null);

/* Closes the port and every connection, joins the thread and frees it. Renewals under way and
 * events not yet reported are dropped. Accepts NULL. */
void store_thread_stop(struct store_thread *thread);

#endif
