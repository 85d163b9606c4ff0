/* SPDX-License-Identifier: BSD-3-Clause */
/* Who hosts the job's store, as one node decides it with an external register. The register is a
 * sequence of write-once entries. Each has a number and a term, names the host of that term, and
 * has the record of the last round that is committed. The register decides who is host: of two
 * nodes that append the same number, one wins. This machine is under
 * core/rendezvous/rendezvous_machine, which asks to be connected and is told of a connection, and
 * never learns where the store is. It knows no bytes and no addresses: the performer keeps those of
 * the entry that it was given last.
 *
 *                | FOLLOW             | SUSPECT            | CLAIM          | HOST
 * ---------------+--------------------+--------------------+----------------+-----------------
 * SEEK           | DIAL the host of   | DIAL its host,     | waits          | DIAL itself
 *                | the entry; READ,   | READ               |                |
 *                | at once or later   |                    |                |
 * READ: none     | APPEND a claim of  |                    |                |
 *                | the first term     |                    |                |
 * READ: the same | DIAL, unless it    | APPEND a claim, in | APPEND again   | APPEND again what
 * entry          | does               | its turn           |                | is not answered
 * READ, LOST: a  | DIAL its host, or  | as for FOLLOW      | as for FOLLOW; | was won, if it is
 * later entry    | HOST, if that is   |                    | an own one was | its own; else ends
 *                | this node          |                    | won            | hosting, DIAL
 * WON            |                    |                    | HOST, DIAL     | TELL_COMMITTED
 *                |                    |                    | itself         |
 * UNKNOWN        |                    |                    | READ, later    | READ, later
 * CONNECTED      | tells it           | tells it; FOLLOW   |                | tells it
 * CONNECTION_LOST|                    |                    |                |
 *   it was there | tells it           |                    |                | tells it
 *   refused      | SUSPECT, then as   | READ, in its turn  |                | DIAL itself again
 *                | for READ there     |                    |                |
 *   silent       | SUSPECT, LOOK,     | DIAL; claims when  |                | DIAL itself again
 *                | DIAL               | the renewal stands |                |
 * SEEN: whole or |                    |                    |                | APPEND, unless it
 * closed         |                    |                    |                | is committed
 * FAILED         | READ, later        | READ, later        | READ, later    | APPEND, later
 * NEWS: a later  | as for READ        | as for READ        |                |
 * entry          |                    |                    |                |
 * NAMED          | READ, then APPEND  |                    |                |
 *                | a claim            |                    |                |
 * MOVED          | READ               |                    |                |
 * LEAVE          |                    |                    |                | NAME, DISMISS
 *
 * A host that is refused is a process that has ended: the nodes of the committed world claim in the
 * order of their ranks, each one SUCCESSION_TURN_MILLISECONDS after the one before, and nodes that
 * are not in it after them. Only the first of them asks the register as soon as it seeks the host.
 * The others ask after each turn before theirs, when there may be something to learn: many nodes
 * that ask at once would delay the one that claims. Those who have one of the first turns WATCH the
 * register meanwhile, and follow as soon as another has claimed. A host that is silent may be
 * there: its entry is claimed only when its renewal has not changed for silence_timeout by the
 * clock of this node (succession_silence), which looks at it from its first DOUBTED on. So a node
 * that alone has lost the host does not depose it.
 *
 * A host makes the record of a whole round an entry of its own term before anybody starts workers
 * in it. When that append is lost to another one, this node hosts no more: it ends its store, and
 * follows. So of two worlds only one is ever told.
 *
 * When a renewal is refused, or not answered before the next one is due, the host tells the
 * rendezvous machine (TELL_REGISTER), so that no running world is given up for one that could not
 * be committed.
 *
 * A host that has lost more than half of the committed world to silence (succession_majority)
 * renews its term no more, and appends nothing for twice fence_timeout: if it is the host that is
 * cut off, the others claim meanwhile, and if they are dead, it goes on.
 *
 * A host that leaves lets the others form their round without it first. Then it names its successor
 * (succession_handover): the first node of the record that stays. That one claims while it is
 * connected, and waits for nobody. When it has left the host's store for its own, the host
 * dismisses the others, who find the next host in the register. Their workers run on through that.
 *
 * A node that comes to a job whose last entry is closed gives up at once: the job is over.
 *
 * A node that has heard neither of the host nor of the register for fence_timeout tells FENCED: its
 * workers end, since the others may have gone on without it. Of a host that has fallen silent it
 * has heard silence_timeout and half a second before it found out. Of the register it has heard
 * when it has asked for the last entry and is answered. The same holds for a node that reads of a
 * later round without it.
 *
 * The contract with the performer:
 * - READ is answered by READ or FAILED; APPEND by WON, LOST, UNKNOWN or FAILED; LOOK by RENEWAL;
 * and RENEW by RENEWED, or not at all. At most one READ or APPEND, and one LOOK, is under way.
 * - WATCH replaces an earlier one, and is answered by NEWS of an entry later than the one known, or
 *   not at all. It ends by itself after a while, and with the first later entry, however it is
 * told.
 * - APPEND takes the record of the effect and, for a claim, this node as the host; its number is
 *   that of the entry known before, and one.
 * - DIAL is answered by CONNECTED or CONNECTION_LOST, and replaces an earlier DIAL. HOST starts the
 *   store, seeded with the record, at the address that this node has announced; a DIAL to this node
 *   itself follows it. END_HOSTING ends it, and every connection to it. DIAL and
 *   END_HOSTING end the connection that was there without a CONNECTION_LOST.
 * - TELL_CONNECTED and TELL_LOST hand what the performer has told on to the rendezvous machine.
 * - The machine has one timer. ARM_TIMER replaces it. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_MACHINE_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/rendezvous/rendezvous_state.h"

/* The last turn: later nodes share it, and those that find the entry claimed do not append. */
#define SUCCESSION_TURNS_MAXIMUM 4
/* How often the host renews its term. With the reads (SUCCESSION_RENEWALS_PER_READ) an idle job
 * asks the register less than once a second; and a node that alone has lost the host deposes it
 * only after more than two renewals that did not come (succession_silence). */
