/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/table.h"
#include "host/loop/blocking_pool.h"

/* A mailbox between the store thread and its user. Any thread may post a letter; one thread takes
 * them, first in, first out. A letter that replaces an older one of its kind takes that one's place
 * in the queue, so that a busy user finds little more than one letter per client. The thread
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

struct store_mail {
    pthread_mutex_t lock;
    struct store_letter *first;
    struct store_letter **end; /* where the next letter is linked */
    struct table *beats; /* name -> its BEAT that is still in the box, unless a GONE followed it */
    struct store_letter *connections; /* always after all other letters; NULL: none */
};

/* Copies the strings, each of which may be NULL. Never NULL. */
static struct store_letter *store_letter_new(
    enum store_letter_kind kind, const char *name, const char *value) {
    struct store_letter *letter = memory_allocate(sizeof *letter);
    letter->kind = kind;
    letter->name = memory_duplicate_string(name);
    letter->value = memory_duplicate_string(value);
    return letter;
}

/* NULL is fine. */
static void store_letter_free(struct store_letter *letter) {
    if (letter == NULL) {
        return;
    }
    free(letter->name);
    free(letter->value);
    store_seeds_clear(&letter->seeds);
    free(letter);
}

static void store_mail_init(struct store_mail *mail) {
    *mail = (struct store_mail){.beats = table_new(NULL)};
    mail->end = &mail->first;
    pthread_mutex_init(&mail->lock, NULL);
}

static bool store_mail_is_empty(struct store_mail *mail) {
    pthread_mutex_lock(&mail->lock);
    bool is_empty = mail->first == NULL && mail->connections == NULL;
    pthread_mutex_unlock(&mail->lock);
    return is_empty;
}

static void append(struct store_mail *mail, struct store_letter *letter) {
    letter->next = NULL;
    *mail->end = letter;
    mail->end = &letter->next;
    if (letter->kind == STORE_LETTER_BEAT) {
        (void)table_put(mail->beats, slice_from_string(letter->name), letter);
    } else if (letter->kind == STORE_LETTER_GONE) {
        (void)table_remove(mail->beats, slice_from_string(letter->name));
    }
}

/* Puts the letter into its place; returns a letter that it replaces, or NULL. */
static struct store_letter *put(struct store_mail *mail, struct store_letter *letter) {
    struct store_letter *older = NULL;
    if (letter->kind == STORE_LETTER_CONNECTIONS) {
        older = mail->connections;
        mail->connections = letter;
        return older;
    }
    if (letter->kind == STORE_LETTER_BEAT) {
        older = table_get(mail->beats, slice_from_string(letter->name));
    }
    if (older == NULL) {
        append(mail, letter);
        return NULL;
    }
    char *value = older->value;
    older->value = letter->value;
    letter->value = value;
    return letter;
}

/* May be called from another thread. A BEAT updates the value of an earlier BEAT of the same name
 * that is still in the box, unless a GONE of that name is between them. Only the last CONNECTIONS
 * is kept; it is taken after all other letters. */
static void store_mail_post(struct store_mail *mail, struct store_letter *letter_taken) {
    pthread_mutex_lock(&mail->lock);
    struct store_letter *left_over = put(mail, letter_taken);
    pthread_mutex_unlock(&mail->lock);
    store_letter_free(left_over);
}

/* A BEAT that has been taken cannot get a new value any more. */
static void forget_beat(struct store_mail *mail, const struct store_letter *letter) {
    struct slice name = slice_from_string(letter->name);
    if (table_get(mail->beats, name) == letter) {
        (void)table_remove(mail->beats, name);
    }
}

static struct store_letter *pop(struct store_mail *mail) {
    struct store_letter *letter = mail->first;
    if (letter == NULL) {
        letter = mail->connections;
        mail->connections = NULL;
        return letter;
    }
    mail->first = letter->next;
    if (mail->first == NULL) {
        mail->end = &mail->first;
    }
    if (letter->kind == STORE_LETTER_BEAT) {
        forget_beat(mail, letter);
    }
    return letter;
}

/* Removes and returns the next letter, which the caller frees; or NULL. */
static struct store_letter *store_mail_take(struct store_mail *mail) {
    pthread_mutex_lock(&mail->lock);
    struct store_letter *letter = pop(mail);
    pthread_mutex_unlock(&mail->lock);
    return letter;
}

/* Frees the letters in it. */
static void store_mail_clear(struct store_mail *mail) {
    while (!store_mail_is_empty(mail)) {
        store_letter_free(store_mail_take(mail));
    }
    table_free(mail->beats);
    pthread_mutex_destroy(&mail->lock);
}

/* Thread. */

