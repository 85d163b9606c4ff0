/* SPDX-License-Identifier: BSD-3-Clause */
/* A letter box between a store's thread and its user's: any thread posts, one takes, first in,
 * first out. News that makes older news of its kind worthless takes its place in the line, so that
 * a user who is busy finds little more than one letter per client. Waking the reader, and what
 * letters mean, are host/store_thread's. */
#ifndef MUSTER_HOST_STORE_MAIL_H
#define MUSTER_HOST_STORE_MAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/table.h"

enum store_letter_kind {
    /* to the store's thread */
    STORE_LETTER_RENEW, /* name: the prefix to keep, or NULL; done */
    STORE_LETTER_DROP,  /* name */
    STORE_LETTER_STOP,
    /* to its user */
    STORE_LETTER_RENEWED, /* done */
    STORE_LETTER_BEAT,    /* name, value */
    STORE_LETTER_GONE,    /* name, value */
    STORE_LETTER_WATCHED_WRITTEN,
    STORE_LETTER_CONNECTIONS, /* count */
};

struct store_letter {
    struct store_letter *next;
    enum store_letter_kind kind;
    char *name;
    char *value;
    size_t count;
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
    struct store_letter **end;        /* where the next one is hung up */
    struct table *beats;              /* name -> its beat still in the box, unless gone since */
    struct store_letter *connections; /* at the end of the line whatever comes; NULL: none */
};

void store_mail_init(struct store_mail *mail);
/* Frees the letters in it. */
void store_mail_clear(struct store_mail *mail);

/* Also from another thread. A BEAT gives its value to one of the same name that is still in the box
 * with no GONE of it between. The last CONNECTIONS alone is kept, and comes out after all else. */
void store_mail_post(struct store_mail *mail, struct store_letter *letter_taken);

/* The next letter, the caller's to free, or NULL. */
struct store_letter *store_mail_take(struct store_mail *mail);

bool store_mail_is_empty(struct store_mail *mail);

#endif