#define SUCCESSION_RENEWAL_MILLISECONDS 1150
#define SUCCESSION_RETRY_MILLISECONDS 250
#define SUCCESSION_FORMERS_MAXIMUM 8
/* A host that leaves names its successor when nothing has happened to the record for so long: those
 * who stay have their round by then, in its store. */
#define SUCCESSION_QUIET_MILLISECONDS 250
/* So long a host that leaves stays at most. Where its successor does not host by then, or the
 * register is away, the others find out by themselves. */
#define SUCCESSION_HANDOVER_MILLISECONDS 1000

enum succession_state {
    SUCCESSION_FOLLOW,
    SUCCESSION_SUSPECT,
    SUCCESSION_CLAIM,
    SUCCESSION_HOST,
    SUCCESSION_STATE_COUNT,
};

enum succession_event_kind {
    SUCCESSION_EVENT_SEEK, /* the rendezvous machine asks for a connection until a deadline */
    SUCCESSION_EVENT_SEEN, /* the rendezvous machine has seen this record */
    /* told by the register */
    SUCCESSION_EVENT_READ,
    SUCCESSION_EVENT_WON,
    SUCCESSION_EVENT_LOST,
    SUCCESSION_EVENT_UNKNOWN,
    SUCCESSION_EVENT_RENEWED,
    SUCCESSION_EVENT_RENEWAL,
    SUCCESSION_EVENT_NEWS,
    SUCCESSION_EVENT_FAILED,
    /* told by the store */
    SUCCESSION_EVENT_CONNECTED,
    SUCCESSION_EVENT_CONNECTION_LOST,
    SUCCESSION_EVENT_NODE_SILENT, /* of this node's store; its process may be there */
    SUCCESSION_EVENT_NODE_GONE,   /* it has left this node's store; after LEAVE */
    SUCCESSION_EVENT_DOUBTED,     /* the host's machine is silent on a connection that is there */
    SUCCESSION_EVENT_NAMED,       /* the host leaves, and this node is to follow it */
    SUCCESSION_EVENT_MOVED,       /* the host leaves, and the register has the next one */
    SUCCESSION_EVENT_LEAVE,       /* this node has nothing left to do but to give up its store */
    SUCCESSION_EVENT_TIMER_FIRED,
    SUCCESSION_EVENT_KIND_COUNT,
};

/* An entry as the machine sees it. */
struct succession_entry {
    int64_t number;
    int64_t term;
    struct node_identity host;
};

enum succession_loss {
    SUCCESSION_LOSS_ENDED,   /* a connection that was there has ended */
    SUCCESSION_LOSS_REFUSED, /* nobody listens at the host's address */
    SUCCESSION_LOSS_SILENT,  /* there was no answer */
    SUCCESSION_LOSS_OTHER,   /* an answer that is no store's of this job */
};