struct store_thread {
    pthread_t thread;
    int port;
    struct store_server_observer observer; /* the caller's observer */
    struct store_mail asked;               /* letters from the caller */
    struct store_mail reported;            /* letters to the caller */
    struct event_wake *caller_wake;        /* wakes the caller's loop when `reported` has letters */

    /* the fields below are used only by the store thread once it runs */
    struct event_loop *loop;
    struct store_server *server;
    struct event_wake *wake; /* sent when `asked` has letters */
};

static void ask(struct store_thread *thread, struct store_letter *letter_taken) {
    store_mail_post(&thread->asked, letter_taken);
    event_wake_send(thread->wake);
}

static void report(struct store_thread *thread, struct store_letter *letter_taken) {
    store_mail_post(&thread->reported, letter_taken);
    event_wake_send(thread->caller_wake);
}

/* The server's observer; it runs on the store thread. */
static void report_beat(void *context, const char *name, const char *value) {
    report(context, store_letter_new(STORE_LETTER_BEAT, name, value));
}

static void report_gone(void *context, const char *name, const char *value) {
    report(context, store_letter_new(STORE_LETTER_GONE, name, value));
}

static void report_silent(void *context, const char *name) {
    report(context, store_letter_new(STORE_LETTER_SILENT, name, NULL));
}

static void report_reached(void *context, const char *address) {
    report(context, store_letter_new(STORE_LETTER_REACHED, address, NULL));
}

static void report_watched_written(void *context) {
    report(context, store_letter_new(STORE_LETTER_WATCHED_WRITTEN, NULL, NULL));
}

static void report_connections(void *context, size_t count) {
    struct store_letter *letter = store_letter_new(STORE_LETTER_CONNECTIONS, NULL, NULL);
    letter->count = count;
    report(context, letter);
}

static void report_done(struct store_thread *thread, struct store_letter *letter_taken) {
    letter_taken->kind = STORE_LETTER_DONE;
    report(thread, letter_taken);
}

static void carry_out(struct store_thread *thread, struct store_letter *letter_taken) {
    switch (letter_taken->kind) {
    case STORE_LETTER_RENEW:
        store_server_renew(thread->server, letter_taken->name);
        report_done(thread, letter_taken);
        return;
    case STORE_LETTER_SERVE:
        store_server_serve(thread->server, &letter_taken->seeds);
        report_done(thread, letter_taken);
        return;
    case STORE_LETTER_STAND_BY:
        store_server_stand_by(thread->server, slice_from_string(letter_taken->value));
        report_done(thread, letter_taken);
        return;
    case STORE_LETTER_DROP:
        store_server_drop(thread->server, letter_taken->name);
        break;
    case STORE_LETTER_TELL:
        store_server_tell(thread->server, letter_taken->name, letter_taken->value);
        break;
    case STORE_LETTER_STOP:
        event_loop_stop(thread->loop);
        break;
    case STORE_LETTER_DONE:
    case STORE_LETTER_BEAT:
    case STORE_LETTER_GONE:
    case STORE_LETTER_SILENT:
    case STORE_LETTER_REACHED:
    case STORE_LETTER_WATCHED_WRITTEN:
    case STORE_LETTER_CONNECTIONS:
        break; /* these letters go to the caller */
    }
    store_letter_free(letter_taken);
}

/* Runs on the store thread. */
static void request_arrived(void *context) {
    struct store_thread *thread = context;
    struct store_letter *letter;
    while ((letter = store_mail_take(&thread->asked)) != NULL) {
        carry_out(thread, letter);
    }
}

static void tell(const struct store_server_observer *observer, const struct store_letter *letter) {
    switch (letter->kind) {
    case STORE_LETTER_DONE:
        if (letter->done != NULL) {
            letter->done(letter->context);
        }
        break;
    case STORE_LETTER_BEAT:
        observer->beat(observer->context, letter->name, letter->value);
        break;
    case STORE_LETTER_GONE:
        observer->gone(observer->context, letter->name, letter->value);
        break;
    case STORE_LETTER_SILENT:
        observer->silent(observer->context, letter->name);
        break;
    case STORE_LETTER_REACHED:
        observer->reached(observer->context, letter->name);
        break;
    case STORE_LETTER_WATCHED_WRITTEN:
        observer->watched_written(observer->context);
        break;
    case STORE_LETTER_CONNECTIONS:
        observer->connections(observer->context, letter->count);
        break;
    case STORE_LETTER_RENEW:
    case STORE_LETTER_SERVE:
    case STORE_LETTER_STAND_BY:
    case STORE_LETTER_DROP:
    case STORE_LETTER_TELL:
    case STORE_LETTER_STOP:
        break; /* these letters go to the store thread */
    }
}

/* Runs on the caller's loop. It handles one letter per turn, because the callback may stop and free
 * the thread. */
