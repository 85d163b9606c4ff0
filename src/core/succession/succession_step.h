/* SPDX-License-Identifier: BSD-3-Clause */
/* One step of a succession machine: the machine, the event, the effects, and the actions that
 * several of its handlers share. What is decided when is in succession_machine. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_STEP_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "core/succession/succession_machine.h"
#include "core/succession/succession_majority.h"
#include "core/succession/succession_silence.h"

/* A failure of the register is told as it is, with what may help at its end. */
#define SUCCESSION_REASON_SIZE FAILURE_MESSAGE_SIZE
/* A host that has lost its term without an append of its own learns it by a read. */
#define SUCCESSION_RENEWALS_PER_READ 8

enum succession_request {
    SUCCESSION_REQUEST_NONE,
    SUCCESSION_REQUEST_READ,
    SUCCESSION_REQUEST_APPEND,
};

enum succession_suspicion_kind {
    SUCCESSION_SUSPICION_NONE,
    SUCCESSION_SUSPICION_REFUSED,
    SUCCESSION_SUSPICION_SILENT,
};

/* Of the host that this node cannot reach. */
struct succession_suspicion {
    enum succession_suspicion_kind kind;
    /* The next READ that finds nothing new is followed by a claim; REFUSED: unless other nodes have
     * their turns before. */
    bool is_turn;
    int turns_before;      /* REFUSED: which have not begun yet */
    struct moment turn_at; /* REFUSED: when the turn of another node is over */
    int64_t watched;       /* the number of the entry after which the register is watched */
};

/* Of the host, when it leaves. */
enum succession_handover_stage {
    SUCCESSION_HANDOVER_NONE,
    SUCCESSION_HANDOVER_SETTLING, /* the others form their round; it is appended */
    SUCCESSION_HANDOVER_NAMED,    /* the successor was told */
    SUCCESSION_HANDOVER_OVER,
};

struct succession_handover {
    enum succession_handover_stage stage;
    bool has_named; /* nothing is appended or renewed any more */
    struct node_identity successor;
    struct moment quiet_at; /* SETTLING; not set: it is quiet */
    struct moment until;    /* SETTLING, NAMED */
};

struct succession_machine {
    struct succession_settings settings;
    enum succession_state state;
    struct succession_entry entry;  /* the last one known; number 0: none */
    struct rendezvous_state record; /* what it has committed */
    struct node_identity formers[SUCCESSION_FORMERS_MAXIMUM]; /* hosts of terms since that commit */
    size_t former_count;
    /* Host: the record of a round that is whole, and no entry yet; and what is being appended. */
    struct rendezvous_state seen;
    struct rendezvous_state appended;
    bool is_uncommitted;
    bool is_open; /* the round seen last has not its nodes yet */
    struct succession_majority majority;
    struct moment count_at;      /* somebody has fallen silent just now */
    struct moment patient_until; /* set: most of the committed world is missing */
    enum succession_request request;
    bool is_claim;      /* the append under way, or the one that is unresolved */
    bool is_unresolved; /* nobody knows whether the append was won */
    bool is_seeking;
    struct instant deadline; /* of SEEK */
    bool has_read;           /* since SEEK */
    bool is_dialing;
    bool is_connected;
    bool is_named; /* by the host that this node is connected to, as its successor */
    bool was_connected;
    int64_t connected_term; /* of the connection, or of the last one */
    struct succession_suspicion suspicion;
    struct succession_silence silence; /* begins before the suspicion */
    struct moment renew_at;
    bool is_renewing; /* the last renewal is not answered … */
    bool is_stuck;    /* … nor was the one before, or it was refused */
    uint64_t renewal_count;
    struct moment retry_at;
    struct succession_handover handover;
    struct instant asked_at; /* the last READ or APPEND */
    /* Of the host, or what the register has as its last entry. A renewal does not count: it tells
     * nothing of other terms, in which the others may have gone on. */
    struct instant heard_at;
    bool is_fenced;
    char reason[SUCCESSION_REASON_SIZE];
};

struct succession_step {
    struct succession_machine *machine;
    const struct succession_event *event;
    struct succession_effects *effects;
};

/* Appends an effect. `_kind` appends an effect without values. */
void succession_push(struct succession_step *step, struct succession_effect effect);
void succession_push_kind(struct succession_step *step, enum succession_effect_kind kind);

/* Asks the register, unless a request is under way. */
void succession_read(struct succession_step *step);
/* Dials the host, if a connection is wanted. */
void succession_dial(struct succession_step *step);
/* Appends an entry after the one known: a claim of the next term, or a commit in this one. */
void succession_append(
    struct succession_step *step, bool is_claim, const struct rendezvous_state *record);
void succession_retry_later(struct succession_step *step);

/* The store that this node is connected to is not the job's any more. SEEK follows. */
void succession_leave_connection(struct succession_step *step);
/* Ends the workers of a node that is not connected: the others may have gone on without it. */
void succession_fence(struct succession_step *step, const char *reason);
/* Ends the search for a host. */
void succession_give_up(struct succession_step *step);

const struct rendezvous_node *succession_find_self(
    const struct succession_machine *machine, const struct rendezvous_state *record);
/* How many nodes of the world known last claim before this one. */
int succession_turn(const struct succession_machine *machine);
void succession_forget_suspicion(struct succession_machine *machine);

/* Claims the next term. */
void succession_claim(struct succession_step *step);
/* The register has no later entry. The host that this node cannot reach is claimed when it is this
 * node's turn. A host that is not suspected is dialled. */
void succession_claim_in_turn(struct succession_step *step);

/* When a node that hears of nobody ends its workers. */
struct instant succession_fence_time(const struct succession_machine *machine);
/* The one timer, for what comes next. */
void succession_arm_timer(struct succession_step *step);

#endif