/* Pointers are borrowed for the call. */
struct succession_event {
    enum succession_event_kind kind;
    struct instant now;
    union {
        struct instant deadline; /* SEEK */
        struct {
            bool is_there; /* READ: false: the register has no entry yet */
            struct succession_entry entry;
            /* READ, LOST, NEWS: what is committed; SEEN, LEAVE: the record of the store. */
            const struct rendezvous_state *record;
        };
        /* RENEWAL; "": the host has not renewed its term yet; NULL: the register is away */
        const char *renewal;
        enum succession_loss loss;
        struct node_identity silent; /* NODE_SILENT */
        struct node_identity gone;   /* NODE_GONE */
        bool is_doubted;             /* DOUBTED; false: it was heard again */
        bool is_refused;             /* RENEWED: the register has not taken it */
        struct {                     /* FAILED: nothing was appended */
            const char *reason;
            bool is_final; /* it will be the same until the user has done something */
        } failed;
        bool offers_delegation; /* CONNECTED: the host writes the record for others */
    };
};

enum succession_effect_kind {
    SUCCESSION_EFFECT_READ,
    SUCCESSION_EFFECT_APPEND,
    SUCCESSION_EFFECT_RENEW,
    SUCCESSION_EFFECT_LOOK,
    SUCCESSION_EFFECT_WATCH,
    SUCCESSION_EFFECT_DIAL,
    SUCCESSION_EFFECT_HOST,
    SUCCESSION_EFFECT_END_HOSTING,
    SUCCESSION_EFFECT_TELL_COMMITTED, /* the keys of this round may be used: it is committed */
    SUCCESSION_EFFECT_NAME,    /* tells this node that it is to follow; answered by NODE_GONE */
    SUCCESSION_EFFECT_DISMISS, /* nothing keeps this node's store any more */
    SUCCESSION_EFFECT_ARM_TIMER,
    /* told to the rendezvous machine */
    SUCCESSION_EFFECT_TELL_CONNECTED,
    SUCCESSION_EFFECT_TELL_LOST,     /* the host is sought: a world runs on */
    SUCCESSION_EFFECT_FENCED,        /* no longer: the workers are to end */
    SUCCESSION_EFFECT_TELL_REGISTER, /* whether what this host writes there is taken */
    SUCCESSION_EFFECT_GAVE_UP,       /* at the deadline of SEEK */
    SUCCESSION_EFFECT_KIND_COUNT,
};

struct succession_effect {
    enum succession_effect_kind kind;
    union {
        struct {
            bool is_claim; /* else it commits in the term of this node */
            bool is_named; /* a claim: by the host of the term before */
            int64_t number;
            int64_t term;
            const struct rendezvous_state *record; /* the machine's; good until the next step */
        } append;
        struct {
            int64_t term;
            /* The hosts of the terms since the last commit, which have not kept theirs; the
             * machine's.
             */
            const struct node_identity *formers;
            size_t former_count;
            const struct rendezvous_state *record; /* the machine's */
        } host;
        struct {
            bool is_self;
            struct instant deadline;
        } dial;
        int64_t term;                   /* RENEW, LOOK */
        int64_t number;                 /* WATCH: of the entry known */
        int64_t round;                  /* TELL_COMMITTED */
        struct node_identity successor; /* NAME */
        bool has_successor; /* DISMISS: those who are connected are told that the store moves */
        bool is_stuck;      /* TELL_REGISTER: it is not */
        bool keeps_hosting; /* TELL_LOST: this node lost its own store's connection, not its term */
        struct {
            bool is_same_term; /* as at the connection before, so it is to the same store */
            bool offers_delegation;
        } connected;             /* TELL_CONNECTED */
        struct instant deadline; /* ARM_TIMER */
        const char *reason;      /* FENCED, GAVE_UP: the machine's */
    };
};

#define SUCCESSION_EFFECTS_MAXIMUM 8

struct succession_effects {
    struct succession_effect items[SUCCESSION_EFFECTS_MAXIMUM];
    size_t count;
};

struct succession_settings {
    struct node_identity identity; /* of this node, as it names itself as a host */
    struct duration silence_timeout;
    struct duration fence_timeout;
};

struct succession_machine;

/* The caller frees the machine with succession_machine_free, which accepts NULL. */
struct succession_machine *succession_machine_new(const struct succession_settings *settings);
void succession_machine_free(struct succession_machine *machine);

/* Takes one event. It empties `effects` first, and then fills it with what is to be done, in order.
 */
void succession_machine_step(struct succession_machine *machine,
    const struct succession_event *event, struct succession_effects *effects);

enum succession_state succession_machine_state(const struct succession_machine *machine);
/* Whether this host has yet to append that the job is over: the register has refused it, and it is
 * tried again shortly. */
bool succession_machine_owes_end(const struct succession_machine *machine);

#endif
