/* SPDX-License-Identifier: BSD-3-Clause */
/* One entry of a job's register: who hosts the job's store in which term, and which world is
 * committed. Entries are numbered 1, 2, … without a gap, and none is ever changed: whoever is first
 * to write number n has chosen it. The register decides that and nothing else. What entries mean,
 * and who may write one, is decided elsewhere; the committed record is bytes here. */
#ifndef MUSTER_CORE_REGISTER_REGISTER_ENTRY_H
#define MUSTER_CORE_REGISTER_REGISTER_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* How a run id becomes part of a name in a place that serves many jobs: of a directory, of a key.
 * Two run ids never give one name. */

/* Appends the name: letters, digits, ".", "-" and "_" as they are, other bytes as "%" and two
 * hexadecimal digits. */
void register_name_write(const char *id, struct text *out);

/* The same where a name may have few characters and be short: letters, digits, "." and "-" as they
 * are, other bytes as "_" and two hexadecimal digits. Of a name that is longer than
 * REGISTER_NAME_SHORT the first characters stay, with "__" and a hash of the run id behind them. */
#define REGISTER_NAME_SHORT 42
void register_name_write_short(const char *id, struct text *out);

/* Twelve digits, as an engine may put the number into a name. */
#define REGISTER_ENTRY_HIGHEST_NUMBER INT64_C(999999999999)
/* The longest texts, and the longest record: as text in an entry it has a third more bytes. */
#define REGISTER_ENTRY_HOST_MAXIMUM 512
#define REGISTER_ENTRY_ADDRESSES_MAXIMUM 4096
#define REGISTER_ENTRY_SETTINGS_MAXIMUM 256
#define REGISTER_ENTRY_RECORD_MAXIMUM ((size_t)700 << 10)
/* 128 random bits as lower-case hexadecimal digits, and a NUL. */
#define REGISTER_ENTRY_NONCE_SIZE 33

enum register_entry_kind {
    REGISTER_ENTRY_CLAIM,    /* its host has made itself the host of a new term */
    REGISTER_ENTRY_COMMIT,   /* a world that its host may tell */
    REGISTER_ENTRY_HANDOVER, /* its host was named by the host of the term before */
    REGISTER_ENTRY_CLOSE,    /* the job is closed */
};

struct register_entry {
    int64_t number; /* from 1 */
    enum register_entry_kind kind;
    int64_t term; /* from 1, at most `number` */
    char *host;   /* the name of the node that hosts from this entry on; not empty */
    /* The 128 random bits of its process, as the nonce: containers of one machine, and pods that
     * come again, have one name. "": of an earlier Muster, where the name decides. */
    char process[REGISTER_ENTRY_NONCE_SIZE];
    char *addresses; /* where it listens, as nodes announce addresses; may be empty */
    char *settings;  /* a digest of what all nodes must agree on; may be empty */
    struct bytes record;
    char nonce[REGISTER_ENTRY_NONCE_SIZE]; /* tells two entries of one number apart */
};

/* Frees what the entry owns, and zeroes it. A zeroed entry is empty. */
void register_entry_clear(struct register_entry *entry);
/* `out_entry` is uninitialized before. */
void register_entry_copy(const struct register_entry *entry, struct register_entry *out_entry);

/* FAILURE_INVALID for an entry without a host or nonce, for numbers out of range, and for a nonce
 * or a process that is not 32 hexadecimal digits; FAILURE_LIMIT for one with a part that is too
 * long. */
__attribute__((warn_unused_result)) enum failure_code register_entry_check(
    const struct register_entry *entry);

/* "claim", "commit", "handover", "close". */
const char *register_entry_kind_name(enum register_entry_kind kind);
/* Returns false, and leaves `out_kind` as it is, for another name. */
bool register_entry_kind_parse(const char *name, enum register_entry_kind *out_kind);

/* Writes the nonce for 128 random bits. */
void register_entry_write_nonce(
    uint64_t high, uint64_t low, char out_nonce[REGISTER_ENTRY_NONCE_SIZE]);

/* What a register answers to a request. It is the same for all engines. host/register/register.h
 * says which request has which answers. */

enum register_event_kind {
    REGISTER_READ,    /* `entry`, or NULL: there is none yet */
    REGISTER_WON,     /* the appended entry is in the register */
    REGISTER_LOST,    /* another has the number, or a later one: `entry` */
    REGISTER_UNKNOWN, /* the append may have taken effect, or may do so later: `failure` */
    REGISTER_RENEWED,
    REGISTER_RENEWAL, /* `renewal` */
    REGISTER_NEWS,    /* an entry later than the one that was known: `entry` */
    REGISTER_FAILED,  /* `failure`; an append has not taken effect and will not */
};

struct register_event {
    enum register_event_kind kind;
    uint64_t request; /* the number that the request was given */
    const struct register_entry *entry;
    const char *renewal;
    const struct failure *failure;
    /* Of a failure: it will be the same until the user has done something. */
    bool is_final;
    /* Of REGISTER_READ: one sentence about the register, for a node that waits for others in vain;
     * or NULL. */
    const char *note;
};

#endif
