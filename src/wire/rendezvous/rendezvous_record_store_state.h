/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a rendezvous_record_store, shared by its two parts: rendezvous_record_store takes
 * requests, record_answer takes the store's replies. No other module may read or write it. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_RECORD_STORE_STATE_H
#define MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_RECORD_STORE_STATE_H

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/random.h"
#include "wire/rendezvous/record_request.h"
#include "wire/rendezvous/rendezvous_record_store.h"

enum record_phase {
    RECORD_PHASE_DROPPED,
    RECORD_PHASE_OPENING,
    RECORD_PHASE_GREETING, /* asks what must be known before the record is read */
    RECORD_PHASE_UP,
};

/* A request that is not answered yet. */
struct record_pending {
    uint64_t tag;
    enum record_question_kind kind;
    int64_t known_changes; /* when it was sent */
};

struct rendezvous_record_store {
    char *run_id;
    char *sizes; /* --nnodes, for other nodes to compare */
    struct duration answer_timeout;
    bool is_file;
    bool delegates;
    bool follows;

    enum record_phase phase;
    struct instant deadline; /* until when to try to connect */
    struct duration refusal_patience;
    int greetings;  /* of two questions asked beside each other, how many are not answered */
    char *refusal;  /* why this node may not take part; NULL: it may */
    int attempts;   /* made so far */
    bool was_heard; /* the store has answered in one of them */
    struct random random;
    struct backoff backoff; /* of the attempts until the deadline */
    struct record_pending *pending;
    size_t pending_count;
    size_t pending_capacity;
    uint64_t last_tag;

    struct {
        /* Text of the record seen last; empty: the key is missing or empty, or was not read yet. */
        struct bytes token;
        struct bytes writing;
        bool is_begun; /* this connection has asked for it, and begun one if there was none */
        bool is_quiet; /* the write under way does not tell the watchers */
    } record;
    struct {
        int64_t known;      /* of the changes counted so far, as read or as told by the watcher */
        int64_t known_then; /* when the question was sent that is answered now */
        int64_t awaited;    /* the number of the change waited for; 0: none */
        int64_t own;        /* the number of the last change that this node made itself */
    } changes;
    struct {
        bool is_served;
        char *key; /* NULL: this node has not announced its presence */
        char *value;
    } presence;
    struct {
        bool is_offered;               /* by the host of the store */
        bool is_taken;                 /* this node delegates */
        struct node_identity identity; /* of this node, for … */
        char *key;                     /* … its queue; NULL: nothing is told it, and … */
        bool is_watched;               /* … the watcher waits for an item of it */
    } delegation;
    struct {
        struct text_list keys; /* of earlier rounds, to be deleted … */
        size_t begun;          /* … so many of them asked for */
    } clearing;
};

/* Sends the question and records that its answer is pending. */
void record_store_send(struct rendezvous_record_store *store, struct record_question question,
    struct record_effects *effects);
/* Sends a question that has no operand but, for some kinds, a number. */
void record_store_ask(struct rendezvous_record_store *store, enum record_question_kind kind,
    int64_t number, struct record_effects *effects);
/* Waits for what the host tells, where it tells this node anything and it does not wait already. */
void record_store_watch_standing(
    struct rendezvous_record_store *store, struct record_effects *effects);
/* Deletes the next key of an earlier round, if there is one. */
void record_store_clear_next(struct rendezvous_record_store *store, struct record_effects *effects);
/* Drops the lanes and reports that the record cannot be used. */
void record_store_break_down(
    struct rendezvous_record_store *store, const char *reason, struct record_effects *effects);

#endif
