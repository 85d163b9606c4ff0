/* SPDX-License-Identifier: BSD-3-Clause */
/* A mailbox between the store thread and its user. Any thread may post a letter; one thread takes
 * them, first in, first out. A letter that replaces an older one of its kind takes that one's place
 * in the queue, so that a busy user finds little more than one letter per client. host/store_thread
 * wakes the reader and gives letters their meaning. */
#ifndef MUSTER_HOST_STORE_STORE_MAIL_H
#define MUSTER_HOST_STORE_STORE_MAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/table.h"
#include "host/store/store_seeds.h"

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

#endif