static void report_arrived(void *context) {
    struct store_thread *thread = context;
    struct store_letter *letter = store_mail_take(&thread->reported);
    if (letter == NULL) {
        return;
    }
    if (!store_mail_is_empty(&thread->reported)) {
        event_wake_send(thread->caller_wake);
    }
    struct store_server_observer observer = thread->observer;
    tell(&observer, letter);
    store_letter_free(letter);
}

static void *serve(void *context) {
    struct store_thread *thread = context;
    event_loop_run(thread->loop);
    return NULL;
}

/* Undoes what store_thread_start has created so far; each part may be missing. */
static void free_parts(struct store_thread *thread) {
    store_server_free(thread->server);
    event_wake_free(thread->wake);
    (void)event_loop_free(thread->loop); /* true: everything in it was freed just before */
    event_wake_free(thread->caller_wake);
    store_mail_clear(&thread->asked);
    store_mail_clear(&thread->reported);
    free(thread);
}

/* Creates everything before the thread exists, so that the caller gets every failure. */
static enum failure_code make_parts(
    struct store_thread *thread, struct event_loop *caller_loop, struct failure *failure) {
    enum failure_code code =
        event_wake_new(caller_loop, report_arrived, thread, &thread->caller_wake, failure);
    if (code == FAILURE_NONE) {
        code = event_loop_new(&thread->loop, failure);
    }
    if (code == FAILURE_NONE) {
        code = event_wake_new(thread->loop, request_arrived, thread, &thread->wake, failure);
    }
    return code;
}

static enum failure_code start(struct store_thread *thread, int listening_fd,
    const struct store_server_settings *settings, struct failure *failure) {
    struct store_server_settings served = *settings;
    served.observer = (struct store_server_observer){
        .beat = settings->observer.beat != NULL ? report_beat : NULL,
        .gone = settings->observer.gone != NULL ? report_gone : NULL,
        .silent = settings->observer.silent != NULL ? report_silent : NULL,
        .reached = settings->observer.reached != NULL ? report_reached : NULL,
        .watched_written =
            settings->observer.watched_written != NULL ? report_watched_written : NULL,
        .connections = settings->observer.connections != NULL ? report_connections : NULL,
        .context = thread,
    };
    enum failure_code code =
        store_server_new(thread->loop, listening_fd, &served, &thread->server, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    thread->port = store_server_port(thread->server);
    return quiet_thread_start("muster-store", serve, thread, &thread->thread, failure);
}

enum failure_code store_thread_start(struct event_loop *loop, int listening_fd_taken,
    const struct store_server_settings *settings, struct store_thread **out_thread,
    struct failure *failure) {
    struct store_thread *thread = memory_allocate(sizeof *thread);
    thread->observer = settings->observer;
    store_mail_init(&thread->asked);
    store_mail_init(&thread->reported);
    enum failure_code code = make_parts(thread, loop, failure);
    if (code != FAILURE_NONE) {
        store_server_close_listeners(listening_fd_taken, settings);
    } else {
        code = start(thread, listening_fd_taken, settings, failure);
    }
    if (code != FAILURE_NONE) {
        free_parts(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}

int store_thread_port(const struct store_thread *thread) {
    return thread->port;
}

static void ask_and_tell(struct store_thread *thread, struct store_letter *letter_taken,
    void (*done)(void *context), void *context) {
    letter_taken->done = done;
    letter_taken->context = context;
    ask(thread, letter_taken);
}

void store_thread_renew(struct store_thread *thread, const char *kept_prefix,
    void (*done)(void *context), void *context) {
    ask_and_tell(thread, store_letter_new(STORE_LETTER_RENEW, kept_prefix, NULL), done, context);
}

void store_thread_serve(struct store_thread *thread, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context) {
    struct store_letter *letter = store_letter_new(STORE_LETTER_SERVE, NULL, NULL);
    letter->seeds = *seeds_taken;
    *seeds_taken = (struct store_seeds){0};
    ask_and_tell(thread, letter, done, context);
}

void store_thread_stand_by(
    struct store_thread *thread, const char *answer, void (*done)(void *context), void *context) {
    ask_and_tell(thread, store_letter_new(STORE_LETTER_STAND_BY, NULL, answer), done, context);
}

void store_thread_drop(struct store_thread *thread, const char *name) {
    ask(thread, store_letter_new(STORE_LETTER_DROP, name, NULL));
}

void store_thread_tell(
    struct store_thread *thread, const char *raw_key, const char *value_or_null) {
    ask(thread, store_letter_new(STORE_LETTER_TELL, raw_key, value_or_null));
}

void store_thread_stop(struct store_thread *thread) {
    if (thread == NULL) {
        return;
    }
    ask(thread, store_letter_new(STORE_LETTER_STOP, NULL, NULL));
    pthread_join(thread->thread, NULL);
    free_parts(thread);
}
