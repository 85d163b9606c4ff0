/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_mail.h"

#include <stdlib.h>

#include "base/memory.h"

struct store_letter *store_letter_new(
    enum store_letter_kind kind, const char *name, const char *value) {
    struct store_letter *letter = memory_allocate(sizeof *letter);
    letter->kind = kind;
    letter->name = memory_duplicate_string(name);
    letter->value = memory_duplicate_string(value);
    return letter;
}

void store_letter_free(struct store_letter *letter) {
    if (letter == NULL) {
        return;
    }
    free(letter->name);
    free(letter->value);
    store_seeds_clear(&letter->seeds);
    free(letter);
}

void store_mail_init(struct store_mail *mail) {
    *mail = (struct store_mail){.beats = table_new(NULL)};
    mail->end = &mail->first;
    pthread_mutex_init(&mail->lock, NULL);
}

void store_mail_clear(struct store_mail *mail) {
    while (!store_mail_is_empty(mail)) {
        store_letter_free(store_mail_take(mail));
    }
    table_free(mail->beats);
    pthread_mutex_destroy(&mail->lock);
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

void store_mail_post(struct store_mail *mail, struct store_letter *letter_taken) {
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

struct store_letter *store_mail_take(struct store_mail *mail) {
    pthread_mutex_lock(&mail->lock);
    struct store_letter *letter = pop(mail);
    pthread_mutex_unlock(&mail->lock);
    return letter;
}

bool store_mail_is_empty(struct store_mail *mail) {
    pthread_mutex_lock(&mail->lock);
    bool is_empty = mail->first == NULL && mail->connections == NULL;
    pthread_mutex_unlock(&mail->lock);
    return is_empty;
}
